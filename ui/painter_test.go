package ui

import (
	"io"
	"math/rand/v2"
	"os"
	"slices"
	"strings"
	"testing"

	"github.com/charmbracelet/colorprofile"
	uv "github.com/charmbracelet/ultraviolet"
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
	if got := written(); strings.Count(got, " ") != 39 || strings.Contains(got, ansi.EraseLineRight) {
		t.Errorf("blanks that a terminal may erase without their colour: %q", got)
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

// TestScreenIsTheFrame: whatever was on the screen, it shows the frame that was painted last.
func TestScreenIsTheFrame(t *testing.T) {
	const w, h = 24, 5
	file, err := os.CreateTemp(t.TempDir(), "")
	if err != nil {
		t.Fatal(err)
	}
	themes := []*theme{newTrueColorTheme(Dark, Braille), newTrueColorTheme(Mono, Braille), themeOf(&Options{Theme: Light, Charts: Braille, Colors: colorprofile.ANSI})}
	random := rand.New(rand.NewPCG(1, 2))
	for _, th := range themes {
		p := &painter{File: file, colors: colorprofile.TrueColor, alternate: true}
		screen, c := newTestScreen(w, h), newCanvas(w, h)
		for range 400 {
			if random.IntN(8) == 0 {
				c.clear()
			}
			for range random.IntN(6) {
				text := strings.Join(slices.Repeat([]string{[]string{"a", " ", "b c", "語", "⣿", "e\u0301", "─", "กำ", "👩\u200d👧"}[random.IntN(9)]}, 1+random.IntN(9)), "")
				c.wholeRegion().writeText(random.IntN(w), random.IntN(h), text, style(random.IntN(int(styleCount))))
			}
			if random.IntN(4) == 0 {
				c.wholeRegion().markChosenRow(random.IntN(h))
			}
			before, err := file.Seek(0, io.SeekCurrent)
			if err != nil {
				t.Fatal(err)
			}
			p.paint(c, th)
			written, err := io.ReadAll(io.NewSectionReader(file, before, 1<<20))
			if err != nil {
				t.Fatal(err)
			}
			screen.show(t, string(written))
			for at, want := range c.cells {
				if got := screen.cells[at]; !looksAlike(got, want, th) {
					t.Fatalf("row %d, column %d: %+v, want %+v after %q", at/w, at%w, got, want, written)
				}
			}
		}
	}
}

// looksAlike reports whether a cell of the screen looks like one of the frame.
func looksAlike(got uv.Cell, want cell, th *theme) bool {
	var style uv.Style
	if want.text != "" && (want.text != " " || filled[want.style]) { // the colour of other blanks does not show
		style = uv.NewStyledString(th.open[want.shade][want.style] + "x").Lines(ansi.WcWidth)[0][0].Style
	} else if got.Style.Bg != nil || got.Style.Attrs&uv.AttrReverse != 0 {
		return want.text == ""
	} else {
		style = got.Style
	}
	shown, _ := strings.CutSuffix(got.Content, "\u200d👧") // only its first character is written
	wanted, _ := strings.CutSuffix(want.text, "\u200d👧")
	if first, _, cut := strings.Cut(wanted, "\u0e33"); cut {
		wanted = first
	}
	return shown == wanted && got.Style.Equal(&style)
}

// testScreen is a terminal that knows the sequences of the painter. It moves the cursor as far after a cluster as a coin says, unless
// the cluster is one character that takes one column everywhere.
type testScreen struct {
	w, x, y int
	pen     uv.Style
	cells   []uv.Cell
	coin    bool
}

func newTestScreen(w, h int) *testScreen { return &testScreen{w: w, cells: make([]uv.Cell, w*h)} }

func (s *testScreen) show(t *testing.T, text string) {
	t.Helper()
	parser := ansi.NewParser()
	for state := byte(0); text != ""; {
		sequence, width, n, next := ansi.DecodeSequence(text, state, parser)
		text, state = text[n:], next
		if width > 0 {
			s.put(sequence, width)
			continue
		}
		if sequence[0] >= 0x80 { // it combines with the cluster before it
			s.cells[s.y*s.w+s.x-1].Content += sequence
			continue
		}
		first := func(missing int) int { v, _ := parser.Param(0, missing); return v }
		switch ansi.Cmd(parser.Command()) {
		case 'H':
			second, _ := parser.Param(1, 1)
			s.x, s.y = second-1, first(1)-1
		case 'G':
			s.x = first(1) - 1
		case 'm':
			uv.ReadStyle(parser.Params(), &s.pen)
		case 'K':
			s.erase(s.y*s.w+s.x, (s.y+1)*s.w)
		case 'J':
			s.erase(0, len(s.cells))
		default:
			if !strings.HasPrefix(sequence, "\x1b[?2026") && !strings.HasPrefix(sequence, "\x1b[?7") {
				t.Fatalf("the screen does not know %q", sequence)
			}
		}
	}
}

func (s *testScreen) put(cluster string, width int) {
	at := s.y*s.w + s.x
	for left := at; s.cells[left].Content == "" && left > s.y*s.w; left-- {
		s.cells[left-1].Content = " "
	}
	for right := at + width; right < len(s.cells) && s.cells[right].Content == ""; right++ {
		s.cells[right].Content = " "
	}
	s.cells[at] = uv.Cell{Content: cluster, Style: s.pen}
	for i := 1; i < width && s.x+i < s.w; i++ {
		s.cells[at+i] = uv.Cell{Style: s.pen}
	}
	if s.x += width; len(cluster) > 1 && cluster[0] != '\xe2' {
		s.coin = !s.coin
		s.x -= width * map[bool]int{true: 1}[s.coin]
	}
}

func (s *testScreen) erase(from, to int) {
	for i := from; i < to; i++ {
		s.cells[i] = uv.Cell{Content: " ", Style: uv.Style{Bg: s.pen.Bg}}
	}
}
