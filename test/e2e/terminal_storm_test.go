package e2e

import (
	"os/exec"
	"testing"
)

// TestResizeStorm: a window that changes its size faster than it is drawn, also to one that is too small, ends with a whole
// screen and a program that runs.
func TestResizeStorm(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	term := openTerminal(t, 120, 36)
	term.run(dir, gpumemtop(), "--", example("pipeline"), "100000", "64K")
	term.await(`pipeline\.c:\d+`)
	for i := range 40 {
		term.tmux("resize-window", "-x", itoa(2+i*53%240), "-y", itoa(2+i*31%70))
	}
	term.tmux("resize-window", "-x", "140", "-y", "42")
	term.await(`╭─ ¹ memory .*╮╭─ ² rates .*╮\n(?s:.*)pipeline\.c:\d+(?s:.*)╰─*╯\n.*\n q quit .*`)
	term.keys("q")
	term.await(`\[t\]erminate`)
	term.keys("t")
	term.await(`status=143`)
	term.await(`(?m)^done`)
	term.checkRestored(dir)
}

// TestSoonOver: programs of many call sites and of a moment stay on the screen as they ended, from their first row on.
func TestSoonOver(t *testing.T) {
	t.Parallel()
	many := t.TempDir() + "/many" // without line numbers each of its creates is a row
	if text, err := exec.Command("strip", "-o", many, fault("sites")).CombinedOutput(); err != nil {
		t.Fatalf("%v: %s", err, text)
	}
	for _, test := range []struct{ program, shown string }{
		{example("tiny"), `✓ EXITED 0 +00:0`},
		{many, `✓ EXITED 0 (?s:.*)tags \d{4,5}  1–\d+ (?s:.*)TAG.*\n│▸ many\+0x`},
	} {
		dir := t.TempDir()
		term := openTerminal(t, 140, 42)
		term.run(dir, gpumemtop(), "--", test.program)
		term.await(test.shown)
		term.leave()
		term.await(`status=0`)
		term.await(`(?m)^done`)
		term.checkRestored(dir)
	}
}
