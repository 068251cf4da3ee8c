package ui

import (
	"testing"
	"time"

	tea "charm.land/bubbletea/v2"
)

func clickAt(d *dashboard, x, y int, button tea.MouseButton) {
	m := tea.Mouse{X: x, Y: y, Button: button}
	if button == tea.MouseLeft {
		d.Update(tea.MouseClickMsg(m))
		return
	}
	d.Update(tea.MouseWheelMsg(m))
}

// TestMouse: the wheel moves in the pane under it, a click chooses a row, sorts by a column, or shows a time.
func TestMouse(t *testing.T) {
	d := newTest((&calls{}).options(), 140, 42, later(0))
	run(d, pastStep, 10*time.Second)
	_ = screen(d)
	var tags, memory placed
	for _, p := range d.arrange().panes {
		switch p.pane {
		case paneTags:
			tags = p
		case paneMemory:
			memory = p
		default:
		}
	}
	clickAt(d, tags.x+5, tags.y+4, tea.MouseLeft)
	if got := d.tags.current(d.shown()).Name; got != "main.c:140 upload" {
		t.Errorf("the click chose %s", got)
	}
	clickAt(d, tags.x+5, tags.y+4, tea.MouseWheelDown)
	if d.tags.at != 2+wheelStep {
		t.Errorf("the wheel moved to row %d", d.tags.at)
	}
	clickAt(d, tags.x+5, tags.y+1, tea.MouseLeft)
	shows(t, d, "TAG (call site)↑")
	clickAt(d, tags.x+5, tags.y+1, tea.MouseLeft)
	shows(t, d, "TAG (call site)↓")
	clickAt(d, tags.x+tags.w-4, tags.y+1, tea.MouseLeft) // the trend: it has no order
	shows(t, d, "TAG (call site)↓")
	clickAt(d, memory.x+memory.w-4, memory.y+3, tea.MouseLeft)
	shows(t, d, "FROZEN")
	if d.focus != paneMemory {
		t.Errorf("the focus is on %d", d.focus)
	}
	press(d, "esc", "?")
	clickAt(d, 5, 5, tea.MouseWheelDown)
	if d.help.top != 1 {
		t.Errorf("the help is at %d", d.help.top)
	}
	press(d, "esc", "/")
	clickAt(d, tags.x+5, tags.y+4, tea.MouseLeft)
	if d.tags.at != 2+wheelStep && d.prompt == nil {
		t.Error("a click acts under a prompt")
	}
	r := sampleTape()
	v := newViewTest(r, 140, 42, r.moment.Until)
	clickAt(v, memory.x+memory.w/2, memory.y+3, tea.MouseLeft)
	if at := r.last(); at <= r.moment.From+20e9 || at >= r.moment.Until-20e9 {
		t.Errorf("the click shows %d s", (at-r.moment.From)/1e9)
	}
	for x := range 142 { // nothing to choose there does no harm
		clickAt(v, x, x%43, tea.MouseLeft)
		clickAt(v, x, x%43, tea.MouseWheelUp)
	}
}
