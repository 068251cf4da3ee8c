package life

import (
	"cmp"
	"maps"
	"slices"

	"codeberg.org/gpumemtop/gpumemtop/internal/wire"
)

// Fold follows the objects of a run. One goroutine uses it. A record costs O(1), and memory grows with live objects and
// blocks, not with records.
type Fold struct {
	// Now is the time of the latest record, but for those that come late by their nature; it never goes back.
	Now uint64

	watcher   Watcher
	gone      func(*Process, *Block)
	processes map[uint32]*Process
	latest    *Process // of the last record
	serial    uint64   // of the last stay in the pool
	objects   []*Object
	blocks    []*Block // to be used again
}

// New returns a fold that has seen nothing. watcher may be nil.
func New(watcher Watcher) *Fold {
	if watcher == nil {
		watcher = nobody{}
	}
	f := &Fold{watcher: watcher, gone: func(*Process, *Block) {}, processes: map[uint32]*Process{}}
	if w, ok := watcher.(BlockWatcher); ok {
		f.gone = w.Gone
	}
	return f
}

type nobody struct{}

func (nobody) Begin(*Process, *Object)      {}
func (nobody) End(*Process, *Object, How)   {}
func (nobody) Pool(*Process, *Block)        {}
func (nobody) Unpool(*Process, *Block, How) {}

// Process returns the process with a number, which it makes on first mention.
func (f *Fold) Process(number uint32) *Process {
	if f.latest != nil && f.latest.Number == number {
		return f.latest
	}
	p := f.processes[number]
	if p == nil {
		p = &Process{
			Number: number, objects: map[uint64]*Object{}, blocks: map[uint64]*Block{}, carved: map[uint32]int{},
		}
		f.processes[number] = p
	}
	f.latest = p
	return p
}

// Processes returns all processes by their numbers.
func (f *Fold) Processes() []*Process {
	return slices.SortedFunc(maps.Values(f.processes), func(a, b *Process) int { return cmp.Compare(a.Number, b.Number) })
}

// Step takes one record and returns its process; nil for what concerns all of them. It takes anything: what makes no
// sense is ignored.
func (f *Fold) Step(r *wire.Record) *Process {
	if !r.Kind.Late() {
		f.Now = max(f.Now, r.Time)
	}
	if r.Kind == wire.KindLost {
		return nil
	}
	p := f.Process(r.Process)
	switch r.Kind {
	case wire.KindCreate:
		f.create(p, r)
	case wire.KindRelease:
		f.release(p, &r.Event)
	case wire.KindUse:
		if o := p.objects[r.Object]; o != nil {
			o.Used = max(o.Used, r.Time) // that of a blocking command comes behind what happened meanwhile
		}
	case wire.KindCooled:
		f.cool(p, &r.Event)
	case wire.KindEvict:
		f.evict(p, r.Link)
	case wire.KindSlab:
		f.slab(p, r)
	default: // concerns no memory
	}
	return p
}

// End ends what is open in a process, at Now: objects one way, blocks in the pool as Open.
func (f *Fold) End(p *Process, how How) {
	for _, o := range p.Objects() {
		f.end(p, o, how)
		p.drop(f, o)
	}
	for _, b := range p.Blocks() {
		f.forget(p, b.Number, Open)
	}
}

func (f *Fold) create(p *Process, r *wire.Record) {
	e := &r.Event
	if e.Outcome == wire.OutcomeFailed {
		return
	}
	if e.Flags&wire.FlagCarried == 0 {
		switch e.Outcome {
		case wire.OutcomeHit:
			p.Hits++
		case wire.OutcomeMiss:
			p.Misses++
		default: // never eligible for the pool
		}
	}
	if old := p.objects[e.Object]; old != nil {
		f.letGo(p, old, Unknown) // its release was lost
	}
	o := f.take(r)
	if pooled(e) && e.Link != 0 {
		o.Block = e.Link
		f.acquire(p, o)
	} else {
		o.Parent = e.Link
	}
	p.objects[e.Object] = o
	p.hold(o, 1)
	f.watcher.Begin(p, o)
}

// take makes an object.
func (f *Fold) take(r *wire.Record) *Object {
	var o *Object
	if n := len(f.objects); n > 0 {
		o, f.objects = f.objects[n-1], f.objects[:n-1]
	} else {
		o = new(Object)
	}
	*o = Object{
		Number: r.Object, Kind: wire.Memory(r.Op), Outcome: r.Outcome, Reason: r.Reason, Flags: r.Flags,
		Owns: HasMemory(&r.Event), Scope: r.Scope, Access: r.Access, Tag: r.Tag, Thread: r.Thread,
		Duration: r.Duration, Cost: r.Cost, Size: r.Size, Granted: r.Served(), Started: r.Time,
	}
	return o
}

// since is when something came to be: a record that is carried over says when that was.
func (f *Fold) since(e *wire.Event) uint64 {
	if e.Flags&wire.FlagCarried != 0 {
		return e.Time
	}
	return f.Now
}

// drop forgets an object.
func (p *Process) drop(f *Fold, o *Object) {
	delete(p.objects, o.Number)
	f.objects = append(f.objects, o)
}

// hold adds an object's memory to the gauges, or takes it off.
func (p *Process) hold(o *Object, sign int64) {
	if o.Owns {
		p.InUse += sign * int64(o.Granted)
		p.Requested += sign * int64(o.Size)
	}
}

// end tells that an object's memory is the application's no more.
func (f *Fold) end(p *Process, o *Object, how How) {
	if o.ended {
		return
	}
	o.ended = true
	p.hold(o, -1)
	f.watcher.End(p, o, how)
}

// acquire gives a block to an object: out of the pool for a hit, or new. A block that another object still has means
// that the release of that one is late.
func (f *Fold) acquire(p *Process, o *Object) {
	b := p.blocks[o.Block]
	if b == nil {
		b = f.block(p, o.Block)
	} else if b.State != InUse {
		f.unpool(p, b, Hit)
	} else if last := p.objects[b.Owner]; last != nil && last.Owns && last.Block == o.Block {
		f.end(p, last, Released)
		last.Owns = false
	}
	p.rejoin(b)
	*b = Block{
		Number: o.Block, Tag: o.Tag, Size: o.Granted, Owner: o.Number, Thread: o.Thread, Scope: o.Scope,
		Access: o.Access, Part: o.Flags&wire.FlagPart != 0,
	}
	if b.Part {
		p.Room -= int64(b.Size)
	}
}

// block makes a block.
func (f *Fold) block(p *Process, number uint64) *Block {
	var b *Block
	if n := len(f.blocks); n > 0 {
		b, f.blocks = f.blocks[n-1], f.blocks[:n-1]
	} else {
		b = new(Block)
	}
	*b = Block{Number: number}
	p.blocks[number] = b
	return b
}

// give forgets a block.
func (f *Fold) give(p *Process, b *Block) {
	f.gone(p, b)
	delete(p.blocks, b.Number)
	f.blocks = append(f.blocks, b)
}

// slab takes a block whose parts will serve requests.
func (f *Fold) slab(p *Process, r *wire.Record) {
	if r.Status != 0 {
		return
	}
	f.forget(p, r.Link, Unknown)
	b := f.block(p, r.Link)
	b.Size, b.Thread, b.Scope, b.Access, b.State = r.Granted, r.Thread, r.Scope, r.Access, Slab
	p.carved[b.class()]++
	f.pool(p, b, &r.Event)
}

func (f *Fold) release(p *Process, e *wire.Event) {
	o := p.objects[e.Object]
	if o == nil || e.Granted > 0 {
		return
	}
	o.Released = true
	if e.Outcome == wire.OutcomePinned {
		return
	}
	b := p.held(o)
	f.end(p, o, Released)
	number := o.Block
	p.drop(f, o)
	if b == nil {
		return
	}
	switch {
	case e.Outcome == wire.OutcomeRefused: // its EVICT follows
		b.Owner = 0
	case e.Outcome == wire.OutcomeCooling && !b.Cooled:
		b.State = Cooling
		f.pool(p, b, e)
	case !b.Part && (e.Outcome == wire.OutcomeCached || e.Outcome == wire.OutcomeCooling):
		b.State = Cached
		f.pool(p, b, e)
	default:
		f.forget(p, number, Evicted)
	}
}

// held returns the block that an object has, nil when it is not known any more or somebody else's.
func (p *Process) held(o *Object) *Block {
	b := p.blocks[o.Block]
	if !o.Owns || o.Block == 0 || b == nil || b.State != InUse || b.Owner != o.Number {
		return nil
	}
	return b
}

// letGo ends an object without a word from the target.
func (f *Fold) letGo(p *Process, o *Object, how How) {
	b := p.held(o)
	f.end(p, o, how)
	if b != nil {
		f.forget(p, o.Block, how)
	}
	p.drop(f, o)
}

// evict ends a block. With the last slab of a class go its cooling parts: of some it is never known that they have
// cooled.
func (f *Fold) evict(p *Process, number uint64) {
	b := p.blocks[number]
	if b == nil {
		return
	}
	slab, class := b.State == Slab, b.class()
	f.forget(p, number, Evicted)
	if !slab || p.carved[class] > 0 {
		return
	}
	for _, part := range p.Blocks() {
		if part.Part && part.State == Cooling && part.class() == class {
			f.forget(p, part.Number, Evicted)
		}
	}
}

func (f *Fold) cool(p *Process, e *wire.Event) {
	b := p.blocks[e.Link]
	switch {
	case b == nil:
	case b.State == InUse:
		b.Cooled = true
	case b.State == Cooling && b.Part:
		f.forget(p, e.Link, Cooled)
	case b.State == Cooling:
		p.count(b, -1)
		b.State = Cached
		p.count(b, 1)
	default: // it has cooled before
	}
}

// count adds a free block or a slab to the gauges, or takes it off.
func (p *Process) count(b *Block, sign int64) {
	switch b.State {
	case Slab:
		p.Room += sign * int64(b.Size)
	case Cached:
		p.Cached += sign * int64(b.Size)
	case Cooling:
		p.Cooling += sign * int64(b.Size)
	case InUse: // its object counts
	}
}

// rejoin gives the bytes of a part back to its slab.
func (p *Process) rejoin(b *Block) {
	if b.Part {
		b.Part = false
		p.Room += int64(b.Size)
	}
}

func (f *Fold) pool(p *Process, b *Block, e *wire.Event) {
	f.serial++
	b.Freed, b.Serial, b.Shown = f.since(e), f.serial, false
	p.count(b, 1)
	f.watcher.Pool(p, b)
}

func (f *Fold) unpool(p *Process, b *Block, how How) {
	p.count(b, -1)
	f.watcher.Unpool(p, b, how)
	if b.State == Slab {
		p.carved[b.class()]--
	}
	b.State = InUse
}

// forget ends a block.
func (f *Fold) forget(p *Process, number uint64, how How) {
	b := p.blocks[number]
	if b == nil {
		return
	}
	if b.State != InUse {
		f.unpool(p, b, how)
	}
	p.rejoin(b)
	f.give(p, b)
}
