package ui

import (
	"strings"
	"testing"

	"codeberg.org/gpumemtop/gpumemtop/internal/view"
)

// TestNoKeyMeansTwoThings: in no mode does a key mean two things, on the panes, in the help, in a prompt or in the question
// before quitting; and every line does something.
func TestNoKeyMeansTwoThings(t *testing.T) {
	maps := map[string][]command{"panes": keymap, "help": helpKeymap, "prompt": promptKeymap, "quit": quitKeymap}
	for name, lines := range maps {
		for m := modes(1); m&inAll != 0; m <<= 1 {
			seen := map[string]bool{}
			for _, c := range m.commandsOfMode(lines) {
				for _, k := range c.keys {
					if seen[k] {
						t.Errorf("%s, mode %#x: %q is bound twice", name, m, k)
					}
					seen[k] = true
				}
			}
		}
		for i := range lines {
			if c := &lines[i]; c.do == nil || len(c.keys) == 0 || c.modes == 0 || c.modes&^inAll != 0 || c.shown != "" && c.help == "" {
				t.Errorf("%s: line %d, %v, lacks something", name, i, c.keys)
			}
		}
	}
}

// TestEveryMode: what each kind of dashboard has keys for.
func TestEveryMode(t *testing.T) {
	for _, test := range []struct {
		name    string
		options Options
		mode    modes
		has     string
		lacks   string
	}{
		{"run", Options{}, inRun, "q 7 ] a y o i r ctrl+c ctrl+z", "ctrl+left"},
		{"attach", Options{Attached: true}, inAttach, "q 6 ] y r ctrl+c ctrl+z", "7 a o i u ="},
		{"other terminal", Options{Viewer: true, Output: func(uint64) ([]view.OutputLine, uint64) { return nil, 0 }}, inOther, "q 7 ] a y o r ctrl+c ctrl+z", "i"},
		{"other terminal without output", Options{Viewer: true}, inOtherQuiet, "q 6 ] a y r ctrl+c ctrl+z", "7 o i"},
		{"other terminal of attach", Options{Viewer: true, Attached: true}, inOtherAttach, "q 6 ] y r ctrl+c ctrl+z", "7 a o i u ="},
		{"recording", Options{Moment: func(uint64) view.Moment { return view.Moment{} }}, inView, "q 6 ] y t a w ctrl+left ctrl+c ctrl+z", "7 o i r f"},
	} {
		if got := modeOfOptions(&test.options); got != test.mode {
			t.Errorf("%s: mode %#x, want %#x", test.name, got, test.mode)
		}
		keys := keymapMode(&test.options).keys
		for _, key := range strings.Fields(test.has) {
			if commandOfKey(keys, key) == nil {
				t.Errorf("%s: no %s", test.name, key)
			}
		}
		for _, key := range strings.Fields(test.lacks) {
			if commandOfKey(keys, key) != nil {
				t.Errorf("%s: there is %s", test.name, key)
			}
		}
	}
}

// TestKeysUnderTheHelp: keys of the panes do nothing while the help is shown; ctrl+c reaches the program, or closes it.
func TestKeysUnderTheHelp(t *testing.T) {
	var c calls
	d := newTest(c.options(), 120, 36, sampleSnapshot())
	press(d, "?", "f", "]", "7", "ctrl+c")
	if d.overlay != helpOverlay || d.frozen != nil || d.zoom != noPane || len(c.limits) != 0 || len(c.signals) != 1 {
		t.Errorf("overlay %d, zoom %d, %+v", d.overlay, d.zoom, c)
	}
	attached := attachedTest(120, 36, attachedSnapshot(1), App{Status: -1})
	if cmd := press(attached, "?", "ctrl+c"); attached.overlay != noOverlay || quits(cmd) {
		t.Error("ctrl+c does not close the help")
	}
}
