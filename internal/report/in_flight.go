package report

import (
	"cmp"
	"fmt"
	"slices"

	"codeberg.org/gpumemtop/gpumemtop/internal/figures"
	"codeberg.org/gpumemtop/gpumemtop/internal/stats"
	"codeberg.org/gpumemtop/gpumemtop/internal/units"
)

// releasedInFlightText says how much memory the program released before it waited for the commands that use it; empty: none.
func releasedInFlightText(t *figures.Subject) string {
	f := &t.InFlight
	if f.Releases == 0 {
		return ""
	}
	return fmt.Sprintf("%s (%s) before a wait for the commands that use the memory; at most %s at once, %s at the end", units.Count(f.Releases, "release"),
		units.FormatLong(f.Bytes), units.FormatLong(f.Peak), units.FormatLong(f.Now))
}

// releasedInFlightLines returns the lines of a summary; none for a program that waits soon.
func releasedInFlightLines(t *figures.Subject) []string {
	if t.InFlight.Peak <= t.PeakInUse {
		return nil
	}
	return linesWithLabel("in flight", []string{releasedInFlightText(t)})
}

// releasedInFlightSection lists the call sites of memory that was released in flight.
func (v *view) releasedInFlightSection() section {
	list := slices.DeleteFunc(slices.Clone(v.s.Tags), func(t stats.Tag) bool { return t.InFlight.Releases == 0 })
	if len(list) == 0 {
		return section{}
	}
	slices.SortStableFunc(list, func(a, b stats.Tag) int { return cmp.Compare(b.InFlight.Bytes, a.InFlight.Bytes) })
	s := section{
		ID: "in-flight", Title: "Released in flight", Intro: "Given back to the driver before the program had waited for the commands that use it, by call site of " +
			"the create. A driver keeps such memory until they end.",
	}
	t := v.newTable("Released in flight, by call site", len(list), figureColumn(figures.ReleasesInFlight), figureColumn(figures.BytesReleasedInFlight), wordsColumn("call site").withFirstPlace())
	for i := range list[:v.countRowsToShow(len(list))] {
		r := &list[i]
		v.addFigureRow(&t, func(f *figures.Figure) figures.Value { return f.ValueOfSite(v.run, r) }, v.siteCell(r.Name, nil))
	}
	s.Tables = []table{t}
	return s
}
