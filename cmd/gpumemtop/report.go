package main

import (
	"errors"
	"fmt"
	"io"
	"regexp"
	"regexp/syntax"
	"slices"
	"strings"

	"github.com/spf13/cobra"

	"codeberg.org/gpumemtop/gpumemtop/allocator"
	"codeberg.org/gpumemtop/gpumemtop/internal/analysis"
	"codeberg.org/gpumemtop/gpumemtop/internal/export"
	"codeberg.org/gpumemtop/gpumemtop/internal/report"
	"codeberg.org/gpumemtop/gpumemtop/internal/trace"
)

// textFormats are the formats of what people read, or scripts.
var textFormats = []string{"text", "json"}

// reporter is one format that a report can be written in.
type reporter struct {
	name  string
	write func(io.Writer, *analysis.Analysis, report.Options) error
}

// reporters is the table; the first is the default.
var reporters = []reporter{
	{"text", report.Text},
	{"json", report.JSON},
	{"md", report.Markdown},
	{"html", report.HTML},
}

func reporterNames() []string {
	names := make([]string, len(reporters))
	for i := range reporters {
		names[i] = reporters[i].name
	}
	return names
}

func newReport() *cobra.Command {
	return command(onReport, &cobra.Command{
		Use:         "report [flags] FILE",
		Short:       "Show the figures of a recording",
		Annotations: map[string]string{usageKey: "gpumemtop report [--format " + strings.Join(reporterNames(), "|") + "] [-o OUT] FILE"},
		Example: "  gpumemtop report blur.gmt\n  gpumemtop report --format json blur.gmt | jq .hit_rate\n" +
			"  gpumemtop report --format md -o blur.md blur.gmt\n  gpumemtop report --format html -o blur.html blur.gmt\n  gpumemtop report --since 2s --tag blur.c blur.gmt",
		Args: oneFile,
	}, func(cmd *cobra.Command, c *config, args []string) error {
		at := slices.IndexFunc(reporters, func(r reporter) bool { return r.name == c.reportFormat })
		if at < 0 {
			return checkFormat(c.reportFormat, reporterNames())
		}
		if c.top < 0 {
			return fmt.Errorf("bad value %d for --top: want a number of rows, or 0 for all", c.top)
		}
		tag, err := c.tagPattern()
		if err == nil {
			err = checkNotRead(c.output, args[0])
		}
		if err != nil {
			return err
		}
		in, err := openInput(args[0], c)
		if err != nil {
			return err
		}
		err = writeAnalysis(cmd.OutOrStdout(), in, &reporters[at], c, tag)
		return errors.Join(err, in.close())
	})
}

// writeAnalysis works out what a report says, and writes it.
func writeAnalysis(stdout io.Writer, in *input, r *reporter, c *config, tag *regexp.Regexp) error {
	a, err := analyse(in, c, tag)
	if err != nil {
		return err
	}
	o := report.Options{Top: c.top}
	if c.curve {
		h := in.reader.Header()
		if o.Limits, err = measureLimits(in.Source, &h); err != nil {
			return err
		}
	}
	warnDamage(in.path, in.reader)
	return writeReport(stdout, r, a, o, c)
}

// settingsOf returns the limits of a recording, but for those that its policy has no more.
func settingsOf(h *trace.Header) (settings []allocator.Setting) {
	d, _ := allocator.Describe(h.Policy)
	for _, l := range d.Limits {
		if value, there := h.Limits[l.Name]; there {
			settings = append(settings, allocator.Setting{Name: l.Name, Value: value})
		}
	}
	return settings
}

// tagPattern reads --tag, nil without one.
func (c *config) tagPattern() (*regexp.Regexp, error) {
	if c.tag == "" {
		return nil, nil
	}
	tag, err := regexp.Compile(c.tag)
	var wrong *syntax.Error
	if errors.As(err, &wrong) {
		return nil, fmt.Errorf("bad value %q for --tag: want a regular expression: %s", c.tag, wrong.Code)
	}
	return tag, err
}

func analyse(in *input, c *config, tag *regexp.Regexp) (*analysis.Analysis, error) {
	footer, whole := in.reader.Footer()
	return analysis.New(in.Source, analysis.Options{
		Header: in.reader.Header(), Footer: footer, Whole: whole, Since: c.since, Until: c.until, Process: c.process, Tag: tag,
	})
}

// analyseFile analyses a whole recording.
func analyseFile(path string, c *config) (*analysis.Analysis, error) {
	in, err := openInput(path, c)
	if err != nil {
		return nil, err
	}
	a, err := analyse(in, c, nil)
	if err == nil {
		warnDamage(path, in.reader)
	}
	return a, errors.Join(err, in.close())
}

func writeReport(stdout io.Writer, r *reporter, a *analysis.Analysis, o report.Options, c *config) error {
	write := func(w io.Writer) error { return r.write(w, a, o) }
	if c.output == "" || c.output == "-" {
		return write(stdout)
	}
	return export.WriteFile(c.output, c.force, write)
}
