package e2e

import (
	"encoding/json"
	"os"
	"path/filepath"
	"testing"
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
			summary := filepath.Join(dir, name+".json")
			r := run(t, command{args: append(append([]string{gpumemtop()}, args...), "--summary", summary, fault("sites"))})
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
			text, err := os.ReadFile(summary)
			if err == nil {
				err = json.Unmarshal(text, &got)
			}
			if err != nil {
				t.Fatal(err)
			}
			if got.Lost != 0 || len(got.PerTag) != 1 || got.PerTag[0].Creates != 10_000 {
				t.Errorf("%d events lost, %d rows, want all of 10000 creates in one", got.Lost, len(got.PerTag))
			}
		})
	}
}
