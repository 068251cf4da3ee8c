package ui

import (
	"os"
	"strings"
	"testing"

	"github.com/charmbracelet/colorprofile"
	"github.com/charmbracelet/x/ansi"
)

// TestPainterWritesWhatDiffers: nothing before Bubble Tea has entered the alternate screen, the whole frame then, and after that
// only the cells that differ.
func TestPainterWritesWhatDiffers(t *testing.T) {
	r, w, err := os.Pipe()
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = r.Close() })
	entered := 0
	p := &painter{File: w, colors: colorprofile.TrueColor, entered: func() { entered++ }}
	p.learnTerminal([]string{"TERM=xterm-256color"})
	th, c := newTrueColorTheme(Dark, Braille), newCanvas(40, 10)
	written := func() string {
		t.Helper()
		p.paint(c, th)
		if _, err := w.WriteString("."); err != nil { // so that there is something to read
			t.Fatal(err)
		}
		text := make([]byte, 1<<16)
		n, err := r.Read(text)
		if err != nil {
			t.Fatal(err)
		}
		return strings.TrimSuffix(string(text[:n]), ".")
	}
	c.wholeRegion().writeText(3, 2, "語 first", strong)
	if got := written(); got != "" {
		t.Errorf("before the alternate screen: %q", got)
	}
	enter := ansi.SetModeAltScreenSaveCursor
	if _, err := p.Write([]byte(enter)); err != nil || entered != 1 {
		t.Fatal(entered, err)
	}
	if got := written(); !strings.HasPrefix(got, enter+ansi.SetModeSynchronizedOutput) || !strings.HasSuffix(got, ansi.ResetModeSynchronizedOutput) ||
		!strings.Contains(got, "first") {
		t.Errorf("the first frame: %q", got)
	}
	if got := written(); got != "" {
		t.Errorf("the same again: %q", got)
	}
	c.wholeRegion().writeText(20, 7, "x", warnStyle)
	if got := written(); !strings.Contains(got, "x") || strings.Contains(got, "first") || len(got) > 60 {
		t.Errorf("one cell: %q", got)
	}
	c.wholeRegion().writeText(0, 5, "👩\u200d👧❤️กำe\u0301日■x", plain) // terminals give the first three 4 or 2, 1 or 2, and 2 or 1 columns
	if got, want := written(), "👩\x1b[3G❤️\x1b[5Gก\x1b[6Ge\u0301\x1b[7G日\x1b[9G■x"; !strings.Contains(got, want) {
		t.Errorf("columns in doubt: %q, want %q", got, want)
	}
	c.wholeRegion().markChosenRow(3)
	if got := written(); strings.Contains(got, "\u00a0") {
		t.Errorf("a terminal that erases with colour: %q", got)
	}
	p.learnTerminal([]string{"TERM=screen", "STY=1.x"})
	if got := written(); strings.Count(got, "\u00a0") != 39 {
		t.Errorf("GNU Screen: %q", got)
	}
	p.forgetScreen()
	if got := written(); !strings.Contains(got, "first") || !strings.Contains(got, "x") {
		t.Errorf("written again: %q", got)
	}
	c = newCanvas(30, 8)
	c.wholeRegion().writeText(0, 0, "small", plain)
	if got := written(); !strings.Contains(got, "small") || strings.Contains(got, "first") {
		t.Errorf("another size: %q", got)
	}
	if _, err := p.Write([]byte(ansi.ResetModeAltScreenSaveCursor)); err != nil {
		t.Fatal(err)
	}
	c.wholeRegion().writeText(0, 0, "never", plain)
	if got := written(); got != ansi.ResetModeAltScreenSaveCursor {
		t.Errorf("after the alternate screen: %q", got)
	}
}
