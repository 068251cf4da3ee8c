package e2e

import (
	"bytes"
	"image/png"
	"math"
	"os"
	"path/filepath"
	"slices"
	"testing"

	"github.com/chromedp/cdproto/emulation"
	"github.com/chromedp/cdproto/page"
	"github.com/chromedp/chromedp"
	"github.com/chromedp/chromedp/kb"

	"codeberg.org/gpumemtop/gpumemtop/internal/analysis"
	"codeberg.org/gpumemtop/gpumemtop/internal/report"
	"codeberg.org/gpumemtop/gpumemtop/internal/testkit/reportrun"
)

// writePage writes an analysis into a file.
func writePage(t *testing.T, a *analysis.Analysis) string {
	t.Helper()
	var b bytes.Buffer
	if err := report.WriteHTML(&b, a, report.Options{}); err != nil {
		t.Fatal(err)
	}
	path := filepath.Join(t.TempDir(), "report.html")
	if err := os.WriteFile(path, b.Bytes(), 0o600); err != nil {
		t.Fatal(err)
	}
	return path
}

// sections are the parts of a report of a run that has everything, in their order.
var sections = []string{
	"findings", "figures", "memory", "hit-rate", "free-list", "peak", "misses", "fragmentation", "sizes", "lifetimes", "driver", "lag",
	"temporaries", "phases", "leaks", "flame", "objects", "processes", "mistakes", "happened", "settings",
}

const (
	// sectionsShown are the sections that take room on the page.
	sectionsShown = `[...document.querySelectorAll("main > section")].filter(s => s.getBoundingClientRect().height > 40).map(s => s.id)`
	// plotsEmpty are the charts that have no room, or nothing in them.
	plotsEmpty = `[...document.querySelectorAll("svg.plot")].filter(s => {
		const box = s.getBoundingClientRect();
		const drawn = [...s.querySelectorAll("path, rect, circle")].some(x => x.getBoundingClientRect().width > 1);
		return box.width < 200 || box.height < 100 || !drawn;
	}).map(s => s.getAttribute("aria-label"))`
	plotsShown = `document.querySelectorAll("svg.plot").length`
	// overflow is how much wider the page is than its window.
	overflow = `Math.max(document.documentElement.scrollWidth, document.body.scrollWidth) - window.innerWidth`
	// peakColumn is what is in use at the peak, by call site.
	peakColumn  = `[...document.querySelectorAll("#peak tbody tr")].map(r => Number(r.cells[1].dataset.v))`
	framesShown = `[...document.querySelectorAll(".box0 .frame")].filter(f => f.getBoundingClientRect().width > 0).length`
	flameWidth  = `document.querySelector(".box0 svg.flame").getBoundingClientRect().width`
	frameWidth  = `document.querySelectorAll(".box0 .frame")[3].querySelector("rect").getBoundingClientRect().width`
)

// checkPage checks that everything of the sample is shown.
func (b *browser) checkPage() {
	t := b.t
	t.Helper()
	if shown := eval[[]string](b, sectionsShown); !slices.Equal(shown, sections) {
		t.Errorf("sections\n%q, want\n%q", shown, sections)
	}
	if n, empty := eval[int](b, plotsShown), eval[[]string](b, plotsEmpty); n != 8 || len(empty) > 0 {
		t.Errorf("%d charts, want 8; empty: %q", n, empty)
	}
	if n := eval[int](b, framesShown); n < 20 {
		t.Errorf("%d frames in the call tree", n)
	}
}

func TestHTMLReport(t *testing.T) {
	t.Parallel()
	b := newBrowser(t)
	t.Run("of a long run", func(t *testing.T) { b.within(t).sample() })
	t.Run("of a recording", func(t *testing.T) { b.within(t).recorded() })
	t.Run("in the documents", func(t *testing.T) { b.within(t).pictures() })
	t.Run("of a hostile recording", func(t *testing.T) { b.within(t).hostile() })
	t.Run("of short peaks", func(t *testing.T) { b.within(t).peaks() })
}

// peakEach is how many columns of the chart lie from one peak to the next.
const peakEach = 40

// areaOf is where the first area of the memory chart is in the window, and its colour.
const areaOf = `(() => {
	document.querySelector("#memory svg.plot").scrollIntoView({block: "center", behavior: "instant"});
	const area = document.querySelector("#memory .area"), box = area.getBoundingClientRect();
	return [box.left, box.top, box.width, ...getComputedStyle(area).color.match(/\d+/g).slice(0, 3).map(Number)];
})()`

// peaks looks for each peak of a chart whose columns are narrower than pixels, on screens and on paper.
func (b *browser) peaks() {
	a := reportrun.SampleAnalysis()
	a.Snapshot.Marks, a.Phases = nil, nil // whose lines cross the chart
	line := &a.Timeline
	columns := len(line.InUse)
	for i := range columns {
		line.InUse[i], line.Cached[i], line.Cooling[i] = 32<<20, 0, 0
		if i%peakEach == peakEach/2 {
			line.InUse[i] = 700 << 20
		}
	}
	line.Tags = []analysis.Series{{Name: "a.c:1 f", Values: slices.Clone(line.InUse)}}
	path := writePage(b.t, a)
	for _, media := range []string{"screen", "print"} {
		call(b, emulation.SetEmulatedMedia, emulation.SetEmulatedMediaParams{Media: media})
		for _, width := range []int64{360, 700, 1600} {
			b.open(path, width, 900)
			if missing := b.flattened(columns); len(missing) > 0 {
				b.t.Errorf("%s, %d pixels wide: no peak in columns %v of %d", media, width, missing, columns)
			}
		}
	}
	call(b, emulation.SetEmulatedMedia, emulation.SetEmulatedMediaParams{})
	b.quiet()
}

// flattened returns the columns of peaks that the window does not show in full, and of valleys that it does not show.
func (b *browser) flattened(columns int) (list []int) {
	area := eval[[]float64](b, areaOf)
	shot, err := png.Decode(bytes.NewReader(call(b, page.CaptureScreenshot, page.CaptureScreenshotParams{}).Data))
	if err != nil {
		b.t.Fatal(err)
	}
	inked := func(x int) bool { // more than half of a pixel near the top of the peaks
		red, green, blue, _ := shot.At(x, int(area[1])+8).RGBA()
		return max(math.Abs(float64(red>>8)-area[3]), math.Abs(float64(green>>8)-area[4]), math.Abs(float64(blue>>8)-area[5])) < 80
	}
	for i := 0; i < columns; i += peakEach / 2 {
		x := int(area[0] + area[2]*(float64(i)+0.5)/float64(columns))
		if shown := inked(x-1) || inked(x) || inked(x+1); shown != (i%peakEach != 0) {
			list = append(list, i)
		}
	}
	return list
}

// sample looks at a page with everything: all there with and without scripts, at any width, and requesting no
// anything.
func (b *browser) sample() {
	t := b.t
	path := writePage(t, reportrun.SampleAnalysis())
	for _, scripts := range []bool{false, true} {
		call(b, emulation.SetScriptExecutionDisabled, emulation.SetScriptExecutionDisabledParams{Value: !scripts})
		for _, width := range []int64{360, 700, 1600} {
			b.open(path, width, 900)
			b.checkPage()
			if over := eval[int](b, overflow); over > 0 {
				t.Errorf("scripts %t, %d pixels wide: %d pixels too wide", scripts, width, over)
			}
		}
	}
	b.sort()
	b.zoom()
	b.read()
	b.quiet()
}

// sort orders a table by its head.
func (b *browser) sort() {
	t := b.t
	before := eval[[]uint64](b, peakColumn)
	head := chromedp.CSS("#peak th:nth-child(2) button")
	b.do(chromedp.Click(head), chromedp.Click(head))
	after := eval[[]uint64](b, peakColumn)
	if !slices.IsSorted(after) || slices.Equal(before, after) || len(before) != len(after) {
		t.Errorf("%d sorted upwards is %d", before, after)
	}
	if sorted := eval[string](b, `document.querySelector("#peak th:nth-child(2)").getAttribute("aria-sort")`); sorted != "ascending" {
		t.Errorf("the head says %q", sorted)
	}
}

// zoom looks closer at a frame of the call tree, goes back with a key, and searches.
func (b *browser) zoom() {
	t := b.t
	before, whole := eval[float64](b, frameWidth), eval[float64](b, flameWidth)
	eval[bool](b, `document.querySelectorAll(".box0 .frame")[3].dispatchEvent(new MouseEvent("click"))`)
	if after := eval[float64](b, frameWidth); before > whole/2 || after < whole-1 {
		t.Errorf("a frame %f wide is %f wide when zoomed, of %f", before, after, whole)
	}
	b.do(chromedp.Focus(chromedp.CSS(".box0 svg.flame")), chromedp.KeyEvent(kb.Escape))
	if again := eval[float64](b, frameWidth); again < before-1 || again > before+1 {
		t.Errorf("after Escape it is %f wide, not %f", again, before)
	}
	b.do(chromedp.SendKeys(chromedp.CSS(".tools input"), "im2col"))
	if found := eval[int](b, `document.querySelectorAll(".box0 .frame.found").length`); found == 0 {
		t.Error("nothing is found")
	}
}

// read asks for values with a key, and with the pointer.
func (b *browser) read() {
	t := b.t
	if shown := eval[bool](b, `!document.querySelector("#memory .readout").hidden`); shown {
		t.Error("values are shown before a request")
	}
	b.do(chromedp.Focus(chromedp.CSS("#memory svg.plot")), chromedp.KeyEvent(kb.End))
	if text := eval[string](b, `document.querySelector("#memory .readout b").textContent`); text != "41.93\u202fs" {
		t.Errorf("the values at the end are those of %q", text)
	}
	eval[bool](b, `(() => {
		const svg = document.querySelector("#memory svg.plot"), box = svg.getBoundingClientRect();
		return svg.dispatchEvent(new PointerEvent("pointermove", {clientX: box.left + box.width / 2, clientY: box.top + 9}));
	})()`)
	text := eval[string](b, `document.querySelector("#memory .readout").textContent`)
	for _, part := range []string{"21.00", "optimizer.c:203 moments", "192\u202fMiB", "sum"} {
		if !contains([]byte(text), part) {
			t.Errorf("no %q in the values under the pointer: %q", part, text)
		}
	}
}

// recorded goes the way of a person: record, report, look.
func (b *browser) recorded() {
	t := b.t
	recording, out := filepath.Join(t.TempDir(), "a.gmt"), filepath.Join(t.TempDir(), "a.html")
	record := run(t, command{args: []string{gpumemtop(), "record", "-o", recording, "--", example("train"), "40"}})
	written := run(t, command{args: []string{gpumemtop(), "report", "--format", "html", "-o", out, recording}})
	if record.code != 0 || written.code != 0 || len(written.stdout) > 0 {
		t.Fatalf("record ended with %s, report with %s: %s%s", record, written, written.stdout, written.stderr)
	}
	again := run(t, command{args: []string{gpumemtop(), "report", "--format", "html", "-o", out, recording}})
	if again.code != 125 || !contains(again.stderr, "exists") {
		t.Errorf("writing it again ended with %s: %s", again, again.stderr)
	}
	b.open(out, 1200, 900)
	if title := eval[string](b, `document.title`); title != "train – gpumemtop" {
		t.Errorf("title %q", title)
	}
	if empty := eval[[]string](b, plotsEmpty); len(empty) > 0 {
		t.Errorf("empty charts: %q", empty)
	}
	if text := eval[string](b, `document.querySelector("#peak").textContent`); !contains([]byte(text), "create_activation") {
		t.Errorf("who held the memory: %s", text)
	}
	b.quiet()
}

// hostile looks at what a recording says that would do harm: it stays text.
func (b *browser) hostile() {
	t := b.t
	b.open(writePage(t, reportrun.HostileAnalysis()), 1200, 900)
	if n := eval[int](b, `document.querySelectorAll("img, script:not(:last-child), iframe, [onerror]").length`); n > 0 {
		t.Errorf("%d unexpected elements", n)
	}
	if over := eval[int](b, overflow); over > 0 {
		t.Errorf("%d pixels too wide", over)
	}
	b.quiet()
}
