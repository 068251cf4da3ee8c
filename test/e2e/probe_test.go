package e2e

import (
	"encoding/json"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

	"codeberg.org/gpumemtop/gpumemtop/internal/cost"
)

// probed is what probe --format json writes, as far as it is looked at here.
type probed struct {
	Devices []struct {
		Platform  string
		Error     string
		BaseAlign uint64 `json:"base_align_bytes"`
		MaxAlloc  uint64 `json:"max_alloc_bytes"`
		Points    []struct {
			Size    uint64
			Create  float64 `json:"create_ns"`
			Reuse   float64 `json:"reuse_ns"`
			Release float64 `json:"release_ns"`
			N       int
		}
	}
	Interrupted bool
}

func readProbed(t *testing.T, text []byte) probed {
	t.Helper()
	var p probed
	if err := json.Unmarshal(text, &p); err != nil || len(p.Devices) == 0 {
		t.Fatalf("%v in %s", err, text)
	}
	return p
}

// On PoCL a device is measured at all sizes that are asked for, and only the result is printed.
func TestProbe(t *testing.T) {
	t.Parallel()
	out := filepath.Join(t.TempDir(), "probe.json")
	result := run(t, command{args: []string{gpumemtop(), "probe", "--platform", "portable", "--budget", "1s", "--max", "1M", "--format", "json", "-o", out}})
	if result.code != 0 || len(result.stdout)+len(result.stderr) > 0 {
		t.Fatalf("%s: %s%s", result, result.stdout, result.stderr)
	}
	text, err := os.ReadFile(out)
	if err != nil {
		t.Fatal(err)
	}
	d := readProbed(t, text).Devices[0]
	if d.Error != "" || d.BaseAlign == 0 || d.MaxAlloc < 1<<20 || len(d.Points) != 9 || d.Points[8].Size != 1<<20 {
		t.Fatalf("%+v", d)
	}
	for _, p := range d.Points {
		if p.N < 1 || p.Create <= 0 || p.Reuse <= 0 || p.Release <= 0 {
			t.Errorf("%+v", p)
		}
	}
	result = run(t, command{args: []string{gpumemtop(), "probe", "--device", "0", "--budget", "200ms", "--max", "64K"}})
	if result.code != 0 || !strings.Contains(string(result.stdout), "FIRST TOUCH") || len(result.stderr) > 0 {
		t.Errorf("%s: %s%s", result, result.stdout, result.stderr)
	}
}

// A probe that is itself watched measures the driver, not a pool in front of it.
func TestProbeUnderGpumemtop(t *testing.T) {
	result := run(t, command{args: []string{gpumemtop(), "--headless", "--", gpumemtop(), "probe", "--budget", "200ms", "--max", "64K"}})
	if result.code != 0 || !strings.Contains(string(result.stdout), "FIRST TOUCH") || !strings.Contains(string(result.stderr), "no OpenCL call was seen") {
		t.Errorf("%s: %s%s", result, result.stdout, result.stderr)
	}
}

// An interrupt leaves what is known by then, and no processes.
func TestProbeInterrupted(t *testing.T) {
	for _, sig := range []syscall.Signal{syscall.SIGINT, syscall.SIGTERM} {
		p := start(t, command{args: []string{gpumemtop(), "probe", "--budget", "1h", "--max", "1G", "--format", "json"}})
		child := waitForMeasuring(t, p)
		signalTo(t, p.cmd.Process.Pid, sig)
		result := p.wait()
		if result.signal != sig || !strings.Contains(string(result.stderr), "interrupted") {
			t.Fatalf("%s: %s", result, result.stderr)
		}
		if got := readProbed(t, result.stdout); !got.Interrupted || got.Devices[0].Error != "" {
			t.Errorf("%+v", got)
		}
		if _, err := os.Stat("/proc/" + child); err == nil {
			t.Errorf("process %s is still there", child)
		}
	}
}

// waitForMeasuring waits until a child of the probe measures, and returns its process id.
func waitForMeasuring(t *testing.T, p *process) string {
	t.Helper()
	for deadline := time.Now().Add(runLimit); time.Now().Before(deadline); time.Sleep(5 * time.Millisecond) {
		lists, _ := filepath.Glob("/proc/" + strconv.Itoa(p.cmd.Process.Pid) + "/task/*/children")
		for _, list := range lists {
			text, _ := os.ReadFile(list)
			for _, child := range strings.Fields(string(text)) {
				env, _ := os.ReadFile("/proc/" + child + "/environ")
				if strings.Contains(string(env), `"budget":`) {
					return child
				}
			}
		}
	}
	t.Fatal("nothing is being measured")
	return ""
}

// A driver that crashes where the loader loads it ends the child, not the command, which reports it.
func TestProbeOutlivesDrivers(t *testing.T) {
	result := run(t, command{args: []string{gpumemtop(), "probe"}, env: []string{"OCL_ICD_VENDORS=" + brokenDrivers(t)}})
	if result.code != 125 || !strings.Contains(string(result.stderr), "the driver crashed") || strings.Count(string(result.stderr), "\n") != 1 {
		t.Errorf("%s: %s%s", result, result.stdout, result.stderr)
	}
}

// What probe writes is what replay takes for the driver's costs, breaks included, and names.
func TestProbeForReplay(t *testing.T) {
	t.Parallel()
	probe, recording := filepath.Join(t.TempDir(), "probe.json"), filepath.Join(t.TempDir(), "x.gmt")
	for _, args := range [][]string{
		{"probe", "--platform", "portable", "--budget", "1s", "--max", "64M", "--format", "json", "-o", probe},
		{"record", "--policy", "none", "-o", recording, "--", example("stencil"), "40", "8M"},
	} {
		if result := run(t, command{args: append([]string{gpumemtop()}, args...)}); result.code != 0 {
			t.Fatalf("%q: %s\n%s", args, result, result.stderr)
		}
	}
	text, err := os.ReadFile(probe)
	if err != nil {
		t.Fatal(err)
	}
	var want struct {
		Devices []struct {
			Number                 int
			Device                 string
			Create, Touch, Release cost.Line
		}
	}
	if err := json.Unmarshal(text, &want); err != nil || len(want.Devices) != 1 {
		t.Fatalf("%v in %s", err, text)
	}
	d := want.Devices[0]
	result := run(t, command{args: []string{
		gpumemtop(), "replay", "--policy", "none", "--device-cost", probe, "--device", strconv.Itoa(d.Number), "--format", "json", recording,
	}})
	var got struct {
		Device     string
		DeviceCost struct{ Create, Touch, Release cost.Line } `json:"device_cost"`
		Requests   uint64
		DriverNS   uint64 `json:"driver_ns_simulated"`
		CreateNS   uint64 `json:"create_ns_simulated"`
		TouchNS    uint64 `json:"touch_ns_simulated"`
	}
	if err := json.Unmarshal(result.stdout, &got); err != nil || result.code != 0 {
		t.Fatalf("%s: %v\n%s%s", result, err, result.stdout, result.stderr)
	}
	if got.Device != d.Device || got.DeviceCost.Create != d.Create || got.DeviceCost.Touch != d.Touch || got.DeviceCost.Release != d.Release {
		t.Errorf("replay took %+v for %+v", got, d)
	}
	if got.Requests == 0 || got.DriverNS == 0 || got.CreateNS+got.TouchNS > got.DriverNS {
		t.Errorf("%+v", got)
	}
}
