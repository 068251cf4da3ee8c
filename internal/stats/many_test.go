package stats

import (
	"runtime"
	"testing"

	"codeberg.org/gpumemtop/gpumemtop/internal/wire"
)

// BenchmarkManySites: memory of a model with 100,000 call sites, each with a buffer, and of one snapshot of it.
func BenchmarkManySites(b *testing.B) {
	const sites = 100_000
	used := func() float64 {
		var m runtime.MemStats
		runtime.GC()
		runtime.ReadMemStats(&m)
		return float64(m.HeapAlloc) / (1 << 20)
	}
	for b.Loop() {
		before := used()
		m := New(Options{Started: 1})
		r := wire.Record{Process: 1}
		for i := range uint64(sites) {
			r.Event = wire.Event{
				Time: i + 2, Kind: wire.KindCreate, Outcome: wire.OutcomeMiss, Object: i + 1, Link: i + 1, Size: 4096, Granted: 4096, Tag: uint32(i + 1),
			}
			m.Apply(&r)
		}
		model := used()
		s := m.PublishSnapshot()
		b.ReportMetric(model-before, "MiB-model")
		b.ReportMetric(used()-model, "MiB-snapshot")
		runtime.KeepAlive(s)
		runtime.KeepAlive(m)
	}
}
