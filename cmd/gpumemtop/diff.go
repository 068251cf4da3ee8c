package main

import (
	"fmt"

	"github.com/spf13/cobra"

	"codeberg.org/gpumemtop/gpumemtop/internal/compare"
)

func newDiff() *cobra.Command {
	return command(onDiff, &cobra.Command{
		Use:   "diff [flags] A B",
		Short: "Show what changed between two recordings",
		Long: "Compares two runs, overall and by call site, and marks the changes that are more than chance. A call site whose\n" +
			"line moved is found again by its function.",
		Annotations: map[string]string{usageKey: "gpumemtop diff [--format text|json] [--top N] A B"},
		Example:     "  gpumemtop diff before.gmt after.gmt",
		Args: func(cmd *cobra.Command, args []string) error {
			if len(args) != 2 {
				return fmt.Errorf("%s takes two recordings, not %d: see %s --help", cmd.CommandPath(), len(args), cmd.CommandPath())
			}
			return nil
		},
	}, func(cmd *cobra.Command, c *config, args []string) error {
		if err := checkFormat(c.diffFormat, textFormats); err != nil {
			return err
		}
		if c.top < 0 {
			return fmt.Errorf("bad value %d for --top: want a number of rows, 0 for all", c.top)
		}
		a, err := analyseFile(args[0], c)
		if err != nil {
			return err
		}
		b, err := analyseFile(args[1], c)
		if err != nil {
			return err
		}
		d := compare.Runs(a, b)
		if c.diffFormat == "json" {
			return d.WriteJSON(cmd.OutOrStdout(), args[0], args[1])
		}
		return d.WriteText(cmd.OutOrStdout(), args[0], args[1], c.top)
	})
}
