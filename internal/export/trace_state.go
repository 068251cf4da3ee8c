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

// trace follows a run and tells an encoder what to write.
type trace struct {
	heap.Base
	out       encoder
	style     style
	opts      *TraceOptions
	seen      *survey
	home      *place // of what belongs to no process
	report    TraceReport
	every     uint64 // ns between values of a counter
	heap      *heap.Heap
	processes map[uint32]*running
	latest    *running // of the last record
	pending   pending
	pools     pools
	whole     bool // the source ends where the run did
	live      bool // names are written as they come
}

// running is one process as far as the records have come.
type running struct {
	*surveyed
	life     *heap.Process
	home     *place // of what belongs to no thread
	pool     *place
	lanes    map[uint32]*lane
	lane     *lane // of the last call
	kernels  callsite.Kernels
	mistakes map[stats.FindingKey[*tag]]struct{}
	flows    map[uint64]struct{} // objects with an arrow that has begun; only with flows
	early    map[uint64]*tag     // of objects that were shown under a name that their tag no longer has
	last     uint64              // time of its last record
	exited   bool
	counters counters
	timed    uint64               // transfers that a device measured
	machine  map[figureKey]uint64 // bytes that the machine reported last
}

// pending is a carried-over object until it is known whether it only stands for a block in the pool.
type pending struct {
	process *running
	object  uint64
}

// counterLines is how many lines one set of counters takes.
const counterLines = 5

func newTrace(w io.Writer, seen *survey, opts *TraceOptions, report TraceReport, style style) *trace {
	x := &trace{
		out: style.encoder(w), style: style, opts: opts, seen: seen, report: report, every: uint64(opts.CountersEvery),
		processes: map[uint32]*running{}, whole: true,
	}
	x.heap = heap.New(heap.Options{}, x)
	if opts.MaxEvents > 0 && seen.last > seen.begin {
		// At most a quarter of the lines for the counters of all processes.
		each := opts.MaxEvents / (4 * counterLines * uint64(max(len(seen.processes), 1)))
		x.every = max(x.every, (seen.last-seen.begin)/max(each, 1))
	}
	x.choose()
	if style == packed {
		x.count()
	}
	return x
}

// relativeTime makes a time relative to the start.
func (x *trace) relativeTime(ns uint64) uint64 { return max(ns, x.seen.begin) - x.seen.base }

func (x *trace) process(number uint32) *running {
	if x.latest != nil && x.latest.number == number {
		return x.latest
	}
	p := x.processes[number]
	if p == nil {
		seen := x.seen.process(number)
		if seen.pid == 0 { // a live trace does not know its processes in advance
			seen.pid = firstFreePID + uint64(number)
			x.nameProcess(seen)
		}
		p = &running{
			surveyed: seen, life: x.heap.Process(number), home: homeOf(seen.pid), pool: &place{pid: seen.pid, kind: inPool},
			lanes: map[uint32]*lane{}, mistakes: map[stats.FindingKey[*tag]]struct{}{},
			flows: map[uint64]struct{}{}, early: map[uint64]*tag{},
		}
		x.processes[number] = p
	}
	x.latest = p
	return p
}

// step takes one record.
func (x *trace) step(r *wire.Record) {
	if x.pending.process != nil {
		x.showCarried(r)
	}
	if r.Kind == wire.KindLost {
		x.heap.Apply(r)
		x.mark(r)
		return
	}
	p := x.process(r.Process)
	p.last = max(p.last, r.Time)
	if r.Kind == wire.KindMachine {
		x.machine(p, r.AsMachine())
		return
	}
	if !r.CarriedOver() {
		// What holds until now was true when the counters were due.
		x.countersBefore(p, max(x.heap.Now(), r.Time))
		x.call(p, r)
	}
	if x.style.lean() && r.Kind == wire.KindRelease && p.life.InUse > p.counters.most {
		x.writeCounters(p, x.heap.Now()) // a peak, between two values that are due
	}
	before := p.life.Gauges
	hits := p.life.Hits + p.life.Misses
	x.heap.Apply(r)
	switch r.Kind {
	case wire.KindGauge:
		p.counters.room = r.AsGauge().Largest()
	case wire.KindUse:
		p.counters.countMove(r.AsUse())
	case wire.KindObject:
		p.counters.countHeld(r.AsObject())
	case wire.KindSpill:
		p.counters.spilled(r.AsSpill())
	case wire.KindExit:
		p.exited = true
	default:
	}
	p.counters.changed = p.counters.changed || before != p.life.Gauges || hits != p.life.Hits+p.life.Misses
	x.countersAfter(p, r.CarriedOver())
}

// call draws what a record says by itself, without what follows for objects and blocks.
func (x *trace) call(p *running, r *wire.Record) {
	switch r.Kind {
	case wire.KindCreate:
		x.createSlice(p, r)
	case wire.KindRelease:
		x.releaseSlice(p, r)
	case wire.KindSync:
		x.sync(p, r)
	case wire.KindTransfer:
		x.profiled(p, r)
	case wire.KindKernel:
		p.kernels.Add(r.AsKernel().Kernel(), r.Payload)
	case wire.KindDiag:
		if r.AsDiag().Diag().Finding() {
			x.mistake(p, r)
			return
		}
		if r.AsDiag().Diag() == wire.DiagCallFailed {
			x.callFailed(p, r)
			return
		}
		if r.AsDiag().Diag() != wire.DiagPlace {
			x.mark(r)
		}
	case wire.KindLimit:
		x.mark(r)
	case wire.KindExit:
		x.killed(p, r)
	case wire.KindEvict, wire.KindSlab:
		if x.style == packed {
			x.poolMoment(p, r)
		}
	default:
	}
}

// showCarried shows the object that was carried over last, unless its end follows: then a block in the pool was. r is the
// record that follows, nil at the end.
func (x *trace) showCarried(r *wire.Record) {
	p, number := x.pending.process, x.pending.object
	x.pending = pending{}
	if r != nil && r.Kind == wire.KindRelease && r.CarriedOver() && r.Process == p.number && r.AsRelease().Object() == number {
		return
	}
	if o := p.life.Object(number); o != nil {
		x.show(p, o)
	}
}

// Allocated implements heap.Observer.
func (x *trace) Allocated(process *heap.Process, o *heap.Object, _ *heap.Block) {
	p := x.process(process.Number)
	if o.Owns && x.style == packed {
		p.tag(o.Tag).hold(int64(o.Granted))
	}
	if o.CarriedOver {
		x.pending = pending{p, o.ID}
		return
	}
	x.show(p, o)
}

// show begins the lifetime of an object.
func (x *trace) show(p *running, o *heap.Object) {
	t := p.tag(o.Tag)
	if o.Shown = x.lifetime(t, o.Granted, &t.alive); !o.Shown {
		return
	}
	if t.guessed {
		p.early[o.ID] = t
	}
	x.showObject(p, o, t)
}

// Freed implements heap.Observer.
func (x *trace) Freed(process *heap.Process, o *heap.Object, how heap.How) {
	if how == heap.Leaked {
		x.report.Leaks++
	}
	p := x.process(process.Number)
	if o.Owns && x.style == packed {
		p.tag(o.Tag).hold(-int64(o.Granted))
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
	x.hideObject(p, o, t, how)
}

// Pooled implements heap.Observer.
func (x *trace) Pooled(process *heap.Process, b *heap.Block) {
	p := x.process(process.Number)
	if b.State == heap.Cached {
		p.counters.free.Add(b.Size)
	}
	if b.Shown = false; x.style.lean() {
		return
	}
	t, group := x.poolOf(p, b)
	if b.Shown = x.lifetime(t, b.Size, &group.alive); b.Shown {
		x.showBlock(p, b, t, group)
	}
}

// Cooled implements heap.Observer.
func (x *trace) Cooled(process *heap.Process, b *heap.Block) {
	x.process(process.Number).counters.free.Add(b.Size)
}

// Unpooled implements heap.Observer.
func (x *trace) Unpooled(process *heap.Process, b *heap.Block, how heap.How) {
	p := x.process(process.Number)
	if b.State == heap.Cached {
		p.counters.free.Remove(b.Size)
	}
	if !b.Shown {
		return
	}
	_, group := x.poolOf(p, b)
	group.alive--
	x.hideBlock(p, b, group, how)
}

// sortedProcesses returns the processes by number, so that the same run always gives the same file.
func (x *trace) sortedProcesses() []*running {
	return slices.SortedFunc(maps.Values(x.processes), func(a, b *running) int { return cmp.Compare(a.number, b.number) })
}

// end closes what is open, at the last record of each process: what it still holds there is a leak, unless the source
// goes on behind its last record. Counters end with their last value, which keeps leaks in it.
func (x *trace) end() {
	if x.pending.process != nil {
		x.showCarried(nil)
	}
	for _, p := range x.sortedProcesses() {
		how := heap.Leaked
		if !x.whole && !p.exited {
			how = heap.Cut
		}
		x.writeCounters(p, p.last)
		x.heap.EndAt(p.life, how, p.last)
	}
}
