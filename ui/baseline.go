package ui

import (
	"slices"

	"codeberg.org/gpumemtop/gpumemtop/internal/stats"
	"codeberg.org/gpumemtop/gpumemtop/internal/units"
)

// baseline is a moment from which counts begin again. Memory in use and other present values do not change.
type baseline struct {
	at          *stats.Snapshot // nil: the start of the run
	from, shown *stats.Snapshot // the last snapshot, and the same with counts since the baseline
}

// toggleBaseline lets counts begin now, or at the start of the run again.
func (d *dashboard) toggleBaseline() {
	b := &d.baseline
	switch {
	case b.at != nil:
		*b = baseline{}
		d.sayMessage(dim, "counts are those since the start again")
	case d.live == nil:
		d.sayMessage(dim, "there is nothing to count yet")
	default:
		*b = baseline{at: d.live}
		d.sayMessage(goodStyle, "counts and hit rates are those from now on; B takes them from the start again")
	}
	d.tags.orderRows(d.shownSnapshot())
}

// sinceBaselineText says since when counts are taken.
func (b *baseline) sinceBaselineText() string {
	return " SINCE " + units.FormatClock(differenceOrZero(b.at.Started, b.at.Time)) + " "
}

// countsSinceBaseline returns a snapshot with the counts since the baseline. A moment before it stays as it is.
func (b *baseline) countsSinceBaseline(s *stats.Snapshot) *stats.Snapshot {
	if b.at == nil || s == nil || s.Time < b.at.Time {
		return s
	}
	if b.from == s {
		return b.shown
	}
	less := *s
	less.Totals = totalsSince(&b.at.Totals, &s.Totals)
	less.Tags = tagsSince(b.at.Tags, s.Tags)
	less.Processes = slices.Clone(s.Processes)
	for i := range less.Processes {
		p := &less.Processes[i]
		at := slices.IndexFunc(b.at.Processes, func(old stats.Process) bool { return old.Number == p.Number })
		if at >= 0 {
			p.Totals, p.Tags = totalsSince(&b.at.Processes[at].Totals, &p.Totals), tagsSince(b.at.Processes[at].Tags, p.Tags)
		}
	}
	b.from, b.shown = s, &less
	return b.shown
}

func totalsSince(was, is *stats.Totals) stats.Totals {
	t := *is
	for _, c := range []struct{ to, from *uint64 }{
		{&t.Hits, &was.Hits}, {&t.Misses, &was.Misses}, {&t.Creates, &was.Creates}, {&t.Releases, &was.Releases}, {&t.Failures, &was.Failures},
		{&t.Unpooled, &was.Unpooled}, {&t.DriverCreates, &was.DriverCreates}, {&t.DriverReleases, &was.DriverReleases},
		{&t.DriverNS, &was.DriverNS}, {&t.Saved.NS, &was.Saved.NS}, {&t.Uses, &was.Uses}, {&t.Syncs, &was.Syncs},
	} {
		*c.to = differenceOrZero(*c.from, *c.to)
	}
	for i := range t.MissReasons {
		t.MissReasons[i] = differenceOrZero(was.MissReasons[i], t.MissReasons[i])
	}
	for i := range t.Evictions {
		t.Evictions[i] = differenceOrZero(was.Evictions[i], t.Evictions[i])
	}
	return t
}

func tagsSince(was, is []stats.Tag) []stats.Tag {
	places := make(map[uint32]int, len(was))
	for i := range was {
		places[was[i].ID] = i
	}
	tags := slices.Clone(is)
	for i := range tags {
		t := &tags[i]
		at, known := places[t.ID]
		if !known {
			continue
		}
		old := &was[at]
		t.Hits, t.Misses, t.Creates = differenceOrZero(old.Hits, t.Hits), differenceOrZero(old.Misses, t.Misses), differenceOrZero(old.Creates, t.Creates)
		for k := range t.MissReasons {
			t.MissReasons[k] = differenceOrZero(old.MissReasons[k], t.MissReasons[k])
		}
	}
	return tags
}
