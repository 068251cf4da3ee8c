package report

import (
	"fmt"
	"slices"

	"codeberg.org/gpumemtop/gpumemtop/internal/plain"
	"codeberg.org/gpumemtop/gpumemtop/internal/wire"
)

// grown says how much more is in use after an iteration than before it.
func grown(bytes int64) htmlCell {
	switch {
	case bytes > 0:
		return numberCell("+"+bytesText(uint64(bytes)), float64(bytes))
	case bytes < 0:
		return numberCell("−"+bytesText(-uint64(bytes)), float64(bytes))
	}
	return numberCell("0", 0)
}

func (v *htmlView) peak() (htmlSection, bool) {
	p := &v.a.Peak
	s := htmlSection{ID: "peak", Title: "Who held the memory at the peak"}
	if len(p.Tags) == 0 {
		s.Intro = "Nothing was ever in use."
		return s, true
	}
	s.Intro = "At " + durationText(p.Time) + " most was in use: " + bytesText(p.InUse) + " in " + things(p.Buffers, "buffer")
	if !v.a.Run.Header.Attached {
		s.Intro += ", " + bytesText(p.Reserved) + " reserved"
	}
	s.Intro += "."
	t := htmlTable{Title: "Memory in use at the peak by call site", Left: v.left(len(p.Tags)),
		Columns: columns("call site", "#in use", "#share", "", "#requested", "#buffers")}
	for i := range p.Tags[:v.rows(len(p.Tags))] {
		tag := &p.Tags[i]
		t.Rows = append(t.Rows, []htmlCell{v.siteCell(tag.Name, tag.Stack), bytesCell(tag.InUse), rateCell(float64(tag.InUse)/float64(max(p.InUse, 1)), p.InUse),
			barCell(tag.InUse, p.Tags[0].InUse), bytesCell(tag.Requested), countCell(tag.Buffers)})
	}
	s.Tables = []htmlTable{t}
	return s, true
}

func (v *htmlView) misses() (htmlSection, bool) {
	s := htmlSection{ID: "misses", Title: "Misses by reason"}
	all := v.a.Misses[:min(len(v.a.Misses), 2*int(wire.MissPolicy))] // there are no more reasons
	if len(all) == 0 {
		s.Intro = "There was no miss."
		return s, true
	}
	var most uint64
	for i := range all {
		most = max(most, all[i].LostNS)
	}
	s.Intro = "Poolable creates for which the driver had to create a block, what that took, and the limit that would have helped."
	t := htmlTable{Title: "Misses by reason", Left: v.left(len(all)),
		Columns: columns("reason", "#time lost", "", "#misses", "#bytes", "limit to try")}
	for i := range all[:v.rows(len(all))] {
		m := &all[i]
		knob := htmlCell{Class: "knob"}
		if m.Knob.Limit != "" {
			knob.Code, knob.Text = []string{"--set", quoteWord(name(m.Knob.Limit + "=" + m.Knob.Value))}, shown(m.Knob.Why, htmlTextWidth)
		}
		t.Rows = append(t.Rows, []htmlCell{textCell(name(m.Reason)), durationCell(m.LostNS), barCell(m.LostNS, most), countCell(m.Count),
			bytesCell(m.Bytes), knob})
	}
	s.Tables = []htmlTable{t}
	return s, true
}

func (v *htmlView) lag() (htmlSection, bool) {
	l := &v.a.Lag
	s := htmlSection{ID: "lag", Title: "Held after the last use"}
	if l.Known == 0 {
		s.Intro = "No use of a released buffer was recorded, so nobody knows how long memory was held after its last use."
		return s, true
	}
	s.Intro = "From the last use to the release: p50 " + durationText(l.P50) + ", p99 " + durationText(l.P99) + " of " +
		things(l.Known, "buffer") + ", " + byteSecondsText(l.ByteSeconds) + " in all. " + things(l.Unused, "released buffer") +
		" had no use at all."
	if len(l.Tags) > 0 {
		t := htmlTable{Title: "Release lag by call site", Left: v.left(len(l.Tags)),
			Columns: columns("call site", "#bytes × time", "", "#p50", "#p99", "#buffers")}
		for i := range l.Tags[:v.rows(len(l.Tags))] {
			tag := &l.Tags[i]
			t.Rows = append(t.Rows, []htmlCell{v.siteCell(tag.Name, nil), numberCell(byteSecondsText(tag.ByteSeconds), tag.ByteSeconds),
				barCell(uint64(max(tag.ByteSeconds, 0)), uint64(max(l.Tags[0].ByteSeconds, 0))), durationCell(tag.P50), durationCell(tag.P99),
				countCell(tag.Known)})
		}
		s.Tables = []htmlTable{t}
	}
	return s, true
}

func (v *htmlView) temporaries() (htmlSection, bool) {
	s := htmlSection{ID: "temporaries", Title: "Temporaries"}
	if len(v.a.Temporaries) == 0 {
		s.Intro = "No call site has buffers that live for one iteration only."
		return s, true
	}
	s.Intro = "Buffers that lived within one iteration, or where none was found for less than a hundredth of the run: candidates for creating once and keeping."
	t := htmlTable{Title: "Temporaries by call site", Left: v.left(len(v.a.Temporaries)),
		Columns: columns("call site", "#bytes", "#temporary", "#creates", "#lifetime p50", "#driver time")}
	for i := range v.a.Temporaries[:v.rows(len(v.a.Temporaries))] {
		x := &v.a.Temporaries[i]
		t.Rows = append(t.Rows, []htmlCell{v.siteCell(x.Name, nil), bytesCell(x.Bytes), countCell(x.Buffers), countCell(x.Creates), durationCell(x.LifeP50),
			durationCell(x.DriverNS)})
	}
	s.Tables = []htmlTable{t}
	return s, true
}

func (v *htmlView) phases() (htmlSection, bool) {
	s := htmlSection{ID: "phases", Title: "Phases"}
	if len(v.a.Phases) == 0 {
		s.Intro = "No phases were found."
		return s, true
	}
	s.Intro = "Stretches in which a thread repeats a sequence of creates, and those between them. Growth is what the process has in use more after an iteration than before it."
	t := htmlTable{Title: "Phases", Left: v.left(len(v.a.Phases)),
		Columns: columns("#phase", "#start", "#duration", "#iterations", "#period", "#creates each", "#peak in use", "#growth each", "process, thread")}
	for i := range v.a.Phases[:v.rows(len(v.a.Phases))] {
		p := &v.a.Phases[i]
		none := numberCell("–", -1)
		row := []htmlCell{countCell(uint64(i + 1)), durationCell(p.Start), durationCell(p.End - min(p.Start, p.End)), none, none, none,
			bytesCell(p.PeakInUse), none, textCell(fmt.Sprintf("#%d, %d", p.Process, p.Thread))}
		if p.Iterations > 0 {
			row[3], row[4], row[5], row[7] = countCell(p.Iterations), durationCell(p.Period), countCell(p.Creates), grown(p.Growth)
		}
		t.Rows = append(t.Rows, row)
	}
	s.Tables = []htmlTable{t}
	return s, true
}

func (v *htmlView) leaks() (htmlSection, bool) {
	s := htmlSection{ID: "leaks", Title: "Leaks"}
	if len(v.a.Leaks) == 0 {
		s.Intro = "Every buffer was released."
		if v.goesOn() && v.s.Totals.InUse > 0 {
			s.Intro = "What is in use where this ends is no leak: the program goes on, and may release it."
		}
		return s, true
	}
	switch s.Intro = "Never released, by call site."; {
	case v.unsure():
		s.Intro = "In use where this ends, by call site. The program goes on there, and may release all of it."
	case v.goesOn():
		s.Intro += " The recording, or the part of it, ends before all of the program does: some of these may be no leaks."
	}
	t := htmlTable{Title: "Leaks by call site", Left: v.left(len(v.a.Leaks)),
		Columns: columns("call site", "#bytes", "", "#buffers", "#first at")}
	for i := range v.a.Leaks[:v.rows(len(v.a.Leaks))] {
		l := &v.a.Leaks[i]
		t.Rows = append(t.Rows, []htmlCell{v.siteCell(l.Name, l.Stack), bytesCell(l.Bytes), barCell(l.Bytes, v.a.Leaks[0].Bytes), countCell(l.Buffers),
			durationCell(l.Oldest)})
	}
	s.Tables = []htmlTable{t}
	return s, true
}

// processes tells them apart where there are several.
func (v *htmlView) processes() (htmlSection, bool) {
	all := v.s.Processes
	s := htmlSection{ID: "processes", Title: "Processes", Intro: countText(uint64(len(all))) + " processes made OpenCL calls."}
	if len(all) < 2 {
		return s, false
	}
	t := htmlTable{Title: "Processes", Left: v.left(len(all)),
		Columns: columns("#process", "#peak in use", "#left in use", "#creates", "#hit rate", "#start", "ended", "program")}
	const hitRate = 4 // the column of what there is only with a pool
	if v.a.Run.Header.Attached {
		t.Columns = slices.Delete(t.Columns, hitRate, hitRate+1)
	}
	if len(v.a.Run.Header.Merged) > 0 {
		t.Columns = append(t.Columns, htmlColumn{Name: "host"})
	}
	for i := range all[:v.rows(len(all))] {
		p := &all[i]
		row := []htmlCell{countCell(uint64(max(p.PID, 0))), bytesCell(p.Totals.PeakInUse), bytesCell(p.Totals.InUse), countCell(p.Totals.Creates),
			rateCell(p.Totals.HitRate(), p.Totals.Hits+p.Totals.Misses), durationCell(v.since(p.Started)), textCell(plain.Ended(p)),
			{Text: name(p.Program), Class: "site"}}
		row[0].Text = row[0].Sort // a process id is no amount
		if v.a.Run.Header.Attached {
			row = slices.Delete(row, hitRate, hitRate+1)
		}
		if len(v.a.Run.Header.Merged) > 0 {
			row = append(row, textCell(name(v.a.Run.Header.HostOf(p.Number))))
		}
		t.Rows = append(t.Rows, row)
	}
	s.Tables = []htmlTable{t}
	return s, true
}

func (v *htmlView) mistakes() (htmlSection, bool) {
	all := v.s.Findings
	s := htmlSection{ID: "mistakes", Title: "Mistakes of the program"}
	if len(all) == 0 {
		s.Intro = "None was seen."
		return s, true
	}
	s.Intro = things(uint64(len(all)), "mistake") + ", in the order of their first time."
	if v.s.OtherFindings > 0 {
		s.Intro += " " + things(v.s.OtherFindings, "other") + " came when this list was full."
	}
	t := htmlTable{Title: "Mistakes", Left: v.left(len(all)), Columns: columns("#first at", "#times", "kind", "certain", "what was wrong")}
	for i := range all[:v.rows(len(all))] {
		f := &all[i]
		certain := "no"
		if f.Certain() {
			certain = "yes"
		}
		text := *f
		text.Count, text.Tag, text.Function, text.Kernel = 1, shown(f.Tag, htmlNameWidth), shown(f.Function, htmlNameWidth), shown(f.Kernel, htmlNameWidth)
		t.Rows = append(t.Rows, []htmlCell{durationCell(v.since(f.First)), countCell(f.Count), textCell(f.Kind.String()), textCell(certain),
			{Text: shown(text.Text(bytesText), htmlTextWidth), Class: "site"}})
	}
	s.Tables = []htmlTable{t}
	return s, true
}

// happened lists the marks.
func (v *htmlView) happened() (htmlSection, bool) {
	s := htmlSection{ID: "happened", Title: "What happened"}
	if len(v.s.Marks) == 0 {
		s.Intro = "No limit was changed, nothing was lost, and no mistake was seen."
		return s, true
	}
	t := htmlTable{Title: "What happened", Left: v.left(len(v.s.Marks)), Columns: columns("#time", "kind", "what")}
	for i := range v.s.Marks[:v.rows(len(v.s.Marks))] {
		m := &v.s.Marks[i]
		t.Rows = append(t.Rows, []htmlCell{durationCell(v.since(m.Time)), textCell(m.Kind.String()), {Text: shown(m.Text, htmlTextWidth), Class: "site"}})
	}
	s.Tables = []htmlTable{t}
	return s, true
}
