package merging

import "slices"

// longest is how far up a chain of copies a source is followed.
const longest = 16

// choose takes the copies that together save most bytes. A chain of copies can go into one block as far as the
// conditions hold for each source and each destination that its bytes pass: one that can go only part of the way
// excludes what would take it further (figure 5.26). As each content has at most one copy that is its last use, copies
// form a forest, on which the best choice is found exactly.
func (k *checker) choose(copies []Copy) {
	out := map[[2]int]int{} // content: the copy that is its last use
	for i := range copies {
		if c := &copies[i]; c.Holds() {
			out[[2]int{c.Source, c.content}] = i
		}
	}
	f := forest{copies: copies, up: make([]int, len(copies)), below: make([][longest + 1]uint64, len(copies))}
	f.value = make([][longest + 1]uint64, len(copies))
	for i := range copies {
		f.up[i] = None
		if c := &copies[i]; c.Holds() {
			if up, ok := out[[2]int{c.Destination, c.host}]; ok && up > i {
				f.up[i] = up
			}
		}
	}
	for i := range copies {
		if copies[i].Holds() {
			copies[i].reach = k.reach(&f, i)
		}
	}
	f.solve(k.worth)
	f.take()
}

// forest is copies, each with the one that copies its destination on.
type forest struct {
	copies []Copy
	up     []int // None at a root
	// value is what can be saved with a copy and all below it when that many in a row above it are taken; below is the
	// same of those below only.
	value, below [][longest + 1]uint64
}

// reach returns how many copies up from one its source can be moved.
func (k *checker) reach(f *forest, i int) int {
	c := &f.copies[i]
	n, at := 1, c.To
	for up := f.up[i]; up != None && n < longest; up = f.up[up] {
		next := &f.copies[up]
		at = next.To + at - next.From
		if !k.fitsAt(c, next, at) {
			break
		}
		n++
	}
	return n
}

// fitsAt reports whether the source of a copy can be made at a byte of the destination of one further up.
func (k *checker) fitsAt(c, up *Copy, at uint64) bool {
	switch {
	case k.Program.Buffers[up.Destination].Created >= c.First, !k.aligned(at):
		return false
	case at != 0 && k.hostRead(c.First, up.Step) != None:
		return false
	case len(k.disturbers(up.Destination, at, at+c.Bytes, c.First, up.Step)) > 0:
		return false
	}
	return k.early(up.Destination, c.Source, c.content) == None
}

// worth returns the bytes that a copy no longer moves and its source no longer needs.
func (k *checker) worth(c *Copy) uint64 {
	if len(k.Lives[c.Source].Contents) > 1 {
		return c.Bytes
	}
	return c.Bytes + k.Program.Buffers[c.Source].Size
}

// solve works from the first copy to the last: those below a copy come before it.
func (f *forest) solve(worth func(*Copy) uint64) {
	for i := range f.copies {
		c := &f.copies[i]
		for run := range longest + 1 {
			f.value[i][run] = f.below[i][0]
			if f.takes(i, run, worth(c)) {
				f.value[i][run] = worth(c) + f.below[i][run+1]
			}
			if f.up[i] != None {
				f.below[f.up[i]][run] += f.value[i][run]
			}
		}
	}
}

// takes reports whether it pays to take a copy when that many in a row above it are taken.
func (f *forest) takes(i, run int, worth uint64) bool {
	c := &f.copies[i]
	return run < c.reach && run < longest && worth+f.below[i][run+1] >= f.below[i][0]
}

// take marks the choice, from the last copy to the first, and where each source ends up.
func (f *forest) take() {
	runs := make([]int, len(f.copies))
	for i := range slices.Backward(f.copies) {
		c, run := &f.copies[i], 0
		if f.up[i] != None {
			run = runs[f.up[i]]
		}
		if run >= c.reach || run >= longest || f.value[i][run] == f.below[i][0] {
			continue
		}
		c.Taken, runs[i] = true, run+1
		c.Into, c.At = c.Destination, c.To
		if up := f.up[i]; up != None && f.copies[up].Taken {
			next := &f.copies[up]
			c.Into, c.At = next.Into, next.At+c.To-next.From
		}
	}
}

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
