package diff

import (
	"bytes"
	"encoding/xml"
	"fmt"
	"io"
	"strings"

	"codeberg.org/gpumemtop/gpumemtop/internal/units"
)

// shiftsShown bounds the lines of text for one program, without those that are more. JSON has all.
const shiftsShown = 10

// WriteText writes the changes for people.
func (b *Builds) WriteText(w io.Writer) error {
	var out bytes.Buffer
	for i := range b.Programs {
		b.Programs[i].writeText(&out)
	}
	for _, text := range b.Missing {
		fmt.Fprintf(&out, "%s\n", units.Clean(text))
	}
	fmt.Fprintf(&out, "%s more than before, beyond what runs of one build differ by, in %s\n",
		units.Plural(uint64(b.CountIncreases()), "figure is", "figures are"), units.Count(uint64(len(b.Programs)), "program"))
	_, err := w.Write(out.Bytes())
	return err
}

func (p *Program) writeText(out *bytes.Buffer) {
	fmt.Fprintf(out, "%s: %s against %s\n", units.Clean(p.App), runsOfSideText(p.HeadRuns, p.Head), runsOfSideText(p.BaseRuns, p.Base))
	if p.HasTooFewRuns() {
		fmt.Fprintf(out, "  too few runs to show that a figure is more: 3 and 3 can, or 1 and 19\n")
	}
	table := units.Table{Align: "rrrlll", Indent: "  "}
	left := 0
	for i := range p.Shifts {
		s := &p.Shifts[i]
		if !s.More && i >= shiftsShown {
			left++
			continue
		}
		mark, path := "", ""
		if s.More {
			mark, path = "▲", s.Path
		}
		table.Add(s.Figure.Name, s.formatShiftValue(s.Base, false), s.formatShiftValue(s.Head, false), s.differenceAndInterval(), mark+" "+units.Clean(s.Site), units.Clean(path))
	}
	out.WriteString(table.String())
	if left > 0 {
		fmt.Fprintf(out, "  and %s that may be chance\n", units.Count(uint64(left), "more difference"))
	}
}

// runsOfSideText says which runs are on one side.
func runsOfSideText(runs int, builds []string) string {
	text := units.Count(uint64(runs), "run") + " of "
	if len(builds) == 1 {
		return text + units.Clean(builds[0])
	}
	return text + units.Count(uint64(len(builds)), "build")
}

func (s *Shift) formatShiftValue(value float64, signed bool) string {
	return formatFigure(s.Figure.Unit, value, signed)
}

// differenceAndInterval writes the difference and where it lies.
func (s *Shift) differenceAndInterval() string {
	return fmt.Sprintf("%s (%s to %s)", s.formatShiftValue(s.Delta, true), s.formatShiftValue(s.Low, true), s.formatShiftValue(s.High, true))
}

type shiftJSON struct {
	Figure    string  `json:"figure"`
	Unit      string  `json:"unit"`
	Site      string  `json:"site,omitempty"`
	Base      float64 `json:"base"`
	Head      float64 `json:"head"`
	Delta     float64 `json:"delta"`
	Low       float64 `json:"low"`
	High      float64 `json:"high"`
	More      bool    `json:"more"`
	Recording string  `json:"recording"`
}

type programJSON struct {
	Application string      `json:"application"`
	Base        []string    `json:"base"`
	Head        []string    `json:"head"`
	BaseRuns    int         `json:"base_runs"`
	HeadRuns    int         `json:"head_runs"`
	Few         bool        `json:"too_few_runs"`
	Changes     []shiftJSON `json:"changes"`
}

// WriteJSON writes the changes for scripts: sizes in bytes, times in ns.
func (b *Builds) WriteJSON(w io.Writer) error {
	programs := []programJSON{}
	for i := range b.Programs {
		p := &b.Programs[i]
		j := programJSON{units.Clean(p.App), p.Base, p.Head, p.BaseRuns, p.HeadRuns, p.HasTooFewRuns(), []shiftJSON{}}
		for k := range p.Shifts {
			s := &p.Shifts[k]
			j.Changes = append(j.Changes, shiftJSON{
				s.Figure.Name, s.Figure.Unit.String(), units.Clean(s.Site), s.Base, s.Head, s.Delta, s.Low, s.High, s.More, s.Path,
			})
		}
		programs = append(programs, j)
	}
	missing := b.Missing
	if missing == nil {
		missing = []string{}
	}
	return units.WriteJSON(w, map[string]any{"applications": programs, "missing_ranks": missing, "more": b.CountIncreases()})
}

type suiteXML struct {
	XMLName  xml.Name  `xml:"testsuite"`
	Name     string    `xml:"name,attr"`
	Tests    int       `xml:"tests,attr"`
	Failures int       `xml:"failures,attr"`
	Cases    []caseXML `xml:"testcase"`
}

type caseXML struct {
	Class   string      `xml:"classname,attr"`
	Name    string      `xml:"name,attr"`
	Failure *failureXML `xml:"failure"`
}

type failureXML struct {
	Message string `xml:"message,attr"`
}

// WriteJUnit writes the changes as test cases, as CI servers read them: what is more has failed.
func (b *Builds) WriteJUnit(w io.Writer) error {
	out := struct {
		XMLName xml.Name   `xml:"testsuites"`
		Suites  []suiteXML `xml:"testsuite"`
	}{}
	for i := range b.Programs {
		p := &b.Programs[i]
		suite := suiteXML{Name: units.Clean(p.App), Tests: 1, Cases: []caseXML{{Class: units.Clean(p.App), Name: "compared with " + runsOfSideText(p.BaseRuns, p.Base)}}}
		for k := range p.Shifts {
			s := &p.Shifts[k]
			c := caseXML{Class: units.Clean(p.App), Name: strings.TrimSpace(s.Figure.Name + " " + units.Clean(s.Site))}
			if s.More {
				suite.Failures++
				c.Failure = &failureXML{fmt.Sprintf("%s, %s before: %s; %s", s.formatShiftValue(s.Head, false), s.formatShiftValue(s.Base, false), s.differenceAndInterval(), units.Clean(s.Path))}
			}
			suite.Tests++
			suite.Cases = append(suite.Cases, c)
		}
		out.Suites = append(out.Suites, suite)
	}
	text, err := xml.MarshalIndent(out, "", "  ")
	if err == nil {
		_, err = fmt.Fprintf(w, "%s%s\n", xml.Header, text)
	}
	return err
}
