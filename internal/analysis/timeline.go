package analysis

import (
	"slices"

	"codeberg.org/gpumemtop/gpumemtop/internal/callsite"
	"codeberg.org/gpumemtop/gpumemtop/internal/heap"
	"codeberg.org/gpumemtop/gpumemtop/internal/stats"
)

// others is the name of the last series if there are more call sites than SeriesMax.
const others = "others"

// timeline samples the gauges at evenly spaced times.
type timeline struct {
	Timeline
	begin     uint64 // CLOCK_MONOTONIC of Start
	at        int    // the point that is being filled
	most      int64  // in use, within it
	tags      []int64
	free      []int64
	tagPlace  map[string]int
	freePlace map[string]int
	moreTags  bool // the last series is others
	moreFree  bool
	slabPlace int // -1 without
}

// newTimeline makes the points of the part.
func newTimeline(s *survey, o *Options, started uint64) *timeline {
	l := &timeline{slabPlace: -1}
	if s.events > 0 {
		l.Step = max(1, (s.last-s.first)/PointsMax+1)
		points := int((s.last-s.first)/l.Step) + 1
		l.begin, l.Start = s.first, differenceOrZero(started, s.first)
		l.InUse, l.Cached, l.Cooling = make([]uint64, points), make([]uint64, points), make([]uint64, points)
		l.Idle, l.MostCached, l.MostCooling = make([]uint64, points), make([]uint64, points), make([]uint64, points)
		l.Hits, l.Misses = make([]uint64, points), make([]uint64, points)
		l.Fragmentation, l.Waste = make([]float64, points), make([]float64, points)
	}
	names := s.topSites(o, func(at *site) int64 { return at.peak })
	l.tagPlace, l.moreTags = l.makeSeries(&l.Tags, &l.tags, names)
	pools := s.topSites(o, func(at *site) int64 { return at.peakFree })
	if s.slabs && o.wantsSite(callsite.Slabs) {
		pools = slices.Insert(pools, 0, callsite.Slabs)
	}
	l.freePlace, l.moreFree = l.makeSeries(&l.Free, &l.free, pools)
	if place, ok := l.freePlace[callsite.Slabs]; ok {
		l.slabPlace = place
	}
	return l
}

// makeSeries makes a series for each of the first names, and one for the others.
func (l *timeline) makeSeries(list *[]Series, values *[]int64, names []string) (places map[string]int, more bool) {
	if len(names) > SeriesMax {
		names, more = append(slices.Clone(names[:SeriesMax-1]), others), true
	}
	places = map[string]int{}
	for i, name := range names {
		if !more || i < SeriesMax-1 {
			places[name] = i
		}
		*list = append(*list, Series{Name: name, Values: make([]uint64, len(l.InUse))})
	}
	*values = make([]int64, len(names))
	return places, more
}

// seriesIndices returns the indexes of the series of a name, -1 if it has none.
func (l *timeline) seriesIndices(name string, wanted bool) (tag, free int) {
	place := func(places map[string]int, more bool) int {
		at, known := places[name]
		switch {
		case known && wanted:
			return at
		case more && wanted:
			return SeriesMax - 1
		}
		return -1
	}
	return place(l.tagPlace, l.moreTags), place(l.freePlace, l.moreFree)
}

// advanceTo closes the points that end before a time. now has the gauges until then.
func (l *timeline) advanceTo(time uint64, now *heap.Gauges, model *stats.Model) {
	if l.Step == 0 || time < l.begin {
		return
	}
	next := int(min((time-l.begin)/l.Step, uint64(len(l.InUse)-1)))
	if next <= l.at {
		return
	}
	fragmented := model.Fragmentation()
	for l.at < next {
		l.setEndOfPoint(now, fragmented, model.IdleBytes(l.begin+uint64(l.at+1)*l.Step))
		l.at++
		l.most = -1
		l.samplePoint(now)
	}
}

// setEndOfPoint sets the figures of the end of a point.
func (l *timeline) setEndOfPoint(now *heap.Gauges, fragmented float64, idle uint64) {
	l.Idle[l.at] = idle
	l.Fragmentation[l.at], l.Waste[l.at] = fragmented, wasteOf(now.InUse, now.Requested)
}

// samplePoint stores the most of what is free, and the gauges if more is in use than ever within the point.
func (l *timeline) samplePoint(now *heap.Gauges) {
	if l.Step == 0 {
		return
	}
	l.MostCached[l.at], l.MostCooling[l.at] = max(l.MostCached[l.at], now.FreeBytes()), max(l.MostCooling[l.at], nonNegative(now.Cooling))
	if now.InUse <= l.most {
		return
	}
	l.most = now.InUse
	l.InUse[l.at], l.Cached[l.at], l.Cooling[l.at] = nonNegative(now.InUse), now.FreeBytes(), nonNegative(now.Cooling)
	for i, v := range l.tags {
		l.Tags[i].Values[l.at] = nonNegative(v)
	}
	if l.slabPlace >= 0 {
		l.free[l.slabPlace] = now.Room
	}
	for i, v := range l.free {
		l.Free[i].Values[l.at] = nonNegative(v)
	}
}

// wasteOf returns the internal fragmentation of what is in use.
func wasteOf(granted, requested int64) float64 {
	if granted <= 0 || requested > granted {
		return 0
	}
	return float64(granted-max(requested, 0)) / float64(granted)
}

// differenceOrZero returns b - a, 0 if a is larger.
func differenceOrZero(a, b uint64) uint64 { return b - min(a, b) }
