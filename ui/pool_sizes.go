package ui

import (
	"fmt"
	"slices"

	"codeberg.org/gpumemtop/gpumemtop/internal/figures"
	"codeberg.org/gpumemtop/gpumemtop/internal/stats"
	"codeberg.org/gpumemtop/gpumemtop/internal/units"
)

// sizeRow is what the pool has of a range of sizes, or in slabs, at a time.
type sizeRow struct {
	label  string
	share  stats.Share
	oldest uint64 // when the oldest free block was freed; 0: none is
	now    uint64
	reuse  style
}

func (w *sizeRow) totalBytes() uint64 {
	return saturatingSum(w.share.InUse, w.share.Cached, w.share.Cooling)
}

var sizeColumns = []tableColumn[sizeRow]{
	{title: columnHeading(figures.InUse), width: 8, rank: 1, cell: func(w sizeRow) span {
		return span{bytesText(w.share.InUse),
			inUseStyle}
	}},
	{title: columnHeading(figures.Cached), width: 8, pool: true, cell: func(w sizeRow) span { return span{bytesText(w.share.Cached), cachedStyle} }},
	{title: "COOL", width: 8, rank: 5, pool: true, cell: func(w sizeRow) span { return span{bytesText(w.share.Cooling), coolingStyle} }},
	{title: "BLOCKS", width: 8, rank: 3, pool: true, cell: func(w sizeRow) span { return span{formatCount(w.share.Blocks), plain} }},
	{title: "REUSE", width: 7, rank: 2, pool: true, cell: func(w sizeRow) span {
		return span{hitRateText(w.share.Hits, w.share.Misses), w.reuse}
	}},
	{title: "OLDEST", width: 8, rank: 4, pool: true, cell: func(w sizeRow) span { return ageOfBlockSpan(w.oldest, w.now) }},
}

// sizeRows are the ranges of sizes that have memory, the largest first, and then what of it is in slabs.
func (d *dashboard) sizeRows(s *stats.Snapshot) (rows []sizeRow) {
	oldest := make([]uint64, len(s.Buckets))
	for i := range s.Tags {
		for _, c := range s.Tags[i].Free {
			at := slices.IndexFunc(s.Buckets, func(b stats.Bucket) bool { return b.Smallest <= c.Size && c.Size <= b.Largest })
			if at >= 0 && c.Oldest != 0 && (oldest[at] == 0 || c.Oldest < oldest[at]) {
				oldest[at] = c.Oldest
			}
		}
	}
	for i := range s.Buckets {
		b := &s.Buckets[i]
		rows = append(rows, sizeRow{bytesText(b.Smallest), b.Share, oldest[i], s.Time, d.styleOfRunHitRate(s, b.Share.Hits, b.Share.Misses)})
	}
	slices.Reverse(rows)
	if t := &s.Totals; t.SlabBytes > 0 {
		inside := stats.Share{InUse: differenceOrZero(t.SlabFree, t.SlabBytes), Cached: t.SlabFree}
		if at := slices.IndexFunc(s.Tags, func(t stats.Tag) bool { return t.Slabs }); at >= 0 {
			inside.Blocks = s.Tags[at].CachedCount
		}
		rows = append(rows, sizeRow{"in slabs", inside, 0, s.Time, dim})
	}
	return rows
}

// barMin is the smallest useful width of a bar.
const barMin = 9

// drawSizes draws the pool by size. The last line says whether the size that was asked for fits.
func (p *freePane) drawSizes(r region, s *stats.Snapshot) {
	if p.asked > 0 && r.h > 1 {
		text, st := bufferSourceText(s, p.asked)
		r.writeTextInColumns(1, r.h-1, r.w-2, text, st)
		r = r.subRegion(0, 0, r.w, r.h-1)
	}
	rows := p.d.sizeRows(s)
	if len(rows) == 0 {
		r.writeLines(1, 0, p.d.mode.noBlocks, dim)
		return
	}
	columns, used := columnsThatFit(sizeColumns, r.w-freeSize-1-barMin, p.d.mode.pool)
	x := r.w - 1 - used
	if r.h >= 3 {
		r.writeTextBefore(freeSize, 0, "SIZE+", headStyle)
		if p.d.mode.pool && x-freeSize >= 20 {
			r.writeSpans(freeSize+1, 0, span{"█", inUseStyle}, span{" " + nameOfInUse(s) + " ", headStyle}, span{"▒", cachedStyle}, span{" cached", headStyle})
		}
		drawTitles(r, x, columns, s)
		r = r.withoutRows(1)
	}
	p.top = max(0, min(p.top, len(rows)-r.h))
	most := uint64(1)
	for i := range rows {
		most = max(most, rows[i].totalBytes())
	}
	for y := range min(r.h, len(rows)-p.top) {
		w, line := &rows[p.top+y], r.subRegion(0, y, r.w, 1)
		line.writeTextBefore(freeSize, 0, w.label, plain)
		if n := int(float64(w.totalBytes()) / float64(most) * float64(x-freeSize-1)); w.totalBytes() > 0 {
			line.drawBar(freeSize+1, 0, max(1, n), w.totalBytes(), []part{
				{w.share.InUse, "█", inUseStyle}, {w.share.Cached, "▒", cachedStyle}, {w.share.Cooling, "░", coolingStyle},
			})
		}
		drawCells(line, x, columns, *w, plain)
	}
}

// askSize asks for a size, to say whether it fits.
func (p *freePane) askSize() {
	d := p.d
	d.prompt = &prompt{
		label: "would fit now: ", keys: []word{{"enter", "look"}, {"esc", "back"}},
		done: func(text string) {
			size, err := units.ParseSize(text)
			switch s := d.shownSnapshot(); {
			case text == "":
				p.asked = 0
			case err != nil:
				d.sayMessage(badStyle, "✗ "+err.Error())
			case size == 0 || s == nil:
			default:
				p.asked = size
				words, st := bufferSourceText(s, size)
				if d.zoom == paneHeap && len(mappedSlabs(s)) > 0 {
					words, st = fitsInSlabsText(sumOfHoles(mappedSlabs(s)), size)
				}
				d.sayMessage(st, words)
			}
		},
	}
}

// bufferSourceText says where a buffer of a size could come from: the smallest free block or the largest range in a slab that
// has it, and the device. Which free memory may serve a request also depends on its class and on the policy.
func bufferSourceText(s *stats.Snapshot, size uint64) (string, style) {
	t := &s.Totals
	text := bytesText(size) + " now: "
	block, largest := uint64(0), uint64(0)
	for i := range s.Tags {
		for _, c := range s.Tags[i].Free {
			if s.Tags[i].Slabs || c.Blocks == c.Cooling {
				continue
			}
			largest = max(largest, c.Size)
			if c.Size >= size && (block == 0 || c.Size < block) {
				block = c.Size
			}
		}
	}
	switch {
	case block > 0:
		text += "free block of " + bytesText(block) + " (waste " + formatPercent(float64(block-size)/float64(block)) + " %)"
	case t.LargestCached >= size && t.SlabFree >= size:
		text += "free range of " + bytesText(t.LargestCached) + " in a slab"
	case t.Cached == 0:
		text += "nothing free in the pool"
	default:
		text += "no free block or range, the largest is " + bytesText(max(largest, t.LargestCached))
	}
	return appendDeviceText(s, size, text, block > 0 || t.LargestCached >= size)
}

// appendDeviceText adds what the device has left.
func appendDeviceText(s *stats.Snapshot, size uint64, text string, pool bool) (string, style) {
	t, device := &s.Totals, &s.Device
	st := goodStyle
	if !pool {
		st = warnStyle
	}
	if device.Global == 0 {
		return text + "; the device's memory is not known", st
	}
	free := differenceOrZero(saturatingSum(t.InUse, t.Cached, t.Cooling), device.Global)
	switch {
	case device.Largest > 0 && size > device.Largest:
		return text + "; does not fit: the device allocates at most " + bytesText(device.Largest) + " at once", badStyle
	case s.MostDevicesOfProcess() > 1:
		return text + fmt.Sprintf("; which of %d devices would have it is not known", s.MostDevicesOfProcess()), st
	case size <= free:
		return text + "; fits the " + bytesText(free) + " that the device has left", st
	case size <= saturatingSum(free, t.Cached):
		return text + "; fits the device once " + bytesText(size-free) + " of the cached go back", st
	case pool:
		return text + "; the device has " + bytesText(free) + " left", st
	}
	return text + "; does not fit: the device has " + bytesText(free) + " left", badStyle
}
