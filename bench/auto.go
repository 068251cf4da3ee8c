package main

import (
	"fmt"
	"slices"
	"strings"
)

// steady are the workloads. They last long enough for auto to decide. Policy futhark does not suit the last two: one requests
// three sizes in turn, and the pool may keep two; for the other the pool fills each block before the program gets it.
var steady = []struct {
	args, flags []string
}{
	{args: []string{"stencil", "-t", "2000", "4M"}},
	{args: []string{"pipeline", "-t", "900", "2M"}},
	{args: []string{"train", "-t", "130"}},
	{args: []string{"frag", "-t", "6000", "1M"}},
	{args: []string{"multiqueue", "-t", "11000", "256K"}},
	{args: []string{"threads", "-t", "4", "30000", "64K"}},
	{args: []string{"staging", "-t", "8000", "256K"}},
	{args: []string{"churn", "-t", "1000000", "4K", "2"}},
	{args: []string{"churn", "-t", "40000", "64K", "1", "3", "50"}, flags: []string{"--tags", "size", "--max-cached", "1200K"}},
	{args: []string{"churn", "-t", "40000", "4M"}, flags: []string{"--scrub", "zero"}},
}

// measureAutoPolicy runs the examples without a pool, under futhark and under auto, in turns.
func (b *bench) measureAutoPolicy() error {
	b.printRow("program", "futhark, s", "auto × futhark", "auto × none", "peak reserved × futhark", "auto decided")
	for _, w := range steady {
		args := append([]string{b.examplePath(w.args[0])}, w.args[1:]...)
		modes := []mode{{name: "futhark", policy: "futhark", flags: w.flags}, {name: "auto", policy: "auto", flags: w.flags}, {name: "none", policy: "none"}}
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
		b.printRow(w.args[0], formatFixed(medianOfResults(results[0], (*result).reportedWorkSeconds), 2), formatTimeRatio(results[1],
			results[0]), formatTimeRatio(results[1], results[2]),
			formatMultiple(medianOfResults(results[1], peakReserved), medianOfResults(results[0], peakReserved)), decidedPolicies(results[1]))
	}
	b.flushTable()
	fmt.Println("\nSeconds are those that the program says its loop took; × is auto's as a multiple of futhark's, in brackets those of\n" +
		"the single turns. All are recorded.")
	return nil
}

// formatTimeRatio shows the time of one mode as a multiple of another's: of the medians, and the lowest and highest of one turn.
func formatTimeRatio(here, there []result) string {
	each := make([]float64, len(here))
	for i := range here {
		each[i] = here[i].reportedWorkSeconds() / there[i].reportedWorkSeconds()
	}
	return fmt.Sprintf("%s (%s to %s)", formatMultiple(medianOfResults(here, (*result).reportedWorkSeconds), medianOfResults(there,
		(*result).reportedWorkSeconds)),
		formatFixed(slices.Min(each), 2), formatFixed(slices.Max(each), 2))
}

// decidedPolicies names the policy that auto decided for in each turn.
func decidedPolicies(turns []result) string {
	var all []string
	for i := range turns {
		text := "nothing"
		for _, m := range turns[i].sum.Measured {
			if m.Adopted {
				text = m.Alternative
			}
		}
		all = append(all, text)
	}
	return strings.Join(all, ", ")
}

func peakReserved(r *result) float64 { return r.sum.PeakReserved }
