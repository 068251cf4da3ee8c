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

// measurable are programs whose iterations come fast enough for an answer inside one run of some seconds. COUNT is how many they make.
var measurable = []struct {
	name, against string
	whole, inside int // iterations of a whole run, and of the run of the experiment
	args          []string
}{
	{"stencil, 40 MiB", "none", 300, 1000, []string{"bin/examples/stencil", "COUNT", "40M"}},
	{"stencil, 4 MiB", "none", 5000, 10000, []string{"bin/examples/stencil", "COUNT", "4M"}},
	{"pipeline, 2 MiB", "none", 1400, 3000, []string{"bin/examples/pipeline", "COUNT", "2M"}},
	{"tiles, 4 MiB", "none", 1200, 2500, []string{"bin/test/tiles", "COUNT", "4M"}},
	{"pointers, 16 MiB", "none", 2200, 4000, []string{"bin/test/pointers", "COUNT", "16M"}},
	{"train", "none", 420, 1000, []string{"bin/examples/train", "COUNT"}},
	{"mosaic, 4 MiB", "none", 4000, 8000, []string{"bin/examples/mosaic", "COUNT", "4M"}},
	{"PyOpenCL's arrays, 4 MB each", "none", 100, 400, []string{"/usr/bin/python3", "bench/gains/arrays.py", "COUNT", "1000"}},
	{"PyOpenCL's arrays, 8 MB each", "none", 50, 220, []string{"/usr/bin/python3", "bench/gains/arrays.py", "COUNT", "1448"}},
	{"OpenCV's UMat, 1024²", "none", 150, 500, []string{"/usr/bin/python3", "bench/gains/umat.py", "COUNT", "1024"}},
	{"ViennaCL's solver", "none", 600, 1500, []string{"solver", "COUNT", "100000"}},
	{"both alike: stencil", "futhark", 450, 1100, []string{"bin/examples/stencil", "COUNT", "40M"}},
	{"both alike: train", "futhark", 420, 1000, []string{"bin/examples/train", "COUNT"}},
}

// watchedComparison is what compare --against finds, and insideRun what a run with --measure does. Differences are parts of 1.
type watchedComparison struct {
	NS        []float64
	Iteration *Change
}

type insideRun struct {
	Measured *struct {
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

func (c *Change) half() float64 { return (c.High - c.Low) / 2 }

func (c *Change) String() string {
	return fmt.Sprintf("%+.1f ± %.1f %%", 100*c.Difference, 100*c.half())
}

// experiment compares what an experiment inside one run finds with whole runs of the same two configurations.
func (b *bench) experiment() error {
	b.row("program", "inside one run", "blocks", "iterations", "s", "whole runs", "of each", "s", "agree", "exact")
	var notes []string
	for i, m := range measurable {
		if !strings.HasPrefix(m.name, b.pick) {
			continue
		}
		cells, err := b.insideAndWhole(i)
		if err != nil {
			notes = append(notes, fmt.Sprintf("%s, not measured: %v", m.name, err))
			continue
		}
		b.row(append([]any{m.name}, cells...)...)
	}
	b.flush()
	fmt.Println("\nChange of the time of an iteration with futhark, as a part of that without a pool, or with futhark where both are alike; all\n" +
		"are watched. Exact: half of the interval is at most 2 % or a third of the change.")
	for _, note := range notes {
		fmt.Println(note)
	}
	return nil
}

// insideAndWhole returns the cells of a program.
func (b *bench) insideAndWhole(program int) ([]any, error) {
	m := &measurable[program]
	args := slices.Clone(m.args)
	if args[0] == "solver" {
		var err error
		if args, _, err = b.findProgram(args); err != nil {
			return nil, err
		}
	}
	count := slices.Index(args, "COUNT")
	args[count] = strconv.Itoa(m.whole)
	var whole watchedComparison
	compared := filepath.Join(b.temp, "compared.json")
	flags := []string{"compare", "--against", m.against, "--runs", strconv.Itoa(b.runs), "--format", "json", "--"}
	if _, err := b.found(&whole, compared, true, slices.Concat(flags, args)); err != nil {
		return nil, err
	}
	args[count] = strconv.Itoa(m.inside)
	var inside insideRun
	summary := filepath.Join(b.temp, "summary.json")
	took, err := b.found(&inside, summary, false, slices.Concat([]string{"--headless", "--measure=" + m.against, "-f", "--summary", summary, "--"}, args))
	if err != nil {
		return nil, err
	}
	return cellsOf(&inside, &whole, took), nil
}

// found runs gpumemtop, reads what it wrote to a file, or else to stdout, and returns how long it ran.
func (b *bench) found(into any, file string, stdout bool, args []string) (took time.Duration, err error) {
	var r result
	cmd := b.program(append([]string{b.gpumemtop()}, args...))
	cmd.Dir = b.root
	if stdout {
		out, err := os.Create(file)
		if err != nil {
			return 0, err
		}
		defer out.Close() //nolint:errcheck // what is missing in it is found when it is read
		cmd.Stdout = out
	}
	if err := r.execute(cmd); err != nil {
		return 0, err
	}
	text, err := os.ReadFile(file)
	if err != nil {
		return 0, err
	}
	return r.wall, json.Unmarshal(text, into)
}

// cellsOf holds what one run shows against what whole runs show.
func cellsOf(inside *insideRun, whole *watchedComparison, took time.Duration) []any {
	m, w := inside.Measured, whole.Iteration
	cells := []any{"?", "", "", fixed(took.Seconds(), 1), "?", len(whole.NS), fixed(middle(whole.NS)/1e9, 1), "?", "no"}
	if w != nil {
		cells[4] = w.String()
	}
	switch {
	case m == nil:
	case m.Change == nil:
		cells[0] = m.Why
	default:
		cells[0], cells[1], cells[2] = m.String(), m.Blocks, m.Iterations
		if m.half() <= max(0.02, math.Abs(m.Difference)/3) {
			cells[8] = "yes"
		}
		if w != nil && w.High > w.Low {
			apart := math.Abs(m.Difference - w.Difference)
			cells[7] = map[bool]string{true: "yes", false: "no"}[apart <= math.Hypot(m.half(), w.half())]
		}
	}
	return cells
}
