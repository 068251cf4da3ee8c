package carve

import (
	"math/rand/v2"
	"testing"
)

func TestFirsts(t *testing.T) {
	var f firsts
	want := make([]uint8, 200)
	rng := rand.New(rand.NewPCG(4, 4))
	for step := range 5000 {
		slab := 1 + rng.Int32N(min(199, int32(2+step/8))) // grows as it goes
		want[slab] = uint8(rng.IntN(5))
		f.setRank(slab, want[slab])
		most := uint8(0)
		for rank := uint8(1); rank < 6; rank++ {
			lowest := int32(0)
			for s := int32(199); s > 0; s-- {
				if want[s] >= rank {
					lowest, most = s, rank
				}
			}
			if got := f.lowestWithRank(rank); got != lowest {
				t.Fatalf("the first slab of rank %d is %d, want %d", rank, got, lowest)
			}
		}
		if f.highestRank() != most || f.rankOf(slab) != want[slab] {
			t.Fatalf("the highest rank is %d, want %d", f.highestRank(), most)
		}
	}
}
