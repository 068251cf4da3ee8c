// Package doctor looks at a machine and says what gpumemtop can do on it, line by line, with what to do where it
// cannot. What it looks at comes through a [System], so that any machine can be imagined.
//
// One run of true answers whether the preload library gets into programs, and what drivers then say. The probe runs at
// exit, because drivers start threads that load libraries, which would deadlock with a constructor.
package doctor

import (
	"fmt"
	"io"
	"strings"

	"codeberg.org/gpumemtop/gpumemtop/internal/units"
)

// Level says how a line is meant.
type Level string

// The levels. Only a problem keeps programs from being run.
const (
	OK      Level = "ok"
	Fact    Level = "fact" // neither good nor bad
	Warning Level = "warning"
	Problem Level = "problem"
)

// Line is one thing that was looked at.
type Line struct {
	Area   string `json:"area"`
	Level  Level  `json:"level"`
	Text   string `json:"text"`
	Advice string `json:"advice,omitempty"` // what to do
}

// Report is all that was found.
type Report struct {
	Lines []Line `json:"lines"`
	// Usable says that programs can be run.
	Usable bool `json:"usable"`
}

// The areas, in the order of the report.
const (
	areaTool      = "gpumemtop"
	areaSettings  = "settings"
	areaFolder    = "runtime folder"
	areaPreload   = "preloading"
	areaOpenCL    = "OpenCL"
	areaKernel    = "kernel"
	areaAttaching = "attaching"
	areaTerminal  = "terminal"
)

// ExamineSystem looks at everything.
func ExamineSystem(s *System, o Options) Report {
	r := &Report{}
	r.reportGpumemtop(o)
	r.reportSettings(s, o)
	r.checkFolders(s)
	if r.checkPreloading(s) {
		r.checkVendorFiles(s)
		r.checkOpenCL(s)
	}
	r.addLine(areaKernel, Fact, "", "Linux %s", s.Release())
	r.checkAttaching(s)
	r.checkTerminal(s)
	r.Usable = true
	for i := range r.Lines {
		r.Usable = r.Usable && r.Lines[i].Level != Problem
	}
	return *r
}

// addLine adds a line; what to do may be empty.
func (r *Report) addLine(area string, level Level, advice, format string, args ...any) {
	r.Lines = append(r.Lines, Line{area, level, fmt.Sprintf(format, args...), advice})
}

// signs stand in front of lines.
var signs = map[Level]string{OK: "ok", Fact: "  ", Warning: "!!", Problem: "XX"}

// WriteText writes the report for people.
func (r *Report) WriteText(w io.Writer) error {
	var b strings.Builder
	area := ""
	for i := range r.Lines {
		l := &r.Lines[i]
		if l.Area != area {
			if area != "" {
				b.WriteByte('\n')
			}
			area = l.Area
			b.WriteString(area + "\n")
		}
		fmt.Fprintf(&b, "  %s  %s\n", signs[l.Level], l.Text)
		if l.Advice != "" {
			fmt.Fprintf(&b, "      -> %s\n", l.Advice)
		}
	}
	b.WriteString("\n" + r.verdictText() + "\n")
	_, err := io.WriteString(w, b.String())
	return err
}

// verdictText sums the report up.
func (r *Report) verdictText() string {
	counts := map[Level]int{}
	for i := range r.Lines {
		counts[r.Lines[i].Level]++
	}
	switch {
	case !r.Usable:
		return fmt.Sprintf("Programs cannot be run under gpumemtop: see %s.", units.Plural(uint64(counts[Problem]), "line with XX", "lines with XX"))
	case counts[Warning] > 0:
		return fmt.Sprintf("Programs can be run under gpumemtop; %s.", units.Plural(uint64(counts[Warning]), "warning", "warnings"))
	}
	return "Programs can be run under gpumemtop."
}

// WriteJSON writes the report for programs.
func (r *Report) WriteJSON(w io.Writer) error {
	return units.WriteJSON(w, r)
}
