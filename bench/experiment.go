package main

import (
	"encoding/json"
	"fmt"
	"math"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"time"
)

// The intended seconds of a whole run, and of a run with an experiment.
const (
	wholeSeconds  = 2.5
	insideSeconds = 25
)

// measurable are programs whose iterations are so short that an experiment decides within a run of some seconds. COUNT is the
// number of iterations.
var measurable = []struct {
	name, against string
	few           int // iterations of a run of some tenths of a second on a slow device
	args          []string
}{
	{"stencil 40 MiB", "none", 30, []string{"bin/examples/stencil", "COUNT", "40M"}},
	{"stencil 4 MiB", "none", 300, []string{"bin/examples/stencil", "COUNT", "4M"}},
	{"pipeline 2 MiB", "none", 100, []string{"bin/examples/pipeline", "COUNT", "2M"}},
	{"tiles 4 MiB", "none", 100, []string{"bin/test/tiles", "COUNT", "4M"}},
	{"pointers 16 MiB", "none", 100, []string{"bin/test/pointers", "COUNT", "16M"}},
	{"train", "none", 40, []string{"bin/examples/train", "COUNT"}},
	{"mosaic 4 MiB", "none", 300, []string{"bin/examples/mosaic", "COUNT", "4M"}},
	{"PyOpenCL's arrays 4 MB each", "none", 10, []string{"arrays", "COUNT", "1000"}},
	{"PyOpenCL's arrays 8 MB each", "none", 5, []string{"arrays", "COUNT", "1448"}},
	{"PyOpenCL's arrays 67 MB each", "none", 2, []string{"arrays", "COUNT", "4096"}},
	{"OpenCV's UMat 1024²", "none", 15, []string{"umat", "COUNT", "1024"}},
	{"ViennaCL's solver", "none", 60, []string{"solver", "COUNT", "100000"}},
	{alike + "stencil", "futhark", 30, []string{"bin/examples/stencil", "COUNT", "40M"}},
	{alike + "pipeline", "futhark", 100, []string{"bin/examples/pipeline", "COUNT", "2M"}},
	{alike + "train", "futhark", 40, []string{"bin/examples/train", "COUNT"}},
	{alike + "mosaic", "futhark", 300, []string{"bin/examples/mosaic", "COUNT", "4M"}},
}

// alike begins the names of programs that run with the same configuration on both sides.
const alike = "both alike: "

// watchedComparison is the result of compare --against, and insideRun that of a run with --measure. Differences are fractions.
type watchedComparison struct {
	NS        []float64
	Iteration *Change
}

type insideRun struct {
	Measured []struct {
		*Change
		Why                string
		Blocks, Iterations int
	}
}

// Change is a difference with the interval of 95 %.
type Change struct {
	Difference float64
	Low        float64 `json:"difference_low"`
	High       float64 `json:"difference_high"`
}

func (c *Change) halfIntervalWidth() float64 { return (c.High - c.Low) / 2 }

func (c *Change) String() string {
	return fmt.Sprintf("%+.1f ± %.1f %%", 100*c.Difference, 100*c.halfIntervalWidth())
}

// compareExperimentWithRuns compares the result of an experiment inside one run with whole runs of the same two configurations.
func (b *bench) compareExperimentWithRuns() error {
	b.printRow("program", "inside one run", "blocks", "iterations", "s", "whole runs", "of each", "s", "agree", "exact", "measuring costs")
	var notes []string
	for i, m := range measurable {
		if !b.isProgramSelected(m.name) {
			continue
		}
		cells, err := b.compareInsideAndWhole(i)
		if err != nil {
			notes = append(notes, fmt.Sprintf("%s, not measured: %v", m.name, err))
			continue
		}
		b.printRow(append([]any{m.name}, cells...)...)
	}
	b.flushTable()
	fmt.Println("\nChange of the time of an iteration with futhark, as a part of that without a pool, or with futhark where both are alike; all\n" +
		"are watched. Exact: half of the interval is at most 2 % or a third of the change. Measuring costs: the change of the time of a\n" +
		"whole run by an experiment that never ends, with arms that are alike, so that none is worse; with the interval by sign test.")
	for _, note := range notes {
		fmt.Println(note)
	}
	return nil
}

// compareInsideAndWhole returns the cells of a program.
func (b *bench) compareInsideAndWhole(program int) ([]any, error) {
	m := &measurable[program]
	args := slices.Clone(m.args)
	if !strings.Contains(args[0], "/") {
		var err error
		if args, _, err = b.commandOfWorkload(args); err != nil {
			return nil, err
		}
	}
	count := slices.Index(args, "COUNT")
	each, err := b.secondsPerIteration(args, count, m.few)
	if err != nil {
		return nil, err
	}
	args[count] = strconv.Itoa(max(m.few, int(wholeSeconds/each)))
	var whole watchedComparison
	compared := filepath.Join(b.temp, "compared.json")
	flags := []string{"compare", "--against", m.against, "--runs", strconv.Itoa(b.runs), "--format", "json", "--"}
	if _, err := b.runForJSON(&whole, compared, true, slices.Concat(flags, args)); err != nil {
		return nil, err
	}
	costs := ""
	if strings.HasPrefix(m.name, alike) {
		if costs, err = b.costOfExperiment(args); err != nil {
			return nil, err
		}
	}
	args[count] = strconv.Itoa(max(m.few, int(insideSeconds/each)))
	var inside insideRun
	took, err := b.timeRunUnderGpumemtop(&inside, args, "--measure="+m.against)
	if err != nil {
		return nil, err
	}
	return append(formatComparison(&inside, &whole, took), costs), nil
}

// secondsPerIteration returns the seconds of one iteration of a program, by two short runs.
func (b *bench) secondsPerIteration(args []string, count, few int) (seconds float64, err error) {
	var took [2]float64
	for i, n := range []int{few, 8 * few} {
		args[count] = strconv.Itoa(n)
		var r result
		cmd := b.programCommand(args)
		cmd.Dir = b.root
		if err := r.runAndMeasure(cmd); err != nil {
			return 0, err
		}
		took[i] = r.wall.Seconds()
	}
	return max(took[1]-took[0], 1e-3) / float64(7*few), nil
}

// costOfExperiment returns the time that an experiment with two equal arms adds to a run.
func (b *bench) costOfExperiment(args []string) (string, error) {
	ratios := make([]float64, b.runs)
	for i := range ratios {
		without, err := b.timeRunUnderGpumemtop(&insideRun{}, args)
		if err != nil {
			return "", err
		}
		with, err := b.timeRunUnderGpumemtop(&insideRun{}, args, "--measure=futhark", "--measure-until=0.1")
		if err != nil {
			return "", err
		}
		ratios[i] = 100 * (with.Seconds()/without.Seconds() - 1)
	}
	low, high := medianInterval(ratios)
	return fmt.Sprintf("%+.1f %% (%+.1f to %+.1f)", medianOf(ratios), low, high), nil
}

// timeRunUnderGpumemtop runs a program under gpumemtop with flags, and returns how long it ran.
func (b *bench) timeRunUnderGpumemtop(into *insideRun, args []string, flags ...string) (time.Duration, error) {
	summary := filepath.Join(b.temp, "summary.json")
	return b.runForJSON(into, summary, false, slices.Concat([]string{"--headless", "-f", "--summary", summary}, flags, []string{"--"}, args))
}

// runForJSON runs gpumemtop, decodes the JSON that it wrote to a file or to stdout, and returns how long it ran.
func (b *bench) runForJSON(into any, file string, stdout bool, args []string) (took time.Duration, err error) {
	var r result
	cmd := b.programCommand(append([]string{b.gpumemtopPath()}, args...))
	cmd.Dir = b.root
	if stdout {
		out, err := os.Create(file)
		if err != nil {
			return 0, err
		}
		defer out.Close() //nolint:errcheck // what is missing in it is found when it is read
		cmd.Stdout = out
	}
	if err := r.runAndMeasure(cmd); err != nil {
		return 0, err
	}
	text, err := os.ReadFile(file)
	if err != nil {
		return 0, err
	}
	return r.wall, json.Unmarshal(text, into)
}

// formatComparison returns the cells that compare an experiment inside one run with whole runs.
func formatComparison(inside *insideRun, whole *watchedComparison, took time.Duration) []any {
	w := whole.Iteration
	cells := []any{"?", "", "", formatFixed(took.Seconds(), 1), "?", len(whole.NS), formatFixed(medianOf(whole.NS)/1e9, 1), "?", "no"}
	if w != nil {
		cells[4] = w.String()
	}
	if len(inside.Measured) == 0 {
		return cells
	}
	m := &inside.Measured[0]
	if m.Change == nil {
		cells[0] = m.Why
		return cells
	}
	cells[0], cells[1], cells[2] = m.String(), m.Blocks, m.Iterations
	if m.halfIntervalWidth() <= max(0.02, math.Abs(m.Difference)/3) {
		cells[8] = "yes"
	}
	if w != nil && w.High > w.Low {
		apart := math.Abs(m.Difference - w.Difference)
		cells[7] = map[bool]string{true: "yes", false: "no"}[apart <= math.Hypot(m.halfIntervalWidth(), w.halfIntervalWidth())]
	}
	return cells
}
