package e2e

import (
	"encoding/json"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"testing"
)

// transferFigures are what a report and a summary say of transfers.
type transferFigures struct {
	Transfers struct {
		Unified  bool `json:"unified"`
		OwnSites bool `json:"own_sites"`
		ToDevice flow `json:"to_device"`
		ToHost   flow `json:"to_host"`
		Mapped   flow `json:"mapped"`
		Between  flow `json:"between_devices"`
		PerSite  []struct {
			Site, Command string
			flow
		} `json:"per_site"`
	} `json:"transfers"`
	Found []struct {
		Finding, Site string
		Calls, Bytes  uint64
		Certain       bool
	} `json:"transfer_findings"`
}

type flow struct {
	Calls, Bytes uint64
	Blocking     uint64  `json:"blocking_calls"`
	Rate         float64 `json:"bytes_per_second"`
	Profiled     uint64  `json:"profiled_calls"`
	Pageable     uint64  `json:"pageable_bytes"`
	Cold         uint64  `json:"cold_pages"`
}

func (f *transferFigures) finds(kind string) bool {
	for _, found := range f.Found {
		if found.Finding == kind {
			return true
		}
	}
	return false
}

const (
	transferTurns = 30
	transferSize  = 4 << 20
)

func transfersIn(t *testing.T, mode string, flags ...string) (f transferFigures) {
	t.Helper()
	file := filepath.Join(t.TempDir(), "x.gmt")
	transfers(t, mode, append([]string{"record", "-o", file}, flags...)...)
	readJSON(t, tool(t, "report", "--format", "json", file), &f)
	return f
}

// transfers runs the example under gpumemtop.
func transfers(t *testing.T, mode string, flags ...string) {
	t.Helper()
	turns, size := transferTurns, transferSize
	switch mode { // for long enough that transfers are a good part of the run, however slow its start is
	case "blocking":
		turns, size = turns*100, size/16
	case "unified", "cold":
		turns *= 5
	}
	args := append(append([]string{gpumemtop()}, flags...), "--", example("transfers"), strconv.Itoa(turns), strconv.Itoa(size), mode)
	if result := run(t, command{args: args}); result.code != 0 {
		t.Fatalf("%s: %s\n%s", mode, result, result.stderr)
	}
}

func readJSON(t *testing.T, file string, to any) {
	t.Helper()
	text, err := os.ReadFile(file)
	if err == nil {
		err = json.Unmarshal(text, to)
	}
	if err != nil {
		t.Fatal(err)
	}
}

// Each finding about transfers has a program that commits it, and one that nearly does.
func TestTransfersThatCouldGo(t *testing.T) {
	t.Parallel()
	for mode, kind := range map[string]string{
		"rewrite": "same bytes written again", "readback": "read back what was just written",
		"unchanged": "read of what had not changed", "unified": "copy on unified memory where a map would do",
		"copyhost": "COPY_HOST_PTR makes a second copy", "cold": "cold readback",
		"small": "many small transfers that could be one", "blocking": "blocking read inside the loop",
	} {
		t.Run(mode, func(t *testing.T) {
			f := transfersIn(t, mode)
			if !f.finds(kind) || !f.Transfers.Unified || !f.Transfers.OwnSites {
				t.Errorf("%+v", f)
			}
			if f := transfersIn(t, "nearly-"+mode); f.finds(kind) {
				t.Errorf("false alarm: %+v", f.Found)
			}
		})
	}
	if f := transfersIn(t, "clean"); len(f.Found) > 0 || f.Transfers.ToDevice.Calls+f.Transfers.ToHost.Calls > 0 || f.Transfers.Mapped.Bytes == 0 {
		t.Errorf("clean: %+v", f)
	}
	for _, found := range transfersIn(t, "rewrite", "--hash-writes").Found {
		if found.Finding == "same bytes written again" && !found.Certain {
			t.Errorf("not certain, though all bytes are hashed: %+v", found)
		}
	}
}

// Contents that two devices need in turn move between them; what both only read moves once.
func TestTransfersBetweenDevices(t *testing.T) {
	t.Parallel()
	two := driver{libraries: pocl.libraries, env: []string{"POCL_DEVICES=basic pthread"}}
	for name, want := range map[string]uint64{"devices": 20, "nearly-devices": 1} {
		file := filepath.Join(t.TempDir(), "x.gmt")
		r := run(t, command{args: []string{gpumemtop(), "record", "-o", file, "--", fault("findings"), name}, env: two.environment(t)})
		if r.code != 0 {
			t.Fatalf("%s: %s\n%s", name, r, r.stderr)
		}
		var f transferFigures
		readJSON(t, tool(t, "report", "--format", "json", file), &f)
		if b := f.Transfers.Between; b.Calls != want || b.Bytes != want<<20 || f.finds("contents move between devices and back") != (want > 1) {
			t.Errorf("%s: %+v, %+v", name, b, f.Found)
		}
		text := readFile(t, tool(t, "report", "--format", "text", "--section", "settings", file))
		if !strings.Contains(text, "a process uses 2 devices: what each of them holds is not known") {
			t.Errorf("%s: which device is meant?\n%s", name, text)
		}
	}
}

// Bytes, calls and sites are the program's, whatever writes them down; without a recording, too.
func TestTransfersAreCounted(t *testing.T) {
	t.Parallel()
	const mode = "nearly-readback"
	check := func(t *testing.T, f *transferFigures) {
		t.Helper()
		w := &f.Transfers
		if w.ToDevice.Bytes != (1+transferTurns)*transferSize || w.ToHost.Bytes != transferTurns*transferSize || w.ToHost.Calls != transferTurns {
			t.Errorf("%+v", w)
		}
		if w.ToHost.Blocking != transferTurns || w.ToHost.Rate <= 0 || w.ToHost.Pageable != w.ToHost.Bytes {
			t.Errorf("to the host: %+v", w.ToHost)
		}
		if len(w.PerSite) != 4 || !strings.HasPrefix(w.PerSite[0].Site, "transfers.c:") {
			t.Errorf("sites: %+v", w.PerSite)
		}
	}
	recorded := transfersIn(t, mode)
	check(t, &recorded)
	var live transferFigures
	file := filepath.Join(t.TempDir(), "summary.json")
	transfers(t, mode, "--headless", "--summary", file)
	readJSON(t, file, &live)
	check(t, &live)
}

// What the program copies from shared memory into its own is read back.
func TestSharedMemoryIsReadBack(t *testing.T) {
	t.Parallel()
	file := filepath.Join(t.TempDir(), "x.gmt")
	if r := run(t, command{args: []string{gpumemtop(), "record", "-o", file, testProgram("pointers"), "40"}}); r.code != 0 {
		t.Fatalf("%s\n%s", r, r.stderr)
	}
	var f transferFigures
	readJSON(t, tool(t, "report", "--format", "json", file), &f)
	if w := &f.Transfers.ToHost; w.Calls != 40 || w.Blocking != 40 || w.Pageable != w.Bytes || f.finds("copy on unified memory where a map would do") {
		t.Errorf("%+v, %+v", w, f.Found)
	}
}

// A queue with profiling says how long transfers took that did not block.
func TestProfiledTransfersAreTimed(t *testing.T) {
	file := filepath.Join(t.TempDir(), "x.gmt")
	transfers(t, "profiled", "record", "-o", file)
	var f transferFigures
	readJSON(t, tool(t, "report", "--format", "json", file), &f)
	if w := &f.Transfers.ToDevice; w.Calls != 1+transferTurns || w.Blocking != 1 || w.Profiled != transferTurns || w.Rate < 1e8 || w.Rate > 1e12 {
		t.Errorf("%+v", w)
	}
	_, trace := lintFile(t, exportAs(t, file, "chrome"))
	if n := strings.Count(string(trace), `"ph":"b","cat":"device","name":"write on the device"`); n != transferTurns {
		t.Errorf("the trace shows %d transfers on the device, want %d", n, transferTurns)
	}
}

// From outside bytes and calls are the same; times, pages and the calls' own sites are not known.
func TestTransfersAreCountedFromOutside(t *testing.T) {
	t.Parallel()
	const mode = "nearly-readback"
	_, outside := recordedOnce(t, &program{name: mode, args: []string{example("transfers"), strconv.Itoa(transferTurns), "4M", mode}}, false)
	var f transferFigures
	readJSON(t, tool(t, "report", "--format", "json", outside), &f)
	w := &f.Transfers
	if w.ToDevice.Bytes != (1+transferTurns)*transferSize || w.ToHost.Bytes != transferTurns*transferSize || w.OwnSites || w.ToHost.Rate != 0 {
		t.Errorf("%+v", w)
	}
}
