package ui

import (
	"cmp"
	"slices"
	"strconv"

	"codeberg.org/gpumemtop/gpumemtop/internal/stats"
	"codeberg.org/gpumemtop/gpumemtop/internal/units"
	"codeberg.org/gpumemtop/gpumemtop/internal/wire"
)

// missesPane counts the reasons for driver calls, for all tags and for the chosen one.
type missesPane struct{ basePane }

func (p missesPane) title(*stats.Snapshot) (title, hint []span) {
	return append([]span{{"misses", titleStyle}}, p.d.filters[paneMisses].titleSpans()...), nil
}

// rankMisses returns the reasons that occurred, the most frequent first.
func rankMisses(reasons *[wire.MissPolicy + 1]uint64) []int {
	var out []int
	for i, n := range reasons {
		if n > 0 && wire.Miss(i) != wire.MissNone {
			out = append(out, i)
		}
	}
	slices.SortStableFunc(out, func(a, b int) int { return cmp.Compare(reasons[b], reasons[a]) })
	return out
}

func (p missesPane) draw(r region, s *stats.Snapshot) {
	if kinds := p.d.memoryKindItems(s); p.d.mode.pool && len(kinds) > 0 && r.h > 2 {
		r.writeItems(1, 0, 2, kinds)
		r = r.withoutRows(1)
	}
	if plans := &s.Totals.Plans; plans.PlannableRequests() > 0 && r.h > 2 {
		used := drawPlans(r, plans)
		r = r.withoutRows(used)
	}
	t := p.d.tags.currentTag(s)
	ranked := rankMisses(&s.Totals.MissReasons)
	if !p.d.mode.pool || len(ranked) == 0 {
		r.writeLines(1, 0, p.d.mode.noMisses, dim)
		return
	}
	const all, own, name = 10, 1, 13
	r.writeText(1, 0, "REASON", headStyle)
	r.writeTextBefore(r.w-all, 0, "ALL", headStyle)
	r.writeTextBefore(r.w-own, 0, "THIS TAG", headStyle)
	most := s.Totals.MissReasons[ranked[0]]
	for y, reason := range ranked {
		if y+1 >= r.h {
			break
		}
		r.writeText(1, y+1, wire.Miss(reason).String(), styleOfMissReason(wire.Miss(reason)))
		n := s.Totals.MissReasons[reason]
		if room := r.w - all - 9 - name - 1; room > 1 {
			r.repeatCluster(name+2, y+1, max(1, int(float64(n)/float64(most)*float64(room))), "▪", dim)
		}
		r.writeTextBefore(r.w-all, y+1, formatCount(n), plain)
		if t != nil {
			st := plain
			if t.MissReasons[reason] == 0 {
				st = dim
			}
			r.writeTextBefore(r.w-own, y+1, formatCount(t.MissReasons[reason]), st)
		}
	}
	if rest := r.withoutRows(len(ranked) + 2); rest.h > 1 {
		p.drawLatest(rest, s, "")
	}
}

// latestLeast is the least width in which names of call sites differ.
const latestLeast = 18

// drawLatest lists the last misses, of a call site alone if it has a name: where there is no room for call sites, nothing.
func (p missesPane) drawLatest(r region, s *stats.Snapshot, site string) {
	d := p.d
	time, size, reason, tag := 8, 16, 18, 32 // right ends of numbers, then where words begin
	narrow := r.w < 56
	if narrow {
		time, size, reason, tag = 0, 7, r.w, 9
	}
	if r.w-tag < latestLeast {
		return
	}
	r.writeTextBefore(time, 0, "LAST AT", headStyle)
	r.writeTextBefore(size, 0, "SIZE", headStyle)
	r.writeText(reason, 0, "REASON", headStyle)
	r.writeText(tag, 0, "CALL SITE"+textIf(narrow, " OF LAST"), headStyle)
	y := 1
	for i := range s.Misses {
		m := &s.Misses[i]
		switch n := d.processes.number; {
		case site != "" && m.Tag != site, n != 0 && m.Process != n, !d.filters[paneMisses].letsThrough(m.Tag + " " + m.Reason.String()):
			continue
		case y == r.h:
			return
		}
		at := differenceOrZero(s.Started, m.Time)
		r.writeTextBefore(time, y, units.FormatClock(at)+"."+strconv.FormatUint(at/1e8%10, 10), dim)
		r.writeTextBefore(size, y, bytesText(m.Size), plain)
		r.writeText(reason, y, m.Reason.String(), styleOfMissReason(m.Reason))
		r.writeNameInColumns(tag, y, r.w-tag-1, m.Tag, d.side, plain)
		y++
	}
	if y == 1 {
		r.writeText(2, 1, d.mode.noMisses, dim)
	}
}

// memoryKindItems are creates and hit rate of each kind of memory that a pool may serve; none if there are only buffers.
func (d *dashboard) memoryKindItems(s *stats.Snapshot) []item {
	var items []item
	others := false
	for i := range s.Kinds {
		k := &s.Kinds[i]
		if k.Hits+k.Misses == 0 {
			continue
		}
		others = others || k.Memory != wire.MemoryBuffer
		items = append(items, item{i, []span{
			{k.Memory.WordsForCreated() + " ", dim}, {formatCount(k.Creates), plain}, {" hit ", dim},
			{hitRateText(k.Hits, k.Misses), d.styleOfRunHitRate(s, k.Hits, k.Misses)},
		}})
	}
	if !others {
		return nil
	}
	return items
}

// drawPlans draws a line about the arenas of plans, and one about their requests, with the reasons why some were not served as
// planned. It returns the number of rows.
func drawPlans(r region, p *stats.Plans) int {
	line := "none yet"
	if p.Installed > 0 {
		line = "arena " + bytesText(p.Arenas)
		switch {
		case p.Arenas == p.Bound:
			line += ", optimal"
		case p.Bound > 0:
			line += ", at least " + bytesText(p.Bound)
		}
		line += "; reserved " + bytesText(p.Learning) + " before"
		if p.Reserved > 0 {
			line += ", " + bytesText(p.Reserved) + " now"
		}
	}
	r.writeText(1, 0, "PLAN", headStyle)
	r.writeText(6, 0, line, plain)
	line = formatPercent(p.ShareServedByPlan()) + " % as planned"
	for route := wire.RouteNoPlanYet; route <= wire.RouteNoArena; route++ {
		if n := p.Routes[route]; n > 0 {
			line += ", " + formatCount(n) + " " + route.String()
		}
	}
	r.writeText(6, 1, line, dim)
	return 2
}

// styleOfMissReason dims cold misses, which no policy avoids.
func styleOfMissReason(m wire.Miss) style {
	if m == wire.MissCold {
		return dim
	}
	return plain
}
