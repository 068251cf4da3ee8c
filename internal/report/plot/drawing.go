package plot

import (
	"html"
	"math"
	"strconv"
	"strings"

	"codeberg.org/gpumemtop/gpumemtop/internal/units"
)

// drawing is SVG that is being written.
type drawing struct{ strings.Builder }

// EscapeHTML makes any text safe between tags and in quoted attributes.
func EscapeHTML(text string) string { return html.EscapeString(units.Clean(text)) }

// openElement begins an element with attributes in pairs; those without a value are left out.
func (d *drawing) openElement(name string, attributes ...string) {
	d.WriteString("<" + name)
	for i := 0; i+1 < len(attributes); i += 2 {
		if attributes[i+1] != "" {
			d.WriteString(" " + attributes[i] + `="` + EscapeHTML(attributes[i+1]) + `"`)
		}
	}
	d.WriteString(">")
}

func (d *drawing) closeElement(name string) { d.WriteString("</" + name + ">") }

// addTitle names the element around it.
func (d *drawing) addTitle(text string) {
	d.openElement("title")
	d.WriteString(EscapeHTML(text))
	d.closeElement("title")
}

func (d *drawing) addText(class, x, y, text string) {
	d.openElement("text", "class", class, "x", x, "y", y)
	d.WriteString(EscapeHTML(text))
	d.closeElement("text")
}

func (d *drawing) addLine(class, x1, y1, x2, y2 string) {
	d.openElement("line", "class", class, "x1", x1, "y1", y1, "x2", x2, "y2", y2)
	d.closeElement("line")
}

func (d *drawing) addPath(class, data string) {
	d.openElement("path", "class", class, "d", data)
	d.closeElement("path")
}

// percentAttribute writes a fraction as an attribute in percent.
func percentAttribute(part float64) string { return decimalText(100*part, 3) + "%" }

// pictureSize is the width and height of the shapes' picture in its own units, which are finer than any screen.
const pictureSize = 6000

func pictureUnits(part float64) string { return strconv.Itoa(int(math.Round(part * pictureSize))) }

// topOf returns the distance of a value from the top.
func (c *Chart) topOf(value float64) string { return pictureUnits(1 - c.Y.FractionOf(value)) }

// areaPath outlines the areas between two series, in steps, where the series differ.
func (c *Chart) areaPath(below, top []float64) string {
	var b strings.Builder
	for from := 0; from < len(top); from++ {
		to := from
		for to < len(top) && top[to] > below[to] {
			to++
		}
		if to > from {
			c.outlinePiece(&b, below, top, from, to)
			from = to
		}
	}
	return b.String()
}

// outlinePiece outlines an area from one column to another.
func (c *Chart) outlinePiece(b *strings.Builder, below, top []float64, from, to int) {
	at := func(i int) string { return pictureUnits(float64(i) / float64(len(top))) }
	b.WriteString("M" + at(from) + " " + c.topOf(top[from]))
	for i := from + 1; i < to; i++ {
		if top[i] != top[i-1] {
			b.WriteString("H" + at(i) + "V" + c.topOf(top[i]))
		}
	}
	b.WriteString("H" + at(to) + "V" + c.topOf(below[to-1]))
	for i := to - 1; i > from; i-- {
		if below[i] != below[i-1] {
			b.WriteString("H" + at(i) + "V" + c.topOf(below[i-1]))
		}
	}
	b.WriteString("H" + at(from) + "Z")
}

// gapMost: a line continues over a gap without values that is at most 1/gapMost of the axis, and breaks at a longer one.
const gapMost = 50

func (c *Chart) stepLinePath(s Series) string {
	n := len(s.Values)
	at := func(i int) string { return pictureUnits(float64(i) / float64(n)) }
	var b strings.Builder
	last, end := "", 0
	for i, value := range s.Values {
		if s.Known != nil && !s.Known[i] {
			continue
		}
		y := c.topOf(value)
		switch {
		case last == "" || (i-end)*gapMost > n:
			if last != "" {
				b.WriteString("H" + at(end))
			}
			b.WriteString("M" + at(i) + " " + y)
		case y != last:
			b.WriteString("H" + at(i) + "V" + y)
		}
		last, end = y, i+1
	}
	if last != "" {
		b.WriteString("H" + at(end))
	}
	return b.String()
}

func (c *Chart) curvePath(curve Curve) string {
	var b strings.Builder
	command := "M"
	for i := range curve.X {
		b.WriteString(command + pictureUnits(c.X.FractionOf(curve.X[i])) + " " + c.topOf(curve.Y[i]))
		command = "L"
	}
	return b.String()
}
