package session

import (
	"path/filepath"
	"testing"
	"time"

	"codeberg.org/gpumemtop/gpumemtop/internal/recording"
	"codeberg.org/gpumemtop/gpumemtop/internal/stats"
	"codeberg.org/gpumemtop/gpumemtop/internal/wire"
)

// nothing is a Recorder that costs nothing, to see the session's own share.
type nothing struct{}

func (nothing) Append(*wire.Record) error { return nil }
func (nothing) Flush() error              { return nil }
func (nothing) Bytes() uint64             { return 0 }

// BenchmarkCollector moves create/release pairs of two threads out of the rings, through the merge, into a recorder
// and the model. Filling the rings is not timed. An operation is one event.
func BenchmarkCollector(b *testing.B) {
	b.Run("model", func(b *testing.B) { benchmarkCollector(b, nothing{}) })
	b.Run("model+recording", func(b *testing.B) {
		w, err := recording.Create(filepath.Join(b.TempDir(), "bench.gmt"), recording.Header{}, false)
		if err != nil {
			b.Fatal(err)
		}
		benchmarkCollector(b, w)
		if err := w.Close(recording.Footer{}); err != nil {
			b.Fatal(err)
		}
	})
}

func benchmarkCollector(b *testing.B, recorder Recorder) {
	b.Helper()
	c := newCollector(stats.New(stats.Options{Program: "bench", Started: 1}), recorder, "")
	target := newFakeTarget(b)
	c.addProcess(target.peer(7))
	clock := uint64(1_000_000)
	c.clock = func() uint64 { return clock + settleNS }
	var inside time.Duration
	object := uint64(0)
	b.ReportAllocs()
	b.ResetTimer()
	b.StopTimer()
	for done := 0; done < b.N; {
		n := min(b.N-done, 16_000)
		for i := 0; i < n; i += 4 {
			for ring := range 2 {
				object++
				e := create(clock, object)
				e.Tag, e.Outcome, e.Link = uint32(object%16), wire.OutcomeMiss, object
				target.put(ring, e, "")
				clock += 100
				target.put(ring, wire.Event{Time: clock, Kind: wire.KindRelease, Object: object}, "")
				clock += 100
			}
		}
		b.StartTimer()
		start := time.Now()
		for got := 0; got < n; {
			got += c.readRings()
		}
		inside += time.Since(start)
		b.StopTimer()
		done += n
	}
	b.ReportMetric(float64(b.N)/inside.Seconds()/1e6, "Mevents/s")
}
