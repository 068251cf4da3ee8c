package report

import (
	"crypto/sha256"
	"embed"
	"encoding/base64"
	"html/template"
	"io"
	"slices"
	"strings"
	"sync"

	"codeberg.org/gpumemtop/gpumemtop/internal/analysis"
	"codeberg.org/gpumemtop/gpumemtop/internal/report/plot"
)

//go:embed html
var htmlFiles embed.FS

var (
	// Made for who needs them: every run would wait for them.
	htmlStyle    = sync.OnceValue(func() string { return htmlFile("html/style.css") })
	htmlScript   = sync.OnceValue(func() string { return htmlFile("html/script.js") })
	htmlTemplate = sync.OnceValue(func() *template.Template {
		return template.Must(template.New("report.html").ParseFS(htmlFiles, "html/*.html"))
	})
)

func htmlFile(name string) string {
	text, err := htmlFiles.ReadFile(name)
	if err != nil {
		panic(err) // it is embedded
	}
	return string(text)
}

// HTML writes a report as one file that needs no network, and no script to be read. It has at most 2 MiB, however large
// the recording; tables say what they leave out. The error is the writer's.
func HTML(w io.Writer, a *analysis.Analysis, o Options) error {
	return htmlTemplate().ExecuteTemplate(w, "report.html", newView(a, o, true).html())
}

// htmlPage is the data of the template.
type htmlPage struct {
	Title, Command string
	Policy         template.HTML // content security policy: what the browser may load and run
	Style          template.CSS
	Script         template.JS
	Facts          []htmlFact
	Warnings       []string
	Diagnoses      []htmlDiagnosis
	MoreDiagnoses  string // how many were left out, empty: none
	Tiles          []htmlTile
	First          []section // why the program failed, if it did
	Sections       []section
}

// htmlFact is a fact about the run.
type htmlFact struct {
	Name, Text string
	Words      []string // each shown as code
}

// htmlTile is one key figure.
type htmlTile struct{ Name, Value, Note string }

// htmlPlot is a chart with its legend.
type htmlPlot struct {
	Title  string
	Note   string
	SVG    template.HTML
	Legend []htmlLegend
}

// htmlLegend names a colour.
type htmlLegend struct{ Class, Name string }

// trusted is only for charts: package plot escapes what it is given.
func trusted(c *plot.Chart) template.HTML {
	return template.HTML(c.SVG()) //nolint:gosec // see above
}

// hashOf names an inline style or script for a content security policy.
func hashOf(text string) string {
	sum := sha256.Sum256([]byte(text))
	return "'sha256-" + base64.StdEncoding.EncodeToString(sum[:]) + "'"
}

func (v *view) html() *htmlPage {
	p := &htmlPage{
		Title: v.program(), Command: shown(strings.Join(v.commandLine(), " "), htmlCommandWidth),
		Style: template.CSS(htmlStyle()), Script: template.JS(htmlScript()),
		Policy: template.HTML("default-src 'none'; img-src data:; base-uri 'none'; form-action 'none'; style-src " +
			hashOf(htmlStyle()) + "; script-src " + hashOf(htmlScript())),
		Facts: v.facts(), Warnings: v.warnings(), Diagnoses: v.cards(), Tiles: v.tiles(),
	}
	if left := len(v.a.Diagnoses) - len(p.Diagnoses); left > 0 {
		p.MoreDiagnoses = "and " + countText(uint64(left)) + " more"
	}
	p.First = filled(v.failures())
	sections := []section{v.memory(), v.hitRate(), v.freeList(), v.peak(), v.misses(), v.limitChart(), v.fragmentation()}
	sections = append(sections, v.sizeChart(), v.lifetimeChart(), v.costCharts(), v.lag(), v.temporaries(), v.phases(), v.transfers(), v.spill(), v.leaks(), v.flame(),
		v.objects(), v.processes(), v.mistakes(), v.happened())
	p.Sections = filled(sections...)
	return p
}

// filled are the sections that there is something for.
func filled(sections ...section) []section {
	return slices.DeleteFunc(sections, func(s section) bool { return s.ID == "" })
}
