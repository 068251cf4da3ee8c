package e2e

import (
	"io"
	"strings"
	"testing"

	"codeberg.org/gpumemtop/gpumemtop/internal/testkit/rightstest"
)

// The dashboard over a program that runs already: leaving it asks nothing and leaves the program alone.
func TestDashboardOverAProgramThatRuns(t *testing.T) {
	t.Parallel()
	rightstest.NeedAttach(t)
	bare := run(t, command{args: []string{fault("reader")}, stdin: strings.NewReader(strings.Repeat("\x00", 4<<20))})
	for _, cols := range []int{60, 80} {
		in, out := io.Pipe()
		p := start(t, command{args: []string{fault("reader")}, stdin: in})
		dir := t.TempDir()
		term := openTerminal(t, cols, 24)
		term.run(dir, gpumemtop(), "attach", "-p", itoa(p.cmd.Process.Pid), "-o", dir+"/x.gmt")
		term.await(`reader`)
		if _, err := out.Write(make([]byte, 2<<20)); err != nil {
			t.Fatal(err)
		}
		term.await(`work\.c:\d+`)
		for line := range strings.Lines(term.screen()) {
			if n := len([]rune(strings.TrimRight(line, "\n"))); n > cols {
				t.Errorf("a line of %d columns on %d: %q", n, cols, line)
			}
		}
		term.keys("w") // what a pool would have done
		term.await(`● now: none`)
		term.keys("y")
		term.await(`attach only watches`)
		term.keys("c")
		term.await(`hit rate of a pool by limit of cached bytes \(futhark\)`)
		term.keys("c")
		term.await(`work\.c:\d+`)
		term.keys("q")
		term.await(`status=0`)
		term.await(`(?m)^done`)
		term.checkRestored(dir)
		if !alive(p.cmd.Process.Pid) {
			t.Error("the program ended with the dashboard")
		}
		if _, err := out.Write(make([]byte, 2<<20)); err != nil {
			t.Fatal(err)
		}
		_ = out.Close() // of a pipe in memory
		if difference := differs(bare, ends(t, p)); difference != "" {
			t.Error(difference)
		}
		checkReport(t, dir+"/x.gmt", "work.c")
	}
}
