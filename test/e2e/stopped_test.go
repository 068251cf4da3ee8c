package e2e

import (
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"
)

// A session that reads so seldom that the program's rings are always full slows the program by a bounded time. Then events
// are lost, which the summary says.
func TestSlowSession(t *testing.T) {
	words := []string{example("churn"), "1000000", "4K"}
	bare := runBare(t, words...)
	file := filepath.Join(t.TempDir(), "summary.json")
	p := start(t, command{args: append([]string{gpumemtop(), "--headless", "--summary", file, "--"}, words...)})
	target := awaitDescendant(t, p.cmd.Process.Pid, "churn")
	pid, turns := p.cmd.Process.Pid, 0
	for stopped := time.Now(); alive(target); turns++ {
		if time.Since(stopped) > waitLimit {
			t.Fatalf("it still runs after %d turns, bare it took %v", turns, bare.wall)
		}
		signalTo(t, pid, syscall.SIGSTOP)
		time.Sleep(200 * time.Millisecond)
		signalTo(t, pid, syscall.SIGCONT)
		time.Sleep(5 * time.Millisecond) // for one look at the rings, not enough to keep up
	}
	result, sum := p.wait(), readSummary(t, file)
	if difference := differs(bare, result); difference != "" {
		t.Error(difference)
	}
	t.Logf("%d turns, %v; bare %v; %d events lost", turns, result.wall, bare.wall, sum.LostEvents)
	// 2 million events fill a ring about 125 times.
	if most := 80; sum.LostEvents == 0 || turns > most {
		t.Errorf("%d turns, want at most %d; %d events lost", turns, most, sum.LostEvents)
	}
	if !strings.Contains(string(result.stderr), "counts are too low") {
		t.Errorf("the summary does not say what is uncertain:\n%s", result.stderr)
	}
}

// A program that is stopped and continued has lost nothing, and no finding blames it for the pause.
func TestStoppedProgram(t *testing.T) {
	for name, mode := range map[string][]string{"headless": {"--headless"}, "record": {"record", "-o", "x.gmt"}} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			words := []string{example("threads"), "3", "20000", "4K"}
			bare := runBare(t, words...)
			dir := t.TempDir()
			args := append([]string{gpumemtop()}, mode...)
			args = append(append(args, "--policy", "slab", "--summary", "s.json", "--"), words...)
			p := start(t, command{args: args, dir: dir})
			target := awaitDescendant(t, p.cmd.Process.Pid, "threads")
			for range 3 {
				signalTo(t, target, syscall.SIGSTOP)
				time.Sleep(400 * time.Millisecond) // longer than every interval of the session
				signalTo(t, target, syscall.SIGCONT)
				time.Sleep(20 * time.Millisecond)
			}
			result, sum := p.wait(), readSummary(t, filepath.Join(dir, "s.json"))
			if difference := differs(bare, result); difference != "" {
				t.Error(difference)
			}
			if sum.LostEvents != 0 || len(sum.Leaks)+len(sum.Findings) != 0 || sum.DriverCreates != sum.DriverReleases {
				t.Errorf("%d events lost, leaks %+v, findings %+v, %d driver creates and %d releases", sum.LostEvents, sum.Leaks, sum.Findings, sum.DriverCreates, sum.DriverReleases)
			}
		})
	}
}
