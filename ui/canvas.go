package ui

// cell shows one grapheme cluster. The cells that a wide cluster covers after its first have an empty text.
type cell struct {
	text  string
	style style
	shade uint8 // of a chart's cell: 0 at the bottom of the chart, shadeCount-1 at its top
}

// canvas is a frame under construction. All writes go through a region, which clips.
type canvas struct {
	w, h   int
	cells  []cell
	charts Charts
}

func newCanvas(w, h int) *canvas {
	c := &canvas{w: w, h: h, cells: make([]cell, w*h)}
	c.clear()
	return c
}

func (c *canvas) clear() {
	for i := range c.cells {
		c.cells[i] = cell{text: " "}
	}
}

func (c *canvas) wholeRegion() region { return region{c: c, w: c.w, h: c.h} }

// setCluster writes a cluster of width n inside the canvas, and blanks the rest of the wide clusters that it cuts.
func (c *canvas) setCluster(x, y, n int, text string, st style) {
	row := c.cells[y*c.w : (y+1)*c.w]
	for left := x; left > 0 && row[left].text == ""; left-- {
		row[left-1].text = " "
	}
	for right := x + n; right < c.w && row[right].text == ""; right++ {
		row[right].text = " "
	}
	row[x] = cell{text: text, style: st}
	for i := 1; i < n; i++ {
		row[x+i] = cell{style: st}
	}
}

// wordAtPlace returns the word at a place, up to the blanks around it.
func (c *canvas) wordAtPlace(x, y int) string {
	row := c.cells[y*c.w : (y+1)*c.w]
	for x > 0 && row[x].text != " " && row[x-1].text != " " {
		x--
	}
	word := ""
	for ; x < c.w && row[x].text != " "; x++ {
		word += row[x].text
	}
	return word
}

// region is a rectangle of a canvas with its own coordinates. It cuts what does not fit.
type region struct {
	c          *canvas
	x, y, w, h int
}

// subRegion returns a part of the region, cut to it.
func (r region) subRegion(x, y, w, h int) region {
	x, y = max(0, min(x, r.w)), max(0, min(y, r.h))
	return region{r.c, r.x + x, r.y + y, max(0, min(w, r.w-x)), max(0, min(h, r.h-y))}
}

// withoutRows returns the region without its first n rows.
func (r region) withoutRows(n int) region { return r.subRegion(0, n, r.w, r.h-n) }

// putCluster writes one cluster of known width 1.
func (r region) putCluster(x, y int, text string, st style) {
	if x >= 0 && x < r.w && y >= 0 && y < r.h {
		r.c.setCluster(r.x+x, r.y+y, 1, text, st)
	}
}

// shadeCell gives a cell the shade of its height. The chart fills the region.
func (r region) shadeCell(x, y int) {
	if x >= 0 && x < r.w && y >= 0 && y < r.h {
		r.c.cells[(r.y+y)*r.c.w+r.x+x].shade = uint8((r.h - 1 - y) * (shadeCount - 1) / max(1, r.h-1))
	}
}

// repeatCluster writes the same cluster of width 1 n times.
func (r region) repeatCluster(x, y, n int, text string, st style) {
	for i := range max(0, n) {
		r.putCluster(x+i, y, text, st)
	}
}

// writeText writes s from column x on, without control characters and clusters of no width, and returns the column after it.
func (r region) writeText(x, y int, s string, st style) int {
	if y < 0 || y >= r.h {
		return x + textWidth(s)
	}
	for len(s) > 0 && x < r.w {
		var cluster string
		var n int
		cluster, n, s = nextCluster(s)
		if n > 0 && x >= 0 && x+n <= r.w {
			r.c.setCluster(r.x+x, r.y+y, n, cluster, st)
		}
		x += n
	}
	return x
}

// writeTextInColumns writes s into n columns, left-aligned, with an ellipsis if it is cut.
func (r region) writeTextInColumns(x, y, n int, s string, st style) {
	if n <= 0 {
		return
	}
	if textWidth(s) <= n {
		r.subRegion(x, y, n, 1).writeText(0, 0, s, st)
		return
	}
	r.subRegion(x, y, n-1, 1).writeText(0, 0, s, st)
	r.putCluster(x+n-1, y, "…", st)
}

// writeLines writes text between margins of x columns, in as many rows as it needs, and returns the row after them.
func (r region) writeLines(x, y int, text string, st style) int {
	for _, line := range wrapText(text, r.w-2*x) {
		r.writeText(x, y, line, st)
		y++
	}
	return y
}

// writeTextBefore writes s so that it ends before column x.
func (r region) writeTextBefore(x, y int, s string, st style) { r.writeText(x-textWidth(s), y, s, st) }

// writeSpans writes styled pieces one after another.
func (r region) writeSpans(x, y int, pieces ...span) int {
	for _, p := range pieces {
		x = r.writeText(x, y, p.text, p.style)
	}
	return x
}

// span is a styled piece of text.
type span struct {
	text  string
	style style
}

func spansWidth(pieces []span) int {
	n := 0
	for _, p := range pieces {
		n += textWidth(p.text)
	}
	return n
}

// drawBox draws a frame with a title and, if there is room, a hint at the right. It returns the inside.
func (r region) drawBox(title, hint []span, border style) region {
	if r.w < 2 || r.h < 2 {
		return r.subRegion(0, 0, 0, 0)
	}
	for y := 1; y < r.h-1; y++ {
		r.putCluster(0, y, "│", border)
		r.putCluster(r.w-1, y, "│", border)
	}
	r.repeatCluster(1, r.h-1, r.w-2, "─", border)
	r.putCluster(0, 0, "╭", border)
	r.putCluster(r.w-1, 0, "╮", border)
	r.putCluster(0, r.h-1, "╰", border)
	r.putCluster(r.w-1, r.h-1, "╯", border)
	r.subRegion(1, 0, r.w-2, 1).drawRule(title, hint, border)
	return r.subRegion(1, 1, r.w-2, r.h-2)
}

// drawRule draws a line with a title and, if there is room, a hint at the right.
func (r region) drawRule(title, hint []span, border style) {
	r.repeatCluster(0, 0, r.w, "─", border)
	inside := r.subRegion(1, 0, r.w-2, 1)
	end := inside.writeSpans(0, 0, title...) + 1
	if spansWidth(title) > inside.w {
		inside.putCluster(inside.w-1, 0, "…", dim)
	}
	if n := spansWidth(hint); n > 0 && end+n+2 <= r.w {
		r.writeSpans(r.w-n-1, 0, hint...)
	}
}

// markChosenRow marks a row as the chosen one.
func (r region) markChosenRow(y int) {
	r.repeatCluster(0, y, r.w, " ", cursorStyle)
	r.putCluster(0, y, "▸", cursorStyle)
}

// blankAll blanks the region.
func (r region) blankAll() {
	for y := range r.h {
		r.repeatCluster(0, y, r.w, " ", plain)
	}
}
