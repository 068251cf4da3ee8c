package ui

import (
	"slices"
	"strconv"
	"strings"

	"codeberg.org/gpumemtop/gpumemtop/internal/stats"
	"codeberg.org/gpumemtop/gpumemtop/internal/units"
)

// ghostsPane lists what other configurations would have done, the best first.
type ghostsPane struct {
	basePane
	list
}

func (p *ghostsPane) title(*stats.Snapshot) (title, hint []span) {
	n := 0
	if g := p.simulatedGhosts(); g != nil {
		n = len(g.Rows)
	}
	title = []span{{"ghosts ", titleStyle}, {strconv.Itoa(n) + p.d.processes.scopeMarkText(), dim}}
	hint = []span{{" w", keyStyle}, {" back ", dim}}
	if _, why := p.leaderToAdopt(); why == "" {
		hint = append([]span{{" y", keyStyle}, {" use the leader", dim}}, hint...)
	}
	return title, hint
}

// draw also draws notes under the list: what y does and what the ghosts cost. Like the limits it shows the latest state
// even while the screen is frozen.
func (p *ghostsPane) draw(r region, _ *stats.Snapshot) {
	g := p.simulatedGhosts()
	if g == nil {
		r.writeText(1, 0, p.d.mode.noGhosts, dim)
		return
	}
	t := newGhostTable(g, r.w)
	notes := p.noteLines(g, t, r.w-2)
	rows := max(1, min(len(g.Rows), max(r.h*2/3, r.h-1-len(notes))))
	p.setPageAndScroll(rows, len(g.Rows))
	r.writeText(ghostNameAt, 0, "IF YOU HAD USED", headStyle)
	drawTitles(r, t.at, t.columns, nil)
	for y := range min(rows, len(g.Rows)) {
		row := &g.Rows[p.top+y]
		if p.top == 0 && y == rows-1 && t.present != nil && placeOnLeaderboard(g, t.present) > y { // not all rows fit
			row = t.present
		}
		t.draw(r.subRegion(0, y+1, r.w, 1), row, placeOnLeaderboard(g, row), p.top+y == p.at)
	}
	under := rows + 1
	if r.h > under+len(notes) {
		under++
	}
	for y, note := range notes {
		r.writeText(1, under+y, note.text, note.style)
	}
	drawGhostLegend(r.withoutRows(under + len(notes) + 1))
}

// noteLines are the lines under the list.
func (p *ghostsPane) noteLines(g *stats.Ghosts, t *ghostTable, w int) []span {
	var notes []span
	say := func(text string, st style) {
		for _, line := range wrapText(text, w) {
			notes = append(notes, span{line, st})
		}
	}
	d := p.d
	leader, why := p.leaderToAdopt()
	switch {
	case why != "":
		say(why, dim)
	case d.live.Auto != nil && d.live.Auto.Steers && g.IsWorthMention(p.elapsedNS()):
		say("y switches to "+leader.Name+p.gainText()+", and ends auto", goodStyle)
	case !g.IsWorthMention(p.elapsedNS()):
		say(leader.Name+" leads"+p.gainText()+", which is little to gain (y switches)", dim)
	default:
		say("y switches to "+leader.Name+p.gainText(), goodStyle)
	}
	if changes := d.live.Change.Done; t.present != nil && t.present.Since == 0 && changes > 0 {
		say("● is simulated from the start, like all ghosts; the run itself, with "+pluralText(changes, "change")+", hit "+
			hitRateText(d.live.Totals.Hits, d.live.Totals.Misses)+" so far", plain)
	}
	if len(t.common) > 0 {
		say("all with "+strings.Join(t.common, " "), dim)
	}
	if text := autoText(d.live.Auto); text != "" {
		say(text, plain)
	}
	p.rowNotes(g, say)
	say(simulatedCostText(g), dim)
	say("ghosts use "+formatPercent(g.Busy)+" % of a core and "+bytesText(g.Bytes)+", "+formatCount(uint64(g.Waiting))+" records behind", dim)
	return notes
}

// rowNotes say which ghosts have not seen all requests.
func (p *ghostsPane) rowNotes(g *stats.Ghosts, say func(string, style)) {
	for i := range g.Rows {
		row := &g.Rows[i]
		switch {
		case g.Stopped != "": // the first note says so
		case row.Stopped != "":
			say(row.Name+" "+row.Stopped, warnStyle)
		case row.Since != 0:
			say(row.Name+" started late: figures since "+units.FormatClock(differenceOrZero(p.d.live.Started, row.Since)), dim)
		}
	}
}

// simulatedCostText says how long simulated driver calls take, and how that is known.
func simulatedCostText(g *stats.Ghosts) string {
	const mib = 1 << 20
	costs := "simulated: a 1 MiB allocation takes " + formatDuration(uint64(g.CreateA+mib*g.CreateB)) + ", a release " + formatDuration(uint64(g.ReleaseA+mib*g.ReleaseB))
	switch {
	case g.Assumed:
		costs += " (assumed: too few calls measured so far)"
	case slices.ContainsFunc(g.Rows, func(row stats.Ghost) bool { return row.Assumed }):
		costs += "; what sub-allocations take is assumed: such rows are not ranked"
	}
	return costs
}

// autoText says whether the session switches policies by itself, and what it decided last.
func autoText(a *stats.Auto) string {
	switch {
	case a == nil:
		return ""
	case !a.Steers:
		return "auto: off, because the policy was changed by hand"
	case a.Said == "":
		return "auto: nothing is decided yet: that takes an experiment in the program"
	}
	return a.Said
}

// ghostRow is a ghost beside the configuration in force, which may be nil.
type ghostRow struct {
	*stats.Ghost
	present *stats.Ghost
}

var ghostColumns = []tableColumn[ghostRow]{
	{title: "HIT%", width: 6, rank: 0, cell: func(g ghostRow) span {
		return span{formatRatio(g.Hits, g.Requests), styleOfHitRate(g.HitRate(), g.Requests)}
	}},
	{title: "10 s", width: 6, rank: 4, cell: func(g ghostRow) span {
		return span{formatRatio(g.RecentHits, g.RecentRequests), styleOfHitRate(g.RecentHitRate(), g.RecentRequests)}
	}},
	{title: "PEAK", width: 8, rank: 2, cell: func(g ghostRow) span { return span{bytesText(g.PeakReserved), plain} }},
	{title: "HELD", width: 8, rank: 5, cell: func(g ghostRow) span { return span{bytesText(g.Reserved), dim} }},
	{title: "DRIVER", width: 9, rank: 1, cell: func(g ghostRow) span {
		if g.Assumed {
			return span{formatDuration(uint64(g.DriverNS)), dim}
		}
		return span{formatDuration(uint64(g.DriverNS)), plain}
	}},
	{title: "TO NOW", width: 8, rank: 3, cell: func(g ghostRow) span {
		if g.Assumed {
			return span{"assumed", dim}
		}
		if g.present == nil || !g.present.IsComparable() || !g.CoversRun() || g.Present || g.present.DriverNS <= 0 {
			return span{none, dim}
		}
		part := g.DriverNS/g.present.DriverNS - 1
		switch text := relativeChangeText(part); {
		case text == relativeChangeText(0):
			return span{text, dim}
		case part < 0:
			return span{text, goodStyle}
		default:
			return span{text, badStyle}
		}
	}},
}

// minGhost and mostGhost bound the width that the longest name gets before columns of numbers.
const minGhost, mostGhost = 16, 30

// ghostNameAt is where names begin, after place and mark.
const ghostNameAt = 6

// ghostTable is how the rows are drawn.
type ghostTable struct {
	columns []tableColumn[ghostRow]
	at      int          // where these begin
	present *stats.Ghost // nil: there is none
	common  []string     // settings that all ghosts have; names leave them out
}

// newGhostTable returns the table for a width.
func newGhostTable(g *stats.Ghosts, w int) *ghostTable {
	t := &ghostTable{present: g.PresentGhost(), common: commonSettings(g.Rows)}
	longest := 0
	for i := range g.Rows {
		longest = max(longest, textWidth(t.name(&g.Rows[i])))
	}
	columns, used := columnsThatFit(ghostColumns, w-1-ghostNameAt-max(minGhost, min(longest+1, mostGhost)), true)
	t.columns, t.at = columns, w-1-used
	return t
}

// name returns the name of a row in the list.
func (t *ghostTable) name(g *stats.Ghost) string {
	words := slices.DeleteFunc(strings.Fields(g.Name), func(word string) bool { return slices.Contains(t.common, word) })
	name := strings.Join(words, " ")
	if g.Present {
		name = "now: " + name
	}
	return name
}

// commonSettings returns the settings that all names have.
func commonSettings(rows []stats.Ghost) (common []string) {
	for i := range rows {
		words := strings.Fields(rows[i].Name)
		if i == 0 {
			common = words[min(1, len(words)):]
		}
		common = slices.DeleteFunc(common, func(word string) bool { return !slices.Contains(words, word) })
	}
	if len(rows) < 2 {
		return nil
	}
	return common
}

// ghostLegend explains the columns and the order of the rows.
var ghostLegend = []string{
	"HIT%: requests served without the driver, 10 s: those of the last ten seconds; PEAK and HELD: driver memory, the peak " +
		"and now; DRIVER: the time that driver calls would have taken; TO NOW: that time relative to the present policy.",
	"The best comes first: the least time in the driver and, within 1 %, the lowest peak. Ghosts with more than twice the " +
		"present policy's peak come later, then those at assumed costs.",
}

// drawGhostLegend draws the legend if all of it fits.
func drawGhostLegend(r region) {
	var lines []string
	for _, text := range ghostLegend {
		lines = append(lines, wrapText(text, r.w-2)...)
	}
	if len(lines) > r.h {
		return
	}
	for y, line := range lines {
		r.writeText(1, y, line, dim)
	}
}

func placeOnLeaderboard(g *stats.Ghosts, row *stats.Ghost) int {
	for i := range g.Rows {
		if &g.Rows[i] == row {
			return i
		}
	}
	return -1
}

// draw draws a row: "●" in force, "✗" stopped, "+" started late.
func (t *ghostTable) draw(r region, g *stats.Ghost, place int, chosen bool) {
	nameStyle, st, sign := plain, plain, span{}
	switch {
	case g.Stopped != "":
		sign, nameStyle = span{"✗", warnStyle}, dim
	case g.Present:
		sign = span{"●", goodStyle}
	case g.Since != 0:
		sign = span{"+", dim}
	}
	number := span{strconv.Itoa(place + 1), dim}
	switch {
	case !g.IsComparable():
		number.text, st = "", dim
	case place == 0:
		nameStyle = strong
	}
	if chosen {
		r.markChosenRow(0)
		nameStyle, st, sign.style, number.style = cursorStyle, cursorStyle, cursorStyle, cursorStyle
	}
	r.writeTextBefore(3, 0, number.text, number.style)
	r.writeSpans(4, 0, sign)
	r.writeTextInColumns(ghostNameAt, 0, t.at-ghostNameAt, t.name(g), nameStyle)
	drawCells(r, t.at, t.columns, ghostRow{g, t.present}, st)
}

// handleEnter shows the policy of the ghost at the cursor among those to switch to; y adopts the ghost that leads.
func (p *ghostsPane) handleEnter() {
	g, policies := p.simulatedGhosts(), &p.d.policies
	switch why := policies.obstacleText(); {
	case why != "":
		p.d.sayMessage(warnStyle, why)
	case g != nil && p.at < len(g.Rows):
		policies.showPolicyList()
		policies.at = max(0, slices.IndexFunc(p.d.o.Policies, func(o Policy) bool { return o.Name == g.Rows[p.at].Policy }))
	}
}

func (p *ghostsPane) move(m motion) {
	if g := p.simulatedGhosts(); g != nil {
		p.list.moveCursor(m, len(g.Rows))
	}
}
