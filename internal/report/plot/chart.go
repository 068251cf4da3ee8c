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

// DrawSVG draws the chart. The labels of its axes lie outside of its box: the page must leave a margin of 64 pixels to the left, 24
// below and 16 elsewhere.
func (c *Chart) DrawSVG() string {
	height := c.Height
	if height == 0 {
		height = defaultHeight
	}
	var d drawing
	d.openElement("svg", "class", "plot", "width", "100%", "height", strconv.Itoa(height), "overflow", "visible", "role", "img",
		"aria-label", c.Title, "data-plot", c.Data)
	d.addTitle(c.Title)
	c.drawAxes(&d, height)
	c.drawBands(&d, height)
	c.drawAreasAndLines(&d)
	c.drawBars(&d)
	c.drawPoints(&d)
	c.drawRules(&d)
	c.drawMarks(&d)
	d.openElement("line", "class", "cursor", "y1", "0", "y2", "100%", "x1", "-1", "x2", "-1", "visibility", "hidden")
	d.closeElement("line")
	d.closeElement("svg")
	return d.String()
}

// drawAxes draws grid lines and labels. Every other label of the X axis is less important: narrow screens leave it out.
func (c *Chart) drawAxes(d *drawing, height int) {
	for _, tick := range c.Y.Ticks {
		y := percentAttribute(1 - c.Y.FractionOf(tick.Value))
		d.addLine("grid", "0", y, "100%", y)
		d.addText("tick y", "-8", y, tick.Label)
	}
	for i, tick := range c.X.Ticks {
		x, class := percentAttribute(c.X.FractionOf(tick.Value)), "tick x"
		if i%2 == 1 {
			class += " less"
		}
		d.openElement("line", "class", "grid", "x1", x, "x2", x, "y1", "100%", "y2", strconv.Itoa(height+4))
		d.closeElement("line")
		d.addText(class, x, strconv.Itoa(height+17), tick.Label)
	}
}

func (c *Chart) drawBands(d *drawing, height int) {
	for _, band := range c.Bands {
		from, to := c.X.FractionOf(band.From), c.X.FractionOf(band.To)
		if to <= from {
			continue
		}
		d.openElement("rect", "class", "band "+band.Class, "x", percentAttribute(from), "y", "0", "width", percentAttribute(to-from),
			"height", strconv.Itoa(height))
		d.addTitle(band.Label)
		d.closeElement("rect")
		if to-from >= bandNamed { // above the plot, where nothing hides it
			d.addText("banded", percentAttribute(from), "-3", band.Name)
		}
	}
}

// drawAreasAndLines draws areas and lines, in a picture of their own that is stretched to the plot. Lines keep their width.
func (c *Chart) drawAreasAndLines(d *drawing) {
	n := 0
	for _, s := range append(append([]Series{}, c.Areas...), c.Lines...) {
		n = max(n, len(s.Values))
	}
	if n == 0 && len(c.Curves) == 0 {
		return
	}
	d.openElement("svg", "viewBox", fmt.Sprintf("0 0 %d %d", pictureSize, pictureSize), "preserveAspectRatio", "none", "width", "100%",
		"height", "100%", "class", "shapes")
	below := make([]float64, n)
	for _, s := range c.Areas {
		top := make([]float64, n)
		for i := range top {
			top[i] = below[i] + valueOrZero(s.Values, i)
		}
		d.addPath("area "+s.Class, c.areaPath(below, top))
		below = top
	}
	for _, s := range c.Lines {
		d.addPath("line "+s.Class, c.stepLinePath(s))
	}
	for _, curve := range c.Curves {
		d.addPath("line "+curve.Class, c.curvePath(curve))
	}
	d.closeElement("svg")
}

func valueOrZero(values []float64, i int) float64 {
	if i < len(values) {
		return values[i]
	}
	return 0
}

func (c *Chart) drawBars(d *drawing) {
	for _, bar := range c.Bars {
		from, up := c.X.FractionOf(bar.From), c.Y.FractionOf(bar.Value)
		to := max(from, c.X.FractionOf(bar.To))
		d.openElement("rect", "class", "bar "+bar.Class, "x", percentAttribute(from), "y", percentAttribute(1-up), "width", percentAttribute(to-from),
			"height", percentAttribute(up))
		d.addTitle(bar.Label)
		d.closeElement("rect")
	}
}

func (c *Chart) drawPoints(d *drawing) {
	for _, p := range c.Points {
		x := percentAttribute(c.X.FractionOf(p.X))
		d.addLine("spread "+p.Class, x, percentAttribute(1-c.Y.FractionOf(p.Low)), x, percentAttribute(1-c.Y.FractionOf(p.High)))
		d.openElement("circle", "class", "point "+p.Class, "cx", x, "cy", percentAttribute(1-c.Y.FractionOf(p.Y)), "r", "4.5")
		d.addTitle(p.Label)
		d.closeElement("circle")
	}
}

func (c *Chart) drawRules(d *drawing) {
	for _, rule := range c.Rules {
		y := percentAttribute(1 - c.Y.FractionOf(rule.Value))
		d.addLine("rule "+rule.Class, "0", y, "100%", y)
		d.openElement("svg", "y", y, "x", "0", "width", "100%", "height", "1", "overflow", "visible")
		d.addText("ruled", "100%", "-4", rule.Label)
		d.closeElement("svg")
	}
}

// drawMarks draws a line with a small head that is easier to point at.
func (c *Chart) drawMarks(d *drawing) {
	for _, mark := range c.Marks {
		x := percentAttribute(c.X.FractionOf(mark.X))
		d.openElement("g", "class", "mark "+mark.Class)
		d.addTitle(mark.Label)
		d.addLine("stem", x, "0", x, "100%")
		d.openElement("svg", "x", x, "y", "0", "width", "1", "height", "1", "overflow", "visible")
		d.addPath("head", "M-4 -9H4L0 -1Z")
		d.closeElement("svg")
		d.closeElement("g")
	}
}
