package stats

import (
	"encoding/binary"
	"testing"

	"codeberg.org/gpumemtop/gpumemtop/internal/wire"
)

// FuzzApply feeds arbitrary records. Small numbers are made likely, so that events meet the same objects.
func FuzzApply(f *testing.F) {
	f.Add([]byte{10, 0, 2, 1, 1, 1, 4, 4, 0, 12, 0, 4, 1, 1, 0, 0, 0, 0, 10, 0, 1, 1, 2, 1, 4, 4, 0})
	f.Add([]byte{10, 1, 0, 1, 2, 1, 255, 255, 0, 16, 0, 0, 0, 0, 1, 0, 0, 0, 5, 2, 0, 1, 0, 0, 9, 9, 9})
	f.Add([]byte{21, 0, 0, 1, 1, 1, 4, 4, 0, 10, 0, 2, 33, 1, 2, 2, 2, 0, 12, 0, 5, 33, 1, 2, 2, 0, 0, 15, 0, 0, 32, 1, 2, 0, 2, 0})
	f.Fuzz(func(t *testing.T, data []byte) {
		m := New(Options{Limits: []Limit{{Name: "a"}}})
		for len(data) >= 9 {
			r := recordOf(data[:9])
			r.Payload = data[9:min(len(data), 9+int(data[8]))]
			m.Apply(&r)
			if data[1]&0x80 != 0 {
				m.NoteProcessEnded(r.Process, End{int(data[2]), int(data[3]), uint64(data[1])}, r.Time)
			}
			if data[1]&0x40 != 0 {
				checkSane(t, m.Snapshot())
				checkSums(t, m)
			}
			data = data[9:]
		}
		checkSane(t, m.Snapshot())
		checkSums(t, m)
	})
}

// recordOf spreads nine bytes over the fields of a record.
func recordOf(b []byte) wire.Record {
	wide := func(x byte) uint64 {
		if x >= 0xf0 { // now and then a huge value
			return ^uint64(0) - uint64(x-0xf0)*(1<<59)
		}
		return uint64(x & 7)
	}
	return wire.Record{
		Event: wire.Event{
			Time: binary.LittleEndian.Uint64([]byte{0, 0, b[8], b[0] & 0xe0, b[4] >> 4, 0, 0, b[6] & b[7] & b[8]}),
			Kind: wire.Kind(b[0] & 0x1f), Op: b[1] & 15, Outcome: wire.Outcome(b[2]), Reason: b[8],
			Flags: b[3], Status: int16(int8(b[2])) >> (b[1] & 7), Scope: uint16(b[1] & 3), Access: uint16(b[4] & 3), Duration: uint32(b[4]) << (b[5] & 31), Cost: uint32(b[5]),
			Tag: uint32(b[3] & 7), Object: wide(b[3]), Link: wide(b[5]), Size: wide(b[6]), Granted: wide(b[7]),
		},
		Process: uint32(b[4] & 3), Thread: uint32(b[1] & 1),
	}
}

// checkSane checks what holds whatever was fed.
func checkSane(t *testing.T, s *Snapshot) {
	t.Helper()
	if len(s.History) > HistoryMax || len(s.Marks) > MarksMax || len(s.Findings) > FindingsMax {
		t.Errorf("%d samples, %d marks, %d findings", len(s.History), len(s.Marks), len(s.Findings))
	}
	for i := range s.Tags {
		tag := &s.Tags[i]
		var blocks, cools uint64
		for _, c := range tag.Free {
			blocks += c.Blocks
			cools += c.Cooling
		}
		if tag.Slabs {
			continue
		}
		if blocks-cools != tag.CachedCount || cools > blocks || tag.Trend.Len() > trendPoints {
			t.Errorf("row %+v", tag)
		}
	}
	for _, rate := range []float64{
		s.Totals.HitRate(), s.Totals.SteadyHitRate(), s.Totals.Waste(), s.Totals.ExternalFragmentation(),
		s.Totals.QuadraticFragmentation(), s.Totals.RootFragmentation(),
	} {
		if !(rate >= 0 && rate <= 1) {
			t.Errorf("rate %g in %+v", rate, s.Totals)
		}
	}
}
