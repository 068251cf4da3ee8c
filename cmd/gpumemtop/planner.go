package main

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"os/signal"
	"sync/atomic"
	"syscall"
	"time"

	"github.com/spf13/cobra"

	"codeberg.org/gpumemtop/gpumemtop/internal/export"
	"codeberg.org/gpumemtop/gpumemtop/internal/export/minimalloc"
	planner "codeberg.org/gpumemtop/gpumemtop/internal/lab/plan"
	"codeberg.org/gpumemtop/gpumemtop/internal/size"
	"codeberg.org/gpumemtop/gpumemtop/internal/trace"
)

// unplaced says that no placement within the capacity was found: exit status 1.
type unplaced struct{ text string }

// Error implements error.
func (u unplaced) Error() string { return u.text }

func newPlanner() *cobra.Command {
	return command(onPlan, &cobra.Command{
		Use:   "plan [flags] FILE",
		Short: "Place buffers whose lifetimes are known into one arena",
		Long: "Reads lifetimes, a recording's or a CSV of MiniMalloc, and finds an offset for each buffer so that no two that\n" +
			"live at a time overlap. Without --capacity the arena shall be as small as can be: that takes until a lower\n" +
			"bound is met, which no arena can be below, or until time is up or Ctrl-C. With it the first placement that fits\n" +
			"will do, and the exit status is 1 when none was found, which only proves that there is none where it is said.",
		Annotations: map[string]string{usageKey: "gpumemtop plan [--capacity SIZE] [--alignment SIZE] [--timeout TIME] [-o OUT.csv] [-f] FILE"},
		Example: "  gpumemtop plan run.gmt -o offsets.csv\n" +
			"  gpumemtop plan problem.csv --capacity 1MiB --timeout 5s -o -",
		Args: oneFile,
	}, placeBuffers)
}

// placing is one run of the planner.
type placing struct {
	table       *planner.Table
	capacity    uint64
	timeout     time.Duration
	solution    *planner.Solution
	interrupted bool
}

func placeBuffers(cmd *cobra.Command, c *config, args []string) error {
	p, err := newPlacing(c, args[0])
	if err != nil {
		return err
	}
	if err := p.solve(); err != nil {
		return fmt.Errorf("%s: %w", args[0], err)
	}
	if p.capacity > 0 && p.solution.Height > p.capacity {
		return unplaced{p.without()}
	}
	defer interruptible()()
	write := func(w io.Writer) error { return p.table.Write(w, p.solution.Offsets) }
	figures := cmd.OutOrStdout()
	switch c.output {
	case "":
	case "-":
		figures, err = cmd.ErrOrStderr(), write(cmd.OutOrStdout())
	default:
		err = export.WriteFile(c.output, c.force, write)
	}
	if err == nil {
		p.print(figures)
	}
	return err
}

// newPlacing checks the settings and reads the lifetimes.
func newPlacing(c *config, path string) (*placing, error) {
	p := &placing{timeout: c.planTimeout}
	var err error
	if c.planTimeout < 0 {
		return nil, fmt.Errorf("bad value %v for --timeout: want a time, or 0s for no limit", c.planTimeout)
	}
	if c.capacity != "" {
		if p.capacity, err = size.Parse(c.capacity); err != nil {
			return nil, fmt.Errorf("--capacity: %w", err)
		}
		if p.capacity == 0 {
			return nil, errors.New("--capacity 0: want a size, or leave it out for the smallest arena")
		}
	}
	align, err := alignment(c.alignment)
	if err != nil {
		return nil, err
	}
	if c.output != "" {
		if err := checkNotRead(c.output, path); err != nil {
			return nil, err
		}
	}
	defer interruptible()()
	if p.table, err = readLifetimes(path); err != nil {
		return nil, err
	}
	p.table.Align(align)
	return p, nil
}

// alignment reads --alignment; 0: none is wanted.
func alignment(text string) (uint64, error) {
	if text == "" {
		return 0, nil
	}
	n, err := size.Parse(text)
	switch {
	case err != nil:
		return 0, fmt.Errorf("--alignment: %w", err)
	case n == 0:
		return 0, errors.New("--alignment 0: want a size, or leave it out for any offset")
	}
	return n, nil
}

// readLifetimes reads a recording, or else a CSV.
func readLifetimes(path string) (*planner.Table, error) {
	reader, err := trace.Open(path)
	switch {
	case errors.Is(err, trace.ErrNotRecording):
		return readProblem(path)
	case err != nil:
		return nil, err
	}
	var text bytes.Buffer
	err = minimalloc.Write(&text, watch(reader, path), minimalloc.Options{})
	warnDamage(path, reader)
	if err := errors.Join(err, reader.Close()); err != nil {
		return nil, err
	}
	return planner.Read(&text)
}

func readProblem(path string) (*planner.Table, error) {
	file, err := os.Open(path)
	if err != nil {
		return nil, fmt.Errorf("plan: %w", err)
	}
	table, err := planner.Read(file)
	if err != nil {
		err = fmt.Errorf("%s: %w", path, err)
	}
	return table, errors.Join(err, file.Close())
}

// solve searches until the time is up or somebody interrupts.
func (p *placing) solve() error {
	ctx, stop := signal.NotifyContext(context.Background(), syscall.SIGINT, syscall.SIGTERM, syscall.SIGHUP)
	defer stop()
	timed, cancel := ctx, func() {}
	if p.timeout > 0 {
		timed, cancel = context.WithTimeout(ctx, p.timeout)
	}
	defer cancel()
	var last atomic.Pointer[planner.Progress]
	last.Store(&planner.Progress{})
	done := make(chan struct{})
	go p.tell(&last, done)
	var err error
	p.solution, err = planner.Solve(timed, p.table.Buffers, planner.Options{
		Capacity: p.capacity, Progress: func(now planner.Progress) { last.Store(&now) },
	})
	done <- struct{}{} // nothing is drawn any more
	meter().Clear()
	p.interrupted = ctx.Err() != nil
	return err
}

// tell draws the line of progress until somebody sends to done.
func (p *placing) tell(last *atomic.Pointer[planner.Progress], done <-chan struct{}) {
	start, ticker := time.Now(), time.NewTicker(125*time.Millisecond)
	defer ticker.Stop()
	for {
		now := last.Load()
		label := fmt.Sprintf("%s, at least %s", size.FormatLong(now.Height), size.FormatLong(now.Bound))
		meter().Spend(label, time.Since(start), p.timeout)
		select {
		case <-ticker.C:
		case <-done:
			return
		}
	}
}

// without says that nothing fits, and what is known of that.
func (p *placing) without() string {
	s, within := p.solution, exactly(p.capacity)
	if s.Bound > p.capacity {
		return fmt.Sprintf("no placement fits %s: at least %s is needed", within, exactly(s.Bound))
	}
	how := fmt.Sprintf("within %v", p.timeout)
	if p.interrupted {
		how = "until the interruption"
	} else if p.timeout == 0 {
		how = "by the search"
	}
	return fmt.Sprintf("no placement that fits %s was found %s, which does not prove that there is none; the lowest needs %s", within, how, exactly(s.Height))
}

// print writes the figures.
func (p *placing) print(w io.Writer) {
	s := p.solution
	fmt.Fprintf(w, "buffers      %d\nheight       %s\nlower bound  %s\n", len(p.table.Buffers), exactly(s.Height), exactly(s.Bound))
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

// exactly writes a size for people and in bytes.
func exactly(n uint64) string {
	if text := size.FormatLong(n); n >= 1024 {
		return fmt.Sprintf("%s (%d bytes)", text, n)
	}
	return size.FormatLong(n)
}
