package ui

import (
	"fmt"
	"html"
	"strings"
)

// The size of a cell of a picture, in SVG units, and how far its baseline is below its top.
const (
	cellW, cellH, letterBase = 8.4, 17, 13
	pictureMargin            = 10
)

// brightColors are the ANSI colours of the high-contrast theme.
var brightColors = map[string]string{
	"0": "#000000", "9": "#ff5555", "10": "#55ff55", "11": "#ffff55", "12": "#7777ff", "13": "#ff55ff", "14": "#55ffff", "15": "#ffffff",
}

// ink returns the colours of a style in a theme; empty: the page's own.
func ink(st style, name Theme) (foreground, background string) {
	l := &looks[st]
	switch name {
	case Mono:
		return "", ""
	case Light:
		return l.light, l.onLight
	case HighContrast:
		if l.onDark != "" {
			background = brightColors["15"]
		}
		return brightColors[bright[st]], background
	}
	return l.dark, l.onDark
}

// page returns the colours of a picture's text and of what is behind it.
func page(name Theme) (text, behind string) {
	switch name {
	case Light:
		return "#24292f", "#ffffff"
	case HighContrast:
		return "#ffffff", "#000000"
	}
	return "#c5cbd3", "#0f1318"
}

// svg draws the frame as a picture that loads nothing.
func (c *canvas) svg(name Theme, title string) string {
	var b strings.Builder
	openPicture(&b, c.w, c.h, sheet(name), title)
	for y := range c.h {
		for _, stretch := range c.stretches(y) {
			b.WriteString(stretch)
		}
	}
	b.WriteString("</svg>\n")
	return b.String()
}

// openPicture begins a picture of a frame of that size, in cells.
func openPicture(b *strings.Builder, cols, rows int, sheet, title string) {
	w, h := float64(cols)*cellW+2*pictureMargin, rows*cellH+2*pictureMargin
	fmt.Fprintf(b, `<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 %.1f %d" role="img" aria-label="%s">`+"\n", w, h, html.EscapeString(title))
	fmt.Fprintf(b, "<style>\ntext{font:14px ui-monospace,Menlo,Consolas,'DejaVu Sans Mono',monospace;white-space:pre}\nrect{fill:none}\n%s</style>\n", sheet)
	b.WriteString(`<rect class="page" width="100%" height="100%" rx="6"/>` + "\n")
}

// sheet returns the rules for the colours of a theme.
func sheet(name Theme) string {
	var b strings.Builder
	text, behind := page(name)
	fmt.Fprintf(&b, "text{fill:%s}\n.page{fill:%s}\n", text, behind)
	for st := range styleCount {
		foreground, background := ink(st, name)
		rule := ""
		if foreground != "" {
			rule = "fill:" + foreground
		}
		if looks[st].bold && name != Mono {
			rule += ";font-weight:bold"
		}
		if rule != "" {
			fmt.Fprintf(&b, ".s%d{%s}\n", st, strings.TrimPrefix(rule, ";"))
		}
		if background != "" {
			fmt.Fprintf(&b, ".b%d{fill:%s}\n", st, background)
		}
	}
	return b.String()
}

// stretches draws the stretches of one style in a row. Each has its width, whatever the font.
func (c *canvas) stretches(y int) (out []string) {
	row := c.cells[y*c.w : (y+1)*c.w]
	for from := 0; from < len(row); {
		to, text, st := from, "", row[from].style
		for to < len(row) && row[to].style == st {
			text += row[to].text
			to++
		}
		x, width := pictureMargin+float64(from)*cellW, float64(to-from)*cellW
		if looks[st].onDark != "" {
			out = append(out, fmt.Sprintf(`<rect class="b%d" x="%.1f" y="%d" width="%.1f" height="%d"/>`+"\n", st, x, pictureMargin+y*cellH, width, cellH))
		}
		if strings.Trim(text, " ") != "" {
			out = append(out, fmt.Sprintf(`<text class="s%d" x="%.1f" y="%d" textLength="%.1f">%s</text>`+"\n",
				st, x, pictureMargin+y*cellH+letterBase, width, html.EscapeString(text)))
		}
		from = to
	}
	return out
}

// text returns the frame without styles.
func (c *canvas) text() string {
	var b strings.Builder
	for y := range c.h {
		var line strings.Builder
		for _, cell := range c.cells[y*c.w : (y+1)*c.w] {
			line.WriteString(cell.text)
		}
		b.WriteString(strings.TrimRight(line.String(), " ") + "\n")
	}
	return b.String()
}
