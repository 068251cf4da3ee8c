package main

import (
	"context"
	"errors"
	"fmt"
	"os"
	"time"

	"github.com/spf13/cobra"

	"codeberg.org/gpumemtop/gpumemtop/allocator"
	"codeberg.org/gpumemtop/gpumemtop/internal/export"
	"codeberg.org/gpumemtop/gpumemtop/internal/lab"
	"codeberg.org/gpumemtop/gpumemtop/internal/lab/tune"
	"codeberg.org/gpumemtop/gpumemtop/internal/session"
	"codeberg.org/gpumemtop/gpumemtop/internal/size"
	"codeberg.org/gpumemtop/gpumemtop/internal/trace"
)

func newTune() *cobra.Command {
	return command(onTune, &cobra.Command{
		Use:   "tune [flags] FILE... | tune [flags] -- CMD [ARGS...]",
		Short: "Find the policy and the limits that suit a program",
		Long: "Plays recordings through many policies and limits, and shows those of which none is better both in time in the\n" +
			"driver and in memory; recommends one; and says how much a policy that knew the future could still save. Several\n" +
			"recordings count together: the sum of their times, and the highest of their peaks. What was chosen by all but\n" +
			"one, or by half of a single one, is then scored on the rest: where it does badly, it over-fits.\n\n" +
			"With a program behind -- it records the program, without a pool to learn what the driver takes and as it would run,\n" +
			"searches, and runs it again with what was found, to measure what that changes. The program's input is empty and its output is not shown. Ctrl-C ends the search, with the best so\n" +
			"far. The exit status is 1 when nothing keeps to --max-memory.",
		Annotations: map[string]string{usageKey: "gpumemtop tune [flags] FILE...\ngpumemtop tune [flags] -- CMD [ARGS...]"},
		Example: "  gpumemtop tune run.gmt --write tuned.toml          what suits this run?\n" +
			"  gpumemtop tune small.gmt large.gmt --budget 2m     … and both of these?\n" +
			"  gpumemtop tune --max-memory 512MiB -- ./blur 4096  record, search, and run again",
		Args: cobra.ArbitraryArgs,
	}, func(cmd *cobra.Command, c *config, args []string) error {
		t, err := newTuner(cmd, c)
		if err != nil {
			return err
		}
		switch at := cmd.ArgsLenAtDash(); {
		case len(args) == 0:
			return errors.New("nothing to tune: gpumemtop tune FILE..., or gpumemtop tune -- CMD [ARGS...]")
		case at < 0:
			err = t.recordings(args)
		case at > 0:
			return fmt.Errorf("%q stands before --: tune either recordings or a program", args[0])
		default:
			err = t.program(args)
		}
		if err != nil {
			return err
		}
		return t.write(cmd.OutOrStdout())
	})
}

// tuner is one search, and what comes before and after it.
type tuner struct {
	config   *config
	options  tune.Options
	device   string // whose costs count; empty: those of the recordings
	learned  bool   // the costs are those of a run without a pool
	what     string // that is tuned
	tapes    []*lab.Tape
	events   int
	result   *tune.Result
	folds    []tune.Fold
	measured *measured // nil without a program that was run again
	stopped  bool      // by a signal
}

// newTuner checks the settings.
func newTuner(cmd *cobra.Command, c *config) (*tuner, error) {
	t := &tuner{config: c, options: tune.Options{Most: c.configurations}}
	if err := checkFormat(c.tuneFormat, textFormats); err != nil {
		return nil, err
	}
	if c.tuneBudget < 100*time.Millisecond || c.tuneBudget > 24*time.Hour {
		return nil, fmt.Errorf("bad value %v for --budget: want 100ms to 24h", c.tuneBudget)
	}
	if c.configurations < 1 || c.configurations > 1e6 {
		return nil, fmt.Errorf("bad value %d for --configurations: want 1 to 1000000", c.configurations)
	}
	if c.maxMemory != "" {
		var err error
		if t.options.MaxMemory, err = size.Parse(c.maxMemory); err != nil {
			return nil, fmt.Errorf("--max-memory: %w", err)
		}
		if t.options.MaxMemory == 0 {
			return nil, errors.New("--max-memory 0: want a size, or leave it out for any")
		}
	}
	var replay lab.ReplayOptions
	var err error
	if t.device, err = deviceCost(c, &replay); err != nil {
		return nil, err
	}
	t.options.Device, t.options.Fit = replay.Device, replay.Fit
	if err := t.setPresent(cmd, c); err != nil {
		return nil, err
	}
	return t, writable("write", c.write, c.force)
}

// setPresent takes what the settings say for what is in use now, if they say anything. Otherwise recordings tell.
func (t *tuner) setPresent(cmd *cobra.Command, c *config) error {
	settings, err := parseLimits(c)
	if err != nil {
		return err
	}
	if _, err := allocator.New(c.policy, settings); err != nil {
		return err
	}
	for _, flag := range []string{"policy", "set", "max-cached"} {
		if cmd.Flags().Changed(flag) {
			t.options.Present = &lab.Configuration{Policy: c.policy, Settings: settings}
		}
	}
	return nil
}

// recordings reads recordings and searches.
func (t *tuner) recordings(paths []string) error {
	if t.config.write != "" {
		if err := checkNotRead(t.config.write, paths...); err != nil {
			return err
		}
	}
	t.what = fmt.Sprintf("%d recordings", len(paths))
	if len(paths) == 1 {
		t.what = paths[0]
	}
	ends := interruptible()
	err := t.read(paths)
	ends()
	if err != nil {
		return err
	}
	return t.search()
}

// read loads recordings. What they were recorded with is what is in use now, where all agree and nobody says otherwise.
func (t *tuner) read(paths []string) error {
	told := t.options.Present != nil
	for i, path := range paths {
		reader, err := trace.Open(path)
		if err != nil {
			return err
		}
		tape, err := lab.Load(watch(reader, path))
		header := reader.Header()
		warnDamage(path, reader)
		if err := errors.Join(err, reader.Close()); err != nil {
			return fmt.Errorf("%s: %w", path, err)
		}
		t.tapes = append(t.tapes, tape)
		t.events += tape.Events()
		if told {
			continue
		}
		present := configurationOf(&header)
		switch {
		case i == 0:
			t.options.Present = present
		case present == nil || t.options.Present == nil || present.String() != t.options.Present.String():
			t.options.Present = nil
		}
	}
	return nil
}

// configurationOf returns what a recording was made with, nil where no pool of ours was there.
func configurationOf(h *trace.Header) *lab.Configuration {
	c := &lab.Configuration{Policy: h.Policy}
	d, _ := allocator.Describe(h.Policy)
	for i := range d.Limits {
		if value, ok := h.Limits[d.Limits[i].Name]; ok && value != d.Limits[i].Text {
			c.Settings = append(c.Settings, allocator.Setting{Name: d.Limits[i].Name, Value: value})
		}
	}
	if _, err := allocator.New(c.Policy, c.Settings); err != nil {
		return nil
	}
	return c
}

// search looks for configurations until there are enough, the time is over, or somebody interrupts.
func (t *tuner) search() error {
	ctx, stop := untilSignal(context.Background())
	defer stop()
	timed, cancel := context.WithTimeout(ctx, t.config.tuneBudget)
	defer cancel()
	begun := time.Now()
	t.options.Progress = func(done, all int) {
		share := max(float64(done)/float64(all), float64(time.Since(begun))/float64(t.config.tuneBudget))
		meter().SetShare("trying configurations", min(share, 1))
	}
	var err error
	t.result, err = tune.Search(timed, t.tapes, t.options)
	if err == nil {
		t.folds = t.result.Folds(ctx)
	}
	meter().Clear()
	t.stopped = ctx.Err() != nil
	return t.searched(ctx, err)
}

// searched says what came of a search that ended with an error, or without.
func (t *tuner) searched(ctx context.Context, err error) error {
	var sig errSignal
	switch {
	case errors.Is(err, tune.ErrNoCost):
		return fmt.Errorf("%w: say what it takes with --device-cost (gpumemtop probe measures it)", err)
	case errors.Is(err, tune.ErrNothing) && errors.As(context.Cause(ctx), &sig):
		say(os.Stderr, "interrupted before one configuration was tried")
		return ended{session.Status{Signal: int(sig.Signal)}}
	case errors.Is(err, tune.ErrNothing):
		return fmt.Errorf("%w: give more with --budget", err)
	case err != nil:
		return err
	case t.result.Recommended == nil:
		least := t.result.Front[len(t.result.Front)-1].PeakReserved
		return unplaced{fmt.Sprintf("nothing that was tried keeps to --max-memory %s: the least takes %s", t.config.maxMemory, exactly(least))}
	}
	if t.stopped {
		say(os.Stderr, "interrupted: this is the best so far")
	}
	return nil
}

// save writes what is recommended into a file, if that is wanted.
func (t *tuner) save() error {
	if t.config.write == "" {
		return nil
	}
	return export.WriteFile(t.config.write, t.config.force, t.writeConfiguration)
}
