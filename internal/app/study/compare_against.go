package study

import (
	"cmp"
	"fmt"
	"io"
	"math"
	"slices"
	"strings"

	"codeberg.org/gpumemtop/gpumemtop/internal/app/console"
	"codeberg.org/gpumemtop/gpumemtop/internal/app/watch"
	"codeberg.org/gpumemtop/gpumemtop/internal/experiment"
	"codeberg.org/gpumemtop/gpumemtop/internal/measure"
	"codeberg.org/gpumemtop/gpumemtop/internal/report"
	"codeberg.org/gpumemtop/gpumemtop/internal/units"
)

// WatchedComparison is what runs took with two configurations, both watched, and what an experiment in one more run found.
// Scripts rely on its JSON keys; times are ns, sizes bytes. Lists are by pair.
type WatchedComparison struct {
	Command           []string         `json:"command"`
	Configuration     string           `json:"configuration"`
	Against           string           `json:"against"`
	Pairs             int              `json:"pairs"`
	Times             []float64        `json:"ns"` // of whole runs
	AgainstTimes      []float64        `json:"against_ns"`
	IterationTimes    []float64        `json:"iteration_ns,omitempty"` // after the start of the run
	AgainstIterations []float64        `json:"against_iteration_ns,omitempty"`
	Iterations        uint64           `json:"iterations"`           // that were timed in each run; 0: it has too few, or the device was far behind
	Creates           uint64           `json:"creates_of_iteration"` // 0: they do not repeat, and each counts as one
	Reserved          uint64           `json:"peak_reserved"`        // of any process
	AgainstReserved   uint64           `json:"against_peak_reserved"`
	Whole             Change           `json:"run"` // of whole runs
	Iteration         *Change          `json:"iteration,omitempty"`
	Measured          *report.Measured `json:"measured,omitempty"`
	Agrees            *bool            `json:"agrees,omitempty"` // the experiment with the iterations of the runs
	ExitStatus        int              `json:"exit_status"`      // of all runs

	inside *measure.Result
}

// Change is how much more time the configuration takes than the other, as a part of the other's.
type Change struct {
	Difference float64 `json:"difference"`
	Low        float64 `json:"difference_low"` // of the interval of 95 %
	High       float64 `json:"difference_high"`
	Known      bool    `json:"has_interval"` // there were pairs enough
}

// CompareConfigurations compares a program with two configurations, both watched: in whole runs, and by an experiment in one run.
func CompareConfigurations(o *CompareOptions, command []string) (*WatchedComparison, error) {
	if err := o.check(); err != nil {
		return nil, err
	}
	present, other, err := o.comparedSetups()
	if err != nil {
		return nil, err
	}
	program, err := FindProgram(command)
	if err != nil {
		return nil, err
	}
	program.tempo = new(measure.Tempo)
	defer program.StopOnSignals()()
	if _, err := runOnce(program, nil, "bare, to warm up"); err != nil {
		return nil, err
	}
	sides, inside := [2]side{newComparedSide(other), newComparedSide(present)}, present.Measure
	present.Measure = watch.Experiment{}
	r := &WatchedComparison{Command: command, Configuration: sides[1].name, Against: sides[0].name}
	if err := runPairs(program, sides, o.Runs, o.Budget, r.addPair); err != nil {
		return nil, err
	}
	present.Measure = inside
	last, err := runOnce(program, present, "both, in parts of one run")
	if err != nil {
		return nil, err
	}
	r.setResults(last.measured)
	return r, nil
}

// comparedSetups returns both configurations; the present one has an experiment.
func (o *CompareOptions) comparedSetups() (present, other *watch.Setup, err error) {
	choice, err := o.Setup.ParseOtherChoice("against", o.Against)
	if err != nil {
		return nil, nil, err
	}
	options := o.Setup
	options.PolicyChoice = choice
	if other, err = watch.NewSetup(&options); err != nil {
		return nil, nil, fmt.Errorf("--against: %w", err)
	}
	options = o.Setup
	options.Measure.Alternative = o.Against
	present, err = watch.NewSetup(&options)
	return present, other, err
}

func (r *WatchedComparison) addPair(pair [2]*Outcome) {
	r.Pairs++
	r.AgainstTimes, r.Times = append(r.AgainstTimes, float64(pair[0].Wall)), append(r.Times, float64(pair[1].Wall))
	r.AgainstReserved, r.Reserved = max(r.AgainstReserved, pair[0].Peak), max(r.Reserved, pair[1].Peak)
	a, b := &pair[0].iterations, &pair[1].iterations
	if a.Count == 0 || b.Count == 0 {
		return
	}
	if r.Iterations == 0 {
		r.Iterations, r.Creates = b.Count, b.Creates
	}
	each := func(i *measure.Iterations) float64 {
		return i.NS / float64(max(i.Creates, 1)) * float64(max(r.Creates, 1))
	}
	r.AgainstIterations, r.IterationTimes = append(r.AgainstIterations, each(a)), append(r.IterationTimes, each(b))
}

func (r *WatchedComparison) setResults(inside *measure.Result) {
	r.Whole = newChange(r.Times, r.AgainstTimes)
	r.inside, r.Measured = inside, report.NewMeasured(inside)
	if len(r.IterationTimes) == 0 {
		return
	}
	c := newChange(r.IterationTimes, r.AgainstIterations)
	if r.Iteration = &c; c.Known && inside.IsKnown() {
		a := &inside.Answer
		agrees := math.Abs(a.Difference-c.Difference) <= math.Hypot((a.High-a.Low)/2, (c.High-c.Low)/2)
		r.Agrees = &agrees
	}
}

func newChange(present, other []float64) Change {
	i, known := experiment.ComparePairs(present, other, 1-wantedConfidence)
	return Change{i.Median, i.Low, i.High, known}
}

// WriteText writes the result for people.
func (r *WatchedComparison) WriteText(w io.Writer) error {
	var table units.Table
	table.Add("", r.Against, r.Configuration)
	row := func(name string, against, present []float64) {
		table.Add(name, units.DurationLong(medianInterval(slices.Clone(against)).Median), units.DurationLong(medianInterval(slices.Clone(present)).Median))
	}
	row("median time", r.AgainstTimes, r.Times)
	if r.Iteration != nil {
		row(strings.TrimSuffix(strings.TrimSuffix(r.timedUnit(), " takes"), " it"), r.AgainstIterations, r.IterationTimes)
	}
	table.Add("peak reserved", units.FormatLong(r.AgainstReserved), units.FormatLong(r.Reserved))
	return console.WriteText(w, table.String()+console.WrapIndented(r.Text(), 2, console.TextWidth(w))+"\n")
}

// timedUnit says what is timed beside whole runs.
func (r *WatchedComparison) timedUnit() string {
	if r.Creates == 0 {
		return "from create to create it takes"
	}
	return "an iteration takes"
}

// Text says in a paragraph what the difference is, in whole runs and inside one.
func (r *WatchedComparison) Text() string {
	text := fmt.Sprintf("With %s a run takes %s than with %s, both watched", r.Configuration, r.Whole.changeText(), r.Against)
	if r.Iteration != nil {
		text += fmt.Sprintf("; after the start %s %s", r.timedUnit(), r.Iteration.changeText())
	}
	if r.Whole.Known {
		text += fmt.Sprintf(" (95 %% confidence, signed-rank test of %d pairs).", r.Pairs)
	} else {
		text += fmt.Sprintf(", by %s of runs: %d give an interval.", units.Count(uint64(r.Pairs), "pair"), DefaultRuns)
	}
	switch {
	case !r.inside.IsKnown():
		text += " Inside one run: " + cmp.Or(r.inside.Text(), "nothing") + "."
	case r.Agrees == nil:
		text += fmt.Sprintf(" Inside one run it is %s.", r.inside.ChangeText())
	case *r.Agrees:
		text += fmt.Sprintf(" Inside one run it is %s, which agrees.", r.inside.ChangeText())
	default:
		text += fmt.Sprintf(" Inside one run it is %s: more apart than the intervals explain.", r.inside.ChangeText())
	}
	return text + " All runs ended with exit status 0."
}

func (c *Change) changeText() string {
	if c.Known {
		return measure.ChangeText(c.Difference, c.Low, c.High)
	}
	word := "less"
	if c.Difference > 0 {
		word = "more"
	}
	return fmt.Sprintf("%.2g %% %s", math.Abs(100*c.Difference), word)
}
