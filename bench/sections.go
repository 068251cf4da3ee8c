package main

import (
	"fmt"
	"math"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"time"
)

var (
	bare    = mode{name: "bare"}
	none    = mode{name: "none", policy: "none", flags: []string{"--tags", "caller"}}
	futhark = mode{name: "futhark", policy: "futhark", flags: []string{"--tags", "caller"}}
	pow2    = mode{name: "pow2", policy: "pow2", flags: []string{"--tags", "caller"}}
	stacks  = []mode{
		{name: "none, stack tags", policy: "none", flags: []string{"--tags", "stack"}},
		{name: "futhark, stack tags", policy: "futhark", flags: []string{"--tags", "stack"}},
	}
)

const mib = 1 << 20

// loop is a program that creates memory of one size over and over.
type loop struct {
	name, path      string
	traffic         int // bytes of SIZE in all iterations together
	fewest, highest int
}

var loopSizes = []int{1, 16, 64, 256} // MiB

func (b *bench) programsWithLoops() []loop {
	return []loop{
		{"stencil", b.examplePath("stencil"), 1 << 30, 8, 500},
		{"pipeline", b.examplePath("pipeline"), 1 << 28, 3, 100},
		{"tiles", b.testProgramPath("tiles"), 1 << 28, 3, 500},
		{"pointers", b.testProgramPath("pointers"), 1 << 28, 3, 500},
	}
}

// commandFor returns how often the loop runs with a size in MiB, and its command.
func (l *loop) commandFor(size int) (iterations int, args []string) {
	iterations = min(max(l.traffic/(size*mib), l.fewest), l.highest)
	return iterations, []string{l.path, "-t", strconv.Itoa(iterations), fmt.Sprintf("%dM", size)}
}

// measureWorkTimes compares work times: without process start and kernel compilation, which are the same in all modes.
func (b *bench) measureWorkTimes() error {
	b.printRow("program", "MiB", "iterations", "bare s", "futhark s", "times faster", "wall bare s", "wall futhark s", "hits", "steady")
	for _, l := range b.programsWithLoops() {
		for _, size := range loopSizes {
			iterations, args := l.commandFor(size)
			results, err := b.runInTurns(1, []mode{bare, futhark}, args...)
			if err != nil {
				return err
			}
			work := [2]float64{medianOfResults(results[0], (*result).reportedWorkSeconds), medianOfResults(results[1], (*result).reportedWorkSeconds)}
			wall := [2]float64{medianOfResults(results[0], wallSeconds), medianOfResults(results[1], wallSeconds)}
			sum := results[1][len(results[1])-1].sum
			b.printRow(l.name, size, iterations, formatFixed(work[0], 3), formatFixed(work[1], 3), formatFixed(work[0]/work[1], 2), formatFixed(wall[0], 3),
				formatFixed(wall[1], 3), formatPercent(sum.HitRate), formatPercent(sum.SteadyHitRate))
		}
	}
	b.flushTable()
	fmt.Println("\nBelow 32 MiB glibc keeps freed memory itself, unless it lies at the top of the heap: on PoCL the pool gains less there.")
	return nil
}

func wallSeconds(r *result) float64 { return r.wall.Seconds() }

// callFigures are the columns of tables of calls, each with its key in the output of callcost.
var callFigures = []string{
	"create+release", "create_release_ns", "quickest", "create_release_quickest_ns", "set argument", "set_argument_ns",
	"enqueue", "enqueue_ns", "enqueue with event", "enqueue_event_ns", "release event", "release_event_ns",
}

// measureCallCosts shows the cost of single calls in every mode, and how much that exceeds the bare cost.
func (b *bench) measureCallCosts() error {
	if err := b.compareCallCosts(append([]mode{bare, none, futhark, pow2}, stacks...)); err != nil {
		return err
	}
	fmt.Println("\nBudgets: create+release without pool bare + 250, from the pool 600 in all, stack tags + 60; argument bare + 15; enqueue bare + 150, which the column after it is not: that is two calls.")
	return nil
}

// measureLongLoops shows what creates and releases cost in long loops, where the session must keep up: unlike in bursts.
func (b *bench) measureLongLoops() error {
	modes := []mode{bare, {name: "none", policy: "none"}, {name: "futhark", policy: "futhark"}, {name: "slab", policy: "slab"}, {name: "arena", policy: "arena"}}
	results, err := b.runInTurns(3, modes, b.examplePath("churn"), "-t", "2000000", "64K", "1")
	if err != nil {
		return err
	}
	b.printRow("mode", "create+release", "× bare", "events lost")
	base := medianOfResults(results[0], (*result).reportedWorkSeconds)
	for i, m := range modes {
		here := medianOfResults(results[i], (*result).reportedWorkSeconds)
		b.printRow(m.name, formatFixed(here*1e9, 0), formatFixed(here/base, 2), medianOfResults(results[i],
			func(r *result) float64 { return float64(r.sum.Lost) }))
	}
	b.flushTable()
	fmt.Println("\nTwo million pairs of 64 KiB in a row, with stack tags.")
	return nil
}

// measureCostOfSpill shows the cost of virtual objects that never move.
func (b *bench) measureCostOfSpill() error {
	spilling := mode{name: "none, --spill", policy: "none", flags: append([]string{"--spill"}, none.flags...)}
	if err := b.compareCallCosts([]mode{none, spilling}); err != nil {
		return err
	}
	fmt.Println("\nBudgets: argument none + 15, commands none + 100.")
	return nil
}

// compareCallCosts compares the cost of single calls in each mode with that in the first.
func (b *bench) compareCallCosts(modes []mode) error {
	// Differences are tens of ns, and an enqueue wakes other threads: one run in ten is far off.
	results, err := b.runInTurns(3, modes, b.testProgramPath("callcost"))
	if err != nil {
		return err
	}
	b.printCallCosts(modes, results, callFigures)
	b.printCallCosts(modes, results, []string{
		"write 4 KiB", "write_ns", "blocking", "write_wait_ns", "1 MiB, blocking", "write_large_ns", "read 4 KiB, blocking", "read_wait_ns",
		"1 MiB, blocking", "read_large_ns",
	})
	b.printCallCosts(modes, results, []string{"bytes of RSS for a live buffer of 64", "live_bytes"})
	return nil
}

// printCallCosts writes a table of figures of callcost: pairs of a title and a key.
func (b *bench) printCallCosts(modes []mode, results [][]result, figures []string) {
	head := []any{"mode"}
	for i := 0; i < len(figures); i += 2 {
		head = append(head, figures[i], "over "+modes[0].name)
	}
	b.printRow(head...)
	for i, m := range modes {
		cells := []any{m.name}
		for k := 1; k < len(figures); k += 2 {
			get := func(r *result) float64 { return r.callCosts()[figures[k]] }
			here, base := medianOfResults(results[i], get), medianOfResults(results[0], get)
			cells = append(cells, formatFixed(here, 1), fmt.Sprintf("%+.1f", here-base))
		}
		b.printRow(cells...)
	}
	b.flushTable()
}

// measureThreadThroughput compares how many creates and releases several threads get through, while they are recorded.
func (b *bench) measureThreadThroughput() error {
	modes := []mode{bare, none, futhark, pow2}
	for _, policy := range []string{"slab", "ualloc"} {
		modes = append(modes, mode{name: policy, policy: policy, flags: []string{"--tags", "caller"}})
	}
	head := []any{"threads"}
	for _, m := range modes {
		head = append(head, m.name)
	}
	b.printRow(head...)
	for _, threads := range []int{1, 2, 8, 64} {
		results, err := b.runInTurns(1, modes, b.examplePath("churn"), "400000", "4K", strconv.Itoa(threads))
		if err != nil {
			return err
		}
		cells := []any{threads}
		for i := range modes {
			cells = append(cells, formatFixed(1e9*medianOfResults(results[i], (*result).reportedWorkSeconds), 0))
		}
		b.printRow(cells...)
	}
	b.flushTable()
	return nil
}

// measureStartTimes compares programs that do nothing, or hardly anything with OpenCL: alone, with the library preloaded, and under
// gpumemtop.
func (b *bench) measureStartTimes() error {
	b.printRow("program", "way", "ms", "over bare")
	for _, program := range []string{b.testProgramPath(filepath.Join("faults", "nocl")), b.examplePath("tiny")} {
		if err := b.measureStartTimesOf(program); err != nil {
			return err
		}
	}
	b.flushTable()
	return nil
}

func (b *bench) measureStartTimesOf(program string) error {
	const repeats = 100
	preload := "LD_PRELOAD=" + filepath.Join(b.root, "build", "libgpumemtop.so")
	ways := []struct {
		name string
		env  []string
		args []string
	}{
		{"bare", nil, []string{program}},
		{"library preloaded", []string{preload}, []string{program}},
		{"gpumemtop --headless", nil, []string{b.gpumemtopPath(), "--headless", "--policy", "futhark", "--", program}},
	}
	results := make([][]result, len(ways))
	for range repeats {
		for i, way := range ways {
			cmd := exec.Command(way.args[0], way.args[1:]...)
			cmd.Env = append(os.Environ(), way.env...)
			cmd.Dir = b.temp
			var r result
			if err := r.runAndMeasure(cmd); err != nil {
				return err
			}
			results[i] = append(results[i], r)
		}
	}
	for i, way := range ways {
		milliseconds := func(r *result) float64 { return float64(r.wall) / float64(time.Millisecond) }
		here, base := medianOfResults(results[i], milliseconds), medianOfResults(results[0], milliseconds)
		b.printRow(filepath.Base(program), way.name, formatFixed(here, 2), fmt.Sprintf("%+.2f", here-base))
	}
	return nil
}

func formatFixed(value float64, digits int) string {
	return strconv.FormatFloat(value, 'f', digits, 64)
}

func formatPercent(rate float64) string { return formatFixed(100*rate, 1) + " %" }

// formatIfCounted shows a figure that depends on the number of events, which may be unknown.
func formatIfCounted(value float64) string {
	if math.IsNaN(value) || value <= 0 || value > 1e15 {
		return "?"
	}
	if value < 100 {
		return formatFixed(value, 1)
	}
	return formatFixed(value, 0)
}
