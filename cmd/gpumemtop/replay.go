package main

import (
	"errors"
	"fmt"

	"github.com/spf13/cobra"

	"codeberg.org/gpumemtop/gpumemtop/allocator"
	"codeberg.org/gpumemtop/gpumemtop/internal/export"
	"codeberg.org/gpumemtop/gpumemtop/internal/lab"
	"codeberg.org/gpumemtop/gpumemtop/internal/size"
	"codeberg.org/gpumemtop/gpumemtop/internal/trace"
)

func newReplay() *cobra.Command {
	return command(onReplay, &cobra.Command{
		Use:   "replay [flags] FILE",
		Short: "Play a recording through another policy",
		Long: "Feeds the requests, releases and coolings of each process of a recording to a policy and shows what that would\n" +
			"have done with them. Time does not change: buffers come, go and cool when they did. What no policy sees is left\n" +
			"out, and so are changes of limits and of the policy during the run. A recording tells neither the device's\n" +
			"largest __constant buffer, where a run stops rounding up, nor whether it could have made parts of slabs: not in\n" +
			"programs that can make images of buffers, nor in contexts of several devices.",
		Annotations: map[string]string{usageKey: "gpumemtop replay [--policy NAME] [--set LIMIT=VALUE] [--capacity SIZE] FILE"},
		Example:     "  gpumemtop record --policy none -o run.gmt ./blur && gpumemtop replay --policy slab run.gmt",
		Args:        oneFile,
	}, func(cmd *cobra.Command, c *config, args []string) error {
		options, err := replayOptions(c)
		if err != nil {
			return err
		}
		reader, err := trace.Open(args[0])
		if err != nil {
			return err
		}
		result, err := lab.Replay(watch(reader, args[0]), options)
		switch {
		case err != nil:
		case c.replayFormat == "json":
			err = export.ReplayJSON(cmd.OutOrStdout(), result)
		default:
			err = export.ReplayText(cmd.OutOrStdout(), result, reader.Header().Policy)
		}
		if err == nil {
			warnDamage(args[0], reader)
		}
		return errors.Join(err, reader.Close())
	})
}

// replayOptions checks the settings.
func replayOptions(c *config) (lab.ReplayOptions, error) {
	options := lab.ReplayOptions{Policy: c.policy}
	if err := checkFormat(c.replayFormat, textFormats); err != nil {
		return options, err
	}
	if c.capacity != "" {
		capacity, err := size.Parse(c.capacity)
		if err != nil {
			return options, fmt.Errorf("--capacity: %w", err)
		}
		options.Capacity = capacity
	}
	var err error
	if options.Settings, err = parseLimits(c); err != nil {
		return options, err
	}
	_, err = allocator.New(c.policy, options.Settings) // before anything is read
	return options, err
}
