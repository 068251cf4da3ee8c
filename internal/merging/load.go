package merging

import "slices"

// load is how many bytes are held at each step. Adding to a span and asking for the peak take O(log n).
type load struct {
	steps []int // where something begins or ends, sorted
	tree  []loaded
}

// loaded is a node: what was added to all below it, and their peak with that.
type loaded struct{ add, peak int64 }

// hold is a block: its bytes for all steps of its spans.
type hold struct {
	size  uint64
	spans []Span
}

func newLoad(holds []hold) *load {
	l := &load{}
	for _, h := range holds {
		for _, s := range h.spans {
			l.steps = append(l.steps, s.From, s.To)
		}
	}
	slices.Sort(l.steps)
	l.steps = slices.Compact(l.steps)
	l.tree = make([]loaded, 4*len(l.steps)+4)
	for _, h := range holds {
		l.add(h, 1)
	}
	return l
}

// add adds a block, whose spans end where one of the first did; with sign -1 it takes it away.
func (l *load) add(h hold, sign int64) {
	for _, s := range h.spans {
		from, _ := slices.BinarySearch(l.steps, s.From)
		to, _ := slices.BinarySearch(l.steps, s.To)
		if from < to {
			l.change(1, 0, len(l.steps), from, to, sign*int64(h.size))
		}
	}
}

func (l *load) change(node, lo, hi, from, to int, by int64) {
	if from <= lo && hi <= to {
		l.tree[node].add += by
		l.tree[node].peak += by
		return
	}
	mid := (lo + hi) / 2
	if from < mid {
		l.change(2*node, lo, mid, from, to, by)
	}
	if to > mid {
		l.change(2*node+1, mid, hi, from, to, by)
	}
	l.tree[node].peak = l.tree[node].add + max(l.tree[2*node].peak, l.tree[2*node+1].peak)
}

func (l *load) peak() uint64 { return uint64(l.tree[1].peak) }

// join returns the block that serves two: as large as the larger one, there from the first begin to the last end.
func join(x, y hold) hold {
	hull := Span{
		min(x.spans[0].From, y.spans[0].From), max(x.spans[len(x.spans)-1].To, y.spans[len(y.spans)-1].To),
	}
	return hold{size: max(x.size, y.size), spans: []Span{hull}}
}
