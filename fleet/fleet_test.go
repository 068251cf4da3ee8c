package main

import (
	"bytes"
	"context"
	"encoding/json"
	"flag"
	"fmt"
	"io"
	"math/rand/v2"
	"os"
	"os/exec"
	"path/filepath"
	"reflect"
	"slices"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/apache/beam/sdks/v2/go/pkg/beam"
	"github.com/apache/beam/sdks/v2/go/pkg/beam/core"
	"github.com/apache/beam/sdks/v2/go/pkg/beam/io/filesystem"
	_ "github.com/apache/beam/sdks/v2/go/pkg/beam/io/filesystem/memfs"
	beamlog "github.com/apache/beam/sdks/v2/go/pkg/beam/log"
	"github.com/apache/beam/sdks/v2/go/pkg/beam/options/jobopts"
	"github.com/apache/beam/sdks/v2/go/pkg/beam/runners"

	"codeberg.org/gpumemtop/gpumemtop/internal/analysis"
	"codeberg.org/gpumemtop/gpumemtop/internal/recording"
	"codeberg.org/gpumemtop/gpumemtop/internal/testkit/labtest"
	"codeberg.org/gpumemtop/gpumemtop/internal/tune"
	"codeberg.org/gpumemtop/gpumemtop/internal/wire"
)

// many is how many recordings TestManyRecordings plays.
var many = flag.Int("fleet.recordings", 60, "recordings that TestManyRecordings plays")

func TestMain(m *testing.M) {
	beamlog.LogLevel = "error"
	if len(os.Args) > 1 && os.Args[1] == "--worker=true" {
		if err := runWorker(); err != nil {
			exitWithError(err)
		}
		return
	}
	flag.Parse()
	beam.Init()
	os.Exit(m.Run())
}

const (
	plain    = "../bin/gpumemtop"
	examples = "../internal/replay/testdata/"
)

// ask runs a command in this process, and returns its JSON and its status.
func ask(t *testing.T, command, folder string, paths ...string) (document, int) {
	t.Helper()
	*format, *state = "json", folder
	var out bytes.Buffer
	w := work{Command: command}
	status, err := w.buildAndRunCommand(t.Context(), &out, paths)
	if err != nil {
		t.Fatal(err)
	}
	var d document
	if err := json.Unmarshal(out.Bytes(), &d); err != nil {
		t.Fatal(err)
	}
	return d, status
}

// one returns the keys of an application's result.
func one(t *testing.T, d document, at int) map[string]json.RawMessage {
	t.Helper()
	var keys map[string]json.RawMessage
	if at >= len(d.Applications) || json.Unmarshal(d.Applications[at], &keys) != nil {
		t.Fatalf("no application %d of %d", at, len(d.Applications))
	}
	return keys
}

// plainly returns the keys of what gpumemtop itself writes.
func plainly(t *testing.T, arguments ...string) map[string]json.RawMessage {
	t.Helper()
	out, err := exec.CommandContext(t.Context(), plain, append(arguments, "--format", "json")...).Output()
	var keys map[string]json.RawMessage
	if err == nil {
		err = json.Unmarshal(out, &keys)
	}
	if err != nil {
		t.Fatalf("%s %v: %v", plain, arguments, err)
	}
	return keys
}

// same compares JSON without its spaces: to the digit.
func same(t *testing.T, key string, a, b json.RawMessage) {
	t.Helper()
	var x, y bytes.Buffer
	if json.Compact(&x, a) != nil || json.Compact(&y, b) != nil || x.String() != y.String() {
		t.Errorf("%s: %.500s\nhere, %.500s\nby gpumemtop", key, a, b)
	}
}

// TestOneRecording: what gpumemtop tune finds in one recording, to the digit, and in several of one program.
func TestOneRecording(t *testing.T) {
	for _, paths := range [][]string{
		{examples + "train.futhark.gmt"},
		{examples + "staging.slab.gmt"},
		{examples + "train.futhark.gmt", examples + "train.slab.gmt", examples + "train.arena.gmt"},
	} {
		d, status := ask(t, "tune", "", paths...)
		have, want := one(t, d, 0), plainly(t, append([]string{"tune", "--budget", "1h"}, paths...)...)
		if status != 0 || len(want) < 15 {
			t.Fatalf("%v: status %d, %d keys", paths, status, len(want))
		}
		for key, value := range want {
			if key != "of" && key != "measured" && key != "compared" {
				same(t, fmt.Sprint(paths, " ", key), have[key], value)
			}
		}
	}
}

// TestTextOfLittle: a configuration that saves too little is not recommended.
func TestTextOfLittle(t *testing.T) {
	for little, want := range map[bool]string{
		false: "  recommended: --policy slab\n  0s in the driver",
		true:  "  best found: --policy slab\n  0s in the driver instead of 0s without a pool, peak 0 B instead of 0 B\n  that saves less than 1 % of the 2s that were recorded",
	} {
		found := tuned{Document: tune.Document{Little: little, RanNS: 2e9, Recommended: tune.PointDocument{ScoreDocument: tune.ScoreDocument{Policy: "slab"}}}}
		text, err := json.Marshal(&found)
		var b strings.Builder
		if err != nil || writeTunedText(&b, text) != nil || !strings.Contains(b.String(), want) {
			t.Errorf("%v: %v\n%s", little, err, &b)
		}
	}
}

// TestOneReport: what gpumemtop report and advise say of one recording.
func TestOneReport(t *testing.T) {
	path := examples + "pipeline.buckets.gmt"
	d, _ := ask(t, "report", "", path)
	have, want := one(t, d, 0), plainly(t, "report", path)
	for _, key := range []string{"hits", "misses", "hit_rate", "wall_seconds"} {
		same(t, key, have[key], want[key])
	}
	var peak spread
	if err := json.Unmarshal(have["peak_in_use"], &peak); err != nil || fmt.Sprint(peak.Median) != string(want["peak_in_use"]) || peak.Highest != path {
		t.Errorf("peak %+v, want %s", peak, want["peak_in_use"])
	}
	d, _ = ask(t, "advise", "", path)
	var ours, theirs struct {
		Programs []struct{ Advice []piece }
		Advice   []piece
	}
	text, err := json.Marshal(plainly(t, "advise", path))
	if err != nil || json.Unmarshal(text, &theirs) != nil || json.Unmarshal(d.Applications[0], &ours) != nil {
		t.Fatal(err)
	}
	if len(theirs.Programs) != 1 || len(ours.Advice) != len(theirs.Programs[0].Advice) || len(ours.Advice) == 0 {
		t.Fatalf("%d pieces of advice, want those of %+v", len(ours.Advice), theirs.Programs)
	}
	sentences := map[string]bool{}
	for _, p := range theirs.Programs[0].Advice {
		sentences[p.Sentence] = true
	}
	for _, p := range ours.Advice {
		if !sentences[p.Sentence] {
			t.Errorf("not by gpumemtop: %s", p.Sentence)
		}
	}
}

// generate writes recordings of jobs of four ranks each, of two programs. The last job of the first program has other sizes each time.
func generate(t testing.TB, folder string, n, requests int) {
	t.Helper()
	for i := range n {
		job := i / 8
		app := []string{"alpha", "beta"}[i/4%2]
		rng := rand.New(rand.NewPCG(uint64(i), 7))
		p := labtest.NewTape()
		for k := range requests {
			size := uint64(1+k%5) << 16
			switch {
			case app == "beta":
				size += rng.Uint64N(1 << 14)
			case job == n/8-1:
				size = 8<<20 + uint64(k)<<20
			}
			id := p.CreateBuffer(size, uint32(1+k%5))
			p.LastRecord().Cost = 20000 + uint32(size/16)
			p.AddRelease(id, wire.OutcomeCached).Cost = 3000
		}
		h := recording.Header{Host: "node", Program: "/opt/" + app, Policy: "none", ClockNS: 1, Created: time.Unix(1.8e9+int64(i), 0)}
		h.Job = fmt.Sprint(1000 + job)
		labtest.Write(t, filepath.Join(folder, fmt.Sprintf("%05d.gmt", i)), h, p.Records, recording.Footer{})
	}
}

func cpu() time.Duration {
	var u syscall.Rusage
	_ = syscall.Getrusage(syscall.RUSAGE_SELF, &u) // it cannot fail
	return time.Duration(u.Utime.Nano() + u.Stime.Nano())
}

// TestManyRecordings plays recordings of two programs; one file is no recording and one is cut short, and goes on where an
// earlier run was.
func TestManyRecordings(t *testing.T) {
	folder, kept := t.TempDir(), t.TempDir()
	generate(t, folder, *many, 200)
	bad, cut := filepath.Join(folder, "00000.gmt"), filepath.Join(folder, "00009.gmt")
	text, err := os.ReadFile(cut)
	if err == nil {
		err = os.WriteFile(cut, text[:len(text)*3/4], 0o600)
	}
	if err == nil {
		err = os.WriteFile(bad, []byte("none"), 0o600)
	}
	if err != nil {
		t.Fatal(err)
	}
	begun, used := time.Now(), cpu()
	first, status := ask(t, "tune", kept, folder)
	wall, took := time.Since(begun), cpu()-used
	if status != 1 || len(first.Applications) != 2 || len(first.Skipped) != 2 || first.Skipped[0].Path != bad || first.Skipped[0].Part ||
		first.Skipped[1].Path != cut || !first.Skipped[1].Part {
		t.Fatalf("status %d, %d applications, skipped %+v", status, len(first.Applications), first.Skipped)
	}
	var total, jobs int
	for i, text := range first.Applications {
		var r tuned
		if err := json.Unmarshal(text, &r); err != nil {
			t.Fatal(err)
		}
		total += r.Recordings
		jobs += len(r.Groups)
		if r.Error != "" || r.Expected <= 0 || r.Saving <= 0 || len(r.Folds) != len(r.Groups) || r.Tried < 100 {
			t.Errorf("%s: %s; %d folds of %d jobs, %d tried, saving %.0f, expected %.0f", r.Application, r.Error, len(r.Folds), len(r.Groups), r.Tried, r.Saving, r.Expected)
		}
		if last := fmt.Sprintf("job %d", 1000+*many/8-1); i == 0 && (len(r.OverFitting) != 1 || r.OverFitting[0] != last) {
			t.Errorf("%s: over-fits in %v, want %s", r.Application, r.OverFitting, last)
		}
	}
	if total != *many-1 {
		t.Errorf("%d recordings, want all but the bad one of %d", total, *many)
	}
	t.Logf("%d recordings of %d jobs: %.1f s, %.1f s of processors, %.0f recordings a second, high-water mark %s", total, jobs, wall.Seconds(),
		took.Seconds(), float64(total)/wall.Seconds(), highWater(t))

	again := progress.kept.Load()
	second, _ := ask(t, "tune", kept, folder)
	if n := progress.kept.Load() - again; n < int64(total)-1 { // the one that is cut short is read again
		t.Errorf("%d of %d by the earlier run", n, total)
	}
	if !reflect.DeepEqual(first, second) {
		t.Errorf("another result the second time")
	}
	if left, err := filepath.Glob(kept + "/runs/*/*/*"); err != nil || len(left) > 0 {
		t.Errorf("%d files of the runs alone are left: %v", len(left), err)
	}
}

// highWater returns the most memory that this process had.
func highWater(t *testing.T) string {
	t.Helper()
	text, err := os.ReadFile("/proc/self/status")
	if err != nil {
		t.Fatal(err)
	}
	_, rest, _ := strings.Cut(string(text), "VmHWM:")
	line, _, _ := strings.Cut(rest, "\n")
	return strings.TrimSpace(line)
}

// TestOtherFileSystem reads recordings, and keeps results, on one of Beam's own file systems, as on gs://.
func TestOtherFileSystem(t *testing.T) {
	text, err := os.ReadFile(examples + "train.futhark.gmt")
	if err != nil {
		t.Fatal(err)
	}
	for _, name := range []string{"a", "b"} {
		system, err := filesystem.New(t.Context(), "memfs://")
		if err == nil {
			err = filesystem.Write(t.Context(), system, "memfs://runs/"+name+".gmt", text)
		}
		if err != nil {
			t.Fatal(err)
		}
	}
	d, status := ask(t, "report", "memfs://state", "memfs://runs/*.gmt")
	var r reported
	if err := json.Unmarshal(d.Applications[0], &r); err != nil || status != 0 || r.Recordings != 1 || r.Application != "train" || len(d.Skipped) != 1 || !d.Skipped[0].Copy {
		t.Errorf("status %d, %+v, %v", status, r, err)
	}
}

// TestArguments: one line for what cannot be.
func TestArguments(t *testing.T) {
	lake := t.TempDir()
	if err := os.MkdirAll(filepath.Join(lake, "commit=2026"), 0o700); err != nil {
		t.Fatal(err)
	}
	for want, paths := range map[string][]string{
		"a lake of tables": {lake}, "no recording is there": {t.TempDir()}, "no recordings": nil, "nosuch/*.gmt: no recording": {"nosuch/*.gmt"},
	} {
		w := work{Command: "tune"}
		if _, err := w.buildAndRunCommand(context.Background(), os.Stdout, paths); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%v: %v, want %q", paths, err, want)
		}
	}
}

// TestUpkeep: a lake is compacted, and one line says what cannot be.
func TestUpkeep(t *testing.T) {
	folder := t.TempDir()
	for want, arguments := range map[string][]string{
		"want one lake, not 0": {"compact"}, "want one lake, not 2": {"files", "a", "b"}, "how old? --older-than 30d": {"expire", "a"},
		`bad value "30" for --older-than`: {"expire", "a", "--older-than", "30"}, `bad value "-1h"`: {"expire", "--older-than=-1h", "a"},
		"not defined: -older-than": {"compact", "--older-than", "3d", "a"}, "no such file": {"compact", "nosuch"},
	} {
		if _, err := runCommand(arguments); err == nil || !strings.Contains(err.Error(), want) || strings.Contains(err.Error(), "\n") {
			t.Errorf("%v: %v, want %q", arguments, err, want)
		}
	}
	for _, arguments := range [][]string{{"compact", folder}, {"files", folder}, {"expire", folder, "--older-than", "30d"}} {
		if status, err := runCommand(arguments); status != 0 || err != nil {
			t.Errorf("%v: %d, %v", arguments, status, err)
		}
	}
}

// TestCompareBuilds: three runs of a build that creates larger buffers are more than three of the build before.
func TestCompareBuilds(t *testing.T) {
	folder := t.TempDir()
	lake := filepath.Join(folder, "lake")
	for i, size := range []string{"64K", "64K", "64K", "256K", "256K", "256K"} {
		file := filepath.Join(folder, strconv.Itoa(i)+".gmt")
		for _, arguments := range [][]string{
			{"record", "-o", file, "--", "../bin/examples/stencil", "20", size}, {"export", "--lake", "--format", "parquet", "-o", lake, file},
		} {
			command := exec.CommandContext(t.Context(), plain, arguments...)
			command.Env = append(os.Environ(), "GIT_COMMIT=revision"+size)
			if out, err := command.CombinedOutput(); err != nil {
				t.Fatalf("%v: %v\n%s", arguments, err, out)
			}
		}
	}
	for _, test := range []struct {
		flags  []string
		status int
		want   string
	}{
		{nil, 1, "stencil: 3 runs of revision256K against 3 runs of revision64K\n"},
		{[]string{"--base", "revision256K", "--head", "revision64K"}, 0, "0 figures are more than before"},
		{[]string{"--format", "junit"}, 1, `<testsuite name="stencil"`},
		{[]string{"--format", "json"}, 1, `"figure": "peak in use"`},
	} {
		var out bytes.Buffer
		if status, err := compareBuilds(&out, append(test.flags, lake)); err != nil || status != test.status || !strings.Contains(out.String(), test.want) {
			t.Errorf("%v: %d, %v\n%s", test.flags, status, err, &out)
		}
	}
	for want, arguments := range map[string][]string{
		"want one lake, not 0": {}, "unknown format \"xml\"": {"--format", "xml", lake}, "no run has the revision or build x: the latest are revision256K": {lake, "--head", "x"},
	} {
		if _, err := compareBuilds(io.Discard, arguments); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%v: %v, want %q", arguments, err, want)
		}
	}
}

// TestRunners: what can run nowhere is refused, and workers run this program, not one that is compiled from its source.
func TestRunners(t *testing.T) {
	runner, binary, kept, endpoint := *runners.Runner, *jobopts.WorkerBinary, *state, *jobopts.Endpoint
	defer func() {
		*runners.Runner, *jobopts.WorkerBinary, *state, *jobopts.Endpoint = runner, binary, kept, endpoint
	}()
	for name, want := range map[string]string{"nosuch": `unknown runner "nosuch"`, "dot": "unknown runner", "flink": "--runner flink needs --state"} {
		*runners.Runner, *state = name, ""
		if err := new(work).readFlags(); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%s: %v", name, err)
		}
	}
	*state, *jobopts.WorkerBinary = t.TempDir(), ""
	for _, *runners.Runner = range []string{"flink", "spark", "universal", "dataflow"} {
		self, err := os.Executable()
		if err != nil {
			t.Fatal(err)
		}
		if err := new(work).readFlags(); err != nil || *jobopts.WorkerBinary != self {
			t.Errorf("%s: workers run %q, %v", *runners.Runner, *jobopts.WorkerBinary, err)
		}
	}
	if text, err := os.ReadFile("../docs/FLEET.md"); err != nil || !bytes.Contains(text, []byte(core.DefaultDockerImage+" --worker_pool")) {
		t.Errorf("docs/FLEET.md does not name the image %s: %v", core.DefaultDockerImage, err)
	}
	folder := t.TempDir()
	generate(t, folder, 1, 10)
	*runners.Runner, *jobopts.Endpoint = "flink", "" // Prism leaves its own
	if _, err := (&work{Command: "report"}).buildAndRunCommand(context.Background(), os.Stdout, []string{folder}); err == nil || !strings.Contains(err.Error(), "--endpoint") {
		t.Errorf("flink without an endpoint: %v", err)
	}
}

// TestScouts: the largest of each job first, and not more bytes than fit into memory.
func TestScouts(t *testing.T) {
	list := []*entry{{Index: 0, Job: "1", Size: 5}, {Index: 1, Job: "1", Size: 9}, {Index: 2, Job: "2", Size: 1}, {Index: 3, Path: "x", Size: 2}}
	have := ""
	for _, e := range pickRepresentatives(list, 3) {
		have += fmt.Sprint(e.Index)
	}
	if have != "123" {
		t.Errorf("scouts %s, want 1, 2 and 3: one of each job", have)
	}
	if got := pickRepresentatives([]*entry{{Size: scoutBytes + 1}, {Size: scoutBytes}}, 8); len(got) != 1 {
		t.Errorf("%d scouts, want one, however large", len(got))
	}
	if groups, byJob := countGroupsOfRecordings(list); groups != 3 || !byJob {
		t.Errorf("%d groups by job %t, want 3", groups, byJob)
	}
	if groups, byJob := countGroupsOfRecordings(list[:2]); groups != 2 || byJob {
		t.Errorf("%d groups by job %t, want the recordings of the only job", groups, byJob)
	}
	names := map[string]bool{}
	for i := range 20_000 {
		names[groupOfRecording(&entry{Job: fmt.Sprint(i)}, 20_000, true)] = true
	}
	if len(names) != groupsMost {
		t.Errorf("%d groups of 20,000 jobs, want %d", len(names), groupsMost)
	}
}

// TestSharedNamesTheFirst: what recordings share names the first of them, and counts each once.
func TestSharedNamesTheFirst(t *testing.T) {
	leak := analysis.Leak{Name: "a.c:1 f", Buffers: 2, Bytes: 64}
	r := newReported("app")
	r.addRecording(&entry{Path: "1.gmt"}, &outcome{})
	r.addRecording(&entry{Path: "2.gmt", Job: "1"}, &outcome{Leaks: []analysis.Leak{leak, leak}})
	r.addRecording(&entry{Path: "3.gmt", Job: "1"}, &outcome{Leaks: []analysis.Leak{leak}})
	r.computeFigures()
	if r.Recordings != 3 || r.Jobs != 2 {
		t.Errorf("%d recordings of %d jobs, want 3 of 2", r.Recordings, r.Jobs)
	}
	got := r.Shared
	if len(got) != 1 || got[0].Path != "2.gmt" || got[0].Recordings != 2 || got[0].Count != 6 || got[0].Bytes != 192 {
		t.Errorf("%+v", got)
	}
}

// TestTitlesAreAlike: what recordings show in different numbers is one finding.
func TestTitlesAreAlike(t *testing.T) {
	r := newReported("app")
	for i, title := range []string{"1 buffer never released", "23 buffers never released", "1 SVM allocation never released", "2 SVM allocations never released",
		"create of a buffer of 512.0 MiB failed", "create of a buffer of 4 B failed", "a.c:1 f hits 5.4 %", "a.c:1 f hits 99 %", "pow2 makes no sub-allocations"} {
		r.addRecording(&entry{Path: fmt.Sprint(i)}, &outcome{Diagnoses: []analysis.Diagnosis{{Title: title, Tag: "a.c:1 f"}}})
	}
	want := []string{"N buffers never released 2", "N SVM allocations never released 2", "create of a buffer of N failed 2", "a.c:1 f hits N 2", "pow2 makes no sub-allocations 1"}
	var got []string
	for _, s := range r.Shared {
		got = append(got, fmt.Sprint(s.What, " ", s.Recordings))
	}
	if !slices.Equal(got, want) {
		t.Errorf("%q, want %q", got, want)
	}
}
