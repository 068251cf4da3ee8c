package ui

import (
	"slices"

	"codeberg.org/gpumemtop/gpumemtop/internal/model"
	"codeberg.org/gpumemtop/gpumemtop/internal/wire"
)

// watchedItems are the numbers of programs that were only watched: those of a pool would say that something is wrong.
func watchedItems(s *model.Snapshot) []item {
	t := &s.Totals
	return []item{
		{0, []span{{"in use ", dim}, {leastText(s) + bytesText(t.InUse), inUseStyle}, {tendency(s.History), dim}}},
		{2, []span{{"buffers ", dim}, {count(t.LiveBuffers), plain}}},
		{3, peakSpans(s)},
		{1, []span{{perSecond(s.Window.Creates, s.Window.NS), plain}, {" alloc/s", dim}}},
	}
}

// beforeAttach returns the tag of what was there before attach, nil when nothing of it was seen.
func beforeAttach(s *model.Snapshot) *model.Tag {
	for i := range s.Tags {
		if s.Tags[i].Name == wire.BeforeAttach {
			return &s.Tags[i]
		}
	}
	return nil
}

// leastText marks a number that is a lower bound: sizes from before attach are known as far as they were used.
func leastText(s *model.Snapshot) string {
	if beforeAttach(s) == nil {
		return ""
	}
	return "≥ "
}

// watchedLegend is legendItems where there is no pool.
func watchedLegend(s *model.Snapshot) []item {
	t := &s.Totals
	items := []item{
		{0, []span{{"█", inUseStyle}, {" in use", dim}}},
		{1, []span{{"creates ", dim}, {count(t.Creates), plain}, {" releases ", dim}, {count(t.Releases), plain}}},
	}
	if before := beforeAttach(s); before != nil {
		items = append(items, item{2, []span{{"from before attach ", dim}, {count(before.Live), plain}, {" buffers", dim}}})
	}
	return append(items, item{3, []span{{"no pool: attach only watches", dim}}})
}

// watchedHint explains the one layer of the memory pane where no gauge does.
func watchedHint(m mode) []span {
	if m == full {
		return nil
	}
	return []span{{" █", inUseStyle}, {" in use ", dim}}
}

// drawWatchedRates draws what programs that are only watched ask of the driver.
func (t *timeline) drawWatchedRates(r region, s *model.Snapshot, rough bool) {
	asked, cost := allocItems(s, rough), costItems(s, rough)
	if !rough { // every create is one of the driver: the same numbers again
		asked, cost = slices.Delete(asked, 1, 2), cost[:2]
	}
	r.lineOf(0, 0, 2, fit(asked, r.w, 2))
	if r.h < 3 {
		return
	}
	chart := r.sub(0, 1, r.w, r.h-2)
	t.drawAllocs(chart)
	r.lineOf(0, r.h-1, 2, fit(cost, r.w, 2))
}

// watchSpan says in a word whether there is something to watch.
func (d *dashboard) watchSpan(s *model.Snapshot) span {
	switch {
	case d.ended():
		return span{"○ ENDED", dim}
	case len(s.Processes) == 0:
		return span{"○ WAITING", dim}
	}
	return span{"● WATCHING", goodStyle}
}
