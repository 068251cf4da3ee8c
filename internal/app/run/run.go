// Package run runs a program to its end: with or without a dashboard, recorded or not, under a policy that stays or auto.
package run

import (
	"fmt"
	"os"
	"sync/atomic"

	"codeberg.org/gpumemtop/gpumemtop/internal/app/console"
	"codeberg.org/gpumemtop/gpumemtop/internal/app/dashboard"
	"codeberg.org/gpumemtop/gpumemtop/internal/app/limits"
	"codeberg.org/gpumemtop/gpumemtop/internal/app/watch"
	"codeberg.org/gpumemtop/gpumemtop/internal/callsite"
	"codeberg.org/gpumemtop/gpumemtop/internal/learn"
	"codeberg.org/gpumemtop/gpumemtop/internal/remote"
	"codeberg.org/gpumemtop/gpumemtop/internal/report"
	"codeberg.org/gpumemtop/gpumemtop/internal/session"
	"codeberg.org/gpumemtop/gpumemtop/internal/session/payload"
	"codeberg.org/gpumemtop/gpumemtop/internal/stats"
	"codeberg.org/gpumemtop/gpumemtop/internal/symbol"
)

// Options say how a program runs.
type Options struct {
	Setup       watch.SetupOptions
	Outputs     watch.OutputOptions
	Monitor     watch.MonitorOptions
	Ghosts      string
	Dashboard   dashboard.Options
	ReadOnly    bool // the dashboard changes neither limits nor the policy
	ExitWithApp bool // the dashboard closes when the program ends
	NoReplay    bool // the program's output is not repeated after the dashboard
}

// Check checks the options that do not depend on the program.
func (o *Options) Check() error {
	if err := o.Dashboard.Check(); err != nil {
		return err
	}
	_, err := watch.NewSetup(&o.Setup)
	return err
}

// runner is one run of a program.
type runner struct {
	options     *Options
	subject     *watch.Subject
	outputs     *watch.Outputs
	monitor     *watch.Monitor
	simulations *watch.Simulations
	path        string // of the program
	model       *stats.Model
	session     *session.Session
	screen      *dashboard.Screen // nil without a dashboard
	remote      *remote.Server    // nil: other terminals see nothing
	auto        atomic.Pointer[stats.Auto]
	planned     atomic.Bool // a plan was sent
	controller  *controller // nil unless the policy is auto
	failures    *watch.Failures
	notes       console.Notes
	started     chan struct{} // closed when session is set, or there is none
}

// Run runs a program to its end and reports. The error carries the program's status.
func Run(options *Options, command []string) error {
	r := &runner{options: options, started: make(chan struct{}), subject: &watch.Subject{Command: command, Name: command[0]}}
	if err := r.check(); err != nil {
		return err
	}
	defer r.monitor.Close()
	r.screen = dashboard.Open(options.Dashboard)
	defer r.screen.Close()
	var err error
	if r.simulations, err = watch.NewSimulations(options.Ghosts, r.subject.Setup, r.screen != nil); err != nil {
		return err
	}
	if err := r.start(); err != nil {
		return err
	}
	r.monitor.Start(r.model.Published, report.NewSummary)
	r.serveOthers()
	r.startController()
	r.failures = watch.NewFailures(r.model, &r.notes)
	if r.screen != nil {
		r.notes.Hold()
		r.showDashboard()
		r.simulations.LeaveDashboard()
		r.notes.Release()
	}
	defer r.outputs.Hurry(r.session.Ended())()
	result, err := r.session.Wait()
	r.remote.Close()
	r.controller.wait()
	if err != nil {
		r.notes.Add(err.Error())
	}
	r.report(&result)
	return console.ExitLike(result.Status)
}

// check finds all that is wrong before anything is created.
func (r *runner) check() error {
	if err := r.options.Dashboard.Check(); err != nil {
		return err
	}
	var err error
	if r.subject.Setup, err = watch.NewSetup(&r.options.Setup); err != nil {
		return err
	}
	if r.path, err = session.Find(r.subject.Command[0]); err != nil {
		return err
	}
	if plan := r.subject.Setup.Plan; plan != nil {
		if err := plan.CheckBuild(callsite.Base(r.path), symbol.BuildID(r.path)); err != nil {
			return fmt.Errorf("--plan %s: %w", r.options.Setup.Plan, err)
		}
	}
	if r.subject.Setup.Ungated {
		r.notes.Add("gating is off: buffers are reused while commands still use them, and results may be wrong")
	}
	if r.outputs, err = watch.NewOutputs(r.options.Outputs, r.subject, &r.notes); err != nil {
		return err
	}
	r.monitor, err = watch.NewMonitor(r.options.Monitor, r.subject, &r.notes)
	return err
}

func (r *runner) start() error {
	setup := r.subject.Setup
	about := r.subject.ModelOptions()
	about.TransfersOnly = !r.outputs.Wanted()
	about.Limits, about.LimitsOf = limits.Live(setup.Policy), stats.DefaultLimits
	r.model = stats.New(about)
	if setup.Auto {
		r.auto.Store(&stats.Auto{Steers: true})
		r.model.SetAuto(r.auto.Load)
	}
	if err := r.outputs.Create(r.model); err != nil {
		return err
	}
	if r.screen != nil {
		r.outputs.RecordOnDemand(r.model)
	}
	options := session.Options{
		Command: append([]string{r.path}, r.subject.Command[1:]...), Name: r.subject.Command[0],
		Config: setup.WireConfig(r.outputs.Wanted(), r.screen != nil),
		Shim:   payload.Shim, Core: payload.Core,
		Model: r.model, Resolve: symbol.New().Frames,
		Warn:     r.notes.Add,
		Recorder: r.outputs.Recorder, Recording: r.outputs.RecordingName(),
	}
	if r.screen != nil {
		options.Capture, options.Cols, options.Rows = true, r.screen.Cols, r.screen.Rows
	}
	defer close(r.started)
	r.simulations.SendPlan = r.sendPlan
	var err error
	if options.Tap, err = r.simulations.Start(r.model); err == nil {
		r.session, err = session.Start(options)
	}
	if err != nil {
		r.outputs.Discard()
	}
	return err
}

// sendPlan gives a process of the program a plan.
func (r *runner) sendPlan(process uint32, plan *learn.Plan) {
	if <-r.started; r.session == nil {
		return
	}
	r.planned.Store(true)
	if err := r.session.SetPlan(process, &plan.Layout); err != nil {
		r.notes.Add(err.Error())
	}
}

// leastRequests is how many requests are enough to learn from.
const leastRequests = 33

// noPlan says why the program has got no plan; it counts only where its policy takes plans, and none was installed.
func (r *runner) noPlan(last *stats.Snapshot) string {
	asked := last.Totals.Plans.Asked()
	switch {
	case r.planned.Load():
		return "the program ended before the plan reached it"
	case r.subject.Setup.Plan != nil:
		return "the program has none of the plan's call sites, or ended before they were known"
	case asked < leastRequests:
		return fmt.Sprintf("no iterations were recognised: that takes at least %d requests, and there were %d", leastRequests, asked)
	}
	return "no iterations were recognised: requests with the same sizes did not come in the same order again and again"
}

// report completes the files and writes the figures.
func (r *runner) report(result *session.Result) {
	messages := r.outputs.Complete(result)
	if result.OpenLine {
		_, _ = os.Stderr.WriteString("\n")
	}
	r.failures.Finish(result.Snapshot)
	r.monitor.Finish(result.Snapshot)
	r.outputs.Summarize(result.Snapshot, func(last *stats.Snapshot) report.Summary {
		last.NoPlan = r.noPlan(last)
		summary := report.NewSummary(last)
		summary.Exit, summary.NotWatched = watch.Exit(result.Status), result.Unwatched
		return summary
	})
	if result.Status.Code == console.StatusNotFound && len(result.Snapshot.Processes) == 0 && session.NeedsOpenCL(r.path) {
		r.notes.Add("the program needs libOpenCL.so.1: if that is missing, install an ICD loader (Debian: ocl-icd-libopencl1)")
	}
	r.outputs.Announce(result.Snapshot, messages)
}
