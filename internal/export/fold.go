package export

import (
	"cmp"
	"io"
	"maps"
	"slices"

	"codeberg.org/gpumemtop/gpumemtop/internal/life"
	"codeberg.org/gpumemtop/gpumemtop/internal/model"
	"codeberg.org/gpumemtop/gpumemtop/internal/wire"
)

// chrome writes one trace. It is the watcher of a fold.
type chrome struct {
	out       lines
	opts      *ChromeOptions
	seen      *survey
	home      place // of what belongs to no process
	report    ChromeReport
	every     uint64 // ns between values of a counter
	fold      *life.Fold
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
	life     *life.Process
	home     place // of what belongs to no thread
	lanes    map[uint32]*lane
	lane     *lane // of the last call
	kernels  model.Kernels
	mistakes map[mistakeKey]struct{}
	flows    map[uint64]struct{} // objects with an arrow that has begun; only with flows
	early    map[uint64]*tag     // of objects that were shown under a name that is not their tag's any more
	last     uint64              // time of its last record
	exited   bool
	counters counters
}

// pending is an object that was carried over, before it is known whether it only tells of a block in the pool.
type pending struct {
	process *running
	object  uint64
}

// counterLines is how many lines one set of counters takes.
const counterLines = 3

func newChrome(w io.Writer, seen *survey, opts *ChromeOptions, report ChromeReport) *chrome {
	x := &chrome{
		out: lines{w: w}, opts: opts, seen: seen, report: report, every: uint64(opts.CountersEvery),
		processes: map[uint32]*running{}, whole: true,
	}
	x.fold = life.New(x)
	if opts.MaxEvents > 0 && seen.last > seen.begin {
		// At most a quarter of the lines for the counters of all processes.
		each := opts.MaxEvents / (4 * counterLines * uint64(max(len(seen.processes), 1)))
		x.every = max(x.every, (seen.last-seen.begin)/max(each, 1))
	}
	x.choose()
	return x
}

// at makes a time relative to the start.
func (x *chrome) at(ns uint64) uint64 { return max(ns, x.seen.begin) - x.seen.base }

func (x *chrome) process(number uint32) *running {
	if x.latest != nil && x.latest.number == number {
		return x.latest
	}
	p := x.processes[number]
	if p == nil {
		seen := x.seen.process(number)
		if seen.pid == 0 { // a live trace is not told of its processes before
			seen.pid = firstFreePID + uint64(number)
			x.nameProcess(seen)
		}
		p = &running{
			surveyed: seen, life: x.fold.Process(number), home: placeOf(seen.pid, seen.pid),
			lanes: map[uint32]*lane{}, mistakes: map[mistakeKey]struct{}{},
			flows: map[uint64]struct{}{}, early: map[uint64]*tag{},
		}
		x.processes[number] = p
	}
	x.latest = p
	return p
}

// step takes one record.
func (x *chrome) step(r *wire.Record) {
	if x.pending.process != nil {
		x.settle(r)
	}
	if r.Kind == wire.KindLost {
		x.fold.Step(r)
		x.mark(r)
		return
	}
	p := x.process(r.Process)
	p.last = max(p.last, r.Time)
	if !carried(&r.Event) {
		// What holds until now was true when the counters were due.
		x.countersBefore(p, max(x.fold.Now, r.Time))
		x.call(p, r)
	}
	before := p.life.Gauges
	hits := p.life.Hits + p.life.Misses
	x.fold.Step(r)
	switch r.Kind {
	case wire.KindCooled:
		p.counters.cooled(p.life.Block(r.Link), &before, &p.life.Gauges)
	case wire.KindGauge:
		p.counters.told = r.Size
	case wire.KindExit:
		p.exited = true
	default:
	}
	p.counters.changed = p.counters.changed || before != p.life.Gauges || hits != p.life.Hits+p.life.Misses
	x.countersAfter(p, carried(&r.Event))
}

// call draws what a record says by itself, without what follows for objects and blocks.
func (x *chrome) call(p *running, r *wire.Record) {
	switch r.Kind {
	case wire.KindCreate:
		x.createSlice(p, r)
	case wire.KindRelease:
		x.releaseSlice(p, r)
	case wire.KindSync:
		x.sync(p, r)
	case wire.KindKernel:
		p.kernels.Add(r.Object, r.Payload)
	case wire.KindDiag:
		if wire.Diag(r.Op).Finding() {
			x.mistake(p, r)
			return
		}
		x.mark(r)
	case wire.KindLimit:
		x.mark(r)
	default:
	}
}

// settle shows the object that was carried over last, unless its end follows: then a block in the pool was. r is the
// record that follows, nil at the end.
func (x *chrome) settle(r *wire.Record) {
	p, number := x.pending.process, x.pending.object
	x.pending = pending{}
	if r != nil && r.Kind == wire.KindRelease && carried(&r.Event) && r.Process == p.number && r.Object == number {
		return
	}
	if o := p.life.Object(number); o != nil {
		x.show(p, o)
	}
}

// Begin implements life.Watcher.
func (x *chrome) Begin(process *life.Process, o *life.Object) {
	p := x.process(process.Number)
	if o.Carried() {
		x.pending = pending{p, o.Number}
		return
	}
	x.show(p, o)
}

// show begins the lifetime of an object.
func (x *chrome) show(p *running, o *life.Object) {
	t := p.tag(o.Tag)
	if o.Shown = x.lifetime(t, o.Granted, &t.alive); !o.Shown {
		return
	}
	if t.guessed {
		p.early[o.Number] = t
	}
	x.showObject(p, o, t)
}

// End implements life.Watcher.
func (x *chrome) End(process *life.Process, o *life.Object, how life.How) {
	if how == life.Leaked {
		x.report.Leaks++
	}
	p := x.process(process.Number)
	delete(p.flows, o.Number)
	if !o.Shown {
		return
	}
	t := p.early[o.Number]
	if t == nil {
		t = p.tag(o.Tag)
	} else {
		delete(p.early, o.Number)
	}
	t.alive--
	x.hideObject(p, o, t, how)
}

// Pool implements life.Watcher.
func (x *chrome) Pool(process *life.Process, b *life.Block) {
	p := x.process(process.Number)
	if b.State == life.Cached {
		p.counters.free.Add(b.Size)
	}
	t, group := x.poolOf(p, b)
	if b.Shown = x.lifetime(t, b.Size, &group.alive); b.Shown {
		x.showBlock(p, b, t, group)
	}
}

// Unpool implements life.Watcher.
func (x *chrome) Unpool(process *life.Process, b *life.Block, how life.How) {
	p := x.process(process.Number)
	if b.State == life.Cached {
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
func (x *chrome) sortedProcesses() []*running {
	return slices.SortedFunc(maps.Values(x.processes), func(a, b *running) int { return cmp.Compare(a.number, b.number) })
}

// end closes what is open, at the last record of each process: what it still holds there is a leak, unless the source
// goes on behind its last record. Counters end with their last value, which keeps leaks in it.
func (x *chrome) end() {
	if x.pending.process != nil {
		x.settle(nil)
	}
	for _, p := range x.sortedProcesses() {
		how := life.Leaked
		if !x.whole && !p.exited {
			how = life.Cut
		}
		x.fold.Now = p.last
		x.writeCounters(p, p.last)
		x.fold.End(p.life, how)
	}
}
