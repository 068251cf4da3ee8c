package plot

import (
	"fmt"
	"strconv"
)

// Chart is a plot with two axes. From the back to the front it has bands, areas, bars, lines, points, rules and marks.
type Chart struct {
	Title  string // for readers who do not see the chart
	Height int    // pixels of the plot itself, without the labels of its axes; 0: 180
	X, Y   Axis
	Bands  []Band
	Areas  []Series // stacked, the lowest first
	Bars   []Bar
	Lines  []Series
	Curves []Curve
	Points []Point
	Rules  []Rule
	Marks  []Mark
	// Data is JSON from which a script shows values under the pointer; empty: none.
	Data string
}

// Series is evenly spaced over the whole X axis. Each value holds until the next one: a step.
type Series struct {
	Class  string // of its colour
	Values []float64
	Known  []bool // whether there is a value; nil: everywhere
}

// Band shades a stretch of the X axis. Its name is written above it where there is room.
type Band struct {
	From, To    float64
	Name, Label string
	Class       string
}

// bandNamed is the least width of a band that has room for its name, as a part of the axis.
const bandNamed = 0.12

// Bar is an upright bar between two places of the X axis.
type Bar struct {
	From, To, Value float64
	Class, Label    string // Label describes the bar in words
}

// Curve is a line through points.
type Curve struct {
	Class string
	X, Y  []float64
}

// Point is a dot with its error bars.
type Point struct {
	X, Y, Low, High float64
	Class, Label    string
}

// Rule is a line across at a value of the Y axis.
type Rule struct {
	Value        float64
	Label, Class string
}

// Mark is a moment on the X axis.
type Mark struct {
	X            float64
	Label, Class string
}

// defaultHeight is the default height of a chart, pixels.
const defaultHeight = 180

// SVG draws the chart. The labels of its axes lie outside of its box: the page must leave a margin of 64 pixels to the left, 24
// below and 16 elsewhere.
func (c *Chart) SVG() string {
	height := c.Height
	if height == 0 {
		height = defaultHeight
	}
	var d drawing
	d.open("svg", "class", "plot", "width", "100%", "height", strconv.Itoa(height), "overflow", "visible", "role", "img",
		"aria-label", c.Title, "data-plot", c.Data)
	d.title(c.Title)
	c.axes(&d, height)
	c.bands(&d, height)
	c.steps(&d)
	c.bars(&d)
	c.points(&d)
	c.rules(&d)
	c.drawMarks(&d)
	d.open("line", "class", "cursor", "y1", "0", "y2", "100%", "x1", "-1", "x2", "-1", "visibility", "hidden")
	d.close("line")
	d.close("svg")
	return d.String()
}

// axes draws grid lines and labels. Every other label of the X axis is less important: narrow screens leave it out.
func (c *Chart) axes(d *drawing, height int) {
	for _, tick := range c.Y.Ticks {
		y := percent(1 - c.Y.At(tick.Value))
		d.line("grid", "0", y, "100%", y)
		d.text("tick y", "-8", y, tick.Label)
	}
	for i, tick := range c.X.Ticks {
		x, class := percent(c.X.At(tick.Value)), "tick x"
		if i%2 == 1 {
			class += " less"
		}
		d.open("line", "class", "grid", "x1", x, "x2", x, "y1", "100%", "y2", strconv.Itoa(height+4))
		d.close("line")
		d.text(class, x, strconv.Itoa(height+17), tick.Label)
	}
}

func (c *Chart) bands(d *drawing, height int) {
	for _, band := range c.Bands {
		from, to := c.X.At(band.From), c.X.At(band.To)
		if to <= from {
			continue
		}
		d.open("rect", "class", "band "+band.Class, "x", percent(from), "y", "0", "width", percent(to-from),
			"height", strconv.Itoa(height))
		d.title(band.Label)
		d.close("rect")
		if to-from >= bandNamed { // above the plot, where nothing hides it
			d.text("banded", percent(from), "-3", band.Name)
		}
	}
}

// steps draws areas and lines, in a picture of their own that is stretched to the plot. Lines keep their width.
func (c *Chart) steps(d *drawing) {
	n := 0
	for _, s := range append(append([]Series{}, c.Areas...), c.Lines...) {
		n = max(n, len(s.Values))
	}
	if n == 0 && len(c.Curves) == 0 {
		return
	}
	d.open("svg", "viewBox", fmt.Sprintf("0 0 %d %d", pictureSize, pictureSize), "preserveAspectRatio", "none", "width", "100%",
		"height", "100%", "class", "shapes")
	below := make([]float64, n)
	for _, s := range c.Areas {
		top := make([]float64, n)
		for i := range top {
			top[i] = below[i] + valueAt(s.Values, i)
		}
		d.path("area "+s.Class, c.area(below, top))
		below = top
	}
	for _, s := range c.Lines {
		d.path("line "+s.Class, c.stepLine(s))
	}
	for _, curve := range c.Curves {
		d.path("line "+curve.Class, c.curve(curve))
	}
	d.close("svg")
}

func valueAt(values []float64, i int) float64 {
	if i < len(values) {
		return values[i]
	}
	return 0
}

func (c *Chart) bars(d *drawing) {
	for _, bar := range c.Bars {
		from, up := c.X.At(bar.From), c.Y.At(bar.Value)
		to := max(from, c.X.At(bar.To))
		d.open("rect", "class", "bar "+bar.Class, "x", percent(from), "y", percent(1-up), "width", percent(to-from),
			"height", percent(up))
		d.title(bar.Label)
		d.close("rect")
	}
}

func (c *Chart) points(d *drawing) {
	for _, p := range c.Points {
		x := percent(c.X.At(p.X))
		d.line("spread "+p.Class, x, percent(1-c.Y.At(p.Low)), x, percent(1-c.Y.At(p.High)))
		d.open("circle", "class", "point "+p.Class, "cx", x, "cy", percent(1-c.Y.At(p.Y)), "r", "4.5")
		d.title(p.Label)
		d.close("circle")
	}
}

func (c *Chart) rules(d *drawing) {
	for _, rule := range c.Rules {
		y := percent(1 - c.Y.At(rule.Value))
		d.line("rule "+rule.Class, "0", y, "100%", y)
		d.open("svg", "y", y, "x", "0", "width", "100%", "height", "1", "overflow", "visible")
		d.text("ruled", "100%", "-4", rule.Label)
		d.close("svg")
	}
}

// drawMarks draws a line with a small head that is easier to point at.
func (c *Chart) drawMarks(d *drawing) {
	for _, mark := range c.Marks {
		x := percent(c.X.At(mark.X))
		d.open("g", "class", "mark "+mark.Class)
		d.title(mark.Label)
		d.line("stem", x, "0", x, "100%")
		d.open("svg", "x", x, "y", "0", "width", "1", "height", "1", "overflow", "visible")
		d.path("head", "M-4 -9H4L0 -1Z")
		d.close("svg")
		d.close("g")
	}
}
