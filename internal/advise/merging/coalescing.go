package merging

import (
	"cmp"
	"maps"
	"slices"
	"strings"
)

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

// concat is advice about copies that fill one buffer together, each its own part: those of some pairs of sites.
type concat struct {
	Advice
	pairs map[pair]int // copies of each
	runs  map[int]bool
	safe  bool
}

// adviseConcats finds buffers that two or more taken copies fill. It leaves out what does not say all about its pairs of
// sites: copies of them that stand alone, or could not go.
func adviseConcats(all []*evidence, tallies map[pair]*tally) []*concat {
	found := map[string]*concat{}
	var order []*concat
	for run, e := range all {
		for _, group := range e.concats() {
			next := e.concat(group)
			key := next.key()
			c := found[key]
			if c == nil {
				c = next
				found[key], order = c, append(order, c)
			} else {
				c.add(next)
			}
			c.runs[run] = true
		}
	}
	order = onlyWhole(order, tallies)
	for _, c := range order {
		c.Runs = len(c.runs)
		for key := range c.pairs {
			c.OtherFlags = c.OtherFlags || tallies[key].flags
			c.Nested = c.Nested || tallies[key].nested
			c.Refilled = c.Refilled || tallies[key].refilled
			c.safe = c.safe && tallies[key].caveats == 0
		}
		if c.safe && recordings(all, c.runs) > 1 {
			c.Verdict = Safe
		}
	}
	return order
}

// onlyWhole returns the concats all of whose pairs are in such concats with all of their copies.
func onlyWhole(concats []*concat, tallies map[pair]*tally) []*concat {
	in := map[pair]int{}
	for _, c := range concats {
		for key, n := range c.pairs {
			in[key] += n
		}
	}
	loose := func(c *concat) bool {
		for key := range c.pairs {
			if in[key] < tallies[key].count {
				return true
			}
		}
		return false
	}
	for {
		i := slices.IndexFunc(concats, loose)
		if i < 0 {
			return concats
		}
		for key := range concats[i].pairs {
			in[key] = -1 // so that all that share a pair with it go
		}
		concats = slices.Delete(concats, i, i+1)
	}
}

// key is the same for concats of the same pairs, however many parts they have.
func (c *concat) key() string {
	var names []string
	for p := range c.pairs {
		names = append(names, p.copy+"\x00"+p.source+"\x00"+p.destination)
	}
	slices.Sort(names)
	return strings.Join(names, "\x00")
}

// add takes in another time that the program comes there. Where the places were others then, none are named.
func (c *concat) add(next *concat) {
	c.Count += next.Count
	c.Bytes += next.Bytes
	c.Nanos += next.Nanos
	for p, n := range next.pairs {
		c.pairs[p] += n
	}
	if !slices.Equal(c.Offsets, next.Offsets) || !slices.Equal(c.Sites, next.Sites) {
		c.Offsets = nil
		sources := slices.Concat(c.Sites[1:], next.Sites[1:])
		slices.Sort(sources)
		c.Sites = append(c.Sites[:1], slices.Compact(sources)...)
	}
}

// concats returns the taken copies into each content that is made of two or more, by their places in it.
func (e *evidence) concats() [][]*Copy {
	groups := map[[2]int][]*Copy{}
	for i := range e.copies {
		if c := &e.copies[i]; c.Taken {
			key := [2]int{c.Destination, c.host}
			groups[key] = append(groups[key], c)
		}
	}
	maps.DeleteFunc(groups, func(_ [2]int, g []*Copy) bool { return !disjoint(g) })
	out := slices.Collect(maps.Values(groups))
	slices.SortFunc(out, func(x, y []*Copy) int { return cmp.Compare(x[0].Step, y[0].Step) })
	return out
}

// disjoint sorts copies by their places and reports whether there are two or more, none over another.
func disjoint(group []*Copy) bool {
	slices.SortFunc(group, func(x, y *Copy) int { return cmp.Or(cmp.Compare(x.To, y.To), cmp.Compare(x.Step, y.Step)) })
	for i := 1; i < len(group); i++ {
		if group[i-1].To+group[i-1].Bytes > group[i].To {
			return false
		}
	}
	return len(group) > 1
}

// mostParts is how many parts of a destination are listed; Count counts all.
const mostParts = 64

func (e *evidence) concat(group []*Copy) *concat {
	p := e.Program
	c := &concat{safe: true, pairs: map[pair]int{}, runs: map[int]bool{}, Advice: Advice{
		Topic: Concat, Verdict: HoldsHere, Sites: []string{p.Name(p.Buffers[group[0].Destination].Site)}, Count: len(group),
		Run: None, Step: None,
	}}
	for _, part := range group {
		key := e.pair(part)
		if len(c.Offsets) < mostParts {
			c.Sites = append(c.Sites, key.source)
			c.Offsets = append(c.Offsets, part.To)
		}
		if !slices.Contains(c.Copies, key.copy) {
			c.Copies = append(c.Copies, key.copy)
		}
		c.pairs[key]++
		c.Bytes += part.Bytes
		c.Nanos += p.Steps[part.Step].Nanos
	}
	slices.Sort(c.Copies)
	return c
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
