package export

import (
	"cmp"
	"io"
	"maps"
	"slices"

	"codeberg.org/gpumemtop/gpumemtop/internal/callsite"
	"codeberg.org/gpumemtop/gpumemtop/internal/heap"
	"codeberg.org/gpumemtop/gpumemtop/internal/stats"
	"codeberg.org/gpumemtop/gpumemtop/internal/wire"
)

// trace follows a run and has an encoder write its events.
type trace struct {
	heap.Base
	out       encoder
	style     style
	opts      *TraceOptions
	seen      *survey
	home      *place // of events that belong to no process
	report    TraceReport
	every     uint64 // ns between values of a counter
	heap      *heap.Heap
	processes map[uint32]*running
	latest    *running // of the last record
	pending   pending
	pools     pools
	whole     bool // the source ends where the run did
	live      bool // names are written when they come
}

// running is the state of a process after the records so far.
type running struct {
	*surveyed
	life     *heap.Process
	home     *place // of events that belong to no thread
	pool     *place
	lanes    map[uint32]*lane
	lane     *lane // of the thread of the last call
	kernels  callsite.Kernels
	mistakes map[stats.FindingKey[*tag]]struct{}
	flows    map[uint64]struct{} // objects with an arrow that has begun; only with flows
	early    map[uint64]*tag     // of objects that show under an earlier name of their tag
	last     uint64              // time of its last record
	counters counters
	timed    uint64               // transfers that a device measured
	machine  map[figureKey]uint64 // the machine's latest figures, bytes
}

// pending is a carried-over object until it is known whether it only stands for a block in the pool.
type pending struct {
	process *running
	object  uint64
}

// counterLines is the number of lines that one set of counters takes.
const counterLines = 5

func newTrace(w io.Writer, seen *survey, opts *TraceOptions, report TraceReport, style style) *trace {
	x := &trace{
		out: style.newEncoder(w), style: style, opts: opts, seen: seen, report: report, every: uint64(opts.CountersEvery),
		processes: map[uint32]*running{}, whole: true,
	}
	x.heap = heap.New(heap.Options{}, x)
	if opts.MaxEvents > 0 && seen.last > seen.begin {
		// At most a quarter of the lines for the counters of all processes.
		each := opts.MaxEvents / (4 * counterLines * uint64(max(len(seen.processes), 1)))
		x.every = max(x.every, (seen.last-seen.begin)/max(each, 1))
	}
	x.chooseTagsByOptions()
	if style == packed {
		x.chooseCountedSites()
	}
	return x
}

// timeSinceStart makes a time relative to the start.
func (x *trace) timeSinceStart(ns uint64) uint64 { return max(ns, x.seen.begin) - x.seen.base }

func (x *trace) processNumbered(number uint32) *running {
	if x.latest != nil && x.latest.number == number {
		return x.latest
	}
	p := x.processes[number]
	if p == nil {
		seen := x.seen.processNumbered(number)
		if seen.pid == 0 { // a live trace does not know its processes in advance
			seen.pid = firstFreePID + uint64(number)
			x.nameProcess(seen)
		}
		p = &running{
			surveyed: seen, life: x.heap.Process(number), home: placeOfProcess(seen.pid), pool: &place{pid: seen.pid, kind: inPool},
			lanes: map[uint32]*lane{}, mistakes: map[stats.FindingKey[*tag]]struct{}{},
			flows: map[uint64]struct{}{}, early: map[uint64]*tag{},
		}
		x.processes[number] = p
	}
	x.latest = p
	return p
}

func (x *trace) takeRecord(r *wire.Record) {
	if x.pending.process != nil {
		x.showCarriedObject(r)
	}
	if r.Kind == wire.KindLost {
		x.heap.Apply(r)
		x.writeRunMark(r)
		return
	}
	p := x.processNumbered(r.Process)
	p.last = max(p.last, r.Time)
	if r.Kind == wire.KindMachine {
		x.writeMachineFigure(p, r.AsMachine())
		return
	}
	if !r.CarriedOver() {
		// The values until now are those when the counters were due.
		x.writeDueCounters(p, max(x.heap.Now(), r.Time))
		x.showCall(p, r)
	}
	if x.style.isLean() && r.Kind == wire.KindRelease && p.life.InUse > p.counters.most {
		x.writeCounters(p, x.heap.Now()) // also shows a peak between two due times
	}
	before := p.life.Gauges
	hits := p.life.Hits + p.life.Misses
	x.heap.Apply(r)
	switch r.Kind {
	case wire.KindGauge:
		p.counters.room = r.AsGauge().Largest()
	case wire.KindUse:
		p.counters.countHostTransfer(r.AsUse())
	case wire.KindObject:
		p.counters.noteHeldCounts(r.AsObject())
	case wire.KindSpill:
		p.counters.noteSpillReport(r.AsSpill())
	default:
	}
	p.counters.changed = p.counters.changed || before != p.life.Gauges || hits != p.life.Hits+p.life.Misses
	x.writeCountersAfterRecord(p, r.CarriedOver())
}

// showCall shows a record itself, without its effects on objects and blocks.
func (x *trace) showCall(p *running, r *wire.Record) {
	switch r.Kind {
	case wire.KindCreate:
		x.showCreate(p, r)
	case wire.KindRelease:
		x.showRelease(p, r)
	case wire.KindSync:
		x.showSync(p, r)
	case wire.KindTransfer:
		x.showDeviceTime(p, r)
	case wire.KindKernel:
		p.kernels.AddKernel(r.AsKernel().Kernel(), r.Payload)
	case wire.KindDiag:
		if r.AsDiag().Diag().IsFinding() {
			x.writeFirstMistake(p, r)
			return
		}
		if r.AsDiag().Diag() == wire.DiagCallFailed {
			x.writeFailedCall(p, r)
			return
		}
		if r.AsDiag().Diag() != wire.DiagPlace {
			x.writeRunMark(r)
		}
	case wire.KindLimit:
		x.writeRunMark(r)
	case wire.KindExit:
		x.writeKilledProcess(p, r)
	case wire.KindEvict, wire.KindSlab:
		if x.style == packed {
			x.showPoolEvent(p, r)
		}
	default:
	}
}

// showCarriedObject shows the object that was carried over last, unless its end follows: then it stood for a block in the pool. r is
// the record that follows, nil at the end.
func (x *trace) showCarriedObject(r *wire.Record) {
	p, number := x.pending.process, x.pending.object
	x.pending = pending{}
	if r != nil && r.Kind == wire.KindRelease && r.CarriedOver() && r.Process == p.number && r.AsRelease().Object() == number {
		return
	}
	if o := p.life.Object(number); o != nil {
		x.beginLifetime(p, o)
	}
}

// ObjectAllocated implements heap.Observer.
func (x *trace) ObjectAllocated(process *heap.Process, o *heap.Object, _ *heap.Block) {
	p := x.processNumbered(process.Number)
	if o.Owns && x.style == packed {
		p.tag(o.Tag).addInUse(int64(o.Granted))
	}
	if o.CarriedOver {
		x.pending = pending{p, o.ID}
		return
	}
	x.beginLifetime(p, o)
}

func (x *trace) beginLifetime(p *running, o *heap.Object) {
	t := p.tag(o.Tag)
	if o.Shown = x.shouldBeginLifetime(t, o.Granted, &t.alive); !o.Shown {
		return
	}
	if t.guessed {
		p.early[o.ID] = t
	}
	x.beginObjectLifetime(p, o, t)
}

// MemoryFreed implements heap.Observer.
func (x *trace) MemoryFreed(process *heap.Process, o *heap.Object, how heap.How) {
	if how == heap.Leaked {
		x.report.Leaks++
	}
	p := x.processNumbered(process.Number)
	if o.Owns && x.style == packed {
		p.tag(o.Tag).addInUse(-int64(o.Granted))
	}
	delete(p.flows, o.ID)
	if !o.Shown {
		return
	}
	t := p.early[o.ID]
	if t == nil {
		t = p.tag(o.Tag)
	} else {
		delete(p.early, o.ID)
	}
	t.alive--
	x.endObjectLifetime(p, o, t, how)
}

// BlockPooled implements heap.Observer.
func (x *trace) BlockPooled(process *heap.Process, b *heap.Block) {
	p := x.processNumbered(process.Number)
	if b.State == heap.Cached {
		p.counters.free.Add(b.Size)
	}
	if b.Shown = false; x.style.isLean() {
		return
	}
	t, group := x.tagAndPoolOfBlock(p, b)
	if b.Shown = x.shouldBeginLifetime(t, b.Size, &group.alive); b.Shown {
		x.beginBlockLifetime(p, b, t, group)
	}
}

// BlockCooled implements heap.Observer.
func (x *trace) BlockCooled(process *heap.Process, b *heap.Block) {
	x.processNumbered(process.Number).counters.free.Add(b.Size)
}

// BlockUnpooled implements heap.Observer.
func (x *trace) BlockUnpooled(process *heap.Process, b *heap.Block, how heap.How) {
	p := x.processNumbered(process.Number)
	if b.State == heap.Cached {
		p.counters.free.Remove(b.Size)
	}
	if !b.Shown {
		return
	}
	_, group := x.tagAndPoolOfBlock(p, b)
	group.alive--
	x.endBlockLifetime(p, b, group, how)
}

// sortedProcesses returns the processes by number, so that the same run always gives the same file.
func (x *trace) sortedProcesses() []*running {
	return slices.SortedFunc(maps.Values(x.processes), func(a, b *running) int { return cmp.Compare(a.number, b.number) })
}

// endLifetimes ends open lifetimes at the last record of each process. They are leaks, unless the process goes on
// after the source's end. Counters keep their last value, which includes leaks.
func (x *trace) endLifetimes() {
	if x.pending.process != nil {
		x.showCarriedObject(nil)
	}
	for _, p := range x.sortedProcesses() {
		x.writeCounters(p, p.last)
		x.heap.EndObjectsAt(p.life, p.life.HowMemoryEnds(!x.whole), p.last)
	}
}
