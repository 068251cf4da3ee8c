package main

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/rogpeppe/go-internal/testscript"

	"codeberg.org/gpumemtop/gpumemtop/internal/session/payload"
)

func TestMain(m *testing.M) {
	testscript.Main(m, map[string]func(){"gpumemtop": main, "fakeattach": fakeAttach})
}

// TestScripts runs the real command in fresh folders; testdata has one script per subject.
func TestScripts(t *testing.T) {
	testscript.Run(t, testscript.Params{
		Dir:                 "testdata",
		RequireUniqueNames:  true,
		RequireExplicitExec: true,
		Setup: func(env *testscript.Env) error {
			env.Setenv("CI", "1") // never a dashboard, even when a person runs the tests
			env.Setenv("TMPDIR", env.WorkDir)
			recordings, err := filepath.Abs("../../internal/report/testdata")
			if err != nil {
				return err
			}
			env.Setenv("RECORDINGS", recordings)
			return os.Mkdir(env.WorkDir+"/bin", 0o755)
		},
		Condition: func(name string) (bool, error) {
			_, err := payload.OpenShim()
			return name == "built" && err == nil, nil
		},
		Cmds: map[string]func(*testscript.TestScript, bool, []string){"status": status, "oneline": oneLine},
	})
}

// status runs a command and demands an exit status: status 126 gpumemtop -- ./file. 128+n stands for signal n.
func status(ts *testscript.TestScript, neg bool, args []string) {
	if neg || len(args) < 2 {
		ts.Fatalf("usage: status NUMBER COMMAND...")
	}
	script := `"$@"; echo $? > "$WORK/status.txt"`
	ts.Check(ts.Exec("sh", append([]string{"-c", script, "sh"}, args[1:]...)...))
	if got := ts.ReadFile(ts.Getenv("WORK") + "/status.txt"); got != args[0]+"\n" {
		ts.Fatalf("exit status %s, want %s", got, args[0])
	}
}

// oneLine demands that the last command said exactly one line on stderr and nothing on stdout.
func oneLine(ts *testscript.TestScript, neg bool, args []string) {
	if neg || len(args) != 0 {
		ts.Fatalf("usage: oneline")
	}
	stderr, stdout := ts.ReadFile("stderr"), ts.ReadFile("stdout")
	if n := len(stderr); n == 0 || stderr[n-1] != '\n' || strings.Count(stderr, "\n") != 1 || stdout != "" {
		ts.Fatalf("want one line on stderr alone, got %q and %q on stdout", stderr, stdout)
	}
}
