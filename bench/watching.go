package main

import (
	"fmt"
	"slices"
)

// steadyHeap makes glibc keep freed memory. Otherwise chance decides which buffers get new pages, if the driver allocates with
// malloc: page faults of one program differ from run to run, bare or not, by a factor of two and more.
const steadyHeap = "GLIBC_TUNABLES=glibc.malloc.mmap_max=0:glibc.malloc.trim_threshold=17179869184:glibc.malloc.arena_max=1"

// measureCostOfWatching shows the cost of being watched and recorded for a program, without a pool.
func (b *bench) measureCostOfWatching() error {
	modes := []mode{{name: "bare", env: []string{steadyHeap}}, {name: "none", policy: "none", env: []string{steadyHeap}}}
	b.printRow("program", "MiB", "iterations", "bare s", "none s", "none / bare", "from", "to")
	for _, l := range b.programsWithLoops() {
		l.traffic, l.highest = 8*l.traffic, 8*l.highest // so that it takes a second
		for _, size := range loopSizes {
			iterations, args := l.commandFor(size)
			results, err := b.runInTurns(1, modes, args...)
			if err != nil {
				return err
			}
			work := [2]float64{medianOfResults(results[0], (*result).reportedWorkSeconds), medianOfResults(results[1], (*result).reportedWorkSeconds)}
			var ratios []float64 // of one turn each
			for i := range results[0] {
				ratios = append(ratios, results[1][i].reportedWorkSeconds()/results[0][i].reportedWorkSeconds())
			}
			b.printRow(l.name, size, iterations, formatFixed(work[0], 3), formatFixed(work[1], 3), formatFixed(medianOf(ratios), 3), formatFixed(slices.Min(ratios), 3),
				formatFixed(slices.Max(ratios), 3))
		}
	}
	b.flushTable()
	fmt.Println("\nWork is the time that the program says it took for its loop. The ratio is the median of turns.")
	return nil
}
