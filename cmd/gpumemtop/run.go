package main

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"sync"

	"golang.org/x/sys/unix"

	"codeberg.org/gpumemtop/gpumemtop/internal/export"
	"codeberg.org/gpumemtop/gpumemtop/internal/model"
	"codeberg.org/gpumemtop/gpumemtop/internal/payload"
	"codeberg.org/gpumemtop/gpumemtop/internal/session"
	"codeberg.org/gpumemtop/gpumemtop/internal/symbol"
	"codeberg.org/gpumemtop/gpumemtop/internal/trace"
	"codeberg.org/gpumemtop/gpumemtop/internal/wire"
)

// runner is one run of a program.
type runner struct {
	config    *config
	plan      *plan
	command   []string
	path      string // of the program
	model     *model.Model
	recording fileName // nil when there is no recording
	trace     string   // path, empty when there is no Chrome trace
	outlets   tee      // what of these there is
	session   *session.Session
	screen    *screen // nil without a dashboard
	notes     notes
}

// run runs a program to its end and reports. Its status comes back as an ended.
func run(c *config, command []string, dashboard bool) error {
	r := &runner{config: c, command: command}
	if err := r.check(); err != nil {
		return err
	}
	if dashboard {
		r.screen = newScreen(c)
	}
	defer r.screen.close()
	if err := r.start(); err != nil {
		return err
	}
	if r.screen != nil {
		r.notes.hold()
		r.showDashboard()
		r.notes.release()
	}
	result, err := r.session.Wait()
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
	if err := writable("summary", r.config.summary, r.config.force); err != nil {
		return err
	}
	if err := r.checkFiles(); err != nil {
		return err
	}
	return r.checkDistinct()
}

// writable refuses a file that cannot be written or would be overwritten, before the program runs for hours. flag names
// it.
func writable(flag, path string, force bool) error {
	if path == "" {
		return nil
	}
	_, err := os.Stat(path)
	switch {
	case errors.Is(err, fs.ErrNotExist):
		err = unix.Access(filepath.Dir(path), unix.W_OK)
	case err == nil && !force:
		return fmt.Errorf("%s exists: use -f to overwrite it or --%s to name another", path, flag)
	case err == nil:
		err = unix.Access(path, unix.W_OK)
	}
	if err != nil {
		return fmt.Errorf("write %s %s: %w", flag, path, err)
	}
	return nil
}

func (r *runner) start() error {
	r.model = model.New(model.Options{
		Program: r.command[0], Arguments: r.command[1:], Policy: r.plan.policy.Name(),
		Limits: limits(r.plan.policy), Started: session.Now(),
	})
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
	if r.session, err = session.Start(options); err != nil {
		r.discard()
	}
	return err
}

// scrubText is what a recording's header says of scrubbing: nothing when there was none.
func scrubText(scrub wire.Scrub) string {
	if scrub == wire.ScrubNone {
		return ""
	}
	return scrub.String()
}

// report completes the recording and says what there is to say about the run.
func (r *runner) report(result session.Result) {
	exit := exitOf(result.Status)
	footer := trace.Footer{Lost: result.Snapshot.Lost, EndedNS: result.Snapshot.Time, Status: exit.Status, Signal: exit.Signal}
	broken := r.close(footer)
	r.summarize(result)
	if result.Status.Code == statusNotFound && len(result.Snapshot.Processes) == 0 && session.NeedsOpenCL(r.path) {
		r.notes.add("the program needs libOpenCL.so.1: if that is missing, install an ICD loader (Debian: ocl-icd-libopencl1)")
	}
	if r.trace != "" {
		r.notes.add("the trace is in " + r.trace + ": open it at https://ui.perfetto.dev")
	}
	for _, text := range broken {
		r.notes.add(text)
	}
}

// summarize writes the figures for people, and for programs if that is wanted.
func (r *runner) summarize(result session.Result) {
	if result.OpenLine {
		_, _ = os.Stderr.WriteString("\n")
	}
	snapshot := *result.Snapshot
	if !r.recording.single() {
		snapshot.Recording.Path = "" // no file has that name
	}
	summary := export.NewSummary(&snapshot)
	summary.Exit = exitOf(result.Status)
	_ = summary.WriteText(os.Stderr) // perhaps nobody reads; the file is written all the same
	if r.config.summary == "" {
		return
	}
	if err := export.WriteFile(r.config.summary, r.config.force, summary.WriteJSON); err != nil {
		r.notes.add(err.Error())
	}
}

func exitOf(status session.Status) export.Exit {
	if status.Signal != 0 {
		return export.Exit{Status: -1, Signal: status.Signal}
	}
	return export.Exit{Status: status.Code}
}

// notes are lines for the user. While a dashboard covers the terminal they wait.
type notes struct {
	mu      sync.Mutex
	held    bool
	waiting []string
}

func (n *notes) add(text string) {
	n.mu.Lock()
	defer n.mu.Unlock()
	if n.held {
		n.waiting = append(n.waiting, text)
		return
	}
	say(os.Stderr, text)
}

func (n *notes) hold() {
	n.mu.Lock()
	defer n.mu.Unlock()
	n.held = true
}

func (n *notes) release() {
	n.mu.Lock()
	defer n.mu.Unlock()
	for _, text := range n.waiting {
		say(os.Stderr, text)
	}
	n.held, n.waiting = false, nil
}
