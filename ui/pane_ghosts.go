package ui

import (
	"strconv"

	"codeberg.org/gpumemtop/gpumemtop/internal/model"
)

// ghostColumn is a column of numbers in the list of ghosts, right-aligned. Those of the highest rank give way first.
type ghostColumn struct {
	title string
	width int
	rank  int
	text  func(g, present *model.Ghost) span
}

var ghostColumns = []ghostColumn{
	{"HIT%", 6, 0, func(g, _ *model.Ghost) span {
		return span{ratio(g.Hits, g.Requests), rateStyle(g.HitRate(), g.Requests)}
	}},
	{"10 s", 6, 4, func(g, _ *model.Ghost) span {
		return span{ratio(g.RecentHits, g.RecentRequests), rateStyle(g.RecentHitRate(), g.RecentRequests)}
	}},
	{"PEAK", 8, 2, func(g, _ *model.Ghost) span { return span{bytesText(g.PeakReserved), plain} }},
	{"HELD", 8, 5, func(g, _ *model.Ghost) span { return span{bytesText(g.Reserved), dim} }},
	{"DRIVER", 9, 1, func(g, _ *model.Ghost) span { return span{duration(uint64(g.DriverNS)), plain} }},
	{"TO NOW", 8, 3, func(g, present *model.Ghost) span {
		if present == nil || !present.Whole() || !g.Whole() || g.Present || present.DriverNS <= 0 {
			return span{none, dim}
		}
		part := g.DriverNS/present.DriverNS - 1
		st := badStyle
		if part <= 0 {
			st = goodStyle
		}
		return span{changeText(part), st}
	}},
}

// minGhost is how many columns the name of a configuration gets before columns of numbers are dropped for it.
const minGhost = 16

// ghostNameAt is where names begin: behind place and mark.
const ghostNameAt = 5

// ghostColumnsFor returns the columns that w has room for, and where they begin.
func ghostColumnsFor(w int) (shown []ghostColumn, at int) {
	for most := len(ghostColumns); ; most-- {
		shown, at = nil, w-1
		for _, c := range ghostColumns {
			if c.rank < most {
				shown, at = append(shown, c), at-c.width
			}
		}
		if at >= ghostNameAt+minGhost || most == 0 {
			return shown, at
		}
	}
}

// drawGhosts draws what each configuration would have done, the best first, and under the list what y does and what
// ghosts cost. Like the limits it shows the latest state even when the screen is frozen.
func (d *dashboard) drawGhosts(r region) {
	g := d.ghosts()
	if g == nil {
		r.text(1, 0, d.noGhosts(), dim)
		return
	}
	notes := d.ghostNotes(g, r.w-2)
	rows := max(1, min(len(g.Rows), max(r.h*2/3, r.h-1-len(notes))))
	columns, at := ghostColumnsFor(r.w)
	r.text(ghostNameAt, 0, "IF YOU HAD USED", headStyle)
	x := at
	for _, c := range columns {
		x += c.width
		r.right(x, 0, c.title, headStyle)
	}
	present := g.Present()
	for y := range min(rows, len(g.Rows)) {
		row := &g.Rows[y]
		if y == rows-1 && present != nil && placeOf(g, present) > y { // no room for all
			row = present
		}
		drawGhost(r.sub(0, y+1, r.w, 1), row, present, placeOf(g, row), columns, at)
	}
	under := rows + 1
	if r.h > under+len(notes) {
		under++
	}
	for y, note := range notes {
		r.text(1, under+y, note.text, note.style)
	}
	drawGhostWords(r.rows(under + len(notes) + 1))
}

// ghostWords say what is in the columns, and in which order the rows are.
var ghostWords = []string{
	"HIT%: requests served without the driver, 10 s: those of the last ten seconds; PEAK and HELD: memory of the driver's, at " +
		"most and now; DRIVER: the time that its calls would have taken; TO NOW: that time against the present policy's.",
	"The best is first: the least time in the driver, and of those within 1 % the lowest peak. Whose peak is more than twice the " +
		"present policy's comes last.",
}

// drawGhostWords explains the list where there is room for all of that.
func drawGhostWords(r region) {
	var lines []string
	for _, text := range ghostWords {
		lines = append(lines, wrap(text, r.w-2)...)
	}
	if len(lines) > r.h {
		return
	}
	for y, line := range lines {
		r.text(1, y, line, dim)
	}
}

func placeOf(g *model.Ghosts, row *model.Ghost) int {
	for i := range g.Rows {
		if &g.Rows[i] == row {
			return i
		}
	}
	return -1
}

// drawGhost draws a row: "●" in force, "✗" stopped, "+" came late.
func drawGhost(r region, g, present *model.Ghost, place int, columns []ghostColumn, at int) {
	nameStyle := plain
	switch {
	case g.Stopped != "":
		r.put(3, 0, "✗", warnStyle)
		nameStyle = dim
	case g.Present:
		r.put(3, 0, "●", goodStyle)
	case g.Since != 0:
		r.put(3, 0, "+", dim)
	}
	if g.Whole() {
		r.right(2, 0, strconv.Itoa(place+1), dim)
		if place == 0 {
			nameStyle = strong
		}
	}
	name := g.Name
	if g.Present {
		name = "now: " + name
	}
	r.textIn(ghostNameAt, 0, at-ghostNameAt, name, nameStyle)
	x := at
	for _, c := range columns {
		cell := c.text(g, present)
		if !g.Whole() {
			cell.style = dim
		}
		r.sub(x, 0, c.width, 1).right(c.width, 0, cell.text, cell.style)
		x += c.width
	}
}

// ghostNotes are the lines under the list, in a width.
func (d *dashboard) ghostNotes(g *model.Ghosts, w int) []span {
	var notes []span
	say := func(text string, st style) {
		for _, line := range wrap(text, w) {
			notes = append(notes, span{line, st})
		}
	}
	leader, why := d.adoptable()
	switch {
	case why != "":
		say(why, dim)
	case d.live.Auto != nil && d.live.Auto.Steers:
		say("y goes over to "+leader.Name+d.gainText()+", and ends auto", goodStyle)
	default:
		say("y goes over to "+leader.Name+d.gainText(), goodStyle)
	}
	if text := autoText(d.live.Auto); text != "" {
		say(text, plain)
	}
	for i := range g.Rows {
		row := &g.Rows[i]
		switch {
		case g.Stopped != "": // said of all
		case row.Stopped != "":
			say(row.Name+" "+row.Stopped, warnStyle)
		case row.Since != 0:
			say(row.Name+" came late: figures since "+clock(since(d.live.Started, row.Since)), dim)
		}
	}
	const mib = 1 << 20
	costs := "simulated: a create of 1 MiB takes " + duration(uint64(g.CreateA+mib*g.CreateB)) + ", a release " + duration(uint64(g.ReleaseA+mib*g.ReleaseB))
	if g.Assumed {
		costs += " (assumed: too few were timed yet)"
	}
	say(costs, dim)
	say("ghosts take "+percent(g.Busy)+" % of a core and "+bytesText(g.Bytes)+", "+count(uint64(g.Waiting))+" records behind", dim)
	return notes
}

func (d *dashboard) ghostsTitle() (title, hint []span) {
	n := 0
	if g := d.ghosts(); g != nil {
		n = len(g.Rows)
	}
	title = []span{{"ghosts ", titleStyle}, {strconv.Itoa(n) + d.ofAll(), dim}}
	hint = []span{{" w", keyStyle}, {" back ", dim}}
	if _, why := d.adoptable(); why == "" {
		hint = append([]span{{" y", keyStyle}, {" take the leader", dim}}, hint...)
	}
	return title, hint
}
