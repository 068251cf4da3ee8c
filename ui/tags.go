package ui

import (
	"cmp"
	"slices"

	"codeberg.org/gpumemtop/gpumemtop/internal/model"
	"codeberg.org/gpumemtop/gpumemtop/internal/wire"
)

// tagColumn is one column of the tag table. The first takes what the others leave.
type tagColumn struct {
	title string
	width int // with the blanks before it
	rank  int // columns of the highest rank go first when there is no room
	text  func(*model.Tag) string
	style func(*model.Tag) style
	order func(a, b *model.Tag) int // nil: cannot be sorted by; the larger comes first unless reversed
	pool  bool                      // says something of a pool
}

const nameColumn = 0

// minTagName is how many columns a name gets before columns of numbers are dropped for it.
const minTagName = 22

// trendTitle marks the column that is drawn, not printed.
const trendTitle = "TREND"

// lowHits marks a tag: so low a hit rate over so many requests is worth a look.
const (
	lowHitRate  = 0.8
	lowHitCount = 20
)

func suspicious(t *model.Tag) bool {
	n := add(t.Hits, t.Misses)
	return n >= lowHitCount && t.HitRate() < lowHitRate
}

// unlessZero greys zeros.
func unlessZero(v func(*model.Tag) uint64, st style) func(*model.Tag) style {
	return func(t *model.Tag) style {
		if v(t) == 0 {
			return dim
		}
		return st
	}
}

func numberColumn(title string, width, rank int, v func(*model.Tag) uint64, text func(uint64) string, st style) tagColumn {
	return tagColumn{title, width, rank, func(t *model.Tag) string { return text(v(t)) }, unlessZero(v, st),
		func(a, b *model.Tag) int { return cmp.Compare(v(b), v(a)) }, false}
}

// pooled is a column that says something of a pool.
func pooled(c tagColumn) tagColumn {
	c.pool = true
	return c
}

func hitStyle(t *model.Tag) style {
	switch {
	case t.Hits == 0 && t.Misses == 0:
		return dim
	case suspicious(t):
		return badStyle
	case t.HitRate() >= 0.95:
		return goodStyle
	}
	return plain
}

func wasteStyle(t *model.Tag) style {
	if t.Waste() >= 0.25 {
		return warnStyle
	}
	return unlessZero(func(t *model.Tag) uint64 { return since(t.Requested, t.InUse) }, plain)(t)
}

// leastKnown marks the bytes of what was there before attach: they are known as far as it was used.
func leastKnown(c tagColumn) tagColumn {
	text := c.text
	c.text = func(t *model.Tag) string {
		if t.Name == wire.BeforeAttach {
			return "≥" + text(t)
		}
		return text(t)
	}
	return c
}

// tagColumns are the columns of the tag table in their order.
var tagColumns = []tagColumn{
	{"TAG (allocation site)", 0, 0, nil, nil, func(a, b *model.Tag) int { return cmp.Compare(a.Name, b.Name) }, false},
	numberColumn("LIVE", 6, 4, func(t *model.Tag) uint64 { return t.Live }, tableCount, plain),
	leastKnown(numberColumn("IN USE", 8, 0, func(t *model.Tag) uint64 { return t.InUse }, bytesText, inUseStyle)),
	leastKnown(numberColumn("PEAK", 8, 9, func(t *model.Tag) uint64 { return t.PeakInUse }, bytesText, plain)),
	pooled(numberColumn("CACHED", 8, 2, func(t *model.Tag) uint64 { return t.Cached }, bytesText, cachedStyle)),
	pooled(numberColumn("FREE", 7, 7, func(t *model.Tag) uint64 { return t.CachedCount }, tableCount, plain)),
	{"HIT%", 6, 1, func(t *model.Tag) string { return ratio(t.Hits, add(t.Hits, t.Misses)) }, hitStyle,
		func(a, b *model.Tag) int { return cmp.Compare(b.HitRate(), a.HitRate()) }, true},
	pooled(numberColumn("MISSES", 8, 8, func(t *model.Tag) uint64 { return t.Misses }, tableCount, plain)),
	numberColumn("ALLOC/S", 9, 3, func(t *model.Tag) uint64 { return t.Window }, tableCount, plain),
	{"WASTE", 7, 5, func(t *model.Tag) string { return percent(t.Waste()) + "%" }, wasteStyle,
		func(a, b *model.Tag) int { return cmp.Compare(b.Waste(), a.Waste()) }, true},
	{trendTitle, 12, 6, nil, nil, nil, false},
}

const sortInUse = 2

// columnWidths holds a width for each entry of tagColumns.
type columnWidths [11]int

// tagTable is the order of the tags on the screen and the cursor in it. Snapshots stay as they are: rows are indices.
type tagTable struct {
	sorted   bool // a column was chosen; until then it is IN USE
	column   int
	reverse  bool
	rows     []int // indices into the tags of the snapshot, in the order of the screen
	chosen   uint32
	any      bool // chosen is set
	at       int  // row of the chosen tag
	top      int  // first row on the screen
	page     int  // rows drawn last
	poolless bool // columns about a pool are not there
}

func (t *tagTable) sortColumn() int {
	if !t.sorted {
		return sortInUse
	}
	return t.column
}

// take orders the tags of a snapshot and finds the chosen one again, by identity; when it is gone the cursor stays
// in its row.
func (t *tagTable) take(s *model.Snapshot) {
	t.rows = t.rows[:0]
	if s == nil {
		return
	}
	for i := range s.Tags {
		t.rows = append(t.rows, i)
	}
	order := tagColumns[t.sortColumn()].order
	slices.SortStableFunc(t.rows, func(i, j int) int {
		a, b := &s.Tags[i], &s.Tags[j]
		c := order(a, b)
		if t.reverse {
			c = -c
		}
		return cmp.Or(c, cmp.Compare(a.Name, b.Name), cmp.Compare(a.ID, b.ID))
	})
	if len(t.rows) == 0 {
		t.at = 0
		return
	}
	t.at = min(t.at, len(t.rows)-1)
	for row, i := range t.rows {
		if t.any && s.Tags[i].ID == t.chosen {
			t.at = row
			return
		}
	}
	t.chosen, t.any = s.Tags[t.rows[t.at]].ID, true
}

// move moves the cursor down by n rows, up when n is negative.
func (t *tagTable) move(s *model.Snapshot, n int) {
	if s == nil || len(t.rows) == 0 {
		return
	}
	t.at = max(0, min(t.at+n, len(t.rows)-1))
	t.chosen = s.Tags[t.rows[t.at]].ID
}

func (t *tagTable) nextSort(s *model.Snapshot) {
	c := t.sortColumn()
	for {
		c = (c + 1) % len(tagColumns)
		if tagColumns[c].order != nil && (!t.poolless || !tagColumns[c].pool) {
			break
		}
	}
	t.sorted, t.column, t.reverse = true, c, false
	t.take(s)
}

func (t *tagTable) flip(s *model.Snapshot) {
	t.reverse = !t.reverse
	t.take(s)
}

// current returns the chosen tag, nil when there is none.
func (t *tagTable) current(s *model.Snapshot) *model.Tag {
	if s == nil || t.at >= len(t.rows) || t.rows[t.at] >= len(s.Tags) {
		return nil
	}
	return &s.Tags[t.rows[t.at]]
}

// scroll sets how many rows are drawn and moves the first one so that the cursor is among them.
func (t *tagTable) scroll(page int) {
	t.page = max(1, page)
	if t.at < t.top {
		t.top = t.at
	}
	if t.at >= t.top+t.page {
		t.top = t.at - t.page + 1
	}
	t.top = max(0, min(t.top, len(t.rows)-t.page))
}

// fitColumns returns the columns that a width has room for, with their widths.
func fitColumns(w int, poolless bool) (shown []int, widths columnWidths) {
	for i := range tagColumns {
		if poolless && tagColumns[i].pool {
			continue
		}
		shown = append(shown, i)
		widths[i] = tagColumns[i].width
	}
	left := func() int {
		n := w - 2
		for _, i := range shown {
			n -= widths[i]
		}
		return n
	}
	for left() < minTagName && len(shown) > 1 {
		worst := 1
		for k := range shown {
			if k > 0 && tagColumns[shown[k]].rank >= tagColumns[shown[worst]].rank {
				worst = k
			}
		}
		shown = slices.Delete(shown, worst, worst+1)
	}
	widths[nameColumn] = max(0, left())
	if last := shown[len(shown)-1]; tagColumns[last].title == trendTitle {
		if more := min(40, (widths[nameColumn]-26)/2); more > 0 {
			widths[last] += more
			widths[nameColumn] -= more
		}
	}
	return shown, widths
}

// drawTags draws the header line and the rows on the screen.
func (d *dashboard) drawTags(r region, s *model.Snapshot) {
	t := &d.tags
	shown, widths := fitColumns(r.w, t.poolless)
	drawTagHead(r, t, shown, widths)
	body := r.rows(1)
	if d.zoom == paneTags && body.h >= 12 {
		stack := body.rows(body.h - 6)
		body = body.sub(0, 0, body.w, body.h-6)
		d.drawStack(stack, s)
	}
	t.scroll(body.h)
	if len(t.rows) == 0 {
		body.text(2, 0, "no OpenCL allocation", dim)
		return
	}
	for y := range body.h {
		if t.top+y >= len(t.rows) {
			break
		}
		drawTagRow(body.sub(0, y, body.w, 1), &s.Tags[t.rows[t.top+y]], t.top+y == t.at, shown, widths, !t.poolless)
	}
}

func drawTagHead(r region, t *tagTable, shown []int, widths columnWidths) {
	x := 2
	for _, i := range shown {
		title, st := tagColumns[i].title, headStyle
		if i == t.sortColumn() {
			title, st = title+sortMark(i, t.reverse), keyStyle
		}
		switch {
		case i == nameColumn:
			r.textIn(x, 0, widths[i]-1, title, st)
		case tagColumns[i].title == trendTitle:
			r.text(x+2, 0, title, st)
		default:
			r.right(x+widths[i], 0, title, st)
		}
		x += widths[i]
	}
}

func sortMark(column int, reverse bool) string {
	if (column == nameColumn) != reverse {
		return "▲"
	}
	return "▼"
}

func drawTagRow(r region, t *model.Tag, chosen bool, shown []int, widths columnWidths, pool bool) {
	nameStyle, trend := plain, trendStyle
	if chosen {
		nameStyle, trend = cursorStyle, cursorTrendStyle
		r.repeat(0, 0, r.w, " ", cursorStyle)
		r.put(0, 0, "▸", cursorStyle)
	}
	if pool && suspicious(t) {
		r.put(1, 0, "!", badStyle)
	}
	x := 2
	for _, i := range shown {
		c := &tagColumns[i]
		switch {
		case i == nameColumn:
			r.textIn(x, 0, widths[i]-1, t.Name, nameStyle)
		case c.title == trendTitle:
			r.trend(x+2, 0, min(widths[i]-2, r.w-x-2), t.Trend, trend)
		default:
			st := c.style(t)
			if chosen {
				st = cursorStyle
			}
			r.sub(x, 0, widths[i], 1).right(widths[i], 0, c.text(t), st)
		}
		x += widths[i]
	}
}

// drawStack shows the call stack of the chosen tag.
func (d *dashboard) drawStack(r region, s *model.Snapshot) {
	t := d.tags.current(s)
	r.sub(0, 0, r.w, 1).rule([]span{{" call stack ", titleStyle}}, nil, frameStyle)
	if t == nil {
		return
	}
	if len(t.Stack) == 0 {
		r.text(2, 1, "no stack was taken for "+t.Name, dim)
	}
	for i, frame := range t.Stack {
		if i+1 >= r.h {
			break
		}
		r.textIn(2, 1+i, r.w-4, frame, plain)
	}
}
