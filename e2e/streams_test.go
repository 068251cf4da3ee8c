package e2e

import (
	"bytes"
	"crypto/sha256"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
)

// What the program prints is kept, byte for byte, and what gpumemtop adds comes after it and on stderr alone.
func TestNoisyStderrIsKept(t *testing.T) {
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
	if !result.sameEnd(bare) || !bytes.Equal(result.stdout, bare.stdout) {
		t.Errorf("%s %q, bare %s %q", result, result.stdout, bare, bare.stdout)
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

func TestSignalsReachTheProgram(t *testing.T) {
	// Long enough that it is still there when the last signal comes, on a busy machine.
	bare := runBare(t, fault("stubborn"), "300")
	p := start(t, command{args: []string{gpumemtop(), "--headless", "--", fault("stubborn"), "300"}})
	target := awaitDescendant(t, p.cmd.Process.Pid, "stubborn")
	waitFor(t, "stubborn to be ready", func() bool { return catches(target, syscall.SIGUSR2) })
	for _, signal := range []syscall.Signal{
		syscall.SIGINT, syscall.SIGTERM, syscall.SIGHUP, syscall.SIGQUIT, syscall.SIGUSR1, syscall.SIGUSR2,
	} {
		if err := syscall.Kill(p.cmd.Process.Pid, signal); err != nil {
			t.Fatal(err)
		}
		line := fmt.Sprintf("stubborn: ignored signal %02d\n", int(signal))
		waitFor(t, signal.String()+" to arrive", func() bool { return contains(p.stderr.bytes(), line) })
	}
	result := p.wait()
	if !result.sameEnd(bare) || !bytes.Equal(result.stdout, bare.stdout) {
		t.Errorf("after six ignored signals: %s %q, bare %s %q", result, result.stdout, bare, bare.stdout)
	}
}

func TestInterruptEndsBothAndKeepsTheRecording(t *testing.T) {
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
	p := start(t, command{args: []string{gpumemtop(), "--headless", "--", fault("stubborn"), "20"}, env: env})
	awaitDescendant(t, p.cmd.Process.Pid, "stubborn")
	entries, err := os.ReadDir(base)
	if err != nil {
		t.Fatal(err)
	}
	for _, entry := range entries {
		if !entry.IsDir() || !strings.HasPrefix(entry.Name(), "gpumemtop") {
			continue // what the driver makes is its own affair
		}
		if info, err := entry.Info(); err == nil && info.Mode().Perm() != 0o700 {
			t.Errorf("%s has mode %v, want 0700", entry.Name(), info.Mode().Perm())
		}
	}
	p.wait()
	left, err := filepath.Glob(filepath.Join(base, "gpumemtop*"))
	if err != nil || len(left) != 0 {
		t.Errorf("left behind: %v, %v", left, err)
	}
}
