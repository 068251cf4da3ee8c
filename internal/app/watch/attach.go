package watch

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/signal"
	"path/filepath"
	"strings"
	"time"

	"codeberg.org/gpumemtop/gpumemtop/internal/app/console"
	"codeberg.org/gpumemtop/gpumemtop/internal/doctor/probe"
	"codeberg.org/gpumemtop/gpumemtop/internal/remote"
	"codeberg.org/gpumemtop/gpumemtop/internal/report"
	"codeberg.org/gpumemtop/gpumemtop/internal/session"
	"codeberg.org/gpumemtop/gpumemtop/internal/stats"
	"codeberg.org/gpumemtop/gpumemtop/internal/symbol"
	"codeberg.org/gpumemtop/gpumemtop/tracer"
	"codeberg.org/gpumemtop/gpumemtop/tracer/target"
	"codeberg.org/gpumemtop/gpumemtop/ui"
)

// AttachOptions say which running programs are watched. Of the setup, Tags and Depth count: there is no pool.
type AttachOptions struct {
	Options
	PIDs     []string // each one or several with commas between
	Comms    []string
	Cgroups  []string
	All      bool
	Follow   bool          // the children of watched processes, too
	Duration time.Duration // 0: until the user or the programs end it
}

// Feed is the source of events; *tracer.Tracer is one.
type Feed interface {
	session.Feed
	// OpenablePath returns the path by which we can open a file of a watched process.
	OpenablePath(process uint32, path string) string
}

// StartFeed starts to watch programs.
type StartFeed func(tracer.Options) (Feed, error)

// StartTracerFeed is the usual StartFeed.
func StartTracerFeed(o tracer.Options) (Feed, error) {
	if err := o.CheckAndNormalize(); err != nil {
		return nil, err
	}
	t, err := tracer.Start(o)
	if err != nil {
		return nil, err // not t: a nil tracer would make a feed that is not nil
	}
	return t, nil
}

// attacher is a source: programs that are already running, without a pool.
type attacher struct {
	*Watch
	options   *AttachOptions
	feed      StartFeed
	processes []process // those named by process id
	session   *session.Attached
	signals   chan os.Signal  // nil before Start
	ctx       context.Context // its end ends the session
	detach    context.CancelFunc
}

// Attach watches programs until the user detaches or none is left, and reports.
func Attach(o *AttachOptions, start StartFeed) error {
	return FollowSource(&o.Options, &attacher{options: o, feed: start})
}

// Check implements Source.
func (a *attacher) Check(w *Watch) error {
	a.Watch = w
	o := a.options
	if err := o.check(); err != nil {
		return err
	}
	var err error
	if a.processes, err = findProcesses(o.PIDs); err != nil {
		return err
	}
	if err := alreadyWatchedError(a.processes); err != nil {
		return err
	}
	for i := range a.processes {
		if p := &a.processes[i]; p.stopped {
			a.notes.Add(fmt.Sprintf("%s (pid %d) is stopped: it makes no calls until it is continued", p.comm, p.pid))
		}
	}
	setup := o.Setup
	setup.Policy = "none"
	w.subject = a.newSubject()
	w.subject.Setup, err = NewSetup(&setup)
	return err
}

// check checks what selects programs.
func (o *AttachOptions) check() error {
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
	return nil
}

// newSubject names the subject after the first thing that was asked for.
func (a *attacher) newSubject() *Subject {
	s := &Subject{Attached: true, Name: "all", Greeting: a.whatIsWatchedText()}
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

// Start implements Source.
func (a *attacher) Start() (ended <-chan struct{}, err error) {
	// Until the end: a second Ctrl-C must not lose the recording.
	a.signals = session.CatchSignals()
	feed, err := a.feed(a.tracerOptions())
	if err != nil {
		return nil, err
	}
	// Now, not earlier: a file that would be overwritten stays when attaching fails.
	tap, err := a.createOutputs(a.subject.ModelOptions())
	if err != nil {
		return nil, errors.Join(err, feed.Detach(), feed.Close())
	}
	names := a.subject.Setup.namingOptions(&a.notes)
	a.session = session.Attach(session.AttachOptions{
		Feed: feed, Model: a.model, Resolve: symbol.NewResolver(names).FramesAt, Names: names, Open: feed.OpenablePath, Tap: tap,
		Published: new(console.Memory).AdjustMemoryLimit,
		Recorder:  a.outputs.Recorder, Recording: a.outputs.RecordingName(),
	})
	a.ctx, a.detach = a.contextUntilDetached()
	return a.session.Ended(), nil
}

func (a *attacher) tracerOptions() tracer.Options {
	o, setup := a.options, a.subject.Setup
	selection := tracer.Options{
		Selection: target.Selection{Comms: o.Comms, Cgroups: o.Cgroups, All: o.All, Follow: o.Follow},
		// Only uses reveal memory from before.
		Tags: setup.Tags, Depth: setup.Depth, Uses: true, Clock: session.MonotonicNow, Warn: a.notes.Add, Ask: probe.RunWithPreload,
	}
	for i := range a.processes {
		selection.PIDs = append(selection.PIDs, a.processes[i].pid)
	}
	return selection
}

// contextUntilDetached returns a context whose end ends the session: by a signal, after --duration, when the session fails, or by
// the function that it returns.
func (a *attacher) contextUntilDetached() (context.Context, context.CancelFunc) {
	ctx, cancel := context.WithCancel(context.Background())
	context.AfterFunc(ctx, a.session.Stop)
	if a.options.Duration > 0 {
		time.AfterFunc(a.options.Duration, cancel)
	}
	go func() {
		for range a.signals {
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

// whatIsWatchedText says what is watched and what ends it.
func (a *attacher) whatIsWatchedText() string {
	text := "watching " + a.selectedText()
	if a.options.Duration > 0 {
		return fmt.Sprintf("%s for %v; Ctrl-C ends it earlier", text, a.options.Duration)
	}
	return text + "; Ctrl-C ends"
}

func (a *attacher) selectedText() string {
	o := a.options
	if o.All {
		return "every process that uses OpenCL"
	}
	var parts []string
	if len(a.processes) > 0 {
		parts = append(parts, processNamesText(a.processes))
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

// ShowDashboard implements Source. Leaving the dashboard detaches.
func (a *attacher) ShowDashboard() {
	err := a.screen.Show(a.ctx, ui.Options{
		Source: a.model.PublishedSnapshot, App: a.programState, Curve: a.simulations.Curve, Attached: true, ReadOnly: true,
	})
	if err != nil {
		a.notes.Add(err.Error())
	}
	a.detach()
}

// HostForViewers implements Source.
func (a *attacher) HostForViewers() (path string, host remote.Host, remove func()) {
	path, remove, err := session.NewViewSocket()
	if err != nil {
		return "", host, nil // only other terminals miss it
	}
	host = remote.Host{
		About: remote.About{Program: a.subject.Name, Attached: true, Fixed: true},
		State: func() remote.State {
			app := a.programState()
			return remote.State{State: app.State, Status: app.Status}
		},
	}
	if len(a.processes) == 1 {
		host.About.Child = a.processes[0].pid
	}
	return path, host, remove
}

// programState tells the dashboard whether anything is left to watch.
func (a *attacher) programState() ui.App {
	app := ui.App{Status: -1}
	select {
	case <-a.session.Ended():
		app.State = stats.Exited
	default:
	}
	return app
}

// Wait implements Source.
func (a *attacher) Wait() End {
	result := a.session.Wait()
	a.detach()
	summary := func(last *stats.Snapshot) report.Summary { return report.NewWatchSummary(last, result.Running) }
	return End{
		Last: result.Snapshot, Exit: summary(result.Snapshot).Exit, Cut: result.Running > 0, Summary: summary, Err: result.Err,
	}
}

// Close implements Source.
func (a *attacher) Close() {
	if a.signals != nil {
		signal.Stop(a.signals)
		close(a.signals)
	}
}

// processNamesText names the first of some processes.
func processNamesText(processes []process) string {
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
