package calls

import "codeberg.org/gpumemtop/gpumemtop/internal/wire"

const (
	countsMax = 1 << 12 // pairs of type and call site; the rest have tag 0
	writeNS   = 10_000_000
)

// counts has the objects of one type that one call site created, as the shim counts them.
type counts struct {
	held                    wire.Held
	tag                     uint32
	changed                 bool
	untracked               uint64 // objects for which there was no room
	created, released, most uint64
}

type countsKey struct {
	held wire.Held
	tag  uint32
}

// ledger has the counts of all call sites, and those for which a record must follow.
type ledger struct {
	*writer
	sites   map[countsKey]*counts
	changed []*counts
	due     uint64
}

// countsOfSite returns the counts of a call site.
func (l *ledger) countsOfSite(held wire.Held, tag uint32) *counts {
	key := countsKey{held, tag}
	c := l.sites[key]
	if c != nil {
		return c
	}
	if len(l.sites) >= countsMax && tag != 0 {
		return l.countsOfSite(held, 0)
	}
	c = &counts{held: held, tag: tag}
	l.sites[key] = c
	return c
}

func (l *ledger) markCountsChanged(c *counts) {
	c.most = max(c.most, c.created-c.released)
	if !c.changed {
		c.changed = true
		l.changed = append(l.changed, c)
	}
	if c.held != wire.HeldEvent {
		l.due = 0
	}
}

// countCreated counts an object that a call created.
func (l *ledger) countCreated(s *wire.Sample, o *object, held wire.Held) {
	o.counts = l.countsOfSite(held, l.tags.SiteTag(s))
	o.counts.created++
	l.markCountsChanged(o.counts)
}

// countEnded counts the end of an object. Objects from before we attached are not counted.
func (l *ledger) countEnded(o *object) {
	if c := o.counts; c != nil {
		c.released++
		l.markCountsChanged(c)
	}
}

// writeChangedCounts writes the counts that have changed. Those of events follow a hundred times a second at most, the others
// at once.
func (l *ledger) writeChangedCounts(s *wire.Sample) {
	for _, c := range l.changed {
		l.writeEvent(s, wire.ObjectFields{
			Held: c.held, Tag: c.tag, Created: c.created, Released: c.released, Most: c.most, Untracked: c.untracked,
		}.Event())
		c.changed, c.most = false, c.created-c.released
	}
	if len(l.changed) > 0 {
		l.due = s.Time + writeNS
	}
	l.changed = l.changed[:0]
}
