package main

import (
	"fmt"
	"os"
	"sync"
	"time"

	"codeberg.org/gpumemtop/gpumemtop/internal/export"
	"codeberg.org/gpumemtop/gpumemtop/internal/lab"
	"codeberg.org/gpumemtop/gpumemtop/internal/lab/curve"
	"codeberg.org/gpumemtop/gpumemtop/internal/lab/ghost"
	"codeberg.org/gpumemtop/gpumemtop/internal/lab/live"
	"codeberg.org/gpumemtop/gpumemtop/internal/model"
	"codeberg.org/gpumemtop/gpumemtop/internal/session"
	"codeberg.org/gpumemtop/gpumemtop/internal/trace"
	"codeberg.org/gpumemtop/gpumemtop/internal/wire"
)

// job is what commands that watch programs have in common: what is to be done, and what it is recorded into.
type job struct {
	config    *config
	plan      *plan
	command   []string // of the program; empty when no single one is meant
	name      string   // %n in the names of files
	attached  bool     // to programs that run already
	model     *model.Model
	recording fileName            // nil when there is no recording
	trace     string              // path, empty when there is no Chrome trace
	outlets   tee                 // what of these there is
	partial   bool                // some file is not written, or not wholly; it was said which
	rivals    []lab.Configuration // that are played beside the run; nil: none are
	ghosts    *ghost.Ghosts       // nil: there are none
	curve     *curve.Live         // for the dashboard
	resting   bool                // nobody looks at them but auto: they begin when there is something to gain
	tap       *live.Tap           // what tells them of the run
	notes     notes
}

// program and arguments are those of the command, as far as there is one.
func (j *job) program() string {
	if len(j.command) == 0 {
		return ""
	}
	return j.command[0]
}

func (j *job) arguments() []string {
	if len(j.command) == 0 {
		return nil
	}
	return j.command[1:]
}

// record creates what the run is recorded into.
func (j *job) record() error {
	header := j.header()
	switch {
	case j.recording == nil:
	case j.recording.single():
		path := j.recording.String()
		writer, err := trace.Create(path, header, j.config.force)
		if err != nil {
			return err
		}
		writer.Summarize(func() trace.Summary { return trace.Summary(j.model.Interval()) })
		j.outlets = append(j.outlets, &outlet{Recorder: writer, path: path, what: "recording"})
	default:
		j.outlets = append(j.outlets, &outlet{Recorder: newSplit(j.recording, header, j.model, j.config.force, j.notes.add)})
	}
	if j.trace == "" {
		return nil
	}
	live, err := export.CreateLive(j.trace, export.FactsOf(header), j.config.force)
	if err != nil {
		j.discard()
		return err
	}
	j.outlets = append(j.outlets, &outlet{Recorder: live, path: j.trace, what: "trace"})
	return nil
}

// header says what is recorded.
func (j *job) header() trace.Header {
	host, err := os.Hostname()
	if err != nil {
		host = ""
	}
	values := trace.Limits{}
	for _, l := range j.plan.policy.Limits() {
		values[l.Name] = l.Text
	}
	var environment map[string]string
	if !j.attached { // ours says nothing of theirs
		environment = recorded(os.Environ())
	}
	return trace.Header{
		Created: time.Now(), ClockNS: session.Now(), Host: host, Program: j.program(), Arguments: j.arguments(),
		Policy: j.plan.policy.Name(), Limits: values, Auto: j.plan.auto, Tags: j.plan.tags.String(),
		Scrub: scrubText(j.plan.scrub), DeviceMemory: j.plan.memory, Environment: environment,
		Attached: j.attached,
	}
}

// discard removes what nothing was recorded into: it would only be in the way.
func (j *job) discard() {
	_ = j.close(trace.Footer{Status: -1})
	for _, o := range j.outlets {
		if o.path != "" {
			_ = os.Remove(o.path)
		}
	}
}

// end completes the files of a program that has ended, as close does.
func (j *job) end(result *session.Result) []string {
	exit := exitOf(result.Status)
	return j.close(trace.Footer{Lost: result.Snapshot.Lost, EndedNS: result.Snapshot.Time, Status: exit.Status, Signal: exit.Signal})
}

// close completes the files and says which of them break off, and which files there are for each process.
func (j *job) close(footer trace.Footer) []string {
	var notes []string
	for _, o := range j.outlets {
		var err error
		switch file := o.Recorder.(type) {
		case *trace.Writer:
			err = file.Close(footer)
		case *export.Live:
			err = file.Close()
		case *split:
			file.close()
			j.partial = j.partial || file.failed > 0
			notes = append(notes, file.said()...)
		}
		if err != nil {
			j.partial = true
			notes = append(notes, fmt.Sprintf("%v: the %s ends there, what is in %s is whole", err, o.what, o.path))
		}
	}
	return notes
}

// scrubText is what a recording's header says of scrubbing: nothing when there was none.
func scrubText(scrub wire.Scrub) string {
	if scrub == wire.ScrubNone {
		return ""
	}
	return scrub.String()
}

// shown is the last snapshot as summaries show it.
func (j *job) shown(last *model.Snapshot) *model.Snapshot {
	snapshot := *last
	if !j.recording.single() {
		snapshot.Recording.Path = "" // no file has that name
	}
	return &snapshot
}

// write writes the figures for people, and for programs if that is wanted.
func (j *job) write(summary *export.Summary) {
	_ = summary.WriteText(os.Stderr) // perhaps nobody reads; the file is written all the same
	if j.config.summary == "" {
		return
	}
	if err := export.WriteFile(j.config.summary, j.config.force, summary.WriteJSON); err != nil {
		j.partial = true
		j.notes.add(err.Error())
	}
}

// told says where the trace is, and what there is to say about the files.
func (j *job) told(broken []string) {
	if j.trace != "" {
		j.notes.add("the trace is in " + j.trace + ": open it at https://ui.perfetto.dev")
	}
	for _, text := range broken {
		j.notes.add(text)
	}
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
