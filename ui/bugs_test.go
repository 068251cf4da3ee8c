package ui

import (
	"strings"
	"testing"

	"codeberg.org/gpumemtop/gpumemtop/internal/stats"
	"codeberg.org/gpumemtop/gpumemtop/internal/testkit/racetest"
)

// TestSignalsOfRecordings: a recording has the status of a program as shells write it.
func TestSignalsOfRecordings(t *testing.T) {
	r := sampleRecording()
	p := &r.moment.Shown.Processes[0]
	p.Status = 130
	d := newViewTest(r, 120, 36, r.moment.Until)
	shows(t, d, "✗ SIGINT")
	p.Orderly = true
	d = newViewTest(r, 120, 36, r.moment.Until)
	shows(t, d, "✗ EXITED 130")
}

// TestGhostsScroll: where not all ghosts fit, the keys show the others, and enter leads nowhere.
func TestGhostsScroll(t *testing.T) {
	d := newTest((&calls{}).options(), 60, 12, ghostSnapshot())
	press(d, "w")
	first := screen(d)
	press(d, "G")
	last := screen(d)
	rows := d.live.Ghosts.Rows
	if !strings.Contains(first, rows[0].Name) || strings.Contains(last, " 1   ") || !strings.Contains(last, rows[len(rows)-1].Name) {
		t.Errorf("first\n%s\nlast\n%s", first, last)
	}
	press(d, "g", "enter")
	if screen(d) != first {
		t.Errorf("g and enter lead to\n%s", screen(d))
	}
	press(d, "w", "c", "enter")
	if d.zoom == paneFree {
		t.Error("enter leads from the curve to a free list")
	}
}

// TestSmallTerminalOffersNothingUnseen: where there are no panes their keys are not offered, and say why they do nothing.
func TestSmallTerminalOffersNothingUnseen(t *testing.T) {
	d := newTest((&calls{}).options(), 40, 6, ghostSnapshot())
	hides(t, d, "sort", "pane", "zoom", "filter")
	shows(t, d, "q quit")
	for _, key := range []string{"s", "w", "c", "P", "o", "tab", "3", "enter", "!", "/", "t", "b", "n", "m"} {
		press(d, key)
		shows(t, d, "the terminal is too small")
		if d.zoom != noPane || d.prompt != nil || d.focus != paneTags || d.tags.sorted {
			t.Errorf("%s does something unseen", key)
		}
		d.note = note{}
	}
	d.resizeTo(120, 36)
	shows(t, d, "sort HOLDS", "pool by size")
}

// TestNothingAllocated: before anything was allocated nothing has a size.
func TestNothingAllocated(t *testing.T) {
	d := newTest((&calls{}).options(), 140, 42, &stats.Snapshot{Program: "true"})
	hides(t, d, "of 4", "   4┤", "│     0┤")
	shows(t, d, "the memory of the device is not known")
}

// TestHeaderIsSteady: the device stays whatever the policy is called and the recording grows to.
func TestHeaderIsSteady(t *testing.T) {
	racetest.Slow(t)
	for w := 60; w < 200; w++ {
		var shown [2]bool
		for i := range shown {
			s := sampleSnapshot()
			s.Policy, s.Recording.Bytes = "slab", 5
			if i == 1 {
				s.Policy, s.Recording.Bytes = "futhark-2018", 999*mib
			}
			shown[i] = strings.Contains(screen(newTest((&calls{}).options(), w, 42, s)), s.Device.Name)
		}
		if shown[0] != shown[1] {
			t.Errorf("%d columns: the device comes and goes", w)
		}
	}
}
