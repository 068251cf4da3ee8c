package trace

import (
	"encoding/json"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"codeberg.org/gpumemtop/gpumemtop/internal/wire"
)

// TestVersion1 reads a recording that the last gpumemtop of version 1 wrote: SLAB and GAUGE were unknown kinds then,
// which shared their last values with NONE, and a status had 32 bits.
func TestVersion1(t *testing.T) {
	r := opened(t, "testdata/version1.gmt")
	want := Header{
		Version: 1, Program: "blur", Arguments: []string{"4096"}, Policy: "futhark", Created: time.Unix(1, 0).UTC(), ClockNS: 1_000_000,
		Host: "somewhere", Tags: "stack",
		Limits: Limits{"max_cached_bytes": "4294967296", "max_waste_ratio": "2", "min_block": "4096"},
	}
	if diff := cmp.Diff(want, r.Header()); diff != "" {
		t.Errorf("header (-want +got):\n%s", diff)
	}
	if diff := cmp.Diff(version1(), readAll(t, r)); diff != "" {
		t.Errorf("records (-written +read):\n%s", diff)
	}
	if f, whole := r.Footer(); !whole || f.Status != 3 || r.Damage() != "" {
		t.Errorf("footer %+v, damage %q", f, r.Damage())
	}
}

// version1 returns what was written into testdata/version1.gmt.
func version1() []wire.Record {
	var records []wire.Record
	for n := range uint64(40) {
		for i, kind := range []wire.Kind{10, 21, 12, 22, 300, 1, 0, 16, 18} {
			r := wire.Record{Process: 1 + uint32(n%2), Thread: 100, Event: wire.Event{
				Time: 1_000_000 + n*1000 + uint64(i), Kind: kind, Op: uint8(n / 8), Outcome: wire.Outcome(n % 5), Reason: uint8(n / 16),
				Flags: uint8(i), Scope: 3, Status: int16(max(-32768, int(n)*-100_000)), Tag: uint32(n / 4), Object: n + 1,
				Size: 4096 * (n / 2), Granted: 4096 * (n / 3), Link: n / 5, Duration: uint32(n), Cost: uint32(i),
			}}
			if kind.HasPayload() {
				r.Payload = []byte{byte(n), byte(i), 0}
			}
			records = append(records, r)
		}
	}
	return records
}

func TestLimitsAsJSON(t *testing.T) {
	limits := Limits{"a": "4294967296", "b": "0.25", "c": "oldest-first", "d": "1024:4096", "e": "on", "f": "", "g": "0x10", "h": "1e999"}
	data, err := json.Marshal(limits)
	if err != nil {
		t.Fatal(err)
	}
	if want := `{"a":4294967296,"b":0.25,"c":"oldest-first","d":"1024:4096","e":"on","f":"","g":"0x10","h":"1e999"}`; string(data) != want {
		t.Errorf("got %s\nwant %s", data, want)
	}
	var back Limits
	if err := json.Unmarshal(data, &back); err != nil || cmp.Diff(limits, back) != "" {
		t.Errorf("back %v, %v", back, err)
	}
	if json.Unmarshal([]byte(`{"a":[]}`), &back) == nil {
		t.Error("a list was taken as a limit")
	}
}
