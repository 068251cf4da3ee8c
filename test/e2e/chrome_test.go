package e2e

import (
	"bytes"
	"encoding/json"
	"math"
	"os"
	"path/filepath"
	"syscall"
	"testing"

	"golang.org/x/sys/unix"

	"codeberg.org/gpumemtop/gpumemtop/internal/report"
	"codeberg.org/gpumemtop/gpumemtop/internal/testkit/chromelint"
)

// lintFile checks a Chrome trace and returns what it says.
func lintFile(t *testing.T, file string) (chromelint.Facts, []byte) {
	t.Helper()
	text, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	facts, problems := chromelint.LintTrace(bytes.NewReader(text))
	if len(problems) > 0 {
		t.Errorf("%s: %v", filepath.Base(file), problems)
	}
	return facts, text
}

// reported is what a report says that a trace can be asked, too.
type reported struct {
	Hits, Misses uint64
	HitRate      float64              `json:"hit_rate"`
	Peak         uint64               `json:"peak_in_use"`
	Lost         uint64               `json:"lost_events"`
	Leaks        []report.LeakSummary `json:"leaks"`
}

// check recomputes the figures from a trace alone.
func (r *reported) check(t *testing.T, name string, facts chromelint.Facts) {
	t.Helper()
	var left, buffers uint64
	for _, leak := range r.Leaks {
		left, buffers = left+leak.Bytes, buffers+leak.Buffers
	}
	if uint64(facts.Hits) != r.Hits || uint64(facts.Misses) != r.Misses || facts.PeakInUse != r.Peak {
		t.Errorf("%s: the trace has %+v, the report %+v", name, facts, r)
	}
	if facts.LeakedBytes != left || uint64(facts.Leaks) != buffers || facts.Last["mem in_use"] != float64(left) {
		t.Errorf("%s: %d leaks of %d bytes and %.0f in use at the end, the report says %d of %d", name, facts.Leaks,
			facts.LeakedBytes, facts.Last["mem in_use"], buffers, left)
	}
	if r.Hits+r.Misses > 0 && math.Abs(facts.Last["hit rate % total"]-100*r.HitRate) > 0.006 {
		t.Errorf("%s: hit rate %v %%, the report says %v", name, facts.Last["hit rate % total"], r.HitRate)
	}
}

// The trace alone gives the figures of the report: the one that is made of the recording, and the one that was written
// while the program ran.
func TestTracesTellWhatReportsTell(t *testing.T) {
	t.Parallel()
	for _, policy := range []string{"none", "futhark", "slab"} {
		for _, program := range [][]string{{"train", "20"}, {"leak", "5", "64K"}, {"pipeline", "3", "256K"}, {"threads", "3", "200", "4K"}} {
			name := policy + " " + program[0]
			t.Run(name, func(t *testing.T) {
				dir := t.TempDir()
				file, live, out := filepath.Join(dir, "x.gmt"), filepath.Join(dir, "live.json"), filepath.Join(dir, "x.json")
				args := []string{gpumemtop(), "record", "--policy", policy, "-o", file, "--json", live, "--", example(program[0])}
				if result := run(t, command{args: append(args, program[1:]...)}); result.code != 0 {
					t.Fatalf("record: %s\n%s", result, result.stderr)
				}
				if result := run(t, command{args: []string{gpumemtop(), "export", "--flows", file, "-o", out}}); result.code != 0 || len(result.stderr) > 0 {
					t.Fatalf("export: %s\n%s", result, result.stderr)
				}
				var report reported
				if err := json.Unmarshal(run(t, command{args: []string{gpumemtop(), "report", "--format", "json", file}}).stdout, &report); err != nil {
					t.Fatal(err)
				}
				if report.Peak == 0 || report.Lost > 0 {
					t.Fatalf("the report is worth nothing: %+v", report)
				}
				facts, _ := lintFile(t, out)
				report.check(t, "export", facts)
				facts, _ = lintFile(t, live)
				report.check(t, "live", facts)
			})
		}
	}
}

// Compact traces of all examples take at most 150 bytes an event: of a recording, and of the trace itself.
func TestCompactTracesAreSmall(t *testing.T) {
	t.Parallel()
	for _, p := range append(examplePrograms(), program{name: "photos", args: []string{example("photos"), "72"}}) {
		if filepath.Dir(p.args[0]) != filepath.Dir(example("tiny")) {
			continue
		}
		t.Run(p.name, func(t *testing.T) {
			file := record(t, p.args...)
			var report struct{ Events int }
			if err := json.Unmarshal(run(t, command{args: []string{gpumemtop(), "report", "--format", "json", file}}).stdout, &report); err != nil {
				t.Fatal(err)
			}
			facts, text := lintFile(t, exportAs(t, file, "chrome", "--compact"))
			const each, once = 150, 4 << 10 // what the run was, and its call stacks
			if len(text) > each*report.Events || len(text) > once+each*facts.Events {
				t.Errorf("%d bytes for %d events, which are %d in the trace", len(text), report.Events, facts.Events)
			}
		})
	}
}

// awaitTrace waits until a growing trace has a call site.
func awaitTrace(t *testing.T, file, site string) {
	t.Helper()
	waitFor(t, site+" in the growing trace", func() bool {
		text, err := os.ReadFile(file)
		return err == nil && bytes.Contains(text, []byte(site))
	})
}

// A trace that is written live opens wherever gpumemtop was killed.
func TestLiveTraceSurvivesDeathOfGpumemtop(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	for i, growth := range []int64{0, 10_000, 1_000_000} {
		file := filepath.Join(dir, itoa(i)+".json")
		p := start(t, command{args: []string{gpumemtop(), "record", "--json", file, "--", example("stencil"), "1000000", "64K"}})
		target := awaitDescendant(t, p.cmd.Process.Pid, "stencil")
		waitFor(t, "the trace", func() bool {
			info, err := os.Stat(file)
			return err == nil && info.Size() > growth
		})
		if err := syscall.Kill(p.cmd.Process.Pid, syscall.SIGKILL); err != nil {
			t.Fatal(err)
		}
		// The program runs on, which another test is about, and keeps our end of its output open.
		if err := syscall.Kill(target, syscall.SIGKILL); err != nil {
			t.Fatal(err)
		}
		p.wait()
		lintFile(t, file)
	}
}

// The end of the program is in the trace as in a recording; without -o there is no recording.
func TestLiveTraceSurvivesDeathOfTheProgram(t *testing.T) {
	for _, sig := range []syscall.Signal{syscall.SIGKILL, syscall.SIGINT} {
		dir := t.TempDir()
		file := filepath.Join(dir, "x.json")
		p := start(t, command{dir: dir, args: []string{gpumemtop(), "record", "--json", file, "--", example("stencil"), "1000000", "1M"}})
		target := awaitDescendant(t, p.cmd.Process.Pid, "stencil")
		awaitTrace(t, file, "stencil.c")
		if err := syscall.Kill(target, sig); err != nil {
			t.Fatal(err)
		}
		if result := p.wait(); result.signal != sig {
			t.Errorf("ended with %s, want %s", result, sig)
		}
		facts, text := lintFile(t, file)
		if facts.Leaks > 0 || !bytes.Contains(text, []byte(`"held at exit":true`)) || !bytes.HasSuffix(text, []byte("\n]\n")) {
			t.Errorf("%d leaks, want buffers held at exit; ends with %q", facts.Leaks, text[max(0, len(text)-100):])
		}
		if files, err := os.ReadDir(dir); err != nil || len(files) != 1 {
			t.Errorf("%v, %v: want the trace alone", files, err)
		}
	}
}

// When the disk is full the trace ends whole, the recording beside it and the program go on.
func TestLiveTraceOnAFullDisk(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	file, recording := filepath.Join(dir, "x.json"), filepath.Join(dir, "x.gmt")
	p := start(t, command{args: []string{gpumemtop(), "record", "-o", recording, "--json", file, "--", example("stencil"), "1000000", "4K"}})
	target := awaitDescendant(t, p.cmd.Process.Pid, "stencil")
	awaitTrace(t, file, "stencil.c")
	// A limit for the size of its files is as good as a disk that is full; the program keeps its own.
	sizeOf := func(file string) int64 {
		info, err := os.Stat(file)
		if err != nil {
			t.Fatal(err)
		}
		return info.Size()
	}
	const room = 2 << 20
	most, recorded := sizeOf(file)+room, sizeOf(recording)
	if err := unix.Prlimit(p.cmd.Process.Pid, unix.RLIMIT_FSIZE, &unix.Rlimit{Cur: uint64(most), Max: uint64(most)}, nil); err != nil {
		t.Fatal(err)
	}
	// A recording takes a hundredth of the room of a trace.
	waitFor(t, "the recording to go on", func() bool { return sizeOf(recording) > recorded+room/32 })
	if err := syscall.Kill(target, syscall.SIGKILL); err != nil {
		t.Fatal(err)
	}
	if result := p.wait(); !contains(result.stderr, "the trace ends there, what is in "+file+" is complete") {
		t.Errorf("%s\n%s", result, result.stderr)
	}
	if facts, text := lintFile(t, file); facts.Creates == 0 || int64(len(text)) > most {
		t.Errorf("%d creates in %d bytes", facts.Creates, len(text))
	}
	checkReport(t, recording, "stencil.c")
}
