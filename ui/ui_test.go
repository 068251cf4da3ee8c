package ui

import (
	"io"
	"os"
	"strconv"
	"strings"
	"testing"
	"time"

	tea "github.com/charmbracelet/bubbletea"
	"github.com/charmbracelet/lipgloss"
	"github.com/charmbracelet/x/ansi"
	"github.com/charmbracelet/x/exp/golden"
	"github.com/muesli/termenv"

	"codeberg.org/gpumemtop/gpumemtop/internal/analysis"
	"codeberg.org/gpumemtop/gpumemtop/internal/stats"
)

var testStart = time.Date(2026, 1, 2, 3, 4, 5, 0, time.UTC)

// calls are what a dashboard asked its surroundings to do.
type calls struct {
	limits   []string
	values   []string
	signals  []os.Signal
	detached int
	ended    int
	sizes    [][2]int
}

func (c *calls) options() Options {
	return Options{
		SetLimit: func(name, v string) (uint64, error) {
			c.limits, c.values = append(c.limits, name), append(c.values, v)
			return uint64(len(c.values)), nil
		},
		Signal: func(s os.Signal) { c.signals = append(c.signals, s) },
		Detach: func() { c.detached++ }, Terminate: func() { c.ended++ },
		Resize: func(w, h int) { c.sizes = append(c.sizes, [2]int{w, h}) },
		PostMortem: func(p *stats.PostMortem, _ uint64) []PostMortemLine {
			return []PostMortemLine{{"", p.Call + " failed"}, {"verdict", p.Verdict.String()}, {"try", "smaller buffers"}, {"held by", p.Tag}}
		},
	}
}

// newThemeWith returns the theme for a colour profile.
func newThemeWith(p termenv.Profile, name Theme, ascii bool) *theme {
	r := lipgloss.NewRenderer(io.Discard)
	r.SetColorProfile(p)
	return themeOf(r, name, ascii)
}

func newTest(o Options, w, h int, s *stats.Snapshot) *dashboard {
	if o.Judge == nil {
		o.Judge = &analysis.Live{Still: o.Moment != nil}
	}
	d := newDashboard(o, newThemeWith(termenv.TrueColor, o.Theme, o.ASCII))
	d.Update(tea.WindowSizeMsg{Width: w, Height: h})
	d.Update(frameMsg{now: testStart, snap: s, lines: sampleOutput(), next: 4})
	return d
}

func keyMsg(name string) tea.KeyMsg {
	for t := tea.KeyType(-100); t < 200; t++ {
		if t != tea.KeyRunes && (tea.Key{Type: t}).String() == name {
			return tea.KeyMsg{Type: t}
		}
	}
	return tea.KeyMsg{Type: tea.KeyRunes, Runes: []rune(name)}
}

func press(d *dashboard, names ...string) (cmd tea.Cmd) {
	for _, name := range names {
		_, cmd = d.Update(keyMsg(name))
	}
	return cmd
}

func quits(cmd tea.Cmd) bool {
	if cmd == nil {
		return false
	}
	_, ok := cmd().(tea.QuitMsg)
	return ok
}

func screen(d *dashboard) string { return ansi.Strip(d.View()) }

// shows checks that the screen has all texts.
func shows(t *testing.T, d *dashboard, texts ...string) {
	t.Helper()
	for _, text := range texts {
		if got := screen(d); !strings.Contains(got, text) {
			t.Errorf("no %q in\n%s", text, got)
		}
	}
}

// hides checks that the screen has none of the texts.
func hides(t *testing.T, d *dashboard, texts ...string) {
	t.Helper()
	for _, text := range texts {
		if got := screen(d); strings.Contains(got, text) {
			t.Errorf("%q in\n%s", text, got)
		}
	}
}

func checkFrame(t interface{ Errorf(string, ...any) }, frame string, w, h int) {
	lines := strings.Split(frame, "\n")
	if len(lines) > h {
		t.Errorf("%d lines at %d×%d", len(lines), w, h)
	}
	for i, line := range lines {
		if n := ansi.StringWidth(line); n > w {
			t.Errorf("line %d has %d cells at %d×%d: %q", i, n, w, h, line)
		}
	}
}

func TestGolden(t *testing.T) {
	for _, size := range [][2]int{{40, 10}, {30, 5}} { // the others are in TestStylesGolden
		t.Run(itoa(size[0])+"x"+itoa(size[1]), func(t *testing.T) {
			d := newTest((&calls{}).options(), size[0], size[1], sampleSnapshot())
			checkFrame(t, d.View(), size[0], size[1])
			golden.RequireEqual(t, screen(d))
		})
	}
}

func itoa(n int) string { return strconv.Itoa(n) }

func pasted(text string) tea.KeyMsg {
	return tea.KeyMsg{Type: tea.KeyRunes, Runes: []rune(text), Paste: true}
}
