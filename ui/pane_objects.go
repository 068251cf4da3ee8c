package ui

import (
	"fmt"

	"codeberg.org/gpumemtop/gpumemtop/internal/stats"
)

// objectsPane shows how many objects programs hold besides memory, and who created them.
type objectsPane struct {
	basePane
	list
}

func (p *objectsPane) title(*stats.Snapshot) (title, hint []span) {
	title = []span{{"objects", titleStyle}, {p.d.processes.scopeMarkText(), dim}}
	return append(title, p.d.filters[paneObjects].titleSpans()...), []span{{" n", keyStyle}, {" back ", dim}}
}

// filteredSites are the rows that the filter takes.
func (p *objectsPane) filteredSites(s *stats.Snapshot) []stats.TypedSite {
	return applyFilter(&p.d.filters[paneObjects], stats.SitesWithLiveObjects(s.Objects, 0), func(o *stats.TypedSite) string { return o.Type.String() + " " + o.Tag })
}

// styleOfGrowth marks what grows.
func styleOfGrowth(more int64) style {
	if more > 0 {
		return warnStyle
	}
	return dim
}

// growthText writes by how many a number of objects has grown.
func growthText(more int64) string {
	if more == 0 {
		return "-"
	}
	return fmt.Sprintf("%+d", more)
}

// Columns of both tables: right edges of numbers, then where words begin.
const (
	objectsLive, objectsMore, objectsCreated, objectsPeak = 10, 19, 31, 41
	objectsType, objectsSite                              = 33, 52
)

func (p *objectsPane) draw(r region, s *stats.Snapshot) {
	if len(s.Objects) == 0 {
		r.writeLines(1, 0, "no object but memory has been created", dim)
		return
	}
	whole := r
	r = r.subRegion(1, 0, r.w-2, r.h)
	drawObjectHeads(r, 0)
	r.writeTextBefore(objectsPeak, 0, "PEAK", headStyle)
	r.writeText(objectsPeak+2, 0, "TYPE", headStyle)
	y := 1
	for i := range s.Objects {
		c := &s.Objects[i]
		drawObjectNumbers(r, y, c.Live, c.Recent, c.Created, plain)
		r.writeTextBefore(objectsPeak, y, formatTableCount(c.Peak), plain)
		word := c.Type.PluralWords()
		if c.Untracked > 0 {
			word += " at least"
		}
		r.writeTextInColumns(objectsPeak+2, y, r.w-objectsPeak-2, word, plain)
		y++
	}
	y++
	drawObjectHeads(r, y)
	r.writeText(objectsType, y, "TYPE", headStyle)
	r.writeText(objectsSite, y, "CALL SITE", headStyle)
	y++
	sites := p.filteredSites(s)
	p.setPageAndScroll(r.h-y, len(sites))
	for i := range min(max(0, r.h-y), len(sites)-p.top) {
		site, style := &sites[p.top+i], plain
		if p.top+i == p.at {
			style = cursorStyle
			whole.markChosenRow(y + i)
		}
		drawObjectNumbers(r, y+i, site.Live, site.Recent, site.Created, style)
		r.writeText(objectsType, y+i, site.Type.String(), style)
		r.writeNameInColumns(objectsSite, y+i, r.w-objectsSite, site.Tag, p.d.side, style)
	}
}

func drawObjectHeads(r region, y int) {
	r.writeTextBefore(objectsLive, y, "LIVE", headStyle)
	r.writeTextBefore(objectsMore, y, "+MINUTE", headStyle)
	r.writeTextBefore(objectsCreated, y, "CREATED", headStyle)
}

func drawObjectNumbers(r region, y int, live uint64, more int64, created uint64, st style) {
	r.writeTextBefore(objectsLive, y, formatTableCount(live), st)
	grown := st
	if st == plain {
		grown = styleOfGrowth(more)
	}
	r.writeTextBefore(objectsMore, y, growthText(more), grown)
	r.writeTextBefore(objectsCreated, y, formatTableCount(created), st)
}

func (p *objectsPane) move(m motion) {
	if s := p.d.shownSnapshot(); s != nil {
		p.list.moveCursor(m, len(p.filteredSites(s)))
	}
}

func (p *objectsPane) handleEnter() {}
