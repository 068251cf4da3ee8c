package main

import (
	"errors"
	"io"
	"os"

	"github.com/spf13/cobra"

	"codeberg.org/gpumemtop/gpumemtop/internal/export"
	"codeberg.org/gpumemtop/gpumemtop/internal/trace"
)

var exportFormats = []string{"chrome"}

func newExport() *cobra.Command {
	return command(onExport, &cobra.Command{
		Use:         "export [flags] FILE",
		Short:       "Write a recording in another format",
		Annotations: map[string]string{usageKey: "gpumemtop export [--format NAME] -o OUT [-f] FILE"},
		Example:     "  gpumemtop export blur.gmt -o blur.json       open it at https://ui.perfetto.dev",
		Args:        oneFile,
	}, func(cmd *cobra.Command, c *config, args []string) error {
		if err := checkFormat(c.exportFormat, exportFormats); err != nil {
			return err
		}
		if c.output == "" {
			return errors.New("no file to write: name one with -o, or - for standard output")
		}
		reader, err := trace.Open(args[0])
		if err != nil {
			return err
		}
		write := func(w io.Writer) error {
			_, err := export.Chrome(w, reader, export.FactsOf(reader.Header()), export.ChromeOptions{})
			return err
		}
		if c.output == "-" {
			err = write(cmd.OutOrStdout())
		} else {
			err = export.WriteFile(c.output, c.force, write)
		}
		if err == nil {
			warnDamage(args[0], reader)
		}
		return errors.Join(err, reader.Close())
	})
}

// warnDamage says what of a recording could not be read. What could be is worth having: it is no failure.
func warnDamage(path string, reader *trace.Reader) {
	if damage := reader.Damage(); damage != "" {
		say(os.Stderr, path+" is not whole: "+damage)
	}
}
