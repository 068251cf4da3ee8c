package main

import (
	"fmt"
	"slices"
)

// steadyHeap makes glibc keep what is freed. Otherwise it is chance which buffers of a driver that takes memory from it are new to the
// process: from run to run of one program, bare or not, page faults differ by a factor of two and more.
const steadyHeap = "GLIBC_TUNABLES=glibc.malloc.mmap_max=0:glibc.malloc.trim_threshold=17179869184:glibc.malloc.arena_max=1"

// watching shows what a program pays for being watched and recorded, without a pool.
func (b *bench) watching() error {
	modes := []mode{{name: "bare", env: []string{steadyHeap}}, {name: "none", policy: "none", env: []string{steadyHeap}}}
	b.row("program", "MiB", "iterations", "bare s", "none s", "none / bare", "from", "to")
	for _, l := range b.loops() {
		l.traffic, l.highest = 8*l.traffic, 8*l.highest // so that it takes a second
		for _, size := range loopSizes {
			iterations, args := l.commandFor(size)
			results, err := b.runInTurns(1, modes, args...)
			if err != nil {
				return err
			}
			work := [2]float64{median(results[0], (*result).workSeconds), median(results[1], (*result).workSeconds)}
			var ratios []float64 // of one turn each
			for i := range results[0] {
				ratios = append(ratios, results[1][i].workSeconds()/results[0][i].workSeconds())
			}
			b.row(l.name, size, iterations, fixed(work[0], 3), fixed(work[1], 3), fixed(middle(ratios), 3), fixed(slices.Min(ratios), 3),
				fixed(slices.Max(ratios), 3))
		}
	}
	b.flush()
	fmt.Println("\nWork is the time that the program says it took for its loop. The ratio is the median of turns.")
	return nil
}
