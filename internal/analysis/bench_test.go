package analysis

import (
	"io"
	"runtime"
	"testing"

	"codeberg.org/gpumemtop/gpumemtop/internal/wire"
)

// mix is a source of creates, uses and releases of eight sizes at eight call sites with 64 buffers live; one create in
// 16 is a miss.
type mix struct{ n, records uint64 }

func (m *mix) Rewind() error {
	m.n = 0
	return nil
}

func (m *mix) Next(r *wire.Record) error {
	if m.n == m.records {
		return io.EOF
	}
	turn := m.n / 4
	slot := turn % 64
	size, block := uint64(1000)<<(turn%8), slot+1
	r.Process, r.Thread = 1, 7
	switch m.n % 4 {
	case 0:
		r.Event = wire.Event{Kind: wire.KindRelease, Object: turn - 63, Outcome: wire.OutcomeCached, Link: block}
	case 1:
		r.Event = wire.Event{
			Kind: wire.KindCreate, Outcome: wire.OutcomeHit, Duration: 300, Object: turn + 1, Size: size - 1, Granted: size,
			Link: block, Tag: uint32(turn % 8), Access: 1, Scope: 1,
		}
		if turn < 64 || turn%16 == 0 {
			r.Outcome, r.Cost, r.Reason = wire.OutcomeMiss, 5000, uint8(wire.MissCold)
		}
	default:
		r.Event = wire.Event{Kind: wire.KindUse, Object: turn + 1}
	}
	m.n++
	r.Time = 1000 + 250*m.n
	return nil
}

// TestMemoryIsBounded: ten times as many records take no more memory.
func TestMemoryIsBounded(t *testing.T) {
	taken := func(records uint64) uint64 {
		var before, after runtime.MemStats
		runtime.ReadMemStats(&before)
		if _, err := Analyse(&mix{records: records}, Options{}); err != nil {
			t.Fatal(err)
		}
		runtime.ReadMemStats(&after)
		return after.TotalAlloc - before.TotalAlloc
	}
	few, many := taken(20_000), taken(200_000)
	if many > few+few/4 {
		t.Errorf("%d bytes for 20000 records, %d for 200000", few, many)
	}
}

// BenchmarkNew measures an analysis for each record of the recording, both passes, without reading a file.
func BenchmarkNew(b *testing.B) {
	const records = 1_000_000
	b.ReportAllocs()
	for b.Loop() {
		a, err := Analyse(&mix{records: records}, Options{})
		if err != nil || a.Snapshot.Totals.Creates != records/4 {
			b.Fatal(err, a.Snapshot.Totals.Creates)
		}
	}
	b.ReportMetric(float64(b.Elapsed().Nanoseconds())/float64(b.N)/records, "ns/record")
}
