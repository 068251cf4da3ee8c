package ui

import (
	"fmt"
	"runtime/debug"
	"time"

	tea "github.com/charmbracelet/bubbletea"

	"codeberg.org/gpumemtop/gpumemtop/internal/model"
)

// frameMsg is what one tick found. The next tick is asked for only when this one has been taken, so that ticks
// never pile up.
type frameMsg struct {
	now     time.Time
	snap    *model.Snapshot
	app     App
	hasApp  bool
	lines   []OutputLine
	next    uint64
	curve   *Curve
	failure error
}

// look waits and then asks the sources. It runs beside the loop; a panic in a source comes back as a failure.
func (d *dashboard) look(wait time.Duration) tea.Cmd {
	o, from, curve := d.o, d.output.next, d.o.Curve != nil && (!d.viewing() || d.zoom == paneCurve)
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

// takeFrame shows what a tick found.
func (d *dashboard) takeFrame(f frameMsg) tea.Cmd {
	d.now = f.now
	if d.viewing() {
		d.takeMoment()
	}
	if f.snap != nil && f.snap != d.live {
		d.live, d.dirty = f.snap, true
		d.tags.take(d.shown())
	}
	if f.hasApp != d.hasApp || f.app != d.app {
		d.app, d.hasApp, d.dirty = f.app, f.hasApp, true
	}
	if d.live != nil {
		d.settleLimits()
		d.tellAuto()
	}
	if d.output.take(f.lines, f.next) {
		d.dirty = true
	}
	if f.curve != nil && d.zoom == paneCurve {
		d.dirty = true
	}
	if f.curve != nil {
		d.curve = f.curve
	}
	if d.note.text != "" && d.now.After(d.note.until) {
		d.note, d.dirty = note{}, true
	}
	if d.ended() {
		if d.o.ExitWithApp {
			return d.leave(AppEnded)
		}
		if d.overlay == quitOverlay {
			d.overlay, d.dirty = noOverlay, true
		}
	}
	return d.look(d.o.Refresh)
}

// settleLimits compares what was asked for with what the program says.
func (d *dashboard) settleLimits() {
	if text, st := d.policies.settle(d.live, d.ended()); text != "" {
		d.limits = newLimitBook() // the limits are other ones
		d.say(st, text)
	}
	if text, st := d.limits.settle(d.live); text != "" {
		d.say(st, text)
	}
}
