package arena

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"os"
	"slices"
	"strconv"
	"strings"
	"testing"

	"codeberg.org/gpumemtop/gpumemtop/internal/testkit/racetest"
)

// challenging are the instances of MiniMalloc in testdata, all with capacity 1,048,576.
var challenging = []string{"A", "C", "D", "F", "J"}

func instance(t testing.TB, name string) []Buffer {
	t.Helper()
	file, err := os.Open("testdata/" + name + ".csv")
	if err != nil {
		t.Fatal(err)
	}
	table, err := ReadTable(file)
	if err = errors.Join(err, file.Close()); err != nil {
		t.Fatal(err)
	}
	return table.Buffers
}

// place solves buffers and checks the placement by the naive rule.
func place(t testing.TB, buffers []Buffer, o Options) *Solution {
	t.Helper()
	s, err := PlaceBuffers(t.Context(), buffers, o)
	if err != nil {
		t.Fatal(err)
	}
	height, problem := naive(buffers, s.Offsets)
	if problem != "" || height != s.Height || s.Height < s.Bound || s.Optimal != (s.Height == s.Bound) || s.Method == "" {
		t.Fatalf("%s: height %d, bound %d, optimal %v by %q; have %d", problem, s.Height, s.Bound, s.Optimal, s.Method, height)
	}
	return s
}

// naive compares every pair at every moment.
func naive(buffers []Buffer, offsets []uint64) (height uint64, problem string) {
	for i := range buffers {
		b := &buffers[i]
		if b.Lower < b.Upper {
			height = max(height, offsets[i]+b.Size)
		}
		if b.Align > 1 && offsets[i]%b.Align != 0 {
			return height, fmt.Sprintf("%s is not aligned", b.ID)
		}
		for j := range buffers[:i] {
			if overlap(b, &buffers[j], offsets[i], offsets[j]) {
				return height, fmt.Sprintf("%s and %s overlap", b.ID, buffers[j].ID)
			}
		}
	}
	return height, ""
}

func overlap(a, b *Buffer, atA, atB uint64) bool {
	var times []int64
	for _, x := range []*Buffer{a, b} {
		times = append(times, x.Lower, x.Upper)
		for _, g := range x.Gaps {
			times = append(times, g.Lower, g.Upper)
		}
	}
	for _, t := range times {
		loA, hiA := needed(a, t)
		loB, hiB := needed(b, t)
		if loA < hiA && loB < hiB && atA+loA < atB+hiB && atB+loB < atA+hiA {
			return true
		}
	}
	return false
}

// needed returns the bytes of a buffer that are needed at a time.
func needed(b *Buffer, t int64) (lo, hi uint64) {
	if t < b.Lower || t >= b.Upper {
		return 0, 0
	}
	for _, g := range b.Gaps {
		if g.Lower <= t && t < g.Upper {
			return g.From, g.To
		}
	}
	return 0, b.Size
}

// The example of MiniMalloc's README; 8, 8, 4, 4, 0 is one of its solutions.
func TestReadmesExampleIsSolved(t *testing.T) {
	buffers := instance(t, "input.12")
	if height, err := ValidatePlacement(buffers, []uint64{8, 8, 4, 4, 0}); err != nil || height != 12 {
		t.Errorf("the known solution: height %d, %v", height, err)
	}
	if s := place(t, buffers, Options{}); s.Height != 12 || !s.Optimal {
		t.Errorf("height %d, optimal %v", s.Height, s.Optimal)
	}
	if s := place(t, buffers, Options{Capacity: 11}); s.Bound != 12 {
		t.Errorf("nothing fits 11 bytes, and the bound is %d", s.Bound)
	}
}

// Every instance is solved within its capacity, whatever the seed, and with one worker always in the same way.
func TestChallengingInstancesFit(t *testing.T) {
	racetest.Slow(t)
	for _, name := range challenging {
		buffers := instance(t, name+".1048576")
		o := Options{Capacity: 1 << 20, Workers: 1, Steps: 1 << 20}
		first := place(t, buffers, o)
		if again := place(t, buffers, o); !slices.Equal(first.Offsets, again.Offsets) || first.Steps != again.Steps {
			t.Errorf("%s: the same search ended otherwise: %d steps, then %d", name, first.Steps, again.Steps)
		}
		if first.Height > 1<<20 {
			t.Errorf("%s: height %d after %d steps", name, first.Height, first.Steps)
		}
		for turn := range uint64(1) {
			random := rand.New(rand.NewPCG(turn, 1))
			random.Shuffle(len(buffers), func(i, j int) { buffers[i], buffers[j] = buffers[j], buffers[i] })
			o.Seed = turn
			if s := place(t, buffers, o); s.Height > 1<<20 {
				t.Errorf("%s, shuffled %d: height %d after %d steps", name, turn, s.Height, s.Steps)
			}
		}
	}
}

// All workers together solve them, too, and what they say of progress only gets better.
func TestWorkersSolveThemTogether(t *testing.T) {
	for _, name := range challenging {
		last := Progress{Height: 1 << 62}
		s := place(t, instance(t, name+".1048576"), Options{Capacity: 1 << 20, Workers: 4, Steps: 1 << 20, Progress: func(p Progress) {
			if p.Height > last.Height || p.Bound < last.Bound || p == last {
				t.Errorf("%s: progress from %+v to %+v", name, last, p)
			}
			last = p
		}})
		if s.Height > 1<<20 || last.Height != s.Height || last.Bound != s.Bound {
			t.Errorf("%s: height %d, last progress %+v", name, s.Height, last)
		}
	}
}

// Time that is up leaves the best placement so far.
func TestTimeThatIsUpLeavesTheBest(t *testing.T) {
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	buffers := instance(t, "A.1048576")
	s, err := PlaceBuffers(ctx, buffers, Options{})
	if err != nil {
		t.Fatal(err)
	}
	if _, problem := naive(buffers, s.Offsets); problem != "" || s.Optimal {
		t.Errorf("%q, optimal %v", problem, s.Optimal)
	}
	ctx, cancel = context.WithCancel(t.Context())
	// An interrupt comes when the first placement is there: no search could end by itself, the capacity is too small.
	s, err = PlaceBuffers(ctx, instance(t, "J.1048576"), Options{Capacity: 989184, Progress: func(Progress) { cancel() }})
	if err != nil || s.Height <= 989184 {
		t.Errorf("%v, height %d", err, s.Height)
	}
}

func TestBadBuffers(t *testing.T) {
	for want, b := range map[string]Buffer{
		"before lower":               {Lower: 3, Upper: 2, Size: 1},
		"want at most":               {Upper: 1, Size: 1 << 63},
		"alignment":                  {Upper: 1, Size: 1, Align: 1 << 63},
		"within the life":            {Upper: 9, Size: 1, Gaps: []Gap{{Lower: 3, Upper: 10}}},
		"behind other gaps":          {Upper: 9, Size: 1, Gaps: []Gap{{Lower: 3, Upper: 5}, {Lower: 4, Upper: 6}}},
		"are not within":             {Upper: 9, Size: 1, Gaps: []Gap{{Lower: 3, Upper: 5, To: 2}}},
		"all up to it are larger":    {Upper: 1, Size: 1 << 60, Align: 1 << 60},
		`buffer "bad": upper 1 is b`: {Lower: 2, Upper: 1},
	} {
		b.ID = "bad"
		if _, err := PlaceBuffers(t.Context(), []Buffer{{ID: "x", Upper: 1, Size: 1}, b}, Options{}); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%+v: %v, want %q", b, err, want)
		}
	}
	for _, none := range [][]Buffer{nil, {{ID: "a", Upper: 5}}, {{ID: "a", Lower: 5, Upper: 5, Size: 3, Align: 8}}} {
		s := place(t, none, Options{Workers: 1, Steps: 100})
		if len(s.Offsets) != len(none) {
			t.Errorf("%v: %+v", none, s)
		}
	}
}

// However many buffers live at once, the search ends soon after its context.
func TestManyAtOnce(t *testing.T) {
	racetest.Slow(t)
	buffers := make([]Buffer, 300_000)
	for i := range buffers {
		buffers[i] = Buffer{ID: strconv.Itoa(i), Lower: int64(i), Upper: int64(len(buffers)), Size: 64}
	}
	ctx, cancel := context.WithCancel(context.Background())
	cancel()
	s, err := PlaceBuffers(ctx, buffers, Options{})
	if err != nil || s.Height != 64*uint64(len(buffers)) {
		t.Errorf("%+v, %v", s, err)
	}
}

// TestTheFirstPlacementIsKept ends the context at the first placement: that one is the result, even if the running step
// finds another, and Progress is not called again.
func TestTheFirstPlacementIsKept(t *testing.T) {
	var buffers []Buffer
	for i := range 20_000 {
		n := int64(i)
		buffers = append(buffers, Buffer{ID: strconv.Itoa(i), Lower: n, Upper: n + 1 + n*n%37, Size: uint64(1 + n*7919%4099)})
	}
	ctx, cancel := context.WithCancel(t.Context())
	said := 0
	s, err := PlaceBuffers(ctx, buffers, Options{Progress: func(Progress) {
		said++
		cancel()
	}})
	if err != nil || s.Method != "as it comes, first fit" || said != 1 {
		t.Errorf("%q, progress %d times, %v", s.Method, said, err)
	}
}
