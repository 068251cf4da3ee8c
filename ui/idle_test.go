package ui

import "testing"

// TestIdle: header, gauge, its legend and the table of call sites show what is idle, once there is some.
func TestIdle(t *testing.T) {
	hides(t, newTest((&calls{}).options(), 160, 45, sampleSnapshot()), "idle")
	s := sampleSnapshot()
	s.Totals.Cached, s.Totals.Idle, s.Tags[0].Idle = 4<<30, 3<<30, 77<<20
	shows(t, newTest((&calls{}).options(), 170, 45, s), "cached 4.00G", "idle 3.00G", "▒▂▂▂▂", "▂ idle 3.00G", "77.0M")
}
