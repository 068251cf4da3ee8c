package e2e

import (
	"bytes"
	"cmp"
	"encoding/json"
	"errors"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/parquet-go/parquet-go"
	"golang.org/x/sys/unix"

	"codeberg.org/gpumemtop/gpumemtop/internal/report"
)

// What a program held when a signal ended it is no leak: live, and in its recording.
func TestHeldAtExit(t *testing.T) {
	t.Parallel()
	for _, how := range []string{"killed", "aborted"} {
		file, live := filepath.Join(t.TempDir(), "run.gmt"), filepath.Join(t.TempDir(), "live.json")
		r := run(t, command{args: []string{gpumemtop(), "record", "-o", file, "--json", live, fault("shortage"), how}})
		const page = "verdict    killed while it held memory: " // and who did it, as far as the control group shows
		if contains(r.stderr, page) != (how == "killed") || how == "killed" && !contains(r.stderr, "held by    4.00 MiB in 1 buffer") {
			t.Errorf("%s: not one page of SIGKILL:\n%s", how, r.stderr)
		}
		trace := exportAs(t, file, "chrome")
		if _, events := lintFile(t, trace); contains(events, `"killed while it held 4.00 MiB"`) != (how == "killed") {
			t.Errorf("%s: the Chrome trace", how)
		}
		if !contains(r.stderr, "held       1 buffer (4.00 MiB) in use when a signal ended the program") || contains(r.stderr, "leaked") {
			t.Errorf("%s:\n%s", how, r.stderr)
		}
		result := run(t, command{args: []string{gpumemtop(), "report", "--all", file}})
		if contains(result.stdout, "KILLED WHILE IT HELD MEMORY") != (how == "killed") {
			t.Errorf("%s:\n%s", how, result.stdout)
		}
		if !contains(result.stdout, "HELD AT EXIT") || contains(result.stdout, "never released") {
			t.Errorf("%s:\n%s", how, result.stdout)
		}
		tracedAs(t, live, "held at exit")
		exportedAs(t, file, "held at exit")
	}
}

// What a child held when SIGKILL ended it is no leak, ended no program that goes on, and is not in use at the end.
func TestHeldByAChild(t *testing.T) {
	t.Parallel()
	words, file := fault("shortage")+" killed; "+example("train")+" 5", filepath.Join(t.TempDir(), "run.gmt")
	r := run(t, command{args: []string{gpumemtop(), "record", "-o", file, "sh", "-c", words}})
	for _, want := range []string{"held       1 buffer (4.00 MiB) in use when a signal or _exit ended their process, all in pid", "at the end nothing in use"} {
		if !contains(r.stderr, want) || contains(r.stderr, "leaked") {
			t.Errorf("no %q:\n%s", want, r.stderr)
		}
	}
	exportedAs(t, file, "held at exit")
}

// What a child holds that outlives the program is no leak, whether the program made OpenCL calls or not.
func TestHeldByAChildThatGoesOn(t *testing.T) {
	t.Parallel()
	for last, whose := range map[string]string{":": "", `exec "$3" 5`: ", all in pid "} {
		dir := t.TempDir()
		in, out, file := filepath.Join(dir, "in"), filepath.Join(dir, "out"), filepath.Join(dir, "run.gmt")
		if err := errors.Join(unix.Mkfifo(in, 0o600), unix.Mkfifo(out, 0o600)); err != nil {
			t.Fatal(err)
		}
		lines, err := os.OpenFile(in, os.O_RDWR, 0) // which does not wait
		if err != nil {
			t.Fatal(err)
		}
		if _, err := lines.WriteString("create 4\n"); err != nil {
			t.Fatal(err)
		}
		words := []string{"sh", "-c", `"$0" <"$1" >"$2" 2>/dev/null & read line <"$2"; ` + last, fault("steered"), in, out, example("train")}
		r := run(t, command{args: append([]string{gpumemtop(), "record", "-o", file}, words...)})
		_ = lines.Close() // the child ends
		for _, want := range []string{"held       1 buffer (4.00 MiB) in use when the program ended, and their process goes on" + whose, "at the end 4.00 MiB in use"} {
			if !contains(r.stderr, want) || contains(r.stderr, "leaked") {
				t.Errorf("%s: no %q:\n%s", last, want, r.stderr)
			}
		}
		child := slices.MaxFunc(reportOf(t, file).Processes, func(a, b processFigures) int { return cmp.Compare(a.InUse, b.InUse) })
		for _, flags := range [][]string{nil, {"--process", itoa(child.PID)}, {"--until", "1h"}} {
			result := run(t, command{args: slices.Concat([]string{gpumemtop(), "report", "--all", file}, flags)})
			if !contains(result.stdout, "HELD AT EXIT") || contains(result.stdout, "never released") {
				t.Errorf("%s %s: %s\n%s%s", last, flags, result, result.stdout, result.stderr)
			}
		}
		exportedAs(t, file, "cut")
	}
}

// exportedAs checks that exports of a recording have a word for how its one buffer left ended, and that none calls it a leak.
func exportedAs(t *testing.T, file, ending string) {
	t.Helper()
	tracedAs(t, exportAs(t, file, "chrome"), ending)
	table, err := os.ReadFile(exportAs(t, file, "csv"))
	if err != nil || !contains(table, ","+ending+",false,buffer,") || contains(table, ",leaked,true,") {
		t.Errorf("CSV: %v\n%s", err, table)
	}
	lake := filepath.Join(t.TempDir(), "lake")
	run(t, command{args: []string{gpumemtop(), "export", "--lake", "--format", "parquet", "-o", lake, file}})
	names, _ := filepath.Glob(filepath.Join(lake, "*", "runs.parquet"))
	type row struct {
		InUse  int64 `parquet:"in_use"`
		Leaked int64 `parquet:"leaked"`
	}
	rows, err := parquet.ReadFile[row](strings.Join(names, ""))
	if err != nil || !slices.Contains(rows, row{InUse: 4 << 20}) || slices.ContainsFunc(rows, func(r row) bool { return r.Leaked > 0 }) {
		t.Errorf("lake: %v %+v", err, rows)
	}
	type leaks struct {
		Count int64 `parquet:"leaks"`
	}
	names, _ = filepath.Glob(filepath.Join(lake, "*", "sites.parquet"))
	sites, err := parquet.ReadFile[leaks](strings.Join(names, ""))
	if err != nil || slices.ContainsFunc(sites, func(s leaks) bool { return s.Count > 0 }) {
		t.Errorf("lake: %v %+v", err, sites)
	}
}

// What a program held when it gave up for lack of memory is no leak either.
func TestHeldWhenItGaveUp(t *testing.T) {
	t.Parallel()
	r := run(t, command{args: []string{gpumemtop(), "--headless", "--device-memory", "600K", example("pipeline"), "40", "256K"}})
	if r.code != 1 || !contains(r.stderr, "held       2 buffers (512.0 KiB) in use when a failed call ended the program") || contains(r.stderr, "leaked") {
		t.Errorf("ended with %s\n%s", r, r.stderr)
	}
}

// A call that fails for lack of memory gets a page on stderr, which a recording of the run shows again; a program that
// nearly fills the device gets none.
func TestPostMortem(t *testing.T) {
	t.Parallel()
	for _, test := range []struct {
		how, policy, memory, verdict string
		status                       int32
	}{
		{"large", "futhark", "16M", "larger_than_one_buffer_may_be", -61},
		{"full", "futhark", "16M", "full", -4},
		{"room", "futhark", "", "probably_not_memory", -6},
		{"pieces", "slab", "512M", "fragmented", -4},
		{"nearly", "futhark", "16M", "", 0},
	} {
		t.Run(test.how, func(t *testing.T) {
			t.Parallel()
			file := filepath.Join(t.TempDir(), "run.gmt")
			args := []string{gpumemtop(), "record", "-o", file, "--policy", test.policy}
			if test.memory != "" {
				args = append(args, "--device-memory", test.memory)
			}
			r := run(t, command{args: append(args, fault("shortage"), test.how)})
			if r.code != 0 {
				t.Fatalf("ended with %s\n%s", r, r.stderr)
			}
			page, _, _ := strings.Cut(string(r.stderr), "\ngpumemtop: "+fault("shortage"))
			if n := strings.Count(page, "\n"); n > 15 {
				t.Errorf("the page has %d lines:\n%s", n, page)
			}
			var figures summary
			result := run(t, command{args: []string{gpumemtop(), "report", "--format", "json", file}})
			if err := json.Unmarshal(result.stdout, &figures); err != nil {
				t.Fatal(err)
			}
			trace := filepath.Join(t.TempDir(), "trace.json")
			run(t, command{args: []string{gpumemtop(), "export", "--format", "chrome", "-o", trace, file}})
			events, err := os.ReadFile(trace)
			if err != nil {
				t.Fatal(err)
			}
			if drawn := contains(events, `"cat":"failure"`); drawn != (test.verdict != "") {
				t.Errorf("the trace shows a failure: %v", drawn)
			}
			if test.verdict == "" {
				if len(figures.OutOfMemory) != 0 || contains(r.stderr, "verdict") {
					t.Errorf("a false alarm: %+v\n%s", figures.OutOfMemory, r.stderr)
				}
				return
			}
			if len(figures.OutOfMemory) != 1 {
				t.Fatalf("there are %+v\n%s", figures.OutOfMemory, r.stderr)
			}
			got := figures.OutOfMemory[0]
			if got.Verdict != test.verdict || int32(got.Status) != test.status || !strings.Contains(got.Tag, "shortage.c") || !strings.Contains(page, got.Why) {
				t.Errorf("got %+v, want %+v\n%s", got, test, r.stderr)
			}
		})
	}
}

// The first finding is a create that failed unchecked; it has what failed after it, and how the program ended.
func TestUncheckedFailure(t *testing.T) {
	t.Parallel()
	for how, status := range map[string]int{"unchecked": 3, "full": 0} {
		file := filepath.Join(t.TempDir(), "run.gmt")
		r := run(t, command{args: []string{gpumemtop(), "record", "-o", file, "--device-memory", "16M", fault("shortage"), how}})
		if r.code != status {
			t.Fatalf("%s: ended with %s\n%s", how, r, r.stderr)
		}
		var found struct {
			Diagnoses   []struct{ Severity, Title, Text string }
			FailedCalls []report.FailedCall `json:"failed_calls"`
		}
		readJSON(t, tool(t, "report", "--format", "json", file), &found)
		first := found.Diagnoses[0]
		if first.Severity != "problem" || !strings.Contains(first.Title, "create of a buffer of 1.00 MiB at shortage.c:") {
			t.Errorf("%s: %+v", how, first)
		}
		then := regexp.MustCompile(`; [0-9.]+[µm]?s later clEnqueueFillBuffer at shortage\.c:\d+ fill_what_is_missing failed with CL_INVALID_MEM_OBJECT \(-38\) \(3 times\); the process exited with status 3 within [0-9.]+[µm]?s`)
		if says := then.MatchString(first.Text); says != (status == 3) || contains(r.stderr, " later clEnqueueFillBuffer at shortage.c:") != says {
			t.Errorf("%s: %q\n%s", how, first.Text, r.stderr)
		}
		calls := 1
		if status == 3 {
			calls = 2
		}
		if len(found.FailedCalls) != calls || *found.FailedCalls[0].Size != 1<<20 || found.FailedCalls[calls-1].Size != nil != (calls == 1) {
			t.Errorf("%s: %+v", how, found.FailedCalls)
		}
	}
}

// Creates that failed add up with those that worked, in the summary and in the report of its recording, which also agree about how
// long the run took: until the shell ended that started the program.
func TestFailedCreates(t *testing.T) {
	t.Parallel()
	folder := t.TempDir()
	file, figures := filepath.Join(folder, "run.gmt"), filepath.Join(folder, "run.json")
	r := run(t, command{args: []string{
		gpumemtop(), "record", "-o", file, "--summary", figures, "--device-memory", "16M",
		"/bin/sh", "-c", fault("shortage") + " full && sleep 1",
	}})
	if r.code != 0 || !contains(r.stderr, "  creates    17, 1 of them failed: 1 with CL_MEM_OBJECT_ALLOCATION_FAILURE (-4)\n") {
		t.Fatalf("ended with %s\n%s", r, r.stderr)
	}
	text := run(t, command{args: []string{gpumemtop(), "report", "--all", file}})
	if !contains(text.stdout, "17 (1 of them failed, 0 never eligible), 16 releases\n") {
		t.Errorf("%s", text.stdout)
	}
	var live, recorded struct {
		WallSeconds float64             `json:"wall_seconds"`
		FailedWith  []report.FailedWith `json:"failed_with"`
	}
	written, err := os.ReadFile(figures)
	result := run(t, command{args: []string{gpumemtop(), "report", "--format", "json", file}})
	if err := errors.Join(err, json.Unmarshal(written, &live), json.Unmarshal(result.stdout, &recorded)); err != nil {
		t.Fatal(err)
	}
	if want := []report.FailedWith{{Status: -4, Name: "CL_MEM_OBJECT_ALLOCATION_FAILURE", Count: 1}}; !slices.Equal(live.FailedWith, want) || !slices.Equal(recorded.FailedWith, want) {
		t.Errorf("live %+v, recorded %+v", live.FailedWith, recorded.FailedWith)
	}
	if live.WallSeconds != recorded.WallSeconds || live.WallSeconds < 1 {
		t.Errorf("live %v s, recorded %v s", live.WallSeconds, recorded.WallSeconds)
	}
}

// tracedAs checks the same of a Chrome trace.
func tracedAs(t *testing.T, trace, ending string) {
	t.Helper()
	facts, events := lintFile(t, trace)
	if facts.Leaks > 0 || bytes.Count(events, []byte(`"`+ending+`":true`)) != 1 {
		t.Errorf("Chrome: %d leaks\n%s", facts.Leaks, events)
	}
}
