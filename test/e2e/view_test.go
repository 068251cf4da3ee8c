package e2e

import (
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"regexp"
	"strconv"
	"strings"
	"syscall"
	"testing"

	"codeberg.org/gpumemtop/gpumemtop/internal/recording"
	"codeberg.org/gpumemtop/gpumemtop/internal/units"
	"codeberg.org/gpumemtop/gpumemtop/internal/wire"
)

// recordedFrom is CLOCK_MONOTONIC at the start of what makeRecording writes.
const recordedFrom = 1e9

// makeRecording writes a recording of one process that takes that many ns.
func makeRecording(t *testing.T, ns uint64, events func(add func(wire.Event))) string {
	t.Helper()
	path := filepath.Join(t.TempDir(), "made.gmt")
	w, err := recording.Create(path, recording.Header{Program: "app", Policy: "none", ClockNS: recordedFrom}, false)
	if err != nil {
		t.Fatal(err)
	}
	events(func(e wire.Event) {
		if err := w.Append(&wire.Record{Process: 1, Event: e}); err != nil {
			t.Fatal(err)
		}
	})
	if err := w.Close(recording.Footer{EndedNS: recordedFrom + ns}); err != nil {
		t.Fatal(err)
	}
	return path
}

// syncs writes a recording of n events, a µs apart, of a program that holds one buffer more after each thousand.
func syncs(t *testing.T, n int) string {
	t.Helper()
	return makeRecording(t, uint64(n)*1000, func(add func(wire.Event)) {
		for i := range uint64(n) {
			e := wire.Event{Time: recordedFrom + i*1000, Kind: wire.KindSync}
			if i%1000 == 0 {
				e.Kind, e.Outcome, e.Object, e.Link, e.Size, e.Granted = wire.KindCreate, wire.OutcomeMiss, i+1, i+1, 1<<20, 1<<20
			}
			add(e)
		}
	})
}

// shownCreates waits until a view shows a time, read to the end, and returns the creates that it says were avoided and
// were not.
func (term *terminal) shownCreates(at string) uint64 {
	term.t.Helper()
	term.await(`AT ` + regexp.QuoteMeta(at) + ` of`)
	term.await(`driver creates`)
	waitFor(term.t, "the end of the reading", func() bool { return !strings.Contains(term.screen(), "reading") })
	match := regexp.MustCompile(`(?m)driver creates ([\d ]+?) +avoided ([\d ]+?)(?:  |$)`).FindStringSubmatch(term.screen())
	if match == nil {
		term.t.Fatalf("no driver creates on the screen:\n%s", term.screen())
	}
	sum := uint64(0)
	for _, number := range match[1:] {
		v, err := strconv.ParseUint(strings.ReplaceAll(number, " ", ""), 10, 64)
		if err != nil {
			term.t.Fatal(err)
		}
		sum += v
	}
	return sum
}

// reportedCreates returns what a report of a recording has of the same.
func reportedCreates(t *testing.T, file string) uint64 {
	t.Helper()
	result := run(t, command{args: []string{gpumemtop(), "report", "--format", "json", file}})
	var report struct {
		DriverCreates uint64 `json:"driver_creates"`
		Hits          uint64 `json:"hits"`
	}
	if err := json.Unmarshal(result.stdout, &report); err != nil {
		t.Fatal(err)
	}
	return report.DriverCreates + report.Hits
}

func TestViewShowsAnyTime(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	file := dir + "/x.gmt"
	run(t, command{args: []string{gpumemtop(), "record", "-o", file, "--", example("train"), "30"}})
	length := lengthOf(t, file)
	end := fmt.Sprintf("%d.%03d s", length/1e9, length/1e6%1000)
	term := openTerminal(t, 120, 36)
	term.run(dir, gpumemtop(), "view", file)
	if got, want := term.shownCreates(end), reportedCreates(t, file); got != want || want == 0 {
		t.Errorf("%d creates at the end, the report has %d", got, want)
	}
	term.keys("Home")
	if got := term.shownCreates("0.000 s"); got != 0 {
		t.Errorf("%d creates at the start", got)
	}
	term.keys("Right", "S-Right", "C-Left")
	term.shownCreates("0.000 s")
	term.keys("?")
	term.await(`\? again: all keys`)
	term.keys("?")
	term.await(`one kept instant back or forward`)
	term.keys("Escape")
	term.tmux("resize-window", "-x", "60", "-y", "20")
	term.await(`AT 0.000 s`)
	term.tmux("resize-window", "-x", "120", "-y", "36")
	term.keys("End")
	term.shownCreates(end)
	term.keys("c") // what the whole recording would have hit, wherever the cursor is
	term.await(`simulated, not estimated  of all \d[\d ]* requests of the recording`)
	term.keys("[")
	term.await(`┊ with \d`)
	term.keys("c")
	term.await(`driver creates`)
	term.keys("q")
	term.await(`status=0`)
	term.await(`(?m)^done`)
	term.checkRestored(dir)
}

// At any time the figures are those of a report up to then.
func TestViewAgreesWithReports(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	file := dir + "/x.gmt"
	run(t, command{args: []string{gpumemtop(), "record", "-o", file, "--", example("train"), "30"}})
	length := lengthOf(t, file)
	term := openTerminal(t, 120, 36)
	term.run(dir, gpumemtop(), "view", file)
	term.await(`driver creates`)
	seen := map[string]bool{}
	for _, share := range []uint64{2, 5, 9} { // tenths
		ms := length * share / 10 / 1e6
		term.keys("t")
		term.tmux("send-keys", "-l", fmt.Sprintf("%dms", ms))
		term.keys("Enter")
		term.await(fmt.Sprintf(`AT %d\.%03d s of`, ms/1000, ms%1000))
		result := run(t, command{args: []string{gpumemtop(), "report", "--format", "json", "--until", fmt.Sprintf("%dms", ms), file}})
		var want struct {
			DriverCreates uint64 `json:"driver_creates"`
			Hits          uint64 `json:"hits"`
			InUse         uint64 `json:"in_use"`
			Cached        uint64 `json:"bytes_cached"`
			Peak          uint64 `json:"peak_in_use"`
		}
		if err := json.Unmarshal(result.stdout, &want); err != nil {
			t.Fatal(err)
		}
		figures := fmt.Sprintf("in use %s cached %s peak %s driver creates %d avoided %d",
			units.Format(want.InUse), units.Format(want.Cached), units.Format(want.Peak), want.DriverCreates, want.Hits)
		seen[figures] = true
		got := ""
		waitFor(t, fmt.Sprintf("what the report says of %d ms: %s", ms, figures), func() bool {
			got = term.figures()
			return got == figures
		})
	}
	if len(seen) < 3 {
		t.Errorf("the times have the same figures: %v", seen)
	}
	term.keys("q")
	term.await(`status=0`)
}

var shownFigures = regexp.MustCompile(`(?m)(?:in use|at end) (\S+) .*? cached ([^ /]+).*? peak (\S+)[\s\S]*driver creates ([\d ]+?) +avoided ([\d ]+?)(?:  |$)`)

// figures returns what the top of a view shows; digits come in groups of three.
func (term *terminal) figures() string {
	m := shownFigures.FindStringSubmatch(term.screen())
	if m == nil {
		return ""
	}
	return fmt.Sprintf("in use %s cached %s peak %s driver creates %s avoided %s", m[1], m[2], m[3],
		strings.ReplaceAll(m[4], " ", ""), strings.ReplaceAll(m[5], " ", ""))
}

// lengthOf returns how long a recording lasts, in ns.
func lengthOf(t *testing.T, file string) uint64 {
	t.Helper()
	reader, err := recording.Open(file)
	if err != nil {
		t.Fatal(err)
	}
	defer reader.Close() //nolint:errcheck // only read
	footer, _ := reader.Footer()
	return footer.EndedNS - reader.Header().ClockNS
}

// At any time the figures are those of all events up to then, also between two instants that are kept.
func TestViewIsExact(t *testing.T) {
	t.Parallel()
	file := syncs(t, 500_000) // a create each ms
	dir := t.TempDir()
	term := openTerminal(t, 120, 36)
	term.run(dir, gpumemtop(), "view", "--ascii", "--no-color", "--at", "123.4567ms", file)
	term.await(`AT 0\.123 s of 0\.500 s`)
	// Worked out when the cursor rests: creates at 0, 1, ... 123 ms.
	term.await(`in use 124M|in use 124\.0M`)
	if got := term.shownCreates("0.123 s"); got != 124 {
		t.Errorf("%d creates, want 124", got)
	}
	term.keys("t")
	term.tmux("send-keys", "-l", "300.5ms")
	term.await(`go to \(after the start\): 300\.5ms_`)
	term.keys("Enter")
	term.await(`in use 301M|in use 301\.0M`)
	term.keys("C-c")
	term.await(`status=0`)
	term.await(`(?m)^done`)
	term.checkRestored(dir)
}

// A recording that ends in the middle is shown as far as it goes, with what is missing.
func TestViewOfATornRecording(t *testing.T) {
	file := syncs(t, 300_000)
	info, err := os.Stat(file)
	if err != nil {
		t.Fatal(err)
	}
	if err := os.Truncate(file, info.Size()/2); err != nil {
		t.Fatal(err)
	}
	dir := t.TempDir()
	term := openTerminal(t, 80, 24)
	term.run(dir, gpumemtop(), "view", file)
	term.await(`INCOMPLETE`)
	term.await(`cut off`)
	term.keys("q")
	term.await(`is not whole`)
	term.await(`status=0`)
	term.await(`(?m)^done`)
	term.checkRestored(dir)
}

// An export that is interrupted leaves nothing of its file, and what was there before.
func TestInterruptedExport(t *testing.T) {
	t.Parallel()
	file := syncs(t, 3_000_000)
	dir := t.TempDir()
	for _, sig := range []syscall.Signal{syscall.SIGINT, syscall.SIGTERM} {
		out := filepath.Join(dir, "out.json")
		if err := os.WriteFile(out, []byte("before"), 0o600); err != nil {
			t.Fatal(err)
		}
		p := start(t, command{args: []string{gpumemtop(), "export", "-f", "-o", out, file}, dir: dir})
		waitFor(t, "a file to be begun", func() bool {
			begun, err := filepath.Glob(filepath.Join(dir, ".gpumemtop-*"))
			return err == nil && len(begun) == 1
		})
		if err := p.cmd.Process.Signal(sig); err != nil {
			t.Fatal(err)
		}
		if result := p.wait(); result.signal != sig || len(result.stderr) > 0 {
			t.Errorf("ended by %v, want %v; said %s", result, sig, result.stderr)
		}
		left, err := os.ReadDir(dir)
		if err != nil {
			t.Fatal(err)
		}
		text, err := os.ReadFile(out)
		if len(left) != 1 || err != nil || string(text) != "before" {
			t.Errorf("left: %v; %q, %v", left, text, err)
		}
	}
}
