package merging

import (
	"cmp"
	"maps"
	"slices"
	"strings"
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
}

// miss is a copy that fails.
type miss struct {
	run     int
	failure Failure
	single  bool
}

func adviseCopies(all []*evidence) []Advice {
	tallies := map[pair]*tally{}
	var order []pair
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
	var out []Advice
	for _, key := range order {
		if advice, ok := tallies[key].advice(all, key); ok {
			out = append(out, advice)
		}
	}
	return out
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
		if c.OtherClass || e.Program.Align == 0 && c.At != 0 {
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

// advice says what copies of a pair have in common; ok is false when more than one condition is in the way.
func (t *tally) advice(all []*evidence, key pair) (advice Advice, ok bool) {
	advice = Advice{
		Topic: Coalesce, Sites: []string{key.copy, key.source, key.destination}, Count: t.count, Bytes: t.bytes,
		Nanos: t.nanos, Runs: len(t.runs), Verdict: HoldsHere, Run: None, Step: None, OtherFlags: t.flags,
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

// adviseConcats finds destinations that two or more taken copies fill, each its own part.
func adviseConcats(all []*evidence) []Advice {
	found := map[string]*Advice{}
	var order []string
	seen := map[string]map[int]bool{}
	for run, e := range all {
		for _, group := range e.concats() {
			advice := e.concat(group)
			key := strings.Join(advice.Sites, "\x00")
			if found[key] == nil {
				found[key], seen[key] = &advice, map[int]bool{}
				order = append(order, key)
			} else {
				found[key].Count += advice.Count
				found[key].Bytes += advice.Bytes
				found[key].Nanos += advice.Nanos
				found[key].caveat(&advice)
			}
			seen[key][run] = true
		}
	}
	var out []Advice
	for _, key := range order {
		advice := found[key]
		advice.Runs = len(seen[key])
		if recordings(all, seen[key]) > 1 && advice.Verdict == Safe {
			out = append(out, *advice)
			continue
		}
		advice.Verdict = HoldsHere
		out = append(out, *advice)
	}
	return out
}

// caveat takes over what keeps another instance from being safe: other places included.
func (a *Advice) caveat(other *Advice) {
	if other.Verdict != Safe || !slices.Equal(a.Offsets, other.Offsets) {
		a.Verdict = HoldsHere
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

func (e *evidence) concat(group []*Copy) Advice {
	p := e.Program
	advice := Advice{
		Topic: Concat, Verdict: Safe, Sites: []string{p.Name(p.Buffers[group[0].Destination].Site)}, Count: len(group),
		Run: None, Step: None,
	}
	for _, c := range group {
		if len(advice.Offsets) < mostParts {
			advice.Sites = append(advice.Sites, p.Name(p.Buffers[c.Source].Site))
			advice.Offsets = append(advice.Offsets, c.To)
		}
		advice.Bytes += c.Bytes
		advice.Nanos += p.Steps[c.Step].Nanos
		if c.OtherClass || p.Align == 0 && c.To != 0 {
			advice.Verdict = HoldsHere
		}
	}
	return advice
}
