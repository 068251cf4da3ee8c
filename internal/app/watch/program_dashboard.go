package watch

import (
	"context"
	"fmt"
	"os"
	"os/signal"
	"syscall"

	"codeberg.org/gpumemtop/gpumemtop/allocator"
	"codeberg.org/gpumemtop/gpumemtop/internal/app/console"
	"codeberg.org/gpumemtop/gpumemtop/internal/callsite"
	"codeberg.org/gpumemtop/gpumemtop/internal/remote"
	"codeberg.org/gpumemtop/gpumemtop/internal/stats"
	"codeberg.org/gpumemtop/gpumemtop/ui"
)

// ShowDashboard implements Source. When the user leaves the dashboard, it lets the program's output through.
func (r *runner) ShowDashboard() {
	ctx, cancel := r.contextUntilSignal()
	defer cancel()
	detached := false
	err := r.screen.Show(ctx, ui.Options{
		Source:      r.model.PublishedSnapshot,
		App:         r.programState,
		Output:      r.session.OutputSince,
		Curve:       r.simulations.Curve,
		Replay:      r.simulations.Replay(),
		WhatIf:      r.simulations.Replay(),
		SetLimit:    r.session.SetLimit,
		ParseLimit:  parseLimitValue,
		Save:        saveLimitsFile,
		SetPolicy:   r.switchPolicy,
		Record:      r.session.ToggleRecording,
		Measure:     r.toggleExperiment,
		Policies:    policiesToSwitchTo(),
		Adopt:       r.adoptGhostConfiguration,
		Type:        r.session.TypeKeys,
		Signal:      r.session.SignalProgram,
		Detach:      func() { detached = true }, // the run goes on when the dashboard closes
		Terminate:   r.session.Terminate,
		Resize:      r.session.ResizeTerminal,
		ReadOnly:    r.options.ReadOnly,
		ExitWithApp: r.options.ExitWithApp,
	})
	if err != nil {
		r.notes.Add(err.Error())
	}
	if detached {
		console.SayLine("%s (pid %d) goes on; Ctrl-C reaches it", callsite.BaseName(r.path), r.session.PID())
	}
	if err := r.session.EndCapture(!r.options.NoReplay); err != nil {
		r.notes.Add(err.Error())
	}
}

// contextUntilSignal returns a context that ends when the terminal closes, or when another process asks us to end and the program
// has ended.
func (r *runner) contextUntilSignal() (context.Context, func()) {
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

// programState returns the state of the program.
func (r *runner) programState() ui.App {
	app := ui.App{PID: r.session.PID(), Status: -1, FullScreen: r.session.UsesFullScreen()}
	status, done := r.session.Status()
	switch {
	case done && status.Signal != 0:
		app.State, app.Status = stats.Signaled, status.Signal
	case done:
		app.State, app.Status = stats.Exited, status.Code
	}
	return app
}

// switchPolicy switches to another policy, with the present limits as far as it has them.
func (r *runner) switchPolicy(name string) (sequence uint64, err error) {
	var present []allocator.Setting
	s := r.model.PublishedSnapshot()
	for i := range s.Limits {
		present = append(present, allocator.Setting{Name: s.Limits[i].Name, Value: s.Limits[i].Text})
	}
	r.controller.leavePolicyToUser()
	return r.session.SetPolicy(name, allocator.CarriedSettings(s.Policy, present, name))
}

// adoptGhostConfiguration switches to the configuration of a ghost.
func (r *runner) adoptGhostConfiguration(name string) (sequence uint64, err error) {
	c, known := r.simulations.Ghosts.ConfigurationOfGhost(name)
	if !known {
		return 0, fmt.Errorf("no simulated configuration %q", name)
	}
	r.controller.leavePolicyToUser()
	return r.session.SetPolicy(c.Policy, c.Settings)
}

// HostForViewers implements Source: the program can be tuned from other terminals like from here.
func (r *runner) HostForViewers() (path string, host remote.Host, remove func()) {
	host = remote.Host{
		About: remote.About{Program: r.command[0], Child: r.session.PID(), Fixed: r.options.ReadOnly, Captures: r.screen != nil},
		State: func() remote.State {
			app := r.programState()
			return remote.State{PID: app.PID, State: app.State, Status: app.Status}
		},
		Output: r.session.OutputSince, SetLimit: r.session.SetLimit, SetPolicy: r.switchPolicy, Record: r.session.ToggleRecording,
		Measure: r.toggleExperiment,
	}
	if r.simulations.Ghosts != nil {
		host.Adopt = r.adoptGhostConfiguration
	}
	return r.session.ViewPath(), host, func() {}
}
