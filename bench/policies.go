package main

import (
	"fmt"
	"slices"

	"codeberg.org/gpumemtop/gpumemtop/allocator"
)

// policies compares allocators on what they decide, without any driver.
func (b *bench) policies() error {
	hits, misses := []contender{}, []contender{}
	for _, name := range allocator.Names() {
		hits, misses = append(hits, inBroker(name, true)), append(misses, inBroker(name, false))
	}
	notes := b.threadTable("hit", append(hits, direct()...))
	notes = append(notes, b.threadTable("miss", misses)...)
	fmt.Println("ns of wall time for one alloc and free, all threads together, and how many times futhark's with 1 thread that is.\n" +
		"Policies decide behind one mutex, as in a program; the driver's part, the shim's and the clock's are left out. What\n" +
		"is in brackets is called directly by all threads. A miss makes a block, or a slab, and gives it up again.")
	for _, note := range notes {
		fmt.Println(note)
	}
	return nil
}

// threadTable measures allocs and frees of contenders with some numbers of threads, and returns what could not be
// measured.
func (b *bench) threadTable(name string, contenders []contender) (notes []string) {
	counts := []int{1, 2, 4, 8}
	var ways []func() (float64, error)
	for _, c := range contenders {
		for _, threads := range counts {
			ways = append(ways, func() (float64, error) { return c.measure(threads, 1<<12, lasts) })
		}
	}
	figures := inTurns(b.runs, ways)
	base := figures[len(counts)*slices.Index(allocator.Names(), "futhark")].value
	b.row(name, "1 thread", "2 threads", "4 threads", "8 threads")
	for i, c := range contenders {
		cells := []any{c.name}
		for _, f := range figures[i*len(counts):][:len(counts)] {
			if f.err == nil {
				cells = append(cells, beside(f.value, base))
				continue
			}
			cells = append(cells, "-")
			if note := fmt.Sprintf("%s of %s, not measured: %v", name, c.name, f.err); !slices.Contains(notes, note) {
				notes = append(notes, note)
			}
		}
		b.row(cells...)
	}
	b.flush()
	fmt.Println()
	return notes
}
