package report

import (
	"crypto/sha256"
	"embed"
	"encoding/base64"
	"html/template"
	"io"
	"strings"

	"codeberg.org/gpumemtop/gpumemtop/internal/analysis"
	"codeberg.org/gpumemtop/gpumemtop/internal/model"
	"codeberg.org/gpumemtop/gpumemtop/internal/report/plot"
)

//go:embed html
var htmlFiles embed.FS

var (
	htmlStyle    = htmlFile("html/style.css")
	htmlScript   = htmlFile("html/script.js")
	htmlTemplate = template.Must(template.New("report.html").ParseFS(htmlFiles, "html/*.html"))
)

func htmlFile(name string) string {
	text, err := htmlFiles.ReadFile(name)
	if err != nil {
		panic(err) // it is embedded
	}
	return string(text)
}

// HTML writes a report as one file that needs nothing else: no network, and no script for reading it. However large the
// recording is, it has at most 2 MiB; tables say what they leave out. The error is the writer's.
func HTML(w io.Writer, a *analysis.Analysis, o Options) error {
	v := &htmlView{a: a, s: a.Snapshot, options: o, stacks: htmlStackBytes}
	if v.s == nil {
		v.s = &model.Snapshot{}
	}
	return htmlTemplate.ExecuteTemplate(w, "report.html", v.page())
}

// htmlView makes the parts of the page from an analysis.
type htmlView struct {
	a       *analysis.Analysis
	s       *model.Snapshot
	options Options
	stacks  int // bytes of stacks that may still be written
}

// htmlPage is what the template writes.
type htmlPage struct {
	Title, Command string
	Policy         template.HTML // content security policy: what the browser may load and run
	Style          template.CSS
	Script         template.JS
	Facts          []htmlFact
	Warnings       []string
	Diagnoses      []htmlDiagnosis
	MoreDiagnoses  string // what was left out, empty: nothing
	Tiles          []htmlTile
	Sections       []htmlSection
}

// htmlFact is a line of what ran.
type htmlFact struct {
	Name, Text string
	Words      []string // shown one by one, as code
}

// htmlTile is one key figure.
type htmlTile struct{ Name, Value, Note string }

// htmlSection is a part of the page under a heading.
type htmlSection struct {
	ID, Title string
	Intro     string // one line: what it says, or why there is nothing
	Plots     []htmlPlot
	Tables    []htmlTable
	Flames    []htmlFlame
}

// htmlPlot is a chart with its legend.
type htmlPlot struct {
	Title  string
	Note   string
	SVG    template.HTML
	Legend []htmlLegend
}

// htmlLegend names a colour.
type htmlLegend struct{ Class, Name string }

// trusted is only for what package plot made, which escapes what it is given.
func trusted(c *plot.Chart) template.HTML {
	return template.HTML(c.SVG()) //nolint:gosec // see above
}

// hashOf is how a content security policy names an inline style or script that may take effect.
func hashOf(text string) string {
	sum := sha256.Sum256([]byte(text))
	return "'sha256-" + base64.StdEncoding.EncodeToString(sum[:]) + "'"
}

// pooled is a section about the pool, which programs that were only watched have none of.
func (v *htmlView) pooled(section func() (htmlSection, bool)) func() (htmlSection, bool) {
	if v.a.Run.Header.Attached {
		return func() (htmlSection, bool) { return htmlSection{}, false }
	}
	return section
}

func (v *htmlView) page() *htmlPage {
	p := &htmlPage{
		Title: v.program(), Command: shown(strings.Join(v.commandLine(), " "), htmlCommandWidth),
		Style: template.CSS(htmlStyle), Script: template.JS(htmlScript),
		Policy: template.HTML("default-src 'none'; img-src data:; base-uri 'none'; form-action 'none'; style-src " +
			hashOf(htmlStyle) + "; script-src " + hashOf(htmlScript)),
		Facts: v.facts(), Warnings: v.warnings(), Diagnoses: v.diagnoses(), Tiles: v.tiles(),
	}
	if left := len(v.a.Diagnoses) - len(p.Diagnoses); left > 0 {
		p.MoreDiagnoses = "and " + countText(uint64(left)) + " more"
	}
	for _, section := range []func() (htmlSection, bool){
		v.memory, v.pooled(v.hitRate), v.pooled(v.freeList), v.peak, v.pooled(v.misses), v.byLimit,
		v.pooled(v.fragmentation), v.sizes, v.lifetimes, v.costs, v.lag, v.temporaries, v.phases, v.leaks, v.flame, v.processes, v.mistakes, v.happened,
	} {
		if s, meant := section(); meant {
			p.Sections = append(p.Sections, s)
		}
	}
	return p
}
