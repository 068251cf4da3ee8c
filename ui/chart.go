package ui

import (
	"math"
	"math/bits"
	"slices"
)

const brailleBase = 0x2800

// brailleText holds the 256 braille patterns, so that drawing allocates nothing.
var brailleText = func() (t [256]string) {
	for i := range t {
		t[i] = string(rune(brailleBase + i))
	}
	return t
}()

// brailleDot is the bit of the dot at a column and a row from the top.
var brailleDot = [2][4]byte{{0x01, 0x02, 0x04, 0x40}, {0x08, 0x10, 0x20, 0x80}}

// blocks are the eighths of a cell, from empty to full.
var blocks = [9]string{" ", "▁", "▂", "▃", "▄", "▅", "▆", "▇", "█"}

// column is half a cell wide in a stacked chart. Each of its layers has a height, 0 to 1 of the chart. An absent column has no
// data.
type column struct {
	layers [3]float64
	absent bool
}

// layer says how one kind of memory or requests is drawn in a stacked chart.
type layer struct {
	style style
	line  bool    // only the top of the layer is drawn
	mask  [2]byte // the dots that may be set, in cells of even and of odd columns
	fill  string  // in charts of blocks, the sign of each of its cells; empty: a block as high as the memory in the cell
}

const allDots = 0xff

var (
	solid     = [2]byte{allDots, allDots}
	halftone  = [2]byte{0x01 | 0x10 | 0x04 | 0x80, 0x01 | 0x10 | 0x04 | 0x80}
	sparse    = [2]byte{0x02 | 0x80, 0x02 | 0x80}
	memLayers = []layer{{inUseStyle, false, solid, ""}, {cachedStyle, false, halftone, "▒"}, {coolingStyle, false, sparse, "░"}}
	hitLayers = []layer{{hitChartStyle, false, solid, ""}, {dim, true, solid, "─"}, {badStyle, false, solid, ""}}
)

// drawStacked draws columns with their layers on top of each other, two columns to a cell. It draws exactly r.w cells; columns
// must have twice as many entries.
func (r region) drawStacked(columns []column, layers []layer) {
	for x := range r.w {
		pair := columns[2*x : 2*x+2]
		for y := range r.h {
			var text string
			var st style
			if r.c.charts == Braille {
				text, st = brailleCell(pair, layers, x, y, r.h)
			} else {
				text, st = blockCell(pair, layers, y, r.h)
			}
			if text != " " {
				r.putCluster(x, y, text, st)
				r.shadeCell(x, y)
			}
		}
	}
}

// brailleCell returns four dot rows of two columns, and the style of the layer that owns most of them.
func brailleCell(columns []column, layers []layer, x, y, h int) (text string, st style) {
	var owned [3]int
	pattern := byte(0)
	for side := range 2 {
		for row := range 4 {
			level := h*4 - (y*4 + row) // 1 at the bottom
			if l, ok := layerCoveringRow(&columns[side], layers, level, h*4); ok {
				owned[l]++
				pattern |= brailleDot[side][row] & layers[l].mask[x&1]
			}
		}
	}
	if pattern == 0 {
		return " ", plain
	}
	return brailleText[pattern], layers[indexOfLargest(owned[:])].style
}

// blockCell returns the block for the higher of two columns, and the style of the layer that owns most of the cell.
func blockCell(columns []column, layers []layer, y, h int) (text string, st style) {
	higher := &columns[0]
	if columns[1].drawnHeight() > higher.drawnHeight() {
		higher = &columns[1]
	}
	var owned [3]int
	for level := 8*(h-1-y) + 1; level <= 8*(h-y); level++ {
		if l, ok := layerCoveringRow(higher, layers, level, h*8); ok {
			owned[l]++
		}
	}
	best := indexOfLargest(owned[:])
	if fill := layers[best].fill; fill != "" {
		return fill, layers[best].style
	}
	return blocks[owned[0]+owned[1]+owned[2]], layers[best].style
}

// indexOfLargest returns which number is the largest, the first of equal ones.
func indexOfLargest(numbers []int) int { return slices.Index(numbers, slices.Max(numbers)) }

// drawnHeight is how high a column is drawn.
func (c *column) drawnHeight() float64 { return c.layers[0] + c.layers[1] + c.layers[2] }

// layerCoveringRow returns the layer that covers a dot row. A layer above 0 gets at least the row where it starts, unless the layer
// above claims that, so that small values stay visible.
func layerCoveringRow(c *column, layers []layer, level, rows int) (int, bool) {
	sum := 0.0
	for l := range layers {
		if !(c.layers[l] > 0) {
			continue
		}
		sum += c.layers[l]
		top := max(1, int(math.Round(min(sum, 1)*float64(rows))))
		if level <= top {
			return l, !layers[l].line || level == top
		}
	}
	return 0, false
}

// drawSparkline draws values as eighth blocks over the region's whole height, newest at the right. The largest value
// fills the height; a value above zero shows at least an eighth.
func (r region) drawSparkline(values []float64, st style) {
	top := 0.0
	for _, v := range values {
		if v > top {
			top = v
		}
	}
	r.drawScaled(values, top, st)
}

// drawScaled draws values as a sparkline in which top fills the height.
func (r region) drawScaled(values []float64, top float64, st style) {
	for x := range min(r.w, len(values)) {
		eighths := 0
		if v := values[x]; v > 0 {
			eighths = max(1, int(math.Round(v/top*float64(8*r.h))))
		}
		for y := r.h - 1; y >= 0 && eighths > 0; y-- {
			r.putCluster(x, y, blocks[min(8, eighths)], st)
			r.shadeCell(x, y)
			eighths -= 8
		}
	}
}

// drawTrend draws values into n columns of one row. The largest value fills the row; values that are all equal are a thin line.
func (r region) drawTrend(x, y, n int, values []uint64, st style) {
	if n <= 0 || len(values) == 0 {
		return
	}
	var scaled [64]float64
	n = min(n, len(scaled))
	for i := range n {
		from, to := i*len(values)/n, (i+1)*len(values)/n
		if to == from {
			to = from + 1
		}
		for _, v := range values[from:min(to, len(values))] {
			scaled[i] = max(scaled[i], float64(v))
		}
	}
	if least := slices.Min(scaled[:n]); least > 0 && least == slices.Max(scaled[:n]) {
		r.repeatCluster(x, y, n, "─", st)
		return
	}
	r.subRegion(x, y, n, 1).drawSparkline(scaled[:n], st)
}

// drawBar draws parts of a whole as a horizontal bar. A part above zero that is smaller than half a cell is a thin line in a
// cell of its own, if a cell is left.
func (r region) drawBar(x, y, n int, whole uint64, parts []part) {
	at := 0
	total := 0.0
	for _, p := range parts {
		if p.value == 0 || at >= n {
			continue
		}
		total += float64(p.value)
		end := n
		if whole > 0 {
			end = min(n, int(math.Round(total/float64(whole)*float64(n))))
		}
		text := p.text
		if end <= at {
			text, end = "▏", at+1
		}
		r.repeatCluster(x+at, y, end-at, text, p.style)
		at = end
	}
	r.repeatCluster(x+at, y, n-at, "·", freeStyle)
}

// part is one part of a bar.
type part struct {
	value uint64
	text  string
	style style
}

// labelledParts returns the number of parts into which labels divide a chart of h rows: a part has four or five rows, and the
// number is round where there is a choice. Charts of 2, 3, 4, 7, 8 and 12 rows cannot be divided so; their parts are smaller.
func labelledParts(h int) int {
	least, most := max(1, (h+3)/5), (h-1)/4
	for _, round := range [...]int{1, 2, 4, 5, 10, 20, 50} {
		if least <= round && round <= most {
			return round
		}
	}
	return least
}

// drawScale draws the axis in column x, with labels every few rows: f labels a part of the whole.
func (r region) drawScale(x, h int, f func(part float64) string) {
	for y := range h {
		r.putCluster(x, y, "│", frameStyle)
	}
	parts := labelledParts(h)
	for i := range parts + 1 {
		y := (i*(h-1) + parts/2) / parts
		r.subRegion(0, 0, x, r.h).writeTextBefore(x, y, f(1-float64(i)/float64(parts)), dim)
		if r.putCluster(x, y, "┤", frameStyle); h == 1 {
			return // the top alone
		}
	}
}

// roundAxisTop returns the top of an axis of bytes, at least v. All parts of the axis have the same size: 4, 5, 6 or 7 times a
// power of two, so that labels are round.
func roundAxisTop(v uint64, parts int) uint64 {
	if v > math.MaxUint64/2 {
		return math.MaxUint64
	}
	step := max(4, v/uint64(parts)+min(1, v%uint64(parts)))
	round := uint64(1) << max(0, bits.Len64(step-1)-3)
	return (step + round - 1) / round * round * uint64(parts)
}
