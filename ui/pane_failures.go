package ui

import (
	"strconv"

	"codeberg.org/gpumemtop/gpumemtop/internal/stats"
)

// PostMortemLine is one line of a post-mortem: its label and its text. The first has no label.
type PostMortemLine struct{ Label, Text string }

// failuresPane shows why calls failed for lack of memory, the first one first, and what to try.
type failuresPane struct {
	basePane
	top, page, all int // rows
}

func (p *failuresPane) title(s *stats.Snapshot) (title, hint []span) {
	title = []span{{"post-mortem", titleStyle}}
	if n := len(s.PostMortems); n > 1 {
		title = append(title, span{" of " + strconv.Itoa(n) + " failures", dim})
	}
	if below := p.all - p.top - p.page; below > 0 {
		title = append(title, span{", " + pluralText(uint64(below), "line") + " below", dim})
	}
	return title, []span{{" m", keyStyle}, {" back ", dim}}
}

// failureRow is a row of the pane.
type failureRow struct {
	label, text string
	style       style
}

const failureLabel = 11 // columns

// wrappedRows wraps the post-mortems.
func (p *failuresPane) wrappedRows(s *stats.Snapshot, width int) (rows []failureRow) {
	for i := range s.PostMortems {
		for n, line := range p.d.o.PostMortem(&s.PostMortems[i], s.Started) {
			style, indent := plain, failureLabel
			switch {
			case n == 0:
				style, indent = badStyle, 0
			case n <= 2: // the verdict, and what to try
				style = warnStyle
			}
			label := line.Label
			for _, text := range wrapText(line.Text, max(1, width-indent)) {
				rows, label = append(rows, failureRow{label, text, style}), ""
			}
		}
		rows = append(rows, failureRow{})
	}
	return rows
}

func (p *failuresPane) draw(r region, s *stats.Snapshot) {
	if len(s.PostMortems) == 0 || p.d.o.PostMortem == nil {
		p.all = 0
		r.writeLines(1, 0, "no call has failed for lack of memory, and nothing was killed while it held some", dim)
		return
	}
	rows := p.wrappedRows(s, r.w-2)
	p.all, p.page = len(rows)-1, r.h
	p.top = max(0, min(p.top, p.all-p.page))
	for y, row := range rows[p.top:min(p.all, p.top+r.h)] {
		if row.style == badStyle {
			r.writeText(1, y, row.text, row.style)
			continue
		}
		r.writeText(1, y, row.label, headStyle)
		r.writeText(1+failureLabel, y, row.text, row.style)
	}
}

func (p *failuresPane) move(m motion) {
	p.top = max(0, min(p.top+m.rowsDown(max(1, p.page-1)), p.all-p.page))
}

func (p *failuresPane) handleEnter() {}
