package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"os/signal"
	"syscall"
	"time"

	"github.com/spf13/cobra"

	"codeberg.org/gpumemtop/gpumemtop/internal/export"
	"codeberg.org/gpumemtop/gpumemtop/internal/measure"
	"codeberg.org/gpumemtop/gpumemtop/internal/probe"
	"codeberg.org/gpumemtop/gpumemtop/internal/session"
	"codeberg.org/gpumemtop/gpumemtop/internal/size"
)

func newProbe() *cobra.Command {
	return command(onProbe, &cobra.Command{
		Use:   "probe [flags]",
		Short: "Measure what buffers cost on this machine's devices",
		Long: "Measures on each OpenCL device, by size, what it costs to create a buffer, to write it for the first time, to write it\n" +
			"again and to release it, and what sub-buffers cost; fits lines; and says whether memory comes with the create or later,\n" +
			"and whether the driver keeps released memory. Other work on the machine shows in the figures. Drivers run in processes\n" +
			"of their own: one that crashes or hangs is named, and the other devices are measured. An interrupt ends it early, with\n" +
			"what is known by then.",
		Annotations: map[string]string{usageKey: "gpumemtop probe [--device DEVICE] [--max SIZE] [--budget TIME] [--format text|json] [-o FILE]"},
		Example:     "  gpumemtop probe                          all devices, in about 10 seconds\n  gpumemtop probe --max 64M --format json -o probe.json   for replay --device-cost probe.json",
		Args:        noArguments,
	}, func(cmd *cobra.Command, c *config, _ []string) error {
		options, err := probeOptions(c)
		if err != nil {
			return err
		}
		ctx, stop := untilSignal(cmd.Context())
		defer stop()
		result, err := measure.Run(ctx, options)
		meter().Clear()
		if err != nil {
			return err
		}
		return errors.Join(writeProbe(cmd.OutOrStdout(), c, result), probeEnd(ctx, result))
	})
}

// probeOptions checks the settings.
func probeOptions(c *config) (*measure.Options, error) {
	o := &measure.Options{
		Device: c.device, Platform: c.platform, Budget: c.budget, Environment: probe.Inherited(os.Environ()),
		Progress: func(what string, share float64) { meter().SetShare(what, share) },
	}
	if err := checkFormat(c.probeFormat, textFormats); err != nil {
		return nil, err
	}
	if c.budget < 100*time.Millisecond || c.budget > time.Hour {
		return nil, fmt.Errorf("bad value %v for --budget: want 100ms to 1h", c.budget)
	}
	if c.max != "" {
		var err error
		if o.Most, err = size.Parse(c.max); err != nil {
			return nil, fmt.Errorf("--max: %w", err)
		}
		if o.Most < measure.SizeMin {
			return nil, fmt.Errorf("bad value %q for --max: want %s or more", c.max, size.Format(measure.SizeMin))
		}
	}
	return o, writable("output", c.output, c.force)
}

// errSignal is why the work ends when a signal comes.
type errSignal struct{ syscall.Signal }

// Error implements error.
func (e errSignal) Error() string { return e.String() }

// untilSignal returns a context that ends with the first signal that would end us, whose errSignal is the cause.
func untilSignal(parent context.Context) (context.Context, func()) {
	if parent == nil {
		parent = context.Background()
	}
	ctx, cancel := context.WithCancelCause(parent)
	signals := session.Catch()
	go func() {
		select {
		case sig := <-signals:
			number, _ := sig.(syscall.Signal)
			cancel(errSignal{number})
		case <-ctx.Done():
		}
	}()
	return ctx, func() {
		signal.Stop(signals)
		cancel(nil)
	}
}

// writeProbe writes what is known. Nothing is, when a signal came before any device was.
func writeProbe(stdout io.Writer, c *config, result *measure.Result) error {
	if len(result.Devices) == 0 {
		return nil
	}
	write := result.WriteText
	if c.probeFormat == "json" {
		write = result.WriteJSON
	}
	if c.output != "" {
		return export.WriteFile(c.output, c.force, write)
	}
	return write(stdout)
}

// probeEnd is an error when it was interrupted, or nothing could be measured at all.
func probeEnd(ctx context.Context, result *measure.Result) error {
	var sig errSignal
	switch {
	case errors.As(context.Cause(ctx), &sig):
		say(os.Stderr, "interrupted: the figures are from what was measured by then")
		return ended{session.Status{Signal: int(sig.Signal)}}
	case !result.Measured():
		d := &result.Devices[0]
		return fmt.Errorf("no device could be measured; %s: %s", d.Device, d.Error)
	}
	for i := range result.Devices {
		if d := &result.Devices[i]; d.Error != "" {
			say(os.Stderr, fmt.Sprintf("%s (%s) failed: %s", d.Device, d.Platform, d.Error))
		}
	}
	return nil
}
