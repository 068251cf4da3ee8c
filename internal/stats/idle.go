package stats

import "codeberg.org/gpumemtop/gpumemtop/internal/heap"

// A block is idle when it has been cached for this long and served no request, or for a share of the age of the run, 1/idleShare, if
// that is less. A run so young that this is less than the least has no idle memory.
const (
	cachedIdleNS    = 10_000_000_000
	cachedIdleLeast = 10_000_000
)

// latestTimeForIdle returns the time before which a block must have become cached to be idle now.
func (c *clock) latestTimeForIdle(now uint64) uint64 {
	long := min(cachedIdleNS, (now-min(c.started, now))/idleShare)
	if long < cachedIdleLeast {
		return 0
	}
	return now - long
}

// ages is the cached blocks in the order in which they became cached. The first of them are idle; time passing adds to these.
type ages struct {
	first, last int32 // places of blocks in the heap, -1 at the ends
	young       int32 // the first that is not known to be idle, -1: there is none
}

// age is a block's place in that order.
type age struct {
	older, younger int32
	since          uint64 // when it became cached
	queued, idle   bool
}

func newAges() ages { return ages{first: -1, last: -1, young: -1} }

// enqueueCached appends a block that is cached from a time on.
func (cs *callSites) enqueueCached(b *heap.Block, since uint64) {
	if b.State != heap.Cached {
		return
	}
	a, n := &cs.ages, &cs.blocks[b.Place]
	n.age = age{older: a.last, younger: -1, since: since, queued: true}
	if a.last < 0 {
		a.first = b.Place
	} else {
		cs.blocks[a.last].younger = b.Place
	}
	a.last = b.Place
	if a.young < 0 {
		a.young = b.Place
	}
}

// dequeueCached takes out a block that is no longer cached, after its call site has given it up.
func (cs *callSites) dequeueCached(b *heap.Block) {
	a, n := &cs.ages, &cs.blocks[b.Place]
	if !n.queued {
		return
	}
	if n.idle && n.site.process != nil {
		n.site.process.free.idle -= b.Size
	}
	if a.young == b.Place {
		a.young = n.younger
	}
	if n.older < 0 {
		a.first = n.younger
	} else {
		cs.blocks[n.older].younger = n.younger
	}
	if n.younger < 0 {
		a.last = n.older
	} else {
		cs.blocks[n.younger].older = n.older
	}
	n.age = age{}
}

// latestTimeForIdle is the same for blocks of the process: nothing becomes idle after its end.
func (p *process) latestTimeForIdle(now uint64, c *clock) uint64 {
	if p.gone {
		now = min(now, p.shown.Ended)
	}
	return c.latestTimeForIdle(now)
}

// findIdleBlocks finds the blocks that have become idle by a time. Each is looked at once while it is cached.
func (cs *callSites) findIdleBlocks(before uint64) {
	for a := &cs.ages; a.young >= 0; {
		b, n := cs.heap.BlockAt(a.young), &cs.blocks[a.young]
		if n.since >= before {
			return
		}
		a.young = n.younger
		if p := n.site.process; p != nil && p.gone && n.since >= p.latestTimeForIdle(cs.heap.Now(), cs.clock) {
			continue
		}
		n.idle = true
		s := n.site.finalSite()
		for f := range s.eachFigures {
			f.idle += int64(b.Size)
		}
		if s.process != nil {
			s.process.free.idle += b.Size
		}
	}
}

// findIdleBlocks finds what is idle at a time.
func (m *Model) findIdleBlocks(now uint64) {
	m.sites.findIdleBlocks(m.clock.latestTimeForIdle(now))
	for _, p := range m.processes.list {
		if f := &p.free; !p.heap.Left {
			f.room = f.rooms.leastFreeSince(p.latestTimeForIdle(now, &m.clock), f.heap.Room)
			p.changed = p.changed || f.freeSpread().idle != p.shown.Totals.Idle
		}
	}
}

// IdleBytes returns what is idle at a time, if nothing happens until then, and counts as a look at it.
func (m *Model) IdleBytes(now uint64) uint64 {
	m.noteIdlePeaks(now)
	return m.processes.freeSpread().idle
}

// noteIdlePeaks notes peaks of what is idle when a slot begins, whenever a snapshot is made, and at each step of a report's timeline.
func (m *Model) noteIdlePeaks(now uint64) {
	m.findIdleBlocks(now)
	for _, p := range m.processes.list {
		raisePeak(&p.ownAccount().counters.PeakIdle, int64(p.free.freeSpread().idle))
	}
	raisePeak(&m.totals.run.counters.PeakIdle, int64(m.processes.freeSpread().idle))
}

// mostlyIdleSince returns since when more is idle than half of the peak, or longer; 0: less is.
func (m *Model) mostlyIdleSince(free spread, now uint64) uint64 {
	half := m.totals.run.counters.PeakInUse / 2
	if free.idle <= half {
		return 0
	}
	cs, sum := &m.sites, uint64(0)
	for at, n := cs.ages.first, 0; at != cs.ages.young && n < idleLooks; at, n = cs.blocks[at].younger, n+1 {
		if !cs.blocks[at].idle {
			continue
		}
		if sum += cs.heap.BlockAt(at).Size; sum > half {
			return cs.blocks[at].since
		}
	}
	return m.clock.latestTimeForIdle(now)
}

// idleLooks bounds the blocks that a snapshot looks at.
const idleLooks = 1000

// roomsMax bounds what is remembered of the room in slabs.
const roomsMax = 64

// rooms remembers the least that was free in the slabs of a process.
type rooms struct{ list []room } // each later and more than the one before

// room is what was free, and until when.
type room struct {
	until uint64
	bytes int64
}

// noteFreeFromNow notes that more is free from now on. Beyond roomsMax, little that was free counts as longer than it was: nothing is idle then
// that was used.
func (l *rooms) noteFreeFromNow(was int64, now, since uint64) {
	n := len(l.list)
	for n > 0 && l.list[n-1].bytes >= was {
		n--
	}
	l.list = l.list[:n]
	if n == roomsMax {
		l.forgetBefore(since)
	}
	if len(l.list) == roomsMax {
		for i := range roomsMax / 2 {
			l.list[i] = room{l.list[2*i+1].until, l.list[2*i].bytes}
		}
		l.list = l.list[:roomsMax/2]
	}
	l.list = append(l.list, room{now, was})
}

// forgetBefore drops what was over by a time.
func (l *rooms) forgetBefore(since uint64) {
	over := 0
	for over < len(l.list) && l.list[over].until <= since {
		over++
	}
	l.list = append(l.list[:0], l.list[over:]...)
}

// leastFreeSince returns the smallest number of free bytes at any time from since on. now is how many are free at the end.
func (l *rooms) leastFreeSince(since uint64, now int64) uint64 {
	l.forgetBefore(since)
	if len(l.list) > 0 {
		now = min(now, l.list[0].bytes)
	}
	return heap.NonNegative(now)
}
