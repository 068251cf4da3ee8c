package e2e

import (
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"syscall"
	"testing"

	"codeberg.org/gpumemtop/gpumemtop/internal/recording"
	"codeberg.org/gpumemtop/gpumemtop/internal/wire"
)

// TestSecondTerminal: other terminals show the dashboard of a run without one, and tune it; attach names the session that
// started a process.
func TestSecondTerminal(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	program := called(t, example("train"), "screens") // other sessions may run on this machine
	name := filepath.Base(program)
	target := exec.Command(gpumemtop(), "--headless", "--policy", "slab", "--ghosts", "usual", "--summary", dir+"/s.json", program, "1000000")
	target.Env = environment("XDG_RUNTIME_DIR=" + dir)
	if err := target.Start(); err != nil {
		t.Fatal(err)
	}
	pid := itoa(target.Process.Pid)
	t.Cleanup(func() { _ = target.Process.Signal(os.Interrupt) }) // if the test fails
	a, b := openTerminal(t, 120, 36), openTerminal(t, 80, 24)
	for _, term := range []*terminal{a, b} {
		term.line("export XDG_RUNTIME_DIR=" + dir)
	}
	waitFor(t, "the session", func() bool {
		look := exec.Command(gpumemtop(), "attach", "--session=no-such-program", "--headless")
		look.Env = environment("XDG_RUNTIME_DIR=" + dir)
		text, _ := look.CombinedOutput()
		return strings.Contains(string(text), `no session is "no-such-program", only: `) && strings.Contains(string(text), pid+" "+name+" (pid ")
	})
	a.line("clear; " + gpumemtop() + " attach --session " + name)
	b.line("clear; " + gpumemtop() + " attach --session " + pid + " --read-only")
	for _, term := range []*terminal{a, b} {
		term.await(`session of ` + name)
		term.await(`train\.c:`)
		term.await(`RUNNING`)
	}
	a.keys("]")
	a.await(`max_cached_bytes .* acknowledged`)
	b.keys("]")
	b.await(`limits cannot be changed here`)
	b.keys("H")
	b.await(`heap map of \d+ slabs?(?s:.*) s\d+ .*[█▄·]`)
	child := regexp.MustCompile(`pid (\d+)`).FindStringSubmatch(a.screen())
	if child == nil {
		t.Fatalf("no process id in\n%s", a.screen())
	}
	again := exec.Command(gpumemtop(), "attach", "-p", child[1], "--headless")
	again.Env = environment("XDG_RUNTIME_DIR=" + dir)
	if text, err := again.CombinedOutput(); err == nil || !strings.Contains(string(text), "runs under gpumemtop already: gpumemtop attach --session "+pid) {
		t.Errorf("attach -p: %v: %s", err, text)
	}
	a.keys("q")
	a.await(`(?m)^\$`)
	b.await(`RUNNING`)
	if err := exec.Command("kill", "-INT", child[1]).Run(); err != nil {
		t.Fatal(err)
	}
	b.await(`✗ SIGINT`)
	b.keys("q")
	if err := target.Wait(); err == nil || target.ProcessState.ExitCode() != 130 && !strings.Contains(err.Error(), "interrupt") {
		t.Errorf("the session ended with %v", err)
	}
}

// TestRecordDuringTheRun: r starts a recording of a run that goes on, another terminal's r ends it, and the part reports,
// replays and has the uses that a recording of everything has.
func TestRecordDuringTheRun(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	program := called(t, example("train"), "recorded")
	a, b := openTerminal(t, 120, 36), openTerminal(t, 120, 36)
	for _, term := range []*terminal{a, b} {
		term.line("export XDG_RUNTIME_DIR=" + dir + "; cd " + dir)
	}
	a.line("clear; " + gpumemtop() + " --policy slab " + program + " 1000000")
	a.await(`train\.c:\d+`)
	b.line("clear; " + gpumemtop() + " attach --session " + filepath.Base(program))
	b.await(`train\.c:\d+`)
	a.keys("r")
	a.await(`recording into \./gpumemtop\..*\.gmt; r ends it`)
	b.await(`REC \d\d\.\d`) // K: what it began with has fewer
	b.keys("r")
	b.await(`recorded .*\.gmt`)
	a.keys("q")
	a.await(`\[t\]erminate`)
	a.keys("t")
	a.await(`gpumemtop: the recording is in \./gpumemtop\.`)
	names, err := filepath.Glob(dir + "/*.gmt")
	if err != nil || len(names) != 1 {
		t.Fatal(names, err)
	}
	checkReport(t, names[0], "train.c")
	reader, err := recording.Open(names[0])
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = reader.Close() }()
	kinds, carried := map[wire.Kind]int{}, 0
	for r, err := range recording.Records(reader) {
		if err != nil {
			t.Fatal(err)
		}
		kinds[r.Kind]++
		if r.Kind == wire.KindCreate && r.CarriedOver() {
			carried++
		}
	}
	if carried == 0 || kinds[wire.KindUse] == 0 || kinds[wire.KindSync] == 0 || kinds[wire.KindSite] == 0 || kinds[wire.KindCreate] == carried {
		t.Errorf("records %v, %d creates carried over", kinds, carried)
	}
	text, err := exec.Command(gpumemtop(), "replay", "--policy", "slab", names[0]).CombinedOutput()
	if err != nil || !strings.Contains(string(text), "slab") {
		t.Errorf("replay: %v: %s", err, text)
	}
}

// TestDetachedProgramGoesOn: after the dashboard, the terminal says what still runs, and ctrl+c reaches it.
func TestDetachedProgramGoesOn(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	term := openTerminal(t, 100, 30)
	term.run(dir, gpumemtop(), example("train"), "1000000")
	term.await(`train\.c:\d+`)
	term.keys("q")
	term.await(`\[d\]etach`)
	term.keys("d")
	term.await(`gpumemtop: train \(pid \d+\) goes on; Ctrl-C reaches it`)
	term.keys("C-c")
	term.await(`status=130`)
}

// TestTypingIntoTheProgram: i gives keys to the program, whose terminal echoes them; a program that takes the whole screen
// gets the terminal while the recording goes on.
func TestTypingIntoTheProgram(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	script := dir + "/ask"
	text := "read x; echo \"got $x\"; " + example("train") + " 5; printf '\\033[?1049h\\033[Hwhole screen'; read y; printf '\\033[?1049l'; echo \"then $y\"; " + example("train") + " 5\n"
	if err := os.WriteFile(script, []byte(text), 0o644); err != nil {
		t.Fatal(err)
	}
	term := openTerminal(t, 100, 30)
	term.run(dir, gpumemtop(), "-o", dir+"/x.gmt", "sh", script)
	term.await(`STARTING|RUNNING`)
	term.keys("i")
	term.await(`what you type goes to the program`)
	term.line("hello")
	term.await(`^\s*whole screen`)
	term.line("world")
	term.await(`status=0`)
	for _, want := range []string{"got hello", "then world"} {
		if screen := term.tmux("capture-pane", "-p", "-S", "-200"); !strings.Contains(screen, want) {
			t.Errorf("no %q in\n%s", want, screen)
		}
	}
	term.checkRestored(dir)
	if info := run(t, command{args: []string{gpumemtop(), "info", dir + "/x.gmt"}}); strings.Count(string(info.stdout), "train") < 2 {
		t.Errorf("the recording lacks a program:\n%s", info.stdout)
	}
}

// TestTerminalsEndTogether: dashboards of one session that end at once, also while the session ends or after it was killed, all end
// and leave their terminals as these were.
func TestTerminalsEndTogether(t *testing.T) {
	t.Parallel()
	program := called(t, example("train"), "together")
	terms := []*terminal{openTerminal(t, 120, 36), openTerminal(t, 80, 24), openTerminal(t, 100, 30)}
	for _, end := range []func(session *process){
		func(*process) {},
		func(session *process) {
			signalTo(t, descendant(session.cmd.Process.Pid, filepath.Base(program)), syscall.SIGINT)
		},
		func(session *process) { signalTo(t, session.cmd.Process.Pid, syscall.SIGKILL) },
		func(session *process) { signalTo(t, session.cmd.Process.Pid, syscall.SIGSTOP) },
	} {
		dir := t.TempDir()
		session := start(t, command{args: []string{gpumemtop(), "--headless", program, "1000000"}, env: []string{"XDG_RUNTIME_DIR=" + dir}})
		awaitDescendant(t, session.cmd.Process.Pid, filepath.Base(program))
		var dirs []string
		for _, term := range terms {
			dirs = append(dirs, t.TempDir())
			term.line("export XDG_RUNTIME_DIR=" + dir)
			term.run(dirs[len(dirs)-1], gpumemtop(), "attach", "--session", filepath.Base(program))
		}
		for _, term := range terms {
			term.await(`train\.c:`)
		}
		end(session)
		for _, term := range terms {
			term.keys("q")
		}
		for i, term := range terms {
			term.await(`(?m)^done`)
			term.checkRestored(dirs[i])
		}
	}
}
