package export

import (
	"bytes"
	"encoding/json"
	"flag"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"codeberg.org/gpumemtop/gpumemtop/internal/recording"
	"codeberg.org/gpumemtop/gpumemtop/internal/testkit/chromelint"
	"codeberg.org/gpumemtop/gpumemtop/internal/testkit/exportrun"
	"codeberg.org/gpumemtop/gpumemtop/internal/testkit/records"
	"codeberg.org/gpumemtop/gpumemtop/internal/wire"
)

var update = flag.Bool("update", false, "rewrite golden files")

// tape is a source that plays a list.
type tape = records.Tape

const (
	origin = exportrun.Origin
	mib    = exportrun.MiB
)

var (
	rec, text, create, release = exportrun.NewRecord, exportrun.NewTextRecord, exportrun.NewCreate, exportrun.NewRelease
	mistake, story, misdeeds   = exportrun.NewMistake, exportrun.StoryRecords, exportrun.MisuseRecords
	fold                       = exportrun.StorySnapshot
)

func storyFacts() Facts {
	return Facts{
		Program: "/opt/app", Arguments: []string{"-n", "5"}, Policy: "futhark", Limits: recording.Limits{"max_cached_bytes": "1024"},
		Tags: "stack", ClockNS: origin, Created: time.Date(2026, 1, 2, 3, 4, 5, 0, time.UTC),
	}
}

// export writes a trace, which must be clean.
func export(t *testing.T, records []wire.Record, opts TraceOptions) (string, TraceReport, chromelint.Facts) {
	t.Helper()
	return exportPart(t, &tape{Records: records}, storyFacts(), opts)
}

func exportPart(t *testing.T, src recording.Source, facts Facts, opts TraceOptions) (string, TraceReport, chromelint.Facts) {
	t.Helper()
	var b bytes.Buffer
	report, err := WriteChrome(&b, src, facts, opts)
	if err != nil {
		t.Fatal(err)
	}
	if !json.Valid(b.Bytes()) {
		t.Errorf("no JSON:\n%s", b.String())
	}
	found, problems := chromelint.LintTrace(bytes.NewReader(b.Bytes()))
	if len(problems) > 0 {
		t.Errorf("%v in\n%s", problems, b.String())
	}
	if uint64(found.Events) != report.Events {
		t.Errorf("%d events reported, %d written", report.Events, found.Events)
	}
	return b.String(), report, found
}

func golden(t *testing.T, name, got string) {
	t.Helper()
	path := filepath.Join("testdata", name)
	if *update {
		if err := os.MkdirAll("testdata", 0o755); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(path, []byte(got), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	want, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(string(want), got); diff != "" {
		t.Error(diff)
	}
}

func TestChromeGolden(t *testing.T) {
	got, report, _ := export(t, story(), TraceOptions{})
	golden(t, "story.json", got)
	want := TraceReport{Events: report.Events, Slices: 13, Lifetimes: 8, Leaks: 2, Lost: 12}
	if diff := cmp.Diff(want, report); diff != "" {
		t.Error(diff)
	}
}

// TestChromeFacts compares what the trace alone says with what the model makes of the same records.
func TestChromeFacts(t *testing.T) {
	checkFacts(t, story())
}

func checkFacts(t *testing.T, records []wire.Record) {
	t.Helper()
	_, report, got := export(t, records, TraceOptions{})
	totals := fold(records).Totals
	want := chromelint.Facts{
		Events: got.Events, Creates: int(totals.Creates), Failed: int(totals.Failures), Hits: int(totals.Hits),
		Misses: int(totals.Misses), Lifetimes: got.Lifetimes, PeakInUse: totals.PeakInUse, Leaks: int(report.Leaks),
		LeakedBytes: totals.InUse, Last: got.Last,
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Error(diff)
	}
	for name, want := range map[string]uint64{"mem in_use": totals.InUse, "mem cached": totals.Cached, "mem cooling": totals.Cooling} {
		if got := got.Last[name]; got != float64(want) {
			t.Errorf("%s ends at %.0f, want %d", name, got, want)
		}
	}
	if rate := 100 * totals.HitRate(); totals.Hits+totals.Misses > 0 && (got.Last["hit rate % total"] < rate-0.01 || got.Last["hit rate % total"] > rate+0.01) {
		t.Errorf("hit rate ends at %v, want %v", got.Last["hit rate % total"], rate)
	}
}

func TestChromeOptions(t *testing.T) {
	for name, test := range map[string]struct {
		opts    TraceOptions
		with    []string
		without []string
	}{
		"no lifetimes": {TraceOptions{NoLifetimes: true}, []string{`"ph":"X"`, `"lifetimes":false`}, []string{`"ph":"b"`, `"ph":"e"`}},
		"tag": {
			TraceOptions{Tag: regexp.MustCompile("canny")},
			[]string{`"only_tag":"canny"`, `canny.c:88 blur`, `"in_use":7340032`, `"dropped_calls":7`},
			[]string{`"name":"size 2.0M"`, `"name":"finish"`},
		},
		"few events": {
			TraceOptions{MaxEvents: 9},
			[]string{`"dropped_calls":11`, `"dropped_lifetimes":7`, `limit max_cached`},
			[]string{`"name":"finish"`},
		},
		"small": {
			TraceOptions{MinSize: 4 * mib},
			[]string{`"min_size":4194304`, `"object":5`, `"granted":67108864`, `"name":"finish"`, `"dropped_calls":5`, `"dropped_lifetimes":4`},
			[]string{`"granted":2097152`, `"granted":1048576`},
		},
		"the largest tag": {
			TraceOptions{Lifetimes: 1},
			[]string{`"lifetimes_of_tags":1`, `"dropped_calls":0`, `"ph":"b","cat":"buf","name":"size 2.0M"`, `"name":"create subbuffer"`},
			[]string{`"ph":"b","cat":"buf","name":"canny`, `"ph":"b","cat":"sub"`, `"ph":"b","cat":"cache","name":"free 4.00M"`},
		},
		"flows": {
			TraceOptions{Flows: true},
			[]string{
				`"dur":1.500,"bind_id":"0x100000000001","flow_out":true`,
				`"id2":{"local":"0x1"},"bind_id":"0x100000000001","flow_out":true,"flow_in":true`,
				`"dur":0.500,"bind_id":"0x100000000001","flow_in":true`,
			},
			[]string{`"dur":0.500,"bind_id":"0x100000000001","flow_out"`},
		},
		"counters as they come": {TraceOptions{CountersEvery: 1}, []string{`"name":"mem","pid":4242,"tid":4242,"ts":101.000`}, nil},
	} {
		t.Run(name, func(t *testing.T) {
			got, _, _ := export(t, story(), test.opts)
			contains(t, got, test.with, test.without)
		})
	}
}

// TestChromeSlabs shows a slab from its create to its eviction, and what is free in it on the counter of the pool.
func TestChromeSlabs(t *testing.T) {
	part := create(200, 1, 2, mib, wire.OutcomeMiss, 1)
	part.Flags = wire.FlagSubAlloc
	free := release(300, 1, 2, wire.OutcomeCached)
	free.Flags = wire.FlagSubAlloc
	got, report, facts := export(t, []wire.Record{
		rec(100, wire.KindSlab, func(r *wire.Record) { r.Link, r.Granted, r.Cost = 1, 4*mib, 900 }),
		rec(110, wire.KindSlab, func(r *wire.Record) { r.Link, r.Granted, r.Status = 9, 4*mib, -4 }),
		part, free,
		rec(400, wire.KindEvict, func(r *wire.Record) { r.Link, r.Granted = 1, 4*mib }),
	}, TraceOptions{CountersEvery: 1})
	for _, want := range []string{
		`"ph":"b","cat":"slab","name":"slab 4.00M","pid":4194305,"tid":101,"ts":100.000,"id2":{"local":"0x1"},"args":{"granted":4194304}`,
		`"ph":"e","cat":"slab","name":"slab 4.00M","pid":4194305,"tid":101,"ts":400.000,"id2":{"local":"0x1"},"args":{"left":"evicted"}`,
		`"in_use":1048576,"cached":3145728,"cooling":0`, `"in_use":0,"cached":4194304,"cooling":0`,
	} {
		if !strings.Contains(got, want) {
			t.Errorf("%s is missing in\n%s", want, got)
		}
	}
	if report.Lifetimes != 2 || facts.Last["mem cached"] != 0 {
		t.Errorf("report %+v, facts %+v", report, facts)
	}
}

// The bound holds for the counters of all processes together.
func TestChromeBoundsCountersOfManyProcesses(t *testing.T) {
	const processes, most = 20, 2000
	var records []wire.Record
	for us := range uint64(20_000) {
		r := rec(us+1, wire.KindCreate, func(r *wire.Record) {
			r.Process, r.Outcome, r.Object, r.Link = uint32(1+us%processes), wire.OutcomeMiss, 1+us, 1+us
			r.Size, r.Granted = 1+us%7, 8
		})
		records = append(records, r)
	}
	got, _, _ := export(t, records, TraceOptions{MaxEvents: most, NoLifetimes: true, CountersEvery: 1})
	// A process has its name, those of its threads, and its last values on top.
	if n := strings.Count(got, "\n"); n > most+most/4+processes*10 {
		t.Errorf("%d lines, asked for %d", n, most)
	}
}
