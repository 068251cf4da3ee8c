package merging

import (
	"cmp"
	"maps"
	"slices"
)

// turn is one buffer of a site that is used.
type turn struct {
	span Span // from its first use to its last
	hold hold // what the program holds for it
}

// rotation is a site that could keep a few buffers and use them in turn.
type rotation struct {
	site    string
	blocks  int  // the most that any run needs
	same    bool // all runs need as many
	saved   int  // creates, in all runs
	crossed bool // several threads use them in a run
	runs    int
}

// rotations finds sites with several buffers in use at a time that create more than these, where keeping so few makes no
// run's peak larger. What is found is made so in the loads.
func rotations(runs []map[string]*siteRun, loads []*load) []rotation {
	names := map[string]bool{}
	for _, run := range runs {
		for name, s := range run {
			keep, seen := names[name]
			names[name] = (keep || !seen) && s.plain && s.equal
		}
	}
	maps.DeleteFunc(names, func(_ string, keep bool) bool { return !keep })
	var out []rotation
	for _, name := range slices.Sorted(maps.Keys(names)) {
		if r, ok := rotate(runs, loads, name); ok {
			out = append(out, r)
		}
	}
	return out
}

func rotate(runs []map[string]*siteRun, loads []*load, name string) (r rotation, ok bool) {
	r = rotation{site: name, same: true}
	var undo []func()
	for i, run := range runs {
		s := run[name]
		if s == nil {
			continue
		}
		groups := takeTurns(s.turns)
		r.same = r.same && (r.blocks == 0 || r.blocks == len(groups))
		r.blocks, r.runs = max(r.blocks, len(groups)), r.runs+1
		r.saved += len(s.turns) - len(groups)
		r.crossed = r.crossed || s.thread == many
		before := loads[i].peak()
		undo = append(undo, loads[i].keep(groups))
		if loads[i].peak() > before {
			r.saved = 0
			break
		}
	}
	if ok = r.blocks > 1 && r.saved > 0; !ok {
		for _, back := range undo {
			back()
		}
	}
	return r, ok
}

// takeTurns divides buffers into as few groups as can be, in each of which they are used one after the other.
func takeTurns(turns []turn) [][]turn {
	turns = slices.SortedStableFunc(slices.Values(turns), func(x, y turn) int { return cmp.Compare(x.span.From, y.span.From) })
	ending := make([]int, len(turns))
	for i := range ending {
		ending[i] = i
	}
	slices.SortStableFunc(ending, func(x, y int) int { return cmp.Compare(turns[x].span.To, turns[y].span.To) })
	var groups [][]turn
	var free []int
	in := make([]int, len(turns)) // which group
	for i, t := range turns {
		for turns[ending[0]].span.To <= t.span.From { // it began before: t itself has not ended
			free = append(free, in[ending[0]])
			ending = ending[1:]
		}
		if n := len(free); n > 0 {
			in[i], free = free[n-1], free[:n-1]
			groups[in[i]] = append(groups[in[i]], t)
			continue
		}
		in[i] = len(groups)
		groups = append(groups, []turn{t})
	}
	return groups
}

// keep puts one block in the place of all that was held for each group, and returns what undoes it.
func (l *load) keep(groups [][]turn) (undo func()) {
	change := func(sign int64) {
		for _, g := range groups {
			both := g[0].hold
			for _, t := range g { // all are of one size
				l.add(t.hold, -sign)
				both = join(both, t.hold)
			}
			l.add(both, sign)
		}
	}
	change(1)
	return func() { change(-1) }
}
