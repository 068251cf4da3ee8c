package table

import (
	"math/rand/v2"
	"testing"
)

func TestTableAgainstMap(t *testing.T) {
	r := rand.New(rand.NewPCG(1, 2))
	table := Table{Seed: 7}
	want := map[uint64]int32{}
	for step := range 200_000 {
		key := r.Uint64N(3000)
		if _, ok := want[key]; ok {
			table.Remove(key)
			delete(want, key)
		} else {
			table.Put(key, int32(step))
			want[key] = int32(step)
		}
		probe := r.Uint64N(3000)
		place, ok := want[probe]
		if !ok {
			place = -1
		}
		if got := table.PlaceOf(probe); got != place {
			t.Fatalf("step %d: get(%d) = %d, want %d", step, probe, got, place)
		}
	}
	seen := 0
	table.EachKey(func(key uint64, place int32) {
		seen++
		if want[key] != place {
			t.Errorf("all: key %d has place %d, want %d", key, place, want[key])
		}
	})
	if seen != len(want) || table.Len() != len(want) {
		t.Errorf("all saw %d of %d, count is %d", seen, len(want), table.Len())
	}
}

func TestTableRemoveAbsent(t *testing.T) {
	var table Table
	table.Remove(1)
	table.Put(1, 5)
	table.Remove(2)
	if got := table.PlaceOf(1); got != 5 {
		t.Errorf("get(1) = %d, want 5", got)
	}
}

func TestSizesAgainstNaive(t *testing.T) {
	r := rand.New(rand.NewPCG(3, 4))
	var s Sizes
	want := map[uint64]int{}
	for step := range 50_000 {
		size := r.Uint64N(200) + 1
		if r.IntN(2) == 0 && want[size] > 0 {
			s.Remove(size)
			want[size]--
		} else if r.IntN(3) == 0 {
			s.Add(size)
			want[size]++
		}
		var largest uint64
		for size, n := range want {
			if n > 0 {
				largest = max(largest, size)
			}
		}
		if got := s.Largest(); got != largest {
			t.Fatalf("step %d: largest = %d, want %d", step, got, largest)
		}
	}
	s.Remove(1_000_000)
}
