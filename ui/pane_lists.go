package ui

import (
	"cmp"
	"slices"

	"codeberg.org/gpumemtop/gpumemtop/internal/model"
	"codeberg.org/gpumemtop/gpumemtop/internal/wire"
)

// drawFree draws the free blocks of the chosen tag, one row per size, largest total first.
func (d *dashboard) drawFree(r region, s *model.Snapshot) {
	t := d.tags.current(s)
	if t == nil {
		r.text(1, 0, "no tag", dim)
		return
	}
	classes := slices.Clone(t.Free)
	slices.SortStableFunc(classes, func(a, b model.FreeClass) int {
		return cmp.Or(cmp.Compare(float64(b.Size)*float64(b.Blocks), float64(a.Size)*float64(a.Blocks)), cmp.Compare(b.Size, a.Size))
	})
	if r.h >= 3 {
		drawFreeHead(r, t.Slabs)
		r = r.rows(1)
	}
	if d.zoom == paneFree && r.h >= 12 {
		d.drawStack(r.rows(r.h-6), s)
		r = r.sub(0, 0, r.w, r.h-6)
	}
	if len(classes) == 0 {
		text := "nothing cached"
		if d.o.Attached {
			text = "no pool that could keep anything"
		}
		r.text(1, 0, text, dim)
		return
	}
	d.freeTop = max(0, min(d.freeTop, len(classes)-r.h))
	most := uint64(1)
	for i := range classes {
		most = max(most, classes[i].Blocks)
	}
	for y := range min(r.h, len(classes)-d.freeTop) {
		drawFreeRow(r.sub(0, y, r.w, 1), &classes[d.freeTop+y], most, s.Time)
	}
}

// freeSize is the right end of the column of sizes.
const freeSize = 8

// freeColumn is a column of numbers in the free list, right-aligned.
type freeColumn struct {
	title string
	width int
	text  func(c *model.FreeClass, now uint64) span
}

var freeColumns = []freeColumn{
	{"BLOCKS", 8, func(c *model.FreeClass, _ uint64) span { return span{count(c.Blocks), plain} }},
	{"BYTES", 9, func(c *model.FreeClass, _ uint64) span { return span{bytesText(times(c.Size, c.Blocks)), cachedStyle} }},
	{"COOL", 5, func(c *model.FreeClass, _ uint64) span {
		if c.Cooling == 0 {
			return span{"0", dim}
		}
		return span{count(c.Cooling), coolingStyle}
	}},
	{"OLDEST", 8, func(c *model.FreeClass, now uint64) span {
		if c.Oldest == 0 {
			return span{none, dim}
		}
		return span{duration(since(c.Oldest, now)), dim}
	}},
}

// freeColumnsFor returns the columns that w has room for besides the size, and where they begin.
func freeColumnsFor(w int) ([]freeColumn, int) {
	n, used := 0, 0
	for n < len(freeColumns) && freeSize+used+freeColumns[n].width < w {
		used += freeColumns[n].width
		n++
	}
	return freeColumns[:n], w - 1 - used
}

func drawFreeHead(r region, slabs bool) {
	r.right(freeSize, 0, "SIZE", headStyle)
	columns, x := freeColumnsFor(r.w)
	for i, c := range columns {
		x += c.width
		if slabs && i == 0 {
			c.title = "SLABS"
		}
		r.right(x, 0, c.title, headStyle)
	}
}

func drawFreeRow(r region, c *model.FreeClass, most, now uint64) {
	r.right(freeSize, 0, bytesText(c.Size), plain)
	columns, x := freeColumnsFor(r.w)
	if room := x - freeSize; room > 2 {
		n := max(1, int(float64(c.Blocks)/float64(most)*float64(room)))
		r.repeat(freeSize+1, 0, min(n, room), "▪", cachedStyle)
	}
	for _, column := range columns {
		cell := column.text(c, now)
		r.sub(x, 0, column.width, 1).right(column.width, 0, cell.text, cell.style)
		x += column.width
	}
}

// times returns the product, and the largest number where it does not fit.
func times(a, b uint64) uint64 {
	if a != 0 && a*b/a != b {
		return ^uint64(0)
	}
	return a * b
}

// rankMisses returns the reasons that occurred, the commonest first.
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

// drawMisses draws why the driver was called, for all tags and for the chosen one.
func (d *dashboard) drawMisses(r region, s *model.Snapshot) {
	t := d.tags.current(s)
	ranked := rankMisses(&s.Totals.MissReasons)
	if d.o.Attached {
		for y, line := range wrap("no pool: every create goes to the driver", r.w-2) {
			r.textIn(1, y, r.w-2, line, dim)
		}
		return
	}
	if len(ranked) == 0 {
		r.text(1, 0, "no misses", dim)
		return
	}
	const all, own, name = 10, 1, 13
	r.text(1, 0, "REASON", headStyle)
	r.right(r.w-all, 0, "ALL", headStyle)
	r.right(r.w-own, 0, "THIS TAG", headStyle)
	most := s.Totals.MissReasons[ranked[0]]
	for y, reason := range ranked {
		if y+1 >= r.h {
			break
		}
		r.text(1, y+1, wire.Miss(reason).String(), missStyle(wire.Miss(reason)))
		n := s.Totals.MissReasons[reason]
		if room := r.w - all - 9 - name - 1; room > 1 {
			r.repeat(name+2, y+1, max(1, int(float64(n)/float64(most)*float64(room))), "▪", dim)
		}
		r.right(r.w-all, y+1, count(n), plain)
		if t != nil {
			st := plain
			if t.MissReasons[reason] == 0 {
				st = dim
			}
			r.right(r.w-own, y+1, count(t.MissReasons[reason]), st)
		}
	}
}

// missStyle greys the one reason that is no fault: a first request.
func missStyle(m wire.Miss) style {
	if m == wire.MissCold {
		return dim
	}
	return plain
}

// drawOutput draws the last lines of the program, or older ones when scrolled back.
func (d *dashboard) drawOutput(r region) {
	d.output.page = r.h
	lines := d.output.visible(r.h)
	if len(lines) == 0 {
		r.text(1, 0, "nothing printed yet", dim)
		return
	}
	for y, line := range lines {
		st, mark := plain, " "
		if line.Stderr {
			st, mark = cachedStyle, "!"
		}
		r.put(0, y, mark, badStyle)
		r.textIn(1, y, r.w-1, line.Text, st)
	}
}
