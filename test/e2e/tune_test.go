package e2e

import (
	"encoding/json"
	"os"
	"slices"
	"testing"
)

// tuned is what tune --format json prints, as far as it is looked at.
type tuned struct {
	Tried       int        `json:"configurations"`
	Recommended tunedPoint `json:"recommended"`
	None        tunedPoint `json:"none"`
	Present     tunedPoint `json:"present"`
	BoundPeak   uint64     `json:"bound_peak_reserved"`
	Measured    *struct {
		Before, After struct {
			DriverNS uint64 `json:"driver_ns"`
			Peak     uint64 `json:"peak_reserved"`
			WallNS   uint64 `json:"wall_ns"`
		}
		Predicted float64 `json:"predicted_change"`
	} `json:"measured"`
	Compared *compared `json:"compared"`
}

type tunedPoint struct {
	Policy   string  `json:"policy"`
	DriverNS float64 `json:"driver_ns_simulated"`
	Peak     uint64  `json:"peak_reserved_poolable"`
}

// tune tunes a program, with nothing left behind.
func tune(t *testing.T, flags []string, args ...string) tuned {
	t.Helper()
	folder := t.TempDir()
	words := append([]string{gpumemtop(), "tune", "--format", "json", "--configurations", "40"}, flags...)
	result := run(t, command{args: append(append(words, "--"), args...), env: []string{"TMPDIR=" + folder}})
	var out tuned
	if err := json.Unmarshal(result.stdout, &out); err != nil || result.code != 0 {
		t.Fatalf("tune ended with %s, %v\nstdout: %s\nstderr: %s", result, err, result.stdout, result.stderr)
	}
	if left, err := os.ReadDir(folder); err != nil || len(left) > 0 {
		t.Errorf("%d files are left behind, %v", len(left), err)
	}
	limited := slices.Contains(flags, "--budget") // a busy machine tries fewer in that time
	if out.Tried != 40 && !limited || out.Tried == 0 || out.BoundPeak == 0 || out.None.Policy != "none" {
		t.Errorf("%+v", out)
	}
	return out
}

// Without a pool every buffer of a loop is the driver's: a pool is found, predicted to save nearly all of that, and when
// the program runs with it, it does. Then it is compared with the bare program. The loop is long, so that a call that is
// interrupted does not decide.
func TestTuneMeasuresWhatItFound(t *testing.T) {
	t.Parallel()
	out := tune(t, []string{"--policy", "none", "--budget", "5s"}, example("churn"), "100000", "4K", "2")
	if out.Recommended.Policy == "none" || out.Present.Policy != "none" || out.Recommended.DriverNS > out.None.DriverNS/2 {
		t.Fatalf("recommended: %+v, no pool: %+v", out.Recommended, out.None)
	}
	m := out.Measured
	if m == nil || m.Predicted > -0.5 || m.After.DriverNS > m.Before.DriverNS/2 || m.Before.WallNS == 0 || m.After.Peak == 0 {
		t.Errorf("measured: %+v", m)
	}
	if c := out.Compared; c == nil || c.Pairs == 0 || c.Speed.Median == 0 {
		t.Errorf("compared: %+v", c)
	}
}

// What is best already is not run again.
func TestTuneLeavesWhatIsBest(t *testing.T) {
	t.Parallel()
	out := tune(t, nil, example("churn"), "2000", "4K", "2")
	if out.Recommended.Policy != "futhark" || out.Measured != nil {
		t.Errorf("recommended: %+v, measured: %+v", out.Recommended, out.Measured)
	}
}
