// Package study finds out what suits a program: it replays recordings, searches, runs programs again and again, and examines
// this machine.
package study

import (
	"fmt"
	"io"

	"codeberg.org/gpumemtop/gpumemtop/internal/app/console"
	"codeberg.org/gpumemtop/gpumemtop/internal/app/files"
	"codeberg.org/gpumemtop/gpumemtop/internal/app/read"
	"codeberg.org/gpumemtop/gpumemtop/internal/app/watch"
	"codeberg.org/gpumemtop/gpumemtop/internal/planfile"
	"codeberg.org/gpumemtop/gpumemtop/internal/replay"
	"codeberg.org/gpumemtop/gpumemtop/internal/report"
	"codeberg.org/gpumemtop/gpumemtop/internal/units"
)

// ReplayOptions say what a recording is replayed through.
type ReplayOptions struct {
	watch.PolicyChoice
	Cost     read.CostOptions
	Capacity string // a size; empty: any
	Format   string
}

// Replay replays a recording through a policy and writes the figures.
func Replay(w io.Writer, path string, o *ReplayOptions) error {
	options := replay.Options{Policy: o.Policy, HoldSettings: true}
	if err := read.CheckFormat(o.Format, read.TextFormats); err != nil {
		return err
	}
	var err error
	if o.Capacity != "" {
		if options.Capacity, err = units.ParseSize(o.Capacity); err != nil {
			return fmt.Errorf("--capacity: %w", err)
		}
	}
	plan, err := o.ReadPlan()
	if err != nil {
		return err
	}
	options.Policy = o.Policy
	if _, options.Settings, err = o.NewPool(); err != nil {
		return err
	}
	device, err := o.Cost.SetReplayCosts(&options)
	if err != nil {
		return err
	}
	return files.ReadRecording(path, func(t *files.Tracked) error {
		if plan != nil {
			sites := planfile.NewFinder(plan)
			if err := sites.ReadSites(t); err != nil {
				return err
			}
			options.GivenLayout = sites.LayoutForProcess
		}
		result, err := replay.Replay(t, options)
		if err == nil && device == "" {
			result.Recorded.DriverNS, err = measuredDriverNS(t)
		}
		switch {
		case err != nil:
			return err
		case o.Format == "json":
			return report.WriteReplayJSON(w, result, device)
		}
		return report.WriteReplayText(console.Paged{Writer: w}, result, t.Header().Policy, device)
	})
}

// measuredDriverNS returns what the driver took in the recording; 0: that is not known without the time of probes.
func measuredDriverNS(t *files.Tracked) (ns uint64, err error) {
	if t.Header().Attached {
		return 0, nil
	}
	return replay.MeasuredDriverNS(t)
}
