package study

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"strings"

	"codeberg.org/gpumemtop/gpumemtop/internal/app/console"
	"codeberg.org/gpumemtop/gpumemtop/internal/app/watch"
	"codeberg.org/gpumemtop/gpumemtop/internal/setting"
	"codeberg.org/gpumemtop/gpumemtop/internal/units"
)

// OutputComparison says whether a program does the same with the pool, where recycled memory is full of poison, as bare.
// Scripts rely on its JSON keys.
type OutputComparison struct {
	Command       []string    `json:"command"`
	Configuration string      `json:"configuration"` // of the pool
	Pairs         int         `json:"pairs"`
	Recycled      uint64      `json:"recycled"`      // creates that each run with the pool at least served with recycled memory
	Lines         int         `json:"lines"`         // of stdout, of the first bare run
	Ignored       int         `json:"ignored_lines"` // of these, that differ between bare runs
	End           string      `json:"end"`           // of bare runs: "exit status 0"
	Differs       bool        `json:"differs"`
	Difference    *Difference `json:"difference,omitempty"` // the first
}

// Difference is where a run with the pool differs from bare ones: how it ends, or else the first such line of stdout.
type Difference struct {
	Line   int    `json:"line"` // from 1; 0: the end of the run
	Bare   string `json:"bare"`
	Pooled string `json:"pooled"`
}

// printed is what a run left, as far as it is compared.
type printed struct {
	end   string
	lines []string
}

// shownMax bounds how much of a line is shown.
const shownMax = 200

// DefaultOutputRuns is how many pairs of runs there usually are for outputs: the fewest that show what differs between bare runs.
const DefaultOutputRuns = 2

// CompareOutputs compares what a program prints on stdout, and its exit status, bare and with the pool.
func CompareOutputs(o *CompareOptions, command []string) (*OutputComparison, error) {
	if o.Runs < DefaultOutputRuns {
		return nil, fmt.Errorf("bad value %d for --runs: with --outputs want %d or more, as bare runs are compared with each other", o.Runs, DefaultOutputRuns)
	}
	setup, program, err := o.prepareSetup(command)
	if err != nil {
		return nil, err
	}
	setup.PoisonRecycled()
	program.keeps = true
	defer program.StopOnSignals()()
	configuration := setup.Configuration()
	r := &OutputComparison{Command: command, Configuration: setting.ConfigurationText(&configuration), Pairs: o.Runs, Recycled: ^uint64(0)}
	var bare, pooled []printed
	for range o.Runs {
		without, err := runCapturingOutput(program, nil, "bare")
		if err != nil {
			return nil, err
		}
		with, err := runCapturingOutput(program, setup, r.Configuration+", recycled memory poisoned")
		switch {
		case err != nil:
			return nil, err
		case with.Nothing != "":
			return nil, errors.New(with.Nothing + ": there is nothing to compare")
		}
		bare, pooled = append(bare, without.printedOutput()), append(pooled, with.printedOutput())
		r.Recycled = min(r.Recycled, with.Hits)
	}
	return r, r.findDifference(bare, pooled)
}

// runCapturingOutput runs the program once, however it ends.
func runCapturingOutput(program *Program, setup *watch.Setup, how string) (*Outcome, error) {
	o, err := program.RunTimed(setup)
	if err == nil {
		console.SayLine("run %d: %s: %s, %s on stdout", program.Runs, how, o, units.FormatLong(uint64(len(o.stdout))))
	}
	return o, err
}

func (o *Outcome) printedOutput() printed {
	p := printed{end: o.String()}
	if text := bytes.TrimSuffix(o.stdout, []byte("\n")); len(o.stdout) > 0 {
		p.lines = strings.Split(string(text), "\n")
	}
	return p
}

// findDifference looks for the first difference in what does not differ between bare runs.
func (r *OutputComparison) findDifference(bare, pooled []printed) error {
	first := bare[0]
	r.End, r.Lines = first.end, len(first.lines)
	ignored := make([]bool, len(first.lines))
	for _, other := range bare[1:] {
		if other.end != first.end {
			return fmt.Errorf("its end differs between bare runs (%s, %s): it cannot be compared", first.end, other.end)
		}
		if len(other.lines) != len(first.lines) {
			return errors.New("its output differs between bare runs, in the number of lines: it cannot be compared")
		}
		for i, line := range other.lines {
			ignored[i] = ignored[i] || line != first.lines[i]
		}
	}
	for _, skip := range ignored {
		if skip {
			r.Ignored++
		}
	}
	if r.Lines > 0 && r.Ignored == r.Lines {
		return errors.New("its output differs between bare runs, in each line: it cannot be compared")
	}
	for _, other := range pooled {
		if d := first.firstDifference(other, ignored); d != nil {
			r.Differs, r.Difference = true, d
			break
		}
	}
	return nil
}

// firstDifference returns the first, nil if there is none.
func (p printed) firstDifference(other printed, ignored []bool) *Difference {
	at := func(lines []string, i int) string {
		if i >= len(lines) {
			return "(no such line)"
		}
		return units.Cut(units.Clean(lines[i]), shownMax)
	}
	for i := range max(len(p.lines), len(other.lines)) {
		beyond := i >= len(p.lines) || i >= len(other.lines)
		if beyond || !ignored[i] && p.lines[i] != other.lines[i] {
			return &Difference{i + 1, at(p.lines, i), at(other.lines, i)}
		}
	}
	if p.end != other.end {
		return &Difference{0, p.end, other.end}
	}
	return nil
}

// Text says in a paragraph what was found.
func (r *OutputComparison) Text() string {
	what := "what it prints on stdout and its " + r.End
	if r.Lines == 0 {
		what = "its " + r.End + " (it prints nothing on stdout)"
	}
	text := fmt.Sprintf("With %s and recycled memory full of 0xff bytes, ", r.Configuration)
	switch {
	case !r.Differs:
		text += fmt.Sprintf("%s are the same as bare, in %d pairs of runs.", what, r.Pairs)
	case r.Difference.Line == 0:
		text += fmt.Sprintf("it ends with %s, bare with %s.", r.Difference.Pooled, r.Difference.Bare)
	default:
		text += fmt.Sprintf("line %d of stdout differs.", r.Difference.Line)
	}
	if r.Differs {
		text += " So the program depends on memory that it never wrote, or on what differs between runs as well, such as time."
	}
	if r.Ignored > 0 {
		text += fmt.Sprintf(" %s between bare runs and %s ignored.", units.Plural(uint64(r.Ignored), "line differs", "lines differ"),
			map[bool]string{true: "was", false: "were"}[r.Ignored == 1])
	}
	if r.Recycled == 0 {
		return text + " The pool recycled nothing, so nothing was tried."
	}
	return text + fmt.Sprintf(" The pool recycled memory for %s.", units.Count(r.Recycled, "create"))
}

// WriteText writes the result for people.
func (r *OutputComparison) WriteText(w io.Writer) error {
	text := console.WrapIndented(r.Text(), 0, console.TextWidth(w)) + "\n"
	if d := r.Difference; d != nil && d.Line > 0 {
		text += fmt.Sprintf("  bare      %s\n  poisoned  %s\n", d.Bare, d.Pooled)
	}
	return console.WriteText(w, text)
}
