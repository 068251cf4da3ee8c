package report

import (
	"cmp"
	"fmt"
	"slices"
	"strings"

	"codeberg.org/gpumemtop/gpumemtop/internal/analysis"
	"codeberg.org/gpumemtop/gpumemtop/internal/figures"
	"codeberg.org/gpumemtop/gpumemtop/internal/stats"
	"codeberg.org/gpumemtop/gpumemtop/internal/units"
)

// diagnosesMax bounds the diagnoses of a text; JSON has all.
const diagnosesMax = 8

// commandWidth bounds a command line, characters.
const commandWidth = 240

func (v *view) commandLineText() string {
	text := strings.Join(append([]string{v.s.Program}, v.s.Arguments...), " ")
	switch {
	case v.isAttached() && v.s.Program == "":
		text = "attached to nothing: no matching process came"
	case v.isAttached():
		text = "attached to " + text
	case v.s.Program == "":
		text = "the program"
	}
	return units.Cut(text, commandWidth)
}

func (v *view) headSection() section {
	s := section{Facts: [][2]string{{"program", v.commandLineText()}}}
	add := s.factAdder()
	add("time", "%s, %d events", v.clockTextOfTime(v.s.EndTime()), v.s.Events)
	if n := v.a.Run.Before; n > 0 {
		add("before", "%s from before attach, whose sizes are known only as far as used", units.Count(n, "buffer"))
	}
	v.addPartFacts(add)
	if v.s.Lost > 0 {
		add("lost", "%d events (%d of them uses): figures may be too high or too low", v.s.Lost, v.s.LostUses)
	}
	if text := estimatedPeaksText(v.s); text != "" {
		add("order", "%s", text)
	}
	if v.s.Unknown > 0 {
		add("unknown", "%s about unknown objects", units.Count(v.s.Unknown, "event"))
	}
	for _, text := range v.s.Exceeded {
		add("too much", "%s", text)
	}
	if v.a.Damage != "" {
		add("damage", "%s", v.a.Damage)
	}
	return s
}

// factAdder returns a function that adds facts without control characters.
func (s *section) factAdder() func(name, format string, args ...any) {
	return func(name, format string, args ...any) { s.addFact(name, units.Clean(fmt.Sprintf(format, args...))) }
}

// settingsSection lists the settings of the run.
func (v *view) settingsSection() section {
	s := section{Title: "Settings", Facts: [][2]string{{"policy", policyText(v.s)}}}
	add := s.factAdder()
	for i := range v.s.Limits {
		add("limit", "%s = %s", v.s.Limits[i].Name, v.limitValueText(&v.s.Limits[i]))
	}
	if d := v.s.Device; d.Name != "" {
		add("device", "%s (%s), %s", d.Name, d.Driver, units.FormatLong(d.Global))
	}
	if text := severalDevicesText(v.s); text != "" {
		add("", "%s", text)
	}
	if text := devicesText(v.s); text != "" {
		add("devices", "%s", text)
	}
	return s
}

// severalDevicesText says what is unknown where a process uses several devices; empty: none does.
func severalDevicesText(s *stats.Snapshot) string {
	most := s.MostDevicesOfProcess()
	if most < 2 {
		return ""
	}
	return fmt.Sprintf("a process uses %d devices: what each of them holds is not known", most)
}

// devicesText lists the devices if there are several, and says so if only the numbers within a process distinguish them.
func devicesText(s *stats.Snapshot) string {
	if len(s.Devices) < 2 {
		return ""
	}
	names, numbered := make([]string, len(s.Devices)), false
	for i := range s.Devices {
		names[i] = s.Devices[i].Name
		numbered = numbered || strings.Contains(names[i], " #")
	}
	text := strings.Join(names, ", ")
	if numbered {
		text += "; the driver gives no PCI address of those with a number, which is the process's own"
	}
	return text
}

// addPartFacts adds facts about the part of the recording that the report covers.
func (v *view) addPartFacts(add func(name, format string, args ...any)) {
	r := &v.a.Run
	switch {
	case r.Until > 0:
		add("part", "from %v to %v after the start", r.Since, r.Until)
	case r.Since > 0:
		add("part", "from %v after the start", r.Since)
	}
	if r.Process != "" {
		add("process", "%s alone", r.Process)
	}
	if r.Tag != "" {
		add("tags", "those that match %s; totals are of all", r.Tag)
	}
	if r.Events > 0 || r.Since == 0 && r.Until == 0 {
		return
	}
	text := "nothing happened in this part"
	if r.Whole && r.Footer.EndedNS > r.Started && uint64(r.Since) > r.Footer.EndedNS-r.Started {
		text += fmt.Sprintf(": the recording ends after %.3f s", units.SecondsBetween(r.Started, r.Footer.EndedNS))
	}
	add("note", "%s", text)
}

// limitValueText writes a limit's value. A limit beyond the device's memory shows as all of that, since it cannot be reached.
func (v *view) limitValueText(l *stats.Limit) string {
	switch device := v.s.Device.Global; {
	case l.Value == 0 && l.Zero != "":
		return l.Zero
	case l.Kind == stats.LimitBytes && device > 0 && l.Value > float64(device):
		return units.FormatLong(device) + " (all of the device)"
	case l.Kind == stats.LimitBytes:
		return units.FormatLong(uint64(max(l.Value, 0)))
	case l.Kind == stats.LimitSeconds:
		return l.Text + " s"
	}
	return l.Text
}

// knobValueText writes the value of a limit to try.
func knobValueText(k *analysis.Knob) string {
	if k.Limit == "" {
		return ""
	}
	return "--set " + k.Limit + "=" + k.Value
}

func (v *view) diagnosesSection() section {
	return v.findingsSection(func(d *analysis.Diagnosis) string { return d.Title + ": " + d.Text })
}

// briefFindingsSection has a line for each finding: its title, and its call site.
func (v *view) briefFindingsSection() section {
	return v.findingsSection(func(d *analysis.Diagnosis) string {
		text := cmp.Or(d.Brief, d.Title)
		if d.Tag != "" && !strings.Contains(text, d.Tag) {
			text += ": " + d.Tag
		}
		return text
	})
}

// findingsSection lists the findings, each as words says it.
func (v *view) findingsSection(words func(*analysis.Diagnosis) string) section {
	s := section{Title: "Findings"}
	shown, left := units.KeepFirst(v.a.Diagnoses, diagnosesMax)
	for i := range shown {
		d := &shown[i]
		text := fmt.Sprintf("%s: %s", d.Severity, words(d))
		if d.Knob.Limit != "" {
			text += "; try " + knobValueText(&d.Knob)
		}
		s.Items = append(s.Items, units.Clean(text))
	}
	if left > 0 {
		s.Notes = []string{fmt.Sprintf("and %d more", left)}
	}
	if len(shown) == 0 {
		s.Notes = []string{v.nothingFoundText()}
	}
	return s
}

// nothingFoundText says that nothing was found, and of how much.
func (v *view) nothingFoundText() string {
	text := "nothing was found: no mistake, no leaked buffer, and no setting that would save much time in driver calls"
	if len(v.a.Transfers) > 0 {
		text += "; transfers that matter less are in the section transfers"
	}
	text += "; gpumemtop compare measures the whole gain"
	switch {
	case len(v.s.PostMortems) > 0:
		return "nothing beside what ran out of memory"
	case v.run.Creates == 0 && len(v.s.Unseen) > 0:
		text = "nothing was found, but " + unseenLibrariesText(v.s)
	case v.run.Creates == 0:
		text = "nothing was found, and no buffer was created: there was little to judge"
	}
	for i := range v.s.Processes {
		if p := &v.s.Processes[i]; p.BadEndText() != "" {
			text += "; " + p.BadEndText()
			if len(v.s.Processes) > 1 {
				text += ": " + units.Clean(p.TitleAmongSeveral())
			}
			return text
		}
	}
	return text
}

// timeOfPeakText says when the most was in use, if anything was.
func (v *view) timeOfPeakText(words string) string {
	if v.run.PeakInUse == 0 {
		return ""
	}
	return words + " " + v.clockTextOfTime(v.run.PeakInUseTime)
}

// watchedProgramsSection returns the key figures of programs that were only watched.
func (v *view) watchedProgramsSection() section {
	t := v.run
	memory, end := watchedMemoryAndEndLines(t)
	s := section{Title: "Key figures", Facts: [][2]string{
		{figures.Creates.Name, fmt.Sprintf("%d (%s), %s requested in poolable ones", t.Creates+t.Failures, failedCreatesText(t.Totals), v.runFigureText(figures.BytesRequested))},
		{figures.Releases.Name, fmt.Sprintf("%d, not timed", t.Releases)},
		{"in creates", v.runFigureText(figures.DriverTime) + ", including the time of the probes, some µs each" + percentilesText("; ", t.CreatesTimed, t.CreateP50NS, t.CreateP99NS)},
		{"memory", memory + v.timeOfPeakText(", at")},
		{"at the end", end},
	}}
	v.addStatusFact(&s)
	if text := releasedInFlightText(t); text != "" {
		s.addFact("in flight", text)
	}
	if before := v.s.TagBeforeAttach(); before != nil {
		s.addFact("unknown", fmt.Sprintf("%s from before attach live at the end, known to have %s",
			units.Count(before.Live, "buffer"), units.FormatLong(before.InUse)))
	}
	return s
}

// addStatusFact adds the statuses of failed creates.
func (v *view) addStatusFact(s *section) {
	if v.run.Failures > 0 {
		s.addFact("failed with", failureStatusesText(v.run.Totals))
	}
}

// addMachineFacts adds the figures of the machine.
func (v *view) addMachineFacts(s *section) {
	for _, text := range machineFigureTexts(v.s) {
		s.addFact("machine", text)
	}
}

// keyFiguresSection returns the figures that most people look for.
func (v *view) keyFiguresSection() section {
	if v.isAttached() {
		return v.watchedProgramsSection()
	}
	t := v.run
	s := section{Title: "Key figures", Facts: [][2]string{
		{"memory", mostInUseText(t) + v.timeOfPeakText("; the most in use at")},
		{"at the end", heldAtEndText(t)},
		{"creates", createsAndReleasesText(t.Totals)},
		{figures.HitRate.Name, servedRequestsText(t)},
		{"driver", driverCreatesText(t)},
	}}
	if text := unseenLibrariesText(v.s); text != "" {
		s.addFact("unwatched", text)
	}
	if text := blockedByTransfersText(v.s); text != "" {
		s.addFact("blocking", text)
	}
	for _, text := range autoDecisionTexts(v.s) {
		s.addFact("auto", text)
	}
	for _, text := range experimentTexts(v.s) {
		s.addFact("measured", text)
	}
	v.addStatusFact(&s)
	return s
}

// percentilesText writes those of what timed calls took, after other words; empty: no call was timed.
func percentilesText(before string, calls, p50, p99 uint64) string {
	if calls == 0 || p99 == 0 {
		return ""
	}
	return before + stats.SpreadText(calls, units.Duration(p50), units.Duration(p99))
}

// moreFiguresSection are the other figures of the run.
func (v *view) moreFiguresSection() section {
	t := v.run
	s := section{Title: "More figures"}
	v.addMachineFacts(&s)
	if v.isAttached() {
		return s
	}
	s.Facts = append([][2]string{
		{"in driver", fmt.Sprintf("%s in %s and %s", v.runFigureText(figures.DriverTime), units.Count(t.DriverCreates, "create"), units.Count(t.DriverReleases, "release")) +
			percentilesText("; create ", t.DriverTimed, t.DriverCreateP50, t.DriverCreateP99)},
		{"bytes", fmt.Sprintf("%s requested in poolable creates, %s created by the driver", v.runFigureText(figures.BytesRequested),
			v.runFigureText(figures.BytesAllocated))},
	}, s.Facts...)
	if text := percentilesText("create ", t.CreatesTimed, t.CreateP50NS, t.CreateP99NS); text != "" {
		s.Facts = slices.Insert(s.Facts, 1, [2]string{"calls", text})
	}
	if t.Slabs > 0 {
		s.addFact(figures.Slabs.Name, fmt.Sprintf("%d of %s, %s of them free", t.Slabs, v.runFigureText(figures.SlabBytes),
			units.FormatLong(t.SlabFree)))
	}
	if text := runPlansText(v.s); text != "" {
		s.addFact("plan", text)
	}
	if text := reservedWithoutPlanText(v.o.Unplanned); text != "" {
		s.addFact("unplanned", text+" reserved at most, simulated, of poolable memory")
	}
	if text := releasedInFlightText(t); text != "" {
		s.addFact("in flight", text)
	}
	if t.HazardsAvoided > 0 || v.a.Run.Header.Policy != "none" {
		s.addFact("hazards", units.Count(t.HazardsAvoided, "block")+" held back until commands that used them had ended")
	}
	if t.Relieved > 0 {
		s.addFact(figures.GivenToOthers.Name, units.FormatLong(t.Relieved)+" of the pool, because they lacked memory")
	}
	if t.Cleared > 0 {
		s.addFact(figures.Cleared.Name, units.Count(t.Cleared, "recycled buffer")+", before the kernels that were the first to use them")
	}
	if t.Exposed > 0 {
		s.addFact(figures.Exposed.Name, exposedBuffersText(v.s))
	}
	if n := countRecycledAddresses(v.s); n > 0 {
		s.addFact("not watched", units.Count(n, "recycled allocation")+" of SVM or USM, which the program may write without a command: whether kernels read what was left there is unknown")
	}
	return s
}

func (v *view) tagsSection() section {
	list := tagsByPeak(v.s.Tags)
	columns := []column{figureColumn(figures.PeakInUse), atEndColumn, figureColumn(figures.LiveBuffers),
		numberColumn("cached").withPoolOnly()}
	if v.run.Idle > 0 {
		columns = append(columns, figureColumn(figures.Idle))
	}
	columns = append(columns, figureColumn(figures.Creates), figureColumn(figures.Hits), figureColumn(figures.HitRate), figureColumn(figures.Waste), wordsColumn("call site"))
	t := v.newTable("", len(list), columns...)
	for _, r := range list[:v.countRowsToShow(len(list))] {
		of := func(f *figures.Figure) figures.Value { return f.ValueOfSite(v.run, r) }
		v.addFigureRow(&t, of, v.bytesCell(r.Cached+r.Cooling), v.siteCell(r.Name, nil))
	}
	s := section{Title: "Call sites by peak", Tables: []table{t}}
	if n := v.s.Totals.Alternative; n > 0 {
		s.Notes = []string{fmt.Sprintf("of these creates, the experiment's alternative decided on %d, which are no requests of the hit rates", n)}
	}
	return s
}
