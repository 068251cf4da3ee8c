package ui

import (
	"slices"
	"strconv"

	"codeberg.org/gpumemtop/gpumemtop/internal/figures"
	"codeberg.org/gpumemtop/gpumemtop/internal/stats"
)

// processesPane is the list of the processes, with all of them together in row 0, and the choice of the one that the
// screen shows.
type processesPane struct {
	basePane
	list
	number uint32 // of the chosen process in the session; 0: all

	from, narrowed *stats.Snapshot // the last snapshot and what was made of it; the same if it lacks the process
	place, all     int             // of the process in from, and how many there are
}

func (p *processesPane) title(*stats.Snapshot) (title, hint []span) {
	n, ended := 0, false
	if s := p.d.wholeSnapshot(); s != nil {
		n, ended = s.ProcessCount(), slices.ContainsFunc(s.Processes, func(q stats.Process) bool { return q.State != stats.Running })
	}
	title = []span{{"processes ", titleStyle}, {strconv.Itoa(n) + textIf(ended, ", ended ones as they were at their end"), dim}}
	return title, []span{{" enter", keyStyle}, {" select ", dim}, {"esc", keyStyle}, {" back ", dim}}
}

// snapshotOfChosen returns the snapshot with the figures of the chosen process in place of those of all.
func (p *processesPane) snapshotOfChosen(s *stats.Snapshot) *stats.Snapshot {
	if p.number == 0 || s == nil {
		return s
	}
	if p.from == s {
		return p.narrowed
	}
	p.from, p.narrowed = s, s
	if i := p.indexOfChosen(s); i >= 0 && len(s.Processes) > 1 {
		p.narrowed, p.place, p.all = snapshotOfProcess(s, i), i, len(s.Processes)
	}
	return p.narrowed
}

// indexOfChosen returns the place of the chosen process, -1 if it is not there.
func (p *processesPane) indexOfChosen(s *stats.Snapshot) int {
	return slices.IndexFunc(s.Processes, func(process stats.Process) bool { return process.Number == p.number })
}

// snapshotOfProcess returns a snapshot of one process. Policy, limits, device, recording, marks and losses are those of the
// session.
func snapshotOfProcess(s *stats.Snapshot, i int) *stats.Snapshot {
	p := &s.Processes[i]
	one := *s
	one.Started, one.Finished, one.Program, one.Arguments = p.Started, 0, p.Program, p.Arguments
	one.Processes = s.Processes[i : i+1 : i+1]
	one.Totals, one.Window, one.History, one.Tags = p.Totals, p.Window, p.History, p.Tags
	return &one
}

// isOneOfSeveral reports whether a snapshot is that of one process among several.
func (p *processesPane) isOneOfSeveral(s *stats.Snapshot) bool {
	return p.number != 0 && s == p.narrowed && s != p.from
}

// whichProcessText says which process of how many is shown.
func (p *processesPane) whichProcessText() string {
	return "process " + strconv.Itoa(p.place+1) + "/" + strconv.Itoa(p.all)
}

// scopeMarkText marks what covers all processes while only one is shown.
func (p *processesPane) scopeMarkText() string {
	if p.number == 0 {
		return ""
	}
	return " of all processes"
}

// selectProcess puts a process on the screen, or all with 0.
func (p *processesPane) selectProcess(number uint32) {
	p.number, p.from, p.narrowed = number, nil, nil
	p.d.free.top = 0
	p.d.tags.update(p.d.shownSnapshot())
}

// selectNextProcess shows the first process after all, then the next, and after the last one all again.
func (p *processesPane) selectNextProcess() {
	s := p.d.wholeSnapshot()
	if s == nil || len(s.Processes) < 2 {
		p.d.sayMessage(dim, "no other process has made OpenCL calls")
		return
	}
	at := 0
	if p.number != 0 {
		at = p.indexOfChosen(s) + 1
	}
	if at == len(s.Processes) {
		p.selectProcess(0)
		return
	}
	p.selectProcess(s.Processes[at].Number)
}

// showProcessList shows the list, with the cursor at what is on the screen.
func (p *processesPane) showProcessList() {
	p.at = 0
	if s := p.d.wholeSnapshot(); s != nil && p.number != 0 {
		p.at = p.indexOfChosen(s) + 1
	}
	p.d.showPaneAlone(paneProcesses)
}

func (p *processesPane) move(m motion) {
	if s := p.d.wholeSnapshot(); s != nil {
		p.list.moveCursor(m, len(s.Processes)+1)
	}
}

// handleEnter leaves the list for the process at the cursor.
func (p *processesPane) handleEnter() {
	number := uint32(0)
	if s := p.d.wholeSnapshot(); s != nil && p.at > 0 && p.at <= len(s.Processes) {
		number = s.Processes[p.at-1].Number
	}
	p.d.showPaneAlone(paneProcesses)
	p.selectProcess(number)
}

var processColumns = []tableColumn[*stats.Process]{
	{title: "PID", width: 8, cell: func(p *stats.Process) span { return span{pidText(p), plain} }},
	{title: columnHeading(figures.InUse), width: 8, cell: func(p *stats.Process) span { return gaugeSpanOf(p, p.Totals.InUse, inUseStyle) }},
	{title: "HIT%", width: 6, pool: true, cell: func(p *stats.Process) span {
		return span{formatRatio(p.Totals.Hits, saturatingSum(p.Totals.Hits, p.Totals.Misses)), styleOfHitRate(p.Totals.HitRate(), saturatingSum(p.Totals.Hits, p.Totals.Misses))}
	}},
	{title: columnHeading(figures.PeakInUse), width: 8, cell: func(p *stats.Process) span { return span{bytesText(p.Totals.PeakInUse), plain} }},
	{title: columnHeading(figures.Creates), width: 9, cell: func(p *stats.Process) span { return span{formatTableCount(p.Totals.Creates), plain} }},
	{title: columnHeading(figures.Cached), width: 8, pool: true, cell: func(p *stats.Process) span { return gaugeSpanOf(p, p.Totals.Cached, cachedStyle) }},
	{title: columnHeading(figures.LiveBuffers), width: 7, cell: func(p *stats.Process) span { return span{formatTableCount(p.Totals.LiveBuffers), plain} }},
	{title: columnHeading(figures.Misses), width: 8, pool: true, cell: func(p *stats.Process) span { return span{formatTableCount(p.Totals.Misses), plain} }},
}

// gaugeSpanOf writes bytes that a process has now. What one had at its end is dim: the driver took that back.
func gaugeSpanOf(p *stats.Process, bytes uint64, st style) span {
	if p.State != stats.Running {
		st = dim
	}
	return span{bytesText(bytes), st}
}

// pidText returns the id of a process, empty for the row of all.
func pidText(p *stats.Process) string {
	if p.PID <= 0 {
		return ""
	}
	return strconv.Itoa(p.PID)
}

// minProgram is the width that a program with its state gets before columns of numbers.
const minProgram = 18

func (p *processesPane) draw(r region, _ *stats.Snapshot) {
	s := p.d.wholeSnapshot()
	if s == nil {
		return
	}
	columns, program := columnsThatFit(processColumns, r.w-minProgram-3, p.d.mode.pool)
	program += 3
	drawTitles(r, 1, columns, s)
	r.writeText(program, 0, "PROGRAM", headStyle)
	body := r.withoutRows(1)
	p.setPageAndScroll(body.h, len(s.Processes)+1)
	for y := range min(body.h, len(s.Processes)+1-p.top) {
		row := p.top + y
		process := &stats.Process{Totals: s.Totals}
		if row > 0 {
			process = &s.Processes[row-1]
		}
		drawProcessRow(body.subRegion(0, y, body.w, 1), process, row, row == p.at, columns, program)
	}
}

func drawProcessRow(r region, p *stats.Process, row int, chosen bool, columns []tableColumn[*stats.Process], program int) {
	st, name := plain, strong
	if chosen {
		st, name = cursorStyle, cursorStyle
		r.markChosenRow(0)
	}
	drawCells(r, 1, columns, p, st)
	if row == 0 {
		r.writeText(program, 0, "all processes", name)
		return
	}
	state := stateSpanOf(p)
	if chosen {
		state.style = cursorStyle
	}
	x := r.writeSpans(program, 0, state) + 1
	r.writeTextInColumns(x, 0, r.w-x-1, commandLine(&stats.Snapshot{Program: p.Program, Arguments: p.Arguments}), st)
}

// stateSpanOf is the state of a process: a symbol, with a word for failures.
func stateSpanOf(p *stats.Process) span {
	switch {
	case p.State == stats.Running:
		return span{"●", goodStyle}
	case p.State == stats.Signaled:
		return span{"✗ " + signalName(p.Status), badStyle}
	case p.Status > 0:
		return span{"✗ exit " + strconv.Itoa(p.Status), badStyle}
	}
	return span{"○", dim}
}
