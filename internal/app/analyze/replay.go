package analyze

import (
	"cmp"
	"errors"
	"fmt"
	"io"

	"codeberg.org/gpumemtop/gpumemtop/internal/app/files"
	"codeberg.org/gpumemtop/gpumemtop/internal/app/watch"
	"codeberg.org/gpumemtop/gpumemtop/internal/devicebench"
	"codeberg.org/gpumemtop/gpumemtop/internal/planfile"
	"codeberg.org/gpumemtop/gpumemtop/internal/replay"
	"codeberg.org/gpumemtop/gpumemtop/internal/report"
	"codeberg.org/gpumemtop/gpumemtop/internal/units"
)

// ReplayOptions say what a recording is replayed through.
type ReplayOptions struct {
	watch.PolicyChoice
	Cost     CostOptions
	Capacity string // a size; empty: any
	Format   string
}

// Replay replays a recording through a policy and writes the figures.
func Replay(w io.Writer, path string, o *ReplayOptions) error {
	options := replay.Options{Policy: o.Policy, HoldSettings: true}
	if err := CheckFormat(o.Format, TextFormats); err != nil {
		return err
	}
	var err error
	if o.Capacity != "" {
		if options.Capacity, err = units.Parse(o.Capacity); err != nil {
			return fmt.Errorf("--capacity: %w", err)
		}
	}
	plan, err := o.ReadPlan()
	if err != nil {
		return err
	}
	options.Policy = o.Policy
	if _, options.Settings, err = o.New(); err != nil {
		return err
	}
	device, err := o.Cost.Read(&options)
	if err != nil {
		return err
	}
	return files.Read(path, func(t *files.Tracked) error {
		if plan != nil {
			sites := planfile.NewFinder(plan)
			if err := sites.Read(t); err != nil {
				return err
			}
			options.Given = sites.Plan
		}
		result, err := replay.Replay(t, options)
		switch {
		case err != nil:
			return err
		case o.Format == "json":
			return report.ReplayJSON(w, result, device)
		}
		return report.ReplayText(w, result, t.Header().Policy, device)
	})
}

// CostOptions say what the driver takes.
type CostOptions struct {
	File   string // as gpumemtop probe --format json writes it; empty: what it took in the recording
	Device string // of several devices in the file
}

// probeMax bounds a file of a probe, bytes.
const probeMax = 16 << 20

// Read sets the costs, and returns the name of the device that they are from: empty if they are from the recording.
func (o *CostOptions) Read(options *replay.Options) (device string, err error) {
	if o.File == "" {
		options.Fit = true
		if o.Device != "" {
			return "", errors.New("--device chooses among the devices of --device-cost: name that file, too")
		}
		return "", nil
	}
	text, err := files.ReadBounded(o.File, probeMax)
	if err != nil {
		return "", fmt.Errorf("--device-cost: %w", err)
	}
	probe, err := devicebench.Parse(text)
	if err != nil {
		return "", fmt.Errorf("--device-cost: %s: %w", o.File, err)
	}
	d, err := probe.Device(o.Device)
	if err != nil {
		return "", fmt.Errorf("--device-cost: %s: %w", o.File, err)
	}
	options.Device = d.Costs()
	return cmp.Or(d.Device, o.File), nil
}
