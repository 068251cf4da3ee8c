package e2e

import (
	"fmt"
	"os"
	"path/filepath"
	"slices"
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

// Two creates of one line whose flags differ are two of an iteration. Equal ones may as well be of two iterations.
func TestIterationsOfOneLine(t *testing.T) {
	t.Parallel()
	script := filepath.Join(root, "test", "programs", "twins.py")
	for mode, want := range map[string][2]uint64{"flags": {40, 2}, "equal": {80, 1}} {
		file := filepath.Join(t.TempDir(), "x.gmt")
		if r := run(t, command{args: []string{gpumemtop(), "record", "-o", file, "--", "/usr/bin/python3", script, mode}}); r.code != 0 {
			t.Fatalf("%s\n%s", r, r.stderr)
		}
		var found struct {
			Phases []struct {
				Iterations uint64
				Creates    uint64 `json:"creates_per_iteration"`
			}
		}
		readJSON(t, tool(t, "report", "--format", "json", file), &found)
		got := [2]uint64{}
		for _, p := range found.Phases {
			if p.Iterations > 0 {
				got = [2]uint64{p.Iterations, p.Creates}
			}
		}
		if got != want {
			t.Errorf("%s: iterations and their creates %v, want %v", mode, got, want)
		}
	}
}

// Code that a program generates has the names that it is given at the end, also when others were shown long before.
func TestSitesInGeneratedCode(t *testing.T) {
	t.Parallel()
	for _, iterations := range []uint64{20, 200_000} {
		t.Run(fmt.Sprint(iterations), func(t *testing.T) {
			t.Parallel()
			file := filepath.Join(t.TempDir(), "x.gmt")
			r := run(t, command{args: []string{gpumemtop(), "record", "-o", file, "--", testProgram("generated"), fmt.Sprint(iterations), "4K", "named"}})
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
			want := map[string]uint64{"solve.js:7 first via create": iterations, "void Solver.step(int) via create": iterations}
			if diff := cmp.Diff(want, got); diff != "" {
				t.Errorf("creates (-want +got):\n%s", diff)
			}
		})
	}
}

// deepLibrary creates a buffer under a dozen functions of its own.
const deepLibrary = `
#define CL_TARGET_OPENCL_VERSION 120
#include <CL/cl.h>
#define PASS(name, next) __attribute__((noinline, visibility("hidden"))) cl_mem name(cl_context c) { cl_mem m = next(c); __asm__ volatile(""); return m; }
static cl_mem last(cl_context c) { cl_mem m = clCreateBuffer(c, 0, 4096, NULL, NULL); __asm__ volatile(""); return m; }
PASS(f1, last) PASS(f2, f1) PASS(f3, f2) PASS(f4, f3) PASS(f5, f4) PASS(f6, f5)
PASS(f7, f6) PASS(f8, f7) PASS(f9, f8) PASS(f10, f9) PASS(f11, f10)
cl_mem deep_create(cl_context c) { cl_mem m = f11(c); __asm__ volatile(""); return m; }
`

// deepProgram uses it at two places.
const deepProgram = `
#define CL_TARGET_OPENCL_VERSION 120
#include <CL/cl.h>
#include <unistd.h>
cl_mem deep_create(cl_context);
static __attribute__((noinline)) void one(cl_context c) { clReleaseMemObject(deep_create(c)); }
static __attribute__((noinline)) void other(cl_context c) { clReleaseMemObject(deep_create(c)); }
int main(void)
{
	cl_platform_id p;
	cl_device_id d;
	if (clGetPlatformIDs(1, &p, NULL) || clGetDeviceIDs(p, CL_DEVICE_TYPE_ALL, 1, &d, NULL))
		return 1;
	cl_context c = clCreateContext(NULL, 1, &d, NULL, NULL, NULL);
	one(c);
	other(c);
	usleep(500000); /* attach has to read where its code lies */
	return clReleaseContext(c);
}
`

// deepUser builds both. The library lies where one of the system's could.
func deepUser(t *testing.T) string {
	t.Helper()
	folder := filepath.Join(t.TempDir(), "site-packages")
	library := filepath.Join(folder, "libdeep.so")
	if err := os.Mkdir(folder, 0o755); err != nil {
		t.Fatal(err)
	}
	source := filepath.Join(t.TempDir(), "deep.c")
	if err := os.WriteFile(source, []byte(deepLibrary), 0o644); err != nil {
		t.Fatal(err)
	}
	if r := runBare(t, "gcc", "-s", "-O1", "-shared", "-fPIC", "-o", library, source); r.code != 0 {
		t.Fatalf("gcc: %s", r.stderr)
	}
	return built(t, "deepuser", deepProgram, library, "-Wl,-rpath,"+folder)
}

// A library of many levels, as OpenCV, does not take all frames of a stack: call sites are the program's lines.
func TestSitesBelowADeepLibrary(t *testing.T) {
	t.Parallel()
	program := deepUser(t)
	for _, policy := range []string{"none", "futhark"} {
		file := filepath.Join(t.TempDir(), "x.gmt")
		if r := run(t, command{args: []string{gpumemtop(), "record", "--policy", policy, "-o", file, "--", program}}); r.code != 0 {
			t.Fatalf("%s\n%s", r, r.stderr)
		}
		rows := figuresIn(t, file, true).Tags
		if len(rows) != 2 {
			t.Errorf("%s: call sites %+v, want two", policy, rows)
		}
		for _, row := range rows {
			if !strings.Contains(row.Tag, " one via libdeep") && !strings.Contains(row.Tag, " other via libdeep") || row.Creates != 1 {
				t.Errorf("%s: %d creates at %s", policy, row.Creates, row.Tag)
			}
		}
	}
}

// A function with several callers whose memory leaked, or in which memory ran out, is proposed as a wrapper in the summary.
func TestWrapperIsProposed(t *testing.T) {
	t.Parallel()
	for name, test := range map[string]struct {
		flags []string
		want  string
	}{
		"lost":   {nil, "several callers come there: --wrapper '^create_worked$' names call sites after them"},
		"denied": {nil, "several callers come there: --wrapper '^ask_for$' names call sites after them"},
		"hidden": {[]string{"--device-memory", "400K"}, "(--wrapper '^create_worked$' names its callers)"},
	} {
		for _, nearly := range []bool{false, true} {
			if nearly {
				name = "nearly-" + name
			}
			words := slices.Concat([]string{gpumemtop(), "--headless"}, test.flags, []string{"--", fault("findings"), name})
			if r := run(t, command{args: words}); contains(r.stderr, test.want) == nearly || !contains(r.stderr, "create_worked") {
				t.Errorf("%s: %s\n%s", name, r, r.stderr)
			}
		}
	}
}

// Where stacks end inside libraries, the report says so, and how to follow them: attach keeps `--stack-depth` frames, whatever they are of.
func TestStacksThatEndInLibraries(t *testing.T) {
	t.Parallel()
	program := called(t, deepUser(t), "e2edeep")
	for _, depth := range []string{"8", "24"} {
		w := attach(t, "--stack-depth", depth, "--comm", "e2edeep")
		ends(t, start(t, command{args: []string{program}}))
		w.leave()
		r := run(t, command{args: []string{gpumemtop(), "report", w.file}})
		if ends := contains(r.stdout, "stacks end after 8 frames: --stack-depth 24 follows them farther"); ends != (depth == "8") {
			t.Errorf("--stack-depth %s: %s", depth, r.stdout)
		}
	}
}
