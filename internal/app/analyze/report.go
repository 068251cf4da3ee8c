// Package analyze reads recordings and writes what it finds: reports, differences, rule checks, facts, replays and advice.
package analyze

import (
	"errors"
	"fmt"
	"io"
	"regexp"
	"regexp/syntax"
	"slices"
	"strings"

	"codeberg.org/gpumemtop/gpumemtop/internal/analysis"
	"codeberg.org/gpumemtop/gpumemtop/internal/app/files"
	"codeberg.org/gpumemtop/gpumemtop/internal/report"
)

// TextFormats are the formats of results for people and for scripts.
var TextFormats = []string{"text", "json"}

// ReportFormats are the formats of a report; the first is the default.
var ReportFormats = []string{"text", "json", "md", "html"}

// reporters write a report, in the order of ReportFormats.
var reporters = []func(io.Writer, *analysis.Analysis, report.Options) error{report.Text, report.JSON, report.Markdown, report.HTML}

// ReportOptions say what a report shows.
type ReportOptions struct {
	Format string
	Output files.Output
	Part   files.Part
	Tag    string // a regular expression for names of call sites; empty: all
	Top    int    // rows in each table, 0: all
	Curve  bool   // the hit rate by cache limit, too
}

// Report writes the figures of a recording.
func Report(stdout io.Writer, path string, o *ReportOptions) error {
	format := slices.Index(ReportFormats, o.Format)
	if format < 0 {
		return CheckFormat(o.Format, ReportFormats)
	}
	if o.Top < 0 {
		return fmt.Errorf("bad value %d for --top: want a number of rows, or 0 for all", o.Top)
	}
	tag, err := TagPattern(o.Tag)
	if err == nil {
		err = o.Output.CheckNot(path)
	}
	if err != nil {
		return err
	}
	return files.ReadPart(path, o.Part, func(in *files.Input) error {
		a, err := analyse(in, tag)
		if err != nil {
			return err
		}
		options := report.Options{Top: o.Top}
		if o.Curve {
			h := in.Reader.Header()
			if options.Limits, err = MeasureCurve(in.Source, &h); err != nil {
				return err
			}
		}
		return o.Output.Write(stdout, func(w io.Writer) error { return reporters[format](w, a, options) })
	})
}

func analyse(in *files.Input, tag *regexp.Regexp) (*analysis.Analysis, error) {
	footer, whole := in.Reader.Footer()
	return analysis.New(in.Source, analysis.Options{
		Header: in.Reader.Header(), Footer: footer, Whole: whole, Since: in.Part.Since, Until: in.Part.Until, Process: in.Part.Process, Tag: tag,
	})
}

// analyseFile analyses a whole recording.
func analyseFile(path string) (a *analysis.Analysis, err error) {
	err = files.ReadPart(path, files.Part{}, func(in *files.Input) error {
		a, err = analyse(in, nil)
		return err
	})
	return a, err
}

// CheckFormat checks the value of --format.
func CheckFormat(value string, formats []string) error {
	if !slices.Contains(formats, value) {
		return fmt.Errorf("unknown format %q: want one of %s", value, strings.Join(formats, ", "))
	}
	return nil
}

// TagPattern reads --tag, nil when it is empty.
func TagPattern(text string) (*regexp.Regexp, error) {
	if text == "" {
		return nil, nil
	}
	tag, err := regexp.Compile(text)
	var wrong *syntax.Error
	if errors.As(err, &wrong) {
		return nil, fmt.Errorf("bad value %q for --tag: want a regular expression: %s", text, wrong.Code)
	}
	return tag, err
}
