package measure

import (
	"fmt"
	"math"
	"strings"

	"codeberg.org/gpumemtop/gpumemtop/internal/plain"
	"codeberg.org/gpumemtop/gpumemtop/internal/size"
)

// The chart fits the narrowest terminals, and pipes: it is made of letters.
const (
	chartWide  = 50 // columns of the plot itself
	chartHigh  = 14 // rows
	chartLabel = 7  // columns of the labels at its left
)

// curve is one letter's points.
type curve struct {
	letter byte
	name   string
	cost   func(*Point) float64
}

// curves are drawn one over the other, the last on top.
var curves = []curve{
	{'u', "reuse", func(p *Point) float64 { return p.Reuse }},
	{'r', "release", func(p *Point) float64 { return p.Release }},
	{'c', "create", func(p *Point) float64 { return p.Create }},
	{'t', "first touch", func(p *Point) float64 { return p.Touch }},
}

// chart draws the costs by size, both logarithmic. What costs nothing lies on the lowest row; "" for fewer than two
// points.
func chart(points []Point) string {
	if len(points) < 2 {
		return ""
	}
	low, high := decades(points)
	grid := make([][]byte, chartHigh)
	for y := range grid {
		grid[y] = []byte(strings.Repeat(" ", chartWide))
	}
	first, last := math.Log2(float64(points[0].Size)), math.Log2(float64(points[len(points)-1].Size))
	for _, c := range curves {
		for i := range points {
			x := (math.Log2(float64(points[i].Size)) - first) / (last - first)
			y := (math.Log10(max(c.cost(&points[i]), math.Pow(10, low))) - low) / (high - low)
			grid[chartHigh-1-int(math.Round(y*(chartHigh-1)))][int(math.Round(x*(chartWide-1)))] = c.letter
		}
	}
	return framed(grid, low, high, points)
}

// decades returns the powers of ten, of ns, between which all costs lie but those of nothing.
func decades(points []Point) (low, high float64) {
	low, high = math.Inf(1), math.Inf(-1)
	for i := range points {
		for _, c := range curves {
			if ns := c.cost(&points[i]); ns > 0 {
				low, high = min(low, math.Log10(ns)), max(high, math.Log10(ns))
			}
		}
	}
	if math.IsInf(low, 0) {
		return 0, 1
	}
	low = math.Floor(low)
	return low, max(math.Ceil(high), low+1)
}

// framed writes axes around the plot. A row is labelled where a power of ten lies.
func framed(grid [][]byte, low, high float64, points []Point) string {
	labels := map[int]string{}
	for e := low; e <= high; e++ {
		y := chartHigh - 1 - int(math.Round((e-low)/(high-low)*(chartHigh-1)))
		labels[y] = plain.Duration(uint64(math.Pow(10, e)))
	}
	var b strings.Builder
	for y, line := range grid {
		fmt.Fprintf(&b, "%s\n", strings.TrimRight(fmt.Sprintf("%*s |%s", chartLabel, labels[y], line), " "))
	}
	left, right := size.Format(points[0].Size), size.Format(points[len(points)-1].Size)
	fmt.Fprintf(&b, "%*s +%s\n", chartLabel, "", strings.Repeat("-", chartWide))
	fmt.Fprintf(&b, "%*s  %s%*s\n", chartLabel, "", left, chartWide-len(left), right)
	var names []string
	for _, c := range curves {
		names = append(names, fmt.Sprintf("%c %s", c.letter, c.name))
	}
	fmt.Fprintf(&b, "%*s  %s\n", chartLabel, "", strings.Join(names, "  "))
	return b.String()
}
