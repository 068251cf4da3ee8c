package study

import (
	"cmp"
	"fmt"
	"io"
	"os"
	"slices"
	"strings"

	"codeberg.org/gpumemtop/gpumemtop/internal/analysis"
	"codeberg.org/gpumemtop/gpumemtop/internal/app/console"
	"codeberg.org/gpumemtop/gpumemtop/internal/setting"
	"codeberg.org/gpumemtop/gpumemtop/internal/tune"
	"codeberg.org/gpumemtop/gpumemtop/internal/units"
)

// TuneResult is what a search found. Scripts rely on its JSON keys.
type TuneResult struct {
	tune.Document
	Measured *Measured   `json:"measured"`
	Compared *Comparison `json:"compared"` // bare against the recommendation; null: not run

	search *tuneSearch // what the text shows besides
}

// Measured is what running the program with the recommendation changed, by one run before and one after.
type Measured struct {
	Before    Trial   `json:"before"`
	After     Trial   `json:"after"`
	Predicted float64 `json:"predicted_change"` // of the time in the driver: -0.5 is half of it
	Differs   bool    `json:"differs"`          // the measurement is far from the prediction

	predicted [2]float64 // ns of the simulated driver before and after
}

// Trial is one run of a program.
type Trial struct {
	DriverNS uint64 `json:"driver_ns"`     // that the driver took for poolable requests
	Peak     uint64 `json:"peak_reserved"` // bytes, of any process
	WallNS   uint64 `json:"wall_ns"`
}

// compareWithPrediction compares two trials with the predicted times in the driver, ns. They differ if what was measured is off
// by more than a factor of two and by more than 1 ms.
func compareWithPrediction(before, after Trial, predictedBefore, predictedAfter float64) *Measured {
	m := &Measured{
		Before: before, After: after, predicted: [2]float64{predictedBefore, predictedAfter},
		Predicted: (predictedAfter - predictedBefore) / max(predictedBefore, 1),
	}
	if predictedBefore > 0 && before.DriverNS > 0 {
		want := float64(before.DriverNS) * predictedAfter / predictedBefore
		got := float64(after.DriverNS)
		m.Differs = (got > 2*want || want > 2*got) && max(got, want)-min(got, want) > 1e6
	}
	return m
}

// finishResult writes the recommendation into a file, if that is wanted, and returns the result.
func (s *tuneSearch) finishResult() (*TuneResult, error) {
	if s.options.Output.Path != "" && s.isWorthSettingsFile() {
		if err := s.options.Output.Write(os.Stdout, s.writeConfiguration); err != nil {
			return nil, err
		}
	}
	out := &TuneResult{Document: s.result.DocumentOfResult(s.folds), Measured: s.measured, Compared: s.compared, search: s}
	out.Of, out.Recordings, out.Events, out.Device, out.Little = s.what, len(s.recordings), s.events, s.device, s.savesLittle()
	return out, nil
}

// writeConfiguration writes the recommendation as a settings file: the policy, and its limits that differ from the defaults.
func (s *tuneSearch) writeConfiguration(w io.Writer) error {
	best := s.result.Recommended
	var b strings.Builder
	fmt.Fprintf(&b, "# gpumemtop tune, of %s: %s in the driver by replay, %s without a pool\n", units.Clean(s.what),
		units.DurationOfComputed(best.DriverNS), s.driverTimeText(&s.result.None))
	b.WriteString(setting.SettingsFileText(best.Configuration.Policy, best.Configuration.Settings))
	return console.WriteText(w, b.String())
}

// WriteText writes the result for people, as wide as the terminal.
func (r *TuneResult) WriteText(w io.Writer) error {
	text := newProse(w)
	s := r.search
	s.writeFrontTable(text)
	s.writeRecommended(text)
	s.writeLowerBound(text)
	s.writeCrossValidation(text)
	s.writeMeasuredChange(text)
	if s.compared != nil {
		text.WriteString("\n")
		text.writeParagraph("%s", s.compared.Text())
	}
	return console.WriteText(w, text.String())
}

// prose is a text with paragraphs of a width, and tables of another, 0 for any.
type prose struct {
	strings.Builder
	width, table int
}

func newProse(w io.Writer) *prose {
	return &prose{width: console.TextWidth(w), table: console.WidthWithin(w, 0)}
}

// writeParagraph writes one; all lines but the first are indented.
func (p *prose) writeParagraph(format string, a ...any) {
	p.WriteString(console.WrapIndented(fmt.Sprintf(format, a...), 2, p.width) + "\n")
}

// writeFrontTable writes the front, the fastest first, and the configurations that the front is compared with.
func (s *tuneSearch) writeFrontTable(b *prose) {
	r := s.result
	table := units.Table{Width: b.table, Least: []string{"REGRET", "HIT RATE"}}
	table.Add("", "DRIVER", "PEAK RESERVED", "HIT RATE", "REGRET", "CONFIGURATION")
	list := slices.Concat(r.Front, r.Assumed, []tune.Point{*cmp.Or(r.Present, &r.None), r.None})
	for i := range list {
		same := func(q tune.Point) bool { return q.Configuration.String() == list[i].Configuration.String() }
		if slices.ContainsFunc(list[:i], same) {
			continue
		}
		p, mark, note := s.pointWithMeasuredTime(&list[i]), "", s.pointNoteText(&list[i])
		if same(*r.Recommended) {
			mark = "*"
		}
		ns, share := r.RegretOf(p)
		if s.isMeasuredBare(p) && ns > 0 { // no pool saves nothing, whatever the simulated calls take
			share = 1
		}
		regret := fmt.Sprintf("%s (%.1f %%)", units.DurationOfComputed(ns), 100*share)
		if p.IsAssumed() {
			regret, note = "-", note+", assumed"
		}
		table.Add(mark, units.DurationOfComputed(p.DriverNS), units.FormatLong(p.PeakReserved), units.Percent(p.HitRate(), p.Requests),
			regret, setting.ConfigurationText(&p.Configuration)+note)
	}
	b.WriteString(table.String())
	how := map[tune.Ending]string{
		tune.Enough:    "as many as were asked for",
		tune.Exhausted: "all that exist",
		tune.Cut:       "as many as the time allowed",
	}[r.Ending]
	b.writeParagraph("Of %d configurations, %s, these are the Pareto front: no other is better both in time and in memory. %s", len(r.Points), how, s.timeSourceText())
}

// pointWithMeasuredTime returns a point as it is shown: without a pool with the time that was measured, if it was.
func (s *tuneSearch) pointWithMeasuredTime(p *tune.Point) *tune.Point {
	if !s.isMeasuredBare(p) {
		return p
	}
	measured := *p
	measured.DriverNS = float64(s.bareNS)
	return &measured
}

func (s *tuneSearch) isMeasuredBare(p *tune.Point) bool {
	return p.Configuration.Policy == "none" && s.bareNS > 0
}

// pointNoteText marks the present configuration and that without a pool.
func (s *tuneSearch) pointNoteText(p *tune.Point) string {
	note := ""
	switch {
	case s.result.Present != nil && p.Configuration.String() == s.result.Present.Configuration.String():
		note = ", in use now"
	case p.Configuration.Policy == "none":
		note = ", no pool"
	}
	if s.isMeasuredBare(p) {
		note += ", measured"
	}
	return note
}

// driverTimeText writes the driver time of a point, and says if it was measured.
func (s *tuneSearch) driverTimeText(p *tune.Point) string {
	text := units.DurationOfComputed(s.pointWithMeasuredTime(p).DriverNS)
	if s.isMeasuredBare(p) {
		text += " (measured)"
	}
	return text
}

// timeSourceText says where the times come from.
func (s *tuneSearch) timeSourceText() string {
	text := "Times are simulated, by what the driver took in the recording"
	switch p := s.result.Present; {
	case s.device != "":
		text = "Times are simulated, by the costs of " + units.Clean(s.device)
	case s.learned:
		text = "Times but the measured are simulated, by what the driver took without a pool"
	case s.bareNS > 0:
		text = "Times but the measured are simulated, by what the driver took in the recording"
	case p != nil && p.Configuration.Policy != "none":
		text += " (with a pool few driver calls are timed; --policy none or --device-cost give better figures)"
	}
	if ns := s.result.PartNS; ns > 0 {
		text += fmt.Sprintf("; the cost of a sub-allocation is unknown there, and assumed to be %s: what makes them is not recommended", units.DurationOfComputed(ns))
	}
	if of := s.poolableSuffix(); of != "" {
		text += ". Simulated sizes are" + of
	}
	return text + "."
}

// poolableSuffix ends words about simulated sizes; empty: they are of all memory of the program.
func (s *tuneSearch) poolableSuffix() string { return outcomeOfPoint(&s.result.None).PoolableSuffix() }

func (s *tuneSearch) writeRecommended(b *prose) {
	r := s.result
	best := r.Recommended
	heading, little := "recommended", s.savesLittle()
	if little {
		heading = "best found"
	}
	fmt.Fprintf(b, "\n%s: %s\n  ", heading, setting.FlagsText(&best.Configuration))
	why := map[tune.Reason]string{
		tune.Close: "It saves nearly as much time as any, with at most a quarter more memory than without a pool",
		tune.Knee:  "More memory would gain little time, and less would cost much",
		tune.Fits:  "It saves nearly as much time as any within --max-memory",
	}[r.Reason]
	if r.Reason == tune.Vain {
		b.writeParagraph("No tried configuration%s takes less time than no pool, %s.", s.memoryBoundText(), s.driverTimeText(&r.None))
	} else {
		b.writeParagraph("%s: %s in the driver instead of %s without a pool, with %.2f times its %s.", why,
			units.DurationOfComputed(best.DriverNS), s.driverTimeText(&r.None), float64(best.PeakReserved)/float64(max(r.None.PeakReserved, 1)),
			cmp.Or(strings.TrimPrefix(s.poolableSuffix(), " of "), "memory"))
	}
	if little {
		b.WriteString("  ")
		b.writeParagraph("That saves less than 1 %% of the %s that were recorded: too little to matter. "+
			"First touches of new memory are not counted: gpumemtop compare measures the whole gain.", units.Duration(r.RanNS))
	}
	if p := r.Present; p != nil {
		if p.Configuration.String() == best.Configuration.String() {
			b.WriteString("  It is in use now.\n")
		} else {
			b.WriteString("  ")
			b.writeParagraph("What is in use now, %s, takes %s in the driver. Replayed with %s: %s.", setting.ConfigurationText(&p.Configuration), s.driverTimeText(p),
				setting.ConfigurationText(&best.Configuration), outcomeOfPoint(p).ComparedWithPresentText(*outcomeOfPoint(best)))
		}
	}
	switch path := s.options.Output.Path; {
	case path != "" && !s.isWorthSettingsFile():
		b.WriteString("  No file is written.\n")
	case path != "" && path != "-":
		fmt.Fprintf(b, "  It is written to %s.\n", units.Clean(path))
	}
}

func outcomeOfPoint(p *tune.Point) *analysis.Outcome {
	return &analysis.Outcome{Hits: p.Hits, Requests: p.Requests, PeakReserved: p.PeakReserved, Unpooled: p.Unpooled}
}

// savesLittle reports whether the best that was found hardly changes the run, and no comparison shows that it does.
func (s *tuneSearch) savesLittle() bool {
	now := s.pointWithMeasuredTime(s.result.PointInUse())
	return s.result.SavesLittle(now) && (now.Configuration.Policy != "none" || s.compared == nil || s.compared.Pairs == 1 || s.compared.Speed.Low <= 1)
}

// isWorthSettingsFile reports whether the best that was found is worth a settings file, as of tune --live.
func (s *tuneSearch) isWorthSettingsFile() bool {
	return !s.savesLittle() && s.result.Recommended.Configuration.String() != s.result.PointInUse().Configuration.String()
}

// memoryBoundText names the bound on memory.
func (s *tuneSearch) memoryBoundText() string {
	if s.tuning.MaxMemory == 0 {
		return ""
	}
	return " within --max-memory"
}

func (s *tuneSearch) writeLowerBound(b *prose) {
	r := s.result
	c := &r.Recommended.Configuration
	which := "first"
	if r.BoundOf(c) != r.Bound.Whole {
		which = "second"
	}
	more := "no more than the " + which
	if ns, share := r.RegretOf(r.Recommended); s.isMeasuredBare(r.Recommended) { // the bounds are simulated
		more = s.driverTimeText(r.Recommended)
	} else if ns >= 0.5 {
		more = fmt.Sprintf("%s more than the %s, %.1f %% of what could be saved", units.DurationOfComputed(ns), which, 100*share)
	}
	b.writeParagraph("regret: even a policy that knew the future would take at least %s if each buffer has its own block, %s if buffers are "+
		"sub-allocated from slabs, and reserve at least %s%s. %s takes %s.", units.DurationOfComputed(r.Bound.Whole), units.DurationOfComputed(r.Bound.Carved),
		units.FormatLong(r.Bound.Peak), s.poolableSuffix(), setting.ConfigurationText(c), more)
}

func (s *tuneSearch) writeCrossValidation(b *prose) {
	if len(s.folds) == 0 {
		why := "too little was recorded"
		if s.stopped {
			why = "it was interrupted"
		}
		b.writeParagraph("cross-validation: not done, because %s.", why)
		return
	}
	bad := 0
	for i := range s.folds {
		f := &s.folds[i]
		takes := func(p *tune.Point) string {
			return units.DurationOfComputed(p.DriverNS) + " and " + units.FormatLong(p.PeakReserved)
		}
		same, verdict := "the same", "holds"
		if f.Chosen.Configuration.String() != f.Best.Configuration.String() {
			same = fmt.Sprintf("%s, with %s", setting.ConfigurationText(&f.Best.Configuration), takes(&f.Best))
		}
		if f.OverFits() {
			verdict = "OVER-FITS"
			bad++
		}
		b.writeParagraph("cross-validation: chosen without %s, %s takes %s there; that part alone would choose %s: %s.", s.unseenRecordingsText(f.Held),
			setting.ConfigurationText(&f.Chosen.Configuration), takes(&f.Chosen), same, verdict)
	}
	if bad > 0 {
		b.WriteString("  ")
		b.writeParagraph("The choice does not carry over (%d of %d): tune on recordings of everything that the program does.", bad, len(s.folds))
	}
}

// unseenRecordingsText names what a choice did not see.
func (s *tuneSearch) unseenRecordingsText(held int) string {
	if len(s.recordings) == 1 {
		return [...]string{"the first half", "the second half"}[held]
	}
	return fmt.Sprintf("recording %d", held+1)
}

func (s *tuneSearch) writeMeasuredChange(b *prose) {
	m := s.measured
	if m == nil {
		return
	}
	change := func(before, after float64) string {
		if before <= 0 {
			return "-"
		}
		return fmt.Sprintf("%+.1f %%", 100*(after-before)/before)
	}
	before, after := &m.Before, &m.After
	b.WriteString("\n")
	table := units.Table{Width: b.table, Least: []string{"PREDICTED"}}
	table.Add("MEASURED", "BEFORE", "AFTER", "CHANGE", "PREDICTED")
	table.Add("time in the driver", units.Duration(before.DriverNS), units.Duration(after.DriverNS),
		change(float64(before.DriverNS), float64(after.DriverNS)), change(m.predicted[0], m.predicted[1]))
	table.Add("peak reserved", units.FormatLong(before.Peak), units.FormatLong(after.Peak),
		change(float64(before.Peak), float64(after.Peak)), change(float64(s.result.Present.PeakReserved),
			float64(s.result.Recommended.PeakReserved))+s.poolableSuffix())
	table.Add("wall time", units.Duration(before.WallNS), units.Duration(after.WallNS),
		change(float64(before.WallNS), float64(after.WallNS)))
	b.WriteString(table.String())
	warning := ""
	if m.Differs {
		warning = " The measurement is far from the prediction: trust the measurement, and repeat it."
	}
	b.writeParagraph("One run each: other work on the machine affects the figures.%s", warning)
}
