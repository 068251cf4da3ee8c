package main

import "fmt"

// iterating are programs whose iterations a plan serves, long enough for one.
var iterating = [][]string{
	{"mosaic", "400"},
	{"staging", "400", "256K"},
	{"pipeline", "200", "256K"},
	{"train", "400"},
}

// measureArenaPolicy runs programs bare, under slab and under arena, in turns.
func (b *bench) measureArenaPolicy() error {
	b.printRow("program", "policy", "wall ×", "hits", "peak reserved", "with a plan, reserved / requested", "as planned")
	for _, workload := range iterating {
		args := append([]string{b.examplePath(workload[0])}, workload[1:]...)
		modes := []mode{bare, {name: "slab", policy: "slab"}, {name: "arena", policy: "arena"}}
		results := make([][]result, len(modes))
		for range b.runs {
			for i, m := range modes {
				r, err := b.runOnce(m, args...)
				if err != nil {
					return err
				}
				results[i] = append(results[i], r)
			}
		}
		for i, m := range modes {
			b.printRow(append([]any{workload[0], m.name}, formatArenaCells(results[i], results[0])...)...)
		}
	}
	b.flushTable()
	fmt.Println("\nPeaks are in MiB, of the whole run, and with a plan from its seventh iteration on.")
	return nil
}

func formatArenaCells(here, bare []result) []any {
	if here[0].sum.Policy == "" {
		return []any{formatFixed(medianOfResults(bare, wallSeconds), 2) + " s", "", "", "", ""}
	}
	cells := []any{
		formatMultiple(medianOfResults(here, wallSeconds), medianOfResults(bare, wallSeconds)),
		formatPercent(medianOfResults(here, func(r *result) float64 { return r.sum.HitRate })),
		formatFixed(medianOfResults(here, peakReserved)/(1<<20), 2),
	}
	if here[0].sum.Plan.Plans == 0 {
		return append(cells, "", "")
	}
	return append(cells,
		formatMultiple(medianOfResults(here, func(r *result) float64 { return r.sum.Plan.Reserved }), medianOfResults(here,
			func(r *result) float64 { return r.sum.Plan.Requested })),
		formatPercent(medianOfResults(here, func(r *result) float64 { return r.sum.Plan.Planned / (r.sum.Hits + r.sum.Misses) })))
}
