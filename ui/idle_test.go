package ui

import "testing"

// TestIdleMemoryIsShown: header, gauge and the table of call sites show what is idle.
func TestIdleMemoryIsShown(t *testing.T) {
	shows(t, newTest((&calls{}).options(), 160, 45, sampleSnapshot()), "idle 0")
	s := sampleSnapshot()
	s.Totals.Cached, s.Totals.Idle, s.Tags[0].Idle = 4<<30, 3<<30, 77<<20
	shows(t, newTest((&calls{}).options(), 170, 45, s), "cached 4.00G", "idle 3.00G", "▒▂▂▂▂", "▂ idle ░ cooling", "77.0M")
}
