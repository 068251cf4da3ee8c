package watch

import (
	"fmt"
	"os"
	"sync/atomic"

	"codeberg.org/gpumemtop/gpumemtop/internal/app/console"
	"codeberg.org/gpumemtop/gpumemtop/internal/callsite"
	"codeberg.org/gpumemtop/gpumemtop/internal/learn"
	"codeberg.org/gpumemtop/gpumemtop/internal/report"
	"codeberg.org/gpumemtop/gpumemtop/internal/session"
	"codeberg.org/gpumemtop/gpumemtop/internal/session/payload"
	"codeberg.org/gpumemtop/gpumemtop/internal/stats"
	"codeberg.org/gpumemtop/gpumemtop/internal/symbol"
)

// RunOptions say how a program runs.
type RunOptions struct {
	Options
	ReadOnly    bool // the dashboard changes neither limits nor the policy
	ExitWithApp bool // the dashboard closes when the program ends
	NoReplay    bool // the program's output is not repeated after the dashboard
}

// Check checks the options that do not depend on the program.
func (o *RunOptions) Check() error {
	if err := o.Dashboard.Check(); err != nil {
		return err
	}
	_, err := NewSetup(&o.Setup)
	return err
}

// runner is a source: a program that is started, under a policy that stays or auto.
type runner struct {
	*Watch
	options    *RunOptions
	command    []string
	path       string // of the program
	session    *session.Session
	auto       atomic.Pointer[stats.Auto]
	planned    atomic.Bool   // a plan was sent
	measured   *Experimenter // nil: nothing can be measured
	controller *controller   // nil unless the policy is auto
	started    chan struct{} // closed when session is set, or there is none
}

// RunProgram runs a program to its end and reports. The error carries the program's status.
func RunProgram(o *RunOptions, command []string) error {
	return FollowSource(&o.Options, &runner{options: o, command: command, started: make(chan struct{})})
}

// Check implements Source.
func (r *runner) Check(w *Watch) error {
	setup, err := NewSetup(&r.options.Setup)
	if err != nil {
		return err
	}
	if r.path, err = session.FindProgram(r.command[0]); err != nil {
		return err
	}
	if setup.Plan != nil {
		if err := setup.Plan.CheckBuild(callsite.BaseName(r.path), symbol.BuildID(r.path)); err != nil {
			return fmt.Errorf("--plan %s: %w", r.options.Setup.Plan, err)
		}
	}
	if setup.Ungated {
		w.notes.Add("gating is off: buffers are reused while commands still use them, and results may be wrong")
	}
	if err := session.ExecInPlace(r.path, r.command); err != nil {
		return err
	}
	w.subject = &Subject{Command: r.command, Name: r.command[0], Setup: setup}
	r.Watch = w
	return nil
}

// Start implements Source.
func (r *runner) Start() (ended <-chan struct{}, err error) {
	defer close(r.started)
	setup := r.subject.Setup
	about := r.subject.ModelOptions()
	about.TransfersOnly = !r.outputs.IsRecording()
	about.Limits, about.LimitsOf = LimitsForModel(setup.Policy), stats.DefaultLimits
	r.simulations.SendPlan = r.sendPlanToProcess
	tap, err := r.createOutputs(about)
	if err != nil {
		return nil, err
	}
	tap = r.withExperimenter(tap)
	var periods *periods
	if setup.loadsPoolLibrary() {
		periods = newPeriods(tap)
		tap = periods
	}
	if setup.Auto {
		r.auto.Store(&stats.Auto{Steers: true})
		r.model.SetAutoSource(r.auto.Load)
	}
	if r.screen != nil {
		r.outputs.RecordOnDemand(r.model)
	}
	if r.session, err = session.Start(r.sessionOptions(tap)); err != nil {
		r.outputs.DiscardFiles()
		return nil, err
	}
	if r.measured != nil {
		r.measured.SetSession(r.session)
	}
	if periods != nil {
		periods.session.Store(r.session)
	}
	r.startController()
	return r.session.Ended(), nil
}

func (r *runner) sessionOptions(tap session.Tap) session.Options {
	names := r.subject.Setup.namingOptions(&r.notes)
	o := session.Options{
		Command: append([]string{r.path}, r.command[1:]...), Name: r.command[0],
		Config: r.subject.Setup.WireConfig(r.outputs.IsRecording(), r.screen != nil),
		Shim:   payload.OpenShim, Core: payload.OpenCore,
		Model: r.model, Tap: tap, Resolve: symbol.NewResolver(names).FramesAt, Names: names,
		Warn: r.notes.Add, Published: new(console.Memory).AdjustMemoryLimit,
		Recorder: r.outputs.Recorder, Recording: r.outputs.RecordingName(),
	}
	if r.screen != nil {
		o.Capture, o.Cols, o.Rows = true, r.screen.Cols, r.screen.Rows
	}
	return o
}

// sendPlanToProcess gives a process of the program a plan.
func (r *runner) sendPlanToProcess(process uint32, plan *learn.Layout) {
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

// whyNoPlanText says why the program has got no plan; it counts only where its policy takes plans, and none was installed.
func (r *runner) whyNoPlanText(last *stats.Snapshot) string {
	asked := last.Totals.Plans.PlannableRequests()
	switch {
	case r.planned.Load():
		return "the program ended before the plan reached it"
	case r.subject.Setup.Plan != nil:
		return "the program has none of the plan's call sites, or ended before they were known"
	case asked < leastRequests:
		return fmt.Sprintf("no iterations were recognised: that takes at least %d requests, and there were %d", leastRequests, asked)
	}
	return "requests with the same sizes did not come in the same order again and again, or each was in use for longer than two iterations"
}

// Wait implements Source.
func (r *runner) Wait() End {
	result, err := r.session.Wait()
	r.controller.awaitEndOfControl()
	if result.OpenLine {
		_, _ = os.Stderr.WriteString("\n")
	}
	if err != nil {
		r.notes.Add(err.Error())
	}
	end := End{Last: result.Snapshot, Exit: ReportedExit(result.Status), Err: console.NewExitWithStatus(result.Status)}
	end.Summary = func(last *stats.Snapshot) report.Summary {
		last.NoPlan = r.whyNoPlanText(last)
		summary := report.NewSummary(last)
		summary.Exit, summary.NotWatched = end.Exit, result.Unwatched
		return summary
	}
	if result.Status.Code == console.StatusNotFound && len(result.Snapshot.Processes) == 0 && session.NeedsOpenCL(r.path) {
		end.Hint = "the program needs libOpenCL.so.1: if that is missing, install an ICD loader (Debian: ocl-icd-libopencl1)"
	}
	return end
}

// Close implements Source: a session closes with its program.
func (r *runner) Close() {}
