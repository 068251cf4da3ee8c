package main

import (
	"errors"
	"fmt"
	"io"
	"os"
	"slices"
	"strings"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"codeberg.org/gpumemtop/gpumemtop/internal/export"
	"codeberg.org/gpumemtop/gpumemtop/internal/ndjson"
	"codeberg.org/gpumemtop/gpumemtop/internal/splice"
	"codeberg.org/gpumemtop/gpumemtop/internal/trace"
)

// exporter is one format that a recording can be written in: as a file with write, or into a folder with fill.
type exporter struct {
	name, help string
	// write writes what in gives. Nothing is kept of a file when it fails.
	write func(w io.Writer, in *input, c *config) error
	// check finds what is wrong with the settings before anything is read; nil when the format has none of its own.
	check func(*config) error
	// fill writes what in gives into the folder c.output, or nothing when it fails. Nil for exports that are files.
	fill func(in *input, c *config) error
}

// exporters is the table; the first is the default.
var exporters = []exporter{
	{name: "chrome", help: "Chrome trace JSON, for Perfetto", write: exportChrome, check: checkChrome},
	{name: "parquet", help: "a folder of Apache Parquet tables, for DuckDB, Spark and pandas; many recordings may share it", fill: exportParquet},
	{name: "csv", help: "comma-separated values, for spreadsheets and pandas: the table that --table names", write: exportCSV},
	{name: "pprof", help: "a profile, for go tool pprof", write: exportPprof, check: checkPprof},
	{name: "memviz", help: "a snapshot, for PyTorch's memory_viz", write: exportMemviz, check: checkMemviz},
	{name: "rmm", help: "a log of RMM, for its replay", write: exportRMM},
	{name: "minimalloc", help: "lifetimes, for MiniMalloc", write: exportMinimalloc},
	{name: "ndjson", help: "a line of JSON for each record, to be imported again", write: exportNDJSON},
}

func exporterNames() []string {
	names := make([]string, len(exporters))
	for i := range exporters {
		names[i] = exporters[i].name
	}
	return names
}

func exporterHelp() string {
	texts := make([]string, len(exporters))
	for i := range exporters {
		texts[i] = exporters[i].name + " (" + exporters[i].help + ")"
	}
	return strings.Join(texts, ", ")
}

func exportNDJSON(w io.Writer, in *input, c *config) error {
	lines := ndjson.NewWriter(w)
	if err := lines.Header(splice.TrimHeader(in.reader.Header(), in.part)); err != nil {
		return err
	}
	footer, err := splice.Trim(lines, in.reader, in, in.part, c.partText())
	if err != nil {
		return err
	}
	return lines.Footer(footer)
}

func newExport() *cobra.Command {
	return command(onExport, &cobra.Command{
		Use:         "export [flags] FILE",
		Short:       "Write a recording in another format",
		Annotations: map[string]string{usageKey: "gpumemtop export [--format NAME] -o OUT [-f] FILE"},
		Example: "  gpumemtop export blur.gmt -o blur.json       open it at https://ui.perfetto.dev\n" +
			"  gpumemtop export blur.gmt --format parquet -o runs/\n" +
			"  gpumemtop export blur.gmt --format pprof -o blur.pb.gz && go tool pprof -http=: blur.pb.gz",
		Args: oneFile,
	}, func(cmd *cobra.Command, c *config, args []string) error {
		at := slices.IndexFunc(exporters, func(e exporter) bool { return e.name == c.exportFormat })
		switch {
		case at < 0:
			return checkFormat(c.exportFormat, exporterNames())
		case c.output == "" && exporters[at].fill != nil:
			return fmt.Errorf("no folder to write into: name one with -o for --format %s", c.exportFormat)
		case c.output == "":
			return errors.New("no file to write: name one with -o, or - for standard output")
		case c.output == "-" && exporters[at].fill != nil:
			return fmt.Errorf("--format %s writes a folder, which standard output cannot take: name one with -o", c.exportFormat)
		}
		if err := checkOutput(c.output, args[0]); err != nil {
			return err
		}
		if err := checkExport(cmd.Flags(), &exporters[at], c); err != nil {
			return err
		}
		if toTerminal(c.output) {
			meter().Hide()
		}
		in, err := openInput(args[0], c)
		if err != nil {
			return err
		}
		return errors.Join(writeExport(cmd.OutOrStdout(), &exporters[at], in, c), in.close())
	})
}

// checkExport finds what is wrong with the settings.
func checkExport(flags *pflag.FlagSet, e *exporter, c *config) error {
	if err := checkFormatFlags(flags, e.name); err != nil {
		return err
	}
	if _, err := c.tagPattern(); err != nil || e.check == nil {
		return err
	}
	return e.check(c)
}

func writeExport(stdout io.Writer, e *exporter, in *input, c *config) error {
	write := func(w io.Writer) error { return e.write(w, in, c) }
	var err error
	switch {
	case e.fill != nil:
		err = e.fill(in, c)
	case c.output == "-":
		err = write(stdout)
	default:
		err = export.WriteFile(c.output, c.force, write)
	}
	if err == nil {
		warnDamage(in.path, in.reader)
	}
	return err
}

// warnDamage says what of a recording could not be read. What could be is worth having: it is no failure.
func warnDamage(path string, reader *trace.Reader) {
	if damage := reader.Damage(); damage != "" {
		say(os.Stderr, path+" is not whole: "+damage)
	}
}
