package ui

import (
	"slices"
	"testing"
	"time"
)

// TestStateIsKept: layout, panes, order and refresh rate are as the user left them, and kept only when the user changes them.
func TestStateIsKept(t *testing.T) {
	var kept []State
	open := func(o Options, s State) *dashboard {
		o.State, o.Keep = s, func(s State) { kept = append(kept, s) }
		return newTest(o, 120, 36, sampleSnapshot())
	}
	d := open((&calls{}).options(), State{})
	press(d, "j", "?", "esc", "L", "L", "v", "5", "enter", "-", "s", "S")
	clickOn(t, d, "CACHED")
	want := State{Layout: "all panes", Hidden: "157", Sort: "CACHED", Refresh: 500 * time.Millisecond}
	if got := kept[len(kept)-1]; got != want || len(kept) != 7 {
		t.Errorf("kept %+v", kept)
	}
	d = open((&calls{}).options(), want)
	shows(t, d, "CACHED↓")
	if got := d.visiblePanes(); !slices.Equal(got, []paneID{paneRates, paneTags, paneFree, paneLimits}) {
		t.Errorf("it opens with %v", got)
	}
	kept = nil
	press(d, "j")
	o := (&calls{}).options()
	o.Attached = true
	attached := open(o, want)
	hides(t, attached, "CACHED")
	press(attached, "j")
	d = open((&calls{}).options(), State{Layout: "of a later version", Hidden: "39x", Sort: "SPEED"})
	shows(t, d, "HOLDS↓", "⁵ misses")
	press(d, "j")
	if len(kept) > 0 {
		t.Errorf("kept without a change: %+v", kept)
	}
}
