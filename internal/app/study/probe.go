package study

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"time"

	"codeberg.org/gpumemtop/gpumemtop/internal/app/console"
	"codeberg.org/gpumemtop/gpumemtop/internal/app/files"
	"codeberg.org/gpumemtop/gpumemtop/internal/app/read"
	"codeberg.org/gpumemtop/gpumemtop/internal/devicebench"
	"codeberg.org/gpumemtop/gpumemtop/internal/doctor/probe"
	"codeberg.org/gpumemtop/gpumemtop/internal/portable"
	"codeberg.org/gpumemtop/gpumemtop/internal/units"
)

// ProbeOptions say what is measured.
type ProbeOptions struct {
	Device   string // a number or a part of a name; empty: all
	Platform string // a part of a name; empty: all
	Max      string // a size: the largest buffer; empty: a quarter of what the device allows
	Budget   time.Duration
	Format   string
	Output   files.Output
	Profile  string // a file for the device's limits; empty: none
}

// RunDriverChild does the work of a process that Probe starts for a driver, and ends. In any other process it does nothing.
func RunDriverChild() {
	if request := os.Getenv(devicebench.ChildEnv); request != "" {
		os.Exit(devicebench.RunChild(request))
	}
}

// ProbeDevices measures what buffers cost on the devices of this machine. The error carries a status if a signal ended it.
func ProbeDevices(stdout io.Writer, o *ProbeOptions) error {
	options, err := o.check()
	if err != nil {
		return err
	}
	ctx, stop := console.ContextUntilSignal(context.Background())
	defer stop()
	result, err := devicebench.MeasureDevices(ctx, options)
	console.Meter().Clear()
	if err != nil {
		return err
	}
	if err := errors.Join(o.writeFigures(stdout, result), noMeasurementError(ctx, result)); err != nil || o.Profile == "" {
		return err
	}
	return o.writeProfile(result)
}

// profileOutput is the file for the device's limits.
func (o *ProbeOptions) profileOutput() files.Output {
	return files.Output{Path: o.Profile, Force: o.Output.Force}
}

// writeProfile writes the limits of the one device that was measured.
func (o *ProbeOptions) writeProfile(result *devicebench.Result) error {
	if len(result.Devices) > 1 {
		return errors.New("--write is for one device: choose it with --device or --platform")
	}
	f := &result.Devices[0].Facts
	limits := portable.Profile{
		Name: f.Device, Source: "gpumemtop probe: " + f.Platform + ", driver " + f.Driver, Memory: f.GlobalMemory, Largest: f.MaxAlloc,
		Align: 8 * uint64(f.BaseAlign), Images: &f.Images, Width: f.ImageWidth, Height: f.ImageHeight, Constant: f.MaxConstant,
	}
	return o.profileOutput().Write(nil, limits.Write)
}

func (o *ProbeOptions) check() (*devicebench.Options, error) {
	options := &devicebench.Options{
		Device: o.Device, Platform: o.Platform, Budget: o.Budget, Environment: probe.EnvironmentWithoutPreloads(os.Environ()),
		Progress: func(what string, share float64) { console.Meter().ShowShare(what, share) },
	}
	if err := read.CheckFormat(o.Format, read.TextFormats); err != nil {
		return nil, err
	}
	if o.Budget < 100*time.Millisecond || o.Budget > time.Hour {
		return nil, fmt.Errorf("bad value %v for --budget: want 100ms to 1h", o.Budget)
	}
	if o.Max != "" {
		var err error
		if options.Most, err = units.ParseSize(o.Max); err != nil {
			return nil, fmt.Errorf("--max: %w", err)
		}
		if options.Most < devicebench.SizeMin {
			return nil, fmt.Errorf("bad value %q for --max: want %s or more", o.Max, units.Format(devicebench.SizeMin))
		}
	}
	if o.Profile != "" {
		if o.Profile == "-" || o.Output.Path != "" && files.LeadToSameFile(o.Profile, o.Output.Path) {
			return nil, errors.New("--write wants a file of its own, such as card.toml")
		}
		if err := o.profileOutput().CheckWritable("write"); err != nil {
			return nil, err
		}
	}
	return options, o.Output.CheckWritable("output")
}

// writeFigures writes the figures, if a device was measured at all before a signal came.
func (o *ProbeOptions) writeFigures(stdout io.Writer, result *devicebench.Result) error {
	switch {
	case len(result.Devices) == 0:
		return nil
	case o.Format == "json":
		return o.Output.Write(stdout, result.WriteJSON)
	}
	return o.Output.Write(stdout, func(w io.Writer) error { return result.WriteText(console.Paged{Writer: w}, console.WidthWithin(w, 0)) })
}

// noMeasurementError returns an error if a signal ended the measurement or no device could be measured. It warns about devices that
// failed.
func noMeasurementError(ctx context.Context, result *devicebench.Result) error {
	var sig console.Signaled
	switch {
	case errors.As(context.Cause(ctx), &sig):
		console.SayLine("interrupted: these are the figures measured so far")
		return console.NewExitWithStatus(sig.Status())
	case !result.HasMeasured():
		d := &result.Devices[0]
		return fmt.Errorf("no device could be measured; %s: %s", d.Device, d.Error)
	}
	for i := range result.Devices {
		if d := &result.Devices[i]; d.Error != "" {
			console.SayLine("%s (%s) failed: %s", d.Device, d.Platform, d.Error)
		}
	}
	return nil
}
