package ui

import (
	"slices"
	"strings"

	"codeberg.org/gpumemtop/gpumemtop/internal/units"
)

// item is a piece of a line that may be left out: the highest rank goes first.
type item struct {
	rank  int
	spans []span
}

// fitItems drops items until the rest is at most w columns wide with gap blanks between two.
func fitItems(items []item, w, gap int) []item {
	items = slices.Clone(items)
	for len(items) > 0 && itemsWidth(items, gap) > w {
		items = dropHighestRank(items, func(i *item) int { return i.rank })
	}
	return items
}

// dropHighestRank removes the last entry of the highest rank.
func dropHighestRank[T any](list []T, rank func(*T) int) []T {
	worst := 0
	for i := range list {
		if rank(&list[i]) >= rank(&list[worst]) {
			worst = i
		}
	}
	return slices.Delete(list, worst, worst+1)
}

// itemsWidth is the width of items with gap blanks between two.
func itemsWidth(items []item, gap int) int {
	n := gap * max(0, len(items)-1)
	for i := range items {
		n += spansWidth(items[i].spans)
	}
	return n
}

// writeAllItems writes items with gap blanks between two and returns the column after them.
func (r region) writeAllItems(x, y, gap int, items []item) int {
	for i := range items {
		if i > 0 {
			x += gap
		}
		x = r.writeSpans(x, y, items[i].spans...)
	}
	return x
}

// writeItems writes the items that fit. It closes the gaps before it leaves one out.
func (r region) writeItems(x, y, gap int, items []item) {
	shown := fitItems(items, r.w-2*x, gap)
	if len(shown) < len(items) && gap > 2 {
		gap--
		shown = fitItems(items, r.w-2*x, gap)
	}
	r.writeAllItems(x, y, gap, shown)
}

// sideStep is how far one key scrolls to the side, and sideMax the furthest, in columns.
const (
	sideStep = 8
	sideMax  = 4096
)

// writeNameInColumns writes a name into n columns: scrolled by side columns, or without its middle if it is too long, as names
// often differ at the end.
func (r region) writeNameInColumns(x, y, n int, s string, side int, st style) {
	w := textWidth(s)
	switch {
	case w <= n || n < 8:
		r.writeTextInColumns(x, y, n, s, st)
	case side > 0:
		r.writeTextInColumns(x, y, n, "…"+s[len(cutToColumns(s, min(side, w-n)+1)):], st)
	default:
		r.writeTextInColumns(x, y, n, cutSite(s, n), st)
	}
}

// cutSite cuts a call site to n columns: the middle of the function, so that file and line, its begin and its end stay.
func cutSite(s string, n int) string {
	place, function, found := strings.Cut(s, " ")
	room := n - textWidth(place) - 2
	if !found || room < siteLeast || textWidth(function) <= room {
		return units.CutName(s, n)
	}
	head := cutToColumns(function, room/3)
	tail := function
	for textWidth(tail) > room-textWidth(head) {
		_, _, tail = nextCluster(tail)
	}
	return place + " " + head + "…" + tail
}

// siteLeast is how many columns of a function's name still tell it from others.
const siteLeast = 6

// cutToColumns returns the clusters of s that fit n columns.
func cutToColumns(s string, n int) string {
	rest := s
	for len(rest) > 0 {
		_, w, after := nextCluster(rest)
		if n -= w; n < 0 {
			break
		}
		rest = after
	}
	return s[:len(s)-len(rest)]
}
