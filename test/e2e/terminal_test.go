package e2e

import (
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strconv"
	"strings"
	"testing"
)

func itoa(n int) string { return strconv.Itoa(n) }

// terminal is a shell in a tmux of its own.
type terminal struct {
	t      *testing.T
	socket string
}

// openTerminal starts a shell in a terminal of a size, without any configuration of the user's.
func openTerminal(t *testing.T, cols, rows int) *terminal {
	t.Helper()
	if _, err := exec.LookPath("tmux"); err != nil {
		t.Fatalf("%v: make test-deps installs it", err)
	}
	term := &terminal{t: t, socket: filepath.Join(t.TempDir(), "tmux")}
	cmd := exec.Command("tmux", "-S", term.socket, "-f", "/dev/null", "new-session", "-d", "-x", itoa(cols), "-y", itoa(rows),
		"env", "-u", "CI", "PS1=$ ", "sh")
	cmd.Env = environment("TERM=xterm-256color", "LANG=C.UTF-8", "LC_ALL=C.UTF-8")
	if text, err := cmd.CombinedOutput(); err != nil {
		t.Fatalf("tmux: %v: %s", err, text)
	}
	t.Cleanup(func() {
		// It is gone already when the test closed it.
		_ = exec.Command("tmux", "-S", term.socket, "kill-server").Run()
	})
	return term
}

func (term *terminal) tmux(args ...string) string {
	term.t.Helper()
	text, err := exec.Command("tmux", append([]string{"-S", term.socket}, args...)...).CombinedOutput()
	if err != nil {
		term.t.Fatalf("tmux %v: %v: %s", args, err, text)
	}
	return string(text)
}

func (term *terminal) line(text string) {
	term.t.Helper()
	term.tmux("send-keys", "-l", text)
	term.tmux("send-keys", "Enter")
}

func (term *terminal) keys(names ...string) {
	term.t.Helper()
	term.tmux(append([]string{"send-keys"}, names...)...)
}

func (term *terminal) screen() string {
	term.t.Helper()
	return term.tmux("capture-pane", "-p")
}

// await waits for text on the screen and shows the screen when it does not come.
func (term *terminal) await(pattern string) {
	term.t.Helper()
	re := regexp.MustCompile(pattern)
	last := ""
	defer func() {
		if term.t.Failed() {
			term.t.Logf("the screen:\n%s", last)
		}
	}()
	waitFor(term.t, fmt.Sprintf("%q on the screen", pattern), func() bool {
		last = term.screen()
		return re.MatchString(last)
	})
}

// leave closes the dashboard when that says that the program has ended, with one key: another one would be the shell's.
func (term *terminal) leave() {
	term.t.Helper()
	term.await(`[✓✗] (EXITED|SIG)`)
	term.keys("q")
}

// run writes a script that runs gpumemtop between two looks at the terminal's settings, and starts it.
func (term *terminal) run(dir string, args ...string) {
	term.t.Helper()
	script := fmt.Sprintf("stty -g > %[1]s/before\n%[2]s\necho \"status=$?\"\nstty -g > %[1]s/after\necho done\n", dir, strings.Join(args, " "))
	if err := os.WriteFile(filepath.Join(dir, "script"), []byte(script), 0o644); err != nil {
		term.t.Fatal(err)
	}
	term.line("clear; sh " + dir + "/script")
}

// checkRestored demands the terminal as it was: settings, main screen, visible cursor.
func (term *terminal) checkRestored(dir string) {
	term.t.Helper()
	before, err := os.ReadFile(filepath.Join(dir, "before"))
	if err != nil {
		term.t.Fatal(err)
	}
	after, err := os.ReadFile(filepath.Join(dir, "after"))
	if err != nil || string(before) != string(after) {
		term.t.Errorf("terminal settings %q, were %q, %v", after, before, err)
	}
	if state := strings.TrimSpace(term.tmux("display-message", "-p", "#{alternate_on} #{cursor_flag} #{mouse_any_flag}")); state != "0 1 0" {
		term.t.Errorf("alternate screen, cursor, mouse: %q, want \"0 1 0\"", state)
	}
}

func TestDashboardInATerminal(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	term := openTerminal(t, 120, 36)
	term.run(dir, gpumemtop(), "--policy", "futhark", "-o", dir+"/x.gmt", "--", example("pipeline"), "100000", "1M")
	term.await(`pipeline\.c:\d+`)
	term.await(`futhark`)
	term.tmux("resize-window", "-x", "80", "-y", "24")
	term.await(`(?m)^─▸³ tags`) // there is no room left for frames
	term.tmux("resize-window", "-x", "120", "-y", "36")
	term.keys("?")
	term.await(`keys: move`)
	term.keys("Escape")
	term.await(`alloc/s`)
	term.keys("q")
	term.await(`\[t\]erminate`)
	term.keys("t")
	// The program has no handler for SIGTERM: it dies of it, and so does gpumemtop.
	term.await(`status=143`)
	term.await(`(?m)^done`)
	term.checkRestored(dir)
	checkReport(t, dir+"/x.gmt", "pipeline.c")
}

// TestSuspend: ctrl+z stops the dashboard and the program, and the shell has the terminal until fg. What was being typed stays.
func TestSuspend(t *testing.T) {
	t.Parallel()
	file := filepath.Join(t.TempDir(), "pid")
	term := openTerminal(t, 120, 36)
	term.line(fmt.Sprintf("printf '\\033]2;shell\\007'; clear; sh -c 'echo $$ > %s; exec %s -- %s 1000000 1M'", file, gpumemtop(), example("pipeline")))
	term.await(`pipeline\.c:\d+`)
	pid := strings.TrimSpace(readFile(t, file))
	stopped := func(of string) bool {
		return strings.Contains(readFile(t, "/proc/"+of+"/status"), "State:\tT (stopped)")
	}
	for _, typed := range [...]string{"", "/pipe"} {
		program := childOf(t, pid)
		if typed != "" {
			term.keys(typed)
			term.await(typed + "_")
		}
		term.keys("C-z")
		term.await(`Stopped`)
		defer func() {
			if t.Failed() {
				t.Logf("dashboard %s\nprogram %s\n%s", readFile(t, "/proc/"+pid+"/status")[:60], readFile(t, "/proc/"+program+"/status")[:60], term.screen())
			}
		}()
		waitFor(t, "both to stop", func() bool { return stopped(pid) && stopped(program) })
		if state := strings.TrimSpace(term.tmux("display-message", "-p", "#{alternate_on} #{cursor_flag} #{pane_title}")); state != "0 1 shell" {
			t.Errorf("alternate screen, cursor, title: %q, want \"0 1 shell\"", state)
		}
		term.line("clear; fg")
		term.await(`pipeline\.c:\d+`)
		waitFor(t, "both to continue", func() bool { return !stopped(pid) && !stopped(program) })
		term.await(typed)
	}
	term.keys("_")
	term.await("/pipe__")
	term.keys("Escape")
	term.await(`none lost`)
	term.keys("q")
	term.await(`\[t\]erminate`)
	term.keys("t")
	term.await(`ended by signal 15`)
}

func TestCtrlCInTheDashboard(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	term := openTerminal(t, 120, 36)
	term.run(dir, gpumemtop(), "-o", dir+"/x.gmt", "--", example("stencil"), "1000000", "1M")
	term.await(`stencil\.c:\d+`)
	term.keys("C-c")
	term.leave()
	term.await(`status=130`)
	term.await(`(?m)^done`)
	term.checkRestored(dir)
	checkReport(t, dir+"/x.gmt", "stencil.c")
}

func TestCrashUnderTheDashboardRestoresTheTerminal(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	term := openTerminal(t, 80, 40)
	term.run(dir, gpumemtop(), "-o", dir+"/x.gmt", "--", fault("crash"), "2000")
	term.leave()
	term.await(`status=139`)
	term.await(`(?m)^done`)
	term.checkRestored(dir)
	if bare := runBare(t, fault("crash"), "2000"); !strings.Contains(term.screen(), strings.TrimSpace(string(bare.stdout))) {
		t.Errorf("what the program printed is lost:\n%s", term.screen())
	}
}

// The dashboard draws on the terminal even when the program's output goes to a file, and that holds nothing else.
func TestRedirectedOutputUnderTheDashboard(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	bare := runBare(t, example("stencil"), "200", "1M")
	term := openTerminal(t, 120, 36)
	term.run(dir, gpumemtop(), "--", example("stencil"), "200", "1M", ">", dir+"/out")
	term.leave()
	term.await(`status=0`)
	term.await(`(?m)^done`)
	term.checkRestored(dir)
	if out, err := os.ReadFile(dir + "/out"); err != nil || string(out) != string(bare.stdout) {
		t.Errorf("the file holds %q, %v; bare %q", out, err, bare.stdout)
	}
}

// In a pipeline the other end may write to the terminal: all that it prints is seen, unless the user wants a dashboard.
func TestNoDashboardInAPipeline(t *testing.T) {
	t.Parallel()
	const line = "standard output is a pipe: no dashboard"
	program := strings.Join([]string{gpumemtop(), "--", "sh", "-c", "'echo begun; exec " + example("tiny") + "'"}, " ")
	for _, reader := range []string{"cat", "grep -v xyz", "tee /dev/null"} {
		dir := t.TempDir()
		term := openTerminal(t, 120, 36)
		term.run(dir, program, "|", reader)
		term.await(`(?m)^done`)
		term.checkRestored(dir)
		if screen := term.screen(); !strings.Contains(screen, "\nbegun\n") || strings.Count(screen, line) != 1 || !strings.Contains(screen, "hit rate") {
			t.Errorf("| %s shows:\n%s", reader, screen)
		}
	}
	dir := t.TempDir()
	term := openTerminal(t, 120, 36)
	term.run(dir, strings.Replace(program, "--", "--dashboard --", 1), "|", "cat", ">", dir+"/out")
	term.leave()
	term.await(`(?m)^done`)
	term.checkRestored(dir)
	if out := readFile(t, dir+"/out"); !strings.HasPrefix(out, "begun\n") || strings.Contains(term.screen(), line) {
		t.Errorf("with --dashboard the reader has %q:\n%s", out, term.screen())
	}
	term = openTerminal(t, 120, 36)
	term.run(dir, gpumemtop(), "record", "-o", dir+"/x.gmt", example("tiny"), "|", "cat")
	term.await(`(?m)^done`)
	if strings.Contains(term.screen(), line) {
		t.Errorf("record, which has no dashboard, misses it:\n%s", term.screen())
	}
}

// A terminal that is closed takes the program with it, as it would without gpumemtop, and the recording is whole.
func TestClosedTerminal(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	term := openTerminal(t, 120, 36)
	term.run(dir, "echo $$ > "+dir+"/shell;", gpumemtop(), "-o", dir+"/x.gmt", "--", example("stencil"), "1000000", "1M")
	term.await(`stencil\.c:\d+`)
	text, err := os.ReadFile(dir + "/shell")
	if err != nil {
		t.Fatal(err)
	}
	shell, err := strconv.Atoi(strings.TrimSpace(string(text)))
	if err != nil {
		t.Fatal(err)
	}
	target := awaitDescendant(t, shell, "stencil")
	tool := awaitDescendant(t, shell, "gpumemtop")
	awaitGrowth(t, dir+"/x.gmt")
	term.tmux("kill-server")
	waitFor(t, "both to end", func() bool { return !alive(target) && !alive(tool) })
	checkReport(t, dir+"/x.gmt", "stencil.c")
}

// A program that the closing of the terminal spares ends in its own time, and then gpumemtop does.
func TestClosedTerminalIsIgnored(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	term := openTerminal(t, 120, 36)
	term.run(dir, "echo $$ > "+dir+"/shell; trap '' HUP;", gpumemtop(), "-o", dir+"/x.gmt", "--", "sh -c '"+example("stencil")+" 20 1M; sleep 3; echo over > "+dir+"/over'")
	term.await(`stencil\.c:\d+`)
	shell, err := strconv.Atoi(strings.TrimSpace(readFile(t, dir+"/shell")))
	if err != nil {
		t.Fatal(err)
	}
	tool := awaitDescendant(t, shell, "gpumemtop")
	term.tmux("kill-server")
	waitFor(t, "gpumemtop to end", func() bool { return !alive(tool) })
	readFile(t, dir+"/over")
	checkReport(t, dir+"/x.gmt", "stencil.c")
}

// Nothing is asked of the terminal by commands that do not draw: a terminal that never answers must not delay them.
func TestVersionWritesNoEscapes(t *testing.T) {
	term := openTerminal(t, 80, 24)
	dir := t.TempDir()
	term.run(dir, "script -q -c '"+gpumemtop()+" --version' "+dir+"/typescript > /dev/null")
	term.await(`(?m)^done`)
	text, err := os.ReadFile(dir + "/typescript")
	if err != nil {
		t.Fatal(err)
	}
	if !strings.Contains(string(text), "gpumemtop") || strings.Contains(string(text), "\x1b") {
		t.Errorf("--version wrote %q", text)
	}
}

// childOf returns the only child of a process; any of its threads may have started it.
func childOf(t *testing.T, pid string) string {
	t.Helper()
	lists, _ := filepath.Glob("/proc/" + pid + "/task/*/children")
	var children []string
	for _, list := range lists {
		children = append(children, strings.Fields(readFile(t, list))...)
	}
	if len(children) != 1 {
		t.Fatalf("children %v", children)
	}
	return children[0]
}

func readFile(t *testing.T, path string) string {
	t.Helper()
	b, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	return string(b)
}
