package period

import (
	"fmt"
	"slices"
	"strings"
	"testing"

	"pgregory.net/rapid"
)

// find returns the stretches that a Finder finds in a sequence.
func find(keys []uint64) []Stretch {
	var f Finder
	for _, key := range keys {
		f.AddCreate(KeyOfCreate(1, key, 1))
	}
	return f.FinishStretches()
}

func repeat(times int, keys ...uint64) []uint64 {
	var all []uint64
	for range times {
		all = append(all, keys...)
	}
	return all
}

// noise returns keys that occur once.
func noise(count uint64) []uint64 {
	var all []uint64
	for n := range count {
		all = append(all, 1000+n)
	}
	return all
}

// gap interrupts a period of three by creates that do not match.
func gap(creates uint64) []uint64 {
	return slices.Concat(repeat(100, 1, 2, 3), noise(creates), repeat(100, 1, 2, 3))
}

// TestFindsPeriods: stretches as first, end, period, creates that are no part of an iteration, creates without a match.
func TestFindsPeriods(t *testing.T) {
	inner := append(repeat(50, 1), 2)
	interrupted := append(append(repeat(20, 1, 2, 3), 9), repeat(20, 1, 2, 3)...)
	for name, c := range map[string]struct {
		keys []uint64
		want string
	}{
		"nothing":     {nil, "[]"},
		"one":         {repeat(1, 1, 2, 3), "[]"},
		"two":         {repeat(2, 1, 2, 3), "[]"},
		"three":       {repeat(3, 1, 2, 3), "[{0 9 3 0 0}]"},
		"one key":     {repeat(100, 7), "[{0 100 1 0 0}]"},
		"too few":     {repeat(5, 7), "[]"},
		"frag":        {repeat(5, 1, 1, 1, 2), "[{0 20 4 0 0}]"},
		"pairs":       {repeat(8, 1, 1, 2, 2), "[{0 32 4 0 0}]"},
		"preamble":    {append([]uint64{8, 9, 8}, repeat(10, 1, 2, 3)...), "[{3 33 3 0 0}]"},
		"nested":      {repeat(10, inner...), "[{0 510 51 0 0}]"},
		"interrupted": {interrupted, "[{0 121 3 1 4}]"},
		"two phases":  {append(repeat(30, 1, 2, 3), repeat(30, 4, 5)...), "[{0 90 3 0 0} {90 150 2 0 0}]"},
		"short phase": {append(repeat(10, 1, 2, 3), repeat(60, 4, 5)...), "[{0 30 3 0 0} {30 150 2 0 0}]"},
		"same period": {append(repeat(10, 1, 2, 3), repeat(10, 4, 5, 6)...), "[{0 30 3 0 0} {30 60 3 0 0}]"},
		"same key":    {append(repeat(10, 1), repeat(10, 2)...), "[{0 10 1 0 0} {10 20 1 0 0}]"},
		"one changes": {append(repeat(10, 1, 2, 3), repeat(10, 1, 2, 4)...), "[{0 60 3 0 1}]"},
		"two change":  {append(repeat(10, 1, 2, 3), repeat(10, 1, 4, 5)...), "[{0 30 3 0 0} {30 60 3 0 0}]"},
		"and back":    {slices.Concat(repeat(10, 1, 2), repeat(1, 3, 4), repeat(10, 1, 2)), "[{0 42 2 2 4}]"},
		"longest gap": {gap(10), "[{0 610 3 10 13}]"},
		"long gap":    {gap(11), "[{0 300 3 0 0} {311 611 3 0 0}]"},
		"a 16th":      {append(repeat(10, 1, 2, 3), noise(450)...), "[{0 30 3 0 0}]"},
		"less":        {append(repeat(10, 1, 2, 3), noise(451)...), "[]"},
	} {
		if got := fmt.Sprint(find(c.keys)); got != c.want {
			t.Errorf("%s: %s, want %s", name, got, c.want)
		}
	}
}

// TestPeriodIsSteadyAfterTwoMatches says after which create a period is steady, and that one create out of step ends that until two periods match again.
func TestPeriodIsSteadyAfterTwoMatches(t *testing.T) {
	for _, c := range []struct {
		least uint64
		keys  []uint64
		want  string
	}{
		{0, repeat(4, 1, 2, 3), "0 0 0 0 0 0 0 0 3 3 3 3"},
		{7, repeat(4, 1, 2, 3), "0 0 0 0 0 0 0 0 0 3 3 3"},
		{0, slices.Concat(repeat(4, 1, 2), []uint64{9}, repeat(4, 1, 2)), "0 0 0 0 0 2 2 2 0 0 0 0 0 0 2 2 2"},
		{0, repeat(3, 1, 1, 1, 1, 1, 1, 1, 1, 2), "0 0 0 0 0 1 1 1 0 0 0 1 1 1 1 1 1 0 0 0 1 1 1 1 1 1 9"},
	} {
		var f Finder
		var got []string
		for _, key := range c.keys {
			f.AddCreate(key)
			got = append(got, fmt.Sprint(f.SteadyPeriod(c.least)))
		}
		if got := strings.Join(got, " "); got != c.want {
			t.Errorf("%v, at least %d: %s, want %s", c.keys, c.least, got, c.want)
		}
	}
}

// added returns a Finder that has got these keys as they are.
func added(keys ...uint64) *Finder {
	var f Finder
	for _, key := range keys {
		f.AddCreate(key)
	}
	return &f
}

// TestKeyZero: keys of 0 are not taken for the empty places of the window.
func TestKeyZero(t *testing.T) {
	if got := added(0, 0, 0, 0, 0).FinishStretches(); len(got) != 0 {
		t.Errorf("five creates: %v", got)
	}
	if got := fmt.Sprint(added(0, 0, 0, 0, 0, 0).FinishStretches()); got != "[{0 6 1 0 0}]" {
		t.Errorf("six creates: %s", got)
	}
}

// TestGramsForgetKeys: what came before the last keys does not change their hash.
func TestGramsForgetKeys(t *testing.T) {
	last := repeat(1, 11, 12, 13, 14, 15, 16, 17, 18, 19, 20, 21, 22, 23, 24, 25, 26)
	one, other := added(append([]uint64{1, 2, 3}, last...)...), added(append(noise(50), last...)...)
	for i, length := range gramLengths {
		if one.grams[i].hash != other.grams[i].hash {
			t.Errorf("the hash of %d keys depends on those before", length)
		}
	}
}

// TestCandidateEnds says for how long a candidate survives creates that do not match.
func TestCandidateEnds(t *testing.T) {
	for _, c := range []struct {
		count   uint64
		matches bool
		want    bool
	}{{25, false, true}, {26, false, false}, {25, true, true}, {26, true, false}} {
		broken := candidate{Stretch: Stretch{End: 10, Period: 3}, confirmed: true}
		if got := broken.advanceOrDrop(c.count, c.matches); got != c.want {
			t.Errorf("at %d, matches %v: %v", c.count, c.matches, got)
		}
	}
}

// TestSteadyOfSeveral: the longest run wins, and of equal ones the shortest period.
func TestSteadyOfSeveral(t *testing.T) {
	of := func(period, run uint64) candidate {
		return candidate{Stretch: Stretch{Period: period}, run: run, confirmed: true}
	}
	for _, c := range []struct {
		candidates []candidate
		want       uint64
	}{
		{[]candidate{of(2, 12), of(3, 12)}, 2},
		{[]candidate{of(3, 12), of(2, 12)}, 2},
		{[]candidate{of(2, 12), of(3, 13)}, 3},
		{[]candidate{of(3, 13), of(2, 12)}, 3},
		{[]candidate{of(4, 7)}, 0},
	} {
		if got := (&Finder{candidates: c.candidates}).SteadyPeriod(0); got != c.want {
			t.Errorf("%v: %d, want %d", c.candidates, got, c.want)
		}
	}
}

// TestProposes says which candidates a proposal adds: no multiple of a period that matches, and none while a period is steady.
func TestProposes(t *testing.T) {
	twos := added(1, 2, 1, 2, 1, 2)
	twos.candidates = []candidate{{Stretch: Stretch{Period: 2}, run: 2}}
	if twos.addCandidate(4); len(twos.candidates) != 1 {
		t.Errorf("a multiple: %v", twos.candidates)
	}
	twos.candidates[0].run = 1
	if twos.addCandidate(4); len(twos.candidates) != 2 {
		t.Errorf("a multiple of what does not match: %v", twos.candidates)
	}
	back := added(slices.Concat(repeat(6, 1, 2, 1), []uint64{9}, repeat(2, 1, 2, 1))...) // the last two 1 would be a period of 2
	if back.candidates[0].run != 3 || slices.ContainsFunc(back.candidates, func(c candidate) bool { return c.Period == 2 }) {
		t.Errorf("after one period that matches: %v", back.candidates)
	}
}

// TestKeepsTheBest: what there is no place for takes the place of something worse, if there is one.
func TestKeepsTheBest(t *testing.T) {
	full := added(repeat(4, 1, 2, 3)...)
	full.candidates = nil
	for n := range uint64(candidatesMax) {
		full.candidates = append(full.candidates, candidate{Stretch: Stretch{Period: 20 + n}, run: 9, confirmed: n != 4})
	}
	if full.addCandidate(3); len(full.candidates) != candidatesMax || slices.ContainsFunc(full.candidates, func(c candidate) bool { return c.Period == 3 }) {
		t.Errorf("a candidate with the same run: %v", full.candidates)
	}
	full.candidates[4].run = 8
	if full.addCandidate(3); len(full.candidates) != candidatesMax || full.candidates[4].Period != 3 || full.candidates[4].run != 9 {
		t.Errorf("a better candidate: %v", full.candidates)
	}
	var f Finder
	for n := range uint64(stretchesMax) {
		f.keepEndedStretch(Stretch{First: 1000 * n, End: 1000*n + 100 + (n+9)%stretchesMax, Period: 2})
	}
	f.keepEndedStretch(Stretch{First: 50_000, End: 50_100, Period: 3})
	if len(f.found) != stretchesMax || f.found[7].Period != 2 {
		t.Errorf("a stretch with the same score: %v", f.found)
	}
	f.keepEndedStretch(Stretch{First: 50_000, End: 50_101, Period: 3})
	if len(f.found) != stretchesMax || f.found[7].Period != 3 {
		t.Errorf("a better stretch: %v", f.found)
	}
}

// TestFinishLeavesOut says which stretches are too weak, and TestFindsPeriods which ones overlap.
func TestFinishLeavesOut(t *testing.T) {
	for _, c := range []struct {
		stretch Stretch
		count   uint64
		want    int
	}{
		{Stretch{End: 16, missed: 1}, 16, 1},
		{Stretch{End: 16, missed: 2}, 16, 0}, // a score of 0
		{Stretch{First: 100, End: 110}, 160, 1},
		{Stretch{First: 100, End: 110}, 161, 0},
	} {
		if got := (&Finder{found: []Stretch{c.stretch}, count: c.count}).FinishStretches(); len(got) != c.want {
			t.Errorf("%v of %d: %v", c.stretch, c.count, got)
		}
	}
}

// TestKeysDiffer: call sites, sizes and flags give different keys.
func TestKeysDiffer(t *testing.T) {
	seen := map[uint64]bool{0: true}
	for tag := range uint32(100) {
		for size := range uint64(100) {
			for flags := range uint32(5) {
				key := KeyOfCreate(tag, size, flags)
				if seen[key] {
					t.Fatalf("call site %d, size %d, flags %d: %d is there twice, or 0", tag, size, flags, key)
				}
				seen[key] = true
			}
		}
	}
}

// TestFindsAnyPeriod repeats a random sequence that does not repeat itself, after a random beginning.
func TestFindsAnyPeriod(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		period := rapid.IntRange(1, 200).Draw(t, "period")
		body := rapid.SliceOfN(rapid.Uint64Range(1, 40), period, period).Draw(t, "body")
		body[0] = 100 // occurs once
		preamble := rapid.SliceOfN(rapid.Uint64Range(1000, 2000), 0, 30).Draw(t, "preamble")
		times := rapid.IntRange(6, 20).Draw(t, "times")
		got := find(append(preamble, repeat(times, body...)...))
		if len(got) != 1 || got[0].Period != uint64(period) {
			t.Fatalf("period %d × %d behind %d: found %v", period, times, len(preamble), got)
		}
		if first := int(got[0].First); first > len(preamble)+period || first < len(preamble)-period {
			t.Fatalf("begins at %d, want %d", first, len(preamble))
		}
	})
}

func TestFindsNoPeriodWhereNothingRepeats(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		n, seed := rapid.IntRange(0, 3000).Draw(t, "n"), rapid.Uint64().Draw(t, "seed")
		var f Finder
		for range n { // a generator of its own: rapid's would repeat values on purpose
			seed = seed*6364136223846793005 + 1442695040888963407
			f.AddCreate(KeyOfCreate(1, seed>>50, 1))
		}
		if got := f.FinishStretches(); len(got) != 0 {
			t.Fatalf("found %v in noise", got)
		}
	})
}
