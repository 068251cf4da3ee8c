package carve

import (
	"math/rand/v2"
	"slices"
	"testing"
)

// TestMarksAreASortedList compares a set with a sorted list, from one level to three.
func TestMarksAreASortedList(t *testing.T) {
	for _, bound := range []int{1, 2, 63, 64, 65, 4096, 4097, 70_000} {
		rng := rand.New(rand.NewPCG(uint64(bound), 1))
		m := newMarks(bound)
		var list []int
		for range 3000 {
			i := rng.IntN(bound)
			at, there := slices.BinarySearch(list, i)
			before, behind := -1, -1
			if at > 0 {
				before = list[at-1]
			}
			if rest := list[at:]; there && len(rest) > 1 {
				behind = rest[1]
			} else if !there && len(rest) > 0 {
				behind = rest[0]
			}
			if m.nextBelow(i) != before || m.nextAbove(i) != behind {
				t.Fatalf("of %d: %d and %d around %d, want %d and %d", bound, m.nextBelow(i), m.nextAbove(i), i, before, behind)
			}
			if there && rng.IntN(3) > 0 {
				m.clear(i)
				list = slices.Delete(list, at, at+1)
			} else if !there {
				m.set(i)
				list = slices.Insert(list, at, i)
			}
			if rng.IntN(100) == 0 {
				if err := m.validate(); err != nil || !slices.Equal(slices.Collect(m.eachNumber), list) || m.count() != len(list) {
					t.Fatalf("of %d: %v, %d marks, want %d", bound, err, m.count(), len(list))
				}
			}
		}
	}
}

// TestRunsOfBits compares a set of runs, which may cross words, with a list of its numbers.
func TestRunsOfBits(t *testing.T) {
	rng := rand.New(rand.NewPCG(7, 7))
	for range 300 {
		b, list := newBitset(400), make([]bool, 400)
		for range 10 {
			from := rng.IntN(len(list))
			run := list[from : from+rng.IntN(min(len(list)-from, 150)+1)]
			if clean := b.addConsecutive(uint64(from), uint64(len(run))); clean != !slices.Contains(run, true) {
				t.Fatalf("%d numbers from %d on are new: %v", len(run), from, clean)
			}
			for i := range run {
				run[i] = true
			}
			for i, there := range list {
				if b.has(uint64(i)) != there {
					t.Fatalf("%d is there: %v", i, !there)
				}
			}
		}
	}
}
