package ui

import (
	"strings"
	"testing"
	"time"

	tea "charm.land/bubbletea/v2"

	"codeberg.org/gpumemtop/gpumemtop/internal/stats"
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

// TestWheelAndClicks: the wheel moves in the pane under it, a click chooses a row, sorts by a column, or shows a time.
func TestWheelAndClicks(t *testing.T) {
	d := newTest((&calls{}).options(), 140, 42, later(0))
	run(d, pastStep, 10*time.Second)
	_ = screen(d)
	var tags, memory placed
	for _, p := range d.arrangePanes().panes {
		switch p.pane {
		case paneTags:
			tags = p
		case paneMemory:
			memory = p
		default:
		}
	}
	clickAt(d, tags.x+5, tags.y+4, tea.MouseLeft)
	if got := d.tags.currentTag(d.shownSnapshot()).Name; got != "main.c:140 upload" {
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
	r := sampleRecording()
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
	for y, line := range strings.Split(d.canvas.plainText(), "\n") {
		if before, _, found := strings.Cut(line, text); found {
			return textWidth(before), y
		}
	}
	t.Fatalf("no %q in\n%s", text, d.canvas.plainText())
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
	r := sampleRecording()
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

// TestClicksInLists: a click chooses a row, a second one enters it; a word sets a limit of words, a column of the curve the
// limit.
func TestClicksInLists(t *testing.T) {
	var adopted []string
	d := ghostTest(120, 36, ghostSnapshot(), &adopted, nil)
	press(d, "w")
	clickOn(t, d, "pow2")
	shows(t, d, "▸ 3   pow2")
	clickOn(t, d, "pow2")
	if d.zoom != panePolicies || d.o.Policies[d.policies.at].Name != "pow2" {
		t.Errorf("the second click shows pane %d, policy %d", d.zoom, d.policies.at)
	}
	clickOn(t, d, "futhark ")
	if d.policies.at == 0 && d.o.Policies[0].Name != "futhark" {
		t.Errorf("policy %d", d.policies.at)
	}
	s := mistaken(sampleSnapshot())
	d = newTest((&calls{}).options(), 120, 36, s)
	clickOn(t, d, "double release at")
	if d.zoom != panePoints {
		t.Fatal("the verdict does not open the list")
	}
	first := d.points.at
	_ = d.View()
	clickAt(d, 20, d.arrangePanes().top+2, tea.MouseLeft)
	if d.points.at == first {
		t.Error("a click chooses no finding")
	}
	s = sampleSnapshot()
	s.Transfers.Directions[stats.ToDevice].Calls = 2
	s.Transfers.Sites = []stats.TransferSite{{Name: "a.c:1 send"}, {Name: "b.c:2 take"}}
	var c calls
	d = newTest(c.options(), 140, 42, s)
	press(d, "b")
	clickOn(t, d, "b.c:2 take")
	if d.panes[paneTransfers].(*transfersPane).at != 1 {
		t.Error("a click chooses no transfer")
	}
	press(d, "b")
	clickOn(t, d, "drain_order")
	clickOn(t, d, "slot")
	if len(c.limits) != 1 || c.limits[0] != "drain_order" || c.values[0] != "slot" {
		t.Errorf("the word asked for %v %v", c.limits, c.values)
	}
	press(d, "v")
	clickOn(t, d, "5 6 7")
	if !d.hidden[paneMisses] || d.prompt == nil {
		t.Error("a digit of the prompt does nothing")
	}
	curve := curveTest(120, 36, sampleCurve(), Braille)
	var of calls
	curve.o.SetLimit = of.options().SetLimit
	_ = curve.View()
	clickAt(curve, 100, 20, tea.MouseLeft)
	if len(of.limits) != 1 || of.limits[0] != stats.MaxCachedBytes {
		t.Errorf("the curve asked for %v", of.limits)
	}
}

// TestClicksOnEvents: a click on a sign shows its moment, in a live run and in a recording, also on the user's own marks.
func TestClicksOnEvents(t *testing.T) {
	r := sampleRecording()
	d := newViewTest(r, 140, 42, r.moment.Until)
	at := r.moment.Latest.Marks[0].Time
	_, y := place(t, d, "event │")
	x := strings.IndexAny(strings.Split(d.canvas.plainText(), "\n")[y], "Δ•■★")
	x = textWidth(strings.Split(d.canvas.plainText(), "\n")[y][:x])
	clickAt(d, x, y, tea.MouseLeft)
	if !strings.HasSuffix(d.note.text, "Δ max_cached_bytes = 512.0M") || r.last() != at {
		t.Errorf("%q at %d, want %d", d.note.text, r.last(), at)
	}
}

// TestNoMouseInScreen: it would hold esc until the next key.
func TestNoMouseInScreen(t *testing.T) {
	for _, test := range []struct {
		environ tea.EnvMsg
		want    tea.MouseMode
	}{
		{tea.EnvMsg{"TERM=screen", "STY=1.x"}, tea.MouseModeNone}, {tea.EnvMsg{"TERM=xterm", "STY=1.x"}, tea.MouseModeCellMotion},
		{tea.EnvMsg{"TERM=screen"}, tea.MouseModeCellMotion},
	} {
		g := &guarded{inner: newTest(Options{Mouse: true}, 120, 36, sampleSnapshot()), painter: &painter{}}
		if g.Update(test.environ); g.View().MouseMode != test.want {
			t.Errorf("%v: mouse mode %v", test.environ, g.View().MouseMode)
		}
	}
}
