package ui

import (
	"fmt"
	"runtime/debug"
	"slices"
	"time"

	tea "charm.land/bubbletea/v2"

	"codeberg.org/gpumemtop/gpumemtop/internal/analysis"
	"codeberg.org/gpumemtop/gpumemtop/internal/stats"
	"codeberg.org/gpumemtop/gpumemtop/internal/view"
)

// overlay is a screen that covers the panes.
type overlay uint8

const (
	noOverlay overlay = iota
	helpOverlay
	quitOverlay
	paletteOverlay
)

// dashboard is Bubble Tea's model: what is shown, and the panes that show it. Update changes the model, View draws it. Both
// run in Bubble Tea's loop.
type dashboard struct {
	o     Options
	mode  *mode
	theme *theme

	w, h       int
	now        time.Time       // of the latest tick
	live       *stats.Snapshot // the latest
	frozen     *stats.Snapshot // shown instead while set
	app        App
	hasApp     bool
	cursor     timeCursor
	past       past
	baseline   baseline
	frozenLive *stats.Snapshot // the latest when the screen was frozen
	marks      []userMark
	event      uint64 // the time of the event that the user went to; 0: none
	span       uint64 // that charts cover, ns; 0: all

	panes       [paneCount]pane
	tags        tagsPane
	free        freePane
	limits      limitsPane
	output      outputPane
	processes   processesPane
	policies    policiesPane
	ghosts      ghostsPane
	curve       curvePane
	points      pointsPane
	ledger      ledger
	focus, zoom paneID
	preset      int             // of presets
	hidden      [paneCount]bool // of its panes
	refreshed   time.Duration   // the time between two frames that a key chose; 0: none
	kept        State           // what Options.Keep got last

	overlay     overlay
	help        help
	palette     palette
	filters     [paneCount]filter
	side        int     // columns of names and lines that are scrolled out at the left
	prompt      *prompt // nil: none
	note        note
	interrupts  int // presses of ctrl+c in a row
	interrupted time.Time
	suspended   bool // ctrl+z has stopped the program and gpumemtop
	typing      bool // keys go to the program
	pressed     int  // the column where the mouse's button went down

	result  Result
	leaving bool

	canvas *canvas
	dirty  bool
}

// note is a message that is shown for a while.
type note struct {
	text  string
	style style
	until time.Time
}

const noteTime = 6 * time.Second

func newDashboard(o Options, t *theme) *dashboard {
	if o.Refresh <= 0 {
		o.Refresh = 250 * time.Millisecond
	}
	d := &dashboard{o: o, mode: keymapMode(&o), theme: t, focus: paneTags, dirty: true, cursor: timeCursor{at: o.At}}
	d.cursor.d, d.help.d, d.palette.d = d, d, d
	base := basePane{d}
	d.ledger.d, d.ledger.undoing, d.limits.asked = d, map[string]*change{}, map[string]*limitRequest{}
	d.ledger.asked = map[string]analysis.Effect{}
	d.tags.d, d.free.basePane, d.limits.basePane, d.output.basePane = d, base, base, base
	d.processes.basePane, d.policies.basePane, d.curve.basePane, d.points.basePane, d.ghosts.basePane = base, base, base, base, base
	d.panes = [paneCount]pane{
		paneMemory: memoryPane{base}, paneRates: ratesPane{base}, paneTags: &d.tags, paneFree: &d.free,
		paneMisses: missesPane{base}, paneLimits: &d.limits, paneOutput: &d.output, paneProcesses: &d.processes,
		panePolicies: &d.policies, paneGhosts: &d.ghosts, paneCurve: &d.curve, paneFailures: &failuresPane{basePane: base},
		paneTransfers: &transfersPane{basePane: base}, paneObjects: &objectsPane{basePane: base}, paneHeap: &heapPane{basePane: base},
		panePoints: &d.points,
	}
	d.restoreState(o.State)
	return d
}

// Init starts the ticks.
func (d *dashboard) Init() tea.Cmd {
	if d.o.AskTheme {
		return tea.Batch(d.pollSources(0), tea.RequestBackgroundColor)
	}
	return d.pollSources(0)
}

// Update handles one message.
func (d *dashboard) Update(msg tea.Msg) (tea.Model, tea.Cmd) {
	switch msg := msg.(type) {
	case frameMsg:
		return d, d.showFrame(msg)
	case tea.KeyPressMsg:
		d.dirty = true
		defer d.saveStateIfChanged()
		return d, d.handleKey(msg)
	case tea.PasteMsg:
		d.dirty = true
		d.pasteText(msg.Content)
	case tea.MouseClickMsg:
		if msg.Button == tea.MouseLeft {
			d.dirty, d.pressed = true, msg.X
			defer d.saveStateIfChanged()
			return d, d.clickAt(msg.X, msg.Y)
		}
	case tea.MouseReleaseMsg:
		d.dirty = true
		d.showDraggedTime(d.pressed, msg.X, msg.Y)
	case tea.MouseWheelMsg:
		if turn, is := map[tea.MouseButton]motion{tea.MouseWheelUp: moveUp, tea.MouseWheelDown: moveDown}[msg.Button]; is {
			d.dirty = true
			d.turnWheel(msg.X, msg.Y, turn)
		}
	case tea.WindowSizeMsg:
		d.resizeTo(msg.Width, msg.Height)
	case tea.BackgroundColorMsg:
		if d.o.AskTheme {
			d.o.Theme = d.o.Theme.themeForBackground(msg.IsDark())
			d.theme, d.dirty = themeOf(&d.o), true
		}
	case suspendMsg:
		return d, d.stopToShell()
	case resumeMsg:
		d.continueAfterStop()
	}
	return d, nil
}

// View draws the frame again after a change, and returns the modes of the terminal. The painter writes the frame.
func (d *dashboard) View() tea.View {
	if d.dirty && !d.leaving {
		d.drawFrame()
		d.dirty = false
	}
	v := tea.View{Content: " ", AltScreen: true, WindowTitle: d.windowTitle()}
	if m := &d.cursor.moment; d.mode.recording && !m.Done {
		v.ProgressBar = tea.NewProgressBar(tea.ProgressBarDefault, int(100*m.Read))
	}
	if d.o.Mouse {
		v.MouseMode = tea.MouseModeCellMotion
	}
	return v
}

// frameMsg is what one tick found. The next tick is requested only after this one has been handled, so that ticks never
// pile up.
type frameMsg struct {
	now     time.Time
	snap    *stats.Snapshot
	app     App
	hasApp  bool
	lines   []view.OutputLine
	next    uint64
	curve   *view.Curve
	failure error
}

// pollSources waits, and then calls the sources of Options on another goroutine. A panic in a source becomes a failure.
func (d *dashboard) pollSources(wait time.Duration) tea.Cmd {
	o, from, curve := d.o, d.output.next, d.o.Curve != nil && (!d.mode.recording || d.zoom == paneCurve)
	return tea.Tick(wait, func(now time.Time) (msg tea.Msg) {
		defer func() {
			if v := recover(); v != nil {
				msg = frameMsg{now: now, failure: fmt.Errorf("read the session: panic: %v\n%s", v, debug.Stack())}
			}
		}()
		f := frameMsg{now: now, next: from}
		if curve {
			f.curve = o.Curve()
		}
		if o.Moment != nil {
			return f
		}
		if o.Source != nil {
			f.snap = o.Source()
		}
		if o.App != nil {
			f.app, f.hasApp = o.App(), true
		}
		if o.Output != nil {
			f.lines, f.next = o.Output(from)
		}
		return f
	})
}

// showFrame shows what a tick found.
func (d *dashboard) showFrame(f frameMsg) tea.Cmd {
	d.now = f.now
	if d.mode.recording {
		d.cursor.askForPlaceAgain()
	}
	if f.hasApp != d.hasApp || f.app != d.app {
		d.app, d.hasApp, d.dirty = f.app, f.hasApp, true
	}
	if d.app.FullScreen && d.o.Detach != nil && !d.hasProgramEnded() {
		d.o.Detach()
		return d.closeDashboard(Detached)
	}
	fresh := f.snap != nil && f.snap != d.live
	if fresh {
		d.live, d.dirty = f.snap, true
	}
	if d.live != nil {
		d.limits.update(d.live)
	}
	if fresh {
		d.tags.update(d.shownSnapshot())
		d.points.judgeSnapshot()
		d.past.keepMoment(d.live)
		d.ledger.measureLatestChange(d.live)
	}
	if d.live != nil {
		d.policies.update(d.live)
	}
	return d.updateWithoutSnapshot(f)
}

// updateWithoutSnapshot shows what does not depend on the snapshot, and asks for the next tick.
func (d *dashboard) updateWithoutSnapshot(f frameMsg) tea.Cmd {
	if d.output.update(f.lines, f.next) {
		d.dirty = true
	}
	if f.curve != nil {
		d.curve.curve, d.dirty = f.curve, d.dirty || d.zoom == paneCurve
	}
	if d.note.text != "" && d.now.After(d.note.until) {
		d.note, d.dirty = note{}, true
	}
	if d.hasProgramEnded() {
		if d.o.ExitWithApp {
			return d.closeDashboard(AppEnded)
		}
		if d.overlay == quitOverlay {
			d.overlay, d.dirty = noOverlay, true
		}
	}
	return d.pollSources(d.o.Refresh)
}

// shownSnapshot returns the snapshot on the screen, nil before there is one: of all processes, or of the chosen one.
func (d *dashboard) shownSnapshot() *stats.Snapshot {
	return d.processes.snapshotOfChosen(d.wholeSnapshot())
}

// wholeSnapshot returns the snapshot of all processes.
func (d *dashboard) wholeSnapshot() *stats.Snapshot {
	if d.frozen != nil {
		return d.baseline.countsSinceBaseline(d.frozen)
	}
	return d.baseline.countsSinceBaseline(d.live)
}

func (d *dashboard) toggleFreeze() {
	switch {
	case d.frozen != nil:
		d.showPresent()
	case d.live != nil:
		d.freezeAt(d.live)
	}
}

func (d *dashboard) resizeTo(w, h int) {
	w, h = max(0, min(w, maxSide)), max(0, min(h, maxSide))
	if w == d.w && h == d.h {
		return
	}
	d.w, d.h, d.canvas, d.dirty = w, h, nil, true
	if d.o.Resize != nil && w > 0 && h > 0 {
		d.o.Resize(max(1, w-2), h) // the frame of the output pane takes two columns
	}
}

// maxSide bounds the frame if a terminal claims an absurd size.
const maxSide = 2000

// sayMessage shows a message for a while.
func (d *dashboard) sayMessage(st style, text string) {
	d.note = note{text, st, d.now.Add(noteTime)}
	d.dirty = true
}

// closeDashboard closes the dashboard.
func (d *dashboard) closeDashboard(r Result) tea.Cmd {
	d.result, d.leaving = r, true
	return tea.Quit
}

// hasProgramEnded reports whether the program is over.
func (d *dashboard) hasProgramEnded() bool {
	switch {
	case d.mode.recording:
		return false
	case d.hasApp:
		return d.app.State != stats.Running
	case d.live == nil || len(d.live.Processes) == 0:
		return false
	}
	return !slices.ContainsFunc(d.live.Processes, func(p stats.Process) bool { return p.State == stats.Running })
}

// hasNoPool reports whether the programs have no pool.
func (d *dashboard) hasNoPool() bool { return d.live != nil && d.live.Policy == "none" }

// showPaneAlone shows one pane alone. If the pane is alone already, all panes come back.
func (d *dashboard) showPaneAlone(p paneID) {
	if d.zoom == p {
		d.zoom = noPane
		if !slices.Contains(d.visiblePanes(), d.focus) {
			d.focus = paneTags
		}
	} else {
		d.zoom, d.focus = p, p
	}
	d.output.back, d.free.top, d.free.site, d.side = 0, 0, false, 0
}

// focusNextPane moves the focus to the next pane on the screen. While a pane is alone, the next one takes its place; panes without
// a number stay.
func (d *dashboard) focusNextPane(step int) {
	if d.zoom.isUnnumbered() {
		return
	}
	if d.zoom != noPane {
		last := int(d.mode.lastPane)
		d.zoom = paneID((int(d.zoom)-1+step+last)%last + 1)
		d.focus = d.zoom
		return
	}
	if panes := d.visiblePanes(); len(panes) > 0 {
		at := max(0, slices.Index(panes, d.focus))
		d.focus = panes[(at+step+len(panes))%len(panes)]
	}
}
