package stats

import (
	"cmp"
	"fmt"
	"math/rand/v2"
	"slices"
	"sync/atomic"

	"codeberg.org/gpumemtop/gpumemtop/internal/callsite"
	"codeberg.org/gpumemtop/gpumemtop/internal/heap"
	"codeberg.org/gpumemtop/gpumemtop/internal/heap/table"
	"codeberg.org/gpumemtop/gpumemtop/internal/wire"
)

// Options are what a model knows before the first event.
type Options struct {
	Program   string            // of the session; empty: that of the first process
	Arguments []string          // of Program
	Labels    map[string]string // that the user chose; not written to
	Policy    string            // name of the allocator policy
	Auto      bool              // the session switched to others by itself; see SetAuto
	Limits    []Limit           // with their values at the start; others are not followed
	// LimitsOf returns the limits of a policy that the program switches to, with their defaults; nil: no limits are shown.
	LimitsOf func(policy string) []Limit
	Started  uint64 // ns, CLOCK_MONOTONIC; 0: the time of the first event
	// TransfersOnly: of all uses, only those by commands that move memory come, so that it is not known what is in use.
	TransfersOnly bool
	// NoTrends: Tag.Trend stays empty, which saves up to 1 KB for each call site.
	NoTrends bool
	// Observers see each change in the heap, after the model.
	Observers []heap.Observer
}

// Model counts what the records of a run say. One goroutine at a time may call its methods; any may call Published.
//
// Apply costs O(1) per event, or O(log n) in the number of distinct cached block sizes, and allocates nothing once the
// model has held as many objects, blocks, sizes and tags as it ever will. Memory is bounded by the
// largest number of live objects and cached blocks so far, the tags, and the processes.
type Model struct {
	options   Options
	published atomic.Pointer[Snapshot]

	heap    *heap.Heap
	release release // the present record, if it is one
	begun   bool
	turning uint64 // when the present slot ends
	second  uint64 // since the start

	books              // of all processes
	opened    bool     // some process has had books
	sharer    *process // the one that has these
	minute    minute
	since     since
	touches   touches
	transfers transfers

	seed      uint64
	processes []*process // by their places in the heap
	folded    Process    // all those that made room
	unified   bool       // one of these had a device whose memory is the host's

	objects []objectNote // by their places in the heap
	blocks  []blockNote  // by their places in the heap
	classes table.Arena[class]

	shares   shares
	kernels  kernelShares
	holdings holdings
	quiet    bool // the present record was carried over: peaks wait
	carried  carried

	spent    workings // of processes that have left
	wholes   []*whole
	parts    int // of all wholes
	named    map[string]*whole
	untagged *whole
	journal  journal

	machine     machine
	spill       spill
	marks       marks
	misses      misses
	findings    findings
	postMortems []*postMortem
	limits      limits
	policies    policies
	recording   Recording
	ghosts      func() *Ghosts  // nil: there are none
	heapMap     func() *HeapMap // nil: there is none
	auto        func() *Auto    // nil: see Options.Auto
	chosen      choice
	awaited     awaited
	shownDevice Device
	unpooled    Unpooled

	events, lost, lostUses uint64
	exceeded               bool   // partsMax was
	spillFailed            string // see Snapshot.SpillFailed
	wholeBlocks            string // see Snapshot.WholeBlocks
	hosted                 Part   // see Snapshot.Hosted
}

// New returns a model that has seen nothing yet.
func New(o Options) *Model {
	o.Arguments = slices.Clone(o.Arguments)
	m := &Model{
		options:  o,
		seed:     rand.Uint64(),
		named:    map[string]*whole{},
		limits:   newLimits(o.Limits),
		policies: policies{first: o.Policy},
	}
	observers := append([]heap.Observer{observer{m}}, o.Observers...)
	m.heap = heap.New(heap.Options{EndProcesses: true, ProcessesMax: processesMax, LeftMax: leftMax, EntriesMax: entriesMax}, observers...)
	m.ledger.Gauges, m.ledger.Population, m.ledger.workings = &m.heap.Gauges, &m.heap.Population, &workings{}
	m.shares = newShares(m.seed)
	m.untagged = m.newWhole(0)
	m.untagged.name = callsite.Untagged
	m.named[m.untagged.name] = m.untagged
	if o.Started != 0 {
		m.begin(o.Started)
	}
	return m
}

// Heap returns what the records so far imply. Only the model may change it.
func (m *Model) Heap() *heap.Heap { return m.heap }

// Apply takes one record. It takes anything: what makes no sense is counted in Snapshot.Unknown or ignored. The record and
// its payload may be reused afterwards.
func (m *Model) Apply(r *wire.Record) {
	carriedOver := r.CarriedOver()
	if !carriedOver && m.quiet {
		m.carriedAll()
	}
	if !r.Kind.Late() {
		m.advance(r.Time)
	}
	m.events++
	if r.Kind == wire.KindLost {
		m.window.current().Events++
		m.lose(r.Process, r.AsLost())
		return
	}
	p := m.process(r.Process)
	if p == nil {
		m.heap.Unknown++
		return
	}
	p.changed = true
	if r.Kind == wire.KindMachine {
		m.report(p, r.AsMachine())
		return
	}
	if carriedOver {
		m.carryOver(p)
	} else {
		for _, b := range p.books {
			b.window.current().Events++
		}
	}
	switch r.Kind {
	case wire.KindCreate:
		if c := r.AsCreate(); c.Outcome() == wire.OutcomeFailed && !carriedOver {
			for _, b := range p.books {
				b.ledger.failed(int32(c.Status()), c.Duration())
			}
			m.createFailed(p, c)
		}
	case wire.KindTransfer:
		m.transfers.sides.Note(r)
		m.profiled(p, r.AsTransfer())
		return
	case wire.KindUse:
		m.transfer(p, r)
		if !m.options.TransfersOnly {
			m.touches.use(p.heap, r.AsUse())
			m.useByKernel(p, r.AsUse())
			for _, b := range p.books {
				b.ledger.counters.Uses++
			}
		}
	case wire.KindSync:
		for _, b := range p.books {
			b.ledger.counters.Syncs++
		}
	case wire.KindEvict:
		p.drain(r.AsEvict())
		m.countEviction(p, r.AsEvict())
	case wire.KindSlab:
		m.countSlab(p, r.Thread, r.AsSlab())
	case wire.KindGauge:
		p.reported = rangesOf(r.AsGauge())
	case wire.KindRelease:
		m.release = releaseOf(r.AsRelease())
		m.heap.Apply(r)
		m.release = release{}
		return
	case wire.KindObject:
		m.object(p, r.AsObject())
	case wire.KindRetain, wire.KindCooled: // the heap knows what they mean
	case wire.KindSpill:
		m.spilled(p, r.AsSpill())
		return
	default:
		m.rare(p, r)
	}
	m.heap.Apply(r)
}

// countEviction counts a block that goes back to the driver. A sub-allocation goes back into its slab: the driver gets
// nothing.
func (m *Model) countEviction(p *process, e wire.EvictView) {
	if b := p.heap.Block(e.Block()); e.SubAllocation() || b != nil && b.SubAllocation {
		return
	}
	for _, b := range p.books {
		b.ledger.evicted(e)
		b.spend(e.Cost())
	}
}

// rare handles the kinds that come a few times per run.
func (m *Model) rare(p *process, r *wire.Record) {
	switch r.Kind {
	case wire.KindProcess:
		m.introduce(p, r)
	case wire.KindTag:
		m.tag(p, r)
	case wire.KindSite:
		m.site(p, r)
	case wire.KindDevice:
		m.device(p, r)
	case wire.KindContext:
		m.context(p, r.AsContext())
	case wire.KindLimit:
		m.answer(p, r)
		if r.AsLimit().Status() == 0 && wire.PlanPiece(r.Payload) {
			return
		}
		m.marks.add(m.heap.Now(), r.Kind, callsite.Clean(r.Payload))
	case wire.KindKernel:
		p.kernels.Add(r.AsKernel().Kernel(), r.Payload)
	case wire.KindDiag:
		if r.AsDiag().Diag().Finding() {
			m.find(p, r)
			return
		}
		switch r.AsDiag().Diag() {
		case wire.DiagWholeBlocks:
			m.wholeBlocks = callsite.Clean(r.Payload)
		case wire.DiagSpill:
			m.spillFailed = cmp.Or(m.spillFailed, callsite.Clean(r.Payload))
		case wire.DiagOutOfMemory:
			m.commandFailed(p, r)
			return // to the heap it means nothing
		case wire.DiagHosted:
			if m.hosted.add(r.AsDiag().Bytes()); m.hosted.Buffers > 1 {
				return // the first gets a mark
			}
		}
		m.marks.add(m.heap.Now(), r.Kind, diagText(r))
		m.unpooled.note(r.AsDiag().Diag(), r.Payload)
	case wire.KindExit:
		m.exit(p, r)
	default: // threads, modules and queues show nowhere
	}
}

// lose handles LOST.
func (m *Model) lose(process uint32, l wire.LostView) {
	m.lost += l.Events()
	m.lostUses += l.Uses()
	m.marks.lose(m.heap.Now(), l.Events())
	if p := m.lookup(process); p != nil {
		p.lost += l.Events()
	}
}

// tag handles TAG: sizes and threads have their name at once, call sites when SITE comes.
func (m *Model) tag(p *process, r *wire.Record) {
	if name := callsite.TagName(r); name != "" {
		m.label(p, r.DefinedTag(), name, nil)
		return
	}
	m.journal.await(m.row(p, r.DefinedTag()).whole, m.quiet)
}

// site handles SITE.
func (m *Model) site(p *process, r *wire.Record) {
	name := callsite.TagName(r)
	if name == "" {
		return
	}
	m.label(p, r.DefinedTag(), name, r.Payload)
}

// End is how a process ended.
type End struct {
	Status         int    // exit status; -1: unknown
	Signal         int    // that ended it; 0: none
	OOMKillsNumber uint64 // 1 + the processes of its control group that the kernel ended for lack of memory meanwhile; 0: unknown
}

// ProcessEnded says that the session saw a process end at a time in ns. A process that made no OpenCL call is ignored.
func (m *Model) ProcessEnded(number uint32, end End, time uint64) {
	m.advance(time)
	p := m.lookup(number)
	if p == nil {
		return
	}
	known := p.ended
	if end.Signal != 0 {
		m.finish(p, Signaled, end.Signal, m.heap.Now())
	} else {
		m.finish(p, Exited, end.Status, m.heap.Now())
	}
	p.gone = true
	m.killed(p, end.OOMKillsNumber)
	if !known {
		m.marks.add(m.heap.Now(), wire.KindExit, exitText(&p.shown))
	}
	m.heap.ProcessEnded(number)
}

// LimitWanted says that a change of a limit was sent to the target under a sequence number, with the value as the
// target takes it. It stays pending until a LIMIT event answers that number or a later one.
func (m *Model) LimitWanted(name, value string, sequence uint64) {
	m.limits.want(name, value, sequence, m.heap.Now())
}

// PolicyWanted says that a change of the policy was sent to the target under a sequence number. It stays pending until a
// LIMIT event answers that number or a later one.
func (m *Model) PolicyWanted(name string, sequence uint64) {
	m.policies.want(name, sequence, m.heap.Now())
}

// SetRecording says what is being written, and how many bytes so far.
func (m *Model) SetRecording(path string, bytes uint64) {
	m.recording = Recording{Path: path, Bytes: bytes}
}

func (u *Unpooled) note(kind wire.Diag, why []byte) {
	if kind != wire.DiagTransparent && kind != wire.DiagPanic {
		return
	}
	if u.Times++; u.Times == 1 {
		u.Why = callsite.Clean(why)
	}
}

func diagText(r *wire.Record) string {
	word := r.AsDiag().Diag().String()
	if len(r.Payload) == 0 {
		return word
	}
	return word + ": " + callsite.Clean(r.Payload)
}

func exitText(p *Process) string {
	name := fmt.Sprintf("process %d", p.Number)
	if p.PID != 0 {
		name = fmt.Sprintf("%s (pid %d)", callsite.Base(p.Program), p.PID)
	}
	switch {
	case p.State == Signaled:
		return fmt.Sprintf("%s ended by signal %d", name, p.Status)
	case p.Status < 0:
		return name + " exits"
	}
	return fmt.Sprintf("%s exited with status %d", name, p.Status)
}
