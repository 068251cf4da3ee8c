package allocator

import "testing"

func TestCyclesOfPartsAllocateNothing(t *testing.T) {
	for _, name := range carving() {
		for _, n := range []int{1, 1000} {
			for _, size := range []uint64{100, 4096, 40_000} {
				p, err := New(name, nil)
				if err != nil {
					t.Fatal(err)
				}
				var out []Eviction
				blocks := make([]Block, n)
				for range 10 { // until all slabs are there
					out = cycle(p, size, blocks, out)
				}
				slabs := p.Stats().Slabs
				if got := testing.AllocsPerRun(10, func() { out = cycle(p, size, blocks, out) }); got != 0 {
					t.Errorf("%s, %d parts of %d bytes: %v allocations", name, n, size, got)
				}
				if err := p.Validate(); err != nil || p.Stats().Slabs != slabs {
					t.Errorf("%s: %d slabs, before %d; %v", name, p.Stats().Slabs, slabs, err)
				}
			}
		}
	}
}
