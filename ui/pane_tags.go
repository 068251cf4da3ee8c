package ui

import (
	"cmp"
	"slices"
	"strconv"
	"time"

	"codeberg.org/gpumemtop/gpumemtop/internal/stats"
	"codeberg.org/gpumemtop/gpumemtop/internal/wire"
)

// tagColumn is one column of the tag table. The first column gets the room that the others leave.
type tagColumn struct {
	title string
	width int // with the blanks before it
	rank  int // the column with the highest rank is left out first
	text  func(*stats.Tag) string
	style func(*stats.Tag) style
	order func(a, b *stats.Tag) int // nil: the table cannot be sorted by it; larger values first unless reversed
	pool  bool                      // only makes sense with a pool
}

const nameColumn = 0

// minTagName is the width that the name gets before columns of numbers.
const minTagName = 22

// trendTitle marks the column that is a chart.
const trendTitle = "TREND"

// lowHitRate is a hit rate that is worth a colour.
const lowHitRate = 0.8

// unlessZero is a style that dims zeros.
func unlessZero(v func(*stats.Tag) uint64, st style) func(*stats.Tag) style {
	return func(t *stats.Tag) style {
		if v(t) == 0 {
			return dim
		}
		return st
	}
}

func numberColumn(title string, width, rank int, v func(*stats.Tag) uint64, text func(uint64) string, st style) tagColumn {
	return tagColumn{title, width, rank, func(t *stats.Tag) string { return text(v(t)) }, unlessZero(v, st),
		func(a, b *stats.Tag) int { return cmp.Compare(v(b), v(a)) }, false}
}

// pooled marks a column that only makes sense with a pool.
func pooled(c tagColumn) tagColumn {
	c.pool = true
	return c
}

func hitStyle(t *stats.Tag) style {
	switch {
	case t.Hits == 0 && t.Misses == 0:
		return dim
	case t.HitRate() < lowHitRate:
		return warnStyle
	case t.HitRate() >= 0.95:
		return goodStyle
	}
	return plain
}

func wasteStyle(t *stats.Tag) style {
	if t.Waste() >= 0.25 {
		return warnStyle
	}
	return unlessZero(func(t *stats.Tag) uint64 { return since(t.Requested, t.InUse) }, plain)(t)
}

// lowerBound marks the bytes of what was allocated before attach, which are known only from later uses.
func lowerBound(c tagColumn) tagColumn {
	text := c.text
	c.text = func(t *stats.Tag) string {
		if t.Name == wire.BeforeAttach {
			return "≥" + text(t)
		}
		return text(t)
	}
	return c
}

// tagColumns are the columns of the tag table in their order.
var tagColumns = []tagColumn{
	{"TAG (call site)", 0, 0, nil, nil, func(a, b *stats.Tag) int { return cmp.Compare(a.Name, b.Name) }, false},
	lowerBound(numberColumn("HOLDS", 8, 0, held, bytesText, inUseStyle)),
	lowerBound(numberColumn("IN USE", 8, 10, func(t *stats.Tag) uint64 { return t.InUse }, bytesText, plain)),
	numberColumn("LIVE", 6, 4, func(t *stats.Tag) uint64 { return t.Live }, tableCount, plain),
	lowerBound(numberColumn("PEAK", 8, 9, func(t *stats.Tag) uint64 { return t.PeakInUse }, bytesText, plain)),
	pooled(numberColumn("CACHED", 8, 2, func(t *stats.Tag) uint64 { return t.Cached }, bytesText, cachedStyle)),
	pooled(numberColumn("FREE", 7, 7, func(t *stats.Tag) uint64 { return t.CachedCount }, tableCount, plain)),
	{"HIT%", 6, 1, func(t *stats.Tag) string { return ratio(t.Hits, add(t.Hits, t.Misses)) }, hitStyle,
		func(a, b *stats.Tag) int { return cmp.Compare(b.HitRate(), a.HitRate()) }, true},
	pooled(numberColumn("MISSES", 8, 8, func(t *stats.Tag) uint64 { return t.Misses }, tableCount, plain)),
	numberColumn("ALLOC/S", 9, 3, func(t *stats.Tag) uint64 { return t.Window }, tableCount, plain),
	{"WASTE", 7, 5, func(t *stats.Tag) string { return percent(t.Waste()) + "%" }, wasteStyle,
		func(a, b *stats.Tag) int { return cmp.Compare(b.Waste(), a.Waste()) }, true},
	{trendTitle, 12, 6, nil, nil, nil, false},
}

const sortHeld = 1

// held is the most that a tag had in use in the last second: programs that allocate in a loop hold nothing between two
// iterations. Summaries of recordings know only one moment.
func held(t *stats.Tag) uint64 { return max(t.Held, t.InUse) }

// columnWidths holds a width for each entry of tagColumns.
type columnWidths [12]int

// tagsPane is the table of the tags, and the cursor in it. Snapshots are not changed: rows are indices.
type tagsPane struct {
	d       *dashboard
	sorted  bool // a column was chosen; until then HOLDS is
	column  int
	reverse bool
	rows    []int     // indices into the tags of the snapshot, in the order of the screen
	ids     []uint32  // of these tags, in the order of the snapshot
	due     time.Time // when they may be ordered anew
	chosen  uint32
	any     bool // the cursor follows chosen; until it was moved it stays on top
	list         // its cursor is at the chosen tag
}

// orderTime is how long rows keep their places: ones that jump can be neither read nor chosen.
const orderTime = time.Second

func (t *tagsPane) sortColumn() int {
	if !t.sorted {
		return sortHeld
	}
	return t.column
}

// update shows the tags of a snapshot, in the order of the last one if that is recent.
func (t *tagsPane) update(s *stats.Snapshot) {
	if !t.d.mode.recording && s != nil && t.d.now.Before(t.due) && t.same(s) {
		return
	}
	t.order(s)
}

// same reports whether a snapshot has the tags that are shown.
func (t *tagsPane) same(s *stats.Snapshot) bool {
	if len(s.Tags) != len(t.ids) {
		return false
	}
	for i, id := range t.ids {
		if s.Tags[i].ID != id {
			return false
		}
	}
	return true
}

// order orders the tags of a snapshot and finds the chosen one again. If that is gone, the cursor stays in its row.
func (t *tagsPane) order(s *stats.Snapshot) {
	t.rows, t.ids, t.due = t.rows[:0], t.ids[:0], t.d.now.Add(orderTime)
	if s == nil {
		return
	}
	for i := range s.Tags {
		t.rows, t.ids = append(t.rows, i), append(t.ids, s.Tags[i].ID)
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
	if !t.any {
		return
	}
	if row := slices.IndexFunc(t.rows, func(i int) bool { return s.Tags[i].ID == t.chosen }); row >= 0 {
		t.at = row
		return
	}
	t.chosen = s.Tags[t.rows[t.at]].ID
}

func (t *tagsPane) move(a action) {
	if s := t.d.shown(); s != nil && len(t.rows) > 0 {
		t.list.move(a, len(t.rows))
		t.chosen, t.any = s.Tags[t.rows[t.at]].ID, true
	}
}

func (t *tagsPane) enter() { t.d.zoomOn(paneFree) }

// choose moves the cursor to a tag, false if there is none of that name.
func (t *tagsPane) choose(name string) bool {
	s := t.d.shown()
	if s == nil {
		return false
	}
	at := slices.IndexFunc(s.Tags, func(tag stats.Tag) bool { return tag.Name == name })
	if at < 0 {
		return false
	}
	t.chosen, t.any = s.Tags[at].ID, true
	t.order(s)
	return true
}

func (t *tagsPane) nextSort() {
	c := t.sortColumn()
	for {
		c = (c + 1) % len(tagColumns)
		if tagColumns[c].order != nil && (t.d.mode.pool || !tagColumns[c].pool) {
			break
		}
	}
	t.sorted, t.column, t.reverse = true, c, false
	t.order(t.d.shown())
}

func (t *tagsPane) reverseSort() {
	t.reverse = !t.reverse
	t.order(t.d.shown())
}

// current returns the chosen tag, nil when there is none.
func (t *tagsPane) current(s *stats.Snapshot) *stats.Tag {
	if s == nil || t.at >= len(t.rows) || t.rows[t.at] >= len(s.Tags) {
		return nil
	}
	return &s.Tags[t.rows[t.at]]
}

// fitColumns returns the columns that a width has room for, with their widths.
func fitColumns(w int, pool bool) (shown []int, widths columnWidths) {
	for i := range tagColumns {
		if !pool && tagColumns[i].pool {
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

// title also says which rows are shown, as of the last draw.
func (t *tagsPane) title(*stats.Snapshot) (title, hint []span) {
	title = []span{{"tags ", titleStyle}, {strconv.Itoa(len(t.rows)), dim}}
	if first, last := t.top+1, min(t.top+t.page, len(t.rows)); len(t.rows) > t.page && t.page > 0 {
		title = append(title, span{"  " + strconv.Itoa(first) + "–" + strconv.Itoa(last), dim})
	}
	if m := &t.d.cursor.moment; m.Rough {
		title = append(title, span{"  of " + exactTime(since(m.From, m.Known)), warnStyle})
	}
	c := t.sortColumn()
	name := tagColumns[c].title
	if c == nameColumn {
		name = "TAG"
	}
	return title, []span{{" sort ", dim}, {name + sortMark(c, t.reverse), keyStyle}, {"  enter", keyStyle}, {t.d.mode.tagOpens, dim}}
}

func (t *tagsPane) draw(r region, s *stats.Snapshot) {
	shown, widths := fitColumns(r.w, t.d.mode.pool)
	drawTagHead(r, t, shown, widths)
	body := r.rows(1)
	if t.d.zoom == paneTags && body.h >= 12 {
		t.drawStack(body.rows(body.h-6), s)
		body = body.sub(0, 0, body.w, body.h-6)
	}
	t.scroll(body.h, len(t.rows))
	if len(t.rows) == 0 {
		body.text(2, 0, "no OpenCL allocation", dim)
		return
	}
	for y := range min(body.h, len(t.rows)-t.top) {
		tag := &s.Tags[t.rows[t.top+y]]
		mark := t.d.mode.pool && t.d.points.judge.Suspicious(tag)
		drawTagRow(body.sub(0, y, body.w, 1), tag, t.top+y == t.at, mark, shown, widths)
	}
}

func drawTagHead(r region, t *tagsPane, shown []int, widths columnWidths) {
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

func drawTagRow(r region, t *stats.Tag, chosen, mark bool, shown []int, widths columnWidths) {
	nameStyle, trend := plain, trendStyle
	if chosen {
		nameStyle, trend = cursorStyle, cursorTrendStyle
		r.repeat(0, 0, r.w, " ", cursorStyle)
		r.put(0, 0, "▸", cursorStyle)
	}
	if mark {
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
func (t *tagsPane) drawStack(r region, s *stats.Snapshot) {
	tag := t.current(s)
	r.sub(0, 0, r.w, 1).rule([]span{{" call stack ", titleStyle}}, nil, frameStyle)
	if tag == nil {
		return
	}
	if len(tag.Stack) == 0 {
		r.text(2, 1, "no call stack was recorded for "+tag.Name, dim)
	}
	for i, frame := range tag.Stack {
		if i+1 >= r.h {
			break
		}
		r.textIn(2, 1+i, r.w-4, frame, plain)
	}
}
