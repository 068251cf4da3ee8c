package ui

import (
	"testing"

	"github.com/charmbracelet/colorprofile"
)

// TestColorsOf: tmux takes all colours, Screen 256, wherever it runs.
func TestColorsOf(t *testing.T) {
	for _, test := range []struct {
		environ []string
		want    colorprofile.Profile
	}{
		{[]string{"TERM=tmux-256color", "TMUX=/tmp/s"}, colorprofile.TrueColor},
		{[]string{"TERM=screen", "STY=1.x", "COLORTERM=truecolor"}, colorprofile.ANSI256},
		{[]string{"TERM=screen", "STY=1.x", "TMUX=/tmp/s"}, colorprofile.ANSI256},
	} {
		if got := ColorsOf(test.environ); got != test.want {
			t.Errorf("%v: %v", test.environ, got)
		}
	}
}

func TestASCIIOnly(t *testing.T) {
	for _, test := range []struct {
		term, all, lang string
		want            bool
	}{
		{"xterm", "", "", false}, {"xterm", "C.UTF-8", "C", false}, {"xterm", "", "de_DE.utf8", false}, {"xterm", "", "C", true},
		{"xterm", "C", "en_US.UTF-8", true}, {"linux", "C.UTF-8", "", true},
	} {
		if got := ASCIIOnly([]string{"TERM=" + test.term, "LC_ALL=" + test.all, "LC_CTYPE=", "LANG=" + test.lang}); got != test.want {
			t.Errorf("%+v: %v", test, got)
		}
	}
}
