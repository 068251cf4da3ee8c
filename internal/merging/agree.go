package merging

import (
	"slices"
)

// pair is where a copy was enqueued and where its buffers were created.
type pair struct {
	copy, source, destination string
	noOp                      bool
}

// tally is what copies of one pair of sites have in common.
type tally struct {
	count, taken, holds, caveats int
	bytes, nanos                 uint64
	runs                         map[int]bool
	misses                       []miss
	hoists                       int // that fail only what hoisting would undo
	hoist                        Hoist
	flags                        bool // differ
	nested                       bool // a sub-buffer of a sub-buffer would be needed
	refilled                     bool // a source holds other things, too, one after the other
}

// miss is a copy that fails.
type miss struct {
	run     int
	failure Failure
	single  bool
}

// adviseCopies says each thing once: of copies that fill a buffer together, what they have in common.
func adviseCopies(all []*evidence) []Advice {
	tallies, order := tallyCopies(all)
	concats := adviseConcats(all, tallies)
	together := map[pair]bool{}
	var out []Advice
	for _, c := range concats {
		for key := range c.pairs {
			together[key] = true
		}
		out = append(out, c.Advice)
	}
	for _, key := range order {
		if together[key] {
			continue
		}
		if advice, ok := tallies[key].advice(all, key); ok {
			out = append(out, advice)
		}
	}
	return out
}

// tallyCopies adds up the copies of each pair of sites; the pairs come in the order in which they were first seen.
func tallyCopies(all []*evidence) (tallies map[pair]*tally, order []pair) {
	tallies = map[pair]*tally{}
	for run, e := range all {
		for i := range e.copies {
			key := e.pair(&e.copies[i])
			t := tallies[key]
			if t == nil {
				t = &tally{runs: map[int]bool{}}
				tallies[key] = t
				order = append(order, key)
			}
			t.add(e, run, &e.copies[i])
		}
	}
	return tallies, order
}

func (e *evidence) pair(c *Copy) pair {
	p := e.Program
	return pair{
		copy: p.Name(p.Steps[c.Step].Site), source: p.Name(p.Buffers[c.Source].Site),
		destination: p.Name(p.Buffers[c.Destination].Site), noOp: c.NoOp,
	}
}

func (t *tally) add(e *evidence, run int, c *Copy) {
	t.count++
	t.bytes += c.Bytes
	t.nanos += e.Program.Steps[c.Step].Nanos
	t.runs[run] = true
	switch {
	case c.NoOp:
	case c.Holds():
		t.holds++
		if c.Taken {
			t.taken++
		}
		t.flags = t.flags || c.OtherClass
		t.nested = t.nested || e.nested(c)
		t.refilled = t.refilled || len(e.Lives[c.Source].Contents) > 1
		if c.OtherClass || e.Program.Align == 0 && c.At != 0 || e.crossed(c.Source, c.Destination, max(c.Into, c.Destination)) {
			t.caveats++
		}
	default:
		t.misses = append(t.misses, miss{run, c.Failed[0], len(c.Failed) == 1})
		if c.Hoist != 0 {
			t.hoists++
			t.hoist |= c.Hoist
		}
	}
}

// nested reports whether a copy's source has sub-buffers, or its destination is to become one.
func (e *evidence) nested(c *Copy) bool {
	return e.parts[c.Source] || c.Taken && c.Into != c.Destination
}

// advice says what copies of a pair have in common; ok is false when more than one condition is in the way.
func (t *tally) advice(all []*evidence, key pair) (advice Advice, ok bool) {
	advice = Advice{
		Topic: Coalesce, Sites: []string{key.copy, key.source, key.destination}, Count: t.count, Bytes: t.bytes,
		Nanos: t.nanos, Runs: len(t.runs), Verdict: HoldsHere, Run: None, Step: None, OtherFlags: t.flags,
		Nested: t.nested, Refilled: t.refilled,
	}
	switch {
	case key.noOp:
		advice.Topic = NoOpCopy
	case t.taken == t.count:
	case t.holds == t.count: // another choice saves more
		advice.Verdict = Hinted
		return advice, true
	default:
		return t.nearMiss(advice)
	}
	if recordings(all, t.runs) > 1 && t.caveats == 0 {
		advice.Verdict = Safe
	}
	return advice, true
}

// nearMiss names the condition that is in the way: Agreement when it is not so each time.
func (t *tally) nearMiss(advice Advice) (Advice, bool) {
	first := t.misses[0]
	advice.Verdict, advice.Run, advice.Step = NearMiss, first.run, first.failure.Step
	if t.hoists == t.count {
		advice.Hoist = t.hoist
	}
	same := !slices.ContainsFunc(t.misses, func(m miss) bool {
		return !m.single || m.failure.Condition != first.failure.Condition
	})
	producer := !slices.ContainsFunc(t.misses, func(m miss) bool { return !m.failure.Producer })
	switch {
	case t.holds > 0:
		advice.Failed = Agreement
	case same:
		advice.Failed, advice.Producer = first.failure.Condition, producer
	case advice.Hoist != 0:
		advice.Failed = first.failure.Condition
	default:
		return advice, false
	}
	return advice, true
}
