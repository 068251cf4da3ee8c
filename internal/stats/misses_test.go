package stats

import (
	"slices"
	"testing"

	"pgregory.net/rapid"

	"codeberg.org/gpumemtop/gpumemtop/internal/wire"
)

// TestLatestMisses: the latest misses with their sizes, reasons and call sites, under the names that these got since.
func TestLatestMisses(t *testing.T) {
	s := newStream(Options{})
	for i := range uint64(MissesMax + 5) {
		s.miss(i+1, i+1, 100*(i+1), 128*(i+1), 7)
	}
	s.hit(100, 1, 64, 64, 7)
	first := s.Snapshot()
	s.site(7, "make_tmp\t/src/blur.c\t88\t/bin/blur+0x12\n")
	last := s.Snapshot().Misses
	if len(last) != MissesMax || len(first.Misses) != MissesMax {
		t.Fatalf("%d misses, then %d, want %d", len(first.Misses), len(last), MissesMax)
	}
	if m := last[0]; m.Size != 100*(MissesMax+5) || m.Tag != "blur.c:88 make_tmp" || m.Reason == wire.MissNone || m.Process != 1 {
		t.Errorf("the last miss is %+v", m)
	}
	if m := last[MissesMax-1]; m.Size != 600 {
		t.Errorf("the oldest miss is %+v", m)
	}
	if !slices.IsSortedFunc(last, func(a, b Miss) int { return int(b.Time) - int(a.Time) }) || first.Misses[0].Tag != "tag 7" {
		t.Errorf("%+v", last)
	}
}

// TestReasonsOverTime: history and minute have the reasons of the totals, also after samples were joined.
func TestReasonsOverTime(t *testing.T) {
	s := newStream(Options{})
	for i := range uint64(3 * HistoryMax) {
		s.time = i * 2e7
		s.feed(wire.Event{Kind: wire.KindCreate, Outcome: wire.OutcomeMiss, Reason: uint8(1 + i%3), Object: i + 1, Link: i + 1, Size: 64, Granted: 64})
	}
	s.AdvanceTime(s.time + 1e9)
	got := s.Snapshot()
	for name, samples := range map[string][]Sample{"history": got.History, "minute": got.Minute} {
		sums := [wire.MissPolicy + 1]uint64{}
		for i := range samples {
			for reason, n := range samples[i].Reasons {
				sums[reason] += uint64(n)
			}
		}
		if sums != got.Totals.MissReasons {
			t.Errorf("%s: %v, want %v", name, sums, got.Totals.MissReasons)
		}
	}
	var c MissCounts
	c.addMisses(1, 65535)
	if c.addMisses(1, 2); c[1] != 65535 {
		t.Errorf("%d", c[1])
	}
}

// TestReasonCounts: any order of reasons gives the same as a plain list.
func TestReasonCounts(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		var c reasonCounts
		var want [reasons]uint64
		sum := uint64(0)
		for _, v := range rapid.SliceOf(rapid.Uint8Range(0, 2*reasons-1)).Draw(t, "misses") {
			n := uint64(v % 3)
			c.addForReason(v/2, n)
			want[v/2] += n
			sum += n
		}
		if c.countsByReason() != want || c.all != sum {
			t.Fatalf("%d, %v, want %d, %v", c.all, c.countsByReason(), sum, want)
		}
	})
}
