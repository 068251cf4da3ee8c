package ui

import (
	"time"

	tea "github.com/charmbracelet/bubbletea"

	"codeberg.org/gpumemtop/gpumemtop/internal/model"
)

// pane numbers are the keys that zoom them.
type pane uint8

const (
	noPane pane = iota
	paneMemory
	paneRates
	paneTags
	paneFree
	paneMisses
	paneLimits
	paneOutput
	paneProcesses // has no number: it is there alone or not at all
	panePolicies  // the same
	paneGhosts    // the same
	paneCurve     // the same
)

// unnumbered reports whether a pane is there alone or not at all.
func (p pane) unnumbered() bool { return p >= paneProcesses }

// overlay is what lies over the panes.
type overlay uint8

const (
	noOverlay overlay = iota
	helpOverlay
	quitOverlay
)

// dashboard is the whole program. Update changes it, View draws it; both run in Bubble Tea's loop.
type dashboard struct {
	o     Options
	theme *theme
	keys  []command

	w, h   int
	now    time.Time       // of the latest tick
	live   *model.Snapshot // the latest
	frozen *model.Snapshot // shown instead while set
	app    App
	hasApp bool

	focus, zoom pane
	overlay     overlay
	helpTop     int
	tags        tagTable
	freeTop     int // first row of the free list
	limits      limitBook
	policies    policyBook
	curve       *Curve // nil: nothing is known of one
	output      outputLog
	one         oneProcess
	replay      replay
	note        note
	interrupts  int // presses of ctrl+c in a row
	interrupted time.Time

	result  Result
	leaving bool

	canvas *canvas
	frame  string // the last View, valid unless dirty
	dirty  bool
}

// note is a message for a while.
type note struct {
	text  string
	style style
	until time.Time
}

const noteTime = 6 * time.Second

func newDashboard(o Options, t *theme) *dashboard {
	if o.Refresh <= 0 {
		o.Refresh = 100 * time.Millisecond
	}
	return &dashboard{o: o, theme: t, keys: keymapOf(&o), focus: paneTags, tags: tagTable{poolless: o.Attached}, dirty: true,
		limits: newLimitBook(), replay: replay{at: o.At}}
}

// Init starts the ticks.
func (d *dashboard) Init() tea.Cmd { return d.look(0) }

// Update takes one message.
func (d *dashboard) Update(msg tea.Msg) (tea.Model, tea.Cmd) {
	switch msg := msg.(type) {
	case frameMsg:
		return d, d.takeFrame(msg)
	case tea.KeyMsg:
		d.dirty = true
		return d, d.takeKeys(msg)
	case tea.WindowSizeMsg:
		d.resize(msg.Width, msg.Height)
	}
	return d, nil
}

// View returns the frame, drawn anew only when something changed.
func (d *dashboard) View() string {
	if d.leaving {
		return ""
	}
	if d.dirty {
		d.frame = d.draw()
		d.dirty = false
	}
	return d.frame
}

// shown returns the snapshot on the screen, nil before there is one: of all processes, or of the chosen one.
func (d *dashboard) shown() *model.Snapshot { return d.one.take(d.whole()) }

// whole returns the snapshot of all processes.
func (d *dashboard) whole() *model.Snapshot {
	if d.frozen != nil {
		return d.frozen
	}
	return d.live
}

func (d *dashboard) resize(w, h int) {
	w, h = max(0, min(w, maxSide)), max(0, min(h, maxSide))
	if w == d.w && h == d.h {
		return
	}
	d.w, d.h, d.canvas, d.dirty = w, h, nil, true
	if d.o.Resize != nil && w > 0 && h > 0 {
		d.o.Resize(max(1, w-2), h) // the frame of the output pane takes two columns
	}
}

// maxSide bounds the frame where a terminal claims an absurd size.
const maxSide = 2000

func (d *dashboard) say(st style, text string) {
	d.note = note{text, st, d.now.Add(noteTime)}
	d.dirty = true
}

// leave closes the dashboard.
func (d *dashboard) leave(r Result) tea.Cmd {
	d.result, d.leaving = r, true
	return tea.Quit
}

// attached reports whether this is a live look at programs that were not started here.
func (d *dashboard) attached() bool { return d.o.Attached && !d.viewing() }

// ended reports whether the program is over.
func (d *dashboard) ended() bool {
	if d.viewing() {
		return false
	}
	if d.hasApp {
		return d.app.State != model.Running
	}
	if d.live == nil || len(d.live.Processes) == 0 {
		return false
	}
	for i := range d.live.Processes {
		if d.live.Processes[i].State == model.Running {
			return false
		}
	}
	return true
}
