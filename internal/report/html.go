package report

import (
	"crypto/sha256"
	_ "embed"
	"encoding/base64"
	"io"
	"slices"
	"strings"

	"codeberg.org/gpumemtop/gpumemtop/internal/analysis"
)

var (
	//go:embed html/style.css
	htmlStyle string
	//go:embed html/script.js
	htmlScript string
)

// WriteHTML writes a report as one file, which can be read without network and scripts. It has at most 2 MiB, however large the
// recording; tables say how many rows they leave out. The error is the writer's.
func WriteHTML(w io.Writer, a *analysis.Analysis, o Options) error {
	return newView(a, o, true).makeHTMLPage().pageNode().Render(w)
}

type htmlPage struct {
	Title, Command string
	Policy         string // content security policy: what the browser may load and run
	Style, Script  string // ours
	Facts          []htmlFact
	Settings       []htmlFact
	Warnings       []string
	Diagnoses      []htmlDiagnosis
	MoreDiagnoses  string // how many were left out, empty: none
	AllClear       string // where nothing was found
	Tiles          []htmlTile
	First          []section // post-mortems, if a program failed
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
	SVG    string // markup
	Legend []htmlLegend
}

// htmlLegend names a colour.
type htmlLegend struct{ Class, Name string }

// contentPolicyHash names an inline style or script for a content security policy.
func contentPolicyHash(text string) string {
	sum := sha256.Sum256([]byte(text))
	return "'sha256-" + base64.StdEncoding.EncodeToString(sum[:]) + "'"
}

func (v *view) makeHTMLPage() *htmlPage {
	p := &htmlPage{
		Title: v.programName(), Command: cleanText(strings.Join(v.commandLine(), " "), htmlCommandWidth),
		Style: htmlStyle, Script: htmlScript,
		Policy: "default-src 'none'; img-src data:; base-uri 'none'; form-action 'none'; style-src " +
			contentPolicyHash(htmlStyle) + "; script-src " + contentPolicyHash(htmlScript),
		Facts: v.runFacts(), Settings: v.settingFacts(), Warnings: v.listWarnings(), Diagnoses: v.diagnosisCards(), Tiles: v.keyTiles(),
		AllClear: "N" + strings.TrimPrefix(v.nothingFoundText(), "n") + ".",
	}
	if left := len(v.a.Diagnoses) - len(p.Diagnoses); left > 0 {
		p.MoreDiagnoses = "and " + countText(uint64(left)) + " more"
	}
	p.First = sectionsWithContent(v.failuresSection())
	sections := []section{v.memorySection(), v.hitRateSection(), v.freeListSection(), v.peakSection(), v.failedSection(), v.missesSection(),
		v.limitChartSection(), v.fragmentationSection()}
	sections = append(sections, v.sizeChartSection(), v.lifetimeChartSection(), v.costChartsSection(), v.lagSection(),
		v.temporariesSection(), v.phasesSection(), v.transfersSection(), v.spillSection(), v.leaksSection(), v.releasedInFlightSection(), v.flameSection(),
		v.objectsSection(), v.processesSection(), v.mistakesSection(), v.marksSection())
	p.Sections = sectionsWithContent(sections...)
	return p
}

// sectionsWithContent returns the sections that have content.
func sectionsWithContent(sections ...section) []section {
	return slices.DeleteFunc(sections, func(s section) bool { return s.ID == "" })
}
