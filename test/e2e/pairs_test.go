package e2e

import (
	"path/filepath"
	"regexp"
	"strings"
	"testing"
)

// Maps without unmaps are found, by the call site of the map, also where a signal ends the program before it releases anything.
func TestMapsWithoutUnmaps(t *testing.T) {
	t.Parallel()
	for _, policy := range []string{"none", "futhark", "slab"} {
		t.Run(policy, func(t *testing.T) {
			t.Parallel()
			file := filepath.Join(t.TempDir(), "x.gmt")
			r := run(t, command{args: []string{gpumemtop(), "record", "-o", file, "--policy", policy, fault("findings"), "killed"}, env: pocl.environment(t)})
			report := run(t, command{args: []string{gpumemtop(), "report", file}})
			for _, text := range []string{string(r.stderr), string(report.stdout)} {
				if flat := strings.Join(strings.Fields(text), " "); !strings.Contains(flat, "map without unmap: 60 maps at findings.c:") || !strings.Contains(flat, ", 0 unmaps") {
					t.Errorf("no word of the maps in %s", text)
				}
			}
			r = run(t, command{args: []string{gpumemtop(), "record", "-f", "-o", file, "--policy", policy, fault("findings"), "nearly-killed"}, env: pocl.environment(t)})
			if strings.Contains(string(r.stderr), "without unmap") {
				t.Errorf("a false alarm: %s", r.stderr)
			}
		})
	}
}

// Acquires of memory of OpenGL without releases are found. A layer of the loader stands in for OpenGL, which PoCL does not share memory with.
func TestAcquiresWithoutReleases(t *testing.T) {
	t.Parallel()
	shares := compiled(t, "libshares.so", filepath.Join(root, "test/programs/preloaded/shares.c"), "-shared", "-fPIC")
	for name, found := range map[string]bool{"acquires": true, "nearly-acquires": false} {
		for _, policy := range []string{"none", "futhark", "slab"} {
			file := filepath.Join(t.TempDir(), "x.gmt")
			r := run(t, command{
				args: []string{gpumemtop(), "record", "-o", file, "--policy", policy, fault("findings"), name}, env: append(pocl.environment(t), "OPENCL_LAYERS="+shares),
			})
			report := run(t, command{args: []string{gpumemtop(), "report", file}})
			for _, text := range []string{string(r.stderr), string(report.stdout)} {
				flat := strings.Join(strings.Fields(text), " ")
				says := strings.Contains(flat, "acquire without release: 40 acquires of memory created at findings.c:") && strings.Contains(flat, ", 0 releases to OpenGL")
				if r.code != 0 || says != found || !found && strings.Contains(flat, "acquire without") {
					t.Errorf("%s, %s: %s", name, policy, text)
				}
			}
		}
	}
}

// A failure of one of several processes names its rank and pid, in the message at once, the summary and the report, and counts only what
// that process has of the device that --device-memory gives it.
func TestFailuresNameTheirProcess(t *testing.T) {
	t.Parallel()
	file := filepath.Join(t.TempDir(), "x.gmt")
	script := `OMPI_COMM_WORLD_RANK=0 "$0" nearly; OMPI_COMM_WORLD_RANK=1 "$0" full`
	r := run(t, command{
		args: []string{gpumemtop(), "record", "-o", file, "--device-memory", "16M", "sh", "-c", script, fault("shortage")}, env: pocl.environment(t),
	})
	report := run(t, command{args: []string{gpumemtop(), "report", file}})
	named := regexp.MustCompile(`rank 1 \(pid \d+\): create of a buffer of 1\.00 MiB failed`)
	for _, text := range []string{string(r.stderr), string(report.stdout)} {
		flat := strings.Join(strings.Fields(text), " ")
		if !named.MatchString(flat) || !strings.Contains(flat, "16.0 MiB of 16.0 MiB are reserved") {
			t.Errorf("rank 1 is not named in %s", text)
		}
	}
	if got := len(named.FindAll(r.stderr, -1)); got != 2 {
		t.Errorf("rank 1 is named %d times, want in the message and in the summary: %s", got, r.stderr)
	}
}
