package e2e

import (
	"fmt"
	"math/rand/v2"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
	"testing"

	"codeberg.org/gpumemtop/gpumemtop/internal/recording"
	"codeberg.org/gpumemtop/gpumemtop/internal/wire"
)

// pairs writes a recording of n creates and releases by chance, of which four live at a time.
func pairs(t *testing.T, n int) string {
	t.Helper()
	path := filepath.Join(t.TempDir(), "pairs.gmt")
	w, err := recording.Create(path, recording.Header{Program: "app", Policy: "none", ClockNS: 1}, false)
	if err != nil {
		t.Fatal(err)
	}
	add := func(time uint64, kind wire.Kind, object, size uint64) {
		r := wire.Record{Process: 1, Event: wire.Event{Time: time, Kind: kind, Object: object, Link: object, Size: size, Granted: size}}
		if kind == wire.KindCreate {
			r.Outcome, r.Duration = wire.OutcomeMiss, 1000
		}
		if err := w.Append(&r); err != nil {
			t.Fatal(err)
		}
	}
	random := rand.New(rand.NewPCG(1, 1))
	for i := range uint64(n) {
		add(2000*i+random.Uint64N(900), wire.KindCreate, i+1, 1+random.Uint64N(1<<20))
		if i >= 4 {
			add(2000*i+1000+random.Uint64N(900), wire.KindRelease, i-3, 0)
		}
	}
	if err := w.Close(recording.Footer{EndedNS: 2000 * uint64(n)}); err != nil {
		t.Fatal(err)
	}
	return path
}

// cpuTicks is the processor time that a process has used, in hundredths of a second.
func cpuTicks(pid int) (ticks int) {
	text, err := os.ReadFile(fmt.Sprintf("/proc/%d/stat", pid))
	_, fields, ok := strings.Cut(string(text), ") ")
	if f := strings.Fields(fields); err == nil && ok {
		for _, n := range f[11:13] {
			more, _ := strconv.Atoi(n)
			ticks += more
		}
	}
	return ticks
}

// Every command that may take long ends with an interrupt, whatever it is at, and leaves no file and no process.
func TestInterruptsEndLongWork(t *testing.T) {
	file := pairs(t, 1_000_000)
	for _, work := range []string{
		"report FILE", "report --format html -o OUT.html FILE", "diff FILE FILE", "advise FILE", "replay FILE", "plan --timeout 0s FILE",
		"tune --budget 24h --configurations 1000000 FILE", "trim --since 1ms -o OUT.gmt FILE", "export -o OUT.json FILE",
		"export -o OUT.csv FILE", "export --format parquet -o OUT FILE", "export --format pprof -o OUT FILE",
		"compare -- CMD", "fit -- CMD", "tune -- CMD", "record -o OUT.gmt -- CMD",
	} {
		t.Run(strings.Fields(work)[0], func(t *testing.T) {
			t.Parallel()
			dir := t.TempDir()
			line := strings.NewReplacer("FILE", file, "OUT", filepath.Join(dir, "out"), "CMD", example("churn")+" 1000000000").Replace(work)
			p := start(t, command{args: append([]string{gpumemtop()}, strings.Fields(line)...), dir: dir})
			pid := p.cmd.Process.Pid
			if strings.HasSuffix(work, "CMD") {
				pid = awaitDescendant(t, pid, "churn")
			}
			waitFor(t, "work", func() bool { return cpuTicks(pid) >= 20 })
			signalTo(t, p.cmd.Process.Pid, syscall.SIGINT)
			result := p.wait()
			kept := result.code == 0 && contains(result.stderr, "interrupted: this is the best so far")
			if result.signal != syscall.SIGINT && result.code != 130 && !kept {
				t.Errorf("%s: %s", result, result.stderr)
			}
			if left, _ := os.ReadDir(dir); len(left) > 0 && !strings.HasPrefix(work, "record") {
				t.Errorf("left: %v", left)
			}
			if pid != p.cmd.Process.Pid && alive(pid) {
				t.Error("the program still runs")
			}
		})
	}
}
