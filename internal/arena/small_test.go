package arena

import (
	"fmt"
	"math/rand/v2"
	"slices"
	"testing"

	"codeberg.org/gpumemtop/gpumemtop/internal/testkit/racetest"
)

// small makes a few buffers, with alignments and gaps if asked for.
func small(random *rand.Rand, n int, aligned, gaps bool) []Buffer {
	buffers := make([]Buffer, n)
	for i := range buffers {
		lower := random.Int64N(8)
		b := Buffer{ID: fmt.Sprint(i), Lower: lower, Upper: lower + 1 + random.Int64N(5), Size: 1 + random.Uint64N(6)}
		if aligned {
			b.Align = 1 << random.IntN(3)
		}
		if gaps && b.Upper-b.Lower > 2 {
			from := random.Uint64N(b.Size)
			b.Gaps = []Gap{{b.Lower + 1, b.Upper - 1, from, from + random.Uint64N(b.Size-from+1)}}
		}
		buffers[i] = b
	}
	return buffers
}

// lowest finds the least height by trying every offset of every buffer.
func lowest(buffers []Buffer, below uint64) uint64 {
	offsets := make([]uint64, len(buffers))
	var try func(n int, height uint64)
	try = func(n int, height uint64) {
		if height >= below {
			return
		}
		if n == len(buffers) {
			below = height
			return
		}
		for o := uint64(0); o+buffers[n].Size < below; o += max(buffers[n].Align, 1) {
			offsets[n] = o
			free := true
			for j := range n {
				free = free && !overlap(&buffers[n], &buffers[j], o, offsets[j])
			}
			if free {
				try(n+1, max(height, o+buffers[n].Size))
			}
		}
	}
	try(0, 0)
	return below
}

// The search ends by itself on small problems, with the height that brute force finds.
func TestBruteForce(t *testing.T) {
	racetest.Slow(t)
	random := rand.New(rand.NewPCG(7, 7))
	for turn := range 300 {
		buffers := small(random, 2+random.IntN(5), turn%2 == 1, false)
		if turn%4 == 2 { // one for all that is larger than most sizes, as a device's
			for i := range buffers {
				buffers[i].Align = 4
			}
		}
		s := place(t, buffers, Options{Workers: 1, Steps: 1 << 18})
		least := lowest(buffers, s.Height+1)
		if s.Height != least || s.Bound > least {
			t.Fatalf("%+v: height %d, bound %d, and brute force finds %d", buffers, s.Height, s.Bound, least)
		}
		if s := place(t, buffers, Options{Workers: 1, Steps: 1 << 18, Capacity: least}); s.Height > least {
			t.Fatalf("%+v: %d with capacity %d", buffers, s.Height, least)
		}
	}
}

// Wherever the search goes on, it finds what there is, and ends where there is nothing.
func TestSearchFindsWhatThereIs(t *testing.T) {
	racetest.Slow(t)
	random := rand.New(rand.NewPCG(13, 13))
	for turn := range 100 {
		buffers := small(random, 2+random.IntN(5), turn%2 == 1, false)
		least := lowest(buffers, 1<<10)
		p, _ := newProblem(buffers)
		for _, pick := range []picker{pickFewest, pickTight, pickProduct, pickLowest} {
			for capacity, want := range map[uint64]outcome{least: solved, least - 1: failed} {
				if int64(capacity) < p.bound { // less is impossible
					continue
				}
				x := newSearch(p)
				x.stop = func() bool { return false }
				x.setOrderOfRun(newScales(p, buffers).sortByRandomMean(p.order, turn%3 == 0, 0.1, random), pick)
				if got := x.searchWithin(int64(capacity), 1<<18); got != want {
					t.Fatalf("%+v: picker %d within %d: outcome %d, want %d", buffers, pick, capacity, got, want)
				}
			}
		}
	}
}

// The lengths of searches are those of Luby, Sinclair and Zuckerman.
func TestLuby(t *testing.T) {
	for i, want := range []int64{1, 1, 2, 1, 1, 2, 4, 1, 1, 2, 1, 1, 2, 4, 8, 1} {
		if got := lubyNumber(i + 1); got != want {
			t.Errorf("%d: %d, want %d", i+1, got, want)
		}
	}
}

// With gaps the search may miss placements, but what it finds is right and no lower than can be.
func TestGapsLeavePlacementsRight(t *testing.T) {
	random := rand.New(rand.NewPCG(8, 8))
	met := 0
	for turn := range 200 {
		buffers := small(random, 2+random.IntN(4), turn%2 == 1, true)
		s := place(t, buffers, Options{Workers: 1, Steps: 1 << 12})
		least := lowest(buffers, s.Height+1)
		if s.Bound > least || s.Height < least {
			t.Fatalf("%+v: height %d, bound %d, and brute force finds %d", buffers, s.Height, s.Bound, least)
		}
		if s.Height == least {
			met++
		}
	}
	if met < 180 {
		t.Errorf("only %d of 200 are as low as can be", met)
	}
	// A buffer that is away while another lives makes room for it.
	s := place(t, []Buffer{{ID: "a", Upper: 9, Size: 8, Gaps: []Gap{{Lower: 3, Upper: 6}}}, {ID: "b", Lower: 3, Upper: 6, Size: 8}}, Options{})
	if s.Height != 8 || !s.Optimal {
		t.Errorf("height %d", s.Height)
	}
}

// cutRectangle divides a rectangle into buffers: they fill an arena of the height wholly, at all times.
func cutRectangle(random *rand.Rand, n int, width, height int64) []Buffer {
	type rectangle struct{ l, u, a, b int64 }
	all := []rectangle{{0, width, 0, height}}
	for len(all) < n {
		i := random.IntN(len(all))
		q := all[i]
		if random.IntN(2) == 0 && q.u-q.l > 1 {
			at := q.l + 1 + random.Int64N(q.u-q.l-1)
			all[i].u = at
			all = append(all, rectangle{at, q.u, q.a, q.b})
		} else if q.b-q.a > 1 {
			at := q.a + 1 + random.Int64N(q.b-q.a-1)
			all[i].b = at
			all = append(all, rectangle{q.l, q.u, at, q.b})
		}
	}
	var buffers []Buffer
	for i, q := range all {
		buffers = append(buffers, Buffer{ID: fmt.Sprint(i), Lower: q.l, Upper: q.u, Size: uint64(q.b - q.a)})
	}
	return buffers
}

// What was cut out of a rectangle fits together again.
func TestCutRectangles(t *testing.T) {
	random := rand.New(rand.NewPCG(9, 9))
	for turn := range 20 {
		n := 10 + 4*turn
		s := place(t, cutRectangle(random, n, 200, 1000), Options{Workers: 1, Steps: 1 << 20})
		if s.Height != 1000 || !s.Optimal {
			t.Errorf("%d buffers: height %d, bound %d", n, s.Height, s.Bound)
		}
	}
}

// What does not change a problem does not change its optimum, which small problems are solved to.
func TestOptimumDoesNotChange(t *testing.T) {
	random := rand.New(rand.NewPCG(10, 10))
	o := Options{Workers: 1, Steps: 1 << 18}
	change := func(buffers []Buffer, fn func(*Buffer)) []Buffer {
		changed := slices.Clone(buffers)
		for i := range changed {
			fn(&changed[i])
		}
		return changed
	}
	for range 100 {
		buffers, others := small(random, 8, false, false), small(random, 8, false, false)
		height, other := place(t, buffers, o).Height, place(t, others, o).Height
		for what, got := range map[string]uint64{
			"sizes times 3":                 place(t, change(buffers, func(b *Buffer) { b.Size *= 3 }), o).Height / 3,
			"time reversed":                 place(t, change(buffers, func(b *Buffer) { b.Lower, b.Upper = -b.Upper, -b.Lower }), o).Height,
			"aligned to 16, in units of 16": place(t, change(buffers, func(b *Buffer) { b.Align, b.Size = 16, b.Size*16 }), o).Height / 16,
			"one later":                     place(t, change(buffers, func(b *Buffer) { b.Lower, b.Upper = b.Lower+1, b.Upper+1 }), o).Height,
		} {
			if got != height {
				t.Errorf("%+v: height %d, %s %d", buffers, height, what, got)
			}
		}
		later := change(others, func(b *Buffer) { b.Lower, b.Upper = b.Lower+100, b.Upper+100 })
		if got := place(t, append(later, buffers...), o).Height; got != max(height, other) {
			t.Errorf("%+v beside %+v: height %d, want %d", buffers, later, got, max(height, other))
		}
		if got := place(t, change(buffers, func(b *Buffer) { b.Align = 4 }), o).Height; got < height {
			t.Errorf("%+v: height %d, aligned %d", buffers, height, got)
		}
	}
}

// The sweep finds what comparing all pairs finds.
func TestSweepFindsWhatPairsFind(t *testing.T) {
	random := rand.New(rand.NewPCG(11, 11))
	wrong := 0
	for turn := range 2000 {
		buffers := small(random, 4, turn%3 == 1, turn%3 == 2)
		offsets := make([]uint64, len(buffers))
		for i := range offsets {
			offsets[i] = random.Uint64N(16)
		}
		height, err := ValidatePlacement(buffers, offsets)
		want, problem := naive(buffers, offsets)
		if (err != nil) != (problem != "") || err == nil && height != want {
			t.Fatalf("%+v at %v: %d, %v; naively %d, %q", buffers, offsets, height, err, want, problem)
		}
		if err != nil {
			wrong++
		}
	}
	if wrong == 0 || wrong == 2000 {
		t.Errorf("%d of 2000 placements are wrong", wrong)
	}
	if _, err := ValidatePlacement(make([]Buffer, 2), make([]uint64, 1)); err == nil {
		t.Error("an offset is missing without an error")
	}
}
