package e2e

import (
	"bytes"
	"encoding/json"
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"testing"

	"codeberg.org/gpumemtop/gpumemtop/internal/wire"
)

// refusal is a call that OpenCL refuses, and with which status.
type refusal struct {
	call   string
	status int32
}

// refusals counts what test/programs/faults/refusals printed.
func refusals(t *testing.T, printed []byte) map[refusal]uint64 {
	t.Helper()
	counts := map[refusal]uint64{}
	for line := range bytes.Lines(printed) {
		f := strings.Split(strings.TrimSpace(string(line)), "\t")
		if len(f) != 3 {
			t.Fatalf("printed %q", line)
		}
		status, err := strconv.Atoi(f[1])
		n, err2 := strconv.Atoi(f[2])
		if err != nil || err2 != nil {
			t.Fatal(err, err2)
		}
		counts[refusal{f[0], int32(status)}] += uint64(n)
	}
	return counts
}

// refusalsIn counts the failed calls in the JSON of a summary or a report.
func refusalsIn(t *testing.T, text string) map[refusal]uint64 {
	t.Helper()
	var out struct {
		Failed []struct {
			Call, Tag, Name string
			Status          int32
			Count           uint64
		} `json:"failed_calls"`
	}
	if err := json.Unmarshal([]byte(text), &out); err != nil {
		t.Fatal(err)
	}
	counts := map[refusal]uint64{}
	for _, f := range out.Failed {
		counts[refusal{f.Call, f.Status}] += f.Count
		if !strings.HasPrefix(f.Tag, "refusals.c:") || f.Name != wire.StatusName(f.Status) {
			t.Errorf("a call failed at %q with %q", f.Tag, f.Name)
		}
	}
	return counts
}

// toolText is what a tool writes.
func toolText(t *testing.T, args ...string) string { return contents(t, tool(t, args...)) }

func contents(t *testing.T, file string) string {
	t.Helper()
	text, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	return string(text)
}

// Each call about memory that OpenCL refuses has its place, by call site and code, in summary, report, page and trace; calls that it grants
// have none.
func TestRefusedCallsHaveTheirPlace(t *testing.T) {
	t.Parallel()
	bare := run(t, command{args: []string{fault("refusals")}, env: pocl.environment(t)})
	want := refusals(t, bare.stdout)
	if bare.code != 0 || len(want) < 9 {
		t.Fatalf("bare: %s, %v", bare, want)
	}
	for _, policy := range []string{"none", "futhark", "slab"} {
		file, sum := filepath.Join(t.TempDir(), "x.gmt"), filepath.Join(t.TempDir(), "sum.json")
		r := run(t, command{
			args: []string{gpumemtop(), "record", "-o", file, "--policy", policy, "--summary", sum, fault("refusals")}, env: pocl.environment(t),
		})
		if why := differs(bare, r); why != "" {
			t.Fatalf("%s: %s", policy, why)
		}
		for name, text := range map[string]string{"summary": contents(t, sum), "report": toolText(t, "report", "--format", "json", file)} {
			if got := refusalsIn(t, text); !maps.Equal(got, want) {
				t.Errorf("%s: the %s has %v, want %v", policy, name, got, want)
			}
		}
		page := toolText(t, "report", "--format", "html", file)
		text, trace := toolText(t, "report", "--section", "failed", file), toolText(t, "export", file, "--format", "chrome")
		for k := range want {
			code := fmt.Sprintf("%s (%d)", wire.StatusName(k.status), k.status)
			if !strings.Contains(text, code) || !strings.Contains(text, k.call) || !strings.Contains(page, code) {
				t.Errorf("%s: no word of %v in report or page", policy, k)
			}
			if !strings.Contains(trace, `"name":"`+k.call) || !strings.Contains(trace, "failed with "+code) {
				t.Errorf("%s: no word of %v in the trace", policy, k)
			}
		}
		r = run(t, command{args: []string{gpumemtop(), "record", "-f", "-o", file, "--policy", policy, fault("refusals"), "nearly"}, env: pocl.environment(t)})
		if r.code != 0 || contains(r.stderr, "refused ") || len(refusalsIn(t, toolText(t, "report", "--format", "json", file))) > 0 {
			t.Errorf("%s: a false alarm: %s\n%s", policy, r, r.stderr)
		}
	}
}

// The dashboard names the first refused call in a terminal, and the list of findings all of them, by call site and code.
func TestRefusedCallsInTheDashboard(t *testing.T) {
	t.Parallel()
	for _, words := range [][]string{{fault("refusals")}, {fault("refusals"), "nearly"}} {
		dir := t.TempDir()
		term := openTerminal(t, 160, 40)
		term.run(dir, append([]string{gpumemtop(), "--policy", "futhark", "--"}, words...)...)
		term.await(`EXITED 0`)
		if len(words) == 1 {
			term.await(`! 24 calls refused: create of a buffer of 0 B at refusals\.c:\d+ buffer failed with CL_INVALID_BUFFER_SIZE \(-61\)`)
			term.keys("!")
			term.await(`and 23 with other codes or at other places`)
			term.keys("Escape")
			term.await(`alloc/s`) // with the list closed, so that the next key is one of its own
			term.await(`(?m)^╭─.*tags`)
		} else if strings.Contains(term.screen(), "refused") {
			t.Errorf("a false alarm:\n%s", term.screen())
		}
		term.leave()
		term.await(`status=0`)
	}
}
