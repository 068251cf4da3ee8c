package stats

// LongUnused is memory in use that no command has used for long, though others ran: that of the call site with the most of it.
type LongUnused struct {
	Site           string // empty: there is none
	Bytes, Buffers uint64
	NS             uint64 // from the end of the latest command on any of it to the end of the latest command of all
}

const (
	unusedLookNS     = 1_000_000_000 // between two looks
	unusedLeastNS    = 1_000_000_000 // a younger use is recent, however short the run is
	unusedObjectsMax = 4096          // processes with more live objects are left out
)

// unusedMemory is what the latest look found.
type unusedMemory struct {
	looked uint64
	found  LongUnused
}

// findLongUnused looks for memory that has not been used for as long as a block must be cached to be idle.
func (m *Model) findLongUnused(now uint64) LongUnused {
	if u := &m.unused; u.looked > 0 && now < u.looked+unusedLookNS {
		return u.found
	}
	bySite := map[string]*LongUnused{}
	for _, p := range m.processes.list {
		if !p.gone && !p.heap.Left && p.heap.Live <= unusedObjectsMax {
			m.addLongUnused(p, bySite)
		}
	}
	m.unused = unusedMemory{looked: now}
	for _, u := range bySite {
		if most := &m.unused.found; u.Bytes > most.Bytes || u.Bytes == most.Bytes && u.Site < most.Site {
			*most = *u
		}
	}
	return m.unused.found
}

func (m *Model) addLongUnused(p *process, bySite map[string]*LongUnused) {
	last := p.heap.LastCommandEnd()
	before := min(m.clock.latestTimeForIdle(last), last-min(unusedLeastNS, last))
	for _, o := range p.heap.Objects() {
		since, known := p.heap.ObjectIdleSince(o)
		if !o.Owns || !known || since >= before {
			continue
		}
		name := m.sites.creatorOf(o).finalSite().site.siteTitle()
		u := bySite[name]
		if u == nil {
			u = &LongUnused{Site: name, NS: last - since}
			bySite[name] = u
		}
		u.Bytes += o.Granted
		u.Buffers++
		u.NS = min(u.NS, last-since)
	}
}
