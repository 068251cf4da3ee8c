package export

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"codeberg.org/gpumemtop/gpumemtop/internal/model"
	"codeberg.org/gpumemtop/gpumemtop/internal/wire"
)

// full fills every line of a summary.
func full() *model.Snapshot {
	s := fold(story())
	s.Limits = []model.Limit{
		{Name: "max_cached_bytes", Value: 512 * mib, Text: "536870912", Kind: model.LimitBytes},
		{Name: "max_waste_ratio", Value: 0.5, Text: "0.5"},
		{Name: "drain_order", Text: "oldest-first", Kind: model.LimitChoice}, {Name: "max_age", Value: 30, Text: "30", Kind: model.LimitSeconds},
	}
	s.Device = model.Device{Name: "device", Driver: "1.0", Global: 8 << 30}
	s.Totals.SavedNS = 123_456_789
	s.Recording.Path = "run.gmt"
	s.Arguments = []string{"a\nb", strings.Repeat("long ", 100), "\x1b[31m"}
	return s
}

func TestSummaryKeys(t *testing.T) {
	summary := NewSummary(full())
	summary.Exit = Exit{Status: 3}
	var b bytes.Buffer
	if err := summary.WriteJSON(&b); err != nil {
		t.Fatal(err)
	}
	var got map[string]json.RawMessage
	if err := json.Unmarshal(b.Bytes(), &got); err != nil {
		t.Fatal(err)
	}
	want := strings.Fields(`bytes_allocated bytes_cached bytes_cooling bytes_requested driver_creates driver_releases events exit
		external_fragmentation external_fragmentation_quadratic external_fragmentation_root findings hazards_avoided hit_rate hits in_use largest_cached leaks limits lost_events miss_reasons misses
		other_findings peak_cached peak_cooling peak_in_use peak_requested peak_reserved peak_slabs per_bucket per_class per_tag policy
		processes slab_bytes slabs steady_hit_rate wall_seconds waste`)
	if diff := cmp.Diff(want, slices.Sorted(maps.Keys(got))); diff != "" {
		t.Error(diff)
	}
	for key, want := range map[string]string{
		"exit": `{"status":3,"signal":0}`, "hits": "1", "misses": "3", "hit_rate": "0.25", "lost_events": "12",
		"limits": `{"drain_order":"oldest-first","max_age":30,"max_cached_bytes":536870912,"max_waste_ratio":0.5}`, "wall_seconds": "0.009",
		"miss_reasons": `{"cold":3,"cooling":0,"drained":0,"limit":0,"other_class":0,"policy":0,"tag_cap":0,"too_small":0,"too_wasteful":0}`,
	} {
		var b bytes.Buffer
		if err := json.Compact(&b, got[key]); err != nil || b.String() != want {
			t.Errorf("%s is %s (%v), want %s", key, b.String(), err, want)
		}
	}
}

func TestSummaryEmpty(t *testing.T) {
	summary := NewSummary(&model.Snapshot{Program: "ls", Policy: "none", Started: 5, Time: 3})
	summary.Exit = Exit{Signal: 11}
	var b bytes.Buffer
	if err := summary.WriteJSON(&b); err != nil {
		t.Fatal(err)
	}
	if strings.Contains(b.String(), "null") {
		t.Errorf("empty lists are null:\n%s", b.String())
	}
	b.Reset()
	if err := summary.WriteText(&b); err != nil {
		t.Fatal(err)
	}
	if want := "gpumemtop: ls was ended by signal 11 after 0.00 s\n  no OpenCL call was seen\n"; b.String() != want {
		t.Errorf("have %q, want %q", b.String(), want)
	}
}

func TestSummaryNamesFormerPolicies(t *testing.T) {
	summary := NewSummary(&model.Snapshot{Policy: "pow2", Processes: []model.Process{{}}, Change: model.PolicyChange{Former: []string{"futhark"}}})
	var b bytes.Buffer
	if err := summary.WriteJSON(&b); err != nil {
		t.Fatal(err)
	}
	if err := summary.WriteText(&b); err != nil {
		t.Fatal(err)
	}
	for _, want := range []string{`"policy": "pow2"`, `"former_policies": [`, "pow2 (before that futhark)"} {
		if !strings.Contains(b.String(), want) {
			t.Errorf("no %s in\n%s", want, b.String())
		}
	}
}

func TestSummaryExit(t *testing.T) {
	for want, p := range map[Exit]model.Process{
		{Status: 7}:              {State: model.Exited, Status: 7},
		{Status: -1}:             {State: model.Running, Status: -1},
		{Status: -1, Signal: 9}:  {State: model.Signaled, Status: 9},
		{Status: -1, Signal: 0}:  {State: model.Exited, Status: -1},
		{Status: 0, Signal: 0}:   {State: model.Exited},
		{Status: -1, Signal: 15}: {State: model.Signaled, Status: 15},
	} {
		if got := NewSummary(&model.Snapshot{Processes: []model.Process{p}}).Exit; got != want {
			t.Errorf("%+v: %+v, want %+v", p, got, want)
		}
	}
}

func TestSummaryText(t *testing.T) {
	summary := NewSummary(full())
	summary.Exit = Exit{Status: 0}
	var b bytes.Buffer
	if err := summary.WriteText(&b); err != nil {
		t.Fatal(err)
	}
	golden(t, "summary.txt", b.String())
}

func TestSummaryTextBound(t *testing.T) {
	s := full()
	for i := range 50 {
		s.Tags = append(s.Tags, model.Tag{
			Name: fmt.Sprintf("a\nb%d", i), Stack: []string{"a\nb", "b", "c", "d"}, Live: 5, InUse: 1 << 60, PeakInUse: 1 << 62,
		})
		s.Findings = append(s.Findings, model.Finding{Kind: wire.DiagDoubleRelease, Function: "x\r\ny", Tag: "\x1b", Count: 1})
		s.Processes = append(s.Processes, model.Process{Program: "x\ny"})
	}
	summary := NewSummary(s)
	var b bytes.Buffer
	if err := summary.WriteText(&b); err != nil {
		t.Fatal(err)
	}
	// Twelve; leaks and mistakes; and 51 processes: a title, a head, twenty, and how many more.
	if n := strings.Count(b.String(), "\n"); n != 12+18+23 {
		t.Errorf("%d lines, want 53:\n%s", n, b.String())
	}
	if strings.ContainsAny(b.String(), "\x1b\r") {
		t.Errorf("control characters in %q", b.String())
	}
}

func TestSummaryLeavesTheSnapshot(t *testing.T) {
	s, same := full(), full()
	summary := NewSummary(s)
	if err := summary.WriteText(&bytes.Buffer{}); err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(same.Tags, s.Tags); diff != "" {
		t.Error(diff)
	}
}

// fullDisk takes nothing.
type fullDisk struct{}

func (fullDisk) Write([]byte) (int, error) { return 0, errors.New("no space") }

func TestWriteErrors(t *testing.T) {
	s := full()
	summary := NewSummary(s)
	_, chrome := Chrome(fullDisk{}, &tape{records: story()}, storyFacts(), ChromeOptions{})
	for name, err := range map[string]error{
		"chrome": chrome, "json": summary.WriteJSON(fullDisk{}), "text": summary.WriteText(fullDisk{}),
	} {
		if err == nil || !strings.Contains(err.Error(), "no space") {
			t.Errorf("%s: %v", name, err)
		}
	}
}

// TestSummaryGauges finds what a run held at its end, and the peak of each process.
func TestSummaryGauges(t *testing.T) {
	totals := model.Totals{InUse: 1, Cached: 7, LargestCached: 4, Cooling: 3, PeakReserved: 12}
	summary := NewSummary(&model.Snapshot{Totals: totals, Processes: []model.Process{{Totals: totals}}})
	var b bytes.Buffer
	if err := summary.WriteJSON(&b); err != nil {
		t.Fatal(err)
	}
	type gauges struct {
		InUse        uint64 `json:"in_use"`
		BytesCached  uint64 `json:"bytes_cached"`
		Largest      uint64 `json:"largest_cached"`
		BytesCooling uint64 `json:"bytes_cooling"`
		PeakReserved uint64 `json:"peak_reserved"`
	}
	var got struct {
		gauges
		Processes []gauges `json:"processes"`
	}
	if err := json.Unmarshal(b.Bytes(), &got); err != nil {
		t.Fatal(err)
	}
	want, process := gauges{1, 7, 4, 3, 12}, gauges{1, 7, 0, 3, 12}
	if got.gauges != want || len(got.Processes) != 1 || got.Processes[0] != process {
		t.Errorf("%+v, want %+v and %+v", got, want, process)
	}
}
