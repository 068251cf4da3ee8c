package report

import (
	"fmt"

	"codeberg.org/gpumemtop/gpumemtop/internal/analysis"
	"codeberg.org/gpumemtop/gpumemtop/internal/figures"
	"codeberg.org/gpumemtop/gpumemtop/internal/stats"
	"codeberg.org/gpumemtop/gpumemtop/internal/units"
	"codeberg.org/gpumemtop/gpumemtop/internal/wire"
)

func fraction(n, whole uint64) float64 { return float64(n) / float64(max(whole, 1)) }

// noun is what the page calls the memory objects of the run.
func (v *view) noun() string { return stats.Noun(v.s.Kinds, false) }

func (v *view) peak() section {
	p := &v.a.Peak
	s := section{ID: "peak", Title: "Call sites at the peak", Intro: "Nothing was ever in use."}
	if len(p.Tags) == 0 {
		return s
	}
	text := fmt.Sprintf("%s: %s in use by %s", v.clock(p.Time), v.size(p.InUse), v.countText(p.Buffers, v.noun()))
	switch {
	case v.s.Spill != nil: // memory that --spill took from the device was not reserved
		text += ", on device and host"
	case !v.attached():
		text += fmt.Sprintf(", %s reserved", v.size(p.Reserved))
	}
	s.addFact("at", text)
	s.Intro = "At " + text + "."
	if lately := latelyText(&p.Lately, p.InUse, v.size); lately != "" {
		s.addFact("lately", lately)
		s.Intro += " Lately: " + lately + "."
	}
	t := v.table("Memory in use at the peak by call site", len(p.Tags), figure(figures.InUse), number("share"), barColumn, number(v.noun()+"s"),
		figure(figures.Requested).onPage(), figure(figures.Waste).inText(), words("call site").front())
	for i := range p.Tags[:v.shownRows(len(p.Tags))] {
		r := &p.Tags[i]
		stack := r.Stack
		if !v.page {
			stack = nil
		}
		t.add(v.bytesCell(r.InUse), v.rateCell(fraction(r.InUse, p.InUse), p.InUse), barCell(float64(r.InUse), float64(p.Tags[0].InUse)),
			v.countCell(r.Buffers), v.bytesCell(r.Requested), v.rateCell(wastedFraction(r.InUse, r.Requested), r.InUse), v.siteCell(r.Name, stack))
	}
	s.Tables = []table{t}
	return s
}

func wastedFraction(granted, requested uint64) float64 {
	return fraction(granted-min(requested, granted), granted)
}

func (v *view) misses() section {
	if v.attached() { // without a pool there are no misses
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
	t := v.table("Misses by reason", len(all), figure(figures.Misses), number("share").inText(), number("bytes"), figure(figures.DriverTime), barColumn,
		words("reason").front(), words("limit to try").onPage())
	for i := range all[:v.shownRows(len(all))] {
		m := &all[i]
		knob := cell{Class: "knob"}
		text := string(m.Reason) + ": " + m.Knob.Why
		if m.Knob.Limit != "" && m.LostNS >= v.sinceStart(v.s.Time)/100 { // else too little to gain
			knob.Code, knob.Text = []string{"--set", quoteWord(name(m.Knob.Limit + "=" + m.Knob.Value))}, cleanText(m.Knob.Why, htmlTextWidth)
			text += "; try " + knobValue(&m.Knob)
		}
		t.add(v.countCell(m.Count), v.rateCell(fraction(m.Count, v.run.Misses), v.run.Misses), v.bytesCell(m.Bytes), v.durationCell(m.LostNS),
			barCell(float64(m.LostNS), float64(most)), wordCell(v.nameCell(string(m.Reason), htmlNameWidth).Text), knob)
		s.Items = append(s.Items, text)
	}
	s.Tables = []table{t}
	return s
}

func (v *view) leaks() section {
	s := section{ID: "leaks", Title: "Leaks", Intro: "Every " + v.noun() + " was released."}
	list := v.a.Leaks
	if len(list) == 0 {
		switch {
		case v.mayContinue() && v.run.InUse > 0:
			s.Intro = "The program continues after the end of this part and may release what is still in use."
		case v.run.Creates+v.run.Releases+v.run.InUse == 0:
			s.Intro = "No buffer was created."
		}
		s.Notes = []string{s.Intro}
		return s
	}
	switch s.Intro = "Never released, by call site."; {
	case v.s.HeldAtExit():
		s.Title, s.Intro = "Held at exit", "In use when "+v.s.AbortedBy()+" ended the program, by call site."
	case v.mayNotLeak():
		s.Intro = "In use at the end of this part, by call site. The program continues and may release all of it."
	case v.mayContinue():
		s.Intro += " The recording, or the part of it, ends before the program does: some of these may be no leaks."
	}
	if v.s.Lost > 0 {
		s.Intro += " Some may have been released: events are lost."
	}
	if in := analysis.LeftIn(v.s, list); in != "" {
		s.Notes = []string{in}
	}
	t := v.table("Leaks by call site", len(list), number(stats.Noun(v.s.Kinds, true)+"s"), number("bytes"), barColumn, number("oldest"), words("call site").front())
	for i := range list[:v.shownRows(len(list))] {
		l := &list[i]
		t.add(v.countCell(l.Buffers), v.bytesCell(l.Bytes), barCell(float64(l.Bytes), float64(list[0].Bytes)), v.clockCell(l.Oldest),
			v.siteCell(l.Name, l.Stack))
	}
	s.Tables = []table{t}
	return s
}

func (v *view) temporaries() section {
	s := section{ID: "temporaries", Title: "Temporary " + v.noun() + "s", Intro: "No call site has buffers that live for one iteration only."}
	list := v.a.Temporaries
	if len(list) == 0 {
		return s
	}
	s.Intro = "Buffers that lived within one iteration or, where no iterations were found, for less than a hundredth of the run: candidates for creating once and keeping."
	s.Notes = []string{"temporary: lived within one iteration or, where none was found, for less than a hundredth of the run"}
	t := v.table("Temporary buffers by call site", len(list), number("temporary"), figure(figures.Creates), number("bytes"),
		number("lifetime p50"), figure(figures.DriverTime), words("call site").front())
	for i := range list[:v.shownRows(len(list))] {
		r := &list[i]
		t.add(v.countCell(r.Buffers), v.countCell(r.Creates), v.bytesCell(r.Bytes), v.durationCell(r.LifeP50), v.durationCell(r.DriverNS),
			v.siteCell(r.Name, nil))
	}
	s.Tables = []table{t}
	return s
}

func (v *view) phases() section {
	s := section{ID: "phases", Title: "Phases", Intro: "No phases were found."}
	list := v.phasesShown()
	if len(list) == 0 {
		return s
	}
	s.Intro = "Times in which a thread repeats a sequence of creates, and other times in which more was in use than in those. Growth is how much more the process has in use after an iteration than before it."
	t := v.table("Phases", len(list), number("phase").onPage(), number("from"), number("to"), number("iterations"),
		number("median period"), number("creates"), figure(figures.Growth), figure(figures.PeakInUse), words("process, thread"))
	for _, i := range list[:v.shownRows(len(list))] {
		p := &v.a.Phases[i]
		iterations, period, creates, growth := v.noneCell(), v.noneCell(), v.noneCell(), v.noneCell()
		if p.Iterations > 0 {
			iterations = v.countCell(p.Iterations)
			period, creates, growth = v.durationCell(p.Period), v.countCell(p.Creates), v.growthCell(p.Grown())
			if mean := p.Mean; p.Straight && !p.Even() {
				growth = v.growthCell(mean)
				growth.Text = "about " + growth.Text
			}
		}
		t.add(v.countCell(uint64(i+1)), v.clockCell(p.Start), v.clockCell(p.End), iterations, period, creates, growth,
			v.bytesCell(p.PeakInUse), wordCell(fmt.Sprintf("#%d, %d", p.Process, p.Thread)))
	}
	s.Tables = []table{t}
	return s
}

// phasesShown returns the indices of interesting phases: those that repeat, and others with more memory in use than those.
func (v *view) phasesShown() []int {
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

func (v *view) lag() section {
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
		held := fmt.Sprintf("%s of %s, at least %s in all", stats.Spread(l.Known, v.duration(l.P50), v.duration(l.P99)), v.countText(l.Known, v.noun()),
			v.byteSeconds(l.ByteSeconds))
		s.Intro = fmt.Sprintf("From the end of the last use, as the program's waits show it, to the release: %s. %s had no use at all.", held,
			v.countText(l.Unused, "released buffer"))
		s.addFact("all", fmt.Sprintf("%s; %d never used", held, l.Unused))
	case l.Unused > 0:
		s.Intro = fmt.Sprintf("%s had no use at all.", v.countText(l.Unused, "released buffer"))
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
	t := v.table("Held after the last use, by call site", len(l.Tags), number("bytes × s"), barColumn,
		number(v.noun()+"s"), number("p50"), number("p99"), words("call site").front())
	for i := range l.Tags[:v.shownRows(len(l.Tags))] {
		r, p99 := &l.Tags[i], v.noneCell()
		if r.Known >= stats.EnoughForP99 {
			p99 = v.durationCell(r.P99)
		}
		t.add(numberCell(v.byteSeconds(r.ByteSeconds), r.ByteSeconds), barCell(r.ByteSeconds, l.Tags[0].ByteSeconds), v.countCell(r.Known),
			v.durationCell(r.P50), p99, v.siteCell(r.Name, nil))
	}
	s.Tables = []table{t}
	return s
}

// byteSeconds writes memory × time.
func (v *view) byteSeconds(n float64) string {
	return v.spaced(units.FormatLong(uint64(max(0, min(n, 1<<62))))) + "·s"
}

// processes lists the processes by peak, if there are several.
func (v *view) processes() section {
	all := processesByPeak(v.s.Processes)
	if len(all) < 2 {
		return section{}
	}
	h := &v.a.Run.Header
	s := section{ID: "processes", Title: "Processes", Intro: countText(uint64(v.s.ProcessCount())) + " processes made OpenCL calls."}
	columns := []column{number("pid"), figure(figures.Creates), figure(figures.Hits).inText(), figure(figures.HitRate), figure(figures.PeakInUse),
		figure(figures.InUse), number("start").onPage(), words("ended"), words("program")}
	if v.page && len(h.Merged) > 0 {
		columns = append(columns, words("host").onPage())
	}
	t := v.table("Processes by peak", len(all), columns...)
	for _, p := range all[:v.shownRows(len(all))] {
		program := v.nameCell(p.Program, htmlNameWidth)
		if !v.page {
			program.Text = units.ProgramName(p.Program)
		}
		r := figures.Process(p, v.s.Time)
		v.addFigures(&t, func(f *figures.Figure) figures.Value { return f.Of(r) }, numberCell(pidText(p), float64(p.PID)),
			v.clockCell(v.sinceStart(p.Started)), wordCell(endedText(p)), program, wordCell(name(h.HostOf(p.Number))))
	}
	s.Tables = []table{t}
	return s
}

// mistakes lists the findings.
func (v *view) mistakes() section {
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
	t := v.table("Mistakes", len(all), number("first at"), number("times"), words("kind"), words("certain"), words("mistake"))
	for i := range all[:v.shownRows(len(all))] {
		f := &all[i]
		if !v.page {
			s.Items = append(s.Items, units.Clean(v.clockOf(f.First)+" "+f.Text(units.FormatLong)))
			continue
		}
		certain := "no"
		if f.Certain() {
			certain = "yes"
		}
		once := *f
		once.Count, once.Tag, once.Function, once.Kernel = 1, cleanText(f.Tag, htmlNameWidth), cleanText(f.Function, htmlNameWidth), cleanText(f.Kernel, htmlNameWidth)
		t.add(v.clockCell(v.sinceStart(f.First)), v.countCell(f.Count), wordCell(f.Kind.String()), wordCell(certain), v.nameCell(once.Text(bytesText), htmlTextWidth))
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

// happened lists the marks.
func (v *view) happened() section {
	all := v.s.Marks
	s := section{ID: "happened", Title: "What happened", Intro: "No limit was changed, no event was lost, and no mistake was seen."}
	if len(all) == 0 {
		return s
	}
	s.Intro = ""
	n := len(all)
	if v.page {
		n = v.shownRows(n)
	}
	t := v.table("What happened", n, number("time"), words("kind"), words("what").sentence())
	if left := len(all) - n; left > 0 {
		t.Left = "and " + v.countText(uint64(left), "more row")
	}
	for i := range all[:n] {
		m := &all[i]
		t.add(v.clockCell(v.sinceStart(m.Time)), wordCell(m.Kind.String()), v.nameCell(m.Text, htmlTextWidth))
	}
	s.Tables = []table{t}
	if len(all) == stats.MarksMax {
		s.Notes = []string{fmt.Sprintf("(the last %d)", stats.MarksMax)}
	}
	return s
}
