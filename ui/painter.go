package ui

import (
	"bytes"
	"os"
	"sync"
	"unicode/utf8"

	"github.com/charmbracelet/colorprofile"
	uv "github.com/charmbracelet/ultraviolet"
	"github.com/charmbracelet/x/ansi"
)

// painter is the terminal as Bubble Tea writes to it, and writes the frames itself, at once, with Bubble Tea's own cell renderer.
// Bubble Tea would take a frame as text, parse it, and look for one up to 120 times a second, which costs more than all else that the
// dashboard does. It keeps the modes of the terminal.
type painter struct {
	*os.File
	colors  colorprofile.Profile
	entered func() // is called when the alternate screen is there

	mu        sync.Mutex // of what follows
	environ   []string
	colorless bool   // the terminal erases without colour
	alternate bool   // Bubble Tea has entered the alternate screen
	shown     []cell // of the frame on the screen; nil: unknown
	theme     *theme // of that frame
	looks     [shadeCount][styleCount]uv.Style
	buffer    *uv.RenderBuffer
	renderer  *uv.TerminalRenderer
	out       bytes.Buffer
}

// Write writes what Bubble Tea writes.
func (p *painter) Write(text []byte) (int, error) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if bytes.Contains(text, []byte(ansi.ResetModeAltScreenSaveCursor)) {
		p.alternate = false
	}
	n, err := p.File.Write(text)
	if bytes.Contains(text, []byte(ansi.SetModeAltScreenSaveCursor)) {
		p.alternate, p.shown = true, nil
		p.entered()
	}
	return n, err //nolint:wrapcheck // as the file's own
}

// forgetScreen lets the next frame be written whole.
func (p *painter) forgetScreen() {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.shown = nil
}

// learnTerminal learns from the environment what the terminal can do.
func (p *painter) learnTerminal(environ []string) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.environ, p.colorless, p.shown = environ, isScreen(environ), nil
}

// paint writes the cells of a frame that differ from those on the screen.
func (p *painter) paint(c *canvas, t *theme) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if !p.alternate {
		return
	}
	if p.theme != t {
		p.learnLooks(t)
	}
	if len(p.shown) != len(c.cells) || p.buffer.Width() != c.w {
		p.beginScreen(c.w, c.h)
	}
	for y := range c.h {
		p.setRow(y, c.cells[y*c.w:(y+1)*c.w], p.shown[y*c.w:(y+1)*c.w])
	}
	p.renderer.Render(p.buffer)
	_ = p.renderer.Flush()
	if p.out.Len() > 0 { // as one: a terminal without synchronized output ignores its marks
		_, _ = p.File.WriteString(ansi.SetModeSynchronizedOutput + p.out.String() + ansi.ResetModeSynchronizedOutput)
		p.out.Reset()
	}
}

// learnLooks learns what the styles of a theme look like.
func (p *painter) learnLooks(t *theme) {
	p.theme, p.shown = t, nil
	for shade := range t.open {
		for st, sequence := range t.open[shade] {
			p.looks[shade][st] = uv.NewStyledString(sequence + "x").Lines(ansi.WcWidth)[0][0].Style
		}
	}
}

// beginScreen begins with an unknown screen.
func (p *painter) beginScreen(w, h int) {
	p.shown, p.buffer = make([]cell, w*h), uv.NewRenderBuffer(w, h)
	p.renderer = uv.NewTerminalRenderer(&p.out, p.environ)
	p.renderer.SetColorProfile(p.colors)
	p.renderer.SetFullscreen(true)
	p.renderer.Erase()
}

// setRow sets the cells of a row that differ from those shown. A blank looks the same in any colour of its text, and takes that of the
// text before it: each change of style is written.
func (p *painter) setRow(y int, row, shown []cell) {
	end := len(row)
	for end > 0 && p.isBlank(&row[end-1]) {
		end--
	}
	open := cell{text: " "}
	for x := range row {
		c := row[x]
		if !p.isBlank(&c) {
			open.style, open.shade = c.style, c.shade
		} else if c = open; x >= end || p.theme.visibleBlank(c.style) {
			c = cell{text: " "}
		}
		if c == shown[x] {
			continue
		}
		shown[x] = c
		if c.text == "" {
			continue // the wide cluster before it covers the cell
		}
		wide := 1
		for x+wide < len(row) && row[x+wide].text == "" {
			wide++
		}
		text := p.theme.charts.shownCluster(c.text)
		if text == " " && p.theme.visibleBlank(c.style) && p.colorless && p.theme.charts != ASCII {
			text = "\u00a0" // the renderer erases other blanks
		}
		if text == c.text && x+wide < len(row) {
			text = anchorCluster(text, x, wide)
		}
		p.buffer.SetCell(x, y, &uv.Cell{Content: text, Style: p.looks[c.shade][c.style], Width: wide})
	}
}

// anchorCluster has the cursor go to the column after a cluster that is not one of the dashboard's own signs: terminals differ in how many
// columns they give to others. It cuts a cluster that most give more to its first character: foot draws such over what follows.
func anchorCluster(text string, x, wide int) string {
	first, n := utf8.DecodeRuneInString(text)
	if n == len(text) && (first < 0x80 || first>>8 == brailleBase>>8) || asciiFor[text] != "" {
		return text
	}
	if ansi.WcWidth.StringWidth(text) > wide {
		text = text[:n]
	}
	return text + ansi.CursorHorizontalAbsolute(x+wide+1)
}

// isBlank reports whether a cell looks like one without style.
func (p *painter) isBlank(c *cell) bool { return c.text == " " && !p.theme.visibleBlank(c.style) }
