package allocator

import (
	"fmt"
	"math/rand/v2"
	"testing"
)

// TestSameRequestsSamePlans: replay relies on it.
func TestSameRequestsSamePlans(t *testing.T) {
	for _, name := range Names() {
		run := func() string {
			rng := rand.New(rand.NewPCG(7, 7))
			d := newDriver(t, name, "")
			var live []Block
			log := ""
			for range 500 {
				if len(live) > 0 && rng.IntN(2) == 0 {
					i := rng.IntN(len(live))
					log += fmt.Sprint(d.free(live[i], rng.IntN(4) == 0))
					live = append(live[:i], live[i+1:]...)
					continue
				}
				plan := d.alloc(uint64(1+rng.IntN(64))<<14, Class(1+rng.IntN(3)), Tag(rng.IntN(5)))
				log += fmt.Sprint(plan)
				live = append(live, plan.Block)
			}
			return log
		}
		if first, again := run(), run(); first != again {
			t.Errorf("%s answers the same requests differently", name)
		}
	}
}

func TestHitAllocatesNothing(t *testing.T) {
	for _, name := range []string{"futhark", "pow2"} {
		p, err := New(name, nil)
		if err != nil {
			t.Fatal(err)
		}
		var out []Eviction
		cycle := func() {
			plan, _ := p.Plan(Request{Size: 1 << 20, Class: 1, Tag: 1}, out[:0])
			p.Commit(plan)
			out = p.Free(plan.Block, false, 0, out[:0])
		}
		cycle()
		if n := testing.AllocsPerRun(100, cycle); n != 0 {
			t.Errorf("%s: %v allocations per hit", name, n)
		}
	}
}

// carving are the policies that carve slabs.
var carving = []string{"slab", "buddy", "ualloc"}

func TestCyclesOfPartsAllocateNothing(t *testing.T) {
	for _, name := range carving {
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
