package session

import (
	"testing"
	"time"
)

// On a busy machine the collector may not run for a while between reading the rings and making a snapshot. What happened
// meanwhile counts when it happened, not when it was read.
func TestEventsCountWhenTheyHappened(t *testing.T) {
	c, now := testCollector(&memoryRecorder{})
	target := newFakeTarget(t)
	c.addProcess(target.peer(7))
	start := *now
	at := func(tenths uint64) uint64 { return start + tenths*uint64(time.Second)/10 }
	*now = at(1)
	c.readRings()
	for n := range uint64(5) {
		target.put(0, create(at(n+1)+1, n+1), "")
	}
	*now = at(6)
	c.publishNameSampleAndFlush()
	c.readRings()
	*now = at(10)
	c.readRings()
	c.publishNameSampleAndFlush()
	s := c.model.PublishedSnapshot()
	if s.Time != at(10)-settleNS || s.Window.Creates != 5 {
		t.Errorf("at %d, %d creates in the last second", s.Time-start, s.Window.Creates)
	}
	for i, sample := range s.History {
		want := uint64(0)
		if i >= 1 && i < 6 {
			want = 1
		}
		if sample.Creates != want {
			t.Errorf("%d creates in slot %d, want %d", sample.Creates, i, want)
		}
	}
}
