package ui

import (
	"os"
	"strconv"
	"strings"
	"testing"
	"time"
	"unicode"
	"unicode/utf8"

	tea "charm.land/bubbletea/v2"
	"github.com/charmbracelet/x/ansi"
	"github.com/charmbracelet/x/exp/golden"

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

// gaining is a replay in which each limit that a finding names serves all requests.
func gaining(_ *stats.Snapshot, list []analysis.Trial) *analysis.Replays {
	r := &analysis.Replays{Present: analysis.Outcome{Requests: 100, PeakReserved: 20 << 20}, Outcomes: map[analysis.Trial]analysis.Outcome{}}
	for _, t := range list {
		r.Outcomes[t] = analysis.Outcome{Hits: 100, Requests: 100, PeakReserved: 18 << 20}
	}
	return r
}

func newTest(o Options, w, h int, s *stats.Snapshot) *dashboard {
	if o.Judge == nil {
		o.Judge = &analysis.Live{Still: o.Moment != nil, Replay: gaining}
	}
	d := newDashboard(o, newTrueColorTheme(o.Theme, o.Charts))
	d.Update(tea.WindowSizeMsg{Width: w, Height: h})
	d.Update(frameMsg{now: testStart, snap: s, lines: sampleOutput(), next: 4})
	return d
}

// keyMsgs is the key that Bubble Tea names so, or those of a text.
func keyMsgs(name string) (msgs []tea.KeyPressMsg) {
	if msg := keyMsg(name); msg.Text == "" || utf8.RuneCountInString(name) == 1 || name == "space" {
		return []tea.KeyPressMsg{msg}
	}
	for _, letter := range name {
		msgs = append(msgs, keyMsg(string(letter)))
	}
	return msgs
}

// keyMsg is the key that Bubble Tea names so.
func keyMsg(name string) tea.KeyPressMsg {
	var msg tea.KeyPressMsg
	for mod, prefix := range map[tea.KeyMod]string{tea.ModCtrl: "ctrl+", tea.ModAlt: "alt+", tea.ModShift: "shift+"} {
		if rest, has := strings.CutPrefix(name, prefix); has {
			name, msg.Mod = rest, mod
		}
	}
	var named bool
	if msg.Code, named = keyCodes[name]; !named {
		msg.Code, _ = utf8.DecodeRuneInString(name)
	}
	if msg.Mod == 0 && unicode.IsPrint(msg.Code) {
		msg.Text = string(msg.Code)
	}
	return msg
}

// keyCodes are those of the keys whose names have more than a letter.
var keyCodes = func() map[string]rune {
	codes := map[string]rune{}
	for _, between := range [][2]rune{{0, 128}, {tea.KeyExtended + 1, tea.KeyF63}} {
		for code := between[0]; code <= between[1]; code++ {
			if name := (tea.Key{Code: code}).String(); len(name) > 1 && codes[name] == 0 {
				codes[name] = code
			}
		}
	}
	return codes
}()

func press(d *dashboard, names ...string) (cmd tea.Cmd) {
	for _, name := range names {
		for _, msg := range keyMsgs(name) {
			_, cmd = d.Update(msg)
		}
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

func screen(d *dashboard) string { return ansi.Strip(frameText(d)) }

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
			checkFrame(t, frameText(d), size[0], size[1])
			golden.RequireEqual(t, screen(d))
		})
	}
}

func itoa(n int) string { return strconv.Itoa(n) }

func pasted(text string) tea.PasteMsg { return tea.PasteMsg{Content: text} }

// frameText returns the frame that a dashboard shows.
func frameText(d *dashboard) string {
	if d.View(); d.canvas == nil {
		return ""
	}
	return d.canvas.encodeForTerminal(d.theme)
}

// reset ends a style.
const reset = "\x1b[0m"

// encodeForTerminal returns the frame as lines for a terminal, without trailing blanks.
func (c *canvas) encodeForTerminal(t *theme) string {
	var b strings.Builder
	b.Grow(len(c.cells) * 2)
	for y := range c.h {
		if y > 0 {
			b.WriteByte('\n')
		}
		c.encodeRow(&b, c.cells[y*c.w:(y+1)*c.w], t)
	}
	return b.String()
}

func (c *canvas) encodeRow(b *strings.Builder, row []cell, t *theme) {
	end := len(row)
	for end > 0 && row[end-1].text == " " && !t.isBlankVisible(row[end-1].style) {
		end--
	}
	open, opened := "", plain
	for _, cell := range row[:end] {
		sgr := t.open[cell.shade][cell.style]
		if cell.text == " " && !t.isBlankVisible(cell.style) && !t.isBlankVisible(opened) {
			sgr = open // a blank looks the same in any colour: no need to switch
		}
		if sgr != open {
			if open != "" {
				b.WriteString(reset)
			}
			b.WriteString(sgr)
			open, opened = sgr, cell.style
		}
		b.WriteString(t.charts.shownCluster(cell.text))
	}
	if open != "" {
		b.WriteString(reset)
	}
}
