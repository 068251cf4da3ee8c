package devicebench

import (
	"bytes"
	"fmt"
	"io"
	"math"
	"strings"

	"codeberg.org/gpumemtop/gpumemtop/internal/cost"
	"codeberg.org/gpumemtop/gpumemtop/internal/units"
)

// WriteJSON writes the result for scripts, and for gpumemtop itself.
func (r *Result) WriteJSON(w io.Writer) error {
	return units.WriteJSON(w, r)
}

// WriteText writes the result for people; its tables have at most width columns.
func (r *Result) WriteText(w io.Writer, width int) error {
	var b bytes.Buffer
	for i := range r.Devices {
		if i > 0 {
			b.WriteString("\n")
		}
		r.Devices[i].writeText(&b, width)
	}
	_, err := b.WriteTo(w)
	return err
}

func (d *Device) writeText(b *bytes.Buffer, width int) {
	fmt.Fprintf(b, "%d: %s (%s), driver %s\n", d.Number, units.Clean(d.Device), units.Clean(d.Platform), units.Clean(d.Driver))
	units.WriteTwoColumns(b, d.factsForText())
	if len(d.Points) > 0 {
		b.WriteString("\n" + tableOfSizes(d.Points, width) + "\n" + costChart(d.Points) + "\n")
		lines := [][2]string{
			{"create", d.Create.fitText()}, {"first touch", d.Touch.fitText()}, {"reuse", d.Reuse.fitText()}, {"release", d.Release.fitText()},
		}
		if d.New != nil {
			lines = append(lines, [2]string{"new: create", d.New.Create.fitText()}, [2]string{"new: touch", d.New.Touch.fitText()})
		}
		units.WriteTwoColumns(b, lines)
	}
	for _, note := range d.Notes {
		fmt.Fprintf(b, "%s\n", units.Clean(note))
	}
	if d.Error != "" {
		fmt.Fprintf(b, "failed: %s\n", units.Clean(d.Error))
	}
}

func (d *Device) factsForText() [][2]string {
	shares := ""
	if d.Unified {
		shares = ", which is the host's"
	}
	rows := [][2]string{
		{"memory", fmt.Sprintf("%s%s; at most %s at a time", units.FormatLong(d.GlobalMemory), shares, units.FormatLong(d.MaxAlloc))},
		{"local memory", fmt.Sprintf("%s; cache line %s; %s", units.FormatLong(d.LocalMemory), units.FormatLong(uint64(d.CacheLine)), units.Count(uint64(d.ComputeUnits), "compute unit"))},
	}
	parts := "begin at multiples of " + units.FormatLong(uint64(d.BaseAlign))
	if d.SubCreate > 0 {
		parts += fmt.Sprintf("; create %s, release %s", units.DurationOfComputed(d.SubCreate), units.DurationOfComputed(d.SubRelease))
	}
	rows = append(rows, [2]string{"sub-buffers", parts})
	if len(d.Points) == 0 {
		return rows
	}
	caching := "the driver keeps no released memory, as far as can be seen"
	if d.DriverCaches {
		caching = "released memory is kept for the next create, up to " + units.FormatLong(d.CachesUpTo)
	}
	return append(rows, [2]string{"allocation", d.Residency.residencyText()}, [2]string{"caching", caching})
}

func (r Residency) residencyText() string {
	switch r {
	case AtFirstUse:
		return "lazy: the first command that uses a buffer makes its memory"
	case ByPage:
		return "lazy: each page is made when it is first written"
	case AtCreate:
		return "the memory is there when the create returns"
	}
	return "buffers were too small to show when their memory comes"
}

// costText writes a + b·size ns.
func costText(a, b float64) string {
	if perMiB := b * (1 << 20); perMiB >= 0.5 {
		return fmt.Sprintf("%s + %s per MiB", units.DurationOfComputed(a), units.DurationOfComputed(perMiB))
	}
	return units.DurationOfComputed(a)
}

func (f *Fit) fitText() string {
	text := costText(f.A, f.B)
	if f.Below != (cost.Below{}) {
		text = fmt.Sprintf("%s from %s on, below %s", text, units.FormatLong(f.Below.Bytes), costText(f.Below.A, f.Below.B))
	}
	return fmt.Sprintf("%s; R² %.3f, at worst %.0f %% off", text, f.R2, 100*f.Error)
}

// tableOfSizes has a row for each size. New memory has columns of its own where it was measured.
func tableOfSizes(points []Point, width int) string {
	fresh := len(pointsMeasuredFresh(points)) > 0
	t := units.Table{Align: "r", Indent: "  ", Width: width, Least: []string{"N", "RELEASE", "REUSE"}}
	head := []string{"SIZE", "N", "CREATE", "FIRST TOUCH", "REUSE", "RELEASE"}
	if fresh {
		head = append(head, "NEW: CREATE", "NEW: TOUCH")
	}
	t.Add(head...)
	for i := range points {
		p := &points[i]
		row := []string{
			units.Format(p.Size), fmt.Sprint(p.N), units.DurationOfComputed(p.Create), units.DurationOfComputed(p.Touch), units.DurationOfComputed(p.Reuse),
			units.DurationOfComputed(p.Release),
		}
		switch {
		case p.Fresh != nil:
			row = append(row, units.DurationOfComputed(p.Fresh.Create), units.DurationOfComputed(p.Fresh.Touch))
		case fresh:
			row = append(row, "-", "-")
		}
		t.Add(row...)
	}
	return t.String()
}

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

// costChart draws the costs by size, both logarithmic. What costs nothing lies on the lowest row; "" for fewer than two
// points.
func costChart(points []Point) string {
	if len(points) < 2 {
		return ""
	}
	low, high := decadesAroundCosts(points)
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
	return drawAxes(grid, low, high, points)
}

// decadesAroundCosts returns the powers of ten, of ns, between which all costs lie but those of nothing.
func decadesAroundCosts(points []Point) (low, high float64) {
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

// drawAxes writes axes around the plot. A row is labelled where a power of ten lies.
func drawAxes(grid [][]byte, low, high float64, points []Point) string {
	labels := map[int]string{}
	for e := low; e <= high; e++ {
		y := chartHigh - 1 - int(math.Round((e-low)/(high-low)*(chartHigh-1)))
		labels[y] = units.Duration(uint64(math.Pow(10, e)))
	}
	var b strings.Builder
	for y, line := range grid {
		fmt.Fprintf(&b, "%s\n", strings.TrimRight(fmt.Sprintf("%*s |%s", chartLabel, labels[y], line), " "))
	}
	left, right := units.Format(points[0].Size), units.Format(points[len(points)-1].Size)
	fmt.Fprintf(&b, "%*s +%s\n", chartLabel, "", strings.Repeat("-", chartWide))
	fmt.Fprintf(&b, "%*s  %s%*s\n", chartLabel, "", left, chartWide-len(left), right)
	var names []string
	for _, c := range curves {
		names = append(names, fmt.Sprintf("%c %s", c.letter, c.name))
	}
	fmt.Fprintf(&b, "%*s  %s\n", chartLabel, "", strings.Join(names, "  "))
	return b.String()
}
