package report

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"strings"
	"testing"

	"github.com/charmbracelet/x/exp/golden"
	"github.com/google/go-cmp/cmp"

	"codeberg.org/gpumemtop/gpumemtop/internal/analysis"
	"codeberg.org/gpumemtop/gpumemtop/internal/stats"
	"codeberg.org/gpumemtop/gpumemtop/internal/testkit/exportrun"
	"codeberg.org/gpumemtop/gpumemtop/internal/testkit/records"
	"codeberg.org/gpumemtop/gpumemtop/internal/wire"
)

// fullSnapshot fills every line of a summary.
func fullSnapshot() *stats.Snapshot {
	s := exportrun.StorySnapshot(exportrun.StoryRecords())
	s.Limits = []stats.Limit{
		{Name: "max_cached_bytes", Value: 512 * exportrun.MiB, Text: "536870912", Kind: stats.LimitBytes},
		{Name: "max_waste_ratio", Value: 0.5, Text: "0.5"},
		{Name: "drain_order", Text: "oldest-first", Kind: stats.LimitChoice}, {Name: "max_age", Value: 30, Text: "30", Kind: stats.LimitSeconds},
	}
	s.Device = stats.Device{Name: "device", Driver: "1.0", Global: 8 << 30}
	s.Totals.Saved.NS = 123_456_789
	s.Recording.Path = "run.gmt"
	s.Arguments = []string{"a\nb", strings.Repeat("long ", 100), "\x1b[31m"}
	return s
}

func TestIsSummary(t *testing.T) {
	summary := NewSummary(fullSnapshot())
	for _, former := range [][]string{nil, {"slab"}} {
		summary.FormerPolicies = former
		var b bytes.Buffer
		if err := summary.WriteJSON(&b); err != nil || !IsSummary(b.Bytes()[:100]) {
			t.Errorf("%v: no summary begins\n%.100s", err, b.String())
		}
	}
	for _, other := range []string{"", "{", "{}", "{\n  \"policy\": \"slab\"\n}\n", "GMTREC", "policy = \"slab\"\n"} {
		if IsSummary([]byte(other)) {
			t.Errorf("%q is no summary", other)
		}
	}
}

// TestSummaryValues: TestKeys compares the keys.
func TestSummaryValues(t *testing.T) {
	summary := NewSummary(fullSnapshot())
	summary.Exit = Exit{Status: 3}
	var b bytes.Buffer
	if err := summary.WriteJSON(&b); err != nil {
		t.Fatal(err)
	}
	var got map[string]json.RawMessage
	if err := json.Unmarshal(b.Bytes(), &got); err != nil {
		t.Fatal(err)
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
	summary := NewSummary(&stats.Snapshot{Program: "ls", Policy: "none", Started: 5, Time: 3})
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
	if want := "gpumemtop: ls was ended by signal 11 after 0.00 s\n  no OpenCL call was seen (not watched: calls about platforms, or without a shared loader like libOpenCL.so.1; gpumemtop doctor checks drivers and devices)\n"; b.String() != want {
		t.Errorf("have %q, want %q", b.String(), want)
	}
}

// A run ends with its processes, not when the dashboard is left.
func TestSummaryTime(t *testing.T) {
	ended := stats.Process{State: stats.Exited, Started: 1e9, Ended: 102e7}
	summary := NewSummary(&stats.Snapshot{Program: "tiny", Started: 1e9, Time: 31e9, Processes: []stats.Process{ended}})
	var text, figures bytes.Buffer
	if err := errors.Join(summary.WriteText(&text), summary.WriteJSON(&figures)); err != nil {
		t.Fatal(err)
	}
	if !strings.Contains(text.String(), "after 0.02 s") || strings.Count(figures.String(), `"wall_seconds": 0.02`) != 2 {
		t.Errorf("%s%s", text.String(), figures.String())
	}
}

// What Announce says beside the summary is in its JSON, too.
func TestSummarySaysWhatIsMissing(t *testing.T) {
	var b bytes.Buffer
	s := stats.Snapshot{Unpooled: stats.Unpooled{Times: 2, Why: "no threads"}, Exceeded: []string{"3 buffers are left out"}}
	summary := NewSummary(&s)
	if err := summary.WriteJSON(&b); err != nil {
		t.Fatal(err)
	}
	for _, want := range []string{`"processes_without_pool": 2`, `"without_pool_why": "no threads"`, `"3 buffers are left out"`} {
		if !strings.Contains(b.String(), want) {
			t.Errorf("no %s in\n%s", want, b.String())
		}
	}
}

func TestSummaryNamesFormerPolicies(t *testing.T) {
	summary := NewSummary(&stats.Snapshot{Policy: "pow2", Processes: []stats.Process{{}}, Change: stats.PolicyChange{Former: []string{"futhark"}}})
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
	for want, p := range map[Exit]stats.Process{
		{Status: 7}:              {State: stats.Exited, Status: 7},
		{Status: -1}:             {State: stats.Running, Status: -1},
		{Status: -1, Signal: 9}:  {State: stats.Signaled, Status: 9},
		{Status: -1, Signal: 0}:  {State: stats.Exited, Status: -1},
		{Status: 0, Signal: 0}:   {State: stats.Exited},
		{Status: -1, Signal: 15}: {State: stats.Signaled, Status: 15},
	} {
		if got := NewSummary(&stats.Snapshot{Processes: []stats.Process{p}}).Exit; got != want {
			t.Errorf("%+v: %+v, want %+v", p, got, want)
		}
	}
}

func TestSummaryText(t *testing.T) {
	summary := NewSummary(fullSnapshot())
	summary.Exit = Exit{Status: 0}
	var b bytes.Buffer
	if err := summary.WriteText(&b); err != nil {
		t.Fatal(err)
	}
	golden.RequireEqual(t, b.Bytes())
}

// TestLostIsMarked: events that are lost make no figure of memory, and nothing that was held at the end, a fact.
func TestLostIsMarked(t *testing.T) {
	s := fullSnapshot()
	for i := range s.Processes {
		s.Processes[i].State, s.Processes[i].Status = stats.Signaled, 9
	}
	for lost, want := range map[uint64][]string{
		0: {"peak 13.0 MiB in use", "held       2 buffers (5.00 MiB) in use when a signal ended the program"},
		7: {"peak ~13.0 MiB in use", "held       2 buffers (~5.00 MiB) perhaps in use when a signal ended the program: their releases may be among the lost events"},
	} {
		s.Lost = lost
		var b bytes.Buffer
		summary := NewSummary(s)
		if err := summary.WriteText(&b); err != nil {
			t.Fatal(err)
		}
		for _, text := range want {
			if !strings.Contains(b.String(), text) {
				t.Errorf("%d lost: no %q in\n%s", lost, text, b.String())
			}
		}
	}
}

func TestLimitBeyondTheDevice(t *testing.T) {
	l := &stats.Limit{Name: "max_cached_bytes", Kind: stats.LimitBytes, Value: 4 << 30, Text: "4294967296"}
	for device, want := range map[uint64]string{0: "4.00 GiB", 8 << 30: "4.00 GiB", 2 << 30: "2.00 GiB (all of the device)"} {
		s := fullSnapshot()
		s.Device.Global = device
		v := newView(&analysis.Analysis{Snapshot: s}, Options{}, true)
		if got := v.limitValueText(l); got != want {
			t.Errorf("on %d bytes: %s, want %s", device, got, want)
		}
	}
}

func TestLimitThatTheProgramSuggests(t *testing.T) {
	v := newView(&analysis.Analysis{Snapshot: fullSnapshot()}, Options{}, true)
	for _, kind := range []stats.LimitKind{stats.LimitBytes, stats.LimitCount} {
		if got := v.limitValueText(&stats.Limit{Name: "max_part", Kind: kind, Text: "0", Zero: "auto"}); got != "auto" {
			t.Errorf("a 0 that means auto is written %s", got)
		}
	}
}

func TestSummaryTextBound(t *testing.T) {
	s := fullSnapshot()
	for i := range 50 {
		s.Tags = append(s.Tags, stats.Tag{
			Name: fmt.Sprintf("a\nb%d", i), Stack: []string{"a\nb", "b", "c", "d"}, Live: 5, InUse: 1 << 60, PeakInUse: 1 << 62,
		})
		s.Findings = append(s.Findings, stats.Finding{Kind: wire.DiagDoubleRelease, Function: "x\r\ny", Tag: "\x1b", Count: 1})
		s.Processes = append(s.Processes, stats.Process{Program: "x\ny"})
	}
	s.Processes[0].Tags, s.Processes[0].Totals.LiveBuffers = s.Tags, 250
	summary := NewSummary(s)
	var b bytes.Buffer
	if err := summary.WriteText(&b); err != nil {
		t.Fatal(err)
	}
	// Thirteen; three about the failure; leaks and mistakes; and 51 processes: a title, a head, twenty, and how many more.
	if n := strings.Count(b.String(), "\n"); n != 13+3+18+23 {
		t.Errorf("%d lines, want 57:\n%s", n, b.String())
	}
	if strings.ContainsAny(b.String(), "\x1b\r") {
		t.Errorf("control characters in %q", b.String())
	}
}

func TestSummaryLeavesTheSnapshot(t *testing.T) {
	s, same := fullSnapshot(), fullSnapshot()
	summary := NewSummary(s)
	if err := summary.WriteText(&bytes.Buffer{}); err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(same.Tags, s.Tags); diff != "" {
		t.Error(diff)
	}
}

func TestSummaryWriteErrors(t *testing.T) {
	s := fullSnapshot()
	summary := NewSummary(s)
	for name, err := range map[string]error{
		"json": summary.WriteJSON(&records.Full{}), "text": summary.WriteText(&records.Full{}),
	} {
		if err == nil || !strings.Contains(err.Error(), "no space") {
			t.Errorf("%s: %v", name, err)
		}
	}
}

// TestSummaryGauges finds what a run held at its end, and the peak of each process.
func TestSummaryGauges(t *testing.T) {
	totals := stats.Totals{InUse: 1, Cached: 7, LargestCached: 4, Cooling: 3, PeakReserved: 12}
	summary := NewSummary(&stats.Snapshot{Totals: totals, Processes: []stats.Process{{Totals: totals}}})
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

func TestMistakesText(t *testing.T) {
	s := exportrun.StorySnapshot(exportrun.MisuseRecords())
	s.Recording.Path = "run.gmt"
	summary := NewSummary(s)
	var b bytes.Buffer
	if err := summary.WriteText(&b); err != nil {
		t.Fatal(err)
	}
	golden.RequireEqual(t, b.Bytes())
}

func TestMistakesJSON(t *testing.T) {
	summary := NewSummary(exportrun.StorySnapshot(exportrun.MisuseRecords()))
	var b bytes.Buffer
	if err := summary.WriteJSON(&b); err != nil {
		t.Fatal(err)
	}
	var got struct {
		Findings []stats.Finding `json:"findings"`
		Leaks    []LeakSummary   `json:"leaks"`
	}
	if err := json.Unmarshal(b.Bytes(), &got); err != nil {
		t.Fatal(err)
	}
	if len(got.Findings) != 7 {
		t.Fatalf("%d findings in\n%s", len(got.Findings), b.String())
	}
	want := []stats.Finding{
		{Kind: wire.DiagDoubleRelease, Function: "clReleaseMemObject", Tag: `canny.c:88 blur<"x">`, Count: 3, Size: 4 * exportrun.MiB, PID: 4242, Status: -38},
		{Kind: wire.DiagStaleArgument, Function: "clEnqueueNDRangeKernel", Tag: "size 2.0M", Count: 1, Size: 4 * exportrun.MiB, Kernel: "step", PID: 4242},
		{Kind: wire.DiagStaleRead, Function: "clEnqueueReadBuffer", Tag: "size 2.0M", Count: 1, Size: 4 * exportrun.MiB, PID: 4242},
		{Kind: wire.DiagUnknownMemory, Function: "clRetainMemObject", Count: 1, PID: 4242, Status: -38},
	}
	if diff := cmp.Diff(want, got.Findings[:4]); diff != "" {
		t.Errorf("findings (-want +got):\n%s", diff)
	}
	leaked := []LeakSummary{
		{Tag: `canny.c:88 blur<"x">`, Stack: []string{"cl::Buffer::Buffer /usr/include/CL/opencl.hpp:3000", `blur<"x"> /src/canny.c:88`}, Buffers: 1, Bytes: 4 * exportrun.MiB},
		{Tag: "tag 3", Buffers: 1, Bytes: exportrun.MiB},
	}
	if diff := cmp.Diff(leaked, got.Leaks); diff != "" {
		t.Errorf("leaks (-want +got):\n%s", diff)
	}
}
