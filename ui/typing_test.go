package ui

import (
	"errors"
	"testing"

	"codeberg.org/gpumemtop/gpumemtop/internal/stats"
)

// TestKeysGoToTheProgram: keys go to the program as a terminal sends them, until ctrl+\.
func TestKeysGoToTheProgram(t *testing.T) {
	var c calls
	var typed string
	o := c.options()
	d := newTest(o, 120, 36, sampleSnapshot())
	press(d, "i")
	shows(t, d, "nothing can be typed")
	d.o.Type = func(keys []byte) error { typed += string(keys); return nil }
	press(d, "i")
	shows(t, d, "what you type goes to the program", "iter 212/500")
	press(d, "q", "ä", " ", "enter", "tab", "backspace", "esc", "up", "pgdown", "ctrl+c", "ctrl+z", "f1")
	d.Update(pasted("two words\n"))
	d.Update(keyMsg("alt+x"))
	if want := "qä \r\t\x7f\x1b\x1b[A\x1b[6~\x03\x1atwo words\n\x1bx"; typed != want {
		t.Errorf("typed %q, want %q", typed, want)
	}
	if len(c.signals) > 0 || d.overlay != noOverlay {
		t.Error("keys act on the dashboard")
	}
	press(d, "ctrl+\\", "q")
	if d.typing || d.overlay != quitOverlay {
		t.Error("ctrl+\\ does not end it")
	}
	press(d, "esc", "i")
	d.o.Type = func([]byte) error { return errors.New("it does not read") }
	press(d, "x")
	shows(t, d, "✗ it does not read")
	if d.typing {
		t.Error("a failure does not end it")
	}
	d.app.State, d.hasApp = stats.Exited, true
	press(d, "i")
	shows(t, d, "the program has ended")
}

// TestFullScreenProgramGetsTheTerminal: the dashboard goes out of the way of a program that draws on the whole screen.
func TestFullScreenProgramGetsTheTerminal(t *testing.T) {
	var c calls
	d := newTest(c.options(), 120, 36, sampleSnapshot())
	_, cmd := d.Update(frameMsg{now: testStart, app: App{PID: 3, FullScreen: true}, hasApp: true})
	if !quits(cmd) || d.result != Detached || c.detached != 1 {
		t.Errorf("result %v, detached %d times", d.result, c.detached)
	}
	d = newTest(Options{}, 120, 36, sampleSnapshot())
	if d.Update(frameMsg{now: testStart, app: App{FullScreen: true}, hasApp: true}); d.leaving {
		t.Error("it leaves though it cannot detach")
	}
}

// TestKeysWhileTyping: the line of keys has what still works, and the end of the program ends typing.
func TestKeysWhileTyping(t *testing.T) {
	o := (&calls{}).options()
	o.Type = func([]byte) error { return nil }
	d := newTest(o, 120, 36, sampleSnapshot())
	press(d, "i")
	shows(t, d, "ctrl+\\ end typing", "what you type goes to the program")
	hides(t, d, "? help", "! findings")
	d.Update(frameMsg{now: testStart, snap: d.live, app: App{State: stats.Exited}, hasApp: true})
	shows(t, d, "? help")
	hides(t, d, "what you type goes to the program")
}
