package watch

import (
	"errors"
	"fmt"
	"io"
	"sync"
	"sync/atomic"
	"time"

	"codeberg.org/gpumemtop/gpumemtop/internal/app/console"
	"codeberg.org/gpumemtop/gpumemtop/internal/app/files"
	"codeberg.org/gpumemtop/gpumemtop/internal/recording"
	"codeberg.org/gpumemtop/gpumemtop/internal/replay"
	"codeberg.org/gpumemtop/gpumemtop/internal/setting"
	"codeberg.org/gpumemtop/gpumemtop/internal/stats"
	"codeberg.org/gpumemtop/gpumemtop/internal/timeline"
	"codeberg.org/gpumemtop/gpumemtop/internal/view"
	"codeberg.org/gpumemtop/gpumemtop/internal/whatif/trial"
	"codeberg.org/gpumemtop/gpumemtop/ui"
)

// ViewOptions say how a recording is shown.
type ViewOptions struct {
	At        string // the time after the start to open at, such as "2.5s"; empty: the end
	Dashboard DashboardOptions
	Film      files.Output // a moving picture to write, from At or else the start on, in place of the dashboard; no path: none
}

// viewed is a source: a recording.
type viewed struct {
	onlyShown
	path   string
	at     string
	after  time.Duration
	viewer *timeline.Viewer

	reading sync.Once
	read    atomic.Pointer[trial.Tape]
}

// ShowRecording shows a recording until the user leaves the dashboard, or writes a film of it, to stdout if its path is "-".
// The error carries a status if a signal ended it.
func ShowRecording(stdout io.Writer, o *ViewOptions, path string) error {
	if o.Film.Path != "" {
		return o.writeFilm(stdout, path)
	}
	v := &viewed{path: path, at: o.At}
	v.noScreen = fmt.Sprintf("view needs a terminal, in the foreground, without TERM=dumb and CI: gpumemtop report %s shows the figures without one", path)
	return FollowSource(&Options{Dashboard: o.Dashboard}, v)
}

// Check implements Source.
func (v *viewed) Check(w *Watch) (err error) {
	v.Watch = w
	if v.after, err = parseTimeAfterStart(v.at); err == nil {
		v.viewer, err = openRecording(v.path)
	}
	return err
}

// ShowDashboard implements Source.
func (v *viewed) ShowDashboard() {
	at := uint64(view.LastMoment)
	if v.after != atEnd {
		at = v.viewer.MomentAt(0).From + uint64(v.after)
	}
	curve := newBackgroundCurve(v.path)
	defer curve.endMeasuring()
	v.showDashboardUntilSignal(ui.Options{
		Curve: curve.curveOrProgress, Replay: (&trial.Replayer{Tape: v.findingsTape}).Replay, WhatIf: (&trial.Replayer{Tape: v.findingsTape}).Replay, Moment: v.viewer.MomentAt, At: at, ReadOnly: true, Attached: v.viewer.Header().Attached,
	})
}

// findingsTape returns what findings are replayed on. It is read once a finding names something; nil: it is not read yet, or
// cannot be.
func (v *viewed) findingsTape() *trial.Tape {
	v.reading.Do(func() { go v.readFindingsTape() })
	return v.read.Load()
}

func (v *viewed) readFindingsTape() {
	reader, err := recording.Open(v.path)
	if err != nil {
		return
	}
	defer reader.Close() //nolint:errcheck // it is only read
	if tape, err := trial.ReadTape(reader, reader.Header().DeviceMemory); err == nil {
		v.read.Store(tape)
	}
}

// Wait implements Source.
func (v *viewed) Wait() End {
	if damage := v.viewer.Damage(); damage != "" {
		console.SayLine("%s is not whole: %s", v.path, damage)
	}
	return v.onlyShown.Wait()
}

// Close implements Source.
func (v *viewed) Close() {
	if v.viewer != nil {
		v.viewer.Close()
	}
}

// atEnd stands for the end of the recording.
const atEnd = -1

func parseTimeAfterStart(text string) (time.Duration, error) {
	if text == "" {
		return atEnd, nil
	}
	after, err := time.ParseDuration(text)
	if err != nil || after < 0 {
		return 0, fmt.Errorf("bad value %q for --at: want a time after the start, for example 2.5s or 1m30s", text)
	}
	return after, nil
}

func openRecording(path string) (*timeline.Viewer, error) {
	reader, err := recording.Open(path)
	if err != nil {
		return nil, err
	}
	blocks, err := readSummaries(reader)
	if err != nil {
		return nil, errors.Join(fmt.Errorf("read the summaries of %s: %w", path, err), reader.Close())
	}
	return timeline.NewViewer(reader, path, timeline.Options{Model: modelOptionsOfRecording, Slabs: newSlabMapper, Blocks: blocks}), nil
}

// readSummaries returns the blocks with their summaries, nil before format 3, which had none.
func readSummaries(reader *recording.Reader) ([]recording.Block, error) {
	list, err := reader.Blocks()
	if err != nil {
		return nil, err
	}
	for i := range list {
		if !list[i].HasSummary {
			return nil, nil
		}
	}
	return list, nil
}

// newSlabMapper follows the policy of a recording, for a map of its slabs; nil where its limits are none of this version.
func newSlabMapper(header recording.Header) *replay.SlabMapper {
	c := setting.ConfigurationOfRecording(&header)
	if c == nil {
		return nil
	}
	return replay.NewSlabMapper(*c, header.DeviceMemory)
}

// modelOptionsOfRecording returns what a model of a recording knows before the first event.
func modelOptionsOfRecording(header recording.Header) stats.Options {
	return stats.Options{
		Program: header.Program, Arguments: header.Arguments, Policy: header.Policy, App: header.App,
		Limits: stats.PolicyLimits(header.Policy, header.Limits), LimitsOf: stats.DefaultLimits, Auto: header.Auto,
		Started: header.ClockNS, DeviceMemory: header.DeviceMemory, Apart: header.HaveSeparateDevices, NodeOf: header.HostIfSeveral,
	}
}
