package session

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"codeberg.org/gpumemtop/gpumemtop/internal/recording"
	"codeberg.org/gpumemtop/gpumemtop/internal/stats"
	"codeberg.org/gpumemtop/gpumemtop/internal/wire"
)

// testOptions are those of a session whose streams are files of the test.
func testOptions(t *testing.T, command ...string) Options {
	t.Helper()
	t.Setenv("XDG_RUNTIME_DIR", t.TempDir())
	path, err := FindProgram(command[0])
	if err != nil {
		t.Fatal(err)
	}
	library := emptyLibrary(t)
	null, err := os.OpenFile(os.DevNull, os.O_RDWR, 0)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = null.Close() })
	return Options{
		Command: append([]string{path}, command[1:]...), Name: command[0],
		Config: wire.Config{Policy: "none", StackDepth: 1},
		Shim:   func() (io.Reader, error) { return bytes.NewReader(library), nil },
		Core:   func() (io.Reader, error) { return nil, errors.New("the core was asked for") },
		Model:  stats.New(stats.Options{Program: command[0]}),
		Stdin:  null, Stdout: null, Stderr: null,
		Warn: func(text string) { t.Errorf("warning: %s", text) },
	}
}

func run(t *testing.T, o Options) Result {
	t.Helper()
	result := untilEnd(t, o)
	if left, _ := filepath.Glob(filepath.Join(os.Getenv("XDG_RUNTIME_DIR"), "*")); len(left) > 0 {
		t.Errorf("left behind: %v", left)
	}
	return result
}

func untilEnd(t *testing.T, o Options) Result {
	t.Helper()
	s, err := Start(o)
	if err != nil {
		t.Fatal(err)
	}
	result, err := s.Wait()
	if err != nil {
		t.Fatal(err)
	}
	return result
}

// collectFile returns a file to give away and a function that returns what was written to it.
func collectFile(t *testing.T) (*os.File, func() string) {
	t.Helper()
	r, w, err := os.Pipe()
	if err != nil {
		t.Fatal(err)
	}
	text := readAll(r)
	return w, func() string {
		_ = w.Close()
		return text()
	}
}

// readAll reads in the background; the function returned waits for the end.
func readAll(r io.Reader) func() string {
	var b bytes.Buffer
	var done sync.WaitGroup
	done.Go(func() { _, _ = io.Copy(&b, r) }) // a terminal ends with EIO
	return func() string {
		done.Wait()
		return b.String()
	}
}

func TestExitStatus(t *testing.T) {
	tests := map[string]Status{
		"exit 0":        {},
		"exit 7":        {Code: 7},
		"exit 200":      {Code: 200},
		"kill -SEGV $$": {Signal: 11},
		"kill -TERM $$": {Signal: 15},
		"kill -KILL $$": {Signal: 9},
	}
	for script, want := range tests {
		t.Run(script, func(t *testing.T) {
			if got := run(t, testOptions(t, "sh", "-c", script)).Status; got != want {
				t.Errorf("status %v, want %v", got, want)
			}
		})
	}
}

func TestOpenCLProcess(t *testing.T) {
	self, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	t.Setenv(roleEnv, "opencl")
	o := testOptions(t, "sh", "-c", self+"; exit 4")
	o.Warn = func(string) {}
	kept := &memoryRecorder{}
	o.Recorder = kept
	result := run(t, o)
	if want := (Status{Code: 4}); result.Status != want {
		t.Errorf("status %v, want %v", result.Status, want)
	}
	if got, want := strings.Replace(kept.kinds(), " 1:diag", "", 1), "1:process 1:create 1:create 1:create 1:exit 1:exit"; got != want {
		t.Errorf("recorded %s\n   want %s", got, want)
	}
	p := result.Snapshot.Processes[0]
	if p.Program != "fake" || !slices.Equal(p.Arguments, []string{"--flag"}) || p.Totals.Creates != 3 || p.State != stats.Exited {
		t.Errorf("process %+v", p)
	}
}

func TestGarbageOnTheSocket(t *testing.T) {
	self, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	t.Setenv(roleEnv, "garbage")
	o := testOptions(t, "sh", "-c", self)
	var mu sync.Mutex
	var warnings []string
	o.Warn = func(text string) {
		mu.Lock()
		defer mu.Unlock()
		warnings = append(warnings, text)
	}
	if result := run(t, o); result.Status != (Status{}) || len(result.Snapshot.Processes) != 0 {
		t.Errorf("status %v, processes %v", result.Status, result.Snapshot.Processes)
	}
	if len(warnings) != 1 || !strings.Contains(warnings[0], "hello") {
		t.Errorf("warnings %q, want one about the hello", warnings)
	}
}

func TestManyProcesses(t *testing.T) {
	self, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	t.Setenv(roleEnv, "opencl")
	before := openFiles(t)
	o := testOptions(t, "sh", "-c", "for i in 1 2 3 4 5 6 7 8; do "+self+" & done; wait")
	kept := &memoryRecorder{}
	o.Recorder = kept
	result := run(t, o)
	if n := len(result.Snapshot.Processes); n != 8 || result.Snapshot.Totals.Creates != 24 {
		t.Errorf("%d processes with %d creates, want 8 with 24", n, result.Snapshot.Totals.Creates)
	}
	after := openFiles(t)
	for end := time.Now().Add(10 * time.Second); after > before+3 && time.Now().Before(end); after = openFiles(t) {
		time.Sleep(time.Millisecond) // the sampler may still look at the last ones
	}
	if after > before+3 { // the test's own
		t.Errorf("%d files open, %d before", after, before)
	}
}

func openFiles(t *testing.T) int {
	t.Helper()
	entries, err := os.ReadDir("/proc/self/fd")
	if err != nil {
		t.Fatal(err)
	}
	return len(entries)
}

func TestStartErrors(t *testing.T) {
	dir := t.TempDir()
	files := map[string]os.FileMode{"plain": 0o644, "noformat": 0o755, "nointerpreter": 0o755}
	for name, mode := range files {
		text := "echo hi\n"
		if name == "nointerpreter" {
			text = "#!/no/such/program\n"
		}
		if err := os.WriteFile(filepath.Join(dir, name), []byte(text), mode); err != nil {
			t.Fatal(err)
		}
	}
	tests := []struct {
		name string
		want error
	}{
		{"/no/such/program", ErrNotFound},
		{"no-such-program-anywhere", ErrNotFound},
		{filepath.Join(dir, "plain"), ErrNotExecutable},
		{dir, ErrNotExecutable},
		{filepath.Join(dir, "noformat"), ErrNotExecutable},
		{filepath.Join(dir, "nointerpreter"), ErrNotFound},
	}
	for _, test := range tests {
		path, err := FindProgram(test.name)
		if err == nil {
			o := testOptions(t, "true")
			o.Command = []string{path}
			_, err = Start(o)
		}
		if !errors.Is(err, test.want) || strings.Contains(err.Error(), "\n") {
			t.Errorf("%s: %v, want one line of %v", test.name, err, test.want)
		}
	}
}

func TestRecordingIsNoProgram(t *testing.T) {
	path := filepath.Join(t.TempDir(), "run.gmt")
	w, err := recording.Create(path, recording.Header{}, false)
	if err == nil {
		err = w.Close(recording.Footer{})
	}
	if err != nil {
		t.Fatal(err)
	}
	if _, err := FindProgram(path); !errors.Is(err, ErrNotExecutable) || !strings.HasSuffix(err.Error(), "it is a recording: gpumemtop report "+path) {
		t.Errorf("%v", err)
	}
	t.Chdir(filepath.Dir(path))
	if _, err := FindProgram("run.gmt"); !errors.Is(err, ErrNotExecutable) {
		t.Errorf("%v", err)
	}
}

// terminal is a terminal of the test's, with what appears on it.
func terminal(t *testing.T) (slave, master *os.File) {
	t.Helper()
	master, slave, err := openTerminal()
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		_ = slave.Close()
		_ = master.Close()
	})
	return slave, master
}

func TestCaptureReplaysEverything(t *testing.T) {
	tests := map[string]struct{ script, out, err string }{
		"terminals":    {`test -t 0 && test -t 1 && test -t 2 && echo yes`, "yes\n", ""},
		"no newline":   {`printf prompt`, "prompt", ""},
		"both streams": {`echo out; echo err >&2`, "out\n", "err\n"},
		"nothing":      {`:`, "", ""},
		"burst":        {`head -c 1000000 /dev/zero | tr '\0' x >&2; echo done`, "done\n", strings.Repeat("x", 1_000_000)},
		"large":        {`seq 1 400000`, sequence(400000), ""},
		"size":         {`stty size <&1`, "30 100\n", ""},
		"carriage":     {`printf 'a\r\nb\n'`, "a\r\nb\n", ""},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			o := testOptions(t, "sh", "-c", test.script)
			o.Capture, o.Cols, o.Rows = true, 100, 30
			outSlave, outMaster := terminal(t)
			errSlave, errMaster := terminal(t)
			if err := setRawOutput(outSlave); err != nil {
				t.Fatal(err)
			}
			if err := setRawOutput(errSlave); err != nil {
				t.Fatal(err)
			}
			o.Stdin, o.Stdout, o.Stderr = outSlave, outSlave, errSlave
			stdout, stderr := readAll(outMaster), readAll(errMaster)
			if got := run(t, o).Status; got != (Status{}) {
				t.Errorf("status %v", got)
			}
			_ = outSlave.Close()
			_ = errSlave.Close()
			if got := stdout(); got != test.out {
				t.Errorf("stdout: %s", difference(got, test.out))
			}
			if got := stderr(); got != test.err {
				t.Errorf("stderr: %s", difference(got, test.err))
			}
		})
	}
}

func sequence(n int) string {
	out, err := exec.Command("seq", "1", strconv.Itoa(n)).Output()
	if err != nil {
		panic(err)
	}
	return string(out)
}

func difference(got, want string) string {
	i := 0
	for i < len(got) && i < len(want) && got[i] == want[i] {
		i++
	}
	return fmt.Sprintf("got %d bytes, want %d, alike for %d", len(got), len(want), i)
}

func TestCaptureLeavesRedirectionsAlone(t *testing.T) {
	o := testOptions(t, "sh", "-c", `test -t 1 || echo file; test -t 2 && echo terminal >&2; cat`)
	o.Capture = true
	slave, master := terminal(t)
	stderr := readAll(master)
	stdout, text := collectFile(t)
	input, err := os.CreateTemp(t.TempDir(), "input")
	if err != nil {
		t.Fatal(err)
	}
	if _, err := input.WriteAt([]byte("from stdin\n"), 0); err != nil {
		t.Fatal(err)
	}
	o.Stdin, o.Stdout, o.Stderr = input, stdout, slave
	run(t, o)
	_ = slave.Close()
	if got := text(); got != "file\nfrom stdin\n" {
		t.Errorf("stdout %q", got)
	}
	if got := stderr(); got != "terminal\r\n" {
		t.Errorf("stderr %q", got)
	}
}

func TestRevealPassesKeysOn(t *testing.T) {
	o := testOptions(t, "sh", "-c", `echo ready; read line; echo "got $line"`)
	o.Capture = true
	slave, master := terminal(t)
	o.Stdin, o.Stdout, o.Stderr = slave, slave, slave
	s, err := Start(o)
	if err != nil {
		t.Fatal(err)
	}
	// The relay wants to be in the terminal's foreground, which a test's terminal does not have: feed it directly.
	if err := s.EndCapture(true); err != nil {
		t.Fatal(err)
	}
	if _, err := s.streams.masters[0].WriteString("keys\n"); err != nil {
		t.Fatal(err)
	}
	text := readAll(master)
	if result, err := s.Wait(); err != nil || result.Status != (Status{}) {
		t.Fatalf("%v, %v", result.Status, err)
	}
	_ = slave.Close()
	if got := text(); !strings.HasSuffix(got, "got keys\r\n") || !strings.Contains(got, "ready") {
		t.Errorf("terminal shows %q", got)
	}
}

func TestSignalsReachTheProgram(t *testing.T) {
	for _, capture := range []bool{false, true} {
		o := testOptions(t, "sh", "-c", `trap 'echo usr1; exit 5' USR1; echo ready; while :; do sleep 0.01; done`)
		o.Capture = capture
		slave, master := terminal(t)
		o.Stdin, o.Stdout, o.Stderr = slave, slave, slave
		s, err := Start(o)
		if err != nil {
			t.Fatal(err)
		}
		if !capture {
			readUntil(t, master, "ready")
		} else {
			for lines, next := s.OutputSince(0); len(lines) == 0; lines, next = s.OutputSince(next) {
			}
		}
		if err := syscall.Kill(os.Getpid(), syscall.SIGUSR1); err != nil { // to us: it is forwarded
			t.Fatal(err)
		}
		if result, err := s.Wait(); err != nil || result.Status != (Status{Code: 5}) {
			t.Errorf("capture %v: %v, %v, want exit status 5", capture, result.Status, err)
		}
	}
}

func readUntil(t *testing.T, r io.Reader, want string) {
	t.Helper()
	var text []byte
	buffer := make([]byte, 100)
	for !strings.Contains(string(text), want) {
		n, err := r.Read(buffer)
		if err != nil {
			t.Fatal(err)
		}
		text = append(text, buffer[:n]...)
	}
}

func TestDescendantsAreNotWaitedFor(t *testing.T) {
	for _, capture := range []bool{false, true} {
		o := testOptions(t, "sh", "-c", `trap '' HUP; (sleep 60; :) & echo $!`)
		o.Capture = capture
		slave, master := terminal(t)
		o.Stdin, o.Stdout, o.Stderr = slave, slave, slave
		text := readAll(master)
		var warnings []string
		o.Warn = func(text string) { warnings = append(warnings, text) }
		untilEnd(t, o) // the test's own time limit says whether it waited
		left, _ := filepath.Glob(filepath.Join(os.Getenv("XDG_RUNTIME_DIR"), "*", "*"))
		if len(left) != 1 || filepath.Base(left[0]) != wire.ShimName || len(warnings) != 1 || !strings.Contains(warnings[0], "outlive") {
			t.Errorf("left for the descendant: %v; warnings: %q", left, warnings)
		}
		_ = slave.Close()
		if !capture { // the sleeper holds the slave
			_ = master.Close()
		}
		if _, err := exec.Command("kill", strings.TrimSpace(text())).CombinedOutput(); err != nil && capture {
			t.Logf("the descendant is gone already: %v", err)
		}
	}
}

func TestDieBySameSignal(t *testing.T) {
	for _, sig := range []syscall.Signal{unix.SIGSEGV, unix.SIGTERM, unix.SIGKILL, unix.SIGABRT, unix.SIGPIPE} {
		self, err := os.Executable()
		if err != nil {
			t.Fatal(err)
		}
		cmd := exec.Command(self)
		cmd.Env = append(os.Environ(), roleEnv+"="+strconv.Itoa(int(sig)))
		out, _ := cmd.CombinedOutput()
		if got := newStatus(cmd.ProcessState); got != (Status{Signal: int(sig)}) || len(out) > 0 {
			t.Errorf("%v: ended with %v and said %q", sig, got, out)
		}
	}
}

// However often processes are refused, one line says so.
func TestRefusalsAreReportedOnce(t *testing.T) {
	path := filepath.Join(t.TempDir(), "socket")
	var warnings []string
	var mu sync.Mutex
	a, err := listenForProcesses(path, func(*peer) { t.Error("joined") }, func(text string) {
		mu.Lock()
		defer mu.Unlock()
		warnings = append(warnings, text)
	})
	if err != nil {
		t.Fatal(err)
	}
	for range 3 {
		pair, err := unix.Socketpair(unix.AF_UNIX, unix.SOCK_SEQPACKET|unix.SOCK_CLOEXEC, 0)
		if err != nil {
			t.Fatal(err)
		}
		end := os.NewFile(uintptr(pair[0]), "refused")
		conn, err := net.FileConn(end)
		if err = errors.Join(err, end.Close(), unix.Close(pair[1])); err != nil {
			t.Fatal(err)
		}
		a.receiveProcess(conn.(*net.UnixConn))
	}
	_ = a.listener.Close()
	if len(warnings) != 1 || !strings.Contains(warnings[0], "a process is not watched") {
		t.Errorf("warnings: %q", warnings)
	}
}

// What processes say of themselves comes to one reason of each kind, clean, however often they say it and by which way.
func TestOutsiders(t *testing.T) {
	path := filepath.Join(t.TempDir(), wire.OutsidersName)
	var children []string
	s, err := listenToOutsiders(path, func(pid int, function string) { children = append(children, fmt.Sprint(pid, function)) })
	if err != nil {
		t.Fatal(err)
	}
	for _, name := range []string{path, "@" + path} {
		send := exec.Command("python3", "-c", `import socket, sys
s = socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM)
name = sys.argv[1].replace("@", "\0")
if name[0] == "/": s.sendto(b"\0037 clCreateBuffer\0", name); s.sendto(b"\3x", name)
for i in range(20): s.sendto(b"\0", name); s.sendto(b"\33[31m" * 1000, name)`, name)
		if out, err := send.CombinedOutput(); err != nil {
			t.Fatalf("%v: %s", err, out)
		}
	}
	got := s.unwatchedReasons()
	if !slices.Equal(children, []string{"7clCreateBuffer"}) {
		t.Errorf("children %q", children)
	}
	if len(got) != 2 || !strings.Contains(got[0], "a sandbox") || !strings.Contains(got[1], `it started "\x1b[31m`) || len(got[1]) > 4*wire.OutsiderMax {
		t.Errorf("%q", got)
	}
}
