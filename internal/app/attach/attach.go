// Package attach watches programs that are already running, without a pool.
package attach

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/signal"
	"path/filepath"
	"strings"
	"time"

	"golang.org/x/sys/unix"

	"codeberg.org/gpumemtop/gpumemtop/internal/app/console"
	"codeberg.org/gpumemtop/gpumemtop/internal/app/dashboard"
	"codeberg.org/gpumemtop/gpumemtop/internal/app/watch"
	"codeberg.org/gpumemtop/gpumemtop/internal/doctor/probe"
	"codeberg.org/gpumemtop/gpumemtop/internal/recording"
	"codeberg.org/gpumemtop/gpumemtop/internal/remote"
	"codeberg.org/gpumemtop/gpumemtop/internal/report"
	"codeberg.org/gpumemtop/gpumemtop/internal/session"
	"codeberg.org/gpumemtop/gpumemtop/internal/stats"
	"codeberg.org/gpumemtop/gpumemtop/internal/symbol"
	"codeberg.org/gpumemtop/gpumemtop/tracer"
	"codeberg.org/gpumemtop/gpumemtop/tracer/target"
	"codeberg.org/gpumemtop/gpumemtop/ui"
)

// Options say what is watched and what becomes of it.
type Options struct {
	PIDs     []string // each one or several with commas between
	Comms    []string
	Cgroups  []string
	All      bool
	Follow   bool          // the children of watched processes, too
	Duration time.Duration // 0: until the user or the programs end it

	Setup     watch.SetupOptions // Tags and Depth count; there is no pool
	Outputs   watch.OutputOptions
	Monitor   watch.MonitorOptions
	Ghosts    string
	Dashboard dashboard.Options
}

// Feed is the source of events; *tracer.Tracer is one.
type Feed interface {
	session.Feed
	// Open returns the path by which we can open a file of a watched process.
	Open(process uint32, path string) string
}

// StartFeed starts to watch programs.
type StartFeed func(tracer.Options) (Feed, error)

// StartTracer is the usual StartFeed.
func StartTracer(o tracer.Options) (Feed, error) {
	if err := o.Check(); err != nil {
		return nil, err
	}
	t, err := tracer.Start(o)
	if err != nil {
		return nil, err // not t: a nil tracer would make a feed that is not nil
	}
	return t, nil
}

// attacher watches programs that are already running.
type attacher struct {
	options     *Options
	start       StartFeed
	processes   []process // those named by process id
	subject     *watch.Subject
	outputs     *watch.Outputs
	monitor     *watch.Monitor
	simulations *watch.Simulations
	model       *stats.Model
	session     *session.Attached
	screen      *dashboard.Screen // nil without a dashboard
	failures    *watch.Failures
	notes       console.Notes
}

// Attach watches programs until the user detaches or none is left, and reports.
func Attach(options *Options, start StartFeed) error {
	a := &attacher{options: options, start: start}
	if err := a.check(); err != nil {
		return err
	}
	defer a.monitor.Close()
	// Until the end: a second Ctrl-C must not lose the recording.
	signals := session.Catch()
	defer close(signals)
	defer signal.Stop(signals)
	signal.Ignore(unix.SIGPIPE) // the recording must be complete even if stderr is closed
	a.screen = dashboard.Open(options.Dashboard)
	defer a.screen.Close()
	var err error
	if a.simulations, err = watch.NewSimulations(options.Ghosts, a.subject.Setup, a.screen != nil); err != nil {
		return err
	}
	if err := a.begin(); err != nil {
		return err
	}
	a.monitor.Start(a.model.Published, func(s *stats.Snapshot) report.Summary { return report.NewWatchSummary(s, 0) })
	ctx, detach := a.untilDetached(signals)
	others := a.serveOthers()
	a.failures = watch.NewFailures(a.model, &a.notes)
	if a.screen != nil {
		a.notes.Hold()
		a.showDashboard(ctx)
		a.simulations.LeaveDashboard()
		a.notes.Release()
		detach()
	} else {
		a.notes.Add(a.watching())
	}
	defer a.outputs.Hurry(a.session.Ended())()
	result := a.session.Wait()
	detach()
	others()
	a.report(&result)
	if result.Err == nil && a.outputs.Partial {
		return console.Exit(console.StatusFailed, nil)
	}
	return result.Err
}

// check finds all that is wrong before anything is touched.
func (a *attacher) check() error {
	o := a.options
	if len(o.PIDs) == 0 && len(o.Comms) == 0 && len(o.Cgroups) == 0 && !o.All {
		return errors.New("nothing to attach to: name processes with -p PID, --comm NAME, --cgroup PATH or --all")
	}
	if o.Duration < 0 {
		return fmt.Errorf("bad value %v for --duration: want a time, for example 30s or 10m", o.Duration)
	}
	for flag, values := range map[string][]string{"comm": o.Comms, "cgroup": o.Cgroups} {
		for _, value := range values {
			if value == "" {
				return fmt.Errorf("bad value %q for --%s: want a name", value, flag)
			}
		}
	}
	if err := o.Dashboard.Check(); err != nil {
		return err
	}
	var err error
	if a.processes, err = findProcesses(o.PIDs); err != nil {
		return err
	}
	if err := inSession(a.processes); err != nil {
		return err
	}
	for i := range a.processes {
		if p := &a.processes[i]; p.stopped {
			a.notes.Add(fmt.Sprintf("%s (pid %d) is stopped: it makes no calls until it is continued", p.comm, p.pid))
		}
	}
	setup := o.Setup
	setup.Policy = "none"
	a.subject = a.newSubject()
	if a.subject.Setup, err = watch.NewSetup(&setup); err != nil {
		return err
	}
	if a.outputs, err = watch.NewOutputs(o.Outputs, a.subject, &a.notes); err != nil {
		return err
	}
	a.monitor, err = watch.NewMonitor(o.Monitor, a.subject, &a.notes)
	return err
}

// newSubject names the subject after the first thing that was asked for.
func (a *attacher) newSubject() *watch.Subject {
	s := &watch.Subject{Attached: true, Name: "all"}
	switch o := a.options; {
	case len(a.processes) > 0:
		s.Command = a.processes[0].command
		s.Name = s.Command[0]
	case len(o.Comms) > 0:
		s.Name = o.Comms[0]
	case len(o.Cgroups) > 0:
		s.Name = filepath.Clean(o.Cgroups[0])
	}
	return s
}

// begin attaches.
func (a *attacher) begin() error {
	o, setup := a.options, a.subject.Setup
	selection := tracer.Options{
		Selection: target.Selection{Comms: o.Comms, Cgroups: o.Cgroups, All: o.All, Follow: o.Follow},
		// Only uses reveal memory from before.
		Tags: setup.Tags, Depth: setup.Depth, Uses: true, Clock: session.Now, Warn: a.notes.Add, Ask: probe.Run,
	}
	for i := range a.processes {
		selection.PIDs = append(selection.PIDs, a.processes[i].pid)
	}
	feed, err := a.start(selection)
	if err != nil {
		return err
	}
	a.model = stats.New(a.subject.ModelOptions())
	// Now, not earlier: a file that would be overwritten stays when attaching fails.
	if err := a.outputs.Create(a.model); err != nil {
		return errors.Join(err, feed.Detach(), feed.Close())
	}
	tap, err := a.simulations.Start(a.model)
	if err != nil {
		a.outputs.Discard()
		return errors.Join(err, feed.Detach(), feed.Close())
	}
	a.session = session.Attach(session.AttachOptions{
		Feed: feed, Model: a.model, Resolve: symbol.New().Frames, Open: feed.Open, Tap: tap,
		Recorder: a.outputs.Recorder, Recording: a.outputs.RecordingName(),
	})
	return nil
}

// untilDetached returns a context whose end ends the session: by a signal, after --duration, when the session fails, or by
// the function that it returns.
func (a *attacher) untilDetached(signals <-chan os.Signal) (context.Context, context.CancelFunc) {
	ctx, cancel := context.WithCancel(context.Background())
	context.AfterFunc(ctx, a.session.Stop)
	if a.options.Duration > 0 {
		time.AfterFunc(a.options.Duration, cancel)
	}
	go func() {
		for range signals {
			cancel()
		}
	}()
	go func() {
		if a.session.Wait().Err != nil {
			cancel()
		}
	}()
	return ctx, cancel
}

// watching says what is watched and what ends it.
func (a *attacher) watching() string {
	text := "watching " + a.selected()
	if a.options.Duration > 0 {
		return fmt.Sprintf("%s for %v; Ctrl-C ends it earlier", text, a.options.Duration)
	}
	return text + "; Ctrl-C ends"
}

func (a *attacher) selected() string {
	o := a.options
	if o.All {
		return "every process that uses OpenCL"
	}
	var parts []string
	if len(a.processes) > 0 {
		parts = append(parts, listed(a.processes))
	}
	if len(o.Comms) > 0 {
		parts = append(parts, "processes named "+strings.Join(o.Comms, ", "))
	}
	if len(o.Cgroups) > 0 {
		parts = append(parts, "processes in "+strings.Join(o.Cgroups, ", "))
	}
	if o.Follow {
		parts = append(parts, "their children")
	}
	return strings.Join(parts, " and ")
}

func (a *attacher) showDashboard(ctx context.Context) {
	err := a.screen.Show(ctx, ui.Options{
		Source: a.model.Published, App: a.app, Curve: a.simulations.Curve, Attached: true, ReadOnly: true,
	})
	if err != nil {
		a.notes.Add(err.Error())
	}
}

// serveOthers shows the session on other terminals until the function that it returns is called.
func (a *attacher) serveOthers() func() {
	path, remove, err := session.NewView()
	if err != nil {
		return func() {} // only other terminals miss it
	}
	host := remote.Host{
		About:    remote.About{Program: a.subject.Name, Attached: true, Fixed: true},
		Snapshot: a.model.Published,
		State:    func() remote.State { app := a.app(); return remote.State{State: app.State, Status: app.Status} },
	}
	if len(a.processes) == 1 {
		host.About.Child = a.processes[0].pid
	}
	if a.screen != nil {
		host.Curve = a.simulations.Curve
	}
	server, err := remote.Serve(path, host)
	if err != nil {
		a.notes.Add(err.Error())
	}
	return func() {
		server.Close()
		remove()
	}
}

// app tells the dashboard whether anything is left to watch.
func (a *attacher) app() ui.App {
	app := ui.App{Status: -1}
	select {
	case <-a.session.Ended():
		app.State = stats.Exited
	default:
	}
	return app
}

// report completes the files and writes the figures.
func (a *attacher) report(result *session.Watch) {
	exit := report.NewWatchSummary(result.Snapshot, result.Running).Exit
	messages := a.outputs.Close(recording.Footer{
		Lost: result.Snapshot.Lost, EndedNS: result.Snapshot.Time, Status: exit.Status, Signal: exit.Signal, Cut: result.Running > 0,
	})
	a.failures.Finish(result.Snapshot)
	a.monitor.Finish(result.Snapshot)
	a.outputs.Summarize(result.Snapshot, func(last *stats.Snapshot) report.Summary {
		return report.NewWatchSummary(last, result.Running)
	})
	a.outputs.Announce(result.Snapshot, messages)
}

// listed names the first of some processes.
func listed(processes []process) string {
	const shown = 4
	var texts []string
	for i := range processes[:min(shown, len(processes))] {
		texts = append(texts, fmt.Sprintf("%s (%d)", processes[i].comm, processes[i].pid))
	}
	text := strings.Join(texts, ", ")
	if left := len(processes) - shown; left > 0 {
		text += fmt.Sprintf(" and %d more", left)
	}
	return text
}
