package stats

import (
	"math/rand/v2"
	"testing"

	"codeberg.org/gpumemtop/gpumemtop/internal/wire"
)

// write feeds a write of a number of bytes of an object, which blocked for some ns.
func (s *stream) write(object, bytes uint64, ns uint32) {
	s.feed(wire.Event{Kind: wire.KindUse, Op: uint8(wire.CommandWrite), Object: object, Size: bytes, Cost: ns})
}

func TestTouches(t *testing.T) {
	const size = 1 << 20
	type first struct {
		hit  bool
		then func(s *stream, object uint64)
	}
	write := func(ns uint32) func(*stream, uint64) {
		return func(s *stream, object uint64) { s.write(object, size, ns) }
	}
	part := func(s *stream, object uint64) { s.write(object, 4, 70) }
	kernel := func(s *stream, object uint64) {
		s.feed(wire.Event{Kind: wire.KindUse, Op: uint8(wire.CommandKernel), Object: object})
		s.write(object, size, 1) // not the first command
	}
	for name, c := range map[string]struct {
		released int // blocks by the driver before
		runs     []first
		want     Touches
	}{
		"memory that is new to the process": {
			0, []first{{false, write(900)}, {false, write(500)}, {true, write(100)}, {true, write(120)}}, Touches{Reused: 2},
		},
		"some of it was the driver's before": {
			2, []first{{false, write(500)}, {false, write(500)}, {false, write(9e6)}, {false, write(9e6)}, {true, write(100)}, {true, write(120)}},
			Touches{NS: 2 * 380, Hits: 2, Fresh: 2, Reused: 2},
		},
		"new blocks take longer": {
			9, []first{{false, write(900)}, {false, write(500)}, {true, write(100)}, {true, write(120)}}, Touches{NS: 2 * 380, Hits: 2, Fresh: 2, Reused: 2},
		},
		"a slow first one decides nothing": {
			9, []first{{false, write(9e6)}, {false, write(100)}, {true, write(100)}, {true, write(100)}}, Touches{Fresh: 2, Reused: 2},
		},
		"one new block is too few": {
			9, []first{{false, write(900)}, {true, write(100)}, {true, write(120)}}, Touches{Fresh: 1, Reused: 2},
		},
		"kernels have no time": {
			9, []first{{false, kernel}, {false, kernel}, {true, kernel}, {true, kernel}}, Touches{},
		},
		"a part is not all": {
			9, []first{{false, part}, {false, part}, {true, part}, {true, part}}, Touches{},
		},
		"what only hits once": {
			9, []first{{false, write(900)}, {false, write(800)}, {true, write(10)}, {true, write(10)}, {true, kernel}},
			Touches{NS: 3 * 790, Hits: 3, Fresh: 2, Reused: 2},
		},
	} {
		s := newStream(Options{})
		for range c.released {
			s.feed(wire.Event{Kind: wire.KindEvict, Link: 99, Granted: size, Cost: 50})
		}
		for i, r := range c.runs {
			id := uint64(i + 1)
			if r.hit {
				s.hit(id, id, size, size, 0)
			} else {
				s.miss(id, id, size, size, 0)
			}
			r.then(s, id)
		}
		if got := s.Snapshot().Totals.SavedTouches; got != c.want {
			t.Errorf("%s: %+v, want %+v", name, got, c.want)
		}
	}
}

// TestSavingMatters: a sentence says an estimate from a hundredth of the run on, and what follows from a probe always.
func TestSavingMatters(t *testing.T) {
	for _, c := range []struct {
		calls                  SavedCalls
		touched                Touches
		wantCalls, wantTouches bool
	}{
		{SavedCalls{NS: 1e7}, Touches{NS: 1e7, Hits: 1}, true, true},
		{SavedCalls{NS: 1e7 - 1}, Touches{NS: 1e7 - 1, Hits: 1}, false, false},
		{SavedCalls{NS: 1, Device: "a card"}, Touches{Hits: 1, Device: "a card"}, true, true},
	} {
		s := Snapshot{Started: 5, Time: 1e9 + 5, Totals: Totals{Saved: c.calls, SavedTouches: c.touched}}
		if calls, touched := s.WorthwhileSavings(); calls != c.wantCalls || touched != c.wantTouches {
			t.Errorf("%+v, %+v: %t, %t", c.calls, c.touched, calls, touched)
		}
	}
}

// TestTouchesAreBounded checks on random runs that no more is saved than hits times the longest first write but one slow one
// of each size.
func TestTouchesAreBounded(t *testing.T) {
	r := rand.New(rand.NewPCG(13, 14))
	for range 2000 {
		var touched touches
		var hits [65]uint64
		largest, all := uint32(0), uint64(0)
		for class := range hits {
			touched.fresh.addCall(1<<class>>1, 4e9)
			for range r.IntN(12) {
				ns := r.Uint32N(1e6)
				touched.fresh.addCall(1<<class>>1, ns)
				touched.reused.addCall(1<<class>>1, r.Uint32N(1e6))
				largest = max(largest, ns)
			}
			hits[class] = r.Uint64N(1000)
			all += hits[class]
		}
		if got := touched.estimateSaved(&hits); got.NS > all*uint64(largest) || got.Hits > all {
			t.Fatalf("%+v of %d hits; the longest usual first write took %d ns", got, all, largest)
		}
	}
}
