package main

import (
	"errors"
	"io"
	"os"
	"slices"
	"strings"

	"github.com/spf13/cobra"

	"codeberg.org/gpumemtop/gpumemtop/internal/export"
	"codeberg.org/gpumemtop/gpumemtop/internal/trace"
)

// exporter is one format that a recording can be written in.
type exporter struct {
	name, help string
	// write writes what in gives. Nothing is kept of a file when it fails.
	write func(w io.Writer, in *input, c *config) error
}

// exporters is the table; the first is the default.
var exporters = []exporter{
	{"chrome", "Chrome trace JSON, for Perfetto", exportChrome},
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

func exportChrome(w io.Writer, in *input, _ *config) error {
	_, err := export.Chrome(w, in, export.FactsOf(in.reader.Header()), export.ChromeOptions{})
	return err
}

func newExport() *cobra.Command {
	return command(onExport, &cobra.Command{
		Use:         "export [flags] FILE",
		Short:       "Write a recording in another format",
		Annotations: map[string]string{usageKey: "gpumemtop export [--format NAME] -o OUT [-f] FILE"},
		Example:     "  gpumemtop export blur.gmt -o blur.json       open it at https://ui.perfetto.dev",
		Args:        oneFile,
	}, func(cmd *cobra.Command, c *config, args []string) error {
		at := slices.IndexFunc(exporters, func(e exporter) bool { return e.name == c.exportFormat })
		switch {
		case at < 0:
			return checkFormat(c.exportFormat, exporterNames())
		case c.output == "":
			return errors.New("no file to write: name one with -o, or - for standard output")
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

func writeExport(stdout io.Writer, e *exporter, in *input, c *config) error {
	write := func(w io.Writer) error { return e.write(w, in, c) }
	var err error
	if c.output == "-" {
		err = write(stdout)
	} else {
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
