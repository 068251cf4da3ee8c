package report

import (
	"encoding/binary"
	"encoding/json"
	"strings"
	"testing"
	"time"

	"codeberg.org/gpumemtop/gpumemtop/internal/analysis"
	"codeberg.org/gpumemtop/gpumemtop/internal/recording"
	"codeberg.org/gpumemtop/gpumemtop/internal/units"
	"codeberg.org/gpumemtop/gpumemtop/internal/wire"
)

// FuzzReport makes reports of arbitrary records. Small numbers are made likely, so that events meet the same objects.
func FuzzReport(f *testing.F) {
	f.Add([]byte{10, 0, 2, 1, 1, 1, 4, 4, 0, 12, 0, 4, 1, 1, 0, 0, 0, 0, 10, 0, 1, 1, 2, 1, 4, 4, 0})
	f.Add([]byte{10, 1, 0, 1, 2, 1, 255, 255, 0, 16, 0, 0, 0, 0, 1, 0, 0, 0, 5, 2, 0, 1, 0, 0, 9, 9, 9})
	f.Add([]byte{21, 0, 0, 1, 1, 1, 4, 4, 0, 10, 0, 2, 33, 1, 2, 2, 2, 0, 12, 0, 5, 33, 1, 2, 2, 0, 0, 15, 0, 0, 32, 1, 2, 0, 2, 0})
	f.Add([]byte{5, 0, 2, 1, 1, 1, 4, 4, 0}) // a policy that would clear the terminal
	f.Add([]byte("*00A00\xc4\xc4\xc4000000000"))
	f.Fuzz(func(t *testing.T, data []byte) {
		s := &tape{}
		o := analysis.Options{Header: recording.Header{Policy: "slab", ClockNS: origin}}
		if len(data) > 0 {
			o.Header.Policy = []string{"slab", "futhark", "none", "mantissa", "later", "slab\x1b[2J\n"}[data[0]%6]
			o.Since, o.Until = time.Duration(data[0]&1)<<20, time.Duration(data[0]&2)<<30
		}
		for len(data) >= 9 {
			r := recordOf(data[:9])
			r.Payload = data[9:min(len(data), 9+int(data[8]))]
			s.Records = append(s.Records, r)
			data = data[9:]
		}
		a, err := analysis.Analyse(s, o)
		if err != nil {
			t.Fatal(err)
		}
		check(t, a)
	})
}

// check writes every report of an analysis.
func check(t *testing.T, a *analysis.Analysis) {
	t.Helper()
	if l := &a.Timeline; len(l.InUse) > analysis.PointsMax || len(l.Tags) > analysis.SeriesMax || len(l.Free) > analysis.SeriesMax {
		t.Errorf("%d points, %d and %d series", len(l.InUse), len(l.Tags), len(l.Free))
	}
	for line := range strings.Lines(textOf(t, WriteText, a, Options{Top: 20})) {
		if units.Width(strings.TrimRight(line, "\n")) > textWidth || strings.ContainsAny(line, "\x00\x1b\r") {
			t.Errorf("%q", line)
		}
	}
	if !json.Valid([]byte(textOf(t, WriteJSON, a, Options{}))) {
		t.Error("no JSON")
	}
	textOf(t, WriteMarkdown, a, Options{})
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
			Kind: wire.Kind(b[0] & 0x1f), Op: b[1] & 15, Outcome: wire.Outcome(b[2] & 7), Reason: b[8] & 15, Flags: b[3],
			Status: int16(int8(b[2])) >> (b[1] & 7), Access: uint16(b[4] & 3), Duration: uint32(b[4]) << (b[5] & 31), Cost: uint32(b[5]),
			Tag: uint32(b[3] & 7), Object: wide(b[3]), Link: wide(b[5]), Size: wide(b[6]), Granted: wide(b[7]),
		},
		Process: uint32(b[4] & 3), Thread: uint32(b[1] & 1),
	}
}
