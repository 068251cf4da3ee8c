package watch

import (
	"testing"
	"time"

	"codeberg.org/gpumemtop/gpumemtop/ui"
)

func TestTheme(t *testing.T) {
	for _, test := range []struct {
		theme, colors string
		noColor       bool
		want          ui.Theme
	}{
		{"auto", "", false, ui.Dark}, {"auto", "0;15", false, ui.Light}, {"auto", "0;default;7", false, ui.Light},
		{"auto", "15;0", false, ui.Dark}, {"auto", "15;8", false, ui.Dark}, {"auto", "black", false, ui.Dark},
		{"dark", "0;15", false, ui.Dark}, {"light", "15;0", false, ui.Light}, {"high-contrast", "", false, ui.HighContrast},
		{"light", "", true, ui.Mono},
	} {
		t.Setenv("COLORFGBG", test.colors)
		o := DashboardOptions{Theme: test.theme, NoColor: test.noColor, Refresh: DefaultRefresh}
		if err := o.Check(); err != nil {
			t.Error(err)
		}
		if got := o.theme(); got != test.want {
			t.Errorf("%+v: theme %d", test, got)
		}
	}
	o := DashboardOptions{Theme: "solarized", Refresh: DefaultRefresh}
	if err := o.Check(); err == nil {
		t.Error("any theme is taken")
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
		t.Setenv("TERM", test.term)
		t.Setenv("LC_ALL", test.all)
		t.Setenv("LC_CTYPE", "")
		t.Setenv("LANG", test.lang)
		if got := asciiOnly(); got != test.want {
			t.Errorf("%+v: %v", test, got)
		}
	}
}

func TestKinship(t *testing.T) {
	parent, group, session, err := kinship(1)
	if err != nil || parent != 0 || group < 0 || session < 0 {
		t.Errorf("of process 1: parent %d, group %d, session %d, %v", parent, group, session, err)
	}
	if _, _, _, err := kinship(1 << 30); err == nil {
		t.Error("a process that is not there has kin")
	}
}

// TestUsualRefresh: over SSH there are fewer frames.
func TestUsualRefresh(t *testing.T) {
	for tty, want := range map[string]time.Duration{"": DefaultRefresh, "/dev/pts/3": slowRefresh} {
		t.Setenv("SSH_TTY", tty)
		if got := UsualRefresh(); got != want {
			t.Errorf("SSH_TTY=%q: %v", tty, got)
		}
	}
}

func TestFewColors(t *testing.T) {
	for term, want := range map[string]bool{"screen": true, "screen.xterm": true, "tmux-direct": true, "linux": true, "vt100": false, "screenwriter": false} {
		if fewColors(term) != want {
			t.Errorf("%s: %v", term, !want)
		}
	}
}
