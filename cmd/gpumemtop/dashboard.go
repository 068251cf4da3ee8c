package main

import (
	"context"
	"errors"
	"os"
	"os/signal"
	"syscall"

	"golang.org/x/sys/unix"

	"codeberg.org/gpumemtop/gpumemtop/allocator"
	"codeberg.org/gpumemtop/gpumemtop/internal/model"
	"codeberg.org/gpumemtop/gpumemtop/internal/session"
	"codeberg.org/gpumemtop/gpumemtop/ui"
)

// screen is the terminal that the dashboard draws on.
type screen struct {
	tty        *os.File
	cols, rows int
}

// newScreen returns the terminal for a dashboard, nil where there shall be none. It is the controlling terminal,
// wherever the program's streams go, and only from the foreground: others are stopped when they touch it.
func newScreen(c *config) *screen {
	ci := os.Getenv("CI")
	term := os.Getenv("TERM")
	if c.headless || term == "" || term == "dumb" || (ci != "" && ci != "false" && ci != "0") {
		return nil
	}
	tty, err := os.OpenFile("/dev/tty", os.O_RDWR, 0)
	if err != nil {
		return nil
	}
	size, err := unix.IoctlGetWinsize(int(tty.Fd()), unix.TIOCGWINSZ)
	if err != nil || !session.Foreground(tty) {
		_ = tty.Close()
		return nil
	}
	return &screen{tty: tty, cols: int(size.Col), rows: int(size.Row)}
}

func (s *screen) close() {
	if s != nil {
		_ = s.tty.Close()
	}
}

// showDashboard shows the dashboard until it is left, then gives the terminal to the program's output.
func (r *runner) showDashboard() {
	ctx, cancel := r.untilTold()
	defer cancel()
	_, err := ui.Run(ctx, ui.Options{
		Source:      r.model.Published,
		App:         r.app,
		Output:      r.output,
		Curve:       r.hitRates,
		SetLimit:    r.setLimit,
		SetPolicy:   r.setPolicy,
		Policies:    policyChoice(),
		Adopt:       r.setConfiguration,
		Signal:      r.session.Signal,
		Detach:      func() {}, // what follows the dashboard is all there is to it
		Terminate:   r.session.Terminate,
		Resize:      r.session.Resize,
		Input:       r.screen.tty,
		Terminal:    r.screen.tty,
		Refresh:     r.config.refresh,
		ASCII:       r.config.ascii,
		NoColor:     r.config.noColor,
		ReadOnly:    r.config.readOnly,
		ExitWithApp: r.config.exitWithApp,
	})
	if err != nil && !errors.Is(err, context.Canceled) {
		r.notes.add(err.Error())
	}
	if err := r.session.Reveal(!r.config.noReplay); err != nil {
		r.notes.add(err.Error())
	}
}

// untilTold returns a context that ends when the terminal is closed, or when another process asked us to end and the
// program has obeyed.
func (r *runner) untilTold() (context.Context, func()) {
	ctx, cancel := context.WithCancel(context.Background())
	signals := make(chan os.Signal, 1)
	for _, sig := range []os.Signal{syscall.SIGHUP, syscall.SIGINT, syscall.SIGTERM, syscall.SIGQUIT} {
		if !signal.Ignored(sig) {
			signal.Notify(signals, sig)
		}
	}
	go func() {
		select {
		case sig := <-signals:
			if sig != syscall.SIGHUP {
				<-r.session.Ended()
			}
			cancel()
		case <-ctx.Done():
		}
	}()
	return ctx, func() {
		signal.Stop(signals)
		cancel()
	}
}

// app tells the dashboard how the program is.
func (r *runner) app() ui.App {
	app := ui.App{PID: r.session.PID(), Status: -1}
	status, done := r.session.Status()
	switch {
	case done && status.Signal != 0:
		app.State, app.Status = model.Signaled, status.Signal
	case done:
		app.State, app.Status = model.Exited, status.Code
	}
	return app
}

func (r *runner) output(since uint64) ([]ui.OutputLine, uint64) {
	lines, next := r.session.Output(since)
	shown := make([]ui.OutputLine, len(lines))
	for i, line := range lines {
		shown[i] = ui.OutputLine(line)
	}
	return shown, next
}

func (r *runner) setLimit(name, value string) {
	if err := r.session.SetLimit(name, value); err != nil {
		r.notes.add(err.Error())
	}
}

// setPolicy goes over to another policy with the limits that were set for the present one, as far as it has them.
func (r *runner) setPolicy(name string) error {
	var present []allocator.Setting
	s := r.model.Published()
	for i := range s.Limits {
		present = append(present, allocator.Setting{Name: s.Limits[i].Name, Value: s.Limits[i].Text})
	}
	r.takeOver()
	return r.session.SetPolicy(name, allocator.Carried(s.Policy, present, name))
}

func policyChoice() []ui.Policy {
	var list []ui.Policy
	for _, name := range allocator.Names() {
		description, _ := allocator.Describe(name)
		list = append(list, ui.Policy{Name: name, Summary: description.Summary})
	}
	return list
}
