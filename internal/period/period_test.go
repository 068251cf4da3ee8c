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
		f.Add(Key(1, key))
	}
	return f.Finish()
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
		"three":       {repeat(3, 1, 2, 3), "[{0 9 3 0}]"},
		"one key":     {repeat(100, 7), "[{0 100 1 0}]"},
		"too few":     {repeat(5, 7), "[]"},
		"frag":        {repeat(5, 1, 1, 1, 2), "[{0 20 4 0}]"},
		"pairs":       {repeat(8, 1, 1, 2, 2), "[{0 32 4 0}]"},
		"preamble":    {append([]uint64{8, 9, 8}, repeat(10, 1, 2, 3)...), "[{3 33 3 0}]"},
		"nested":      {repeat(10, inner...), "[{0 510 51 0}]"},
		"interrupted": {interrupted, "[{0 121 3 4}]"},
		"two phases":  {append(repeat(30, 1, 2, 3), repeat(30, 4, 5)...), "[{0 90 3 0} {90 150 2 0}]"},
		"same period": {append(repeat(10, 1, 2, 3), repeat(10, 4, 5, 6)...), "[{0 60 3 3}]"},
		"longest gap": {gap(10), "[{0 610 3 13}]"},
		"long gap":    {gap(11), "[{0 300 3 0} {311 611 3 0}]"},
		"a 16th":      {append(repeat(10, 1, 2, 3), noise(450)...), "[{0 30 3 0}]"},
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
			f.Add(key)
			got = append(got, fmt.Sprint(f.Steady(c.least)))
		}
		if got := strings.Join(got, " "); got != c.want {
			t.Errorf("%v, at least %d: %s, want %s", c.keys, c.least, got, c.want)
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
			f.Add(Key(1, seed>>50))
		}
		if got := f.Finish(); len(got) != 0 {
			t.Fatalf("found %v in noise", got)
		}
	})
}
