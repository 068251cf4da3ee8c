package ui

import (
	"cmp"
	"slices"
	"strconv"
	"strings"
	"time"

	"codeberg.org/gpumemtop/gpumemtop/internal/figures"
	"codeberg.org/gpumemtop/gpumemtop/internal/stats"
)

// tagsPane is the table of the tags, and the cursor in it. Snapshots are not changed: rows are indices.
type tagsPane struct {
	d       *dashboard
	sorted  bool // a column was chosen; until then HOLDS is
	column  int
	reverse bool
	groups  groups
	content content
	rows    []int     // indices into the groups of the snapshot, in the order of the screen
	ids     []uint32  // of these tags, in the order of the snapshot
	due     time.Time // when they may be ordered again
	chosen  uint32
	folded  string // the columns that the last draw left out because all rows have the same there
	any     bool   // the cursor follows chosen; until it was moved it stays on top
	list           // its cursor is at the chosen tag
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
	if !t.d.mode.recording && s != nil && t.d.now.Before(t.due) && t.hasShownTags(s) {
		return
	}
	t.orderRows(s)
}

// hasShownTags reports whether a snapshot has the tags that are shown.
func (t *tagsPane) hasShownTags(s *stats.Snapshot) bool {
	tags := t.groups.rowsOfSnapshot(s)
	if len(tags) != len(t.ids) {
		return false
	}
	for i, id := range t.ids {
		if tags[i].ID != id {
			return false
		}
	}
	return true
}

// orderRows orders the tags of a snapshot and finds the chosen one again. If that is gone, the cursor stays in its row.
func (t *tagsPane) orderRows(s *stats.Snapshot) {
	t.rows, t.ids, t.due = t.rows[:0], t.ids[:0], t.d.now.Add(orderTime)
	if s == nil {
		return
	}
	tags := t.groups.rowsOfSnapshot(s)
	for i := range tags {
		t.ids = append(t.ids, tags[i].ID)
		if t.d.filters[paneTags].letsThrough(tags[i].Name) {
			t.rows = append(t.rows, i)
		}
	}
	order := tagColumns[t.sortColumn()].order
	slices.SortStableFunc(t.rows, func(i, j int) int {
		a, b := &tags[i], &tags[j]
		c := order(a, b)
		if t.reverse {
			c = -c
		}
		return cmp.Or(c, cmp.Compare(a.Name, b.Name), cmp.Compare(a.ID, b.ID))
	})
	t.content.measureRows(tags, t.rows)
	if len(t.rows) == 0 {
		t.at = 0
		return
	}
	t.at = min(t.at, len(t.rows)-1)
	if !t.any {
		return
	}
	if row := slices.IndexFunc(t.rows, func(i int) bool { return tags[i].ID == t.chosen }); row >= 0 {
		t.at = row
		return
	}
	t.chosen = tags[t.rows[t.at]].ID
}

func (t *tagsPane) move(m motion) {
	if s := t.d.shownSnapshot(); s != nil && len(t.rows) > 0 {
		t.list.moveCursor(m, len(t.rows))
		t.chosen, t.any = t.groups.rowsOfSnapshot(s)[t.rows[t.at]].ID, true
	}
}

func (t *tagsPane) handleEnter() { t.d.free.showFreeListOfTag() }

// chooseTag moves the cursor to a tag, false if there is none of that name.
func (t *tagsPane) chooseTag(name string) bool {
	s := t.d.shownSnapshot()
	if s == nil {
		return false
	}
	at := slices.IndexFunc(s.Tags, func(tag stats.Tag) bool { return tag.Name == name })
	if at < 0 {
		return false
	}
	t.groups.by, t.d.filters[paneTags] = bySite, filter{}
	t.chosen, t.any = s.Tags[at].ID, true
	t.orderRows(s)
	return true
}

// groupBy groups the rows, with the cursor at the first one.
func (t *tagsPane) groupBy(by grouping) {
	t.groups, t.content = groups{by: by}, content{}
	t.at, t.any = 0, false
	t.orderRows(t.d.shownSnapshot())
}

func (t *tagsPane) sortByNextColumn() {
	c := t.sortColumn()
	for {
		c = (c + 1) % len(tagColumns)
		if t.canSortBy(c) && !t.content.isFolded(c) {
			break
		}
	}
	t.sortBy(c)
}

// canSortBy reports whether rows can be sorted by a column.
func (t *tagsPane) canSortBy(column int) bool {
	c := &tagColumns[column]
	return c.order != nil && (t.d.mode.pool || !c.pool)
}

func (t *tagsPane) sortBy(column int) {
	t.sorted, t.column, t.reverse = true, column, false
	t.orderRows(t.d.shownSnapshot())
}

// sortByColumnAt sorts by the column whose title is at x in a table of w columns; once more: the other way round.
func (t *tagsPane) sortByColumnAt(x, w int) {
	shown, widths, _ := t.fitColumns(nil, w)
	end := 2
	for _, i := range shown {
		if end += widths[i]; x >= end {
			continue
		}
		switch {
		case tagColumns[i].order == nil:
		case i == t.sortColumn():
			t.reverseSort()
		default:
			t.sortBy(i)
		}
		return
	}
}

func (t *tagsPane) reverseSort() {
	t.reverse = !t.reverse
	t.orderRows(t.d.shownSnapshot())
}

// currentTag returns the chosen tag, nil when there is none.
func (t *tagsPane) currentTag(s *stats.Snapshot) *stats.Tag {
	if s == nil {
		return nil
	}
	tags := t.groups.rowsOfSnapshot(s)
	if t.at >= len(t.rows) || t.rows[t.at] >= len(tags) {
		return nil
	}
	return &tags[t.rows[t.at]]
}

// title also says which rows are shown, as of the last draw.
func (t *tagsPane) title(s *stats.Snapshot) (title, hint []span) {
	title = []span{{"tags ", titleStyle}}
	if by := t.groups.by; by != bySite {
		title = append(title, span{"by " + groupNames[by] + " ", keyStyle})
	}
	title = append(title, span{strconv.Itoa(len(t.rows)), dim})
	if f := &t.d.filters[paneTags]; f.text != "" {
		title = append(append(title, span{" of " + strconv.Itoa(len(t.ids)), dim}), f.titleSpans()...)
	}
	if first, last := t.top+1, min(t.top+t.page, len(t.rows)); len(t.rows) > t.page && t.page > 0 {
		title = append(title, span{"  " + strconv.Itoa(first) + "–" + strconv.Itoa(last), dim})
	}
	if m := &t.d.cursor.moment; m.Rough {
		title = append(title, span{"  of " + exactTimeText(differenceOrZero(m.From, m.Known)), warnStyle})
	}
	if t.folded != "" {
		title = append(title, span{"  all " + t.folded, dim})
	}
	c := t.sortColumn()
	name := headingAt(s, tagColumns[c].title)
	if c == nameColumn {
		name = "TAG"
	}
	return title, []span{{" sort ", dim}, {name + sortMark(c, t.reverse), keyStyle}, {"  enter", keyStyle}, {t.d.mode.tagOpens, dim}}
}

func (t *tagsPane) draw(r region, s *stats.Snapshot) {
	shown, widths, folded := t.fitColumns(s, r.w)
	t.folded = folded
	drawTagHead(r, t, s, shown, widths)
	body := r.withoutRows(1)
	if t.d.zoom == paneTags && body.h >= 12 {
		t.drawStack(body.withoutRows(body.h-6), s)
		body = body.subRegion(0, 0, body.w, body.h-6)
	}
	t.setPageAndScroll(body.h, len(t.rows))
	if len(t.rows) == 0 {
		text := "no OpenCL allocation"
		if len(t.ids) > 0 {
			text = "no row has this: esc shows all"
		} else if t.groups.by == byKernel {
			text = "no kernel has used memory, or uses are not recorded (-o FILE)"
		}
		body.writeText(2, 0, text, dim)
		return
	}
	tags := t.groups.rowsOfSnapshot(s)
	for y := range min(body.h, len(t.rows)-t.top) {
		tag := &tags[t.rows[t.top+y]]
		mark := span{}
		if t.groups.by == bySite {
			mark = t.d.points.markOfRow(tag)
		}
		t.drawRow(body.subRegion(0, y, body.w, 1), tag, t.top+y == t.at, mark, s.Lost > 0, shown, widths)
	}
}

func drawTagHead(r region, t *tagsPane, s *stats.Snapshot, shown []int, widths columnWidths) {
	x := 2
	for _, i := range shown {
		title, st := headingAt(s, tagColumns[i].title), headStyle
		if i == nameColumn && t.groups.by != bySite {
			title = strings.ToUpper(groupNames[t.groups.by])
		}
		if i == t.sortColumn() {
			title, st = title+sortMark(i, t.reverse), keyStyle
		}
		switch {
		case i == nameColumn:
			r.writeTextInColumns(x, 0, widths[i]-1, title, st)
		case tagColumns[i].title == trendTitle:
			r.writeText(x+2, 0, title, st)
		default:
			r.writeTextBefore(x+widths[i], 0, title, st)
		}
		x += widths[i]
	}
}

func sortMark(column int, reverse bool) string {
	if (column == nameColumn) != reverse {
		return "↑"
	}
	return "↓"
}

func (t *tagsPane) drawRow(r region, tag *stats.Tag, chosen bool, mark span, lossy bool, shown []int, widths columnWidths) {
	nameStyle, trend := plain, trendStyle
	if chosen {
		nameStyle, trend = cursorStyle, cursorTrendStyle
		r.markChosenRow(0)
		mark.style = cursorStyle
	}
	r.writeSpans(1, 0, mark)
	x := 2
	for _, i := range shown {
		c := &tagColumns[i]
		switch {
		case i == nameColumn:
			r.writeNameInColumns(x, 0, widths[i]-1, tag.Name, t.d.side, nameStyle)
		case c.title == trendTitle:
			r.drawTrend(x+2, 0, min(widths[i]-2, r.w-x-2), tag.Trend.Points(), trend)
		default:
			st, text := t.cellText(c, tag)
			switch {
			case lossy && slices.Contains(gaugeColumns, c.title):
				text = "≈" + text
			case t.groups.areRowsSums() && (c.title == "HOLDS" || c.title == columnHeading(figures.PeakInUse)):
				text = "≤" + text // its sites may have had their most at other times
			}
			if chosen {
				st = cursorStyle
			}
			r.subRegion(x, 0, widths[i], 1).writeTextBefore(widths[i], 0, text, st)
		}
		x += widths[i]
	}
}

// cellText is what a column of numbers has in a row.
func (t *tagsPane) cellText(c *tagColumn, tag *stats.Tag) (style, string) {
	sites := t.groups.by == bySite && t.d.processes.number == 0
	if c.title != sinceTitle {
		if c.title == hitTitle && sites && t.d.o.Judge != nil && t.d.live != nil && t.d.isLiveRun(t.d.live) {
			late := t.d.o.Judge.RecentRequestsOfRow(tag)
			return styleOfRecentHits(tag, late.Hits, late.Misses), c.text(tag)
		}
		return c.style(tag), c.text(tag)
	}
	hits, misses, known := t.d.ledger.hitsSinceChange(tag)
	if !known || !sites {
		return dim, none
	}
	return styleOfHitRate(float64(hits)/float64(max(1, hits+misses)), hits+misses), formatRatio(hits, hits+misses)
}

// drawStack shows the call stack of the chosen tag.
func (t *tagsPane) drawStack(r region, s *stats.Snapshot) {
	tag, title := t.currentTag(s), " call stack "
	if t.groups.by != bySite {
		title = " call sites "
	}
	r.subRegion(0, 0, r.w, 1).drawRule([]span{{title, titleStyle}}, nil, frameStyle)
	if tag == nil {
		return
	}
	if len(tag.Stack) == 0 {
		r.writeText(2, 1, "no call stack was recorded for "+tag.Name, dim)
	}
	for i, frame := range tag.Stack {
		if i+1 >= r.h {
			break
		}
		r.writeTextInColumns(2, 1+i, r.w-4, frame, plain)
	}
}
