package ui

import (
	"testing"
	"time"

	"codeberg.org/gpumemtop/gpumemtop/internal/stats"
	"codeberg.org/gpumemtop/gpumemtop/internal/wire"
)

// more is the sample some seconds later, with more hits and misses of its first tag.
func more(seconds, hits, misses uint64) *stats.Snapshot {
	s := sampleSnapshot()
	s.Time += seconds * 1e9
	s.Totals.Hits, s.Totals.Misses = s.Totals.Hits+hits, s.Totals.Misses+misses
	s.Totals.MissReasons[wire.MissTooSmall] += misses
	s.Tags[0].Hits, s.Tags[0].Misses = s.Tags[0].Hits+hits, s.Tags[0].Misses+misses
	return s
}

// TestCountsAreSinceTheBaseline: counts are those since a moment, also of one process and in moments looked back to; what is
// in use stays.
func TestCountsAreSinceTheBaseline(t *testing.T) {
	d := newTest((&calls{}).options(), 160, 45, sampleSnapshot())
	shows(t, d, "hit 93.7%", "99.1")
	press(d, "B")
	shows(t, d, "SINCE 01:23", "hit —")
	d.Update(frameMsg{now: testStart.Add(10 * time.Second), snap: more(10, 30, 10)})
	shows(t, d, "hit 75.0%", "in use 1.43G", "too small 10", "SINCE 01:23")
	hides(t, d, "99.1", "4 811")
	press(d, "left", "left")
	shows(t, d, "FROZEN", "hit —")
	press(d, "esc", "B")
	shows(t, d, "hit 93.7%", "since the start again")
	hides(t, d, "SINCE")
}

func TestBaselineOfAProcess(t *testing.T) {
	s := sampleSnapshot()
	two := s.Processes[0]
	two.Number, two.PID, two.Totals.Hits, two.Totals.Misses, two.Tags = 2, 4712, 100, 100, s.Tags[:1]
	s.Processes = append(s.Processes, two)
	d := newTest((&calls{}).options(), 160, 45, s)
	press(d, "p", "p", "B")
	later := *s
	later.Time += 1e9
	later.Processes = []stats.Process{s.Processes[0], two}
	later.Processes[1].Totals.Hits = 109
	later.Processes[1].Totals.Misses = 101
	d.Update(frameMsg{now: testStart.Add(time.Second), snap: &later})
	shows(t, d, "process 2/2", "hit 90.0%")
}

// TestSinceTheChange: once something was changed, the tags have their hit rate since.
func TestSinceTheChange(t *testing.T) {
	d, _, _ := tuned(170, 45)
	hides(t, d, sinceTitle)
	press(d, "]")
	answered(d, 1, gib, time.Second, 0, 0)
	shows(t, d, sinceTitle)
	s := more(4, 1, 3)
	s.Limits[0].Value, s.Limits[0].Request = gib, stats.Request{Sequence: 1, AnsweredAt: s.Time}
	d.Update(frameMsg{now: testStart.Add(4 * time.Second), snap: s})
	shows(t, d, "99.1   25.0 ")
	press(d, "t")
	if _, text := d.tags.cellText(&tagColumns[9], d.tags.currentTag(s)); text != none {
		t.Errorf("a file has %s", text)
	}
}

// TestLossIsMarked: after lost events no figure of memory looks exact.
func TestLossIsMarked(t *testing.T) {
	s := sampleSnapshot()
	d := newTest((&calls{}).options(), 160, 45, s)
	hides(t, d, "≈768.0M")
	s = more(1, 0, 0)
	s.Lost = 12
	d.Update(frameMsg{now: testStart.Add(2 * time.Second), snap: s})
	shows(t, d, "≈768.0M", "≈12", "≈864.0M", "in use ≈1.43G ")
}
