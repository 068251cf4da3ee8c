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

	"codeberg.org/gpumemtop/gpumemtop/internal/analysis"
	"codeberg.org/gpumemtop/gpumemtop/internal/export"
	"codeberg.org/gpumemtop/gpumemtop/internal/report"
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
		a, err := analyse(in, c, tag)
		if err == nil {
			warnDamage(args[0], in.reader)
			err = writeReport(cmd.OutOrStdout(), &reporters[at], a, c)
		}
		return errors.Join(err, in.close())
	})
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

func writeReport(stdout io.Writer, r *reporter, a *analysis.Analysis, c *config) error {
	write := func(w io.Writer) error { return r.write(w, a, report.Options{Top: c.top}) }
	if c.output == "" || c.output == "-" {
		return write(stdout)
	}
	return export.WriteFile(c.output, c.force, write)
}
