package ui

import (
	"cmp"
	"slices"
	"strings"

	"codeberg.org/gpumemtop/gpumemtop/internal/figures"
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

// trendTitle marks the column that is a chart, of trendWide columns.
const (
	trendTitle = "TREND"
	trendWide  = 8
)

// lowHitRate is a hit rate that is worth a colour.
const lowHitRate = 0.8

// styleDimIfZero returns a style, or dim for a zero.
func styleDimIfZero(v func(*stats.Tag) uint64, st style) func(*stats.Tag) style {
	return func(t *stats.Tag) style {
		if v(t) == 0 {
			return dim
		}
		return st
	}
}

func numberColumn(title string, width, rank int, v func(*stats.Tag) uint64, text func(uint64) string, st style) tagColumn {
	return tagColumn{title, width, rank, func(t *stats.Tag) string { return text(v(t)) }, styleDimIfZero(v, st),
		func(a, b *stats.Tag) int { return cmp.Compare(v(b), v(a)) }, false}
}

// forPoolOnly marks a column that only makes sense with a pool.
func forPoolOnly(c tagColumn) tagColumn {
	c.pool = true
	return c
}

// styleOfRowHitRate is the style of the hit rate of a row in the whole run. Few requests are no fault: a buffer that is created once
// misses.
func styleOfRowHitRate(t *stats.Tag) style {
	switch all := saturatingSum(t.Hits, t.Misses); {
	case all == 0:
		return dim
	case all < fewRequests:
		return plain
	case t.HitRate() < lowHitRate:
		return warnStyle
	case t.HitRate() >= 0.95:
		return goodStyle
	}
	return plain
}

// styleOfRecentHits returns the style of a row's hit rate by its latest requests. The rate itself is of the run, and dim where the two
// differ.
func styleOfRecentHits(t *stats.Tag, hits, misses uint64) style {
	switch st := styleOfRowHitRate(&stats.Tag{Hits: hits, Misses: misses}); {
	case st == warnStyle, st == styleOfRowHitRate(t):
		return st
	}
	return dim
}

func styleOfWaste(t *stats.Tag) style {
	if t.Waste() >= 0.25 {
		return warnStyle
	}
	return styleDimIfZero(func(t *stats.Tag) uint64 { return differenceOrZero(t.Requested, t.InUse) }, plain)(t)
}

// asLowerBound marks the bytes of what was allocated before attach, which are known only from later uses.
func asLowerBound(c tagColumn) tagColumn {
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
var tagColumns = [...]tagColumn{
	{"TAG (call site)", 0, 0, nil, nil, func(a, b *stats.Tag) int { return cmp.Compare(a.Name, b.Name) }, false},
	asLowerBound(numberColumn("HOLDS", 8, 0, mostHeldByTag, bytesText, inUseStyle)),
	asLowerBound(numberColumn(columnHeading(figures.InUse), 8, 10, func(t *stats.Tag) uint64 { return t.InUse }, bytesText, plain)),
	numberColumn(columnHeading(figures.LiveBuffers), 6, 4, func(t *stats.Tag) uint64 { return t.Live }, formatTableCount, plain),
	asLowerBound(numberColumn(columnHeading(figures.PeakInUse), 8, 9, func(t *stats.Tag) uint64 { return t.PeakInUse }, bytesText, plain)),
	forPoolOnly(numberColumn(columnHeading(figures.Cached), 8, 2, func(t *stats.Tag) uint64 { return t.Cached }, bytesText, cachedStyle)),
	forPoolOnly(numberColumn(columnHeading(figures.Idle), 8, 11, func(t *stats.Tag) uint64 { return t.Idle }, bytesText, cachedStyle)),
	forPoolOnly(numberColumn("FREE", 7, 7, func(t *stats.Tag) uint64 { return t.CachedCount }, formatTableCount, plain)),
	{hitTitle, 6, 1, func(t *stats.Tag) string { return formatRatio(t.Hits, saturatingSum(t.Hits, t.Misses)) }, styleOfRowHitRate,
		func(a, b *stats.Tag) int { return cmp.Compare(b.HitRate(), a.HitRate()) }, true},
	{sinceTitle, 7, 7, nil, nil, nil, true},
	forPoolOnly(numberColumn(columnHeading(figures.Misses), 8, 8, func(t *stats.Tag) uint64 { return t.Misses }, formatTableCount, plain)),
	numberColumn("ALLOC/S", 9, 3, func(t *stats.Tag) uint64 { return t.Window }, formatTableCount, plain),
	{columnHeading(figures.Waste), 7, 5, func(t *stats.Tag) string { return formatPercent(t.Waste()) + "%" }, styleOfWaste,
		func(a, b *stats.Tag) int { return cmp.Compare(b.Waste(), a.Waste()) }, true},
	{trendTitle, trendWide + 2, 6, nil, nil, nil, false},
}

// hitTitle is the title of the column with the hit rate of the run.
const hitTitle = "HIT%"

// sinceTitle marks the column of the hit rate since the latest change, which is there once something was changed.
const sinceTitle = "HIT%Δ"

// gaugeColumns are the columns whose values lost events may have made too high or too low.
var gaugeColumns = []string{"HOLDS", columnHeading(figures.InUse), columnHeading(figures.LiveBuffers), columnHeading(figures.PeakInUse), columnHeading(figures.Cached), columnHeading(figures.Idle), "FREE"}

const sortHeld = 1

// mostHeldByTag is the most that a tag had in use in the last second: programs that allocate in a loop hold nothing between two
// iterations. Summaries of recordings know only one moment.
func mostHeldByTag(t *stats.Tag) uint64 { return max(t.Held, t.InUse) }

// columnWidths holds a width for each entry of tagColumns.
type columnWidths [len(tagColumns)]int

// content is what the rows of the table need: how wide their names are, and which columns tell them apart.
type content struct {
	name   int                     // the widest
	varied [len(tagColumns)]bool   // rows differed in the column at some time; it stays from then on, as columns that come and go cannot be read
	same   [len(tagColumns)]string // else what all rows have
}

// measureRows notes how wide the names in rows are, and which columns differ between them.
func (c *content) measureRows(tags []stats.Tag, rows []int) {
	c.name = 0
	for _, i := range rows {
		c.name = max(c.name, textWidth(tags[i].Name))
	}
	for i := range tagColumns {
		if column := &tagColumns[i]; i != sortHeld && column.text != nil && !c.varied[i] && len(rows) > 0 {
			c.same[i] = column.text(&tags[rows[0]])
			c.varied[i] = len(rows) < foldLeast && !nothingIn[c.same[i]] || slices.ContainsFunc(rows, func(row int) bool { return column.text(&tags[row]) != c.same[i] })
		}
	}
}

// foldLeast is the number of equal rows from which a column is left out. A column without any value is left out at once.
const foldLeast = 4

// nothingIn are texts without a value.
var nothingIn = map[string]bool{"0": true, "0.0%": true, none: true}

// isFolded reports whether a column is left out because all rows have the same there.
func (c *content) isFolded(column int) bool {
	return column != sortHeld && tagColumns[column].text != nil && !c.varied[column]
}

// fitColumns returns the columns that a width has room for, with their widths, and what those that are left out have in all rows.
// Names get up to half of the width before a number is left out for them.
func (t *tagsPane) fitColumns(s *stats.Snapshot, w int) (shown []int, widths columnWidths, folded string) {
	for i := range tagColumns {
		c := &tagColumns[i]
		switch {
		case !t.d.mode.pool && c.pool, t.d.ledger.base == nil && c.title == sinceTitle:
			continue
		case len(t.rows) > 0 && i != t.sortColumn() && t.content.isFolded(i):
			folded += ", " + headingAt(s, c.title) + " " + t.content.same[i]
			continue
		}
		shown = append(shown, i)
		widths[i] = c.width
	}
	need := min(max(minTagName, t.content.name+1), max(minTagName, w/2))
	left := w - 2
	for _, i := range shown {
		left -= widths[i]
	}
	for left < need && len(shown) > 1 {
		worst := 1
		for k := range shown {
			if k > 0 && tagColumns[shown[k]].rank >= tagColumns[shown[worst]].rank {
				worst = k
			}
		}
		left += widths[shown[worst]]
		shown = slices.Delete(shown, worst, worst+1)
	}
	widths[nameColumn] = max(0, left)
	return shown, widths, strings.TrimPrefix(folded, ", ")
}
