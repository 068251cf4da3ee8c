package e2e

import (
	"bytes"
	"encoding/json"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"

	"codeberg.org/gpumemtop/gpumemtop/internal/testkit/chromelint"
)

// awaitGrowth waits until events have reached a recording.
func awaitGrowth(t *testing.T, file string) {
	t.Helper()
	var first int64 = -1
	waitFor(t, file+" to grow", func() bool {
		info, err := os.Stat(file)
		if err != nil {
			return false
		}
		if first < 0 {
			first = info.Size()
		}
		return info.Size() > first+1024
	})
}

// checkReport demands that a recording can be read and that its report names the program.
func checkReport(t *testing.T, file string, want string) {
	t.Helper()
	result := run(t, command{args: []string{gpumemtop(), "report", "--all", file}})
	if result.code != 0 || !contains(result.stdout, want) {
		t.Errorf("report: %s, without %q:\n%s\n%s", result, want, result.stdout, result.stderr)
	}
}

func TestRecordingSurvivesDeathOfTheProgram(t *testing.T) {
	file := filepath.Join(t.TempDir(), "x.gmt")
	p := start(t, command{args: []string{gpumemtop(), "record", "-o", file, "--", example("stencil"), "1000000", "1M"}})
	target := awaitDescendant(t, p.cmd.Process.Pid, "stencil")
	awaitGrowth(t, file)
	if err := syscall.Kill(target, syscall.SIGKILL); err != nil {
		t.Fatal(err)
	}
	if result := p.wait(); result.signal != syscall.SIGKILL {
		t.Errorf("ended with %s, the program was killed", result)
	}
	checkReport(t, file, "stencil.c")
}

// When gpumemtop is killed the recording holds what was written, and the program goes on to its end as if alone.
func TestDeathOfGpumemtopHurtsNeitherRecordingNorProgram(t *testing.T) {
	t.Parallel()
	args := []string{example("stencil"), "6000", "1M"}
	bare := runBare(t, args...)
	dir := t.TempDir()
	file, out := filepath.Join(dir, "x.gmt"), filepath.Join(dir, "out")
	script := `exec "$0" record -o "$1" -- "$2" "$3" "$4" > "$5" 2>/dev/null`
	p := start(t, command{args: append([]string{"sh", "-c", script, gpumemtop(), file}, append(args, out)...)})
	target := awaitDescendant(t, p.cmd.Process.Pid, "stencil")
	awaitGrowth(t, file)
	waitFor(t, "the name of the call site in the growing recording", func() bool {
		return contains(run(t, command{args: []string{gpumemtop(), "report", "--all", file}}).stdout, "stencil.c")
	})
	if err := syscall.Kill(p.cmd.Process.Pid, syscall.SIGKILL); err != nil {
		t.Fatal(err)
	}
	p.wait()
	checkReport(t, file, "stencil.c")
	waitFor(t, "the program to end by itself", func() bool { return !alive(target) })
	if got, err := os.ReadFile(out); err != nil || !bytes.Equal(got, bare.stdout) {
		t.Errorf("alone, the program printed %q, %v; bare %q", got, err, bare.stdout)
	}
}

// record makes a recording of a program that ends by itself.
func record(t *testing.T, args ...string) string {
	t.Helper()
	file := filepath.Join(t.TempDir(), "x.gmt")
	result := run(t, command{args: append([]string{gpumemtop(), "record", "-o", file, "--"}, args...)})
	if result.code != 0 {
		t.Fatalf("record: %s\n%s", result, result.stderr)
	}
	return file
}

// With %p each process that calls OpenCL has a recording of its own, and the shell around them has none.
func TestRecordingOfEachProcess(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	script := `"$1" & first=$!; "$2" 3 1M & second=$!; echo $first $second; wait; exit 5`
	result := run(t, command{dir: dir, args: []string{
		gpumemtop(), "record", "-o", "each-%p.gmt", "--", "sh", "-c", script, "sh", example("tiny"), example("leak"),
	}})
	if result.code != 5 {
		t.Fatalf("record: %s\n%s", result, result.stderr)
	}
	line, _, _ := strings.Cut(string(result.stdout), "\n")
	for i, pid := range strings.Fields(line) {
		name := "each-" + pid + ".gmt"
		if !contains(result.stderr, name) {
			t.Errorf("%s is not named in %q", name, result.stderr)
		}
		source := []string{"tiny.c", "leak.c"}
		checkReport(t, filepath.Join(dir, name), source[i])
		report := run(t, command{args: []string{gpumemtop(), "report", "--all", filepath.Join(dir, name)}})
		if contains(report.stdout, source[1-i]) || len(report.stderr) > 0 {
			t.Errorf("%s: it has the other program's call sites, or %q", name, report.stderr)
		}
	}
	if files, err := filepath.Glob(filepath.Join(dir, "*.gmt")); len(files) != 2 {
		t.Errorf("files %q, %v", files, err)
	}
}

// A recording cut at any place is read as far as it goes, with one line about that.
func TestCutRecording(t *testing.T) {
	t.Parallel()
	whole, err := os.ReadFile(record(t, example("threads"), "2", "2000", "4K"))
	if err != nil {
		t.Fatal(err)
	}
	for _, share := range []int{1, 30, 60, 99} {
		file := filepath.Join(t.TempDir(), "cut.gmt")
		if err := os.WriteFile(file, whole[:len(whole)*share/100], 0o644); err != nil {
			t.Fatal(err)
		}
		result := run(t, command{args: []string{gpumemtop(), "report", "--all", file}})
		if result.signal != 0 || (result.code != 0 && result.code != 125) {
			t.Errorf("cut at %d %%: %s", share, result)
		}
		checkOneLine(t, result.stderr, "cut.gmt")
		if now, err := os.ReadFile(file); err != nil || len(now) != len(whole)*share/100 {
			t.Errorf("reading changed the recording: %d bytes, %v", len(now), err)
		}
	}
}

func TestReportOfAWholeRecordingIsSilentOnStderr(t *testing.T) {
	t.Parallel()
	result := run(t, command{args: []string{gpumemtop(), "report", "--all", record(t, example("leak"), "3", "1M")}})
	if result.code != 0 || len(result.stderr) != 0 {
		t.Errorf("%s, stderr %q", result, result.stderr)
	}
	for _, want := range []string{"forget_result", "create_temporary", "leak.c:"} {
		if !contains(result.stdout, want) {
			t.Errorf("report does not mention %s:\n%s", want, result.stdout)
		}
	}
}

// A stripped program still has tags: module and offset.
func TestStrippedProgramHasTags(t *testing.T) {
	t.Parallel()
	stripped := filepath.Join(t.TempDir(), "bald")
	if result := runBare(t, "strip", "-o", stripped, example("leak")); result.code != 0 {
		t.Fatalf("strip: %s", result.stderr)
	}
	checkReport(t, record(t, stripped, "3", "1M"), "bald+0x")
}

func TestChromeExport(t *testing.T) {
	t.Parallel()
	file := record(t, example("pipeline"), "4", "256K")
	out := filepath.Join(t.TempDir(), "x.json")
	result := run(t, command{args: []string{gpumemtop(), "export", file, "--format", "chrome", "-o", out}})
	if result.code != 0 {
		t.Fatalf("export: %s\n%s", result, result.stderr)
	}
	text, err := os.ReadFile(out)
	if err != nil {
		t.Fatal(err)
	}
	facts, problems := chromelint.LintTrace(bytes.NewReader(text))
	for _, problem := range problems {
		t.Errorf("%+v", problem)
	}
	// Four frames of ten buffers, all released.
	if facts.Creates != 40 || facts.Leaks != 0 {
		t.Errorf("the trace has %+v, want 40 creates and no leak", facts)
	}
	var events []json.RawMessage
	if err := json.Unmarshal(text, &events); err != nil {
		t.Fatalf("export is no JSON: %v", err)
	}
	if lines := strings.Count(string(text), "\n"); lines < len(events) {
		t.Errorf("%d lines for %d events, want one event per line", lines, len(events))
	}
	for _, site := range []string{"create_frame", "create_counts"} {
		if !contains(text, site) {
			t.Errorf("no track for %s", site)
		}
	}
}

// A million pairs from two threads: nothing lost, and gpumemtop grows with neither events nor time.
func TestMillionPairsAreRecordedInFlatMemory(t *testing.T) {
	for _, policy := range []string{"none", "futhark"} {
		t.Run(policy, func(t *testing.T) {
			few, _, _ := churn(t, policy, 100_000)
			many, result, sum := churn(t, policy, 1_000_000)
			if requests := sum.Hits + sum.Misses; requests != 1_000_000 {
				t.Errorf("%d requests in the summary", requests)
			}
			if sum.LostEvents != 0 {
				t.Errorf("%d events lost", sum.LostEvents)
			}
			if many > few+memorySlack {
				t.Errorf("memory grew from %d KiB with 0.1 to %d KiB with 1 million pairs", few, many)
			}
			t.Logf("%.2f s, %d KiB with 0.1 and %d KiB with 1 million pairs", result.wall.Seconds(), few, many)
		})
	}
}

// churn records pairs and returns the most memory that gpumemtop had, in KiB.
func churn(t *testing.T, policy string, pairs int) (int, outcome, summary) {
	t.Helper()
	dir := t.TempDir()
	file := filepath.Join(dir, "summary.json")
	p := start(t, command{dir: dir, args: []string{
		gpumemtop(), "record", "-o", "x.gmt", "--policy", policy, "--summary", file, "--",
		example("churn"), itoa(pairs), "4K", "2",
	}})
	result, most := p.waitWatching("VmHWM")
	if result.code != 0 {
		t.Errorf("churn: %s\n%s", result, result.stderr)
	}
	return most, result, readSummary(t, file)
}
