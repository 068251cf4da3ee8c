package session

import "runtime/debug"

// Snapshots with 100,000 call sites are large, as is what naming these takes once, and what is known of as many buffers. With many
// of them garbage gets less memory, and none once hardly anything has come for a while.
const (
	many       = 20_000
	fewGarbage = 20 // percent of what is in use
	calmNS     = 2_000_000_000
	calmEvents = 1000
)

// garbage limits the memory of what is not used any more.
type garbage struct {
	limited bool
	events  uint64 // at that time
	since   uint64 // ns; 0: nothing has come since the last was given back
}

// limit is called now and then, with how many call sites or live buffers there are and how many events came so far.
func (g *garbage) limit(things, events, now uint64) {
	if things < many && !g.limited {
		return
	}
	if !g.limited {
		g.limited = true
		debug.SetGCPercent(fewGarbage)
	}
	switch {
	case events > g.events+calmEvents:
		g.events, g.since = events, now
	case g.since != 0 && now > g.since+calmNS:
		g.since = 0
		go debug.FreeOSMemory() // it takes a tenth of a second
	}
}
