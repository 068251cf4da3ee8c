package lab

import (
	"fmt"

	"codeberg.org/gpumemtop/gpumemtop/allocator"
	"codeberg.org/gpumemtop/gpumemtop/internal/trace"
	"codeberg.org/gpumemtop/gpumemtop/internal/wire"
)

// Comparison tells how far a replay decides as the recorded policy did: whether a request was a hit, why not, how large
// its block is and whether that is a part of a slab; and which blocks left the pool in which order, how large and why.
// Where the recording numbers decisions, the block itself is the same, too, and the order is that of each thread: threads
// note what the policy gave up when they have released it.
type Comparison struct {
	Requests, Same           uint64
	Evictions, SameEvictions uint64 // Evictions: the more of those recorded and those replayed
	Unreleased               uint64 // the last that a process gave up, which ended before it could release them: in neither
	First                    string // the first difference, in words; empty: there is none
}

// Exact reports whether all is the same.
func (c *Comparison) Exact() bool { return c.Requests == c.Same && c.Evictions == c.SameEvictions }

// Compare plays a recording under the policy, the limits and the capacity that were recorded, which the options name, and
// compares each decision with the one that was recorded. Errors are those of Replay.
func Compare(src trace.Source, o ReplayOptions) (*Comparison, error) {
	o.AsRecorded = true
	s, err := NewSimulation(o)
	if err != nil {
		return nil, err
	}
	w := &watch{
		simulation: s, decided: map[uint32]decision{}, wanted: map[uint32]wanted{}, evictions: map[uint32]*evictions{}, loose: map[loose]uint64{},
	}
	s.player.watch = w
	if err := each(src, w.take); err != nil {
		return nil, err
	}
	if err := s.finish(); err != nil {
		return nil, err
	}
	w.finish()
	return &w.Comparison, nil
}

// watch sees what a simulation decides, and what was recorded.
type watch struct {
	Comparison
	simulation *Simulation
	decided    map[uint32]decision // by slot, as long as nobody knows what was recorded
	wanted     map[uint32]wanted   // the other way round
	evictions  map[uint32]*evictions
	loose      map[loose]uint64 // bytes of buffers that no pool has
}

// decision is how a request was served.
type decision struct {
	hit    bool
	reason wire.Miss
	size   uint64
	part   bool
	block  uint64 // its number; 0: nobody knows
}

// wanted is what was recorded of a request.
type wanted struct {
	decision
	process      uint32
	object, time uint64
}

// loose names a buffer.
type loose struct {
	process uint32
	object  uint64
}

// served compares how a request was served, unless that is not read yet.
func (w *watch) served(slot uint32, plan *allocator.Plan) {
	d := decision{plan.Hit, plan.Reason, plan.Size, plan.Slab != 0, uint64(plan.Block)}
	if want, known := w.wanted[slot]; known {
		delete(w.wanted, slot)
		w.compare(&want, d)
		return
	}
	w.decided[slot] = d
}

func (w *watch) evicted(p *process, block allocator.Block, size uint64, reason wire.Evict) {
	w.of(p.number).replay(w, eviction{uint64(block), size, reason})
}

func (w *watch) of(process uint32) *evictions {
	e := w.evictions[process]
	if e == nil {
		e = &evictions{process: process, latest: map[uint32]int{}, open: map[uint64]placed{}, early: map[uint64][]noted{}}
		w.evictions[process] = e
	}
	return e
}

// take compares what was recorded with what is decided.
func (w *watch) take(record *wire.Record) error {
	o := w.simulation.resolver.from(record.Process) // before it may be gone
	if err := w.simulation.Take(record); err != nil {
		return err
	}
	e := w.of(o.number)
	e.numbered = o.order.next != 0 && !o.order.adrift
	switch record.Kind {
	case wire.KindCreate:
		w.create(o, record)
	case wire.KindRelease: // of what a policy sees that does not pool
		key := loose{o.number, record.Object}
		if size, there := w.loose[key]; there && record.Granted == 0 && record.Outcome == wire.OutcomeDriver {
			delete(w.loose, key)
			e.record(w, noted{eviction{0, size, wire.EvictPolicy}, record.Thread, record.Time})
		}
	case wire.KindExit:
		e.exited = true
	case wire.KindEvict:
		block := record.Link
		if !e.numbered {
			block = 0
		}
		e.record(w, noted{eviction{block, record.Granted, wire.Evict(record.Reason)}, record.Thread, record.Time})
	}
	return nil
}

// create compares how a request was served, unless that is still to come.
func (w *watch) create(o *origin, record *wire.Record) {
	if record.Outcome != wire.OutcomeHit && record.Outcome != wire.OutcomeMiss {
		return
	}
	if record.Outcome == wire.OutcomeMiss && record.Link == 0 {
		w.loose[loose{o.number, record.Object}] = record.Granted
	}
	w.Requests++
	want := wanted{process: o.number, object: record.Object, time: record.Time, decision: decision{
		record.Outcome == wire.OutcomeHit, wire.Miss(record.Reason), record.Granted, record.Flags&wire.FlagPart != 0, record.Link,
	}}
	if o.order.next == 0 || o.order.adrift {
		want.block = 0
	}
	slot := o.objects[record.Object]
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

func (w *watch) compare(want *wanted, d decision) {
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
func (w *watch) unserved(want *wanted) {
	w.differs(want.process, want.time, fmt.Sprintf("the request %d was %s; here it found no memory but its own", want.object, want.decision))
}

// finish counts what only one side has.
func (w *watch) finish() {
	for slot := range w.simulation.resolver.script.slots {
		if want, there := w.wanted[slot]; there {
			w.unserved(&want)
		}
	}
	for number := range w.simulation.resolver.script.facts.processes {
		if e := w.evictions[number]; e != nil {
			e.finish(w)
		}
	}
}

func (w *watch) differs(process uint32, time uint64, text string) {
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
