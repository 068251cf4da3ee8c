// Package watch watches what uses device memory: a program that it starts, programs that run already, a session of another
// terminal, or a recording.
package watch

import (
	"io/fs"
	"os"
	"os/signal"
	"syscall"

	"codeberg.org/gpumemtop/gpumemtop/internal/app/console"
	"codeberg.org/gpumemtop/gpumemtop/internal/disk"
	"codeberg.org/gpumemtop/gpumemtop/internal/remote"
	"codeberg.org/gpumemtop/gpumemtop/internal/report"
	"codeberg.org/gpumemtop/gpumemtop/internal/session"
	"codeberg.org/gpumemtop/gpumemtop/internal/stats"
)

// Options say how something is watched, and what is written about it.
type Options struct {
	Setup     SetupOptions
	Outputs   OutputOptions
	Monitor   MonitorOptions
	Ghosts    string // see NewSimulations
	Dashboard DashboardOptions
}

// Source is what is watched, as far as the four kinds differ. A recording and a session of another terminal are only shown:
// they have no subject, and so no files, model, monitor and report.
type Source interface {
	// Check finds what is wrong before anything is created or touched. It sets the subject.
	Check(w *Watch) error
	// Start starts it. The channel closes when nothing is left to watch.
	Start() (ended <-chan struct{}, err error)
	// HostForViewers says at which path other terminals find the session, and what these can do there. An empty path is none.
	HostForViewers() (path string, host remote.Host, remove func())
	// ShowDashboard shows the dashboard, and what the user can do in it, until the user leaves it.
	ShowDashboard()
	// Wait waits until nothing is left to watch.
	Wait() End
	// Close releases what Check and Start opened, as far as they did.
	Close()
}

// End is how watching ended.
type End struct {
	Last    *stats.Snapshot // nil without a subject
	Exit    report.Exit
	Cut     bool                                 // programs that were watched go on
	Summary func(*stats.Snapshot) report.Summary // of Last
	Hint    string                               // for the user; empty: none
	Err     error                                // carries the status to end with
}

// Watch is one watching of a source, from the check to the report.
type Watch struct {
	source      Source
	options     *Options
	subject     *Subject // nil: only shown
	outputs     *Outputs
	monitor     *Monitor
	screen      *Screen // nil without a dashboard
	simulations *Simulations
	model       *stats.Model
	notes       console.Notes
}

// FollowSource watches a source to its end and reports. The error carries the status to end with.
func FollowSource(o *Options, source Source) error {
	w := &Watch{options: o, source: source}
	// Who reads our messages may end at any time: neither recording nor status depends on it. A program gets what was there at the start.
	if !signal.Ignored(syscall.SIGPIPE) {
		signal.Notify(make(chan os.Signal, 1), syscall.SIGPIPE)
	}
	defer source.Close()
	if err := w.checkAndPrepare(); err != nil {
		return err
	}
	defer w.monitor.Close()
	w.openScreen()
	defer w.screen.Close()
	if err := w.chooseSimulations(); err != nil {
		return err
	}
	ended, err := source.Start()
	if err != nil {
		return err
	}
	w.monitor.Start(w.model)
	stopServing := w.serveViewers()
	failures := FollowFailures(w.model, &w.notes)
	w.showDashboard()
	// Signals end the wait for a disk that does not answer.
	defer console.CallOnSignalAfter(ended, disk.StopWaiting)()
	end := source.Wait()
	stopServing()
	return w.completeFilesAndReport(&end, failures)
}

// openScreen opens the terminal, but not where a program and its reader in a pipeline write to it: what the reader prints would
// lie under the dashboard, and go with it.
func (w *Watch) openScreen() {
	w.screen = OpenScreen(w.options.Dashboard)
	if w.screen != nil && w.subject != nil && !w.options.Dashboard.Piped && isPipe(os.Stdout) {
		w.screen.Close()
		w.screen = nil
		w.notes.Add("standard output is a pipe: no dashboard; --dashboard shows it")
	}
}

// isPipe reports whether another process reads what is written: some shells make socket pairs of their pipes.
func isPipe(file *os.File) bool {
	info, err := file.Stat()
	return err == nil && info.Mode()&(fs.ModeNamedPipe|fs.ModeSocket) != 0
}

// checkAndPrepare finds what is wrong before anything is created, and prepares the files and the monitor.
func (w *Watch) checkAndPrepare() error {
	if err := w.options.Dashboard.Check(); err != nil {
		return err
	}
	if err := w.source.Check(w); err != nil || w.subject == nil {
		return err
	}
	var err error
	if w.outputs, err = NewOutputs(w.options.Outputs, w.subject, &w.notes); err != nil {
		return err
	}
	w.monitor, err = NewMonitor(w.options.Monitor, w.subject, &w.notes)
	return err
}

// chooseSimulations chooses what is simulated beside the subject.
func (w *Watch) chooseSimulations() (err error) {
	if w.subject != nil {
		w.simulations, err = NewSimulations(w.options.Ghosts, w.subject.Setup, w.screen != nil)
	}
	return err
}

// createOutputs makes the model, the files and the simulations when a source starts. The tap feeds the simulations.
func (w *Watch) createOutputs(about stats.Options) (tap session.Tap, err error) {
	w.model = stats.New(about)
	if err := w.outputs.CreateFiles(w.model); err != nil {
		return nil, err
	}
	if tap, err = w.simulations.Start(w.model); err != nil {
		w.outputs.DiscardFiles()
	}
	return tap, err
}

// serveViewers shows the session on other terminals until the function that it returns is called.
func (w *Watch) serveViewers() (stop func()) {
	path, host, remove := w.source.HostForViewers()
	if path == "" {
		return func() {}
	}
	host.Snapshot = w.model.PublishedSnapshot
	if w.screen != nil {
		host.Curve = w.simulations.Curve
	}
	server, err := remote.Serve(path, host)
	if err != nil {
		w.notes.Add(err.Error())
	}
	return func() {
		server.SendLastAndClose()
		remove()
	}
}

// showDashboard shows the dashboard, if there is one. Messages wait until the user leaves it.
func (w *Watch) showDashboard() {
	switch {
	case w.screen != nil:
		w.notes.HoldMessages()
		w.source.ShowDashboard()
		w.simulations.EndCurve()
		w.notes.Release()
	case w.subject.Greeting != "":
		w.notes.Add(w.subject.Greeting)
	}
}

// completeFilesAndReport completes the files and writes the figures. It returns the error that Run ends with.
func (w *Watch) completeFilesAndReport(end *End, failures *Failures) error {
	if w.subject == nil {
		return end.Err
	}
	messages := w.outputs.CompleteFiles(end.Last, end.Exit, end.Cut)
	failures.WriteRemainingPostMortems(end.Last)
	w.monitor.PublishLastFigures(end.Last)
	w.outputs.WriteSummary(end.Last, end.Summary)
	if end.Hint != "" {
		w.notes.Add(end.Hint)
	}
	w.outputs.SayResultsAndMessages(end.Last, messages)
	if end.Err == nil && w.outputs.Partial {
		return console.NewExit(console.StatusFailed, nil)
	}
	return end.Err
}
