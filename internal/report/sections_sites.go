package report

import (
	"fmt"

	"codeberg.org/gpumemtop/gpumemtop/internal/analysis"
	"codeberg.org/gpumemtop/gpumemtop/internal/figures"
	"codeberg.org/gpumemtop/gpumemtop/internal/stats"
	"codeberg.org/gpumemtop/gpumemtop/internal/units"
	"codeberg.org/gpumemtop/gpumemtop/internal/wire"
)

func fractionOf(n, whole uint64) float64 { return float64(n) / float64(max(whole, 1)) }

// memoryNoun is what the page calls the memory objects of the run.
func (v *view) memoryNoun() string { return stats.NounForMemory(v.s.Kinds, false) }

func (v *view) peakSection() section {
	p := &v.a.Peak
	s := section{ID: "peak", Title: "Call sites at the peak", Intro: "Nothing was ever in use."}
	if len(p.Tags) == 0 {
		return s
	}
	text := fmt.Sprintf("%s: %s in use by %s", v.clockText(p.Time), v.formatSize(p.InUse), v.countText(p.Buffers, v.memoryNoun()))
	switch {
	case v.s.Spill != nil: // memory that --spill took from the device was not reserved
		text += ", on device and host"
	case !v.isAttached():
		text += fmt.Sprintf(", %s reserved", v.formatSize(p.Reserved))
	}
	s.addFact("at", text)
	s.Intro = "At " + text + "."
	if lately := usedLatelyText(&p.Lately, p.InUse, v.formatSize); lately != "" {
		s.addFact("lately", lately)
		s.Intro += " Lately: " + lately + "."
	}
	t := v.newTable("Memory in use at the peak by call site", len(p.Tags), figureColumn(figures.InUse), numberColumn("share"), barColumn, numberColumn(v.memoryNoun()+"s"),
		figureColumn(figures.Requested).withPageOnly(), figureColumn(figures.Waste).withTextOnly(), wordsColumn("call site").withFirstPlace())
	for i := range p.Tags[:v.countRowsToShow(len(p.Tags))] {
		r := &p.Tags[i]
		stack := r.Stack
		if !v.page {
			stack = nil
		}
		t.addRow(v.bytesCell(r.InUse), v.rateCell(fractionOf(r.InUse, p.InUse), p.InUse), barCell(float64(r.InUse), float64(p.Tags[0].InUse)),
			v.countCell(r.Buffers), v.bytesCell(r.Requested), v.rateCell(wastedFraction(r.InUse, r.Requested), r.InUse), v.siteCell(r.Name, stack))
	}
	s.Tables = []table{t}
	return s
}

func wastedFraction(granted, requested uint64) float64 {
	return fractionOf(granted-min(requested, granted), granted)
}

func (v *view) missesSection() section {
	if v.isAttached() { // without a pool there are no misses
		return section{}
	}
	s := section{ID: "misses", Title: "Misses by reason", Intro: "There was no miss."}
	all := v.a.Misses[:min(len(v.a.Misses), 2*int(wire.MissPolicy))] // there are no more reasons
	if len(all) == 0 {
		return s
	}
	s.Intro = "Poolable creates for which the driver had to create a block, how long that took, and the limit that would have helped."
	var most uint64
	for i := range all {
		most = max(most, all[i].LostNS)
	}
	t := v.newTable("Misses by reason", len(all), figureColumn(figures.Misses), numberColumn("share").withTextOnly(), numberColumn("bytes"), figureColumn(figures.DriverTime), barColumn,
		wordsColumn("reason").withFirstPlace(), wordsColumn("limit to try").withPageOnly())
	for i := range all[:v.countRowsToShow(len(all))] {
		m := &all[i]
		knob := cell{Class: "knob"}
		text := string(m.Reason) + ": " + m.Knob.Why
		if m.Knob.Limit != "" && m.LostNS >= v.sinceStart(v.s.Time)/100 { // else too little to gain
			knob.Code, knob.Text = []string{"--set", quoteForShell(cleanName(m.Knob.Limit + "=" + m.Knob.Value))}, cleanText(m.Knob.Why, htmlTextWidth)
			text += "; try " + knobValueText(&m.Knob)
		}
		t.addRow(v.countCell(m.Count), v.rateCell(fractionOf(m.Count, v.run.Misses), v.run.Misses), v.bytesCell(m.Bytes), v.durationCell(m.LostNS),
			barCell(float64(m.LostNS), float64(most)), wordCell(v.nameCell(string(m.Reason), htmlNameWidth).Text), knob)
		s.Items = append(s.Items, text)
	}
	s.Tables = []table{t}
	return s
}

func (v *view) leaksSection() section {
	s := section{ID: "leaks", Title: "Leaks", Intro: "Every " + v.memoryNoun() + " was released."}
	list := v.a.Leaks
	if len(list) == 0 {
		switch {
		case v.mayProgramContinue() && v.run.InUse > 0:
			s.Intro = "The program continues after the end of this part and may release what is still in use."
		case v.run.Creates+v.run.Releases+v.run.InUse == 0:
			s.Intro = "No buffer was created."
		}
		s.Notes = []string{s.Intro}
		return s
	}
	switch s.Intro = "Never released, by call site."; {
	case v.s.WasAllHeldByKilled():
		s.Title, s.Intro = "Held at exit", "In use when "+v.s.AbortedText()+", by call site."
	case v.mayLeaksBeInUse():
		s.Intro = "In use at the end of this part, by call site. The program continues and may release all of it."
	case v.mayProgramContinue():
		s.Intro += " The recording, or the part of it, ends before the program does: some of these may be no leaks."
	}
	if v.s.Lost > 0 {
		s.Intro += " Some may have been released: events are lost."
	}
	if in := analysis.LeftByProcessText(v.s, list); in != "" {
		s.Notes = []string{in}
	}
	t := v.newTable("Leaks by call site", len(list), numberColumn(stats.NounForMemory(v.s.Kinds, true)+"s"), numberColumn("bytes"), barColumn, numberColumn("oldest"), wordsColumn("call site").withFirstPlace())
	for i := range list[:v.countRowsToShow(len(list))] {
		l := &list[i]
		t.addRow(v.countCell(l.Buffers), v.bytesCell(l.Bytes), barCell(float64(l.Bytes), float64(list[0].Bytes)), v.clockCell(l.Oldest),
			v.siteCell(l.Name, l.Stack))
	}
	s.Tables = []table{t}
	return s
}

func (v *view) temporariesSection() section {
	s := section{ID: "temporaries", Title: "Temporary " + v.memoryNoun() + "s", Intro: "No call site has " + v.memoryNoun() + "s that live for one iteration only."}
	list := v.a.Temporaries
	if len(list) == 0 {
		return s
	}
	s.Intro = "Buffers that lived within one iteration or, where no iterations were found, for less than a hundredth of the run: candidates for creating once and keeping."
	s.Notes = []string{"temporary: lived within one iteration or, where none was found, for less than a hundredth of the run"}
	t := v.newTable("Temporary buffers by call site", len(list), numberColumn("temporary"), figureColumn(figures.Creates),
		numberColumn("bytes"),
		numberColumn("lifetime p50"), figureColumn(figures.DriverTime), wordsColumn("call site").withFirstPlace())
	for i := range list[:v.countRowsToShow(len(list))] {
		r := &list[i]
		t.addRow(v.countCell(r.Buffers), v.countCell(r.Creates), v.bytesCell(r.Bytes), v.durationCell(r.LifeP50),
			v.durationCell(r.DriverNS),
			v.siteCell(r.Name, nil))
	}
	s.Tables = []table{t}
	return s
}

func (v *view) phasesSection() section {
	s := section{ID: "phases", Title: "Phases", Intro: "No phases were found."}
	list := v.phasesToShow()
	if len(list) == 0 {
		return s
	}
	s.Intro = "Times in which a thread repeats a sequence of creates, and other times in which more was in use than in those. Growth is how much more the process has in use after an iteration than before it."
	t := v.newTable("Phases", len(list), numberColumn("phase").withPageOnly(), numberColumn("from"), numberColumn("to"),
		numberColumn("iterations"),
		numberColumn("median period"), numberColumn("creates"), figureColumn(figures.Growth), figureColumn(figures.PeakInUse),
		wordsColumn("process, thread"))
	for _, i := range list[:v.countRowsToShow(len(list))] {
		p := &v.a.Phases[i]
		iterations, period, creates, growth := v.unknownCell(), v.unknownCell(), v.unknownCell(), v.unknownCell()
		if p.Iterations > 0 {
			iterations = v.countCell(p.Iterations)
			period, creates, growth = v.durationCell(p.Period), v.countCell(p.Creates), v.growthCell(p.MedianGrowth())
			if mean := p.Mean; p.Straight && !p.GrowsEvenly() {
				growth = v.growthCell(mean)
				growth.Text = "about " + growth.Text
			}
		}
		t.addRow(v.countCell(uint64(i+1)), v.clockCell(p.Start), v.clockCell(p.End), iterations, period, creates, growth,
			v.bytesCell(p.PeakInUse), wordCell(fmt.Sprintf("#%d, %d", p.Process, p.Thread)))
	}
	s.Tables = []table{t}
	return s
}

// phasesToShow returns the indices of interesting phases: those that repeat, and others with more memory in use than those.
func (v *view) phasesToShow() []int {
	var repeated uint64
	for i := range v.a.Phases {
		if p := &v.a.Phases[i]; p.Iterations > 0 {
			repeated = max(repeated, p.PeakInUse)
		}
	}
	var places []int
	for i := range v.a.Phases {
		if p := &v.a.Phases[i]; p.Iterations > 0 || repeated > 0 && p.PeakInUse > repeated {
			places = append(places, i)
		}
	}
	return places
}

// growthCell shows how much more memory is in use after an iteration than before it.
func (v *view) growthCell(bytes int64) cell {
	if bytes == 0 {
		return numberCell("0", 0)
	}
	sign, size := "+", uint64(bytes)
	if bytes < 0 {
		sign, size = "-", -size
	}
	if bytes < 0 && v.page {
		sign = "−"
	}
	return numberCell(sign+v.bytesCell(size).Text, float64(bytes))
}

func (v *view) lagSection() section {
	l := &v.a.Lag
	s := section{ID: "lag", Title: "Held after the last use", Intro: "No use of a released buffer was recorded, so it is unknown how long memory was held after its last use."}
	if l.Known+l.Unused+l.Unsure == 0 {
		switch {
		case v.run.Uses > 0 || v.run.Releases == 0:
		case !v.a.HasUses():
			s.Notes = []string{"unknown: uses were not recorded"}
		default:
			s.Intro = "No command ever used a buffer that was released."
			s.Notes = []string{"never used: no command used a buffer that was released"}
		}
		return s
	}
	more := "more "
	switch {
	case l.Known > 0:
		held := fmt.Sprintf("%s of %s, at least %s in all", stats.SpreadText(l.Known, v.formatDuration(l.P50), v.formatDuration(l.P99)), v.countText(l.Known, v.memoryNoun()),
			v.byteSecondsText(l.ByteSeconds))
		s.Intro = fmt.Sprintf("From the end of the last use, as the program's waits show it, to the release: %s. %s had no use at all.", held,
			v.countText(l.Unused, "released "+v.memoryNoun()))
		s.addFact("all", fmt.Sprintf("%s; %d never used", held, l.Unused))
	case l.Unused > 0:
		s.Intro = fmt.Sprintf("%s had no use at all.", v.countText(l.Unused, "released "+v.memoryNoun()))
		s.addFact("all", fmt.Sprintf("%d never used", l.Unused))
	default:
		more = ""
	}
	if l.Unsure > 0 {
		s.addFact("unknown", v.countText(l.Unsure, more+"buffer")+": the end of the last use is unknown")
	}
	if len(l.Tags) == 0 {
		return s
	}
	t := v.newTable("Held after the last use, by call site", len(l.Tags), numberColumn("bytes × s"), barColumn,
		numberColumn(v.memoryNoun()+"s"), numberColumn("p50"), numberColumn("p99"), wordsColumn("call site").withFirstPlace())
	for i := range l.Tags[:v.countRowsToShow(len(l.Tags))] {
		r, p99 := &l.Tags[i], v.unknownCell()
		if r.Known >= stats.EnoughForP99 {
			p99 = v.durationCell(r.P99)
		}
		t.addRow(numberCell(v.byteSecondsText(r.ByteSeconds), r.ByteSeconds), barCell(r.ByteSeconds, l.Tags[0].ByteSeconds),
			v.countCell(r.Known),
			v.durationCell(r.P50), p99, v.siteCell(r.Name, nil))
	}
	s.Tables = []table{t}
	return s
}

// byteSecondsText writes memory × time.
func (v *view) byteSecondsText(n float64) string {
	return v.narrowSpaces(units.FormatLong(uint64(max(0, min(n, 1<<62))))) + "·s"
}

// processesSection lists the processes by peak, if there are several.
func (v *view) processesSection() section {
	all := processesByPeak(v.s.Processes)
	if len(all) < 2 {
		return section{}
	}
	h := &v.a.Run.Header
	s := section{ID: "processes", Title: "Processes", Intro: countText(uint64(v.s.ProcessCount())) + " processes made OpenCL calls."}
	columns := []column{numberColumn("pid"), figureColumn(figures.Creates), figureColumn(figures.Hits).withTextOnly(), figureColumn(figures.HitRate), figureColumn(figures.PeakInUse),
		atEndColumn, numberColumn("start").withPageOnly(), wordsColumn("ended"), wordsColumn("program")}
	if v.page && len(h.Merged) > 0 {
		columns = append(columns, wordsColumn("host").withPageOnly())
	}
	t := v.newTable("Processes by peak", len(all), columns...)
	for _, p := range all[:v.countRowsToShow(len(all))] {
		program := v.nameCell(p.Program, htmlNameWidth)
		if !v.page {
			program.Text = units.ProgramName(p.Program)
		}
		r := figures.SubjectOfProcess(p, v.s.Time)
		v.addFigureRow(&t, func(f *figures.Figure) figures.Value { return f.ValueOf(r) }, numberCell(processIDText(p), float64(p.PID)),
			v.clockCell(v.sinceStart(p.Started)), wordCell(howProcessEndedText(p)), program, wordCell(cleanName(h.HostOf(p.Number))))
	}
	s.Tables = []table{t}
	return s
}

// mistakesSection lists the findings.
func (v *view) mistakesSection() section {
	all := v.s.Findings
	s := section{ID: "mistakes", Title: "Mistakes of the program", Intro: "None was seen."}
	if len(all) == 0 {
		return s
	}
	s.Intro = v.countText(uint64(len(all)), "mistake") + ", in the order of their first time."
	if v.s.OtherFindings > 0 {
		more := v.countText(v.s.OtherFindings, "other") + " came when this list was full"
		s.Intro += " " + more + "."
		s.Notes = append(s.Notes, "and "+more)
	}
	t := v.newTable("Mistakes", len(all), numberColumn("first at"), numberColumn("times"), wordsColumn("kind"), wordsColumn("certain"),
		wordsColumn("mistake"))
	for i := range all[:v.countRowsToShow(len(all))] {
		f := &all[i]
		if !v.page {
			s.Items = append(s.Items, units.Clean(v.clockTextOfTime(f.First)+" "+f.Text(units.FormatLong)))
			continue
		}
		certain := "no"
		if f.IsCertain() {
			certain = "yes"
		}
		once := *f
		once.Count, once.Tag, once.Function, once.Kernel = 1, cleanText(f.Tag, htmlNameWidth), cleanText(f.Function, htmlNameWidth), cleanText(f.Kernel, htmlNameWidth)
		t.addRow(v.clockCell(v.sinceStart(f.First)), v.countCell(f.Count), wordCell(f.Kind.String()), wordCell(certain), v.nameCell(once.Text(bytesText), htmlTextWidth))
	}
	s.Tables = []table{t}
	if t.Left != "" {
		s.Notes = append([]string{t.Left}, s.Notes...)
	}
	for i := range all {
		if kind := all[i].Kind; kind == wire.DiagStaleRead || kind == wire.DiagStaleArgument {
			s.Notes = append(s.Notes, "(Of kernels only the arguments are known: a kernel that may write an argument counts as having written it.)")
			break
		}
	}
	return s
}

// marksSection lists the marks.
func (v *view) marksSection() section {
	all := v.s.Marks
	s := section{ID: "happened", Title: "What happened", Intro: "No limit was changed, no event was lost, and no mistake was seen."}
	if len(all) == 0 {
		return s
	}
	s.Intro = ""
	n := len(all)
	if v.page {
		n = v.countRowsToShow(n)
	}
	t := v.newTable("What happened", n, numberColumn("time"), wordsColumn("kind"), wordsColumn("what").withSentence())
	if left := len(all) - n; left > 0 {
		t.Left = "and " + v.countText(uint64(left), "more row")
	}
	for i := range all[:n] {
		m := &all[i]
		t.addRow(v.clockCell(v.sinceStart(m.Time)), wordCell(m.Kind.String()), v.nameCell(m.Text, htmlTextWidth))
	}
	s.Tables = []table{t}
	if len(all) == stats.MarksMax {
		s.Notes = []string{fmt.Sprintf("(the last %d)", stats.MarksMax)}
	}
	return s
}
