package main

import (
	"errors"

	"github.com/spf13/cobra"
)

func newRecord() *cobra.Command {
	return command(onRecord, &cobra.Command{
		Use:         "record [flags] [--] CMD [ARGS...]",
		Short:       "Run a program and record it, without a dashboard",
		Annotations: map[string]string{usageKey: "gpumemtop record [flags] [--] CMD [ARGS...]"},
		Example: "  gpumemtop record ./blur 4096                 writes ./gpumemtop.blur.NUMBER.gmt\n" +
			"  gpumemtop record -o %n-%p.gmt -- ./train     a file for each of its processes\n" +
			"  gpumemtop record -o %h-%t.gmt -- ./blur      names it after host and time",
		Args: cobra.ArbitraryArgs,
	}, func(_ *cobra.Command, c *config, args []string) error {
		if len(args) == 0 {
			return errors.New("no program to record: gpumemtop record -o FILE CMD [ARGS...]")
		}
		if c.output == "" {
			c.output = defaultRecording
		}
		return run(c, args, false)
	})
}
