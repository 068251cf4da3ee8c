package e2e

import (
	"bytes"
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

// figuresOf is what report says of a recording, as far as parts of it add up.
type figuresOf struct {
	Hits           uint64           `json:"hits"`
	Misses         uint64           `json:"misses"`
	DriverCreates  uint64           `json:"driver_creates"`
	DriverReleases uint64           `json:"driver_releases"`
	Requested      uint64           `json:"bytes_requested"`
	HazardsAvoided uint64           `json:"hazards_avoided"`
	InUse          uint64           `json:"in_use"`
	Cached         uint64           `json:"bytes_cached"`
	PeakInUse      uint64           `json:"peak_in_use"`
	Lost           uint64           `json:"lost_events"`
	Processes      []processFigures `json:"processes"`
}

func reportOf(t *testing.T, file string) (f figuresOf) {
	t.Helper()
	if err := json.Unmarshal(jsonReport(t, file), &f); err != nil {
		t.Fatal(err)
	}
	return f
}

// jsonReport is the report of a recording as JSON.
func jsonReport(t *testing.T, file string) []byte {
	t.Helper()
	result := run(t, command{args: []string{gpumemtop(), "report", "--format", "json", file}})
	if result.code != 0 || len(result.stderr) != 0 {
		t.Fatalf("report: %s\n%s", result, result.stderr)
	}
	return result.stdout
}

// tool runs a command of gpumemtop that writes a file, and returns the file.
func tool(t *testing.T, args ...string) string {
	t.Helper()
	out := filepath.Join(t.TempDir(), "out")
	result := run(t, command{args: append([]string{gpumemtop(), args[0], "-o", out}, args[1:]...)})
	if result.code != 0 || len(result.stdout)+len(result.stderr) != 0 {
		t.Fatalf("%s: %s\n%s", strings.Join(args, " "), result, result.stderr)
	}
	return out
}

// lines are the first and the last line that export --format ndjson writes of a recording.
type lines struct {
	Header struct {
		ClockNS uint64 `json:"clock_ns"`
		Merged  []struct {
			Program     string
			First, Last uint32
		} `json:"merged"`
	} `json:"header"`
	Footer struct {
		EndedNS uint64 `json:"ended_ns"`
		Status  int    `json:"status"`
		Message string `json:"message"`
	} `json:"footer"`
}

func linesOf(t *testing.T, file string) (l lines) {
	t.Helper()
	text, err := os.ReadFile(tool(t, "export", "--format", "ndjson", file))
	if err != nil {
		t.Fatal(err)
	}
	first, rest, _ := bytes.Cut(text, []byte("\n"))
	last := rest[bytes.LastIndexByte(bytes.TrimSpace(rest), '\n')+1:]
	for _, line := range [][]byte{first, last} {
		if err := json.Unmarshal(line, &l); err != nil {
			t.Fatalf("%v in %s", err, line)
		}
	}
	return l
}

// middle returns when a third and two thirds of the records of a recording have come, in ns after its start.
func middle(t *testing.T, file string) (a, b uint64) {
	t.Helper()
	text, err := os.ReadFile(tool(t, "export", "--format", "ndjson", file))
	if err != nil {
		t.Fatal(err)
	}
	records := bytes.Split(text, []byte("\n"))
	started := linesOf(t, file).Header.ClockNS
	var times [2]struct{ Time uint64 }
	for i := range times {
		if err := json.Unmarshal(records[len(records)*(i+1)/3], &times[i]); err != nil {
			t.Fatal(err)
		}
	}
	return times[0].Time - started, times[1].Time - started
}

// Three parts of a run together are the run: what happened adds up, what is there goes on from one to the next.
func TestTrimmedPartsAddUp(t *testing.T) {
	t.Parallel()
	for _, policy := range []string{"futhark", "slab"} {
		t.Run(policy, func(t *testing.T) {
			file := filepath.Join(t.TempDir(), "x.gmt")
			result := run(t, command{args: []string{gpumemtop(), "record", "--policy", policy, "-o", file, "--", example("train"), "40", "16K"}})
			if result.code != 0 {
				t.Fatalf("record: %s\n%s", result, result.stderr)
			}
			whole := reportOf(t, file)
			a, b := middle(t, file)
			ns := func(n uint64) string { return fmt.Sprintf("%dns", n) }
			parts := []string{
				tool(t, "trim", file, "--until", ns(a)),
				tool(t, "trim", file, "--since", ns(a+1), "--until", ns(b)),
				tool(t, "trim", file, "--since", ns(b+1)),
			}
			var sum figuresOf
			for i, part := range parts {
				f := reportOf(t, part)
				sum.Hits, sum.Misses, sum.HazardsAvoided = sum.Hits+f.Hits, sum.Misses+f.Misses, sum.HazardsAvoided+f.HazardsAvoided
				sum.DriverCreates, sum.DriverReleases = sum.DriverCreates+f.DriverCreates, sum.DriverReleases+f.DriverReleases
				sum.Requested, sum.PeakInUse = sum.Requested+f.Requested, max(sum.PeakInUse, f.PeakInUse)
				sum.InUse, sum.Cached = f.InUse, f.Cached
				end := linesOf(t, part).Footer
				if known := i == len(parts)-1; known != (end.Status == 0) || !strings.Contains(end.Message, "trimmed: ") {
					t.Errorf("part %d ends with %+v", i, end)
				}
				checkReport(t, part, "create_gradient")
			}
			whole.Processes = nil
			if diff := cmp.Diff(whole, sum); diff != "" {
				t.Errorf("(-whole +parts):\n%s", diff)
			}
			if whole.Hits == 0 {
				t.Error("nothing was pooled")
			}
		})
	}
}

// A recording that was cut off becomes a whole one, of everything up to there.
func TestTrimMakesWhole(t *testing.T) {
	t.Parallel()
	data, err := os.ReadFile(record(t, example("threads"), "2", "2000", "4K"))
	if err != nil {
		t.Fatal(err)
	}
	torn := filepath.Join(t.TempDir(), "torn.gmt")
	if err := os.WriteFile(torn, data[:len(data)*2/3], 0o644); err != nil {
		t.Fatal(err)
	}
	whole := filepath.Join(t.TempDir(), "whole.gmt")
	result := run(t, command{args: []string{gpumemtop(), "trim", torn, "-o", whole}})
	if result.code != 0 {
		t.Fatalf("trim: %s\n%s", result, result.stderr)
	}
	checkOneLine(t, result.stderr, "torn.gmt")
	want := run(t, command{args: []string{gpumemtop(), "report", "--format", "json", torn}})
	got := run(t, command{args: []string{gpumemtop(), "report", "--format", "json", whole}})
	var a, b figuresOf
	if err := json.Unmarshal(want.stdout, &a); err != nil {
		t.Fatal(err)
	}
	if err := json.Unmarshal(got.stdout, &b); err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(a, b); diff != "" || len(got.stderr) != 0 {
		t.Errorf("(-torn +whole):\n%s\n%s", diff, got.stderr)
	}
}

// Recordings of two programs become one, and one program can be taken out again.
func TestMergeOfTwoPrograms(t *testing.T) {
	t.Parallel()
	train, stencil := record(t, example("train"), "10", "16K"), record(t, example("stencil"), "20", "1M")
	both := tool(t, "merge", train, stencil)
	a, b, sum := reportOf(t, train), reportOf(t, stencil), reportOf(t, both)
	if sum.Hits != a.Hits+b.Hits || sum.Misses != a.Misses+b.Misses || sum.Requested != a.Requested+b.Requested || sum.InUse != b.InUse {
		t.Errorf("together %+v\nof %+v\nand %+v", sum, a, b)
	}
	if len(sum.Processes) != 2 || sum.PeakInUse != max(a.PeakInUse, b.PeakInUse) { // one ran after the other
		t.Errorf("together %+v", sum)
	}
	for i, o := range linesOf(t, both).Header.Merged {
		if want := []string{"train", "stencil"}[i]; filepath.Base(o.Program) != want || o.First != uint32(i+1) || o.Last != o.First {
			t.Errorf("origin %d is %+v", i, o)
		}
	}
	again := reportOf(t, tool(t, "trim", both, "--process", "stencil"))
	if diff := cmp.Diff(b, again); diff != "" {
		t.Errorf("taken out again (-before +after):\n%s", diff)
	}
	four := reportOf(t, tool(t, "merge", both, tool(t, "merge", tool(t, "trim", train), tool(t, "trim", stencil))))
	if four.Hits != 2*sum.Hits || len(four.Processes) != 4 {
		t.Errorf("merged of merged %+v", four)
	}
}

// Lines of JSON become the recording that they were made of.
func TestLinesOfJSONAndBack(t *testing.T) {
	t.Parallel()
	for _, args := range [][]string{
		{example("pipeline"), "4", "256K"},
		{"sh", "-c", `"$0" 50 4K & "$0" 60 4K 2 & wait`, example("churn")},
	} {
		file := record(t, args...)
		text := tool(t, "export", "--format", "ndjson", file)
		back := tool(t, "import", text)
		want, err := os.ReadFile(text)
		if err != nil {
			t.Fatal(err)
		}
		got, err := os.ReadFile(tool(t, "export", "--format", "ndjson", back))
		if err != nil {
			t.Fatal(err)
		}
		if !bytes.Equal(want, got) {
			t.Errorf("%s: written again the lines differ: %d bytes, then %d", args[0], len(want), len(got))
		}
		if diff := cmp.Diff(reportOf(t, file), reportOf(t, back)); diff != "" {
			t.Errorf("%s: report (-before +after):\n%s", args[0], diff)
		}
		for line := range bytes.Lines(want) {
			if !json.Valid(line) {
				t.Fatalf("no JSON: %s", line)
			}
		}
	}
}
