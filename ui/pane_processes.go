package ui

import (
	"strconv"

	"codeberg.org/gpumemtop/gpumemtop/internal/model"
)

// processColumn is a column of numbers in the list of processes, right-aligned.
type processColumn struct {
	title string
	width int
	text  func(p *model.Process) span
	pool  bool // says something of a pool
}

var processColumns = []processColumn{
	{"PID", 8, func(p *model.Process) span { return span{pidOf(p), plain} }, false},
	{"IN USE", 8, func(p *model.Process) span { return span{bytesText(p.Totals.InUse), inUseStyle} }, false},
	{"HIT%", 6, func(p *model.Process) span {
		return span{ratio(p.Totals.Hits, add(p.Totals.Hits, p.Totals.Misses)), rateStyle(p.Totals.HitRate(), add(p.Totals.Hits, p.Totals.Misses))}
	}, true},
	{"PEAK", 8, func(p *model.Process) span { return span{bytesText(p.Totals.PeakInUse), plain} }, false},
	{"CREATES", 9, func(p *model.Process) span { return span{tableCount(p.Totals.Creates), plain} }, false},
	{"CACHED", 8, func(p *model.Process) span { return span{bytesText(p.Totals.Cached), cachedStyle} }, true},
	{"LIVE", 7, func(p *model.Process) span { return span{tableCount(p.Totals.LiveBuffers), plain} }, false},
	{"MISSES", 8, func(p *model.Process) span { return span{tableCount(p.Totals.Misses), plain} }, true},
}

// pidOf returns a process's id, or nothing for the row of all.
func pidOf(p *model.Process) string {
	if p.PID <= 0 {
		return ""
	}
	return strconv.Itoa(p.PID)
}

// minProgram is how many columns a program with its state gets before columns of numbers are dropped for it.
const minProgram = 18

// processColumnsFor returns the columns that w has room for, and where the program begins after them.
func processColumnsFor(w int, poolless bool) (shown []processColumn, program int) {
	x := 1
	for _, c := range processColumns {
		if poolless && c.pool {
			continue
		}
		if x+c.width+2+minProgram > w {
			break
		}
		shown, x = append(shown, c), x+c.width
	}
	return shown, x + 2
}

// drawProcesses draws the list, all together in the first row.
func (d *dashboard) drawProcesses(r region) {
	s := d.whole()
	if s == nil {
		return
	}
	columns, program := processColumnsFor(r.w, d.o.Attached)
	x := 1
	for _, c := range columns {
		x += c.width
		r.right(x, 0, c.title, headStyle)
	}
	r.text(program, 0, "PROGRAM", headStyle)
	body := r.rows(1)
	d.one.scroll(body.h, len(s.Processes)+1)
	for y := range body.h {
		row := d.one.top + y
		if row > len(s.Processes) {
			break
		}
		p := &model.Process{Totals: s.Totals}
		if row > 0 {
			p = &s.Processes[row-1]
		}
		drawProcessRow(body.sub(0, y, body.w, 1), p, row, row == d.one.at, columns, program)
	}
}

// scroll moves the first row so that the cursor is among the page rows that are drawn of all.
func (o *oneProcess) scroll(page, all int) {
	o.page = max(1, page)
	o.at = max(0, min(o.at, all-1))
	o.top = max(o.at-o.page+1, min(o.top, o.at))
	o.top = max(0, min(o.top, all-o.page))
}

func drawProcessRow(r region, p *model.Process, row int, chosen bool, columns []processColumn, program int) {
	st := func(s style) style { return s }
	if chosen {
		st = func(style) style { return cursorStyle }
		r.repeat(0, 0, r.w, " ", cursorStyle)
		r.put(0, 0, "▸", cursorStyle)
	}
	x := 1
	for _, c := range columns {
		cell := c.text(p)
		r.sub(x, 0, c.width, 1).right(c.width, 0, cell.text, st(cell.style))
		x += c.width
	}
	if row == 0 {
		r.text(program, 0, "all processes", st(strong))
		return
	}
	state := endOf(p)
	x = r.spans(program, 0, span{state.text, st(state.style)}) + 1
	r.textIn(x, 0, r.w-x-1, commandLine(&model.Snapshot{Program: p.Program, Arguments: p.Arguments}), st(plain))
}

// endOf says in a sign, and a word where it is worth one, how a process is.
func endOf(p *model.Process) span {
	switch {
	case p.State == model.Running:
		return span{"●", goodStyle}
	case p.State == model.Signaled:
		return span{"✗ " + signalName(p.Status), badStyle}
	case p.Status > 0:
		return span{"✗ exit " + strconv.Itoa(p.Status), badStyle}
	}
	return span{"○", dim}
}

func (d *dashboard) processesTitle() (title, hint []span) {
	n := 0
	if s := d.whole(); s != nil {
		n = len(s.Processes)
	}
	title = []span{{"processes ", titleStyle}, {strconv.Itoa(n), dim}}
	return title, []span{{" enter", keyStyle}, {" look at it ", dim}, {"esc", keyStyle}, {" back ", dim}}
}
