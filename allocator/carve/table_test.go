package carve

import (
	"math/rand/v2"
	"testing"
)

// TestTableIsAMap compares it with a map. Places that begin their search at the same few slots collide and wrap around.
func TestTableIsAMap(t *testing.T) {
	var tab table
	want := map[uint64]int32{}
	rng := rand.New(rand.NewPCG(3, 3))
	var places []uint64
	for p := uint64(1); len(places) < 40; p++ {
		// With 64 slots these begin at the last four and the first four.
		if i := p * 0x9e3779b97f4a7c15 >> 58; i < 4 || i >= 60 {
			places = append(places, p)
			if start := (&table{slots: make([]slot, 64)}).slotToSearchFrom(p); start != int(i) {
				t.Fatalf("the search for %d begins at %d, want %d", p, start, i)
			}
		}
	}
	for range 20_000 {
		p := places[rng.IntN(len(places))]
		if _, there := want[p]; !there && len(want) < 30 {
			want[p] = 1 + rng.Int32N(1000)
			if tab.addPlace(p, want[p]); 2*tab.count > len(tab.slots) {
				t.Fatalf("%d entries in %d slots", tab.count, len(tab.slots))
			}
		} else {
			if got := tab.removePlace(p); got != want[p] {
				t.Fatalf("took %d from %d, want %d", got, p, want[p])
			}
			delete(want, p)
		}
		for _, p := range places {
			if tab.numberAtPlace(p) != want[p] {
				t.Fatalf("%d is at %d, want %d", tab.numberAtPlace(p), p, want[p])
			}
		}
	}
	if tab.count != len(want) || len(tab.slots) != 64 {
		t.Errorf("%d entries of %d in %d slots", tab.count, len(want), len(tab.slots))
	}
}
