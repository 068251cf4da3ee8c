package ui

import (
	"strconv"

	"codeberg.org/gpumemtop/gpumemtop/internal/stats"
	"codeberg.org/gpumemtop/gpumemtop/internal/units"
)

// heapPane draws each slab as a strip of what lies in it, the most scattered first.
type heapPane struct {
	basePane
	list
}

func (p *heapPane) title(s *stats.Snapshot) (title, hint []span) {
	title = []span{{"heap map", titleStyle}}
	if m := s.Heap; m != nil && m.Total > 0 {
		title = append(title, span{" of " + pluralText(m.Total, "slab") + ", worst first", dim})
	}
	hint = []span{{" █", inUseStyle}, {" in use ", dim}, {"▄", inUseStyle}, {" in part ", dim}, {"░", coolingStyle}, {" cooling ", dim}, {"·", dim}, {" hole ", dim}}
	return title, append(hint, span{" F", keyStyle}, span{" fits? ", dim}, span{" H", keyStyle}, span{" back ", dim})
}

// shownSlabs are those of the chosen process, or of all.
func (p *heapPane) shownSlabs(s *stats.Snapshot) []stats.MappedSlab {
	if s.Heap == nil || p.d.processes.number == 0 {
		return mappedSlabs(s)
	}
	var own []stats.MappedSlab
	for _, slab := range s.Heap.Slabs {
		if slab.Process == p.d.processes.number {
			own = append(own, slab)
		}
	}
	return own
}

func mappedSlabs(s *stats.Snapshot) []stats.MappedSlab {
	if s.Heap == nil {
		return nil
	}
	return s.Heap.Slabs
}

var heapColumns = []tableColumn[*stats.MappedSlab]{
	{title: "SIZE", width: 8, rank: 4, cell: func(m *stats.MappedSlab) span { return span{bytesText(m.Size), plain} }},
	{title: "USED%", width: 7, rank: 0, cell: func(m *stats.MappedSlab) span { return span{formatRatio(m.InUse, m.Size), plain} }},
	{title: "FREE", width: 8, rank: 2, cell: func(m *stats.MappedSlab) span { return span{bytesText(m.FreeBytes()), cachedStyle} }},
	{title: "HOLES", width: 7, rank: 3, cell: func(m *stats.MappedSlab) span { return span{strconv.Itoa(m.Holes), plain} }},
	{title: "LARGEST", width: 9, rank: 1, cell: func(m *stats.MappedSlab) span { return span{bytesText(m.Largest), plain} }},
}

func (p *heapPane) draw(r region, s *stats.Snapshot) {
	slabs := p.shownSlabs(s)
	if len(slabs) == 0 {
		r.writeLines(1, 0, p.missingText(s), dim)
		return
	}
	r = r.subRegion(1, 0, r.w-2, r.h)
	notes := p.noteLines(s, slabs, r.w)
	notes = notes[:min(len(notes), max(0, r.h-2))]
	for y, note := range notes {
		r.writeText(0, r.h-len(notes)+y, note.text, note.style)
	}
	r = r.subRegion(0, 0, r.w, r.h-len(notes))
	columns, used := columnsThatFit(heapColumns, r.w/2, true)
	name, several := 6, len(s.Processes) > 1 && p.d.processes.number == 0
	if several {
		name = 9
	}
	x := name + 1 + used + 2
	r.writeText(0, 0, "SLAB", headStyle)
	drawTitles(r, name+1, columns, s)
	p.setPageAndScroll(r.h-1, len(slabs))
	for y := range min(max(0, r.h-1), len(slabs)-p.top) {
		m, st := &slabs[p.top+y], plain
		if p.top+y == p.at {
			st = cursorStyle
		}
		line := r.subRegion(0, y+1, r.w, 1)
		line.writeTextInColumns(0, 0, name, slabName(m, several), st)
		drawCells(line, name+1, columns, m, st)
		drawSlabStrip(line.subRegion(x, 0, line.w-x, 1), m)
	}
}

// slabName is short: "s12", of a plan's arena "a12", behind the process where there are several.
func slabName(m *stats.MappedSlab, several bool) string {
	text := "s" + strconv.Itoa(int(m.Number))
	if m.Arena {
		text = "a" + text[1:]
	}
	if several {
		text = strconv.Itoa(int(m.Process)) + ":" + text
	}
	return text
}

// drawSlabStrip draws what lies where. A cell of the screen stands for one or more of the map: it is a hole only if all of
// it is free.
func drawSlabStrip(r region, m *stats.MappedSlab) {
	n := min(r.w, stats.MapCells)
	for x := range n {
		from, until := x*stats.MapCells/n, (x+1)*stats.MapCells/n
		inUse, cools := 0, 0
		for i := from; i < until; i++ {
			a, b := m.CellUse(i)
			inUse, cools = inUse+a, cools+b
		}
		switch {
		case inUse+until-from >= 15*(until-from): // except for what rounding took
			r.putCluster(x, 0, "█", inUseStyle)
		case inUse > 0 && inUse >= cools:
			r.putCluster(x, 0, "▄", inUseStyle)
		case cools > 0:
			r.putCluster(x, 0, "░", coolingStyle)
		default:
			r.putCluster(x, 0, "·", dim)
		}
	}
}

// noteLines are the lines under the map: sums, what they are worth, and whether the size that was asked for fits.
func (p *heapPane) noteLines(s *stats.Snapshot, slabs []stats.MappedSlab, w int) (noteLines []span) {
	h := sumOfHoles(slabs)
	sums := "in slabs: in use " + bytesText(h.inUse) + ", free " + bytesText(h.free) + " in " + pluralText(uint64(h.holes), "hole") + ", the largest " +
		bytesText(h.largest) + "; a slab serves up to " + bytesText(h.serves)
	if s.Heap.Total > uint64(len(s.Heap.Slabs)) {
		sums += "; of the " + formatCount(uint64(len(s.Heap.Slabs))) + " slabs with most free memory"
	}
	worth := dim
	if m := s.Heap; m.Since != 0 || s.Lost > 0 || m.Ended != "" {
		worth = warnStyle
	}
	text := []span{{sums, plain}, {heapMapCaveat(s), worth}}
	if asked := p.d.free.asked; asked > 0 {
		fits, st := fitsInSlabsText(h, asked)
		text = append(text, span{fits, st})
	}
	for _, t := range text {
		for _, line := range wrapText(t.text, w) {
			noteLines = append(noteLines, span{line, t.style})
		}
	}
	return noteLines
}

// heapMapCaveat says how the map was made, and what is missing in it.
func heapMapCaveat(s *stats.Snapshot) string {
	m := s.Heap
	switch {
	case m.Ended != "":
		return "the map stays as it was at " + units.FormatClock(differenceOrZero(s.Started, m.Time)) + ": " + m.Ended
	case m.Since != 0:
		return "≈ without what was there at " + units.FormatClock(differenceOrZero(s.Started, m.Since)) + ", when the policy began to cut slabs or events were missing"
	case s.Lost > 0:
		return "≈ where parts lie is worked out from the records; lost events are missing in them"
	}
	return "where parts lie is worked out from the records"
}

// missingText says why there is no map.
func (p *heapPane) missingText(s *stats.Snapshot) string {
	why := s.WhyNothingCarved()
	switch {
	case !p.d.mode.pool:
		return p.d.mode.noBlocks
	case !s.CarvesSlabs():
		return "policy " + s.Policy + " cuts no slabs: each block is an object of the driver, whose place nothing says"
	case why != "":
		return "no slab: " + why
	case s.Heap == nil && s.Totals.Slabs > 0:
		return "no map: nothing is simulated beside this run (--ghosts usual)"
	case s.Heap != nil && s.Heap.Ended != "":
		return "no map: " + s.Heap.Ended
	}
	return "no slab yet"
}

// holes are sums over slabs.
type holes struct {
	inUse, free, largest, serves uint64
	holes                        int
}

func sumOfHoles(slabs []stats.MappedSlab) (h holes) {
	for i := range slabs {
		m := &slabs[i]
		h.inUse, h.free, h.holes = h.inUse+m.InUse, h.free+m.FreeBytes(), h.holes+m.Holes
		h.largest, h.serves = max(h.largest, m.Largest), max(h.serves, m.Serves)
	}
	return h
}

// fitsInSlabsText says whether a slab that is there could serve a request of a size, and if not, whether holes are too small or
// too little is free.
func fitsInSlabsText(h holes, size uint64) (string, style) {
	text := bytesText(size) + " now: "
	switch {
	case size <= h.serves:
		return text + "fits a slab of its class", goodStyle
	case size <= h.largest:
		return text + "no slab serves it, though a hole is as large: by max_part, the policy's cuts, or a plan", warnStyle
	case size <= h.free:
		return text + "does not fit: " + bytesText(h.free) + " are free, but no hole is larger than " + bytesText(h.largest) + " (fragmentation)", badStyle
	}
	return text + "does not fit: only " + bytesText(h.free) + " are free in slabs", badStyle
}

func (p *heapPane) move(m motion) {
	if s := p.d.shownSnapshot(); s != nil {
		p.list.moveCursor(m, len(p.shownSlabs(s)))
	}
}

func (p *heapPane) handleEnter() {}
