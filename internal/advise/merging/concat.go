package merging

import (
	"cmp"
	"maps"
	"slices"
	"strings"
)

// concatAdvice is advice about copies that fill disjoint parts of one buffer: the copies of some pairs of sites.
type concatAdvice struct {
	Advice
	pairs map[sitePair]int // number of copies of each
	runs  map[int]bool
	safe  bool
}

// adviseConcats finds buffers that two or more taken copies fill. It leaves out pairs of sites with other copies, which
// stand alone or were not taken, because the advice would not cover all copies of the pair.
func adviseConcats(all []*evidence, tallies map[sitePair]*pairTally) []*concatAdvice {
	found := map[string]*concatAdvice{}
	var order []*concatAdvice
	for run, e := range all {
		for _, group := range e.concatGroups() {
			next := e.newConcatAdvice(group)
			key := next.pairsKey()
			c := found[key]
			if c == nil {
				c = next
				found[key], order = c, append(order, c)
			} else {
				c.mergeWith(next)
			}
			c.runs[run] = true
		}
	}
	order = concatsCoveringTheirPairs(order, tallies)
	for _, c := range order {
		c.Runs = len(c.runs)
		for key := range c.pairs {
			c.OtherFlags = c.OtherFlags || tallies[key].flags
			c.Nested = c.Nested || tallies[key].nested
			c.Refilled = c.Refilled || tallies[key].refilled
			c.safe = c.safe && tallies[key].caveats == 0
		}
		if c.safe && countRecordings(all, c.runs) > 1 {
			c.Verdict = Safe
		}
	}
	return order
}

// concatsCoveringTheirPairs returns the advice whose pairs have all their copies in such advice.
func concatsCoveringTheirPairs(concats []*concatAdvice, tallies map[sitePair]*pairTally) []*concatAdvice {
	in := map[sitePair]int{}
	for _, c := range concats {
		for key, n := range c.pairs {
			in[key] += n
		}
	}
	loose := func(c *concatAdvice) bool {
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
			in[key] = -1 // so that all advice that shares a pair with it is removed, too
		}
		concats = slices.Delete(concats, i, i+1)
	}
}

// pairsKey is equal for advice about the same pairs, however many parts the buffers have.
func (c *concatAdvice) pairsKey() string {
	var names []string
	for p := range c.pairs {
		names = append(names, p.copy+"\x00"+p.source+"\x00"+p.destination)
	}
	slices.Sort(names)
	return strings.Join(names, "\x00")
}

// mergeWith adds the same advice from another time. If the offsets differ, the advice names none.
func (c *concatAdvice) mergeWith(other *concatAdvice) {
	c.Count += other.Count
	c.Bytes += other.Bytes
	for p, n := range other.pairs {
		c.pairs[p] += n
	}
	if !slices.Equal(c.Offsets, other.Offsets) || !slices.Equal(c.Sites, other.Sites) {
		c.Offsets = nil
		sources := slices.Concat(c.Sites[1:], other.Sites[1:])
		slices.Sort(sources)
		c.Sites = append(c.Sites[:1], slices.Compact(sources)...)
	}
}

// concatGroups returns the taken copies into each content that consists of two or more, sorted by their offsets.
func (e *evidence) concatGroups() [][]*Copy {
	groups := map[[2]int][]*Copy{}
	for i := range e.copies {
		if c := &e.copies[i]; c.Taken {
			key := [2]int{c.Destination, c.destinationContent}
			groups[key] = append(groups[key], c)
		}
	}
	maps.DeleteFunc(groups, func(_ [2]int, g []*Copy) bool { return !sortAndCheckDisjoint(g) })
	out := slices.Collect(maps.Values(groups))
	slices.SortFunc(out, func(x, y []*Copy) int { return cmp.Compare(x[0].Step, y[0].Step) })
	return out
}

// sortAndCheckDisjoint sorts copies by their offsets, and reports whether there are two or more that do not overlap.
func sortAndCheckDisjoint(group []*Copy) bool {
	slices.SortFunc(group, func(x, y *Copy) int { return cmp.Or(cmp.Compare(x.To, y.To), cmp.Compare(x.Step, y.Step)) })
	for i := 1; i < len(group); i++ {
		if group[i-1].To+group[i-1].Bytes > group[i].To {
			return false
		}
	}
	return len(group) > 1
}

// partsShownMax is how many parts of a destination are listed. Count counts all parts.
const partsShownMax = 64

func (e *evidence) newConcatAdvice(group []*Copy) *concatAdvice {
	p := e.Program
	c := &concatAdvice{safe: true, pairs: map[sitePair]int{}, runs: map[int]bool{}, Advice: Advice{
		Topic: Concat, Verdict: HoldsHere, Sites: []string{p.NameOfSite(p.Buffers[group[0].Destination].Site)}, Count: len(group),
		Run: None, Step: None,
	}}
	for _, part := range group {
		key := e.sitePairOf(part)
		if len(c.Offsets) < partsShownMax {
			c.Sites = append(c.Sites, key.source)
			c.Offsets = append(c.Offsets, part.To)
		}
		if !slices.Contains(c.Copies, key.copy) {
			c.Copies = append(c.Copies, key.copy)
		}
		c.pairs[key]++
		c.Bytes += part.Bytes
	}
	slices.Sort(c.Copies)
	return c
}
