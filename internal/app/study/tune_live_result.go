package study

import (
	"cmp"
	"fmt"
	"io"
	"strings"

	"codeberg.org/gpumemtop/gpumemtop/internal/app/console"
	"codeberg.org/gpumemtop/gpumemtop/internal/report"
	"codeberg.org/gpumemtop/gpumemtop/internal/setting"
	"codeberg.org/gpumemtop/gpumemtop/internal/units"
)

// LiveResult is what tuning in one run of a program found. Scripts rely on its JSON keys.
type LiveResult struct {
	Of      string      `json:"of"`
	Before  string      `json:"before"` // the configuration in use at the start
	Best    string      `json:"best"`
	Better  bool        `json:"better"`  // than what was in use at the start
	Written string      `json:"written"` // the file; empty: none
	Trials  []LiveTrial `json:"trials"`

	live *liveTune
}

// LiveTrial is a candidate that served parts of the run, beside what was in use then.
type LiveTrial struct {
	Configuration   string                 `json:"configuration"`
	Against         string                 `json:"against"`
	Adopted         bool                   `json:"adopted"`
	Why             string                 `json:"why,omitempty"` // nothing was measured
	MemorySimulated bool                   `json:"memory_simulated"`
	Memory          uint64                 `json:"memory"`   // bytes from the driver at most
	Measured        *report.MeasuredAnswer `json:"measured"` // as seen from the candidate; null: no interval
}

func newLiveResult(l *liveTune) *LiveResult {
	out := &LiveResult{
		Of: l.what, Before: setting.ConfigurationText(&l.start.Configuration), Best: setting.ConfigurationText(&l.best.Configuration), live: l,
	}
	out.Better = out.Best != out.Before
	for i := range l.trials {
		t := &l.trials[i]
		one := LiveTrial{
			Configuration: setting.ConfigurationText(&t.candidate.Configuration), Against: setting.ConfigurationText(&t.against.Configuration),
			Adopted: t.adopted,
		}
		one.Memory, one.MemorySimulated = t.memoryOfCandidate()
		if t.result.IsKnown() {
			t.result.Answer.Present.Bytes = one.Memory
			one.Measured = report.NewMeasured(t.result).MeasuredAnswer
		} else {
			one.Why = t.whyNoInterval()
		}
		out.Trials = append(out.Trials, one)
	}
	return out
}

// memoryOfCandidate returns what the candidate needs: in an experiment, blocks of the other arm are among it, unless it is no pool.
func (t *liveTrial) memoryOfCandidate() (bytes uint64, simulated bool) {
	if t.result.IsKnown() && t.candidate.Configuration.Policy == "none" {
		return t.result.Answer.Present.Bytes, false
	}
	return t.candidate.PeakReserved, true
}

// changeText says how much more or less time the candidate takes.
func (t *liveTrial) changeText() string {
	switch {
	case !t.result.IsKnown():
		return "not measured"
	case t.adopted:
		return t.result.ChangeText() + ", taken"
	}
	return t.result.ChangeText()
}

// whyNoInterval says why there is no interval.
func (t *liveTrial) whyNoInterval() string {
	_, why, _ := strings.Cut(t.result.Auto, "nothing could be measured: ")
	return cmp.Or(why, t.result.Why, "the program ended")
}

// tableRow returns the cells of the table: the candidate, its time, the time of the configuration that it would replace, the
// change, memory.
func (t *liveTrial) tableRow() []string {
	name, other := setting.ConfigurationText(&t.candidate.Configuration), setting.ConfigurationText(&t.against.Configuration)
	bytes, simulated := t.memoryOfCandidate()
	memory := units.FormatLong(bytes)
	if simulated {
		memory += outcomeOfPoint(&t.candidate).PoolableSuffix() + ", simulated"
	}
	if !t.result.IsKnown() {
		return []string{name, "-", other, t.changeText(), memory}
	}
	a := &t.result.Answer
	return []string{name, units.DurationLong(a.Present.Time), units.DurationLong(a.Alternative.Time) + " with " + other, t.changeText(), memory}
}

// timedUnit names what the times are of: an iteration, or the way from one request to the next.
func (r *LiveResult) timedUnit() string {
	for i := range r.live.trials {
		if t := r.live.trials[i].result; t.IsKnown() && t.Requests == 0 {
			return "from request to request"
		}
	}
	return "an iteration"
}

// WriteText writes the result for people.
func (r *LiveResult) WriteText(w io.Writer) error {
	text := newProse(w)
	table := units.Table{Width: text.table, Least: []string{"INSTEAD OF"}}
	table.Add("TRIED", strings.ToUpper(r.timedUnit()), "INSTEAD OF", "CHANGE", "MEMORY")
	for i := range r.live.trials {
		table.Add(r.live.trials[i].tableRow()...)
	}
	text.WriteString(table.String())
	for i := range r.Trials {
		if why := r.Trials[i].Why; why != "" {
			text.writeParagraph("%s: %s.", r.Trials[i].Configuration, why)
		}
	}
	best := &r.live.best.Configuration
	switch path := r.live.options.Output.Path; {
	case !r.Better && path != "":
		text.writeParagraph("Nothing tried is better than %s, which was in use: no file is written.", r.Before)
	case !r.Better:
		text.writeParagraph("Nothing tried is better than %s, which was in use.", r.Before)
	default:
		text.writeParagraph("best: %s", setting.FlagsText(best))
		if r.Written != "" && r.Written != "-" {
			text.writeParagraph("It is written to %s.", units.Clean(r.Written))
		}
	}
	return console.WriteText(w, text.String())
}

// settingsFileText writes the best configuration as a settings file, with what was measured.
func (r *LiveResult) settingsFileText() string {
	var b strings.Builder
	fmt.Fprintf(&b, "# gpumemtop tune --live, measured in one run of %s: %s takes\n", units.Clean(r.Of), r.timedUnit())
	for i := range r.live.trials {
		row := r.live.trials[i].tableRow()
		if why := r.Trials[i].Why; why != "" {
			fmt.Fprintf(&b, "# not measured with %s: %s\n", row[0], why)
			continue
		}
		fmt.Fprintf(&b, "# %s with %s instead of %s: %s; %s\n", row[1], row[0], row[2], row[3], row[4])
	}
	b.WriteString(setting.SettingsFileText(r.live.best.Configuration.Policy, r.live.best.Configuration.Settings))
	return b.String()
}
