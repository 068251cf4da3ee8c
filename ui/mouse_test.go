package ui

import (
	"strings"
	"testing"
	"time"

	tea "charm.land/bubbletea/v2"
)

func clickAt(d *dashboard, x, y int, button tea.MouseButton) {
	m := tea.Mouse{X: x, Y: y, Button: button}
	if button == tea.MouseLeft {
		d.Update(tea.MouseClickMsg(m))
		d.Update(tea.MouseReleaseMsg(m))
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
	v.leaving = false
	for x := range 142 { // nothing to choose there does no harm
		clickAt(v, x, x%43, tea.MouseLeft)
		clickAt(v, x, x%43, tea.MouseWheelUp)
	}
}

// place returns where a text is on the screen.
func place(t *testing.T, d *dashboard, text string) (x, y int) {
	t.Helper()
	_ = d.View()
	for y, line := range strings.Split(d.canvas.text(), "\n") {
		if before, _, found := strings.Cut(line, text); found {
			return width(before), y
		}
	}
	t.Fatalf("no %q in\n%s", text, d.canvas.text())
	return 0, 0
}

func clickOn(t *testing.T, d *dashboard, text string) {
	t.Helper()
	x, y := place(t, d, text)
	clickAt(d, x, y, tea.MouseLeft)
}

// TestEverythingCanBeClicked: keys of the last line and of titles, their labels, titles, sliders, entries of lists and dialogs.
func TestEverythingCanBeClicked(t *testing.T) {
	var c calls
	d := newTest(c.options(), 140, 42, sampleSnapshot())
	clickOn(t, d, "help")
	if d.overlay != helpOverlay {
		t.Error("the label help opens no help")
	}
	clickOn(t, d, " back")
	if d.overlay != noOverlay {
		t.Error("the label back does not close it")
	}
	clickOn(t, d, "⁵ misses")
	if d.zoom != paneMisses {
		t.Errorf("the title zooms %d", d.zoom)
	}
	clickOn(t, d, "⁵ misses")
	if d.zoom != noPane {
		t.Error("the title does not go back")
	}
	clickOn(t, d, "q quit")
	if d.overlay != quitOverlay {
		t.Fatal("q does not ask")
	}
	clickOn(t, d, "erminate")
	if c.ended != 1 {
		t.Error("the dialog's answer does nothing")
	}
	d.leaving, d.overlay = false, noOverlay
	press(d, ":")
	press(d, "freeze")
	x, y := place(t, d, "freeze the screen")
	clickAt(d, x, y, tea.MouseLeft)
	if d.frozen == nil {
		t.Error("the palette's entry does nothing")
	}
	press(d, "esc", "6")
	x, y = place(t, d, "━━")
	clickAt(d, x+1, y, tea.MouseLeft)
	if len(c.limits) != 1 {
		t.Errorf("the slider asked for %v", c.limits)
	}
	x, y = place(t, d, "━▸")
	clickAt(d, x+1, y, tea.MouseLeft)
	if len(c.limits) != 2 {
		t.Errorf("the slider's end asked for %v", c.limits)
	}
}

// TestWheelAndDragOnTheChart: the wheel zooms, and dragging selects a span of time.
func TestWheelAndDragOnTheChart(t *testing.T) {
	r := sampleTape()
	d := newViewTest(r, 140, 42, r.moment.Until)
	_ = d.View()
	for _, want := range []uint64{600e9, 60e9, 10e9, 10e9} {
		if clickAt(d, 20, 8, tea.MouseWheelUp); d.span != want {
			t.Errorf("the wheel shows %d s, want %d", d.span/1e9, want/1e9)
		}
	}
	for _, want := range []uint64{60e9, 600e9, 0, 0} {
		if clickAt(d, 20, 8, tea.MouseWheelDown); d.span != want {
			t.Errorf("back the wheel shows %d s, want %d", d.span/1e9, want/1e9)
		}
	}
	d.Update(tea.MouseClickMsg{X: 30, Y: 8, Button: tea.MouseLeft})
	d.Update(tea.MouseReleaseMsg{X: 50, Y: 9, Button: tea.MouseLeft})
	all := r.moment.Until - r.moment.From
	if d.span < all/10 || d.span > all/2 {
		t.Errorf("dragging shows %d s of %d", d.span/1e9, all/1e9)
	}
}
