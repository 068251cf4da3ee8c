package export

import (
	"bytes"
	"encoding/json"
	"maps"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"codeberg.org/gpumemtop/gpumemtop/internal/lab"
	"codeberg.org/gpumemtop/gpumemtop/internal/wire"
)

func played(t *testing.T) *lab.ReplayResult {
	t.Helper()
	list := story()
	list = append(list, rec(9500, wire.KindLost, func(r *wire.Record) { r.Size = 3 }))
	r, err := lab.Replay(&tape{records: list}, lab.ReplayOptions{Policy: "pow2", Capacity: 14 * mib})
	if err != nil {
		t.Fatal(err)
	}
	return r
}

func TestReplayText(t *testing.T) {
	var b bytes.Buffer
	if err := ReplayText(&b, played(t), "fut\x1bhark"); err != nil {
		t.Fatal(err)
	}
	golden(t, "replay.txt", b.String())
	if err := ReplayText(fullDisk{}, played(t), "none"); err == nil || !strings.Contains(err.Error(), "no space") {
		t.Errorf("a full disk: %v", err)
	}
}

func TestReplayJSON(t *testing.T) {
	var b bytes.Buffer
	r := played(t)
	if err := ReplayJSON(&b, r); err != nil {
		t.Fatal(err)
	}
	var got map[string]json.RawMessage
	if err := json.Unmarshal(b.Bytes(), &got); err != nil {
		t.Fatal(err)
	}
	want := strings.Fields(`bytes_allocated bytes_cached bytes_cooling bytes_free bytes_requested capacity direct driver_creates
		driver_creates_avoided evictions external_fragmentation external_fragmentation_quadratic external_fragmentation_root failures
		hit_rate hits in_use limits lost_events miss_reasons misses peak_in_use peak_reserved policy processes recorded_hits
		recorded_misses requests slabs unpooled waste waste_at_peak`)
	if diff := cmp.Diff(want, slices.Sorted(maps.Keys(got))); diff != "" {
		t.Error(diff)
	}
	for key, want := range map[string]string{"hits": "1", "recorded_hits": "1", "lost_events": "15", "capacity": "14680064", "unpooled": "2"} {
		if string(got[key]) != want {
			t.Errorf("%s is %s, want %s", key, got[key], want)
		}
	}
	if err := ReplayJSON(fullDisk{}, r); err == nil || !strings.Contains(err.Error(), "no space") {
		t.Errorf("a full disk: %v", err)
	}
}
