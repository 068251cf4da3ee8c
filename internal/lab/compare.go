package lab

import (
	"fmt"

	"codeberg.org/gpumemtop/gpumemtop/allocator"
	"codeberg.org/gpumemtop/gpumemtop/internal/trace"
	"codeberg.org/gpumemtop/gpumemtop/internal/wire"
)

// Comparison tells how far a replay decides as the recorded policy did: whether a request was a hit, why not, how large
// its block is and whether that is a part of a slab; and which blocks left the pool in which order, how large and why.
type Comparison struct {
	Requests, Same           uint64
	Evictions, SameEvictions uint64 // Evictions: the more of those recorded and those replayed
	First                    string // the first difference, in words; empty: there is none
}

// Exact reports whether all is the same.
func (c *Comparison) Exact() bool { return c.Requests == c.Same && c.Evictions == c.SameEvictions }

// Compare plays a recording and compares each decision with the one that was recorded. Errors are those of Replay.
func Compare(src trace.Source, o ReplayOptions) (*Comparison, error) {
	s, err := NewSimulation(o)
	if err != nil {
		return nil, err
	}
	w := &watch{simulation: s, evictions: map[uint32]*evictions{}, loose: map[loose]uint64{}}
	s.player.watch = w
	if err := each(src, w.take); err != nil {
		return nil, err
	}
	w.finish()
	return &w.Comparison, nil
}

// watch sees what a simulation decides, and what was recorded.
type watch struct {
	Comparison
	simulation *Simulation
	decided    []decision // since the latest record
	evictions  map[uint32]*evictions
	loose      map[loose]uint64 // bytes of buffers that no pool has
}

// decision is how a request was served.
type decision struct {
	hit    bool
	reason wire.Miss
	size   uint64
	part   bool
}

// eviction is a block that left a pool.
type eviction struct {
	size   uint64
	reason wire.Evict
}

// evictions of a process that were not compared yet: at most one of the lists has some.
type evictions struct{ recorded, replayed []eviction }

// loose names a buffer.
type loose struct {
	process uint32
	object  uint64
}

func (w *watch) served(_ *process, plan *allocator.Plan) {
	w.decided = append(w.decided, decision{plan.Hit, plan.Reason, plan.Size, plan.Slab != 0})
}

func (w *watch) evicted(p *process, size uint64, reason wire.Evict) {
	e := w.of(p.number)
	e.replayed = append(e.replayed, eviction{size, reason})
}

func (w *watch) of(process uint32) *evictions {
	e := w.evictions[process]
	if e == nil {
		e = &evictions{}
		w.evictions[process] = e
	}
	return e
}

// take compares what was recorded with what is decided.
func (w *watch) take(record *wire.Record) error {
	w.decided = w.decided[:0]
	if err := w.simulation.Take(record); err != nil {
		return err
	}
	number := w.simulation.resolver.from(record.Process).number
	switch record.Kind {
	case wire.KindCreate:
		w.create(number, record)
	case wire.KindRelease: // of what a policy sees that does not pool
		key := loose{number, record.Object}
		if size, there := w.loose[key]; there && record.Granted == 0 && record.Outcome == wire.OutcomeDriver {
			delete(w.loose, key)
			w.of(number).recorded = append(w.of(number).recorded, eviction{size, wire.EvictPolicy})
		}
	case wire.KindEvict:
		w.of(number).recorded = append(w.of(number).recorded, eviction{record.Granted, wire.Evict(record.Reason)})
	}
	w.match(number, record.Time)
	return nil
}

// create compares how a request was served.
func (w *watch) create(number uint32, record *wire.Record) {
	if record.Outcome != wire.OutcomeHit && record.Outcome != wire.OutcomeMiss {
		return
	}
	if record.Outcome == wire.OutcomeMiss && record.Link == 0 {
		w.loose[loose{number, record.Object}] = record.Granted
	}
	w.Requests++
	want := decision{
		record.Outcome == wire.OutcomeHit, wire.Miss(record.Reason), record.Granted, record.Flags&wire.FlagPart != 0,
	}
	switch {
	case len(w.decided) == 0:
		w.differs(number, record.Time, fmt.Sprintf("the request %d was %s; here it found no memory but its own", record.Object, want))
	case w.decided[0] != want:
		w.differs(number, record.Time, fmt.Sprintf("the request %d was %s; here it is %s", record.Object, want, w.decided[0]))
	default:
		w.Same++
	}
}

// match compares evictions as far as both sides have some.
func (w *watch) match(number uint32, time uint64) {
	e := w.evictions[number]
	if e == nil {
		return
	}
	n := min(len(e.recorded), len(e.replayed))
	for i := range n {
		w.Evictions++
		if e.recorded[i] == e.replayed[i] {
			w.SameEvictions++
		} else {
			w.differs(number, time, fmt.Sprintf("the next eviction was %s; here it is %s", e.recorded[i], e.replayed[i]))
		}
	}
	e.recorded, e.replayed = e.recorded[n:], e.replayed[n:]
}

// finish counts evictions that only one side has.
func (w *watch) finish() {
	for number := range w.simulation.resolver.script.facts.processes {
		e := w.evictions[number]
		if e == nil {
			continue
		}
		w.Evictions += uint64(len(e.recorded) + len(e.replayed))
		if len(e.recorded) > 0 {
			w.differs(number, 0, fmt.Sprintf("evictions that were recorded and are none here: %d, of which the first was %s", len(e.recorded), e.recorded[0]))
		}
		if len(e.replayed) > 0 {
			w.differs(number, 0, fmt.Sprintf("evictions here that were none: %d, of which the first is %s", len(e.replayed), e.replayed[0]))
		}
	}
}

func (w *watch) differs(number uint32, time uint64, text string) {
	if w.First == "" {
		w.First = fmt.Sprintf("process %d, at %d ns: %s", number+1, time, text)
	}
}

// String says how a request was served.
func (d decision) String() string {
	what := "a block"
	if d.part {
		what = "a part"
	}
	if d.hit {
		return fmt.Sprintf("a hit, %s of %d bytes", what, d.size)
	}
	return fmt.Sprintf("a miss (%s), %s of %d bytes", d.reason, what, d.size)
}

// String says what left the pool and why.
func (e eviction) String() string { return fmt.Sprintf("of %d bytes (%s)", e.size, e.reason) }
