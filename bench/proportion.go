package main

import (
	"fmt"
	"math"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
)

// outgrowing are programs whose pools used to keep memory that the programs no longer needed.
var outgrowing = [][]string{{"outgrows", "scratch", "16", "16M"}, {"outgrows", "vector", "16", "4M"}, {"outgrows", "phases", "16", "32M"}, {"outgrows", "sweep", "16", "4M"}}

// needing are programs that need nearly all memory that they had: examples, and programs whose libraries allocate
// (docs/GAINS.md). Most take a second or more, so that the start, which differs between runs, counts for little.
var needing = [][]string{
	{"pipeline", "400", "1M"}, {"train", "40"}, {"stencil", "400", "4M"}, {"frag", "800", "1M"}, {"multiqueue", "2500", "256K"},
	{"threads", "4", "20000", "64K"}, {"staging", "150"}, {"churn", "800000", "4K", "2"}, {"mosaic", "800"},
	{"arrays", "20", "1000"}, {"umat", "5", "2048"}, {"solver", "60", "100000"}, {"sort", "30", "1000000"},
	{"hoard"}, {"small"}, // a pool of the program's own that gives nothing back, and 50,000 buffers of 64 bytes at once
}

// measureDefaultCandidates runs programs under the default policy and under other candidates for it, in turns.
func (b *bench) measureDefaultCandidates() error {
	limits := []string{"--set", "proportion=1.5,outgrown=on,max_age=10"}
	modes := []mode{
		{name: "futhark", policy: "futhark"}, {name: "futhark, all kept", policy: "futhark", flags: []string{"--set", "proportion=0,outgrown=off,max_age=0"}},
		{name: "slab", policy: "slab", flags: limits}, {name: "arena", policy: "arena", flags: limits},
	}
	b.printRow("program", "policy", "time ×", "from", "to", "hits", "in use", "reserved", "reserved / in use", "beyond", "create p99 µs")
	var notes []string
	for _, workload := range slices.Concat(outgrowing, needing) {
		if !b.isProgramSelected(workload[0]) {
			continue
		}
		if err := b.measureProgramInModes(modes, workload); err != nil {
			notes = append(notes, fmt.Sprintf("%s, not measured: %v", workload[0], err))
		}
	}
	b.flushTable()
	fmt.Println("\nTime is that of all processors, of program and gpumemtop, as a multiple of futhark's in the same turn: the median, and the\n" +
		"interval that holds the median of all turns in 95 % of cases, with six turns or more. Bytes are the most at one time, in MiB; beyond is by\n" +
		"how much the pool exceeded 1.5 times the most in use of the last minute and 32 MiB.")
	for _, note := range notes {
		fmt.Println(note)
	}
	return nil
}

// measureProgramInModes runs one program in every mode, and prints the rows.
func (b *bench) measureProgramInModes(modes []mode, workload []string) error {
	command, name, err := b.commandOfWorkload(workload)
	if err != nil {
		return err
	}
	if _, err := b.runOnce(bare, command...); err != nil { // it also fills the driver's caches
		return err
	}
	results := make([][]result, len(modes))
	for turn := range b.runs {
		for k := range modes {
			i := (k + turn) % len(modes) // none is always the first
			r, err := b.runOnce(modes[i], command...)
			if err == nil {
				err = r.readRecordedFigures()
			}
			if err != nil {
				return err
			}
			results[i] = append(results[i], r)
		}
	}
	for i, m := range modes {
		b.printRow(append([]any{name, m.name}, formatMemoryAndTimeCells(results[i], results[0])...)...)
	}
	return nil
}

// commandOfWorkload returns the command of a workload, and its name.
func (b *bench) commandOfWorkload(workload []string) (command []string, name string, err error) {
	name, arguments := workload[0], workload[1:]
	source := filepath.Join(b.root, "bench", "gains", name)
	switch _, python := os.Stat(source + ".py"); {
	case name == "outgrows":
		return append([]string{b.testProgramPath(name)}, arguments...), arguments[0], nil
	case name == "hoard" || name == "small":
		return []string{b.testProgramPath("faults/findings"), name}, name, nil
	case python == nil: // /usr/bin: Debian has its libraries for that one
		return append([]string{"/usr/bin/env", "OPENCV_OPENCL_DEVICE=:CPU:", "/usr/bin/python3", source + ".py"}, arguments...), name, nil
	case name == "solver" || name == "sort":
		built := filepath.Join(b.temp, name)
		if text, err := exec.Command("g++", "-O1", "-w", "-DCL_TARGET_OPENCL_VERSION=120", source+".cpp", "-o", built, "-lOpenCL").CombinedOutput(); err != nil {
			return nil, name, fmt.Errorf("compile: %w: %s", err, text)
		}
		return append([]string{built}, arguments...), name, nil
	}
	return append([]string{b.examplePath(name)}, arguments...), name, nil
}

// formatMemoryAndTimeCells returns the cells of one mode.
func formatMemoryAndTimeCells(here, base []result) []any {
	ratios := make([]float64, 0, len(here))
	for i := range here {
		ratios = append(ratios, here[i].cpu.Seconds()/base[i].cpu.Seconds())
	}
	low, high := medianInterval(ratios)
	inUse, reserved := medianOfResults(here, func(r *result) float64 { return r.sum.PeakInUse }), medianOfResults(here, peakReserved)
	return []any{
		formatFixed(medianOf(ratios), 3), formatFixed(low, 3), formatFixed(high, 3),
		formatPercent(medianOfResults(here, func(r *result) float64 { return r.sum.HitRate })),
		formatFixed(inUse/(1<<20), 1), formatFixed(reserved/(1<<20), 1), formatFixed(reserved/inUse, 2),
		formatFixed(medianOfResults(here, func(r *result) float64 { return r.beyond })/(1<<20), 1),
		formatFixed(medianOfResults(here, func(r *result) float64 { return r.slowCreate })/1e3, 1),
	}
}

// medianInterval returns the interval that holds the median with a confidence of 95 % (sign test); with fewer than six values
// all of them.
func medianInterval(values []float64) (low, high float64) {
	values = slices.Sorted(slices.Values(values))
	n, k := len(values), 0
	outside, term := 0.0, math.Pow(0.5, float64(len(values)))
	for ; k < (n+1)/2; k++ {
		if outside += 2 * term; k > 0 && outside > 0.05 {
			break
		}
		term *= float64(n-k) / float64(k+1)
	}
	return values[k-1], values[n-k]
}
