package e2e

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

// Ten thousand new call sites at once: no event is lost, and each site gets its name, which here is the same for all.
func TestBurstOfCallSites(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	recorded := filepath.Join(dir, "run.gmt")
	for name, args := range map[string][]string{
		"live": {"--headless"}, "recording": {"record", "-o", recorded}, "watching": {"--headless", "--policy", "none"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			file := filepath.Join(dir, name+".json")
			words := append(append([]string{gpumemtop()}, args...), "-f", "--summary", file, fault("sites"))
			retry(t, func() string {
				r := run(t, command{args: words})
				if r.code != 0 {
					t.Fatalf("%s\n%s", r, r.stderr)
				}
				var got struct {
					Lost   uint64 `json:"lost_events"`
					PerTag []struct {
						Tag     string `json:"tag"`
						Creates uint64 `json:"creates"`
					} `json:"per_tag"`
				}
				readJSON(t, file, &got)
				if got.Lost != 0 || len(got.PerTag) != 1 || got.PerTag[0].Creates != 10_000 {
					return fmt.Sprintf("%d events lost, %d rows, want all of 10000 creates in one", got.Lost, len(got.PerTag))
				}
				return ""
			})
		})
	}
}

// A program in Python has call sites in its own lines, whatever library they call through, also of reads and writes, and its
// output is as bare.
func TestSitesInPython(t *testing.T) {
	t.Parallel()
	script := filepath.Join(root, "test", "programs", "sites.py")
	words := []string{"/usr/bin/python3", script}
	file := filepath.Join(t.TempDir(), "x.gmt")
	bare := runBare(t, words...)
	r := run(t, command{args: append([]string{gpumemtop(), "record", "-o", file, "--"}, words...)})
	if bare.code != 0 || differs(bare, r) != "" {
		t.Fatalf("bare %s, recorded %s\n%s%s", bare, r, bare.stderr, r.stderr)
	}
	got := map[string]uint64{}
	for _, row := range figuresIn(t, file, true).Tags {
		got[row.Tag] = row.Creates
	}
	want := map[string]uint64{
		"sites.py:15 Solver.step via _cl": 50, "sites.py:20 total via _cl": 50, "sites.py:24 keep via _cl": 1,
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("creates (-want +got):\n%s", diff)
	}
	r = run(t, command{args: []string{gpumemtop(), "report", "--all", "--wrapper", `^Solver\.step$`, file}})
	if !contains(r.stdout, "sites.py:36 <module>") || contains(r.stdout, "sites.py:15") {
		t.Errorf("--wrapper does not name the caller:\n%s", r.stdout)
	}
	var moved transferFigures
	readJSON(t, tool(t, "report", "--format", "json", file), &moved)
	got = map[string]uint64{}
	for _, row := range moved.Transfers.PerSite {
		got[row.Command+" "+row.Site] += row.Calls
	}
	want = map[string]uint64{"fill sites.py:20 total via _cl": 50, "write sites.py:28 put via _cl": 50, "read sites.py:20 total via _cl": 50}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("transfers (-want +got):\n%s", diff)
	}
}

// Code that a program generates has the names that it is given at the end.
func TestSitesInGeneratedCode(t *testing.T) {
	t.Parallel()
	file := filepath.Join(t.TempDir(), "x.gmt")
	r := run(t, command{args: []string{gpumemtop(), "record", "-o", file, "--", testProgram("generated"), "20", "4K", "named"}})
	if r.code != 0 {
		t.Fatalf("%s\n%s", r, r.stderr)
	}
	if err := os.Remove(strings.TrimSpace(string(r.stdout))); err != nil {
		t.Error(err)
	}
	got := map[string]uint64{}
	for _, row := range figuresIn(t, file, true).Tags {
		got[row.Tag] = row.Creates
	}
	want := map[string]uint64{"solve.js:7 first via create": 20, "void Solver.step(int) via create": 20}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("creates (-want +got):\n%s", diff)
	}
}
