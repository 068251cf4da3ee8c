package model

import (
	"math/rand/v2"
	"testing"
)

func TestTableAgainstMap(t *testing.T) {
	r := rand.New(rand.NewPCG(1, 2))
	table := table{seed: 7}
	want := map[uint64]int32{}
	for step := range 200_000 {
		key := r.Uint64N(3000)
		if _, ok := want[key]; ok {
			table.remove(key)
			delete(want, key)
		} else {
			table.put(key, int32(step))
			want[key] = int32(step)
		}
		probe := r.Uint64N(3000)
		place, ok := want[probe]
		if !ok {
			place = -1
		}
		if got := table.get(probe); got != place {
			t.Fatalf("step %d: get(%d) = %d, want %d", step, probe, got, place)
		}
	}
	seen := 0
	table.all(func(key uint64, place int32) {
		seen++
		if want[key] != place {
			t.Errorf("all: key %d has place %d, want %d", key, place, want[key])
		}
	})
	if seen != len(want) || table.count != len(want) {
		t.Errorf("all saw %d of %d, count is %d", seen, len(want), table.count)
	}
}

func TestTableRemoveAbsent(t *testing.T) {
	var table table
	table.remove(1)
	table.put(1, 5)
	table.remove(2)
	if got := table.get(1); got != 5 {
		t.Errorf("get(1) = %d, want 5", got)
	}
}

func TestSizesAgainstNaive(t *testing.T) {
	r := rand.New(rand.NewPCG(3, 4))
	var s sizes
	want := map[uint64]int{}
	for step := range 50_000 {
		size := r.Uint64N(200) + 1
		if r.IntN(2) == 0 && want[size] > 0 {
			s.remove(size)
			want[size]--
		} else if r.IntN(3) == 0 {
			s.add(size)
			want[size]++
		}
		var largest uint64
		for size, n := range want {
			if n > 0 {
				largest = max(largest, size)
			}
		}
		if got := s.largest(); got != largest {
			t.Fatalf("step %d: largest = %d, want %d", step, got, largest)
		}
	}
	s.remove(1_000_000)
}
