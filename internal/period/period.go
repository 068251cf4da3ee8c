// Package period finds the iterations of a sequence of creates while the creates come.
package period

import (
	"cmp"
	"slices"
)

// How iterations are found: each thread's creates are a sequence of keys, one for each call site, kind and size. A period P is
// proposed when the last 1, 4 or 16 keys occurred before, P creates ago; a rolling hash finds that in O(1). From then on a
// create matches if the one P creates before has the same key. A proposal that matches for two periods, so that three
// iterations are seen, is a stretch. A stretch survives short interruptions, such as a create in one iteration only, but
// each lowers its score. So of nested loops the outer one wins: no interruption lowers its score. A stretch ends where
// another loop begins that has as many creates, most of them with other keys.
//
// Limits of the method: an iteration has at most windowMax creates; sizes that differ from iteration to iteration do not
// repeat; work that threads take from a queue in no fixed order does not repeat either.
const (
	windowMax     = 8192 // remembered keys of a thread
	windowMin     = 64
	candidatesMax = 6  // periods followed at a time
	stretchesMax  = 16 // kept for each thread
	createsLeast  = 6  // creates of a stretch: fewer may repeat by chance
	shareLeast    = 16 // a stretch has at least one 16th of its thread's creates
	missWeight    = 8  // matching creates that one create without a match cancels
)

// gramLengths are how many keys must have occurred before so that a period is proposed.
var gramLengths = [...]uint64{1, 4, 16}

// Stretch is a part of a thread's creates that repeats.
type Stretch struct {
	First, End uint64 // creates [first, end) of the thread
	Period     uint64
	Extra      uint64 // of these, creates that were no part of an iteration
	missed     uint64 // creates that did not match
}

func (s *Stretch) score() int64 { return int64(s.End-s.First) - missWeight*int64(s.missed) }

// candidate is a period that may be the right one.
type candidate struct {
	Stretch
	run       uint64 // creates in a row that matched, up to now
	pending   uint64 // creates that did not match since End
	confirmed bool
}

// Finder looks for the iterations of one thread.
type Finder struct {
	keys       []uint64 // the latest, at their number modulo the length
	count      uint64
	grams      [len(gramLengths)]gram
	candidates []candidate
	found      []Stretch
}

// gram finds where the last few keys occurred before.
type gram struct {
	hash, power uint64   // of the last keys; power: the factor of the key that leaves the hash
	latest      []uint64 // count at the last occurrence, by hash
}

const gramBase = 0x9e3779b97f4a7c15 | 1

func (f *Finder) keyOfCreate(number uint64) uint64 { return f.keys[number&uint64(len(f.keys)-1)] }

// AddCreate appends the key of the next create.
func (f *Finder) AddCreate(key uint64) {
	f.growWindow()
	number := f.count
	for i, length := range gramLengths {
		g := &f.grams[i]
		g.hash = g.hash*gramBase + key
		if number >= length {
			g.hash -= g.power * f.keyOfCreate(number-length)
		}
	}
	f.keys[number&uint64(len(f.keys)-1)] = key
	f.count++
	f.advanceCandidates(key)
	steady := slices.ContainsFunc(f.candidates, func(c candidate) bool { return c.confirmed && c.run >= c.Period })
	for i := range f.grams {
		g := &f.grams[i]
		place := &g.latest[g.hash*gramBase>>32&uint64(len(g.latest)-1)]
		if !steady && *place > 0 {
			f.addCandidate(f.count - *place)
		}
		*place = f.count
	}
}

// growWindow makes room as the thread creates more, up to windowMax.
func (f *Finder) growWindow() {
	size := uint64(len(f.keys))
	if size == windowMax || f.count < size {
		return
	}
	grown := make([]uint64, max(2*size, windowMin))
	for n := range f.count {
		grown[n] = f.keys[n]
	}
	f.keys = grown
	for i, length := range gramLengths {
		g := &f.grams[i]
		if g.power == 0 {
			g.power = 1
			for range length {
				g.power *= gramBase
			}
		}
		g.latest = make([]uint64, len(grown))
	}
}

// advanceCandidates compares the latest key with each candidate and drops those that no longer match.
func (f *Finder) advanceCandidates(key uint64) {
	kept := f.candidates[:0]
	for i := range f.candidates {
		c := f.candidates[i]
		matches := key == f.keyOfCreate(f.count-1-c.Period)
		if matches && c.confirmed && c.pending > 0 && c.run+1 >= c.Period && f.isLatestPeriodOtherLoop(&c) {
			old := c.Stretch
			old.End = min(old.End, f.count-(c.run+1)-c.Period) // the loops may have the first creates in common
			f.keepEndedStretch(old)
			c.confirmed, c.Extra, c.missed, c.pending = false, 0, 0, 0
		}
		if c.advanceOrDrop(f.count, matches) {
			kept = append(kept, c)
		} else if c.confirmed {
			f.keepEndedStretch(c.Stretch)
		}
	}
	f.candidates = kept
}

// isLatestPeriodOtherLoop reports whether most keys of the latest period are missing from the last period that matched.
func (f *Finder) isLatestPeriodOtherLoop(c *candidate) bool {
	if c.End < c.Period || f.count-(c.End-c.Period) > uint64(len(f.keys)) {
		return false // not remembered
	}
	before := map[uint64]int{}
	for n := c.End - c.Period; n < c.End; n++ {
		before[f.keyOfCreate(n)]++
	}
	common := uint64(0)
	for n := f.count - c.Period; n < f.count; n++ {
		if key := f.keyOfCreate(n); before[key] > 0 {
			before[key]--
			common++
		}
	}
	return 2*common < c.Period
}

// advanceOrDrop advances a candidate: matches says whether the latest create matches. It returns false if the candidate is to
// be removed.
func (c *candidate) advanceOrDrop(count uint64, matches bool) bool {
	if !matches {
		c.run = 0
		c.pending++
		return c.confirmed && count-c.End <= 3*c.Period+createsLeast
	}
	c.run++
	switch {
	case !c.confirmed && c.run >= 2*c.Period && c.run+c.Period >= createsLeast:
		c.confirmed, c.First, c.End = true, count-c.run-c.Period, count
	case c.confirmed && c.run >= c.Period:
		c.missed += c.pending
		c.Extra += c.pending - min(c.pending, c.Period) // those of a period do not match because others came before
		c.End, c.pending = count, 0
	case c.confirmed && count-c.End > 3*c.Period+createsLeast:
		return false
	}
	return true
}

// SteadyPeriod returns the period in which the latest creates have repeated without a difference, for two periods and at
// least the given number of creates; 0 if there is none. Of several periods the one with the longest run wins, because
// an inner loop ends while the outer one continues.
func (f *Finder) SteadyPeriod(least uint64) uint64 {
	best := candidate{}
	for _, c := range f.candidates {
		if c.confirmed && c.pending == 0 && c.run >= max(2*c.Period, least) && (c.run > best.run || c.run == best.run && c.Period < best.Period) {
			best = c
		}
	}
	return best.Period
}

// addCandidate adds a candidate, unless no create matches. The creates that match already count.
func (f *Finder) addCandidate(period uint64) {
	for i := range f.candidates {
		c := &f.candidates[i]
		if period == c.Period || c.run >= c.Period && period%c.Period == 0 {
			return
		}
	}
	c := candidate{Stretch: Stretch{Period: period}}
	oldest := f.count - min(f.count, uint64(len(f.keys)))
	for n := f.count; n > oldest+period && f.keyOfCreate(n-1) == f.keyOfCreate(n-1-period); n-- {
		c.run++
	}
	if c.run == 0 {
		return
	}
	c.run--
	c.advanceOrDrop(f.count, true)
	if len(f.candidates) < candidatesMax {
		f.candidates = append(f.candidates, c)
		return
	}
	for i := range f.candidates {
		if old := &f.candidates[i]; !old.confirmed && old.run < c.run {
			*old = c
			return
		}
	}
}

// keepEndedStretch keeps a stretch that has ended. If there are too many, it drops the one with the lowest score.
func (f *Finder) keepEndedStretch(s Stretch) {
	if len(f.found) < stretchesMax {
		f.found = append(f.found, s)
		return
	}
	least := 0
	for i := range f.found {
		if f.found[i].score() < f.found[least].score() {
			least = i
		}
	}
	if f.found[least].score() < s.score() {
		f.found[least] = s
	}
}

// FinishStretches returns the stretches in order, without overlaps.
func (f *Finder) FinishStretches() []Stretch {
	for i := range f.candidates {
		if f.candidates[i].confirmed {
			f.keepEndedStretch(f.candidates[i].Stretch)
		}
	}
	slices.SortStableFunc(f.found, func(a, b Stretch) int {
		return cmp.Or(cmp.Compare(b.score(), a.score()), cmp.Compare(a.Period, b.Period), cmp.Compare(a.First, b.First))
	})
	var chosen []Stretch
	for _, s := range f.found {
		overlaps := slices.ContainsFunc(chosen, func(o Stretch) bool { return s.First < o.End && o.First < s.End })
		if !overlaps && s.score() > 0 && (s.End-s.First)*shareLeast >= f.count {
			chosen = append(chosen, s)
		}
	}
	slices.SortFunc(chosen, func(a, b Stretch) int { return cmp.Compare(a.First, b.First) })
	return chosen
}

// KeyOfCreate returns the key of a create, by its call site, its size in bytes, and a number for what else tells creates of one line apart:
// flags, or flags and context.
func KeyOfCreate(tag uint32, size uint64, kind uint32) uint64 {
	h := (uint64(tag)+1+uint64(kind)<<32)*0xff51afd7ed558ccd ^ size*0xc4ceb9fe1a85ec53
	return h ^ h>>29
}
