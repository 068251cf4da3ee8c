package main

import (
	"fmt"

	"codeberg.org/gpumemtop/gpumemtop/allocator"
)

// workloads are the examples that use memory again and again. The other examples end at once, measure single calls or check
// results.
var workloads = [][]string{
	{"stencil", "-t", "12", "4M"},
	{"pipeline", "-t", "8", "2M"},
	{"train", "-t", "8"},
	{"frag", "-t", "20", "1M"},
	{"multiqueue", "-t", "60", "256K"},
	{"threads", "-t", "4", "500", "64K"},
	{"staging", "-t"},
	{"churn", "-t", "200000", "4K", "2"},
}

// measurePrograms runs the examples under every policy.
func (b *bench) measurePrograms() error {
	b.printRow("program", "policy", "work ×", "wall ×", "hits", "steady", "peak reserved / requested")
	var notes []string
	for _, workload := range workloads {
		notes = append(notes, b.measureEveryPolicy(workload)...)
	}
	b.flushTable()
	fmt.Println("\nWork is the time that the program says it took for its loop, wall that from start to end, with the start of gpumemtop,\n" +
		"which records; both as multiples of the bare program's. The work here takes milliseconds: the table shows costs and\n" +
		"memory, section pool what is gained.")
	for _, note := range notes {
		fmt.Println(note)
	}
	return nil
}

// measureEveryPolicy runs one program bare and under all policies, in turns, and returns notes on runs that could not be measured.
func (b *bench) measureEveryPolicy(workload []string) (notes []string) {
	modes := []mode{bare}
	for _, name := range allocator.PolicyNames() {
		modes = append(modes, mode{name: name, policy: name})
	}
	results, failures := make([][]result, len(modes)), make([]error, len(modes))
	args := append([]string{b.examplePath(workload[0])}, workload[1:]...)
	for range b.runs {
		for i, m := range modes {
			if failures[i] != nil {
				continue
			}
			r, err := b.runOnce(m, args...)
			results[i], failures[i] = append(results[i], r), err
		}
		if failures[0] != nil {
			return []string{fmt.Sprintf("%s, not measured: %v", workload[0], failures[0])}
		}
	}
	for i, m := range modes {
		if failures[i] != nil {
			notes = append(notes, fmt.Sprintf("%s under %s, not measured: %v", workload[0], m.name, failures[i]))
			continue
		}
		b.printRow(append([]any{workload[0], m.name}, formatTimeMultiples(results[i], results[0])...)...)
	}
	return notes
}

// formatTimeMultiples returns the cells of one mode: its times as multiples of the bare ones.
func formatTimeMultiples(here, bare []result) []any {
	multiple := func(get func(*result) float64) string {
		return formatMultiple(medianOfResults(here, get), medianOfResults(bare, get))
	}
	cells := []any{multiple((*result).reportedWorkSeconds), multiple(wallSeconds)}
	if here[0].sum.Policy == "" { // it is the bare one
		return []any{"1.00", formatFixed(medianOfResults(bare, wallSeconds), 2) + " s", "", "", ""}
	}
	reserved := medianOfResults(here, func(r *result) float64 { return r.sum.PeakReserved })
	requested := medianOfResults(here, func(r *result) float64 { return r.sum.PeakRequested })
	return append(cells, formatPercent(medianOfResults(here, func(r *result) float64 { return r.sum.HitRate })),
		formatPercent(medianOfResults(here, func(r *result) float64 { return r.sum.SteadyHitRate })), formatMultiple(reserved, requested))
}

// formatMultiple writes a value as a multiple of base; "?" if either is unknown.
func formatMultiple(value, base float64) string {
	if formatIfCounted(value/base) == "?" {
		return "?"
	}
	return formatFixed(value/base, 2)
}
