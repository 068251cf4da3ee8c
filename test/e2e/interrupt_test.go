package e2e

import (
	"math/rand/v2"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

	"codeberg.org/gpumemtop/gpumemtop/internal/wire"
)

// pairs writes a recording of n creates and releases by chance; four buffers live at a time.
func pairs(t *testing.T, n int) string {
	t.Helper()
	random := rand.New(rand.NewPCG(1, 1))
	return makeRecording(t, 2000*uint64(n), func(add func(wire.Event)) {
		for i := range uint64(n) {
			size := 1 + random.Uint64N(1<<20)
			add(wire.Event{
				Time: recordedFrom + 2000*i + random.Uint64N(900), Kind: wire.KindCreate, Outcome: wire.OutcomeMiss, Duration: 1000, Cost: 800,
				Object: i + 1, Link: i + 1, Size: size, Granted: size,
			})
			if i >= 4 {
				add(wire.Event{Time: recordedFrom + 2000*i + 1000 + random.Uint64N(900), Kind: wire.KindRelease, Object: i - 3, Link: i - 3})
			}
		}
	})
}

// deaf is how long a command takes on a busy machine only if it does not listen to an interrupt; else it takes 0.2 s at most.
const deaf = 5 * time.Second

// Every command that may take long ends with an interrupt, whatever it is at, and leaves no file and no process.
func TestInterruptsEndLongWork(t *testing.T) {
	file := pairs(t, 1_000_000)
	for _, work := range []string{
		"report FILE", "report --format html -o OUT.html FILE", "diff FILE FILE", "advise FILE", "replay FILE", "plan --timeout 0s FILE",
		"tune --budget 24h --configurations 1000000 FILE", "trim --since 1ms -o OUT.gmt FILE", "export -o OUT.json FILE",
		"export -o OUT.csv FILE", "export --format parquet -o OUT FILE", "export --format pprof -o OUT FILE",
		"compare -- CMD", "fit -- CMD", "tune -- CMD", "tune --live -- CMD", "record -o OUT.gmt -- CMD",
	} {
		t.Run(strings.Fields(work)[0], func(t *testing.T) {
			t.Parallel()
			var dir string
			var pid int
			var p *process
			for attempt := 0; ; attempt++ {
				dir = t.TempDir()
				line := strings.NewReplacer("FILE", file, "OUT", filepath.Join(dir, "out"), "CMD", example("churn")+" 1000000000").Replace(work)
				p = start(t, command{args: append([]string{gpumemtop()}, strings.Fields(line)...), dir: dir})
				pid = p.cmd.Process.Pid
				if strings.HasSuffix(work, "CMD") {
					pid = awaitDescendant(t, pid, "churn")
				}
				awaitWork(t, pid, 10)
				signalTo(t, p.cmd.Process.Pid, syscall.SIGINT)
				interrupted := time.Now()
				result := p.wait()
				if took := time.Since(interrupted); took > deaf {
					t.Errorf("%s: took %v to end", work, took)
				}
				kept := contains(result.stderr, "interrupted: this is the best so far")
				if (result.code == 0 && !kept || finished(dir) && !strings.HasPrefix(work, "record")) && attempt < 5 {
					continue // it was done before the signal came: the machine is busy
				}
				if result.signal != syscall.SIGINT && result.code != 130 && (result.code != 0 || !kept) {
					t.Errorf("%s: %s", result, result.stderr)
				}
				break
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

// finished says whether a folder has a whole output, which a command writes under another name first.
func finished(dir string) bool {
	outputs, _ := filepath.Glob(filepath.Join(dir, "out*"))
	for _, output := range outputs {
		if info, err := os.Stat(output); err == nil && info.Mode().IsRegular() {
			return true
		}
	}
	return false
}

// A viewer of a recording with more call sites than any program has ends at ctrl+c, though each picture of them takes long.
func TestViewOfManySitesEnds(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	term := openTerminal(t, 80, 24)
	term.run(dir, gpumemtop(), "view", manySites(t, 100_000))
	term.await(`AT `)
	interrupted := time.Now()
	term.keys("C-c")
	term.await(`(?m)^status=0`)
	if took := time.Since(interrupted); took > 4*deaf {
		t.Errorf("took %v to end", took)
	}
	term.await(`(?m)^done`)
	term.checkRestored(dir)
}
