package merging

import "slices"

// chainMax bounds how far up a chain of copies a source is followed.
const chainMax = 16

// chooseCopiesToTake chooses the copies that together save the most bytes. All sources of a chain of copies can be in one
// block, as far as the conditions hold for each source and each destination that its bytes pass. If a source can go
// only part of the way, copies further up cannot be taken together with it (figure 5.26). A content is used last by at
// most one copy, so copies form a forest, and the best choice is found exactly.
func (k *checker) chooseCopiesToTake(copies []Copy) {
	out := map[[2]int]int{} // by source and content: the copy that is its last use
	for i := range copies {
		if c := &copies[i]; c.MeetsConditions() {
			out[[2]int{c.Source, c.sourceContent}] = i
		}
	}
	f := forest{copies: copies, next: make([]int, len(copies)), below: make([][chainMax + 1]uint64, len(copies))}
	f.value = make([][chainMax + 1]uint64, len(copies))
	for i := range copies {
		f.next[i] = None
		if c := &copies[i]; c.MeetsConditions() {
			if up, ok := out[[2]int{c.Destination, c.destinationContent}]; ok && up > i {
				f.next[i] = up
			}
		}
	}
	for i := range copies {
		if copies[i].MeetsConditions() {
			copies[i].reach = k.countCopiesUpward(&f, i)
		}
	}
	f.computeSavings(k.savedBytes)
	f.markTakenCopies()
}

// forest is the copies, each with the copy that copies its destination on.
type forest struct {
	copies []Copy
	next   []int // by copy: the copy above it, None at a root
	// value is, by copy, what the copy and those below it can save if the given number of copies in a row above it are
	// taken. below is the same without the copy itself.
	value, below [][chainMax + 1]uint64
}

// countCopiesUpward returns how many copies up the source of a copy can be moved.
func (k *checker) countCopiesUpward(f *forest, i int) int {
	c := &f.copies[i]
	n, offset := 1, c.To
	for up := f.next[i]; up != None && n < chainMax; up = f.next[up] {
		next := &f.copies[up]
		offset = next.To + offset - next.From
		if !k.sourceFitsAt(c, next, offset) {
			break
		}
		n++
	}
	return n
}

// sourceFitsAt reports whether the source of a copy can be created at an offset of the destination of a copy further up.
func (k *checker) sourceFitsAt(c, up *Copy, offset uint64) bool {
	switch {
	case k.Program.Buffers[up.Destination].Created >= c.First, !k.isAligned(offset):
		return false
	case offset != 0 && k.lastHostRead(c.First, up.Step) != None:
		return false
	case len(k.disturbingSteps(up.Destination, offset, offset+c.Bytes, c.First, up.Step)) > 0:
		return false
	}
	return k.unfinishedDestinationUse(up.Destination, c.Source, c.sourceContent) == None
}

// savedBytes returns the bytes that need not be copied if a copy is taken, and the bytes of the source if it is not
// needed.
func (k *checker) savedBytes(c *Copy) uint64 {
	if len(k.Lives[c.Source].Contents) > 1 {
		return c.Bytes
	}
	return c.Bytes + k.Program.Buffers[c.Source].Size
}

// computeSavings goes from the first copy to the last: the copies below a copy come before it.
func (f *forest) computeSavings(worth func(*Copy) uint64) {
	for i := range f.copies {
		c := &f.copies[i]
		for run := range chainMax + 1 {
			f.value[i][run] = f.below[i][0]
			if f.isWorthTaking(i, run, worth(c)) {
				f.value[i][run] = worth(c) + f.below[i][run+1]
			}
			if f.next[i] != None {
				f.below[f.next[i]][run] += f.value[i][run]
			}
		}
	}
}

// isWorthTaking reports whether taking a copy saves more, if run copies in a row above it are taken.
func (f *forest) isWorthTaking(i, run int, worth uint64) bool {
	c := &f.copies[i]
	return run < c.reach && run < chainMax && worth+f.below[i][run+1] >= f.below[i][0]
}

// markTakenCopies marks the chosen copies, from the last to the first, and where each source ends up.
func (f *forest) markTakenCopies() {
	runs := make([]int, len(f.copies))
	for i := range slices.Backward(f.copies) {
		c, run := &f.copies[i], 0
		if f.next[i] != None {
			run = runs[f.next[i]]
		}
		if run >= c.reach || run >= chainMax || f.value[i][run] == f.below[i][0] {
			continue
		}
		c.Taken, runs[i] = true, run+1
		c.Into, c.At = c.Destination, c.To
		if up := f.next[i]; up != None && f.copies[up].Taken {
			next := &f.copies[up]
			c.Into, c.At = next.Into, next.At+c.To-next.From
		}
	}
}

// sitePair is the call sites of a copy and of its two buffers.
type sitePair struct {
	copy, source, destination string
	noOp                      bool
}

// pairTally sums up the copies of one pair of sites.
type pairTally struct {
	count, taken, holds, caveats int
	bytes                        uint64
	runs                         map[int]bool
	misses                       []failedCopy
	hoists                       int // copies for which only conditions fail that hoisting would meet
	hoist                        Hoist
	flags                        bool // the buffers differ in context or flags
	nested                       bool // a sub-buffer of a sub-buffer would be needed
	refilled                     bool // a source has several contents, one after the other
}

// failedCopy is a copy for which a condition fails.
type failedCopy struct {
	run     int
	failure Failure
	single  bool // no other condition fails
}

// adviseCopies makes one piece of advice for each group of copies: for copies that fill a buffer together, what they have in
// common.
func adviseCopies(all []*evidence) []Advice {
	tallies, order := tallyCopiesBySites(all)
	concats := adviseConcats(all, tallies)
	together := map[sitePair]bool{}
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
		if advice, ok := tallies[key].adviceForPair(all, key); ok {
			out = append(out, advice)
		}
	}
	return out
}

// tallyCopiesBySites sums up the copies of each pair of sites. The pairs come in the order of their first copies.
func tallyCopiesBySites(all []*evidence) (tallies map[sitePair]*pairTally, order []sitePair) {
	tallies = map[sitePair]*pairTally{}
	for run, e := range all {
		for i := range e.copies {
			key := e.sitePairOf(&e.copies[i])
			t := tallies[key]
			if t == nil {
				t = &pairTally{runs: map[int]bool{}}
				tallies[key] = t
				order = append(order, key)
			}
			t.addCopy(e, run, &e.copies[i])
		}
	}
	return tallies, order
}

func (e *evidence) sitePairOf(c *Copy) sitePair {
	p := e.Program
	return sitePair{
		copy: p.NameOfSite(p.Steps[c.Step].Site), source: p.NameOfSite(p.Buffers[c.Source].Site),
		destination: p.NameOfSite(p.Buffers[c.Destination].Site), noOp: c.NoOp,
	}
}

func (t *pairTally) addCopy(e *evidence, run int, c *Copy) {
	t.count++
	t.bytes += c.Bytes
	t.runs[run] = true
	switch {
	case c.NoOp:
	case c.MeetsConditions():
		t.holds++
		if c.Taken {
			t.taken++
		}
		t.flags = t.flags || c.OtherClass
		t.nested = t.nested || e.involvesSubBuffer(c)
		t.refilled = t.refilled || len(e.Lives[c.Source].Contents) > 1
		if c.OtherClass || e.Program.Align == 0 && c.At != 0 || e.usedBySeveralThreads(c.Source, c.Destination, max(c.Into, c.Destination)) {
			t.caveats++
		}
	default:
		t.misses = append(t.misses, failedCopy{run, c.Failed[0], len(c.Failed) == 1})
		if c.Hoist != 0 {
			t.hoists++
			t.hoist |= c.Hoist
		}
	}
}

// involvesSubBuffer reports whether a copy's source has sub-buffers, or its destination would become a sub-buffer.
func (e *evidence) involvesSubBuffer(c *Copy) bool {
	return e.hasParts[c.Source] || c.Taken && c.Into != c.Destination
}

// adviceForPair returns the advice for the copies of a pair; ok is false if more than one condition fails.
func (t *pairTally) adviceForPair(all []*evidence, key sitePair) (advice Advice, ok bool) {
	advice = Advice{
		Topic: Coalesce, Sites: []string{key.copy, key.source, key.destination}, Count: t.count, Bytes: t.bytes,
		Runs: len(t.runs), Verdict: HoldsHere, Run: None, Step: None, OtherFlags: t.flags,
		Nested: t.nested, Refilled: t.refilled,
	}
	switch {
	case key.noOp:
		advice.Topic = NoOpCopy
	case t.taken == t.count:
	case t.holds == t.count: // another choice of copies saves more
		advice.Verdict = Hinted
		return advice, true
	default:
		return t.adviceForNearMiss(advice)
	}
	if countRecordings(all, t.runs) > 1 && t.caveats == 0 {
		advice.Verdict = Safe
	}
	return advice, true
}

// adviceForNearMiss names the condition that fails: Agreement if it does not fail each time.
func (t *pairTally) adviceForNearMiss(advice Advice) (Advice, bool) {
	first := t.misses[0]
	advice.Verdict, advice.Run, advice.Step = NearMiss, first.run, first.failure.Step
	if t.hoists == t.count {
		advice.Hoist = t.hoist
	}
	same := !slices.ContainsFunc(t.misses, func(m failedCopy) bool {
		return !m.single || m.failure.Condition != first.failure.Condition
	})
	producer := !slices.ContainsFunc(t.misses, func(m failedCopy) bool { return !m.failure.Producer })
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
