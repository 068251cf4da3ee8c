package study

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"sync/atomic"
	"syscall"
	"time"

	"codeberg.org/gpumemtop/gpumemtop/internal/app/console"
	"codeberg.org/gpumemtop/gpumemtop/internal/app/files"
	"codeberg.org/gpumemtop/gpumemtop/internal/arena"
	"codeberg.org/gpumemtop/gpumemtop/internal/export/minimalloc"
	"codeberg.org/gpumemtop/gpumemtop/internal/recording"
	"codeberg.org/gpumemtop/gpumemtop/internal/units"
)

// PlaceOptions say which placement is wanted.
type PlaceOptions struct {
	Capacity  string // a size: the first placement that fits will do; empty: the smallest arena
	Alignment string // a size, for buffers without one; empty: any offset
	Timeout   time.Duration
	Output    files.Output // the placement as CSV; empty: only the figures
}

// placement is one search for a placement.
type placement struct {
	table       *arena.Table
	capacity    uint64 // bytes, 0: the smallest arena
	timeout     time.Duration
	solution    *arena.Solution
	interrupted bool
}

// PlaceBuffers computes a placement for the lifetimes in a recording or a CSV file, and writes it and its figures. The error
// carries console.StatusUnmet if none fits.
func PlaceBuffers(stdout, stderr io.Writer, path string, o *PlaceOptions) error {
	p, err := newPlacement(path, o)
	if err != nil {
		return err
	}
	if err := p.solvePlacement(); err != nil {
		return fmt.Errorf("%s: %w", path, err)
	}
	if p.capacity > 0 && p.solution.Height > p.capacity {
		return console.NewExit(console.StatusUnmet, p.noFitError())
	}
	defer console.CatchInterrupts()()
	figures := stdout
	if o.Output.Path == "-" {
		figures = stderr
	}
	if o.Output.Path != "" {
		err := o.Output.Write(stdout, func(w io.Writer) error { return p.table.WriteWithOffsets(w, p.solution.Offsets) })
		if err != nil {
			return err
		}
	}
	p.writePlacementFigures(figures)
	return nil
}

// newPlacement checks the options and reads the lifetimes.
func newPlacement(path string, o *PlaceOptions) (*placement, error) {
	p := &placement{timeout: o.Timeout}
	if o.Timeout < 0 {
		return nil, fmt.Errorf("bad value %v for --timeout: want a time, or 0s for no limit", o.Timeout)
	}
	var err error
	if p.capacity, err = parseSizeFlag("capacity", o.Capacity, "the smallest arena"); err != nil {
		return nil, err
	}
	align, err := parseSizeFlag("alignment", o.Alignment, "any offset")
	if err != nil {
		return nil, err
	}
	if err := o.Output.RefuseInputs(path); err != nil {
		return nil, err
	}
	defer console.CatchInterrupts()()
	if p.table, err = readLifetimes(path); err != nil {
		return nil, err
	}
	p.table.SetAlignment(align)
	return p, nil
}

// parseSizeFlag reads a size; without one it is 0. otherwise says what no size means.
func parseSizeFlag(flag, text, otherwise string) (uint64, error) {
	if text == "" {
		return 0, nil
	}
	n, err := units.ParseSize(text)
	switch {
	case err != nil:
		return 0, fmt.Errorf("--%s: %w", flag, err)
	case n == 0:
		return 0, fmt.Errorf("--%s 0: want a size, or leave it out for %s", flag, otherwise)
	}
	return n, nil
}

// readLifetimes reads a recording or a CSV file.
func readLifetimes(path string) (*arena.Table, error) {
	reader, err := recording.Open(path)
	switch {
	case errors.Is(err, recording.ErrNotRecording):
		return readLifetimesCSV(path)
	case err != nil:
		return nil, err
	}
	var text bytes.Buffer
	err = minimalloc.Write(&text, files.TrackReading(reader, path), minimalloc.Options{})
	files.WarnDamage(path, reader)
	if err := errors.Join(err, reader.Close()); err != nil {
		return nil, err
	}
	return arena.ReadTable(&text)
}

func readLifetimesCSV(path string) (*arena.Table, error) {
	file, err := files.OpenForeignLog(path)
	if err != nil {
		return nil, fmt.Errorf("plan: %w", err)
	}
	table, err := arena.ReadTable(file)
	if err != nil {
		err = fmt.Errorf("%s: %w", path, err)
	}
	return table, errors.Join(err, file.Close())
}

// solvePlacement searches until the time is up or a signal comes.
func (p *placement) solvePlacement() error {
	ctx, stop := console.ContextUntilSignal(context.Background(), syscall.SIGINT, syscall.SIGTERM, syscall.SIGHUP)
	defer stop()
	timed, cancel := ctx, func() {}
	if p.timeout > 0 {
		timed, cancel = context.WithTimeout(ctx, p.timeout)
	}
	defer cancel()
	var last atomic.Pointer[arena.Progress]
	defer console.EndOnSignalUnlessWorthKeeping(ctx, func() bool { return last.Load() != nil })()
	done := make(chan struct{})
	go p.showProgress(&last, done)
	var err error
	p.solution, err = arena.PlaceBuffers(timed, p.table.Buffers, arena.Options{
		Capacity: p.capacity, Progress: func(now arena.Progress) { last.Store(&now) },
	})
	done <- struct{}{} // the progress line is no longer drawn
	console.Meter().Clear()
	p.interrupted = ctx.Err() != nil
	return err
}

// showProgress draws the progress line until it receives from done.
func (p *placement) showProgress(last *atomic.Pointer[arena.Progress], done <-chan struct{}) {
	start, ticker := time.Now(), time.NewTicker(125*time.Millisecond)
	defer ticker.Stop()
	for {
		label := "the first placement"
		if now := last.Load(); now != nil {
			label = fmt.Sprintf("%s, at least %s", units.FormatLong(now.Height), units.FormatLong(now.Bound))
		}
		console.Meter().ShowTimeSpent(label, time.Since(start), p.timeout)
		select {
		case <-ticker.C:
		case <-done:
			return
		}
	}
}

// noFitError says that nothing fits, and how certain that is.
func (p *placement) noFitError() error {
	s, within := p.solution, console.ExactSizeText(p.capacity)
	if s.Bound > p.capacity {
		return fmt.Errorf("no placement fits %s: at least %s is needed", within, console.ExactSizeText(s.Bound))
	}
	how := fmt.Sprintf("within %v", p.timeout)
	if p.interrupted {
		how = "until the interruption"
	} else if p.timeout == 0 {
		how = "by the search"
	}
	return fmt.Errorf("no placement that fits %s was found %s, which does not prove that there is none; the smallest needs %s", within, how, console.ExactSizeText(s.Height))
}

// writePlacementFigures writes the figures.
func (p *placement) writePlacementFigures(w io.Writer) {
	s := p.solution
	fmt.Fprintf(w, "buffers      %d\nheight       %s\nlower bound  %s\n", len(p.table.Buffers), console.ExactSizeText(s.Height), console.ExactSizeText(s.Bound))
	switch {
	case s.Optimal:
		fmt.Fprint(w, "ratio        1: optimal\n")
	case s.Bound > 0:
		over := float64(s.Height) / float64(s.Bound)
		fmt.Fprintf(w, "ratio        %.4f: at most %.2f %% above the optimum\n", over, 100*(over-1))
	}
	fmt.Fprintf(w, "found by     %s\n", s.Method)
	if p.interrupted {
		fmt.Fprintln(w, "interrupted: this is the best so far")
	}
}
