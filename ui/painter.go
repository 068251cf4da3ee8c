package ui

import (
	"bytes"
	"os"
	"slices"
	"sync"
	"unicode/utf8"

	"github.com/charmbracelet/colorprofile"
	uv "github.com/charmbracelet/ultraviolet"
	"github.com/charmbracelet/x/ansi"
)

// painter is the terminal as Bubble Tea writes to it, and writes the frames itself, at once. Bubble Tea would take a frame as text,
// parse it, and look for one up to 120 times a second, which costs more than all else that the dashboard does. It keeps the modes of
// the terminal.
type painter struct {
	*os.File
	colors  colorprofile.Profile
	entered func() // is called when the alternate screen is there

	mu        sync.Mutex // of what follows
	alternate bool       // Bubble Tea has entered the alternate screen
	shown     []cell     // of the frame on the screen; nil: unknown
	width     int        // of that frame
	theme     *theme     // of that frame
	looks     [shadeCount][styleCount]uv.Style
	changes   map[[2]look]string // the sequences from one look to another
	frame     []byte             // what is to be written
	pen       look               // at its end
	x, y      int                // the cursor there; y -1: unknown
}

// look is the shade and style of a cell.
type look struct {
	shade uint8
	style style
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

// paint writes the cells of a frame that differ from those on the screen.
func (p *painter) paint(c *canvas, t *theme) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if !p.alternate {
		return
	}
	if p.theme != t {
		p.learnStyleLooks(t)
	}
	p.frame, p.pen, p.x, p.y = p.frame[:0], look{}, 0, -1
	if len(p.shown) != len(c.cells) || p.width != c.w {
		p.shown, p.width = slices.Repeat([]cell{{text: " "}}, len(c.cells)), c.w
		p.frame = append(p.frame, ansi.ResetStyle+ansi.EraseEntireScreen...)
	}
	for y := range c.h {
		p.paintRow(y, c.cells[y*c.w:(y+1)*c.w], p.shown[y*c.w:(y+1)*c.w])
	}
	if len(p.frame) > 0 { // as one: a terminal without synchronized output ignores its marks
		p.setPen(look{})
		_, _ = p.File.WriteString(ansi.SetModeSynchronizedOutput + ansi.ResetModeAutoWrap + string(p.frame) +
			ansi.SetModeAutoWrap + ansi.ResetModeSynchronizedOutput)
	}
}

// learnStyleLooks learns what the styles of a theme look like.
func (p *painter) learnStyleLooks(t *theme) {
	p.theme, p.shown, p.changes = t, nil, map[[2]look]string{}
	for shade := range t.open {
		for st, sequence := range t.open[shade] {
			p.looks[shade][st] = uv.ConvertStyle(uv.NewStyledString(sequence + "x").Lines(ansi.WcWidth)[0][0].Style, p.colors)
		}
	}
}

// paintRow writes the cells of a row that differ from those shown. A blank looks the same in any colour of its text, and takes that of the
// text before it: each change of style is written.
func (p *painter) paintRow(y int, row, shown []cell) {
	end := len(row)
	for end > 0 && p.isBlank(&row[end-1]) {
		end--
	}
	open := cell{text: " "}
	for x := range end {
		c := row[x]
		if !p.isBlank(&c) {
			open.style, open.shade = c.style, c.shade
		} else if c = open; p.theme.isBlankVisible(c.style) {
			c = cell{text: " "}
		}
		if c == shown[x] {
			continue
		}
		if c.text != "" { // else the wide cluster before it covers the cell
			p.moveTo(x, y, shown)
			p.setPen(look{c.shade, c.style})
			p.writeCluster(c.text, x, row)
		}
		shown[x] = c
	}
	if isNotBlank := func(c cell) bool { return c != cell{text: " "} }; slices.ContainsFunc(shown[end:], isNotBlank) {
		p.moveTo(end, y, shown)
		p.setPen(look{})
		p.frame = append(p.frame, ansi.EraseLineRight...)
		copy(shown[end:], slices.Repeat([]cell{{text: " "}}, len(row)-end))
	}
}

// moveTo moves the cursor to a cell, over a few that it writes again where that is shorter.
func (p *painter) moveTo(x, y int, shown []cell) {
	const short = 4 // bytes of the sequences that move it
	switch gap := x - p.x; {
	case y != p.y:
		p.frame = append(p.frame, ansi.CursorPosition(x+1, y+1)...)
	case gap <= short && !slices.ContainsFunc(shown[p.x:x], func(c cell) bool { return len(c.text) != 1 || p.pen != look{c.shade, c.style} }):
		for _, c := range shown[p.x:x] {
			p.frame = append(p.frame, c.text...)
		}
	default:
		p.frame = append(p.frame, ansi.CursorHorizontalAbsolute(x+1)...)
	}
	p.x, p.y = x, y
}

// setPen changes the style of what is written from here on.
func (p *painter) setPen(l look) {
	if l == p.pen {
		return
	}
	change, known := p.changes[[2]look{p.pen, l}]
	if from, to := p.looks[p.pen.shade][p.pen.style], p.looks[l.shade][l.style]; !known {
		change = to.Diff(&from)
		p.changes[[2]look{p.pen, l}] = change
	}
	p.frame, p.pen = append(p.frame, change...), l
}

// writeCluster writes the cluster of a row's cell.
func (p *painter) writeCluster(cluster string, x int, row []cell) {
	p.x++
	for p.x < len(row) && row[p.x].text == "" {
		p.x++
	}
	text := p.theme.charts.shownCluster(cluster)
	if text == cluster {
		text = anchorCluster(text, x, p.x-x)
	}
	p.frame = append(p.frame, text...)
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
func (p *painter) isBlank(c *cell) bool { return c.text == " " && !p.theme.isBlankVisible(c.style) }
