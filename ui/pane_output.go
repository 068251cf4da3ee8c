package ui

import (
	"slices"
	"strconv"

	"codeberg.org/gpumemtop/gpumemtop/internal/stats"
	"codeberg.org/gpumemtop/gpumemtop/internal/view"
)

// outputMax bounds the lines that are kept; the session has them all.
const outputMax = 5000

// outputPane shows the last lines that the program printed, or older ones when scrolled back.
type outputPane struct {
	basePane
	lines  []view.OutputLine // cleaned
	open   []view.OutputLine // unfinished, cleaned; shown behind lines
	next   uint64            // position to ask from
	count  uint64            // lines seen
	errors uint64            // of these, on stderr
	back   int               // lines between the last row and the end
	page   int               // rows drawn last
}

func (p *outputPane) title(*stats.Snapshot) (title, hint []span) {
	title = []span{{"output ", titleStyle}, {pluralText(p.count, "line"), dim}}
	if p.errors > 0 {
		title = append(title, span{", " + formatCount(p.errors) + " on stderr", warnStyle})
	}
	title = append(title, p.d.filters[paneOutput].titleSpans()...)
	if p.back > 0 {
		title = append(title, span{", " + strconv.Itoa(p.back) + " below", dim})
	}
	back := " full screen "
	if p.d.zoom == paneOutput {
		back = " back "
	}
	hint = []span{{" /", keyStyle}, {" search ", dim}}
	if p.d.o.Type != nil {
		hint = append(hint, span{"i", keyStyle}, span{" type ", dim})
	}
	return title, append(hint, span{"S", keyStyle}, span{" save ", dim}, span{"o", keyStyle}, span{back, dim})
}

// update adds what the program printed and reports whether there was anything new.
func (p *outputPane) update(lines []view.OutputLine, next uint64) bool {
	p.next = next
	open := slices.IndexFunc(lines, func(l view.OutputLine) bool { return l.Open })
	if open < 0 {
		open = len(lines)
	}
	before := p.open
	p.open = cleanLines(nil, lines[open:])
	if lines = lines[:open]; len(lines) == 0 {
		return !slices.Equal(before, p.open)
	}
	p.count += uint64(len(lines))
	for i := range lines {
		if lines[i].Stderr {
			p.errors++
		}
	}
	lines = lines[max(0, len(lines)-outputMax):]
	if extra := len(p.lines) + len(lines) - outputMax; extra > 0 {
		p.lines = append(p.lines[:0], p.lines[extra:]...)
	}
	p.lines = cleanLines(p.lines, lines)
	if p.back > 0 { // keep the same lines in view
		p.back = min(p.back+len(lines), len(p.lines))
	}
	return true
}

// filteredLines are the lines that the filter takes.
func (p *outputPane) filteredLines() []view.OutputLine {
	return applyFilter(&p.d.filters[paneOutput], p.lines, func(l *view.OutputLine) string { return l.Text })
}

func cleanLines(to, lines []view.OutputLine) []view.OutputLine {
	for _, line := range lines {
		line.Text = cleanOutputLine(line.Text)
		to = append(to, line)
	}
	return to
}

func (p *outputPane) move(m motion) {
	p.back = max(0, min(p.back-m.rowsDown(max(1, p.page-1)), len(p.filteredLines())-p.page))
}

func (p *outputPane) draw(r region, _ *stats.Snapshot) {
	p.page = r.h
	lines := p.filteredLines()
	if p.back == 0 { // the latest of what is kept, and what is open
		lines = append(slices.Clone(lines[max(0, len(lines)-r.h):]), p.open...)
	}
	switch {
	case len(lines) == 0 && len(p.lines) > 0:
		r.writeText(1, 0, "no line has this: esc shows all", dim)
		return
	case len(lines) == 0:
		r.writeText(1, 0, "nothing printed yet", dim)
		return
	}
	end := max(0, len(lines)-p.back)
	if end < r.h {
		end = min(r.h, len(lines))
	}
	rows := make([]outputRow, 0, r.h)
	for at := end - 1; at >= 0 && len(rows) < r.h; at-- { // the latest of them at the bottom
		rows = p.appendRows(rows, &lines[at], r.w-1)
	}
	rows = rows[:min(len(rows), r.h)]
	for i := range rows {
		row, y := &rows[i], len(rows)-1-i
		st := plain
		if row.line.Stderr {
			st = cachedStyle
		}
		r.putCluster(0, y, row.mark, badStyle)
		r.writeTextInColumns(1, y, r.w-1, row.text, st)
	}
}

// outputRow is a row of a line.
type outputRow struct {
	line       *view.OutputLine
	mark, text string
}

// appendRows appends the rows of a line, the last one first. Alone on the screen, lines are wrapped until they are scrolled to
// the side.
func (p *outputPane) appendRows(rows []outputRow, line *view.OutputLine, w int) []outputRow {
	mark := " "
	if line.Stderr {
		mark = "▌"
	}
	text := line.Text[len(cutToColumns(line.Text, p.d.side)):]
	if p.d.zoom != paneOutput || p.d.side > 0 || w < 2 {
		return append(rows, outputRow{line, mark, text})
	}
	first := len(rows)
	for textWidth(text) > w {
		piece := cutToColumns(text, w)
		rows = append(rows, outputRow{line, mark, piece})
		mark, text = " ", text[len(piece):]
	}
	rows = append(rows, outputRow{line, mark, text})
	slices.Reverse(rows[first:])
	return rows
}

// askFile asks for the file that gets the lines that are kept, as far as the filter takes them.
func (p *outputPane) askFile() {
	d := p.d
	if d.o.Write == nil {
		d.sayMessage(warnStyle, "there is nowhere to save here")
		return
	}
	d.askPathAndWrite("save the output as: ", "output.txt", nil, func(path string) (string, error) {
		lines := append(slices.Clone(p.filteredLines()), p.open...)
		var text []byte
		for i := range lines {
			text = append(append(text, lines[i].Text...), '\n')
		}
		return pluralText(uint64(len(lines)), "line") + " saved in " + path, d.o.Write(path, text)
	})
}
