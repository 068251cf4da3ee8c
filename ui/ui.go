// Package ui is the dashboard: a Bubble Tea program over the latest snapshot of the model. It computes nothing from
// events and reads no clock but the tick; what it wants done (a limit, a signal) it says through [Options].
//
// A frame is drawn on a grid of cells. Panes get a region of it and cannot write outside, so no line is ever wider
// than the terminal, whatever the numbers and names are.
package ui

import (
	"io"
	"os"
	"time"

	"codeberg.org/gpumemtop/gpumemtop/internal/model"
)

// Options connect the dashboard with the rest. Every function may be nil; those that are set must return at once,
// because all but Source, App and Output are called between two frames.
type Options struct {
	// Source returns the latest published snapshot. It is called once per refresh, from one goroutine at a time,
	// and may return nil until there is one.
	Source func() *model.Snapshot
	// App returns the state of the wrapped program itself, which may make no OpenCL call. Without it the state is
	// that of the snapshot's processes. Called like Source.
	App func() App
	// Output returns what the program printed since a position, oldest first, and the position to ask from next
	// time. The first position is 0. Called like Source.
	Output func(since uint64) (lines []OutputLine, next uint64)
	// Curve returns the hit rate by limit of cached bytes as far as it is known. Called like Source, of a recording only
	// while it is looked at; nil: nobody works it out.
	Curve func() *Curve
	// Moment makes the dashboard one of a recording, with a time cursor in the place of all that needs a live program:
	// it returns what is known of a time, LastMoment the end. Unlike Source it is called between two frames, also from
	// the keys that move the cursor, which is at At first. Source, App and Output are not asked then.
	Moment func(at uint64) Moment
	At     uint64
	// Attached says that the programs were not started here, but run, or ran, already: nothing here changes them, what
	// they print is on their own terminals, and quitting lets go of them.
	Attached bool

	// SetLimit asks for a limit, its value as the allocator takes it. The answer shows up in a later snapshot.
	SetLimit func(name, value string)
	// SetPolicy asks for another policy, one of Policies; nil: there is none to choose. An error says why that is not even
	// asked for, else the answer shows up in a later snapshot.
	SetPolicy func(name string) error
	Policies  []Policy
	// Adopt asks for the configuration of a ghost, by its name; nil: that is not possible. The rest is as for SetPolicy.
	Adopt func(name string) error
	// Signal sends a signal to the program.
	Signal func(os.Signal)
	// Detach and Terminate carry out an answer of the quit dialog; the dashboard closes afterwards. Where both are
	// nil there is nothing to ask, and q quits at once.
	Detach, Terminate func()
	// Resize tells the size in cells that the program's own terminal should have.
	Resize func(cols, rows int)

	Input    io.Reader // keys; nil: none
	Terminal *os.File  // the terminal to draw on

	Refresh     time.Duration // between two looks at Source; 0: 100 ms
	ASCII       bool          // draw with ASCII only
	NoColor     bool          // no SGR sequences at all
	Light       bool          // colours for a light background
	ReadOnly    bool          // limits and the policy can be seen but not changed
	ExitWithApp bool          // close when the program has ended
}

// App is the wrapped program.
type App struct {
	PID    int
	State  model.State
	Status int // exit status, or signal number when Signaled; -1 when unknown
}

// Policy is one that can be chosen.
type Policy struct{ Name, Summary string }

// Curve is the hit rate by limit of cached bytes, of all processes together. Rates are 0…1, limits bytes in each process.
type Curve struct {
	Why      string       // there is none yet; empty: there is one
	Whole    bool         // it is of a whole recording, at its Exact points
	Policy   string       // that it is of; where a program has no pool, one that it could have
	Limits   bool         // the policy limits what it caches: without there is no curve
	Points   []CurvePoint // ascending from limit 0; between two of them the lower one holds
	Exact    []CurvePoint // on it: what the policy does, not an estimate
	Error    float64      // how far the curve is off elsewhere, on average; where Exact is empty nobody knows
	Knee     CurvePoint   // up to there memory gains more than on average
	Enough   CurvePoint   // from there on 99 % of the most that there is
	Requests uint64       // that it is of, the latest
	Missed   uint64       // events that came too fast
	LeftOut  bool         // there are more processes than it is of
}

// CurvePoint is the hit rate at a limit.
type CurvePoint struct {
	Limit   uint64
	HitRate float64
}

// OutputLine is one line that the program printed, without its line end. It may hold anything.
type OutputLine struct {
	Text   string
	Stderr bool
}

// Result says how the dashboard was left.
type Result int

// The ways to leave the dashboard.
const (
	Quit       Result = iota // by q, with nothing left running
	Detached                 // the program, or what was attached to, goes on without the dashboard
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
