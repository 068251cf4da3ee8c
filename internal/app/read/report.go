// Package read reads recordings and writes what it finds: reports, facts, differences and broken rules.
package read

import (
	"errors"
	"fmt"
	"io"
	"regexp"
	"regexp/syntax"
	"slices"
	"strings"

	"codeberg.org/gpumemtop/gpumemtop/internal/analysis"
	"codeberg.org/gpumemtop/gpumemtop/internal/app/console"
	"codeberg.org/gpumemtop/gpumemtop/internal/app/files"
	"codeberg.org/gpumemtop/gpumemtop/internal/app/watch"
	"codeberg.org/gpumemtop/gpumemtop/internal/callsite"
	"codeberg.org/gpumemtop/gpumemtop/internal/recording"
	"codeberg.org/gpumemtop/gpumemtop/internal/replay"
	"codeberg.org/gpumemtop/gpumemtop/internal/report"
	"codeberg.org/gpumemtop/gpumemtop/internal/units"
)

// TextFormats are the formats of results for people and for scripts.
var TextFormats = []string{"text", "json"}

// ReportFormats are the formats of a report; the first is the default.
var ReportFormats = []string{"text", "json", "md", "html"}

// extensions are the formats that extensions of a report's file stand for.
var extensions = map[string][]string{".txt": {"text"}, ".json": {"json"}, ".md": {"md"}, ".html": {"html"}, ".htm": {"html"}}

// reporters write a report, in the order of ReportFormats.
var reporters = []func(io.Writer, *analysis.Analysis, report.Options) error{report.WriteText, report.WriteJSON, report.WriteMarkdown,
	report.WriteHTML}

// ReportOptions say what a report shows.
type ReportOptions struct {
	Format  string
	Output  files.Output
	Part    files.Part
	Tag     string      // a regular expression for names of call sites; empty: all
	Top     int         // rows in each table, 0: all
	All     bool        // all sections of a text
	Section string      // the sections that a text has, by their names with commas between; empty: as All says
	Curve   bool        // the hit rate by cache limit, too
	Cost    CostOptions // of first touches, where the recording does not tell them
}

// WriteReport writes the figures of a recording. given reports whether the user gave a flag.
func WriteReport(stdout io.Writer, path string, o *ReportOptions, given func(flag string) bool) error {
	var err error
	if o.Format, err = files.FormatOfFile(o.Output.Path, o.Format, given("format"), extensions); err != nil {
		return err
	}
	format := slices.Index(ReportFormats, o.Format)
	if format < 0 {
		return CheckFormat(o.Format, ReportFormats)
	}
	if o.Top < 0 {
		return fmt.Errorf("bad value %d for --top: want a number of rows, or 0 for all", o.Top)
	}
	if o.Format == "json" {
		o.Output.Again = report.IsSummary
	}
	sections, err := sectionsToShow(o)
	var tag *regexp.Regexp
	if err == nil {
		tag, err = ParsePattern("tag", o.Tag)
	}
	if err == nil {
		err = o.Output.RefuseInputs(path)
	}
	var costs replay.Options
	var device string
	if err == nil {
		device, err = o.Cost.SetReplayCosts(&costs)
	}
	if err != nil {
		return err
	}
	return files.ReadRecordingPart(path, o.Part, func(in *files.Input) error {
		if err := WarnIfNoSiteMatches(in, tag); err != nil {
			return err
		}
		a, err := analyseInput(in, tag)
		if err != nil {
			return err
		}
		if device != "" {
			applyProbedCosts(a, device, &costs)
		}
		if err := replayFindings(a, in.Source); err != nil {
			return err
		}
		options := report.Options{Top: o.Top, All: o.All, Sections: sections}
		if o.Curve {
			h := in.Reader.Header()
			if options.Limits, err = watch.MeasureHitRateCurve(in.Source, &h); err != nil {
				return err
			}
		}
		if a.Snapshot.Totals.Plans.Installed > 0 {
			if options.Unplanned, err = simulateWithoutPlan(in.Source); err != nil {
				return err
			}
		}
		return o.Output.Write(stdout, func(w io.Writer) error {
			options.Width = console.WidthWithin(w, 100)
			return reporters[format](w, a, options)
		})
	})
}

// sectionsToShow are the names of the sections to show; none: what is usual.
func sectionsToShow(o *ReportOptions) ([]string, error) {
	if o.Section == "" {
		return nil, nil
	}
	if o.Format == "json" || o.Format == "html" {
		return nil, fmt.Errorf("--section is for a text or Markdown: %s has all sections", o.Format)
	}
	names := strings.Split(o.Section, ",")
	for _, name := range names {
		if known := report.SectionNames(); !slices.Contains(known, name) {
			return nil, fmt.Errorf("bad value %q for --section: want some of %s, with commas between", name, strings.Join(known, ", "))
		}
	}
	return names, nil
}

// applyProbedCosts says what hits saved by what a probe measured, as far as the run does not show it. The probe must be of the run's device.
func applyProbedCosts(a *analysis.Analysis, device string, costs *replay.Options) {
	s, c := a.Snapshot, &costs.Device
	if of := s.Device.Name; of != "" && of != device {
		console.SayLine("--device-cost is of %s, and the recording of %s: what was saved does not follow from it", units.Clean(device), units.Clean(of))
		return
	}
	t := &s.Totals
	if t.SavedTouches.Hits == 0 {
		t.SavedTouches = s.SavedTouchesByProbe(device, c.Touch.CallNS)
	}
	if t.Saved.NS == 0 || !t.Saved.Releases {
		t.Saved = s.SavedCallsByProbe(device, func(size uint64) float64 { return c.Create.CallNS(size) + c.Release.CallNS(size) })
	}
}

// simulateWithoutPlan returns what policies without a plan would have reserved.
func simulateWithoutPlan(src recording.Source) (list []report.Unplanned, err error) {
	if err := src.Rewind(); err != nil {
		return nil, err
	}
	loaded, err := replay.Load(src)
	if err != nil {
		return nil, err
	}
	for _, policy := range []string{"futhark", "slab"} {
		result, err := loaded.Replay(replay.Options{Policy: policy})
		if err != nil {
			return nil, err
		}
		list = append(list, report.Unplanned{Policy: policy, Reserved: result.PeakReserved})
	}
	return list, nil
}

func analyseInput(in *files.Input, tag *regexp.Regexp) (*analysis.Analysis, error) {
	footer, whole := in.Reader.Footer()
	return analysis.Analyse(in.Source, analysis.Options{
		Header: in.Reader.Header(), Footer: footer, Whole: whole, Since: in.Part.Since, Until: in.Part.Until, Process: in.Part.Process, Tag: tag,
	})
}

// analyseFile analyses a whole recording.
func analyseFile(path string) (a *analysis.Analysis, err error) {
	err = files.ReadRecordingPart(path, files.Part{}, func(in *files.Input) error {
		a, err = analyseInput(in, nil)
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

// WarnIfNoSiteMatches says that no call site matches --tag. Call it before the input is read.
func WarnIfNoSiteMatches(in *files.Input, tag *regexp.Regexp) error {
	if tag == nil {
		return nil
	}
	names, err := callsite.ReadNames(in.Reader)
	if err == nil && names.HasNoMatchingSite(tag) {
		console.SayLine("--tag %s matches no call site: gpumemtop report lists them", tag)
	}
	return err
}

// SetWrapperPattern applies --wrapper, which all commands that name call sites share; see callsite.SetWrapperPattern.
func SetWrapperPattern(text string) error {
	pattern, err := ParsePattern("wrapper", text)
	if err == nil {
		callsite.SetWrapperPattern(pattern)
	}
	return err
}

// ParsePattern reads the regular expression of a flag, nil when it is empty.
func ParsePattern(flag, text string) (*regexp.Regexp, error) {
	if text == "" {
		return nil, nil
	}
	tag, err := regexp.Compile(text)
	var wrong *syntax.Error
	if errors.As(err, &wrong) {
		return nil, fmt.Errorf("bad value %q for --%s: want a regular expression: %s", text, flag, wrong.Code)
	}
	return tag, err
}

// SectionNames are the names that ReportOptions.Section takes.
func SectionNames() []string { return report.SectionNames() }
