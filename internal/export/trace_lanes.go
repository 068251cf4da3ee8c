package export

// laneDepth bounds how deep slices of one thread nest: calls that call back into OpenCL are rarely two deep.
const laneDepth = 64

// lane keeps the slices of one thread properly nested. A create's start is its end less its duration, which reaches
// into the call before it by as much as the create did after the driver returned: such overlaps are cut.
type lane struct {
	thread uint32
	at     *place
	open   []span
	floor  uint64 // later slices do not start before this time
}

// span is a time from start to end, in ns.
type span struct{ start, end uint64 }

// nestingPart returns the part of a slice that nests with all slices before it. Slices come in the order of their events.
func (l *lane) nestingPart(s span) span {
	s.start = max(s.start, l.floor)
	s.end = max(s.end, s.start)
	for n := len(l.open); n > 0; n = len(l.open) {
		top := l.open[n-1]
		if top.end > s.start && s.end <= top.end {
			break
		}
		l.open = l.open[:n-1]
		s.start = max(s.start, top.end)
		s.end = max(s.end, s.start)
	}
	l.floor = s.start
	if len(l.open) == laneDepth {
		s.end = s.start
	}
	if s.end > s.start {
		l.open = append(l.open, s)
	}
	return s
}
