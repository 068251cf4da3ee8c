package export

import (
	"cmp"
	"io"
	"maps"
	"math"
	"slices"

	"codeberg.org/gpumemtop/gpumemtop/internal/model"
	"codeberg.org/gpumemtop/gpumemtop/internal/wire"
)

// chrome writes one trace while it folds the records, by the same rules as internal/model.
type chrome struct {
	out       lines
	opts      ChromeOptions
	seen      *survey
	home      place // of what belongs to no process: the first one
	report    ChromeReport
	since     uint64 // absolute, as all times here
	until     uint64
	now       uint64 // never goes back
	inside    bool   // since has come
	every     uint64 // ns between values of a counter
	serial    uint64 // of the last stay in the pool
	processes map[uint32]*running
	latest    *running // of the last record
}

// running is one process as far as the records have come.
type running struct {
	*surveyed
	gauges
	objects      map[uint64]*object
	blocks       map[uint64]*block
	carved       map[uint32]int // slabs by class
	lanes        map[uint32]*lane
	kernels      model.Kernels
	mistakes     map[mistakeKey]struct{}
	hits, misses uint64

	changed bool   // gauges or rate, since the last counters
	counted bool   // counters were written before
	due     uint64 // when the next may be written
}

// counterLines is how many lines one set of counters takes.
const counterLines = 2

func newChrome(w io.Writer, seen *survey, opts ChromeOptions, report ChromeReport) *chrome {
	x := &chrome{
		out: lines{w: w}, opts: opts, seen: seen, report: report,
		since: seen.base + opts.Since, until: math.MaxUint64,
		every: uint64(opts.CountersEvery), processes: map[uint32]*running{},
	}
	if opts.Until > 0 {
		x.until = seen.base + opts.Until
	}
	if opts.MaxEvents > 0 && seen.last > x.since {
		// At most a quarter of the lines for the counters of one process.
		length := min(seen.last, x.until) - x.since
		x.every = max(x.every, length/max(opts.MaxEvents/(4*counterLines), 1))
	}
	return x
}

// at makes a time relative to the start.
func (x *chrome) at(ns uint64) uint64 {
	if ns < x.seen.base {
		return 0
	}
	return ns - x.seen.base
}

func (x *chrome) process(number uint32) *running {
	if x.latest != nil && x.latest.number == number {
		return x.latest
	}
	p := x.processes[number]
	if p == nil {
		p = &running{
			surveyed: x.seen.process(number), objects: map[uint64]*object{}, blocks: map[uint64]*block{}, carved: map[uint32]int{},
			lanes: map[uint32]*lane{}, mistakes: map[mistakeKey]struct{}{},
		}
		x.processes[number] = p
	}
	x.latest = p
	return p
}

// step takes one record.
func (x *chrome) step(r *wire.Record) {
	x.now = max(x.now, r.Time)
	if !x.inside && x.now >= x.since {
		x.inside = true
		x.showAll()
	}
	if r.Kind == wire.KindLost {
		x.mark(r)
		return
	}
	p := x.process(r.Process)
	x.countersBefore(p)
	switch r.Kind {
	case wire.KindCreate:
		x.create(p, r)
	case wire.KindRelease:
		x.release(p, r)
	case wire.KindSync:
		x.sync(p, r)
	case wire.KindCooled:
		x.cool(p, &r.Event)
	case wire.KindEvict:
		x.evict(p, r.Link)
	case wire.KindSlab:
		x.slab(p, r)
	case wire.KindKernel:
		p.kernels.Add(r.Object, r.Payload)
		return
	case wire.KindDiag:
		if wire.Diag(r.Op).Finding() {
			x.mistake(p, r)
			return
		}
		x.mark(r)
	case wire.KindLimit:
		x.mark(r)
	default:
		return
	}
	x.countersAfter(p)
}

func (x *chrome) create(p *running, r *wire.Record) {
	e, name := &r.Event, p.tag(r.Tag)
	x.createSlice(p, r, name)
	if e.Outcome == wire.OutcomeFailed {
		return
	}
	if old := p.objects[e.Object]; old != nil {
		// A number that is used again: the release of the first was lost.
		x.letGo(p, old, e.Object, "unknown")
	}
	o := &object{
		tag: name, owns: hasMemory(e), size: e.Size, granted: grantedBytes(e), started: x.now, tid: p.thread(r.Thread),
	}
	if pooled(e) && e.Link != 0 {
		o.block = e.Link
		x.acquire(p, o, e)
	}
	switch e.Outcome {
	case wire.OutcomeHit:
		p.hits++
		p.changed = true
	case wire.OutcomeMiss:
		p.misses++
		p.changed = true
	}
	p.objects[e.Object] = o
	p.hold(o, 1)
	x.showObject(p, e.Object, o)
}

// hold adds an object's memory to the gauges, or takes it off.
func (p *running) hold(o *object, sign int64) {
	if o.owns {
		p.inUse += sign * int64(o.granted)
		p.changed = true
	}
}

// acquire gives a block to an object: out of the pool for a hit, or new. A block that another object still has means
// that the release of that one is late.
func (x *chrome) acquire(p *running, o *object, e *wire.Event) {
	b := p.blocks[o.block]
	if b == nil {
		b = &block{}
		p.blocks[o.block] = b
	} else if b.state != blockInUse {
		x.unpool(p, b, "hit")
	} else if last := p.objects[b.owner]; last != nil && last.owns && last.block == o.block {
		x.hideObject(p, b.owner, last, "")
		p.hold(last, -1)
		last.owns = false
	}
	p.rejoin(b)
	*b = block{tag: o.tag, size: o.granted, owner: e.Object, tid: o.tid, key: classKey(e), part: e.Flags&wire.FlagPart != 0}
	if b.part {
		p.room -= int64(b.size)
		p.changed = true
	}
}

// slab takes a block whose parts will serve requests.
func (x *chrome) slab(p *running, r *wire.Record) {
	if r.Status != 0 {
		return
	}
	x.forget(p, r.Link, "unknown")
	b := &block{tag: p.slabs(), size: r.Granted, tid: p.thread(r.Thread), key: classKey(&r.Event), state: blockSlab}
	p.carved[b.key]++
	p.blocks[r.Link] = b
	x.pool(p, b)
}

func (x *chrome) release(p *running, r *wire.Record) {
	o := p.objects[r.Object]
	x.releaseSlice(p, r, o)
	if o == nil || r.Granted > 0 || r.Outcome == wire.OutcomePinned {
		return
	}
	b := p.held(o, r.Object)
	x.hideObject(p, r.Object, o, "")
	p.hold(o, -1)
	delete(p.objects, r.Object)
	if b == nil {
		return
	}
	cools := r.Outcome == wire.OutcomeCooling && !b.cooled
	switch {
	case r.Outcome == wire.OutcomeRefused: // its EVICT follows
		b.owner = 0
	case cools:
		b.state = blockCooling
		x.pool(p, b)
	case !b.part && (r.Outcome == wire.OutcomeCached || r.Outcome == wire.OutcomeCooling):
		b.state = blockCached
		x.pool(p, b)
	default:
		x.forget(p, o.block, "")
	}
}

// letGo ends an object without a word from the target.
func (x *chrome) letGo(p *running, o *object, number uint64, how string) {
	x.hideObject(p, number, o, how)
	p.hold(o, -1)
	if p.held(o, number) != nil {
		x.forget(p, o.block, how)
	}
	delete(p.objects, number)
}

// evict ends a block. With the last slab of a class go its cooling parts: of some it is never known that they have
// cooled.
func (x *chrome) evict(p *running, number uint64) {
	b := p.blocks[number]
	slab := b != nil && b.state == blockSlab
	x.forget(p, number, "evicted")
	if !slab || p.carved[b.key] > 0 {
		return
	}
	for _, part := range slices.Sorted(maps.Keys(p.blocks)) {
		if c := p.blocks[part]; c.part && c.state == blockCooling && c.key == b.key {
			x.forget(p, part, "evicted")
		}
	}
}

// classKey tells the classes of one process apart.
func classKey(e *wire.Event) uint32 { return uint32(e.Scope)<<16 | uint32(e.Access) }

func (x *chrome) pool(p *running, b *block) {
	b.freed = x.now
	x.serial++
	b.serial = x.serial
	p.pool(b, 1)
	p.changed = true
	x.showBlock(p, b)
}

func (x *chrome) unpool(p *running, b *block, how string) {
	if b.state == blockSlab {
		p.carved[b.key]--
	}
	x.hideBlock(p, b, how)
	p.pool(b, -1)
	p.changed = true
	b.state = blockInUse
}

func (x *chrome) cool(p *running, e *wire.Event) {
	b := p.blocks[e.Link]
	switch {
	case b == nil:
	case b.state == blockInUse:
		b.cooled = true
	case b.state == blockCooling && b.part:
		x.forget(p, e.Link, "cooled")
	case b.state == blockCooling:
		p.pool(b, -1)
		b.state = blockCached
		p.pool(b, 1)
		p.changed = true
	}
}

// forget ends a block.
func (x *chrome) forget(p *running, number uint64, how string) {
	b := p.blocks[number]
	if b == nil {
		return
	}
	if b.state != blockInUse {
		x.unpool(p, b, how)
	}
	if b.part {
		p.rejoin(b)
		p.changed = true
	}
	delete(p.blocks, number)
}

// sortedProcesses returns the processes by number, so that the same run always gives the same file.
func (x *chrome) sortedProcesses() []*running {
	return slices.SortedFunc(maps.Values(x.processes), func(a, b *running) int { return cmp.Compare(a.number, b.number) })
}

// showAll shows what lives when the chosen time begins.
func (x *chrome) showAll() {
	for _, p := range x.sortedProcesses() {
		for _, number := range slices.Sorted(maps.Keys(p.objects)) {
			x.showObject(p, number, p.objects[number])
		}
		for _, number := range slices.Sorted(maps.Keys(p.blocks)) {
			if b := p.blocks[number]; b.state != blockInUse {
				x.showBlock(p, b)
			}
		}
		p.changed = true
	}
}

// end closes what is open, at the last record of each process: what it still holds there is a leak, unless the
// options cut the rest off. Counters end with their last value, which keeps leaks in it.
func (x *chrome) end() {
	for _, p := range x.sortedProcesses() {
		how, last := "leaked", min(p.last, x.until)
		if p.last > x.until {
			how = "cut"
		}
		x.now = max(last, x.since)
		if x.inside {
			x.counters(p, x.now)
		}
		for _, number := range slices.Sorted(maps.Keys(p.objects)) {
			if how == "leaked" {
				x.report.Leaks++
			}
			x.hideObject(p, number, p.objects[number], how)
		}
		for _, number := range slices.Sorted(maps.Keys(p.blocks)) {
			if b := p.blocks[number]; b.state != blockInUse {
				x.hideBlock(p, b, "end")
			}
		}
	}
}
