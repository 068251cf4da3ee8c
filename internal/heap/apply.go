package heap

import (
	"cmp"
	"math/rand/v2"
	"slices"

	"codeberg.org/gpumemtop/gpumemtop/internal/heap/table"
	"codeberg.org/gpumemtop/gpumemtop/internal/wire"
)

// Options say how a Heap treats processes.
type Options struct {
	// EndProcesses removes the memory of a process once it has ended and another process runs. So the memory of the
	// processes that end last stays. Without EndProcesses all memory stays until End.
	EndProcesses bool
	// ProcessesMax bounds the processes; 0: no bound. The oldest processes that have left make room for others, except for the
	// first process. If too few have left, records of further processes are only counted, in Unknown.
	ProcessesMax int
	// LeftMax bounds the processes that have left; 0: as ProcessesMax. The oldest make room, 1/foldedShare of all at once.
	LeftMax int
	// EntriesMax bounds objects and blocks together; 0: no bound. Creates and slabs beyond it are only counted, in Beyond.
	EntriesMax int
}

// Heap follows the memory of all processes from record to record. One goroutine uses it.
//
// A record costs O(1) and allocates nothing once the heap has held as many objects and blocks as it ever will.
// Only the end of a process, or of the last slab of a class, costs time in proportion to what ends. Memory is bounded by
// the processes and the largest number of objects and blocks at once.
type Heap struct {
	Gauges            // of all processes
	Population        // of all processes
	Unknown    uint64 // records about objects, blocks or processes that are not known
	Beyond     uint64 // creates and slabs that Options.EntriesMax leaves out
	Crowded    bool   // Options.ProcessesMax has left out a process

	now       uint64
	options   Options
	observers []Observer
	seed      uint64
	numbers   map[uint32]*Process
	processes []*Process // in the order of first mention
	latest    *Process   // of the last record
	serial    uint64     // of the last stay in the pool
	objects   table.Arena[Object]
	blocks    table.Arena[Block]
	blind     uint64   // when uses were last lost: any command may use objects of that time
	folded    spans    // numbers of processes that made room
	cooling   []uint64 // scratch of applyEvict
	overtaken overtaken

	ended   int        // processes, without those that were folded
	leaving []*Process // of these, with memory that has not left
	due     uint64     // when the next of them may leave
}

// New returns an empty heap. It reports each change to all observers, in their order.
func New(o Options, observers ...Observer) *Heap {
	return &Heap{options: o, observers: observers, seed: rand.Uint64(), numbers: map[uint32]*Process{}, due: never}
}

// FindProcess returns the process with a number, nil when no record mentioned it.
func (h *Heap) FindProcess(number uint32) *Process {
	if h.latest != nil && h.latest.Number == number {
		return h.latest
	}
	return h.numbers[number]
}

// Process returns the process with a number. It adds it when no record mentioned it; nil when there are too many.
func (h *Heap) Process(number uint32) *Process {
	if p := h.latest; p != nil && p.Number == number {
		return p
	}
	return h.switchToProcess(number)
}

// switchToProcess is Process for a record whose process differs from that of the last record.
func (h *Heap) switchToProcess(number uint32) *Process {
	p := h.numbers[number]
	if p == nil {
		if h.folded.has(number) {
			return nil
		}
		full := h.options.ProcessesMax > 0 && len(h.processes) == h.options.ProcessesMax
		if (full || h.haveTooManyLeft()) && !h.foldLeftProcesses() && full {
			h.Crowded = true
			return nil
		}
		p = &Process{Number: number, Place: len(h.processes), heap: h, Exit: Exit{Status: -1}}
		p.objects.Seed, p.blocks.Seed = h.seed, h.seed
		h.numbers[number] = p
		h.processes = append(h.processes, p)
		h.removeDueMemoryIfOthersRun()
	}
	h.latest = p
	return p
}

// Processes returns all processes by their numbers, without those that were folded.
func (h *Heap) Processes() []*Process {
	return slices.SortedFunc(slices.Values(h.processes), compareByNumber)
}

func compareByNumber(a, b *Process) int { return cmp.Compare(a.Number, b.Number) }

// Now returns the time in CLOCK_MONOTONIC ns: that of the latest record that is Timed, or of Advance.
func (h *Heap) Now() uint64 { return h.now }

// AdvanceTime moves time on. An earlier time changes nothing.
func (h *Heap) AdvanceTime(time uint64) {
	if time > h.now {
		h.now = time
		if time >= h.due {
			h.removeDueMemoryIfOthersRun()
		}
	}
}

// Apply applies one record and returns its process; nil: the record concerns all processes, or there are too many. Any
// record is allowed: records that make no sense are ignored or counted in Unknown. The record may be reused afterwards.
func (h *Heap) Apply(r *wire.Record) *Process {
	if r.IsTimed() || h.now == 0 {
		h.AdvanceTime(r.Time)
	}
	if r.Kind == wire.KindLost {
		if r.AsLost().Uses() > 0 {
			h.blind = h.now
		}
		return nil
	}
	p := h.Process(r.Process)
	if p == nil {
		h.Unknown++
		return nil
	}
	if (r.Kind == wire.KindCreate || r.Kind == wire.KindSlab) && h.hasMaxEntries() {
		h.Beyond++
		return p
	}
	p.endLongWait(r)
	switch r.Kind {
	case wire.KindCreate:
		h.applyCreate(p, r.Thread, r.AsCreate())
	case wire.KindRetain:
		if o := p.Object(r.AsRetain().Object()); o == nil {
			h.Unknown++
		} else {
			o.Retained = true
		}
	case wire.KindRelease:
		h.applyRelease(p, r.AsRelease())
	case wire.KindUse:
		h.applyUse(p, r.AsUse())
	case wire.KindQueue:
		p.applyQueue(r.AsQueue())
	case wire.KindAwait:
		p.noteAwaited(r.Thread, r.AsAwait())
	case wire.KindSync:
		p.applySync(r)
	case wire.KindCooled:
		h.applyCooled(p, r.AsCooled())
	case wire.KindEvict:
		h.applyEvict(p, r.AsEvict().Block())
	case wire.KindSlab:
		h.applySlab(p, r.Thread, r.AsSlab())
	case wire.KindProcess:
		p.watched = r.AsProcess().PID() != 0
	case wire.KindDevice:
		p.largest = max(p.largest, r.AsDevice().LargestAlloc())
	case wire.KindDiag:
		p.RanOut = p.RanOut || r.AsDiag().Diag() == wire.DiagOutOfMemory
	case wire.KindExit:
		p.NoteExit(r)
		h.applyExit(p, r.Thread == 0)
	default: // concerns no memory
	}
	return p
}

func (h *Heap) hasMaxEntries() bool {
	return h.options.EntriesMax > 0 && h.objects.TakenPlaces()+h.blocks.TakenPlaces() >= h.options.EntriesMax
}

func (h *Heap) applyCreate(p *Process, thread uint32, c wire.CreateView) {
	carriedOver := c.CarriedOver()
	if c.Outcome() == wire.OutcomeFailed {
		p.RanOut = p.RanOut || !carriedOver && FailedForLackOrSize(c, p.largest)
		return
	}
	if !carriedOver {
		switch c.PresentOutcome() {
		case wire.OutcomeHit:
			p.Hits++
		case wire.OutcomeMiss:
			p.Misses++
		default: // never poolable
		}
	}
	if old := p.objects.PlaceOf(c.Object()); old >= 0 { // its release was lost
		if !carriedOver { // otherwise the record has more details of the same object
			h.Unknown++
		}
		h.abandonObject(p, h.objects.At(old), Unknown)
	}
	place, o := h.objects.TakePlace()
	*o = Object{} // in place: a literal with fields would be made on the stack and copied, which stalls
	o.Place, o.Owns, o.CarriedOver = place, HasMemory(c), carriedOver
	o.ID, o.Block, o.Parent, o.Tag, o.Thread = c.Object(), c.Block(), c.Parent(), c.Tag(), thread
	o.Size, o.Granted, o.Started = c.Requested(), c.BytesServing(), c.Time()
	o.Duration, o.Cost, o.Scope, o.Access, o.Shape = c.Duration(), c.Cost(), c.Scope(), c.Access(), c.Shape()
	o.Memory, o.Outcome, o.Reason, o.Route = c.Memory(), c.Outcome(), c.Reason(), c.Route()
	o.NeedsBlock, o.SubAllocation, o.Alternative = c.NeedsBlock(), c.SubAllocation(), c.Arm()
	var b *Block
	if o.Block != 0 {
		b = h.giveBlockToObject(p, o)
		o.at = b.Place
	}
	p.objects.Put(o.ID, place)
	p.Live++
	h.Live++
	h.changeGaugesByObject(p, o, 1)
	for _, x := range h.observers {
		x.ObjectAllocated(p, o, b)
	}
}

// giveBlockToObject gives a block to an object: out of the pool for a hit, or new. If another object still has the block, its
// release is on the way and its memory is over now.
func (h *Heap) giveBlockToObject(p *Process, o *Object) *Block {
	var b *Block
	if place := p.blocks.PlaceOf(o.Block); place >= 0 {
		b = h.blocks.At(place)
		h.endBlockUse(p, b, Reused)
	} else {
		b = h.newBlock(p, o.Block)
	}
	b.clearBlock(p, o.Block, b.Place)
	b.Size, b.Owner, b.Tag, b.Thread = o.Granted, o.ID, o.Tag, o.Thread
	b.Scope, b.Access, b.Shape, b.Memory, b.SubAllocation = o.Scope, o.Access, o.Shape, o.Memory, o.SubAllocation
	h.changeSlabRoom(p, b, -1)
	return b
}

// newBlock adds a block.
func (h *Heap) newBlock(p *Process, id uint64) *Block {
	place, b := h.blocks.TakePlace()
	b.clearBlock(p, id, place)
	p.blocks.Put(id, place)
	return b
}

// clearBlock clears a block, except for its id and place.
func (b *Block) clearBlock(p *Process, id uint64, place int32) {
	*b = Block{}
	b.ID, b.Place, b.process = id, place, p.Number
}

// applySlab adds a block whose sub-allocations will serve requests.
func (h *Heap) applySlab(p *Process, thread uint32, s wire.SlabView) {
	if s.Status() != 0 {
		return
	}
	if b := p.Block(s.Block()); b != nil {
		h.Unknown++
		h.endMemoryOfBlockOwner(p, b)
		h.endBlock(p, b, Unknown)
	}
	b := h.newBlock(p, s.Block())
	b.Size, b.Thread, b.Scope, b.Access, b.State = s.Bytes(), thread, s.Scope(), s.Access(), Slab
	h.beginPoolStay(p, b, s.CarriedOver(), s.Time())
}

func (h *Heap) applyRelease(p *Process, r wire.ReleaseView) {
	o := p.Object(r.Object())
	if o == nil {
		h.Unknown++
		return
	}
	if r.References() > 0 {
		return
	}
	h.noteHoldOver(p, o, Released)
	if r.Outcome() == wire.OutcomePinned {
		return
	}
	b := p.blockOfObject(o)
	h.endObjectUse(p, o, Released)
	if b != nil {
		switch outcome := r.Outcome(); {
		case outcome == wire.OutcomeRefused:
			b.State = Refused
		case outcome == wire.OutcomeCooling && !b.Cooled:
			b.State = Cooling
			h.beginPoolStay(p, b, r.CarriedOver(), r.Time())
		case !b.SubAllocation && (outcome == wire.OutcomeCached || outcome == wire.OutcomeCooling):
			b.State = Cached
			h.beginPoolStay(p, b, r.CarriedOver(), r.Time())
		default:
			h.endBlock(p, b, Evicted)
		}
	}
	h.forgetObject(p, o)
}

func (h *Heap) applyCooled(p *Process, c wire.CooledView) {
	b := p.Block(c.Block())
	switch {
	case b == nil:
		if !c.SubAllocation() { // a sub-allocation may have ended with its slab
			h.Unknown++
		}
	case b.State == InUse:
		b.Cooled = true
	case b.State == Cooling && b.SubAllocation:
		h.endBlock(p, b, Cooled)
	case b.State == Cooling:
		h.changeGaugesByBlock(p, b, -1)
		b.State = Cached
		h.changeGaugesByBlock(p, b, 1)
		for _, x := range h.observers {
			x.BlockCooled(p, b)
		}
	default: // it has cooled before
	}
}

// applyEvict ends a block. With the last slab of a class, its cooling sub-allocations end too: their end is not always recorded.
func (h *Heap) applyEvict(p *Process, id uint64) {
	b := p.Block(id)
	if b == nil {
		h.Unknown++
		return
	}
	slab, class := b.State == Slab, b.classKey()
	h.endBlock(p, b, Evicted)
	if !slab || p.slabs[class] > 0 {
		return
	}
	h.cooling = h.cooling[:0]
	p.blocks.EachKey(func(id uint64, place int32) {
		if b := h.blocks.At(place); b.SubAllocation && b.State == Cooling && b.classKey() == class {
			h.cooling = append(h.cooling, id)
		}
	})
	slices.Sort(h.cooling)
	for _, id := range h.cooling {
		h.endBlock(p, p.Block(id), Evicted)
	}
}
