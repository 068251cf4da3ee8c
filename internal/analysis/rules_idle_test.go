package analysis

import (
	"slices"
	"strings"
	"testing"

	"codeberg.org/gpumemtop/gpumemtop/internal/recording"
	"codeberg.org/gpumemtop/gpumemtop/internal/stats"
	"codeberg.org/gpumemtop/gpumemtop/internal/testkit/records"
	"codeberg.org/gpumemtop/gpumemtop/internal/wire"
)

// TestKeptForNothing: a block that stays free to the end, and others that nearly do.
func TestKeptForNothing(t *testing.T) {
	for name, test := range map[string]struct {
		reused int // of the seconds after the release, when a request takes the block; 0: never
		long   uint64
		want   bool
	}{
		"kept": {0, 4000, true}, "asked for": {3, 4000, false}, "asked for at first": {1, 4000, true}, "a short run": {0, 800, false},
	} {
		s := newTape()
		s.release(s.create(wire.OutcomeMiss, 1, mib, mib, 1), wire.OutcomeCached).Link = 1
		begun := s.now
		if test.reused > 0 {
			s.now += uint64(test.reused) * 1000 * ms
			s.release(s.create(wire.OutcomeHit, 1, mib, mib, 1), wire.OutcomeCached).Link = 1
		}
		s.now = begun + test.long*ms
		s.exit()
		found := ""
		for _, d := range s.analyse(t).Diagnoses {
			if strings.HasPrefix(d.Title, "the pool keeps memory") {
				found = d.Text
			}
		}
		if (found != "") != test.want || test.want && !strings.HasPrefix(found, "1.00 MiB in 1 block, all free from ") {
			t.Errorf("%s: found %q", name, found)
		}
	}
}

// TestKeptInTwoPhases: blocks of two phases were in the pool at one time, or one after the other.
func TestKeptInTwoPhases(t *testing.T) {
	for gone, want := range map[uint64]string{3000: "2.00 MiB in 2 blocks, not all of them at one time, served no", 9000: "2.00 MiB in 2 blocks, all free from 4.5s after the start on, served no"} {
		s := newTape()
		first, second := s.create(wire.OutcomeMiss, 1, mib, mib, 1), uint64(0)
		s.release(first, wire.OutcomeCached).Link = 1
		at := func(time uint64, do func()) {
			s.now = origin + time*ms
			do()
		}
		evict := func(block uint64) {
			s.put(wire.Event{Kind: wire.KindEvict, Reason: uint8(wire.EvictAge), Link: block, Size: mib, Granted: mib}, "")
		}
		if gone < 4000 {
			at(gone, func() { evict(1) })
		}
		at(4000, func() { second = s.create(wire.OutcomeMiss, 2, mib, mib, 2) })
		at(4500, func() { s.release(second, wire.OutcomeCached).Link = 2 })
		s.last().Time = origin + 4500*ms
		at(8900, s.exit)
		found := ""
		for _, d := range s.analyse(t).Diagnoses {
			if strings.HasPrefix(d.Title, "the pool keeps memory") {
				found = d.Text
			}
		}
		if !strings.HasPrefix(found, want) {
			t.Errorf("%d: found %q, want %q", gone, found, want)
		}
	}
}

// TestPoolIsIdle: while a run goes on, a pool with as much idle as half of the peak, and runs that nearly have it.
func TestPoolIsIdle(t *testing.T) {
	for name, test := range map[string]struct {
		age, since uint64 // s; since 0: less than half is idle
		maxAge     float64
		want       string // end of the text
	}{
		"idle":             {60, 20, 0, "is idle in the pool since 15s after the start, 2.00 MiB now; replayed with max_age=10.0: 10.0 MiB reserved at most instead of 20.0 MiB, 100.0 % hits instead of 0.0 %"},
		"goes back":        {60, 20, 40, "2.00 MiB now; what stays free for 40 s goes back (max_age)"},
		"at once":          {60, 20, 44, ""},
		"too late":         {60, 20, 10, "2.00 MiB now; what stays free for 40 s goes back (max_age)"},
		"less":             {60, 0, 0, ""},
		"for a short time": {90, 70, 0, ""},
	} {
		s := lively(test.age)
		s.Limits = append(s.Limits, stats.Limit{Name: "max_age", Kind: stats.LimitSeconds, Text: "40", Value: test.maxAge})
		s.Totals.Hits = 1
		s.Totals.Idle, s.Totals.PeakInUse, s.Totals.PeakReserved, s.IdleSince = 2<<20, 3<<20, 5<<20, test.since*second
		s.Device.Global, s.Processes[0].DeviceMemory = 16<<20, 16<<20
		l := Live{Still: true, Replay: gaining}
		l.Update(s)
		p := titled(&l, "the pool keeps memory")
		if (p != nil) != (test.want != "") || p != nil && !strings.HasSuffix(p.Text, test.want) {
			t.Errorf("%s: %+v", name, p)
		}
		if p != nil && (p.Knob.Value == "10.0") != (test.maxAge == 0) {
			t.Errorf("%s: limit %+v", name, p.Knob)
		}
	}
}

// TestNeverUsed: what no command used is noted where a recording has uses, and most is.
func TestNeverUsed(t *testing.T) {
	for name, test := range map[string]struct {
		version, unused, used int
		attached              bool
		want                  bool
	}{
		"none is used": {recording.Version, 20, 0, false, true}, "some are": {recording.Version, 20, 19, false, true}, "half are": {recording.Version, 20, 20, false, false},
		"few": {recording.Version, 19, 0, false, false}, "an earlier form": {usesSince - 1, 20, 0, false, false}, "attached": {recording.Version, 20, 0, true, false},
	} {
		s := newTape()
		for i := range test.unused + test.used {
			object := s.driver(1, mib)
			if i >= test.unused {
				s.use(object)
			}
			s.release(object, wire.OutcomeDriver)
		}
		s.exit()
		a, err := Analyse(&records.Tape{Records: s.Records}, Options{
			Header: recording.Header{Version: test.version, Host: "a", Policy: "none", ClockNS: origin, Attached: test.attached}, Whole: true,
		})
		if err != nil {
			t.Fatal(err)
		}
		if d := diagnosis(a, "most buffers are never used"); (d != nil) != test.want {
			t.Errorf("%s: %+v", name, d)
		}
	}
}

// TestPeakIdleOfShortRuns: the most idle is what the timeline shows, in a run of less than a look of a snapshot as well; what is asked for
// again is not idle.
func TestPeakIdleOfShortRuns(t *testing.T) {
	for reused, want := range map[bool]uint64{false: mib, true: 0} {
		s := newTape()
		s.release(s.create(wire.OutcomeMiss, 1, mib, mib, 1), wire.OutcomeCached).Link = 1
		for range 30 {
			if reused {
				s.release(s.create(wire.OutcomeHit, 1, mib, mib, 1), wire.OutcomeCached).Link = 1
			} else {
				s.release(s.driver(2, mib), wire.OutcomeDriver)
			}
		}
		a := s.analyse(t)
		if got, row := a.Snapshot.Totals.PeakIdle, slices.Max(a.Timeline.Idle); got != want || row != want {
			t.Errorf("reused %v: %d idle at most, %d in the timeline, want %d", reused, got, row, want)
		}
	}
}
