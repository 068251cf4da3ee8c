package report

import (
	"cmp"
	"fmt"
	"slices"
	"strconv"
	"strings"

	"codeberg.org/gpumemtop/gpumemtop/internal/analysis"
	"codeberg.org/gpumemtop/gpumemtop/internal/report/plot"
)

// Bounds of a flame graph. Frames narrower than a thousandth cannot be seen.
const (
	flameFrames = 1000
	flameBytes  = 120 << 10
	flameNamed  = 0.015 // least width of a frame whose name shows without a script
	flameDepth  = 48
	flameLeast  = 0.001
	flameRow    = 19 // pixels
)

// htmlFlame is the call tree weighted by one figure.
type htmlFlame struct {
	ID, Name string
	SVG      string // markup
	Note     string // what was left out
}

type flameFrame struct {
	frame       *analysis.Frame
	value       uint64
	from, width float64 // 0…1
	depth       int
}

func (v *view) flameSection() section {
	s := section{ID: "flame", Title: "Call tree by bytes"}
	if v.a.Flame == nil {
		s.Intro = "No call stack is known: record with --tags stack."
		return s
	}
	kept := "leaked"
	if v.s.WasAllHeldByKilled() {
		kept = "held at exit"
	}
	for _, f := range []struct {
		id, name string
		value    func(*analysis.Frame) uint64
	}{
		{"peak", "in use at the peak", func(f *analysis.Frame) uint64 { return f.Peak }},
		{"total", "requested in all", func(f *analysis.Frame) uint64 { return f.Total }},
		{"leaked", kept, func(f *analysis.Frame) uint64 { return f.Leaked }},
	} {
		if f.value(v.a.Flame) > 0 {
			s.Flames = append(s.Flames, drawFlame(f.id, f.name, v.a.Flame, f.value))
		}
	}
	s.Intro = "Callers are above, creates below; widths are bytes."
	if len(s.Flames) == 0 {
		s.Intro = "No buffer with a known call stack was created."
	}
	return s
}

// layOutFlameFrames places frames level by level, so that the bound on their number cuts off the deepest ones. left: how many.
func layOutFlameFrames(root *analysis.Frame, value func(*analysis.Frame) uint64) (frames []flameFrame, left int) {
	whole := float64(value(root))
	frames = []flameFrame{{frame: root, value: value(root), width: 1}}
	for at := 0; at < len(frames); at++ {
		above := frames[at]
		children := slices.Clone(above.frame.Children)
		slices.SortStableFunc(children, func(a, b *analysis.Frame) int { return cmp.Compare(value(b), value(a)) })
		x, end := above.from, above.from+above.width
		for _, child := range children {
			width := min(float64(value(child))/whole, end-x)
			if value(child) == 0 {
				break
			}
			if width < flameLeast || len(frames) == flameFrames || above.depth+1 >= flameDepth {
				left++
				continue
			}
			frames = append(frames, flameFrame{child, value(child), x, width, above.depth + 1})
			x += width
		}
	}
	return frames, left
}

func drawFlame(id, what string, root *analysis.Frame, value func(*analysis.Frame) uint64) htmlFlame {
	frames, left := layOutFlameFrames(root, value)
	var b strings.Builder
	deepest := 0
	for i := range frames {
		if b.Len() > flameBytes {
			left += len(frames) - i
			break
		}
		frames[i].draw(&b, value(root))
		deepest = frames[i].depth
	}
	head := fmt.Sprintf(`<svg class="flame" width="100%%" height="%d" role="group" aria-label="Call tree by bytes %s" tabindex="0">`,
		(deepest+1)*flameRow, plot.EscapeHTML(what))
	f := htmlFlame{ID: id, Name: what + ", " + bytesText(value(root)), SVG: head + b.String() + "</svg>"} // names are escaped
	if left > 0 {
		f.Note = thingsText(uint64(left), "frame") + " too small or too deep to be drawn, with their callees."
	}
	return f
}

// draw writes a frame as a nested SVG, which clips its name.
func (f *flameFrame) draw(b *strings.Builder, whole uint64) {
	text := "all"
	if f.depth > 0 {
		text = cleanName(f.frame.Name)
	}
	percent := func(part float64) string { return strconv.FormatFloat(100*part, 'f', 3, 64) }
	fmt.Fprintf(b, `<svg class="frame f%d" x="%s%%" y="%d" width="%s%%" height="%d" data-depth="%d"><title>%s: %s, %s, %s</title>`+
		`<rect width="100%%" height="%d"/>`, shadeOfName(f.frame.Name), percent(f.from), f.depth*flameRow, percent(f.width), flameRow, f.depth,
		plot.EscapeHTML(text), bytesText(f.value), rateText(float64(f.value)/float64(whole), whole), thingsText(f.frame.Creates, "create"), flameRow-1)
	if f.width >= flameNamed {
		fmt.Fprintf(b, `<text x="4" y="13">%s</text>`, plot.EscapeHTML(text))
	}
	b.WriteString("</svg>\n")
}

// shadeOfName returns one of four shades, always the same for a name.
func shadeOfName(name string) uint32 {
	var sum uint32 = 2166136261
	for i := range min(len(name), htmlNameWidth) {
		sum = (sum ^ uint32(name[i])) * 16777619
	}
	return sum >> 8 % 4
}
