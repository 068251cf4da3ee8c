package ui

import (
	"cmp"
	"slices"

	"codeberg.org/gpumemtop/gpumemtop/internal/stats"
)

// freePane is the pool by size; after enter on a tag, that tag's free list, the largest total first.
type freePane struct {
	basePane
	top   int    // first row
	site  bool   // it shows the chosen tag
	asked uint64 // the size that was asked for, see fits; 0: none
}

func (p *freePane) title(s *stats.Snapshot) (title, hint []span) {
	fit := []span{{" ", dim}}
	if p.d.mode.pool {
		fit = []span{{" F", keyStyle}, {" does it fit? ", dim}}
	}
	if !p.site {
		name := paneNames[paneFree]
		if !p.d.mode.pool {
			name = "in use by size"
		}
		title = []span{{name, titleStyle}, {p.d.processes.scopeMarkText(), dim}}
		return title, append(fit, span{"enter", keyStyle}, span{p.d.mode.tagOpens, dim})
	}
	title = []span{{"free list ", titleStyle}}
	if t := p.d.tags.currentTag(s); t != nil {
		title = append(title, span{t.Name, dim})
	}
	return title, []span{{" esc", keyStyle}, {" back ", dim}}
}

func (p *freePane) move(m motion) {
	p.top = max(0, min(p.top, far)+m.rowsDown(max(1, p.d.tags.page-1))) // drawing bounds it
}

// showFreeListOfTag shows the free list of the chosen tag alone.
func (p *freePane) showFreeListOfTag() {
	d := p.d
	if d.zoom != paneFree || p.site {
		d.showPaneAlone(paneFree)
	}
	p.site = d.zoom == paneFree
}

func (p *freePane) handleEnter() { p.showFreeListOfTag() }

func (p *freePane) draw(r region, s *stats.Snapshot) {
	if !p.site {
		p.drawSizes(r, s)
		return
	}
	t := p.d.tags.currentTag(s)
	if t == nil {
		r.writeText(1, 0, "no tag", dim)
		return
	}
	classes := slices.Clone(t.Free)
	slices.SortStableFunc(classes, func(a, b stats.FreeClass) int {
		return cmp.Or(cmp.Compare(float64(b.Size)*float64(b.Blocks), float64(a.Size)*float64(a.Blocks)), cmp.Compare(b.Size, a.Size))
	})
	if r.h >= 3 {
		drawFreeListHead(r, t.Slabs)
		r = r.withoutRows(1)
	}
	if r.h >= 12 {
		p.d.tags.drawStack(r.withoutRows(r.h-6), s)
		r = r.subRegion(0, 0, r.w, r.h-6)
	}
	if r.h >= 16 && p.d.mode.pool {
		missesPane{p.basePane}.drawLatest(r.withoutRows(r.h-8), s, t.Name)
		r = r.subRegion(0, 0, r.w, r.h-8)
	}
	if len(classes) == 0 {
		r.writeText(1, 0, p.d.mode.noBlocks, dim)
		return
	}
	p.top = max(0, min(p.top, len(classes)-r.h))
	most := uint64(1)
	for i := range classes {
		most = max(most, classes[i].Blocks)
	}
	for y := range min(r.h, len(classes)-p.top) {
		drawFreeListRow(r.subRegion(0, y, r.w, 1), &classes[p.top+y], most, s.Time)
	}
}

// freeSize is the right end of the column of sizes.
const freeSize = 8

// freeRow is a size in the free list, at a time.
type freeRow struct {
	*stats.FreeClass
	now uint64
}

var freeColumns = []tableColumn[freeRow]{
	{title: "BLOCKS", width: 8, cell: func(c freeRow) span { return span{formatCount(c.Blocks), plain} }},
	{title: "BYTES", width: 9, cell: func(c freeRow) span { return span{bytesText(saturatingProduct(c.Size, c.Blocks)), cachedStyle} }},
	{title: "COOL", width: 5, cell: func(c freeRow) span {
		if c.Cooling == 0 {
			return span{"0", dim}
		}
		return span{formatCount(c.Cooling), coolingStyle}
	}},
	{title: "OLDEST", width: 8, cell: func(c freeRow) span { return ageOfBlockSpan(c.Oldest, c.now) }},
}

// ageOfBlockSpan writes the time from then to now; then 0: it never happened.
func ageOfBlockSpan(then, now uint64) span {
	if then == 0 {
		return span{none, dim}
	}
	return span{formatDuration(differenceOrZero(then, now)), dim}
}

func drawFreeListHead(r region, slabs bool) {
	r.writeTextBefore(freeSize, 0, "SIZE", headStyle)
	columns, used := columnsThatFit(freeColumns, r.w-freeSize-1, true)
	if slabs && len(columns) > 0 {
		columns[0].title = "SLABS"
	}
	drawTitles(r, r.w-1-used, columns, nil)
}

func drawFreeListRow(r region, c *stats.FreeClass, most, now uint64) {
	r.writeTextBefore(freeSize, 0, bytesText(c.Size), plain)
	columns, used := columnsThatFit(freeColumns, r.w-freeSize-1, true)
	x := r.w - 1 - used
	if room := x - freeSize; room > 2 {
		n := max(1, int(float64(c.Blocks)/float64(most)*float64(room)))
		r.repeatCluster(freeSize+1, 0, min(n, room), "▪", cachedStyle)
	}
	drawCells(r, x, columns, freeRow{c, now}, plain)
}

// saturatingProduct returns the product, or the largest number on overflow.
func saturatingProduct(a, b uint64) uint64 {
	if a != 0 && a*b/a != b {
		return ^uint64(0)
	}
	return a * b
}
