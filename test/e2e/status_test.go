package e2e

import (
	"bytes"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
)

// TestExitStatusIsTheTargets: gpumemtop ends as its program does, by exit and by signal.
func TestExitStatusIsTheTargets(t *testing.T) {
	t.Parallel()
	for _, test := range []struct {
		name   string
		args   []string
		code   int
		signal syscall.Signal
	}{
		{"success", []string{example("tiny")}, 0, 0},
		{"usage error of the program", []string{example("tiny"), "--bad"}, 1, 0},
		{"exit 200", []string{"sh", "-c", "exit 200"}, 200, 0},
		{"_exit with buffers alive", []string{fault("quitter")}, 7, 0},
		{"status that gpumemtop also uses", []string{fault("quitter"), "125"}, 125, 0},
		{"segmentation fault after OpenCL", []string{fault("crash")}, -1, syscall.SIGSEGV},
		{"killed by itself", []string{"sh", "-c", "kill -KILL $$"}, -1, syscall.SIGKILL},
		{"terminated", []string{"sh", "-c", "kill -TERM $$"}, -1, syscall.SIGTERM},
	} {
		t.Run(test.name, func(t *testing.T) {
			bare := runBare(t, test.args...)
			if bare.code != test.code || bare.signal != test.signal {
				t.Fatalf("bare: ended with %s, the test is wrong", bare)
			}
			for _, policy := range []string{"none", "futhark"} {
				result, _ := runUnder(t, policy, command{args: test.args})
				if difference := differs(bare, result); difference != "" {
					t.Errorf("%s: %s", policy, difference)
				}
			}
		})
	}
}

// misuse is a command line that is wrong; gpumemtop reports it in one line and changes nothing.
type misuse struct {
	name string
	args []string
	code int
	say  string // what the line must mention
}

func TestMisuseIsOneLine(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	write := func(name, text string) string {
		path := filepath.Join(dir, name)
		if err := os.WriteFile(path, []byte(text), 0o644); err != nil {
			t.Fatal(err)
		}
		return path
	}
	script := write("script", "#!/bin/sh\nexit 0\n")
	taken := write("taken.gmt", "precious\n")
	text := write("text.gmt", "this is no recording\n")
	empty := write("empty.gmt", "")
	tiny := example("tiny")
	for _, test := range []misuse{
		{"unknown policy", []string{"--policy", "futhork", "--", tiny}, 125, "futhork"},
		{"bad size", []string{"--max-cached", "12Q", "--", tiny}, 125, "12Q"},
		{"unknown scrub", []string{"--scrub", "bleach", "--", tiny}, 125, "bleach"},
		{"scrub without a pool", []string{"--policy", "none", "--scrub", "zero", "--", tiny}, 125, "--scrub"},
		{"no card", []string{"--device-memory", "0", "--", tiny}, 125, "want 1.00 KiB or more"},
		{"fit without a program", []string{"fit"}, 125, "fit"},
		{"fit of no such program", []string{"fit", "--", filepath.Join(dir, "nothing")}, 127, "nothing"},
		{"unknown limit", []string{"--set", "max_cashed=1", "--", tiny}, 125, "max_cashed"},
		{"unknown flag", []string{"--frobnicate", tiny}, 125, "frobnicate"},
		{"no such program", []string{"--", filepath.Join(dir, "nothing")}, 127, "nothing"},
		{"no such command", []string{"--", "gpumemtop-no-such-command"}, 127, "gpumemtop-no-such-command"},
		{"not executable", []string{"--", script}, 126, "script"},
		{"a folder as program", []string{"--", dir}, 126, filepath.Base(dir)},
		{"record without a program", []string{"record", "-o", filepath.Join(dir, "x.gmt")}, 125, ""},
		{"folder of the output missing", []string{"record", "-o", filepath.Join(dir, "no", "x.gmt"), "--", tiny}, 125, "x.gmt"},
		{"output is a folder", []string{"record", "-f", "-o", dir, "--", tiny}, 125, filepath.Base(dir)},
		{"output exists", []string{"record", "-o", taken, "--", tiny}, 125, "-f"},
		{"summary cannot be written", []string{"--headless", "--summary", filepath.Join(dir, "no", "s.json"), "--", tiny}, 125, "s.json"},
		{"report of no recording", []string{"report", text}, 125, "text.gmt"},
		{"report of an empty file", []string{"report", empty}, 125, "empty.gmt"},
		{"report of nothing", []string{"report", filepath.Join(dir, "none.gmt")}, 125, "none.gmt"},
		{"export of no recording", []string{"export", text, "--format", "chrome", "-o", filepath.Join(dir, "x.json")}, 125, "text.gmt"},
		{"export to an unknown format", []string{"export", text, "--format", "chrom", "-o", filepath.Join(dir, "x.json")}, 125, "chrom"},
	} {
		t.Run(test.name, func(t *testing.T) { test.check(t) })
	}
	if now, err := os.ReadFile(taken); err != nil || string(now) != "precious\n" {
		t.Errorf("the file that was there is now %q, %v", now, err)
	}
	for _, name := range []string{"x.gmt", "x.json"} {
		if _, err := os.Stat(filepath.Join(dir, name)); err == nil {
			t.Errorf("%s was left behind by a command that failed", name)
		}
	}
}

func (m *misuse) check(t *testing.T) {
	t.Helper()
	result := run(t, command{args: append([]string{gpumemtop()}, m.args...)})
	if result.code != m.code {
		t.Errorf("ended with %s, want %d", result, m.code)
	}
	if len(result.stdout) != 0 {
		t.Errorf("stdout: %q", result.stdout)
	}
	checkOneLine(t, result.stderr, m.say)
}

// checkOneLine demands one line for people: it ends, mentions its subject, and is no dump of a stack.
func checkOneLine(t *testing.T, stderr []byte, say string) {
	t.Helper()
	text := string(stderr)
	if strings.Count(text, "\n") != 1 || !strings.HasSuffix(text, "\n") {
		t.Errorf("want one line, got %q", text)
	}
	if !strings.Contains(text, say) {
		t.Errorf("the line does not mention %q: %q", say, text)
	}
	if strings.Contains(text, "goroutine ") || strings.Contains(text, ".go:") {
		t.Errorf("a stack trace for the user: %q", text)
	}
}

func TestOverwriteOnlyWithForce(t *testing.T) {
	t.Parallel()
	file := filepath.Join(t.TempDir(), "taken.gmt")
	if err := os.WriteFile(file, []byte("old"), 0o644); err != nil {
		t.Fatal(err)
	}
	result := run(t, command{args: []string{gpumemtop(), "record", "-f", "-o", file, "--", example("tiny")}})
	if result.code != 0 {
		t.Fatalf("record -f: %s\n%s", result, result.stderr)
	}
	if now, err := os.ReadFile(file); err != nil || string(now) == "old" || len(now) == 0 {
		t.Errorf("with -f the file holds %d bytes, %v", len(now), err)
	}
}

// Flags end at the first word that is not a flag.
func TestFlagsOfTheProgramAreItsOwn(t *testing.T) {
	result := run(t, command{args: []string{gpumemtop(), "--headless", "--policy", "none", "echo", "--policy", "-o", "x"}})
	if result.code != 0 || string(result.stdout) != "--policy -o x\n" {
		t.Errorf("%s: %q\n%s", result, result.stdout, result.stderr)
	}
}

// Without libOpenCL the linker's message is the program's; gpumemtop adds what to do. A program that asks for a
// libOpenCL which no machine has is one that lacks it.
func TestMissingLibraryIsExplained(t *testing.T) {
	program, err := os.ReadFile(example("tiny"))
	if err != nil {
		t.Fatal(err)
	}
	lacking := filepath.Join(t.TempDir(), "lacking")
	program = bytes.ReplaceAll(program, []byte("libOpenCL.so.1\x00"), []byte("libOpenCL.so.9\x00"))
	if err := os.WriteFile(lacking+".written", program, 0o755); err != nil {
		t.Fatal(err)
	}
	copyProgram(t, lacking+".written", lacking)
	bare := run(t, command{args: []string{lacking}})
	result := run(t, command{args: []string{gpumemtop(), "--headless", "--", lacking}})
	if bare.code == 0 || !result.sameEnd(bare) {
		t.Errorf("ended with %s, bare with %s", result, bare)
	}
	rest, ok := bytes.CutPrefix(result.stderr, bare.stderr)
	if !ok {
		t.Errorf("the program's own words %q are not kept: %q", bare.stderr, result.stderr)
	}
	if !contains(rest, "OpenCL") || contains(rest, "goroutine ") {
		t.Errorf("nothing about OpenCL to the user: %q", rest)
	}
}
