package replay

import (
	"fmt"

	"codeberg.org/gpumemtop/gpumemtop/allocator"
	"codeberg.org/gpumemtop/gpumemtop/internal/recording"
	"codeberg.org/gpumemtop/gpumemtop/internal/wire"
)

// Comparison says how far a replay decides as the recorded policy did: whether a request was a hit, why not, how large
// its block is and whether that is a part of a slab; and which blocks left the pool in which order, how large and why.
// Where the recording numbers decisions, the block itself is the same, too, and the order is that of each thread:
// threads note what the policy gave up when they have released it.
type Comparison struct {
	Requests, Same           uint64
	Evictions, SameEvictions uint64 // Evictions: the more of those recorded and those replayed
	Unreleased               uint64 // the last that a process gave up, which ended before it could release them: in neither
	First                    string // the first difference, in words; empty: there is none
}

// Exact reports whether all is the same.
func (c *Comparison) Exact() bool { return c.Requests == c.Same && c.Evictions == c.SameEvictions }

// Compare plays a recording under the policy, the limits and the capacity that were recorded, which the options name,
// and compares each decision with the one that was recorded. Errors are those of Replay.
func Compare(src recording.Source, o Options) (*Comparison, error) {
	o.AsRecorded = true
	s, err := newSingle(o)
	if err != nil {
		return nil, err
	}
	w := &comparer{
		single: s, decided: map[uint32]decision{}, wanted: map[uint32]wanted{}, evictions: map[uint32]*evictions{}, unpooled: map[unpooledBuffer]uint64{},
	}
	s.player().comparer = w
	if err := each(src, w.take); err != nil {
		return nil, err
	}
	if err := s.finish(); err != nil {
		return nil, err
	}
	w.finish()
	return &w.Comparison, nil
}

// comparer sees what a policy decides, and what was recorded.
type comparer struct {
	Comparison
	single    single
	decided   map[uint32]decision // by slot, until the recorded decision is read
	wanted    map[uint32]wanted   // the other way round
	evictions map[uint32]*evictions
	unpooled  map[unpooledBuffer]uint64 // bytes of buffers that no pool has
}

// decision is how a request was served.
type decision struct {
	hit    bool
	reason wire.Miss
	size   uint64
	part   bool
	block  uint64 // its id; 0: unknown
}

// wanted is what was recorded of a request.
type wanted struct {
	decision
	process      uint32
	object, time uint64
}

// unpooledBuffer names a buffer.
type unpooledBuffer struct {
	process uint32
	object  uint64
}

// served compares how a request was served, unless that is not read yet.
func (w *comparer) served(slot uint32, plan *allocator.Decision) {
	d := decision{plan.Hit, plan.Reason, plan.Size, plan.Slab != 0, uint64(plan.Block)}
	if want, known := w.wanted[slot]; known {
		delete(w.wanted, slot)
		w.compare(&want, d)
		return
	}
	w.decided[slot] = d
}

func (w *comparer) evicted(p *process, block allocator.Block, size uint64, reason wire.Evict) {
	e := w.of(p.number)
	if !e.numbered {
		block = 0
	}
	e.replayed = append(e.replayed, eviction{uint64(block), size, reason})
}

func (w *comparer) of(process uint32) *evictions {
	e := w.evictions[process]
	if e == nil {
		e = &evictions{process: process}
		w.evictions[process] = e
	}
	return e
}

// take compares what was recorded with what is decided.
func (w *comparer) take(record *wire.Record) error {
	o := w.single.resolver.from(record.Process) // before it may be gone
	if err := w.single.take(record); err != nil {
		return err
	}
	e := w.of(o.number)
	e.numbered = o.order.next != 0 && !o.order.unnumbered
	switch record.Kind {
	case wire.KindCreate:
		w.create(o, record)
	case wire.KindRelease: // of what a policy sees that does not pool
		release := record.AsRelease()
		key := unpooledBuffer{o.number, release.Object()}
		if size, there := w.unpooled[key]; there && release.References() == 0 && release.Outcome() == wire.OutcomeDriver {
			delete(w.unpooled, key)
			e.recorded = append(e.recorded, recordedEviction{eviction{0, size, wire.EvictPolicy}, record.Thread, record.Time})
		}
	case wire.KindExit:
		e.exited = true
	case wire.KindEvict:
		evict := record.AsEvict()
		block := evict.Block()
		if !e.numbered {
			block = 0
		}
		e.recorded = append(e.recorded, recordedEviction{eviction{block, evict.Bytes(), evict.Reason()}, record.Thread, record.Time})
	}
	return nil
}

// create compares how a request was served, unless that is still to come.
func (w *comparer) create(o *recordedProcess, record *wire.Record) {
	e := record.AsCreate()
	if !e.Pooled() {
		return
	}
	if e.Outcome() == wire.OutcomeMiss && e.Block() == 0 {
		w.unpooled[unpooledBuffer{o.number, e.Object()}] = e.Granted()
	}
	w.Requests++
	want := wanted{process: o.number, object: e.Object(), time: e.Time(), decision: decision{
		e.Outcome() == wire.OutcomeHit, e.Reason(), e.Granted(), e.SubAllocation(), e.Block(),
	}}
	if o.order.next == 0 || o.order.unnumbered {
		want.block = 0
	}
	slot := o.objects[e.Object()]
	if old, there := w.wanted[slot]; there {
		w.unserved(&old)
	}
	w.wanted[slot] = want
	if d, known := w.decided[slot]; known {
		delete(w.decided, slot)
		delete(w.wanted, slot)
		w.compare(&want, d)
	}
}

func (w *comparer) compare(want *wanted, d decision) {
	if want.block == 0 {
		d.block = 0
	}
	if d == want.decision {
		w.Same++
		return
	}
	w.differs(want.process, want.time, fmt.Sprintf("the request %d was %s; here it is %s", want.object, want.decision, d))
}

// unserved counts a request that no decision came for.
func (w *comparer) unserved(want *wanted) {
	w.differs(want.process, want.time, fmt.Sprintf("the request %d was %s; here it found no memory but its own", want.object, want.decision))
}

// finish counts the requests that were not served, and compares evictions.
func (w *comparer) finish() {
	for slot := range w.single.resolver.script.slots {
		if want, there := w.wanted[slot]; there {
			w.unserved(&want)
		}
	}
	for number := range w.single.resolver.script.facts.processes {
		if e := w.evictions[number]; e != nil {
			e.compare(w)
		}
	}
}

func (w *comparer) differs(process uint32, time uint64, text string) {
	if w.First == "" {
		w.First = fmt.Sprintf("process %d, at %d ns: %s", process+1, time, text)
	}
}

// String says how a request was served.
func (d decision) String() string {
	what := "a block"
	if d.part {
		what = "a part"
	}
	if d.block != 0 {
		what += fmt.Sprintf(" (%d)", d.block)
	}
	if d.hit {
		return fmt.Sprintf("a hit, %s of %d bytes", what, d.size)
	}
	return fmt.Sprintf("a miss (%s), %s of %d bytes", d.reason, what, d.size)
}
