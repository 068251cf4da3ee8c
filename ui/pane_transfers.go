package ui

import (
	"cmp"
	"fmt"

	"codeberg.org/gpumemtop/gpumemtop/internal/stats"
	"codeberg.org/gpumemtop/gpumemtop/internal/units"
)

// transfersPane shows what commands move between host and device, now and in all, and from where.
type transfersPane struct {
	basePane
	list
}

func (p *transfersPane) title(s *stats.Snapshot) (title, hint []span) {
	title = []span{{"transfers", titleStyle}, {p.d.processes.scopeMarkText(), dim}}
	if s.Transfers.Unified {
		title = append(title, span{", in memory that host and device share", dim})
	}
	title = append(title, p.d.filters[paneTransfers].titleSpans()...)
	if p.d.zoom != paneTransfers {
		return title, []span{{" b", keyStyle}, {" zoom ", dim}}
	}
	return title, []span{{" b", keyStyle}, {" back ", dim}}
}

// filteredSites are the rows that the filter takes.
func (p *transfersPane) filteredSites(s *stats.Snapshot) []stats.TransferSite {
	return applyFilter(&p.d.filters[paneTransfers], s.Transfers.Sites, func(t *stats.TransferSite) string { return t.CommandText() + " " + t.Name })
}

// transferSpeedText writes the speed of the transfers whose time is known.
func transferSpeedText(f *stats.Flow) string {
	return cmp.Or(units.FormatRate(f.BytesPerSecond()), none)
}

func (p *transfersPane) draw(r region, s *stats.Snapshot) {
	t := &s.Transfers
	list := p.filteredSites(s)
	sites := len(list)
	if !t.HasAny() {
		r.writeLines(1, 0, "no command has moved memory", dim)
		return
	}
	whole := r
	r = r.subRegion(1, 0, r.w-2, r.h)
	y := p.drawDirections(r, t)
	if r.h >= 8 {
		y++
	}
	name := transferName
	if r.w < name+minTagName {
		name = transferBytes + 2
	}
	if r.h >= y+2 {
		drawTransferHead(r.subRegion(0, y, r.w, 1), name, t.OwnSites)
		y++
	}
	p.setPageAndScroll(r.h-y, sites)
	for i := range list[p.top:min(sites, p.top+max(0, r.h-y))] {
		site := &list[p.top+i]
		style := plain
		if p.top+i == p.at {
			style = cursorStyle
			whole.markChosenRow(y + i)
		}
		r.writeTextBefore(transferCalls, y+i, formatCount(site.Calls), style)
		r.writeTextBefore(transferBytes, y+i, bytesText(site.Bytes), style)
		if name == transferName {
			r.writeTextBefore(transferSpeed, y+i, transferSpeedText(&site.Flow), style)
			r.writeText(transferCommand, y+i, site.CommandText(), style)
		}
		r.writeNameInColumns(name, y+i, r.w-name, site.Name, p.d.side, style)
	}
}

// Where columns of transfers end, and where the last two begin. Narrow panes have neither speed nor command.
const (
	transferCalls   = 8
	transferBytes   = 16
	transferSpeed   = 28
	transferCommand = 30
	transferName    = 39
)

func drawTransferHead(r region, name int, ownSites bool) {
	r.writeTextBefore(transferCalls, 0, "CALLS", headStyle)
	r.writeTextBefore(transferBytes, 0, "BYTES", headStyle)
	if name == transferName {
		r.writeTextBefore(transferSpeed, 0, "SPEED", headStyle)
		r.writeText(transferCommand, 0, "COMMAND", headStyle)
	}
	title := "MEMORY OF CALL SITE"
	if ownSites || r.w < name+textWidth(title) {
		title = "CALL SITE"
	}
	r.writeText(name, 0, title, headStyle)
}

// drawDirections draws a row for each direction with transfers, and returns the number of rows. Those between host and device
// also have the bytes of the last second and a chart of the last minute.
func (p *transfersPane) drawDirections(r region, t *stats.Transfers) (rows int) {
	for d := stats.ToDevice; d <= stats.AtCreate; d++ {
		f := &t.Directions[d]
		if f.Calls == 0 {
			continue
		}
		items := []item{{0, []span{{fmt.Sprintf("%-10s", d), headStyle}}}}
		if d <= stats.ToHost {
			items = append(items, item{1, []span{{fmt.Sprintf("%11s", cmp.Or(units.FormatRate(float64(t.Window[d])), "0 B/s")), plain}}})
		}
		items = append(items, item{2, []span{{bytesText(f.Bytes), plain}, {" in ", dim}, {pluralText(f.Calls, "call"), plain}}})
		if f.NS+f.ProfiledNS > 0 && d < stats.Mapped {
			items = append(items, item{3, []span{{"at ", dim}, {transferSpeedText(f), plain}}})
		}
		if all := f.Pinned + f.Pageable; f.Pinned > 0 {
			items = append(items, item{4, []span{{formatPercent(float64(f.Pinned)/float64(all)) + "%", plain}, {" pinned", dim}}})
		}
		if f.Cold > 0 && f.IsColdKnown() {
			items = append(items, item{5, []span{{formatPercent(float64(f.Cold)/float64(f.Pages)) + "%", warnStyle}, {" into cold pages", dim}}})
		}
		x := r.writeAllItems(0, rows, 2, fitItems(items, r.w, 2)) + 2
		if d <= stats.ToHost && r.w-x > 10 {
			r.drawTrend(x, rows, min(r.w-x, 60), t.Trend[d], trendStyle)
		}
		rows++
	}
	return rows
}

func (p *transfersPane) move(m motion) {
	if s := p.d.shownSnapshot(); s != nil {
		p.list.moveCursor(m, len(p.filteredSites(s)))
	}
}

func (p *transfersPane) handleEnter() {}
