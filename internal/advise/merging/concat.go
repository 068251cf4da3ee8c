package merging

import (
	"cmp"
	"maps"
	"slices"
	"strings"
)

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
