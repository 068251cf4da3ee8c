package e2e

import (
	"path/filepath"
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
