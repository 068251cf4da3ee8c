package watch

import (
	"testing"
	"time"

	"github.com/charmbracelet/colorprofile"

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

// TestColors: a terminal has the colours that its environment says, and at least those of ANSI; mono has none.
func TestColors(t *testing.T) {
	t.Setenv("NO_COLOR", "")
	for _, test := range []struct {
		term, all, tmux string
		want            colorprofile.Profile
	}{
		{"xterm", "", "", colorprofile.ANSI}, {"linux", "", "", colorprofile.ANSI}, {"xterm-256color", "", "", colorprofile.ANSI256},
		{"screen", "", "", colorprofile.ANSI256}, {"xterm-256color", "truecolor", "", colorprofile.TrueColor},
		{"tmux-256color", "", "/tmp/tmux,1,0", colorprofile.TrueColor}, {"xterm-kitty", "", "", colorprofile.TrueColor},
	} {
		t.Setenv("TERM", test.term)
		t.Setenv("COLORTERM", test.all)
		t.Setenv("TMUX", test.tmux)
		if got := colors(ui.Dark); got != test.want {
			t.Errorf("%+v: %v", test, got)
		}
		if got := colors(ui.Mono); got != colorprofile.ASCII {
			t.Errorf("%+v: mono has %v", test, got)
		}
	}
}
