package ui

import (
	"fmt"
	"html"
	"strconv"
	"strings"
)

// The size of a cell of a picture, in SVG units, and how far its baseline is below its top.
const (
	cellW, cellH, letterBase = 8.4, 17, 13
	pictureMargin            = 10
)

// ansiColors are those that xterm has for the numbers of ANSI.
var ansiColors = [...]string{
	"#000000", "#cd0000", "#00cd00", "#cdcd00", "#0000ee", "#cd00cd", "#00cdcd", "#e5e5e5", "#7f7f7f", "#ff0000", "#00ff00", "#ffff00", "#5c5cff", "#ff00ff",
	"#00ffff", "#ffffff",
}

// hexColor writes a colour as #rrggbb.
func hexColor(color string) string {
	if n, err := strconv.Atoi(color); err == nil {
		return ansiColors[n]
	}
	return color
}

// pictureColors returns the colours of a picture's text and background.
func pictureColors(name Theme) (text, behind string) {
	switch name {
	case Light, HighContrastLight:
		return "#24292f", "#ffffff"
	case HighContrast:
		return "#ffffff", "#000000"
	}
	return "#c5cbd3", "#0f1318"
}

// drawSVG draws the frame as a picture that loads nothing.
func (c *canvas) drawSVG(t *theme, title string) string {
	var b strings.Builder
	openPicture(&b, c.w, c.h, styleSheetOf(t), title)
	for y := range c.h {
		for _, stretch := range c.styledStretches(y) {
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

// styleSheetOf returns the rules for the colours of a theme.
func styleSheetOf(t *theme) string {
	var b strings.Builder
	text, behind := pictureColors(t.name)
	fmt.Fprintf(&b, "text{fill:%s}\n.page{fill:%s}\n", text, behind)
	for st := range styleCount {
		rule := ""
		if c := t.inks[0][st].text; c != "" {
			rule = "fill:" + hexColor(c)
		}
		if bold[st] {
			rule += ";font-weight:bold"
		}
		if rule != "" {
			fmt.Fprintf(&b, ".s%d{%s}\n", st, strings.TrimPrefix(rule, ";"))
		}
		for k := 1; k < shadeCount; k++ {
			if c := t.inks[k][st].text; c != t.inks[0][st].text {
				fmt.Fprintf(&b, ".s%d-%d{fill:%s}\n", st, k, hexColor(c))
			}
		}
		if c := t.inks[0][st].behind; c != "" {
			fmt.Fprintf(&b, ".b%d{fill:%s}\n", st, hexColor(c))
		}
	}
	return b.String()
}

// styleRuleNames names the rules for a cell.
func (c *cell) styleRuleNames() string {
	if c.shade == 0 {
		return fmt.Sprintf("s%d", c.style)
	}
	return fmt.Sprintf("s%d-%d s%d", c.style, c.shade, c.style)
}

// styledStretches draws the stretches of one style in a row. Each has its width, whatever the font.
func (c *canvas) styledStretches(y int) (out []string) {
	row := c.cells[y*c.w : (y+1)*c.w]
	for from := 0; from < len(row); {
		to, text, st, shade := from, "", row[from].style, row[from].shade
		for to < len(row) && row[to].style == st && row[to].shade == shade {
			text += row[to].text
			to++
		}
		x, width := pictureMargin+float64(from)*cellW, float64(to-from)*cellW
		if filled[st] {
			out = append(out, fmt.Sprintf(`<rect class="b%d" x="%.1f" y="%d" width="%.1f" height="%d"/>`+"\n", st, x, pictureMargin+y*cellH, width, cellH))
		}
		if strings.Trim(text, " ") != "" {
			out = append(out, fmt.Sprintf(`<text class="%s" x="%.1f" y="%d" textLength="%.1f">%s</text>`+"\n",
				row[from].styleRuleNames(), x, pictureMargin+y*cellH+letterBase, width, html.EscapeString(text)))
		}
		from = to
	}
	return out
}

// plainText returns the frame without styles.
func (c *canvas) plainText() string {
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
