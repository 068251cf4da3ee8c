package e2e

import (
	"encoding/json"
	"os"
	"strconv"
	"strings"
	"testing"
)

// machineFigures are what a report has of the machine.
type machineFigures struct {
	Machine []struct {
		Source string `json:"source"`
		Bytes  uint64 `json:"bytes"`
		Peak   uint64 `json:"peak"`
		First  uint64 `json:"first"`
		Growth int64  `json:"growth_per_iteration"`
	} `json:"machine"`
	Diagnoses []struct {
		Title string `json:"title"`
		Text  string `json:"text"`
	} `json:"diagnoses"`
}

// grown returns what a report of a recording says of growth beside the buffers, and the figures of RSS.
func grown(t *testing.T, file string) (text string, peak uint64, each int64) {
	t.Helper()
	result := run(t, command{args: []string{gpumemtop(), "report", "--format", "json", file}})
	var f machineFigures
	if err := json.Unmarshal(result.stdout, &f); err != nil || result.code != 0 {
		t.Fatalf("report: %s: %v\n%s", result, err, result.stderr)
	}
	for _, d := range f.Diagnoses {
		if strings.Contains(d.Title, "beside its buffers") {
			text = d.Text
		}
	}
	for _, m := range f.Machine {
		if m.Source == "rss" {
			return text, m.Peak, m.Growth
		}
	}
	t.Fatalf("no RSS: %+v", f.Machine)
	return "", 0, 0
}

// TestMachineGrows: a program whose own memory grows by 256 KiB in each iteration while its buffers are flat is found; one
// whose buffers grow, and one that warms up, are not.
func TestMachineGrows(t *testing.T) {
	t.Parallel()
	for _, test := range []struct {
		kind  string
		least uint64 // RSS
		grows bool
	}{{"host", 64 << 20, true}, {"buffers", 64 << 20, false}, {"warm", 25 << 20, false}} {
		t.Run(test.kind, func(t *testing.T) {
			t.Parallel() // they sleep
			file := record(t, testProgram("growth"), "300", "20", test.kind)
			text, peak, each := grown(t, file)
			if peak < test.least || peak > 1<<30 {
				t.Errorf("RSS up to %d bytes", peak)
			}
			if !test.grows {
				if text != "" || each != 0 {
					t.Errorf("growth of %d bytes: %q", each, text)
				}
				return
			}
			if each < 192<<10 || each > 320<<10 || !strings.Contains(text, "while its buffers are flat") {
				t.Errorf("growth of %d bytes in an iteration: %q", each, text)
			}
			trace := tool(t, "export", file, "--format", "chrome")
			data, err := os.ReadFile(trace)
			if err != nil || !strings.Contains(string(data), `"name":"machine rss"`) {
				t.Errorf("the Chrome trace has no counter of the machine: %v", err)
			}
		})
	}
}

// TestMachineOfAttached: processes that ran already are asked about, too.
func TestMachineOfAttached(t *testing.T) {
	t.Parallel()
	p := start(t, command{args: []string{testProgram("growth"), "400", "20", "host"}})
	w := attach(t, "-p", strconv.Itoa(p.cmd.Process.Pid))
	ends(t, p)
	w.end()
	text, peak, each := grown(t, w.file)
	if peak < 64<<20 || each < 192<<10 || each > 320<<10 || !strings.Contains(text, "anonymous memory grew by") {
		t.Errorf("RSS up to %d bytes, growth of %d in an iteration: %q", peak, each, text)
	}
	result := run(t, command{args: []string{gpumemtop(), "report", "--all", w.file}})
	if !strings.Contains(string(result.stdout), "the process grows beside its buffers") {
		t.Errorf("report:\n%s", result.stdout)
	}
}
