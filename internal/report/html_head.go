package report

import (
	"fmt"
	"maps"
	"slices"
	"strings"
	"time"

	"codeberg.org/gpumemtop/gpumemtop/internal/analysis"
	"codeberg.org/gpumemtop/gpumemtop/internal/figures"
	"codeberg.org/gpumemtop/gpumemtop/internal/stats"
)

type htmlDiagnosis struct {
	Severity, Title, Text, Tag string
	Why                        string   // why the limit would help
	Command                    []string // words
}

// durationNS is the duration of the part, ns.
func (v *view) durationNS() uint64 {
	r := &v.a.Run
	end := max(v.s.Time, r.Started)
	if r.Whole {
		end = max(r.Footer.EndedNS, r.Started)
	}
	length := end - r.Started
	if r.Until > 0 {
		length = min(length, uint64(r.Until))
	}
	return length - min(length, uint64(max(r.Since, 0)))
}

// runFacts identify the run.
func (v *view) runFacts() []htmlFact {
	facts := []htmlFact{{Name: "duration", Text: durationText(v.durationNS()) + v.howEndedText()}}
	if v.isAttached() {
		text := "attached to a running program"
		if n := v.a.Run.Before; n > 0 {
			text += "; " + thingsText(n, "buffer") + " from before attach, whose sizes are known only as far as used"
		}
		facts = append(facts, htmlFact{Name: "recorded", Text: text})
	}
	for _, text := range machineFigureTexts(v.s) {
		facts = append(facts, htmlFact{Name: "machine", Text: text})
	}
	return append(facts, v.recordingPartFacts()...)
}

// settingFacts list the settings of the run.
func (v *view) settingFacts() []htmlFact {
	h := &v.a.Run.Header
	policy := cleanName(h.Policy)
	if former := v.s.Change.Former; len(former) > 0 {
		policy = cleanName(strings.Join(append(slices.Clone(former), v.s.Policy), ", then "))
	}
	if h.Auto {
		policy = "auto: " + policy
	}
	facts := []htmlFact{{Name: "policy", Text: policy}}
	for _, text := range autoDecisionTexts(v.s) {
		facts = append(facts, htmlFact{Name: "auto", Text: text})
	}
	if d := &v.s.Device; d.Name != "" {
		text := cleanName(d.Name)
		if d.Global > 0 {
			text += ", " + bytesText(d.Global)
		}
		if d.Driver != "" {
			text += ", driver " + cleanName(d.Driver)
		}
		if several := severalDevicesText(v.s); several != "" {
			text += "; " + several
		}
		facts = append(facts, htmlFact{Name: "device", Text: text})
	}
	if h.DeviceMemory > 0 {
		facts = append(facts, htmlFact{Name: "simulated device memory", Text: bytesText(h.DeviceMemory) + " for each process"})
	}
	if h.Host != "" {
		facts = append(facts, htmlFact{Name: "host", Text: cleanName(h.Host)})
	}
	if !h.Created.IsZero() {
		facts = append(facts, htmlFact{Name: "date", Text: h.Created.Format("2006-01-02 15:04:05 -07:00")})
	}
	if limits := v.limitsWithValues(); len(limits) > 0 {
		facts = append(facts, htmlFact{Name: "limits", Words: limits})
	}
	return facts
}

// howEndedText describes how the program ended, "" if that is unknown.
func (v *view) howEndedText() string {
	f := &v.a.Run.Footer
	switch {
	case v.mayProgramContinue():
		return ""
	case f.Signal != 0:
		return fmt.Sprintf(", ended by signal %d", f.Signal)
	case f.Status >= 0:
		return fmt.Sprintf(", exit status %d", f.Status)
	}
	return ""
}

// limitsWithValues lists the limits of the run with their values. Limits of a policy that this version does not know stay as recorded.
func (v *view) limitsWithValues() []string {
	var words []string
	for i := range v.s.Limits[:min(len(v.s.Limits), htmlCards)] {
		l := &v.s.Limits[i]
		words = append(words, cleanName(l.Name+" = "+v.limitValueText(l)))
	}
	if len(words) > 0 || len(v.s.Change.Former) > 0 { // the header has the limits of the first policy
		return appendCountOfRest(words, len(v.s.Limits))
	}
	limits := v.a.Run.Header.Limits
	names := slices.Sorted(maps.Keys(limits))
	for _, limit := range names[:min(len(names), htmlCards)] {
		words = append(words, cleanName(limit+" = "+limits[limit]))
	}
	return appendCountOfRest(words, len(names))
}

// appendCountOfRest appends to a list how many of all are not in it.
func appendCountOfRest(words []string, all int) []string {
	if left := all - len(words); left > 0 {
		words = append(words, "and "+countText(uint64(left))+" more")
	}
	return words
}

// recordingPartFacts describes which part of the recording the page shows, and which recordings were merged into it.
func (v *view) recordingPartFacts() []htmlFact {
	r := &v.a.Run
	var facts []htmlFact
	switch {
	case r.Until > 0:
		facts = append(facts, htmlFact{Name: "part", Text: durationOrZeroText(r.Since) + " to " + durationOrZeroText(r.Until) + " after the start"})
	case r.Since > 0:
		facts = append(facts, htmlFact{Name: "part", Text: "from " + durationOrZeroText(r.Since) + " after the start"})
	}
	if r.Process != "" {
		facts = append(facts, htmlFact{Name: "process", Text: cleanName(r.Process) + " only"})
	}
	if r.Tag != "" {
		facts = append(facts, htmlFact{Name: "call sites", Text: "those that match " + cleanName(r.Tag) + "; totals are of all"})
	}
	if n := len(r.Header.Merged); n > 0 {
		facts = append(facts, htmlFact{Name: "merged", Text: thingsText(uint64(n), "recording")})
	}
	if r.Footer.Message != "" {
		facts = append(facts, htmlFact{Name: "message", Text: cleanText(r.Footer.Message, htmlTextWidth)})
	}
	return facts
}

func durationOrZeroText(d time.Duration) string { return durationText(uint64(max(d, 0))) }

// listWarnings lists why figures may be wrong.
func (v *view) listWarnings() []string {
	var warnings []string
	if v.a.Damage != "" {
		warnings = append(warnings, "The recording is damaged: "+cleanText(v.a.Damage, htmlTextWidth))
	}
	if !v.a.Run.Whole {
		warnings = append(warnings, "The recording is incomplete: its last records may be missing.")
	}
	if r := &v.a.Run; r.Events == 0 && (r.Since > 0 || r.Until > 0) {
		warnings = append(warnings, "Nothing happened in this part.")
	}
	if v.s.Lost > 0 {
		text := thingsText(v.s.Lost, "event") + " lost: counts are too low, memory in use may be too high"
		if v.s.LostUses > 0 {
			text += " (" + countText(v.s.LostUses) + " of them uses)"
		}
		warnings = append(warnings, text+".")
	}
	for _, text := range v.s.Exceeded {
		warnings = append(warnings, "Too much: "+text+".")
	}
	if v.s.Unknown > 0 {
		warnings = append(warnings, thingsText(v.s.Unknown, "event")+" about unknown objects.")
	}
	if h := &v.a.Run.Header; h.Scrub != "" {
		warnings = append(warnings, "Recycled blocks were filled ("+cleanName(h.Scrub)+"), so creates took longer than without.")
	}
	if len(v.s.Processes) == 0 {
		warnings = append(warnings, "No OpenCL call was seen.")
	}
	return warnings
}

func (v *view) diagnosisCards() []htmlDiagnosis {
	var cards []htmlDiagnosis
	for i := range v.a.Diagnoses[:min(len(v.a.Diagnoses), htmlCards)] {
		d := &v.a.Diagnoses[i]
		card := htmlDiagnosis{Severity: severityClass(d.Severity), Title: cleanText(d.Title, htmlNameWidth), Text: cleanText(d.Text, htmlTextWidth)}
		if d.Tag != "" {
			card.Tag = cleanName(d.Tag)
		}
		if d.Knob.Limit != "" {
			card.Command, card.Why = v.commandWithLimit(d.Knob.Limit, d.Knob.Value), cleanText(d.Knob.Why, htmlTextWidth)
		}
		cards = append(cards, card)
	}
	return cards
}

// mayProgramContinue reports whether the program may run on after the end of the part, so that memory in use there may be no leak.
func (v *view) mayProgramContinue() bool {
	r := &v.a.Run
	return !r.Whole || r.Footer.Cut || r.Until > 0 && r.Footer.EndedNS > r.Started && uint64(r.Until) < r.Footer.EndedNS-r.Started
}

// mayLeaksBeInUse reports whether memory listed as never released is only in use at the end of the part, because no process
// ended.
func (v *view) mayLeaksBeInUse() bool {
	return v.mayProgramContinue() && !slices.ContainsFunc(v.s.Processes, func(p stats.Process) bool { return p.State != stats.Running })
}

// severityClass returns a class that the style sheet knows.
func severityClass(s analysis.Severity) string {
	if s == analysis.Problem || s == analysis.Advice {
		return string(s)
	}
	return string(analysis.Note)
}

// watchedProgramTiles are the key figures of programs that were only watched.
func (v *view) watchedProgramTiles(peak uint64) []htmlTile {
	t := &v.s.Totals
	at := "at " + durationText(v.a.Peak.Time)
	if before := v.s.TagBeforeAttach(); before != nil && v.s.Lost == 0 {
		at += "; at least: sizes from before attach are known only as far as used"
	}
	return []htmlTile{
		{figures.PeakInUse.Name, v.sizeText(peak), at},
		{figures.Creates.Name, fmt.Sprint(t.Creates), thingsText(t.Releases, "release")},
		{"time in creates", v.runFigureText(figures.DriverTime), "includes the time of the probes, some µs each"},
	}
}

// sizeText writes an amount of memory, marked as uncertain if events were lost, among which its creates and releases may be.
func (v *view) sizeText(bytes uint64) string {
	if v.s.Lost > 0 {
		return "≈\u202f" + bytesText(bytes)
	}
	return bytesText(bytes)
}

// runMemoryText writes a figure of the run's memory.
func (v *view) runMemoryText(f *figures.Figure) string { return v.sizeText(f.ValueOf(v.run).Exact) }

// figureTile is one figure of the run.
func (v *view) figureTile(f *figures.Figure, note string) htmlTile {
	return htmlTile{f.ColumnTitle(), v.runFigureText(f), note}
}

func (v *view) keyTiles() []htmlTile {
	t := v.run
	peak := max(v.a.Peak.InUse, t.PeakInUse)
	saved, basis := "not known", "--measure measures it; "
	switch calls, _ := v.s.WorthwhileSavings(); {
	case calls && t.Saved.Releases:
		saved, basis = "≈\u202f"+v.runFigureText(figures.Saved), "an estimate, without first touches; "
	case calls:
		saved, basis = "≈\u202f"+v.runFigureText(figures.Saved), "an estimate of creates only; "
	}
	gain := htmlTile{figures.Saved.Name, saved, basis + thingsText(t.HitsWithoutDriverCall(), "driver create") + " avoided"}
	if m := v.s.Measured.LatestKnown(); m != nil {
		gain = htmlTile{"measured", m.ChangeText(), m.Text()}
	}
	tiles := []htmlTile{
		{figures.PeakInUse.Name, v.sizeText(peak), "at " + durationText(v.a.Peak.Time) + "; " + v.runMemoryText(figures.PeakReserved) + " reserved at most"},
		v.figureTile(figures.HitRate, "steady "+v.runFigureText(figures.SteadyHitRate)+"; "+thingsText(t.Hits+t.Misses, "request")),
		v.figureTile(figures.DriverTime, thingsText(t.DriverCreates, "create")+", "+thingsText(t.DriverReleases, "release")),
		gain,
	}
	if t.Idle > 0 {
		tiles = append(tiles,
			v.figureTile(figures.Idle, "of the "+v.runMemoryText(figures.Cached)+" cached at the end: nothing asked for it of late"))
	}
	if p := &t.Plans; p.Installed > 0 {
		note := runPlansText(v.s)
		if text := reservedWithoutPlanText(v.o.Unplanned); text != "" {
			note += "; without a plan, simulated: " + text
		}
		tiles = append(tiles, htmlTile{"as planned", rateText(p.ShareServedByPlan(), p.PlannableRequests()), note})
	}
	if v.a.Run.Header.Attached {
		tiles = v.watchedProgramTiles(peak)
	}
	var buffers, bytes uint64
	for i := range v.a.Leaks {
		buffers, bytes = buffers+v.a.Leaks[i].Buffers, bytes+v.a.Leaks[i].Bytes
	}
	leaked := htmlTile{figures.Leaked.Name, "none", "every " + v.memoryNoun() + " was released"}
	if v.a.IsPeakFromGrowth() {
		leaked.Note += " at last, but memory grew with the iterations"
	}
	switch {
	case v.mayProgramContinue() && t.InUse > 0 && (buffers == 0 || v.mayLeaksBeInUse()):
		leaked = htmlTile{"in use at the end", v.runMemoryText(figures.InUse), "the program continues and may release all of it"}
	case buffers > 0:
		leaked = htmlTile{figures.Leaked.Name, v.sizeText(bytes), thingsText(buffers, stats.NounForMemory(v.s.Kinds,
			true)) + " at " + thingsText(uint64(len(v.a.Leaks)), "call site")}
		if v.s.WasAllHeldByKilled() {
			leaked.Name = "held at exit"
		} else if v.s.Lost > 0 {
			leaked.Name, leaked.Note = "perhaps leaked", leaked.Note+"; releases may be among the lost events"
		}
	}
	return append(tiles, leaked)
}
