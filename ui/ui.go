// Package ui is the dashboard: a Bubble Tea program that shows the latest published snapshot. It computes nothing from
// events and reads no clock except the tick. It acts through the functions in [Options].
//
// A frame is drawn on a grid of cells. Each [pane] gets a region of it and cannot write outside, so no line is ever wider
// than the terminal, whatever the numbers and names are.
package ui

import (
	"io"
	"os"
	"time"

	"github.com/charmbracelet/colorprofile"

	"codeberg.org/gpumemtop/gpumemtop/internal/analysis"
	"codeberg.org/gpumemtop/gpumemtop/internal/stats"
	"codeberg.org/gpumemtop/gpumemtop/internal/view"
)

// Options connect the dashboard with its surroundings. Every function may be nil. All must return at once, because all
// except Source, App, Output and Curve are called between two frames.
type Options struct {
	// Source returns the latest published snapshot, nil until there is one. It is called once per refresh, from one
	// goroutine at a time.
	Source func() *stats.Snapshot
	// App returns the state of the program itself, which need not make any OpenCL call. Without it, the state comes from
	// the processes in the snapshot. Called like Source.
	App func() App
	// Output returns what the program printed since a position, oldest first, and the next position to ask from. The first
	// position is 0. Called like Source.
	Output func(since uint64) (lines []view.OutputLine, next uint64)
	// Curve returns the hit-rate curve as far as it is known; nil: there is none. Called like Source, for a recording only
	// while the curve is on the screen.
	Curve func() *view.Curve
	// Moment makes this the dashboard of a recording, with a time cursor that starts at At: it returns the state at a
	// time, at the end for view.LastMoment. Source, App and Output are not called then. Moment is called between two
	// frames, also from the keys that move the cursor.
	Moment func(at uint64) view.Moment
	At     uint64
	// PostMortem writes a post-mortem; times begin at started, CLOCK_MONOTONIC ns. The first lines are what failed, the
	// verdict and what to try. Called between two frames; nil: none are written.
	PostMortem func(p *stats.PostMortem, started uint64) []PostMortemLine
	// Judge says what stands out; nil: nothing is judged.
	Judge Judge
	// Replay replays what findings name; nil: they name nothing.
	Replay analysis.Replay
	// WhatIf replays the values of a chosen limit; nil: none.
	WhatIf analysis.Replay
	// Viewer means that this is another terminal than the session's: leaving it changes nothing.
	Viewer bool
	// Attached means that the programs were not started here. Nothing here changes them, they print on their own
	// terminals, and quitting detaches from them.
	Attached bool

	// SetLimit requests a limit, its value in the allocator's form, and returns the sequence number under which a later
	// snapshot has the answer. An error says why nothing was requested.
	SetLimit func(name, value string) (sequence uint64, err error)
	// ParseLimit turns a value as people write it, "96M", into the allocator's form. The error says what is wrong.
	ParseLimit func(policy, name, value string) (string, error)
	// Save writes policy and limits to a new file, which --config takes.
	Save func(path, policy string, limits []stats.Limit) error
	// Keep keeps how the dashboard is, for the State of the next one.
	Keep func(State)
	// Write writes a new file. Export writes a snapshot to one, in the form that its name ends with.
	Write  func(path string, content []byte) error
	Export func(path string, s *stats.Snapshot) error
	// Record starts a recording, or stops the present one, and returns what to show; nil: that is not possible.
	Record func() (string, error)
	// Measure begins to measure what the pool is worth, or ends that, and returns what to show; nil: that is not possible.
	Measure func() (string, error)
	// SetPolicy requests one of Policies, like SetLimit; nil: there is no choice.
	SetPolicy func(name string) (sequence uint64, err error)
	Policies  []Policy
	// Adopt requests the configuration of a ghost, by its name; nil: that is not possible. Otherwise like SetPolicy.
	Adopt func(name string) (sequence uint64, err error)
	// Type gives the program keys; nil: it has no terminal here. An error says why it does not get them.
	Type func(keys []byte) error
	// Signal sends a signal to the program.
	Signal func(os.Signal)
	// Detach and Terminate carry out an answer of the quit dialog; the dashboard closes afterwards. If both are nil, there
	// is no dialog.
	Detach, Terminate func()
	// Resize sets the size of the program's own terminal, in cells.
	Resize func(cols, rows int)

	Input    io.Reader // keys; nil: none
	Terminal *os.File  // the terminal to draw on

	// JobControl says that a shell can continue us once we have stopped.
	JobControl bool

	Refresh     time.Duration // between two calls of Source; 0: 100 ms
	Charts      Charts
	Colors      colorprofile.Profile // that the terminal has
	Theme       Theme
	AskTheme    bool    // the terminal is asked whether it is dark or light; until it answers, it is as Theme
	Own         *Colors // of the user; nil: none
	Mouse       bool    // the wheel and clicks act
	Guide       bool    // a line says what to press next
	ReadOnly    bool    // show limits and policy without changing them
	ExitWithApp bool    // close when the program ends
	State       State   // as the last dashboard was left
}

// Judge says what stands out in a run, from one snapshot after the other. The dashboard shows what it says.
type Judge interface {
	// Update judges a snapshot and returns what stands out, the most important first. It is called once a second, and when a
	// mistake, a failure or the end of a process comes.
	Update(s *stats.Snapshot) []analysis.Diagnosis
	// Restart forgets what happened before a snapshot, as when a change has cured or caused it; nil: it forgets all.
	Restart(s *stats.Snapshot)
	// SetLatestChange says what the user changed last, once it is known what came of it; nil: nothing, or the change was taken
	// back.
	SetLatestChange(c *analysis.Change)
	// SetKnee says where the hit-rate curve has its knee; nil: that is not known.
	SetKnee(k *analysis.Knee)
	// Verdict sums up the last update, and says what was judged.
	Verdict() (v analysis.Verdict, judged string)
	// IsRowSuspicious reports whether a row stood out at the last update.
	IsRowSuspicious(t *stats.Tag) bool
	// RecentRequestsOfRow returns what a row requested of late, in hits and misses.
	RecentRequestsOfRow(t *stats.Tag) analysis.Requests
}

// Theme is how the dashboard is coloured.
type Theme uint8

// The themes.
const (
	Dark              Theme = iota // for a dark background
	Light                          // for a light background
	HighContrast                   // on black, the terminal's own colour, and bright ones for what matters
	Mono                           // no colours: bold, and reversed where others have a colour behind
	HighContrastLight              // as HighContrast, on white
	AnyBackground                  // readable on black and on white, for terminals that do not name their background
)

// App is the wrapped program.
type App struct {
	PID    int
	State  stats.State
	Status int // exit status, or signal number when Signaled; -1 when unknown
	// FullScreen: it draws on the whole screen, so that the dashboard detaches to let it.
	FullScreen bool
}

// Policy is a policy to choose from.
type Policy struct{ Name, Summary string }

// Result is how the user left the dashboard.
type Result int

// The ways to leave the dashboard.
const (
	Quit       Result = iota // with nothing left running
	Detached                 // the program goes on without the dashboard
	Terminated               // the program was asked to terminate
	AppEnded                 // the program ended, and ExitWithApp is set
)

// String returns the result in a word, for messages.
func (r Result) String() string {
	switch r {
	case Detached:
		return "detached"
	case Terminated:
		return "terminated"
	case AppEnded:
		return "program ended"
	}
	return "quit"
}
