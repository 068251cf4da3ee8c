package report

import (
	"fmt"

	"codeberg.org/gpumemtop/gpumemtop/internal/stats"
	"codeberg.org/gpumemtop/gpumemtop/internal/units"
)

// spillTexts return sentences about --spill; none if it took nothing from the device.
func spillTexts(s *stats.Spill) []string {
	if s == nil {
		return nil
	}
	texts := []string{
		fmt.Sprintf("%s to the host in %s, %s back in %d; calls waited %s", units.FormatLong(s.Out.Bytes), units.Count(s.Out.Times, "move"),
			units.FormatLong(s.In.Bytes), s.In.Times, units.Duration(s.Stalls.NS)),
		fmt.Sprintf("peak %s resident, %s spilled; at the end %s and %s", units.FormatLong(s.PeakResident), units.FormatLong(s.PeakSpilled),
			units.FormatLong(s.Resident), units.FormatLong(s.Spilled)),
	}
	if s.Thrashing {
		site := ""
		if len(s.Sites) > 0 {
			site = " at " + units.Clean(s.Sites[0].Tag)
		}
		needed, held := units.FormatApart(s.WorkingSet, s.PeakResident)
		texts = append(texts, fmt.Sprintf("thrashing%s: to keep nine in ten of the buffers that came back takes %s; the device held %s", site, needed, held))
	}
	return texts
}

// spillSection returns the section about bytes that --spill moved.
func (v *view) spillSection() section {
	p := v.s.Spill
	if p == nil {
		return section{}
	}
	s := section{ID: "spill", Title: "Spilled", Intro: "With --spill, buffers that no command uses go to host memory when the device has no room."}
	for i, text := range spillTexts(p) {
		s.addFact([...]string{"moved", "memory", "warning"}[i], text)
	}
	s.addFact("at once", fmt.Sprintf("a command that waited needed %s at most, the largest buffer of it from %s", units.FormatLong(p.Needed), units.Clean(p.NeededSite)))
	t := v.newTable("Moves of buffers, by call site", len(p.Sites), numberColumn("out"), numberColumn("moves"), numberColumn("took"),
		numberColumn("back"), numberColumn("moves back"), numberColumn("took"), wordsColumn("call site").withFirstPlace())
	for i := range p.Sites[:v.countRowsToShow(len(p.Sites))] {
		x := &p.Sites[i]
		t.addRow(v.bytesCell(x.Out.Bytes), v.countCell(x.Out.Times), v.durationCell(x.Out.NS),
			v.bytesCell(x.In.Bytes), v.countCell(x.In.Times), v.durationCell(x.In.NS), v.siteCell(x.Tag, nil))
	}
	s.Tables = []table{t}
	return s
}
