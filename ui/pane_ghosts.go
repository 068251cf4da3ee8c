package ui

import (
	"slices"
	"strconv"
	"strings"

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

// minGhost and mostGhost are how many columns the name of a configuration gets before columns of numbers are dropped for
// it, by the longest of them.
const minGhost, mostGhost = 16, 30

// ghostNameAt is where names begin: behind place and mark.
const ghostNameAt = 5

// ghostTable is how the rows are drawn.
type ghostTable struct {
	columns []ghostColumn
	at      int          // where these begin
	present *model.Ghost // nil: there is none
	common  []string     // settings that all have, which no name tells
}

// newGhostTable returns the table for a width.
func newGhostTable(g *model.Ghosts, w int) *ghostTable {
	t := &ghostTable{present: g.Present(), common: commonSettings(g.Rows)}
	longest := 0
	for i := range g.Rows {
		longest = max(longest, width(t.name(&g.Rows[i])))
	}
	t.columns, t.at = ghostColumnsFor(w, max(minGhost, min(longest+1, mostGhost)))
	return t
}

// name is what a row is called in the list.
func (t *ghostTable) name(g *model.Ghost) string {
	words := slices.DeleteFunc(strings.Fields(g.Name), func(word string) bool { return slices.Contains(t.common, word) })
	name := strings.Join(words, " ")
	if g.Present {
		name = "now: " + name
	}
	return name
}

// commonSettings returns the settings that are in all names.
func commonSettings(rows []model.Ghost) (common []string) {
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

// ghostColumnsFor returns the columns that w has room for beside names, and where they begin.
func ghostColumnsFor(w, names int) (shown []ghostColumn, at int) {
	for most := len(ghostColumns); ; most-- {
		shown, at = nil, w-1
		for _, c := range ghostColumns {
			if c.rank < most {
				shown, at = append(shown, c), at-c.width
			}
		}
		if at >= ghostNameAt+names || most == 0 {
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
	t := newGhostTable(g, r.w)
	notes := d.ghostNotes(g, t, r.w-2)
	rows := max(1, min(len(g.Rows), max(r.h*2/3, r.h-1-len(notes))))
	r.text(ghostNameAt, 0, "IF YOU HAD USED", headStyle)
	x := t.at
	for _, c := range t.columns {
		x += c.width
		r.right(x, 0, c.title, headStyle)
	}
	for y := range min(rows, len(g.Rows)) {
		row := &g.Rows[y]
		if y == rows-1 && t.present != nil && placeOf(g, t.present) > y { // no room for all
			row = t.present
		}
		t.draw(r.sub(0, y+1, r.w, 1), row, placeOf(g, row))
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

// draw draws a row: "●" in force, "✗" stopped, "+" came late.
func (t *ghostTable) draw(r region, g *model.Ghost, place int) {
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
	r.textIn(ghostNameAt, 0, t.at-ghostNameAt, t.name(g), nameStyle)
	x := t.at
	for _, c := range t.columns {
		cell := c.text(g, t.present)
		if !g.Whole() {
			cell.style = dim
		}
		r.sub(x, 0, c.width, 1).right(c.width, 0, cell.text, cell.style)
		x += c.width
	}
}

// ghostNotes are the lines under the list, in a width.
func (d *dashboard) ghostNotes(g *model.Ghosts, t *ghostTable, w int) []span {
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
	if text := d.presentText(t.present); text != "" {
		say(text, plain)
	}
	if len(t.common) > 0 {
		say("all with "+strings.Join(t.common, " "), dim)
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

// presentText says that the row of what is in force is not of the run, where that began otherwise; empty where it did not.
func (d *dashboard) presentText(present *model.Ghost) string {
	changes := d.live.Change.Done
	if present == nil || present.Since != 0 || changes == 0 {
		return ""
	}
	t := &d.live.Totals
	return "● is simulated from the start, as all are: the run itself, with " + plural(changes, "change") +
		", hit " + hitText(t.Hits, t.Misses) + " so far"
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
