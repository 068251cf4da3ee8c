package e2e

import (
	"bytes"
	"crypto/sha256"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"golang.org/x/sys/unix"
)

// What the program prints is kept, byte for byte, and what gpumemtop adds comes after it and on stderr alone.
func TestNoisyStderrIsKept(t *testing.T) {
	t.Parallel()
	bare := runBare(t, fault("noisy"))
	if len(bare.stderr) != 1<<20 {
		t.Fatalf("noisy wrote %d bytes, the test is wrong", len(bare.stderr))
	}
	result, _ := runUnder(t, "futhark", command{args: []string{fault("noisy")}})
	rest, ok := bytes.CutPrefix(result.stderr, bare.stderr)
	if !ok {
		t.Errorf("stderr of the program changed: %d bytes, sum %x; here %d bytes", len(bare.stderr), sha256.Sum256(bare.stderr), len(result.stderr))
	}
	if lines := bytes.Count(rest, []byte("\n")); lines > 12 {
		t.Errorf("the summary has %d lines, at most 12 were promised:\n%s", lines, rest)
	}
	if !bytes.Equal(result.stdout, bare.stdout) {
		t.Errorf("stdout %q, bare %q", result.stdout, bare.stdout)
	}
}

func TestStdinReachesTheProgram(t *testing.T) {
	input := bytes.Repeat([]byte("all that is typed, all that is piped\n"), 20000)
	bare := run(t, command{args: []string{fault("reader")}, stdin: bytes.NewReader(input)})
	result, _ := runUnder(t, "pow2", command{args: []string{fault("reader")}, stdin: bytes.NewReader(input)})
	if difference := differs(bare, result); difference != "" {
		t.Error(difference)
	}
}

// Redirected streams are the very same files in the program.
func TestRedirectedStreamsAreUntouched(t *testing.T) {
	dir := t.TempDir()
	script := fmt.Sprintf(`exec < /dev/null > %[1]s/out 2> %[1]s/err; exec %[2]s --headless -- readlink /proc/self/fd/0 /proc/self/fd/1 /proc/self/fd/2`, dir, gpumemtop())
	result := run(t, command{args: []string{"sh", "-c", script}})
	out, err := os.ReadFile(filepath.Join(dir, "out"))
	if err != nil {
		t.Fatal(err)
	}
	want := fmt.Sprintf("/dev/null\n%[1]s/out\n%[1]s/err\n", dir)
	if result.code != 0 || string(out) != want {
		t.Errorf("%s: the program's streams are\n%s, want\n%s", result, out, want)
	}
}

// A stream that is closed stays closed in the program.
func TestClosedStreamsStayClosed(t *testing.T) {
	const list = `for n in 0 1 2; do [ -e /proc/$$/fd/$n ] && echo $n >>"$0"; done; :`
	for n := range 3 {
		file := filepath.Join(t.TempDir(), "open")
		script := fmt.Sprintf(`exec "$@" %d>&-`, n)
		result := run(t, command{args: []string{"sh", "-c", script, "sh", gpumemtop(), "--headless", "--", "sh", "-c", list, file}})
		text, err := os.ReadFile(file)
		if want := strings.Replace("0\n1\n2\n", itoa(n)+"\n", "", 1); err != nil || result.code != 0 || string(text) != want {
			t.Errorf("%d closed: %s, open are %q, %v", n, result, text, err)
		}
	}
}

// A reader of gpumemtop's messages that has ended changes neither the status nor the recording.
func TestMessagesWithoutAReader(t *testing.T) {
	dir := t.TempDir()
	status, file := filepath.Join(dir, "status"), filepath.Join(dir, "x.gmt")
	const script = `{ "$@" 2>&1 >/dev/null; echo $? >"$0"; } | :`
	run(t, command{args: []string{"sh", "-c", script, status, gpumemtop(), "record", "-o", file, "--", example("tiny")}})
	if text, err := os.ReadFile(status); err != nil || string(text) != "0\n" {
		t.Errorf("status %q, %v", text, err)
	}
	if r := run(t, command{args: []string{gpumemtop(), "info", file}}); r.code != 0 || contains(r.stderr, "not whole") {
		t.Errorf("%s: %s", r, r.stderr)
	}
}

// A summary goes through a pipe with a name. Without a reader it waits for one, until the first signal.
func TestSummaryThroughAPipe(t *testing.T) {
	pipe := filepath.Join(t.TempDir(), "pipe")
	if err := unix.Mkfifo(pipe, 0o600); err != nil {
		t.Fatal(err)
	}
	c := command{args: []string{gpumemtop(), "--headless", "--summary", pipe, "--", example("tiny")}}
	read := make(chan []byte)
	go func() {
		text, _ := os.ReadFile(pipe)
		read <- text
	}()
	if r := run(t, c); r.code != 0 || !json.Valid(<-read) {
		t.Errorf("%s: %s", r, r.stderr)
	}
	for _, signal := range []syscall.Signal{syscall.SIGINT, syscall.SIGTERM} {
		p := start(t, c)
		waitFor(t, "the summary", func() bool { return contains(p.stderr.bytes(), "top tags") })
		signalTo(t, p.cmd.Process.Pid, signal)
		signalled := time.Now()
		if r := p.wait(); r.code != 0 || time.Since(signalled) > deaf || !contains(r.stderr, pipe+": nothing takes it") {
			t.Errorf("%s after %v: %s", r, time.Since(signalled), r.stderr)
		}
	}
}

// openStdin is a stdin that lasts until end is called: what reads it cannot be over before.
func openStdin(t *testing.T) (stdin *os.File, end func()) {
	t.Helper()
	stdin, writer, err := os.Pipe()
	if err != nil {
		t.Fatal(err)
	}
	end = sync.OnceFunc(func() {
		if err := errors.Join(stdin.Close(), writer.Close()); err != nil {
			t.Error(err)
		}
	})
	t.Cleanup(end)
	return stdin, end
}

func TestSignalsReachTheProgram(t *testing.T) {
	t.Parallel()
	bare := runBare(t, fault("stubborn"), "20")
	stdin, end := openStdin(t)
	p := start(t, command{args: []string{gpumemtop(), "--headless", "--", fault("stubborn"), "20"}, stdin: stdin})
	waitFor(t, "stubborn to be ready", func() bool { return contains(p.stderr.bytes(), "stubborn: ready\n") })
	for _, signal := range []syscall.Signal{
		syscall.SIGINT, syscall.SIGTERM, syscall.SIGHUP, syscall.SIGQUIT, syscall.SIGUSR1, syscall.SIGUSR2,
	} {
		if err := syscall.Kill(p.cmd.Process.Pid, signal); err != nil {
			t.Fatal(err)
		}
		line := fmt.Sprintf("stubborn: ignored signal %02d\n", int(signal))
		waitFor(t, signal.String()+" to arrive", func() bool { return contains(p.stderr.bytes(), line) })
	}
	end()
	if difference := differs(bare, p.wait()); difference != "" {
		t.Errorf("after six ignored signals: %s", difference)
	}
}

func TestInterruptEndsBothAndKeepsTheRecording(t *testing.T) {
	t.Parallel()
	for _, signal := range []syscall.Signal{syscall.SIGINT, syscall.SIGTERM, syscall.SIGHUP} {
		t.Run(signal.String(), func(t *testing.T) {
			file := filepath.Join(t.TempDir(), "x.gmt")
			p := start(t, command{args: []string{gpumemtop(), "record", "-o", file, "--", example("stencil"), "1000000", "1M"}})
			target := awaitDescendant(t, p.cmd.Process.Pid, "stencil")
			awaitGrowth(t, file)
			if err := syscall.Kill(p.cmd.Process.Pid, signal); err != nil {
				t.Fatal(err)
			}
			result := p.wait()
			if result.signal != signal {
				t.Errorf("ended with %s, want %s: the program has no handler\n%s", result, signal, result.stderr)
			}
			if alive(target) {
				t.Error("the program still runs")
			}
			checkReport(t, file, "stencil")
		})
	}
}

// The runtime folder is private while it is there, and gone afterwards.
func TestRuntimeFolderIsPrivateAndRemoved(t *testing.T) {
	base := t.TempDir()
	env := []string{"XDG_RUNTIME_DIR=" + base, "TMPDIR=" + base}
	stdin, end := openStdin(t)
	p := start(t, command{args: []string{gpumemtop(), "--headless", "--", fault("stubborn"), "5"}, env: env, stdin: stdin})
	awaitDescendant(t, p.cmd.Process.Pid, "stubborn")
	entries, err := os.ReadDir(base)
	if err != nil {
		t.Fatal(err)
	}
	folders := 0
	for _, entry := range entries {
		if !entry.IsDir() || !strings.HasPrefix(entry.Name(), "gpumemtop") {
			continue // what the driver makes is its own affair
		}
		folders++
		info, err := entry.Info()
		if err != nil {
			t.Fatal(err)
		}
		if info.Mode().Perm()&^0o011 != 0o700 {
			t.Errorf("%s has mode %v: others may read it or write there", entry.Name(), info.Mode().Perm())
		}
	}
	if folders != 1 {
		t.Errorf("%d runtime folders during a run, want one: %v", folders, entries)
	}
	end()
	p.wait()
	left, err := filepath.Glob(filepath.Join(base, "gpumemtop*"))
	if err != nil || len(left) != 0 {
		t.Errorf("left behind: %v, %v", left, err)
	}
}
