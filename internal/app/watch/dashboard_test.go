package watch

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/charmbracelet/colorprofile"
	"golang.org/x/sys/unix"

	"codeberg.org/gpumemtop/gpumemtop/ui"
)

func TestTheme(t *testing.T) {
	for _, test := range []struct {
		theme, colors string
		noColor       bool
		want          ui.Theme
		ask           bool
	}{
		{"auto", "", false, ui.AnyBackground, true}, {"auto", "0;15", false, ui.Light, true}, {"auto", "0;default;7", false, ui.Light, true},
		{"auto", "15;0", false, ui.Dark, true}, {"auto", "15;8", false, ui.Dark, true}, {"auto", "black", false, ui.AnyBackground, true},
		{"dark", "0;15", false, ui.Dark, false}, {"light", "15;0", false, ui.Light, false}, {"mono", "", false, ui.Mono, false},
		{"high-contrast", "", false, ui.HighContrast, true}, {"high-contrast", "0;15", false, ui.HighContrastLight, true},
		{"light", "", true, ui.Mono, false},
	} {
		t.Setenv("COLORFGBG", test.colors)
		o := DashboardOptions{Theme: test.theme, NoColor: test.noColor, Refresh: DefaultRefresh}
		if err := o.Check(); err != nil {
			t.Error(err)
		}
		if got, ask := o.chosenTheme(); got != test.want || ask != test.ask {
			t.Errorf("%+v: theme %d, asked %v", test, got, ask)
		}
	}
	o := DashboardOptions{Theme: "solarized", Refresh: DefaultRefresh}
	if err := o.Check(); err == nil {
		t.Error("any theme is taken")
	}
}

// TestCharts: what the terminal has, unless others are asked for.
func TestCharts(t *testing.T) {
	pipe, _, err := os.Pipe() // no console
	if err != nil {
		t.Fatal(err)
	}
	t.Setenv("LC_ALL", "C.UTF-8")
	for _, test := range []struct {
		term, charts string
		ascii        bool
		want         ui.Charts
		wrong        string
	}{
		{"xterm", "auto", false, ui.Braille, ""}, {"linux", "auto", false, ui.HalfBlocks, ""}, {"vt100", "auto", false, ui.ASCII, ""},
		{"xterm", "blocks", false, ui.Blocks, ""}, {"linux", "blocks", false, ui.HalfBlocks, ""}, {"linux", "braille", false, ui.Braille, ""},
		{"xterm", "ascii", false, ui.ASCII, ""}, {"xterm", "auto", true, ui.ASCII, ""}, {"xterm", "ascii", true, ui.ASCII, ""},
		{"xterm", "blocks", true, ui.ASCII, "--ascii and --charts blocks contradict each other"},
		{"xterm", "sixel", false, ui.Braille, `bad value "sixel" for --charts: want auto, braille, blocks, ascii`},
	} {
		t.Setenv("TERM", test.term)
		s := Screen{tty: pipe, options: DashboardOptions{Charts: test.charts, ASCII: test.ascii, Refresh: DefaultRefresh}}
		if got := s.chartCharacters(); got != test.want {
			t.Errorf("%+v: %v", test, got)
		}
		if err := s.options.Check(); (err == nil) != (test.wrong == "") || err != nil && !strings.Contains(err.Error(), test.wrong) {
			t.Errorf("%+v: %v", test, err)
		}
	}
}

func TestThemeFile(t *testing.T) {
	path := filepath.Join(t.TempDir(), "mine.toml")
	for text, want := range map[string]string{
		"base = \"light\"\n[text]\ndim = \"#123456\"\n": "", "base = \"pink\"": "bad base \"pink\"", "[text]\ndim = \"red\"\n": "mine.toml, line 2: bad colour",
		strings.Repeat("#\n", 40<<10): "more than 65536 bytes",
	} {
		if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
		o := DashboardOptions{Theme: path, Refresh: DefaultRefresh}
		err := o.Check()
		if (err == nil) != (want == "") || err != nil && !strings.Contains(err.Error(), want) {
			t.Errorf("%.40q: %v", text, err)
		}
		if theme, ask := o.chosenTheme(); want == "" && (theme != ui.Light || ask || o.own.Text["dim"] != "#123456") {
			t.Errorf("theme %d, asked %v, %+v", theme, ask, o.own)
		}
	}
	pipe := filepath.Join(t.TempDir(), "pipe.toml")
	if err := unix.Mkfifo(pipe, 0o600); err != nil {
		t.Fatal(err)
	}
	for _, other := range []string{path + "/none.toml", pipe} {
		if o := (DashboardOptions{Theme: other, Refresh: DefaultRefresh}); o.Check() == nil {
			t.Errorf("%s is taken", other)
		}
	}
}

func TestKinship(t *testing.T) {
	parent, group, session, err := readParentAndGroup(1)
	if err != nil || parent != 0 || group < 0 || session < 0 {
		t.Errorf("of process 1: parent %d, group %d, session %d, %v", parent, group, session, err)
	}
	if _, _, _, err := readParentAndGroup(1 << 30); err == nil {
		t.Error("a process that is not there has kin")
	}
}

// TestUsualRefresh: over SSH there are fewer frames.
func TestUsualRefresh(t *testing.T) {
	for tty, want := range map[string]time.Duration{"": DefaultRefresh, "/dev/pts/3": slowRefresh} {
		t.Setenv("SSH_TTY", tty)
		if got := UsualRefreshInterval(); got != want {
			t.Errorf("SSH_TTY=%q: %v", tty, got)
		}
	}
}

// TestColoursAreThoseOfTheEnvironment: a terminal has the colours that its environment says, and at least those of ANSI; mono
// has none.
func TestColoursAreThoseOfTheEnvironment(t *testing.T) {
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
		if got := terminalColorsFor(ui.Dark); got != test.want {
			t.Errorf("%+v: %v", test, got)
		}
		if got := terminalColorsFor(ui.Mono); got != colorprofile.ASCII {
			t.Errorf("%+v: mono has %v", test, got)
		}
	}
}
