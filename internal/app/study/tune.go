package study

import (
	"context"
	"errors"
	"fmt"
	"sync/atomic"
	"time"

	"codeberg.org/gpumemtop/gpumemtop/internal/app/console"
	"codeberg.org/gpumemtop/gpumemtop/internal/app/files"
	"codeberg.org/gpumemtop/gpumemtop/internal/app/read"
	"codeberg.org/gpumemtop/gpumemtop/internal/app/watch"
	"codeberg.org/gpumemtop/gpumemtop/internal/recording"
	"codeberg.org/gpumemtop/gpumemtop/internal/replay"
	"codeberg.org/gpumemtop/gpumemtop/internal/setting"
	"codeberg.org/gpumemtop/gpumemtop/internal/tune"
	"codeberg.org/gpumemtop/gpumemtop/internal/units"
)

// TuneOptions say how to search.
type TuneOptions struct {
	Setup          watch.SetupOptions // of the program, or what is in use now
	PresentGiven   bool               // the user gave a policy or limits, which count as in use now
	Cost           read.CostOptions
	Budget         time.Duration
	Configurations int    // at most
	MaxMemory      string // a size; empty: any
	Output         files.Output
}

// DefaultConfigurations is how many configurations are usually tried.
const DefaultConfigurations = tune.Usual

// tuneSearch is one search, and what comes before and after it.
type tuneSearch struct {
	options    *TuneOptions
	tuning     tune.Options
	device     string // whose costs count; empty: those of the recordings
	learned    bool   // the costs are those of a run without a pool
	bareNS     uint64 // that the driver took without a pool, as measured; 0: there was a pool, or other costs count
	what       string // that is tuned
	recordings []*replay.Loaded
	events     int
	result     *tune.Result
	folds      []tune.Fold
	measured   *Measured // nil without a program that was run again
	compared   *Comparison
	stopped    bool // by a signal
}

// TuneRecordings tunes on recordings. The error carries console.StatusUnmet if nothing keeps to MaxMemory.
func TuneRecordings(o *TuneOptions, paths []string) (*TuneResult, error) {
	s, err := newTuneSearch(o)
	if err != nil {
		return nil, err
	}
	if err := o.Output.RefuseInputs(paths...); err != nil {
		return nil, err
	}
	s.what = fmt.Sprintf("%d recordings", len(paths))
	if len(paths) == 1 {
		s.what = paths[0]
	}
	restore := console.CatchInterrupts()
	err = s.loadRecordings(paths)
	restore()
	if err == nil {
		err = s.runSearch()
	}
	if err != nil {
		return nil, err
	}
	return s.finishResult()
}

// newTuneSearch checks the options.
func newTuneSearch(o *TuneOptions) (*tuneSearch, error) {
	s := &tuneSearch{options: o, tuning: tune.Options{Most: o.Configurations}}
	if o.Budget < 100*time.Millisecond || o.Budget > 24*time.Hour {
		return nil, fmt.Errorf("bad value %v for --budget: want 100ms to 24h", o.Budget)
	}
	if o.Configurations < 1 || o.Configurations > 1e6 {
		return nil, fmt.Errorf("bad value %d for --configurations: want 1 to 1000000", o.Configurations)
	}
	var err error
	if o.MaxMemory != "" {
		if s.tuning.MaxMemory, err = units.ParseSize(o.MaxMemory); err != nil {
			return nil, fmt.Errorf("--max-memory: %w", err)
		}
		if s.tuning.MaxMemory == 0 {
			return nil, errors.New("--max-memory 0: want a size, or leave it out for any")
		}
	}
	var cost replay.Options
	if s.device, err = o.Cost.SetReplayCosts(&cost); err != nil {
		return nil, err
	}
	s.tuning.Device, s.tuning.Fit = cost.Device, cost.Fit
	_, settings, err := o.Setup.NewPool()
	if err != nil {
		return nil, err
	}
	if o.PresentGiven {
		s.tuning.Present = &replay.Configuration{Policy: o.Setup.Policy, Settings: settings}
	}
	return s, o.Output.CheckWritable("write")
}

// loadRecordings loads recordings. Unless the user says what is in use now, it is what they were recorded with, if all agree.
func (s *tuneSearch) loadRecordings(paths []string) error {
	given := s.tuning.Present != nil
	bare := bareTime{known: s.tuning.Fit}
	for i, path := range paths {
		err := files.ReadRecording(path, func(t *files.Tracked) error {
			tape, err := replay.Load(t)
			if err != nil {
				return fmt.Errorf("%s: %w", path, err)
			}
			s.recordings = append(s.recordings, tape)
			s.events += tape.EventCount()
			header := t.Header()
			if err := bare.addRecordingTime(t, &header); err != nil {
				return fmt.Errorf("%s: %w", path, err)
			}
			present := setting.ConfigurationOfRecording(&header)
			switch {
			case given:
			case i == 0:
				s.tuning.Present = present
			case present == nil || s.tuning.Present == nil || present.String() != s.tuning.Present.String():
				s.tuning.Present = nil
			}
			return nil
		})
		if err != nil {
			return err
		}
	}
	if bare.known {
		s.bareNS = bare.ns
	}
	return nil
}

// bareTime is what the driver took without a pool.
type bareTime struct {
	known bool // no recording lacks it
	ns    uint64
}

// addRecordingTime adds a recording. It lacks the time if there was a pool, or if probes took the time, which miss releases.
func (b *bareTime) addRecordingTime(src recording.Source, h *recording.Header) error {
	if b.known = b.known && h.Policy == "none" && !h.Attached; !b.known {
		return nil
	}
	ns, err := replay.MeasuredDriverNS(src)
	b.ns += ns
	return err
}

// runSearch searches until there are enough configurations, the time is up, or a signal comes.
func (s *tuneSearch) runSearch() error {
	ctx, stop := console.ContextUntilSignal(context.Background())
	defer stop()
	timed, cancel := context.WithTimeout(ctx, s.options.Budget)
	defer cancel()
	searching, enough := context.WithTimeout(timed, s.options.Budget*4/5) // the rest is for cross-validation
	defer enough()
	var tried atomic.Bool
	defer console.EndOnSignalUnlessWorthKeeping(ctx, tried.Load)()
	begun := time.Now()
	s.tuning.Progress = func(done, all int) {
		tried.Store(true)
		share := max(float64(done)/float64(all), float64(time.Since(begun))/float64(s.options.Budget))
		console.Meter().ShowShare("trying configurations", min(share, 1))
	}
	var err error
	s.result, err = tune.Search(searching, s.recordings, s.tuning)
	if err == nil {
		s.folds = s.result.CrossValidate(timed)
	}
	console.Meter().Clear()
	s.stopped = ctx.Err() != nil
	return s.explainEndOfSearch(ctx, err)
}

// explainEndOfSearch turns the end of a search into an error with a hint, nil if there is a recommendation.
func (s *tuneSearch) explainEndOfSearch(ctx context.Context, err error) error {
	var sig console.Signaled
	switch {
	case errors.Is(err, tune.ErrNoCost):
		return fmt.Errorf("%w: give the driver's costs with --device-cost (gpumemtop probe measures them)", err)
	case errors.Is(err, tune.ErrNothing) && errors.As(context.Cause(ctx), &sig):
		console.SayLine("interrupted before one configuration was tried")
		return console.NewExitWithStatus(sig.Status())
	case errors.Is(err, tune.ErrNothing):
		return fmt.Errorf("%w: give more with --budget", err)
	case err != nil:
		return err
	case s.result.Recommended == nil:
		least := s.result.Front[len(s.result.Front)-1].PeakReserved
		return console.NewExit(console.StatusUnmet,
			fmt.Errorf("no tried configuration keeps to --max-memory %s: the smallest takes %s", s.options.MaxMemory, console.ExactSizeText(least)))
	}
	if s.stopped {
		console.SayLine("interrupted: this is the best so far")
	}
	return nil
}
