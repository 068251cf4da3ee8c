package early

import (
	"bytes"
	"os"
	"os/exec"
	"path/filepath"
	"testing"
	"time"

	"github.com/creack/pty"
)

const program = `package main

import (
	_ "codeberg.org/gpumemtop/gpumemtop/ui/early"
	_ "github.com/charmbracelet/bubbletea"
)

func main() { println("started") }
`

// build compiles the program inside the module, in a folder that go build ./... ignores.
func build(t *testing.T) string {
	t.Helper()
	dir, err := os.MkdirTemp(".", "_start-") //nolint:usetesting // it has to lie in the module
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = os.RemoveAll(dir) })
	source := filepath.Join(dir, "main.go")
	if err := os.WriteFile(source, []byte(program), 0o600); err != nil {
		t.Fatal(err)
	}
	binary := filepath.Join(t.TempDir(), "start")
	if out, err := exec.Command("go", "build", "-o", binary, "./"+source).CombinedOutput(); err != nil {
		t.Fatalf("go build: %v\n%s", err, out)
	}
	return binary
}

// TestNoTerminalQuery starts a program on a terminal that never answers. The limit is far from both outcomes: a
// start takes milliseconds, an unanswered query five seconds.
func TestNoTerminalQuery(t *testing.T) {
	cmd := exec.Command(build(t))
	cmd.Env = append(os.Environ(), "TERM=xterm-256color", "CI=")
	begin := time.Now()
	master, err := pty.Start(cmd)
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = master.Close() }()
	var out bytes.Buffer
	_, _ = out.ReadFrom(master) // a pty ends with EIO
	if err := cmd.Wait(); err != nil {
		t.Fatal(err)
	}
	if took := time.Since(begin); took > time.Second {
		t.Errorf("start took %v: the terminal was asked something", took)
	}
	if got := out.String(); got != "started\r\n" {
		t.Errorf("the terminal got %q, want only what the program prints", got)
	}
}
