package analysis

import (
	"fmt"
	"os"
	"strings"
	"testing"

	"codeberg.org/gpumemtop/gpumemtop/internal/recording"
	"codeberg.org/gpumemtop/gpumemtop/internal/units"
	"codeberg.org/gpumemtop/gpumemtop/internal/wire"
)

// metricsExamples are the worked examples of docs/METRICS.md about reports: each makes its recording and returns the
// example's line with the figures that the analysis gives.
var metricsExamples = []func(*testing.T, *tape) string{
	func(t *testing.T, s *tape) string {
		s.site(1, "a")
		s.site(2, "b")
		s.driver(1, 100)
		object := s.driver(2, 300)
		second := s.now - origin
		s.release(object, wire.OutcomeDriver)
		s.driver(1, 200)
		p := s.analyse(t).Peak
		at := "another time"
		if p.Time == second {
			at = "the second create"
		}
		return fmt.Sprintf("a of 100 bytes, b of 300, b released, a again of 200 → the peak is %d at %s: b %d, a %d",
			p.InUse, at, p.Tags[0].InUse, p.Tags[1].InUse)
	},
	func(t *testing.T, s *tape) string {
		for range 10 {
			s.release(s.driver(1, 100), wire.OutcomeDriver)
			s.driver(2, 50)
		}
		p := s.analyse(t).Phases[0]
		return fmt.Sprintf("10 times a buffer of 100 is created and released, and one of 50 is created and kept → %d iterations of %d "+
			"creates, growth %d", p.Iterations, p.Creates, p.Growth)
	},
	func(t *testing.T, s *tape) string {
		last := s.driver(3, 1)
		for range 10 {
			first, next := s.driver(1, 100), s.driver(2, 50)
			s.release(last, wire.OutcomeDriver)
			s.release(first, wire.OutcomeDriver)
			last = next
		}
		var temporary [3]uint64
		for _, site := range s.analyse(t).Temporaries {
			temporary[strings.Index("tag 1 tag 2", site.Name)/6+1] = site.Buffers
		}
		return fmt.Sprintf("10 times a buffer is created, then one like that of the last time, which is released, then the first → "+
			"temporary %d of 10 and %d of 10", temporary[1], temporary[2])
	},
	func(t *testing.T, s *tape) string {
		missing(s, wire.MissLimit, wire.EvictLimit)
		for _, m := range s.analyse(t, policy("futhark", recording.Limits{"max_cached_bytes": "1048576"})).Misses {
			if m.Reason == "limit" {
				return fmt.Sprintf("max_cached_bytes 1 M evicts four blocks of 3 M, each is wanted again and takes 1000 ns → %d misses, %d ns lost, %s=%s",
					m.Count, m.LostNS, m.Knob.Limit, m.Knob.Value)
			}
		}
		return ""
	},
	func(t *testing.T, s *tape) string {
		c := course{seconds: 8, resident: func(_ float64, i int) float64 { return 150 + 64*min(float64(i), 1) + float64(i)/4 }}
		g := c.tape().analyse(t).Growth[0]
		return fmt.Sprintf("800 iterations of 10 ms, in which 64 M of buffers are flat and anonymous memory, 150 M at first, rises by these and by 256 K each → %d iterations, %d K each",
			g.Iterations, (g.Each+1<<9)>>10)
	},
	func(t *testing.T, s *tape) string {
		object := s.driver(1, 1000)
		s.use(object)
		s.now += 99 * ms
		s.release(object, wire.OutcomeDriver)
		return fmt.Sprintf("a buffer of 1000 bytes is released 0.1 s after its last use → %.0f byte seconds", s.analyse(t).Lag.ByteSeconds)
	},
	func(t *testing.T, s *tape) string {
		for n := range uint64(3) {
			s.driver(1, 1000*(n+1))
			s.last().Cost = uint32(3000 + 2000*n)
		}
		s.driver(1, 1000)
		s.last().Cost, s.last().Access = 90_000, wire.CopyHostPtr
		c := s.analyse(t).CreateCost
		return fmt.Sprintf("creates of 1000, 2000 and 3000 bytes that take 3000, 5000 and 7000 ns, and one that copies → %.0f ns + %.0f ns per byte, R² %.2f", c.A, c.B, c.R2)
	},
	func(t *testing.T, s *tape) string {
		object := s.driver(1, 100)
		s.now += 599 * ms
		s.release(s.driver(1, 200), wire.OutcomeDriver)
		s.now += 598 * ms
		s.release(object, wire.OutcomeDriver)
		l := s.analyse(t).Timeline
		middle := l.InUse[600*ms/l.Step]
		return fmt.Sprintf("100 bytes are held for 1.2 s, 200 more for 1 ms in the middle → %d points %.0f ms apart, %d in use in the first, %d in the middle one",
			len(l.InUse), float64(l.Step)/ms, l.InUse[0], middle)
	},
	func(t *testing.T, s *tape) string {
		for _, size := range []uint64{1024, 1500, 2048} {
			s.release(s.driver(1, size), wire.OutcomeDriver)
		}
		a := s.analyse(t)
		return fmt.Sprintf("buffers of 1024, 1500 and 2048 bytes, released after 1 ms each → sizes %d to %d: %d, %d to %d: %d; lifetimes %d to %d ns: %d",
			a.Sizes[0].From, a.Sizes[0].To, a.Sizes[0].Count, a.Sizes[1].From, a.Sizes[1].To, a.Sizes[1].Count, a.Lifetimes[0].From,
			a.Lifetimes[0].To, a.Lifetimes[0].Count)
	},
	func(t *testing.T, s *tape) string {
		s.put(wire.Event{Kind: wire.KindSite, Tag: 1}, "a\t\t\t\nmain\t\t\t\n")
		s.put(wire.Event{Kind: wire.KindSite, Tag: 2}, "b\t\t\t\nmain\t\t\t\n")
		s.driver(1, 100)
		s.release(s.driver(2, 50), wire.OutcomeDriver)
		main := s.analyse(t).Flame.Children[0]
		return fmt.Sprintf("main calls a, which leaks 100 bytes, and b, which creates and releases 50 → %s: %d at the peak, %d asked for, %d creates, %d leaked",
			main.Name, main.Peak, main.Total, main.Creates, main.Leaked)
	},
	func(t *testing.T, s *tape) string {
		object := s.driver(1, 1_000_000)
		for range 8 {
			s.write(object, 0, 1_000_000, 5)
			s.kernel(object, true)
		}
		a := s.analyse(t)
		f := a.Transfers[0]
		return fmt.Sprintf("the same 1000000 bytes are written 8 times in 1 ms each, for a kernel → %s, %d calls write %d bytes again",
			units.FormatRate(a.Snapshot.Transfers.Directions[0].BytesPerSecond()), f.Count, f.Bytes)
	},
}

func TestMetricsExamples(t *testing.T) {
	text, err := os.ReadFile("../../docs/METRICS.md")
	if err != nil {
		t.Fatal(err)
	}
	var written []string
	for line := range strings.Lines(string(text)) {
		if example, ok := strings.CutPrefix(line, "> Analysed: "); ok {
			written = append(written, strings.TrimSpace(example))
		}
	}
	if len(written) != len(metricsExamples) {
		t.Fatalf("%d examples in docs/METRICS.md, %d here", len(written), len(metricsExamples))
	}
	for i, example := range metricsExamples {
		if got := example(t, newTape()); got != written[i] {
			t.Errorf("example %d:\n the document says %s\n the analysis says %s", i+1, written[i], got)
		}
	}
}
