package ui

import (
	"slices"
	"testing"
	"time"
)

// TestNoCellIsLeftOut: one key goes through the presets, and panes come and go by their numbers; no cell of the panes' area is
// left out.
func TestNoCellIsLeftOut(t *testing.T) {
	for _, size := range [][2]int{{60, 20}, {80, 24}, {120, 36}, {200, 60}} {
		d := newTest((&calls{}).options(), size[0], size[1], sampleSnapshot())
		usual := d.visiblePanes()
		for i := range presets {
			covered := 0
			l := d.arrangePanes()
			for _, p := range l.panes {
				covered += p.w * p.h
			}
			if want := d.w * (d.h - l.top - l.rowsBelowPanes()); covered != want {
				t.Errorf("%v, %s: %d cells, want %d", size, presets[i].name, covered, want)
			}
			checkFrame(t, frameText(d), size[0], size[1])
			press(d, "L")
		}
		if !slices.Equal(d.visiblePanes(), usual) {
			t.Errorf("after all presets: %v", d.visiblePanes())
		}
	}
	d := newTest((&calls{}).options(), 120, 36, sampleSnapshot())
	press(d, "L", "L", "L")
	shows(t, d, "layout: findings", "findings 0", "memory")
	hides(t, d, "misses ─")
	press(d, "v", "2", "7", "enter")
	if got := d.visiblePanes(); !slices.Equal(got, []paneID{paneMemory, paneRates, paneTags}) {
		t.Errorf("panes %v", got)
	}
	press(d, "v", "1", "2", "enter")
	if got := d.visiblePanes(); !slices.Equal(got, []paneID{paneTags}) {
		t.Errorf("panes %v", got)
	}
}

// TestRefreshOnKeys: + and - change how often the screen is drawn, within bounds.
func TestRefreshOnKeys(t *testing.T) {
	d := newTest((&calls{}).options(), 120, 36, sampleSnapshot())
	press(d, "-")
	shows(t, d, "the screen is drawn every 500ms")
	for range 9 {
		press(d, "+")
	}
	if d.o.Refresh != 50*time.Millisecond {
		t.Errorf("each %v", d.o.Refresh)
	}
}
