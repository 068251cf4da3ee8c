package read

import (
	"cmp"
	"errors"
	"fmt"

	"codeberg.org/gpumemtop/gpumemtop/internal/app/files"
	"codeberg.org/gpumemtop/gpumemtop/internal/devicebench"
	"codeberg.org/gpumemtop/gpumemtop/internal/replay"
)

// CostOptions say what the driver takes.
type CostOptions struct {
	File   string // as gpumemtop probe --format json writes it; empty: what it took in the recording
	Device string // of several devices in the file
}

// probeMax bounds a file of a probe, bytes.
const probeMax = 16 << 20

// SetReplayCosts sets the costs, and returns the name of the device that they are from: empty if they are from the recording.
func (o *CostOptions) SetReplayCosts(options *replay.Options) (device string, err error) {
	if o.File == "" {
		options.Fit = true
		if o.Device != "" {
			return "", errors.New("--device chooses among the devices of --device-cost: name that file, too")
		}
		return "", nil
	}
	text, err := files.ReadBoundedFile(o.File, probeMax)
	if err != nil {
		return "", fmt.Errorf("--device-cost: %w", err)
	}
	probe, err := devicebench.ParseResult(text)
	if err != nil {
		return "", fmt.Errorf("--device-cost: %s: %w", o.File, err)
	}
	d, err := probe.Device(o.Device)
	if err != nil {
		return "", fmt.Errorf("--device-cost: %s: %w", o.File, err)
	}
	options.Device = d.SteadyCosts()
	return cmp.Or(d.Device, o.File), nil
}
