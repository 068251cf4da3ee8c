package heap

import (
	"testing"

	"pgregory.net/rapid"
)

// TestSpansEqualAMap compares them with a map.
func TestSpansEqualAMap(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		var s spans
		known := map[uint32]bool{}
		number := rapid.OneOf(rapid.Uint32Range(0, 40), rapid.Uint32Range(1<<32-5, 1<<32-1))
		for _, n := range rapid.SliceOfN(number, 0, 60).Draw(t, "numbers") {
			if !known[n] && !s.add(n) {
				t.Fatal("full")
			}
			known[n] = true
		}
		for n := range uint32(45) {
			for _, n := range []uint32{n, -n} {
				if s.has(n) != known[n] {
					t.Fatalf("%d: %v of %v", n, s.has(n), s)
				}
			}
		}
		for i := range s {
			if s[i].first > s[i].last || i > 0 && s[i].first <= s[i-1].last+1 {
				t.Fatalf("ranges are %v", s)
			}
		}
	})
}

// TestSpansAreBounded refuses numbers with too many gaps.
func TestSpansAreBounded(t *testing.T) {
	var s spans
	for n := range uint32(spansMax) {
		s.add(2 * n)
	}
	if s.add(2*spansMax) || !s.add(1) || len(s) != spansMax-1 {
		t.Errorf("%d ranges", len(s))
	}
}
