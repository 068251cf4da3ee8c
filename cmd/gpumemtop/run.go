package main

import (
	"os"
	"sync/atomic"

	"codeberg.org/gpumemtop/gpumemtop/internal/analysis"
	"codeberg.org/gpumemtop/gpumemtop/internal/export"
	"codeberg.org/gpumemtop/gpumemtop/internal/model"
	"codeberg.org/gpumemtop/gpumemtop/internal/payload"
	"codeberg.org/gpumemtop/gpumemtop/internal/session"
	"codeberg.org/gpumemtop/gpumemtop/internal/symbol"
)

// runner is one run of a program.
type runner struct {
	job
	path    string // of the program
	session *session.Session
	screen  *screen // nil without a dashboard
	pilot   *pilot  // nil where the policy stays, unless somebody changes it
	auto    atomic.Pointer[model.Auto]
}

// run runs a program to its end and reports. Its status comes back as an ended.
func run(c *config, command []string, dashboard bool) error {
	r := &runner{job: job{config: c, command: command, name: command[0]}}
	if err := r.check(); err != nil {
		return err
	}
	if dashboard {
		r.screen = newScreen(c)
	}
	defer r.screen.close()
	if err := r.checkGhosts(r.screen != nil); err != nil {
		return err
	}
	if err := r.start(); err != nil {
		return err
	}
	r.steer()
	if r.screen != nil {
		r.notes.hold()
		r.showDashboard()
		r.curve.Leave()
		r.notes.release()
	}
	result, err := r.session.Wait()
	r.landed()
	if err != nil {
		r.notes.add(err.Error())
	}
	r.report(result)
	return ended{result.Status}
}

// check finds everything that is wrong before anything is touched.
func (r *runner) check() error {
	var err error
	if r.plan, err = newPlan(r.config); err != nil {
		return err
	}
	if r.path, err = session.Find(r.command[0]); err != nil {
		return err
	}
	if r.plan.ungated {
		r.notes.add("gating is off: buffers are reused while commands still use them, and results may be wrong")
	}
	return r.checkFiles()
}

func (r *runner) start() error {
	r.model = model.New(model.Options{
		Program: r.command[0], Arguments: r.command[1:], Policy: r.plan.policy.Name(),
		Limits: limits(r.plan.policy), LimitsOf: analysis.DefaultLimits, Started: session.Now(),
	})
	if r.plan.auto {
		r.auto.Store(&model.Auto{Steers: true})
		r.model.SetAuto(r.auto.Load)
	}
	options := session.Options{
		Command: append([]string{r.path}, r.command[1:]...), Name: r.command[0],
		Config: r.plan.config(r.recording != nil || r.trace != ""),
		Shim:   payload.Shim, Core: payload.Core,
		Model: r.model, Resolve: symbol.New().Frames,
		Warn: r.notes.add,
	}
	if r.screen != nil {
		options.Capture, options.Cols, options.Rows = true, r.screen.cols, r.screen.rows
	}
	if err := r.record(); err != nil {
		return err
	}
	if len(r.outlets) > 0 {
		options.Recorder, options.Recording = r.outlets, r.recording.String()
	}
	var err error
	if options.Tap, err = r.raise(r.screen != nil); err != nil {
		r.discard()
		return err
	}
	if r.session, err = session.Start(options); err != nil {
		r.discard()
	}
	return err
}

// report completes the recording and says what there is to say about the run.
func (r *runner) report(result session.Result) {
	broken := r.end(&result)
	r.summarize(result)
	if result.Status.Code == statusNotFound && len(result.Snapshot.Processes) == 0 && session.NeedsOpenCL(r.path) {
		r.notes.add("the program needs libOpenCL.so.1: if that is missing, install an ICD loader (Debian: ocl-icd-libopencl1)")
	}
	if text := ghostNote(result.Snapshot.Ghosts); text != "" {
		r.notes.add(text)
	}
	r.told(broken)
}

// summarize writes the figures for people, and for programs if that is wanted.
func (r *runner) summarize(result session.Result) {
	if result.OpenLine {
		_, _ = os.Stderr.WriteString("\n")
	}
	summary := export.NewSummary(r.shown(result.Snapshot))
	summary.Exit = exitOf(result.Status)
	r.write(&summary)
}

func exitOf(status session.Status) export.Exit {
	if status.Signal != 0 {
		return export.Exit{Status: -1, Signal: status.Signal}
	}
	return export.Exit{Status: status.Code}
}
