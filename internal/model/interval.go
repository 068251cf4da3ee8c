package model

// Interval says what happened since it was last asked for. InUse, Cached and Cooling are bytes, all three of the moment
// when most was in use, from the last time on to now; the rest are counts. Its fields are those of a recording's
// summaries.
type Interval struct {
	InUse, Cached, Cooling          uint64
	Hits, Misses, Creates, Releases uint64
	Lost                            uint64 // events
}

// since is what an interval begins with.
type since struct {
	most   Sample   // the most in use since then
	before Interval // the counts then
}

// Interval returns what happened in all processes since the last call, or since the first event. It costs O(1).
func (m *Model) Interval() Interval { return m.since.next(&m.ledger, m.lost) }

// ProcessInterval returns what happened in one process since the last call for it, false when the model does not know
// the process. It costs O(1).
func (m *Model) ProcessInterval(number uint32) (Interval, bool) {
	p := m.numbers[number]
	if p == nil {
		return Interval{}, false
	}
	return p.since.next(&p.ledger, p.lost), true
}

// next ends an interval and begins the next with the gauges as they are now: in use rises by creates alone, so the most
// is at the beginning or behind one of them.
func (s *since) next(l *ledger, lost uint64) Interval {
	s.most.raise(l) // what comes late or in the wrong order may raise it, too
	c := &l.counters
	now := Interval{
		InUse: s.most.InUse, Cached: s.most.Cached, Cooling: s.most.Cooling,
		Hits: c.Hits, Misses: c.Misses, Creates: c.Creates, Releases: c.Releases, Lost: lost,
	}
	i, b := now, &s.before
	i.Hits -= b.Hits
	i.Misses -= b.Misses
	i.Creates -= b.Creates
	i.Releases -= b.Releases
	i.Lost -= b.Lost
	s.before, s.most = now, Sample{InUse: gauge(l.inUse), Cached: l.free(), Cooling: gauge(l.cooling)}
	return i
}
