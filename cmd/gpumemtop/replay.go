package main

import (
	"cmp"
	"errors"
	"fmt"

	"github.com/spf13/cobra"

	"codeberg.org/gpumemtop/gpumemtop/allocator"
	"codeberg.org/gpumemtop/gpumemtop/internal/export"
	"codeberg.org/gpumemtop/gpumemtop/internal/lab"
	"codeberg.org/gpumemtop/gpumemtop/internal/measure"
	"codeberg.org/gpumemtop/gpumemtop/internal/size"
	"codeberg.org/gpumemtop/gpumemtop/internal/trace"
)

func newReplay() *cobra.Command {
	return command(onReplay, &cobra.Command{
		Use:   "replay [flags] FILE",
		Short: "Play a recording through another policy",
		Long: "Feeds the requests, releases and coolings of each process of a recording to a policy and shows what that would\n" +
			"have done with them. Time does not change: buffers come, go and cool when they did. What no policy sees is left\n" +
			"out, and so are changes of the policy during the run. Limits that were changed then change here, too, but for those\n" +
			"that are set here. Whether a program that can make images of buffers could have had parts of slabs, only\n" +
			"recordings under policies with slabs tell.",
		Annotations: map[string]string{usageKey: "gpumemtop replay [--policy NAME] [--set LIMIT=VALUE] [--capacity SIZE] [--device-cost FILE] FILE"},
		Example: "  gpumemtop record --policy none -o run.gmt ./blur && gpumemtop replay --policy slab run.gmt\n" +
			"  gpumemtop probe --format json -o card.json       there, and here what it would take:\n" +
			"  gpumemtop replay --device-cost card.json run.gmt",
		Args: oneFile,
	}, func(cmd *cobra.Command, c *config, args []string) error {
		options, err := replayOptions(c)
		if err != nil {
			return err
		}
		device, err := deviceCost(c, &options)
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
			err = export.ReplayJSON(cmd.OutOrStdout(), result, device)
		default:
			err = export.ReplayText(cmd.OutOrStdout(), result, reader.Header().Policy, device)
		}
		if err == nil {
			warnDamage(args[0], reader)
		}
		return errors.Join(err, reader.Close())
	})
}

// replayOptions checks the settings.
func replayOptions(c *config) (lab.ReplayOptions, error) {
	options := lab.ReplayOptions{Policy: c.policy, HoldSettings: true}
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

// probeMax bounds a file of a probe, bytes.
const probeMax = 16 << 20

// deviceCost sets what the driver takes, and returns the name of the device whose driver it is: empty for the one of
// the recording, which counts when no file is given.
func deviceCost(c *config, options *lab.ReplayOptions) (device string, err error) {
	if c.deviceCost == "" {
		options.Fit = true
		if c.device != "" {
			return "", errors.New("--device chooses among the devices of --device-cost: name that file, too")
		}
		return "", nil
	}
	text, err := readBounded(c.deviceCost, probeMax)
	if err != nil {
		return "", fmt.Errorf("--device-cost: %w", err)
	}
	probe, err := measure.Parse(text)
	if err != nil {
		return "", fmt.Errorf("--device-cost: %s: %w", c.deviceCost, err)
	}
	d, err := probe.Device(c.device)
	if err != nil {
		return "", fmt.Errorf("--device-cost: %s: %w", c.deviceCost, err)
	}
	options.Device = d.Costs()
	return cmp.Or(d.Device, c.deviceCost), nil
}
