package report

import (
	"bytes"
	"encoding/json"
	"maps"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/charmbracelet/x/exp/golden"
	"github.com/google/go-cmp/cmp"

	"codeberg.org/gpumemtop/gpumemtop/allocator"
	"codeberg.org/gpumemtop/gpumemtop/internal/cost"
	"codeberg.org/gpumemtop/gpumemtop/internal/recording"
	"codeberg.org/gpumemtop/gpumemtop/internal/replay"
	"codeberg.org/gpumemtop/gpumemtop/internal/stats"
	"codeberg.org/gpumemtop/gpumemtop/internal/testkit/exportrun"
	"codeberg.org/gpumemtop/gpumemtop/internal/testkit/randomrun"
	"codeberg.org/gpumemtop/gpumemtop/internal/testkit/records"
	"codeberg.org/gpumemtop/gpumemtop/internal/wire"
)

func played(t *testing.T) *replay.Result {
	t.Helper()
	list := exportrun.StoryRecords()
	list = append(list, exportrun.NewRecord(9500, wire.KindLost, func(r *wire.Record) { r.Size = 3 }))
	r, err := replay.Replay(&randomrun.Tape{Records: list}, replay.Options{
		Policy: "pow2", Capacity: 14 * exportrun.MiB, HoldSettings: true, Settings: []allocator.Setting{{Name: "max_cached_bytes", Value: "1073741824"}},
		Device: cost.Device{Create: cost.Line{A: 20_000, B: 0.001}, Touch: cost.Line{B: 0.25}, Release: cost.Line{A: 3000}},
	})
	if err != nil {
		t.Fatal(err)
	}
	return r
}

func TestReplayText(t *testing.T) {
	var b bytes.Buffer
	if err := WriteReplayText(&b, played(t), "fut\x1bhark", "a fast\x1bcard"); err != nil {
		t.Fatal(err)
	}
	golden.RequireEqual(t, b.Bytes())
	if err := WriteReplayText(&records.Full{}, played(t), "none", ""); err == nil || !strings.Contains(err.Error(), "no space") {
		t.Errorf("a full disk: %v", err)
	}
}

func TestReplayJSON(t *testing.T) {
	var b bytes.Buffer
	r := played(t)
	if err := WriteReplayJSON(&b, r, ""); err != nil {
		t.Fatal(err)
	}
	var got map[string]json.RawMessage
	if err := json.Unmarshal(b.Bytes(), &got); err != nil {
		t.Fatal(err)
	}
	want := strings.Fields(`bytes_allocated bytes_cached bytes_cached_before_end bytes_cooling bytes_requested capacity create_ns_simulated device
		device_cost direct driver_creates_avoided driver_creates_poolable driver_ns_simulated evictions external_fragmentation_before_end
		external_fragmentation_quadratic_before_end external_fragmentation_root_before_end failures
		hit_rate hits in_use_poolable limit_changes limit_changes_left_out limits lost_events miss_reasons misses need_blocks part_ns_simulated peak_in_use_poolable peak_reserved_poolable policy
		process_count recorded_hits recorded_misses release_ns_simulated requests rescued saved_ns_simulated slabs_before_end
		steady_hit_rate touch_ns_simulated unpooled waste_at_peak waste_poolable`)
	if diff := cmp.Diff(want, slices.Sorted(maps.Keys(got))); diff != "" {
		t.Error(diff)
	}
	for key, want := range map[string]string{"hits": "1", "recorded_hits": "1", "lost_events": "15", "capacity": "14680064", "unpooled": "2",
		"limit_changes": "1", "limit_changes_left_out": "1", "release_ns_simulated": "0"} {
		if string(got[key]) != want {
			t.Errorf("%s is %s, want %s", key, got[key], want)
		}
	}
	if err := WriteReplayJSON(&records.Full{}, r, ""); err == nil || !strings.Contains(err.Error(), "no space") {
		t.Errorf("a full disk: %v", err)
	}
}

// TestReplayMeansTheSame plays recordings through the policy that was recorded: what has the name of a key of the run's
// summary has its value.
func TestReplayMeansTheSame(t *testing.T) {
	files, err := filepath.Glob("../replay/testdata/*.gmt")
	if err != nil || len(files) < 9 {
		t.Fatalf("%d recordings, %v", len(files), err)
	}
	for _, file := range files {
		reader, err := recording.Open(file)
		if err != nil {
			t.Fatal(err)
		}
		run, replayed := asJSON(t, reader, false), asJSON(t, reader, true)
		if err := reader.Close(); err != nil {
			t.Fatal(err)
		}
		shared := 0
		for key, value := range replayed {
			want, has := run[key]
			if !has || key == "limits" { // the model was given none
				continue
			}
			shared++
			if string(value) != string(want) {
				t.Errorf("%s: %s is %s in a replay and %s in a summary", file, key, value, want)
			}
		}
		if shared < 8 {
			t.Errorf("%s: %d keys have the same name", file, shared)
		}
	}
}

// asJSON returns the summary of a recording, or of its replay through the policy that was recorded.
func asJSON(t *testing.T, reader *recording.Reader, rp bool) map[string]json.RawMessage {
	t.Helper()
	if err := reader.Rewind(); err != nil {
		t.Fatal(err)
	}
	var b bytes.Buffer
	header := reader.Header()
	if rp {
		o := replay.Options{Policy: header.Policy}
		description, _ := allocator.DescribePolicy(header.Policy)
		for _, l := range description.Limits { // some recordings have limits that their policy no longer has
			if value, there := header.Limits[l.Name]; there {
				o.Settings = append(o.Settings, allocator.Setting{Name: l.Name, Value: value})
			}
		}
		r, err := replay.Replay(reader, o)
		if err == nil {
			err = WriteReplayJSON(&b, r, "")
		}
		if err != nil {
			t.Fatal(err)
		}
	} else {
		m := stats.New(stats.Options{Policy: header.Policy})
		var record wire.Record
		for reader.Next(&record) == nil {
			m.Apply(&record)
		}
		summary := NewSummary(m.Snapshot())
		if err := summary.WriteJSON(&b); err != nil {
			t.Fatal(err)
		}
	}
	var got map[string]json.RawMessage
	if err := json.Unmarshal(b.Bytes(), &got); err != nil {
		t.Fatal(err)
	}
	for key, value := range got {
		var compact bytes.Buffer
		if err := json.Compact(&compact, value); err != nil {
			t.Fatal(err)
		}
		got[key] = compact.Bytes()
	}
	return got
}

// TestReplayTimes: creates and releases that hits spare are named, and so is what the driver took in the recording.
func TestReplayTimes(t *testing.T) {
	slow := replay.Result{
		Device: cost.Device{Create: cost.Line{A: 9000}, Release: cost.Line{A: 1000}}, CreateNS: 9000, DriverNS: 9000, SavedNS: 50e6,
		Recorded: replay.Recorded{DriverNS: 51e6},
	}
	creates := slow
	creates.Device.Release, creates.Recorded.DriverNS = cost.Line{}, 0
	vain := creates
	vain.SavedNS = 0
	for want, r := range map[string]*replay.Result{
		"~9µs in the driver (creates 9µs, releases 0s), ~50ms of creates and releases saved: simulated, by what calls usually took in the recording; as recorded with none 51ms, measured": &slow,
		"~9µs in the driver (creates 9µs, releases 0s), ~50ms of creates saved: simulated, by what calls usually took in the recording":                                                    &creates,
		"~9µs in the driver (creates 9µs, releases 0s): simulated, by what calls usually took in the recording":                                                                            &vain,
	} {
		if got := driverTimeText(r, "none", ""); got != want {
			t.Errorf("%q, want %q", got, want)
		}
	}
}

// TestReplayTextCountsWhatItRates has a request that fails and one that is met directly: neither is a hit or a miss.
func TestReplayTextCountsWhatItRates(t *testing.T) {
	r := &replay.Result{Policy: "pow2", Capacity: exportrun.MiB, Requests: 6, Hits: 3, Misses: 1, Failures: 1, Direct: 1, Switches: 2}
	var b bytes.Buffer
	if err := WriteReplayText(&b, r, "none", ""); err != nil {
		t.Fatal(err)
	}
	for _, want := range []string{"75.0 % of 4 requests", "1 request found no memory", "1 had to be met without the policy", "2 changes of the policy while"} {
		if !strings.Contains(b.String(), want) {
			t.Errorf("%q is missing in\n%s", want, b.String())
		}
	}
}
