package stats

import (
	"fmt"
	"math"
	"os"
	"strings"
	"testing"

	"codeberg.org/gpumemtop/gpumemtop/internal/wire"
)

// metricsExamples are the worked examples of docs/METRICS.md: each feeds its events and returns the example's line
// with the figures that the model gives.
var metricsExamples = []func(*stream) string{
	func(s *stream) string {
		for n := range uint64(12) {
			s.miss(n+1, n+1, 64, 64, 0)
			s.release(n+1, wire.OutcomeCached)
		}
		for n := range uint64(8432) {
			s.hit(100+n, 1, 64, 64, 0)
			s.release(100+n, wire.OutcomeCached)
		}
		t := s.Snapshot().Totals
		return fmt.Sprintf("hits %d, misses %d → hit rate %d / %d = %.2f %%",
			t.Hits, t.Misses, t.Hits, t.Hits+t.Misses, 100*t.HitRate())
	},
	func(s *stream) string {
		for n := range uint64(10) {
			s.miss(n+1, n+1, 64, 64, 0)
		}
		for n := range uint64(90) {
			s.release(1+n, wire.OutcomeCached)
			s.hit(11+n, 1+n%10, 64, 64, 0)
		}
		t := s.Snapshot().Totals
		return fmt.Sprintf("%d misses, then %d hits → hit rate %.2f %%, steady hit rate %d / %d = %.2f %%",
			t.Misses, t.Hits, 100*t.HitRate(), t.SteadyHits, t.SteadyRequests, 100*t.SteadyHitRate())
	},
	func(s *stream) string {
		s.slab(1, 1<<20)
		s.part(wire.OutcomeMiss, 1, 2, 256<<10)
		s.part(wire.OutcomeHit, 2, 3, 128<<10)
		s.releasePart(1, wire.OutcomeCached)
		s.gauge(896<<10, 640<<10, 2, 0)
		t := s.Snapshot().Totals
		return fmt.Sprintf("a slab of %d K gets parts of 256 K and 128 K, the first is released → driver creates %d, misses %d, hits %d; in use %d K, cached %d K in %d ranges, the largest %d K",
			t.SlabBytes>>10, t.DriverCreates, t.Misses, t.Hits, t.InUse>>10, t.Cached>>10, t.CachedBlocks, t.LargestCached>>10)
	},
	func(s *stream) string {
		s.counted(wire.HeldEvent, 1, 150, 60, 95)
		o := s.Snapshot().Objects[0]
		return fmt.Sprintf("a call site creates 150 events and releases 60, having held 95 → created %d, live %d, peak %d", o.Created, o.Live, o.Peak)
	},
	func(s *stream) string {
		s.miss(1, 1, 300, 300, 0)
		s.miss(2, 2, 100, 100, 0)
		s.feed(wire.Event{Kind: wire.KindRelease, Object: 1, Outcome: wire.OutcomeCached, Time: streamStart + 1_000_000_000})
		s.feed(wire.Event{Kind: wire.KindRelease, Object: 2, Outcome: wire.OutcomeCached, Time: streamStart + 7_000_000_000})
		s.AdvanceTime(streamStart + 8_000_000_000)
		t := s.Snapshot().Totals
		s.feed(wire.Event{Kind: wire.KindCreate, Outcome: wire.OutcomeHit, Object: 3, Link: 1, Size: 300, Granted: 300, Time: streamStart + 8_000_000_001})
		after := s.Snapshot().Totals
		return fmt.Sprintf("blocks of 300 and 100 released at 1 s and 7 s → at 8 s cached %d, idle %d; a hit on the first → cached %d, idle %d",
			t.Cached, t.Idle, after.Cached, after.Idle)
	},
	func(s *stream) string {
		for n := range uint64(3) {
			s.miss(n+1, n+1, 100*(n+1), 100*(n+1), 0)
		}
		s.release(1, wire.OutcomeCached)
		s.release(2, wire.OutcomeCooling)
		t := s.Snapshot().Totals
		return fmt.Sprintf("buffers of 100, 200 and 300 granted; the first released to the pool, the second still cooling"+
			" → in use %d, cached %d, cooling %d, reserved %d", t.InUse, t.Cached, t.Cooling, t.ReservedBytes())
	},
	func(s *stream) string {
		s.slab(1, 1000)
		s.part(wire.OutcomeMiss, 1, 2, 600)
		s.releasePart(1, wire.OutcomeCooling)
		s.miss(2, 3, 500, 500, 0)
		s.release(2, wire.OutcomeCached)
		t := s.Snapshot().Totals
		return fmt.Sprintf("a slab of 1000 with a part of 600, which is released and cools; then a block of 500, which is released → "+
			"peak in use %d, peak cooling %d, peak cached %d, peak reserved %d",
			t.PeakInUse, t.PeakCooling, t.PeakCached, t.PeakReserved)
	},
	func(s *stream) string {
		s.miss(1, 1, 600, 800, 0)
		s.miss(2, 2, 150, 200, 0)
		t := s.Snapshot().Totals
		return fmt.Sprintf("requests of 600 and 150 served by blocks of 800 and 200 → waste (%d − %d) / %d = %.2f %%",
			t.InUse, t.Requested, t.InUse, 100*t.Waste())
	},
	func(s *stream) string {
		for n := range uint64(3) {
			s.miss(n+1, n+1, 256, 256, 0)
			s.release(n+1, wire.OutcomeCached)
		}
		t := s.Snapshot().Totals
		return fmt.Sprintf("free {256, 256, 256} → external fragmentation 1 − %d / %d = %.3f; quadratic 1 − %.0f / %d² = %.3f; "+
			"root 1 − √%.0f / %d = %.3f", t.LargestCached, t.Cached, t.ExternalFragmentation(),
			t.Squares, t.Cached, t.QuadraticFragmentation(), t.Squares, t.Cached, t.RootFragmentation())
	},
	func(s *stream) string {
		s.miss(1, 1, 1500, 1500, 0)
		s.miss(2, 2, 1024, 1024, 0)
		s.miss(3, 3, 2048, 2048, 0)
		s.release(2, wire.OutcomeCached)
		b := s.Snapshot().Buckets
		return fmt.Sprintf("blocks of 1500, 1024 and 2048, the second released → bucket %d to %d: misses %d, in use %d, cached %d; "+
			"bucket %d to %d: misses %d, in use %d", b[0].Smallest, b[0].Largest, b[0].Misses, b[0].InUse, b[0].Cached,
			b[1].Smallest, b[1].Largest, b[1].Misses, b[1].InUse)
	},
	func(s *stream) string {
		for n, cost := range []uint32{900_000, 60_000, 60_000, 60_000, 60_000, 60_000, 60_000, 60_000} {
			s.feed(wire.Event{
				Kind: wire.KindCreate, Outcome: wire.OutcomeMiss, Object: uint64(n + 1), Link: uint64(n + 1),
				Size: 1 << 20, Granted: 1 << 20, Cost: cost,
			})
		}
		s.release(1, wire.OutcomeCached)
		for n := range uint64(100) {
			s.hit(10+n, 1, 1<<20, 1<<20, 0)
			s.release(10+n, wire.OutcomeCached)
		}
		t := s.Snapshot().Totals
		return fmt.Sprintf("a miss of 1 M that took the driver 900 µs and seven that took 60 µs, then %d hits of 1 M that took 0.1 µs each → "+
			"time saved %d × (60 − 0.1) µs = %d µs", t.Hits, t.Hits, t.Saved.NS/1000)
	},
	func(s *stream) string {
		for n := range uint64(100) {
			s.feed(wire.Event{
				Kind: wire.KindCreate, Outcome: wire.OutcomeDriver, Object: n + 1, Size: 64, Duration: uint32(n+1) * 1000,
			})
		}
		t := s.Snapshot().Totals
		within := func(got uint64, want float64) string {
			if math.Abs(float64(got)-want*1000) > 0.032*want*1000 {
				return fmt.Sprint(got)
			}
			return fmt.Sprintf("%g µs ± 3.2 %%", want)
		}
		return "100 creates of 1, 2, … 100 µs → p50 " + within(t.CreateP50NS, 50) + ", p99 " + within(t.CreateP99NS, 99)
	},
	func(s *stream) string {
		for n, time := range []uint64{50, 50, 50, 950, 950} {
			s.feed(wire.Event{
				Kind: wire.KindCreate, Object: uint64(n + 1), Size: 64, Time: streamStart + time*1_000_000,
			})
		}
		s.AdvanceTime(streamStart + 1_000_000_000)
		first := s.Snapshot().Window
		s.AdvanceTime(streamStart + 1_100_000_000)
		return fmt.Sprintf("3 creates at 0.05 s and 2 at 0.95 s, looked at %.1f s → %d in the last second; looked at 1.1 s → %d",
			float64(first.NS)/1e9, first.Creates, s.Snapshot().Window.Creates)
	},
	func(s *stream) string {
		look := func(ms uint64) (int, uint64) {
			for at := range ms / 50 {
				s.AdvanceTime(streamStart + (at+1)*50_000_000)
			}
			h := s.Snapshot().History
			return len(h), (h[1].Time - h[0].Time) / 1_000_000
		}
		n, spacing := look(60_000)
		later, wider := look(60_200)
		return fmt.Sprintf("after 60 s there are %d samples %d ms apart; after 60.2 s %d samples %d ms apart",
			n, spacing, later, wider)
	},
	func(s *stream) string {
		s.miss(1, 1, 64, 64, 0)
		s.NoteProcessEnded(1, End{Status: 0, Signal: 0}, s.time)
		left := s.Snapshot().Totals.InUse
		s.process = 2
		s.miss(1, 1, 32, 32, 0)
		snapshot := s.Snapshot()
		return fmt.Sprintf("a process ends with %d bytes in use → in use %d; a second process creates a buffer of 32 → in use %d, "+
			"the first process still shows %d", left, left, snapshot.Totals.InUse, snapshot.Processes[0].Totals.InUse)
	},
	func(s *stream) string {
		const used, made = 64, 32
		s.feed(wire.Event{Kind: wire.KindCreate, Flags: wire.FlagCarried, Object: 1, Size: used, Granted: used, Tag: 1})
		s.feed(wire.Event{Kind: wire.KindCreate, Object: 2, Size: made, Granted: made, Tag: 2})
		t := s.Snapshot().Totals
		return fmt.Sprintf("attached to a process, which then writes %d bytes into a buffer from before, creates one of %d and "+
			"releases none → creates %d, in use %d, live %d, leaked 0", used, made, t.Creates, t.InUse, t.LiveBuffers)
	},
	func(s *stream) string {
		s.miss(1, 1, 64, 64, 0)
		for _, bytes := range []uint64{100, 80} {
			s.machine(wire.MachineDRM, 0x300, bytes)
			s.machine(wire.MachineDRM, 0x400, 20)
		}
		snapshot := s.Snapshot()
		all, _ := BytesOnDevice(snapshot.Machine)
		own, _ := DriversOwnBytes(snapshot.Machine, &snapshot.Totals)
		return fmt.Sprintf("blocks of %d are in use; the kernel's driver reports 100 on one device and 20 on another, then 80 on the first → "+
			"driver's own %d − %d = %d, peak of the first %d", snapshot.Totals.InUse, all, snapshot.Totals.ReservedBytes(), own, snapshot.Machine[0].Peak)
	},
	func(s *stream) string {
		s.spill(wire.SpillFirst, 1, 100, 0)
		s.spill(wire.SpillOut, 1, 0, 100)
		s.spill(wire.SpillFirst, 2, 100, 100)
		s.spill(wire.SpillOut, 2, 0, 200)
		s.spill(wire.SpillIn, 1, 100, 100)
		p := s.Snapshot().Spill
		return fmt.Sprintf("of two buffers of 100 one has memory at a time; the first comes back → resident %d, spilled %d, out %d, back %d, working set about %d",
			p.Resident, p.Spilled, p.Out.Bytes, p.In.Bytes, p.WorkingSet/10*10)
	},
	func(s *stream) string {
		for range 3 {
			s.found(wire.DiagDoubleRelease, "clReleaseMemObject", 1, 64, 0, -38)
		}
		s.found(wire.DiagDoubleRelease, "clReleaseMemObject", 2, 64, 0, -38)
		snapshot := s.Snapshot()
		mistakes := uint64(0)
		for i := range snapshot.Findings {
			mistakes += snapshot.Findings[i].Count
		}
		return fmt.Sprintf("a buffer released three times too often, another one once from another tag → %d findings, %d mistakes",
			len(snapshot.Findings), mistakes)
	},
}

func TestMetricsExamples(t *testing.T) {
	text, err := os.ReadFile("../../docs/METRICS.md")
	if err != nil {
		t.Fatal(err)
	}
	const prefix = "> Example: "
	var written []string
	for line := range strings.Lines(string(text)) {
		if example, ok := strings.CutPrefix(line, prefix); ok {
			written = append(written, strings.TrimSpace(example))
		}
	}
	if len(written) != len(metricsExamples) {
		t.Fatalf("%d examples in docs/METRICS.md, %d here", len(written), len(metricsExamples))
	}
	for i, example := range metricsExamples {
		if got := example(newStream(Options{})); got != written[i] {
			t.Errorf("example %d:\n the document says %s\n the model says    %s", i+1, written[i], got)
		}
	}
}
