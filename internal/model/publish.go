package model

import (
	"cmp"
	"fmt"
	"slices"
)

// Snapshot builds an immutable picture of the present state. It costs time in proportion to tags, their free
// lists as far as they changed, processes, and the length of the history, whatever the number of events.
func (m *Model) Snapshot() *Snapshot {
	m.rows = slices.DeleteFunc(m.rows, func(w *row) bool { return w.into != nil })
	s := &Snapshot{
		Time:      m.now,
		Started:   m.options.Started,
		Program:   m.options.Program,
		Arguments: m.options.Arguments,
		Policy:    m.options.Policy,
		Limits:    slices.Clone(m.limits.list),
		Device:    m.shownDevice,
		Processes: make([]Process, len(m.processes)),
		Totals:    m.ledger.totals(),
		Window:    m.window.last(),
		History:   slices.Clone(m.history.samples),
		Tags:      make([]Tag, 0, len(m.rows)),
		Marks:     slices.Clone(m.marks.list),
		Recording: m.recording,
		Events:    m.events,
		Lost:      m.lost,
		LostUses:  m.lostUses,
		Unknown:   m.unknown,
	}
	s.Totals.LargestCached = m.largest()
	for i, p := range m.processes {
		s.Processes[i] = p.view()
	}
	for _, w := range m.rows {
		if !w.unseen {
			s.Tags = append(s.Tags, m.show(w))
		}
	}
	return s
}

// Publish builds a snapshot and makes it the one that Published returns.
func (m *Model) Publish() *Snapshot {
	s := m.Snapshot()
	m.published.Store(s)
	return s
}

// Published returns the snapshot that was published last, nil before the first. Any goroutine may call it.
func (m *Model) Published() *Snapshot { return m.published.Load() }

// show returns a row as it is now. The lists in it are shared between snapshots as long as they do not change.
func (m *Model) show(w *row) Tag {
	w.trend.advance(m.second, gauge(w.inUse))
	if w.points == nil || w.shown != m.second {
		w.points, w.shown = w.trend.list(), m.second
	}
	if w.free == nil {
		w.free = m.freeClasses(w)
	}
	t := Tag{
		ID: w.id, Name: w.name, Stack: w.stack,
		Live: gauge(w.live), InUse: gauge(w.inUse), Requested: gauge(w.requested),
		Cached: gauge(w.cached), Cooling: gauge(w.cooling), CachedCount: gauge(w.blocks),
		Hits: w.hits, Misses: w.misses, MissReasons: w.reasons,
		Creates: w.creates, Window: w.pace.last(m.window.slot), PeakInUse: w.peak,
		Trend: w.points, Free: w.free,
	}
	if t.Name == "" {
		t.Name = fmt.Sprintf("tag %d", w.id)
	}
	return t
}

// freeClasses lists a row's free blocks by size, smallest first.
func (m *Model) freeClasses(w *row) []FreeClass {
	list := make([]FreeClass, 0, w.classes.count)
	w.classes.all(func(size uint64, place int32) {
		c := m.classes.at(place)
		list = append(list, FreeClass{
			Size: size, Blocks: c.count, Cooling: c.cooling, Oldest: m.blocks.at(c.first).freed,
		})
	})
	slices.SortFunc(list, func(a, b FreeClass) int { return cmp.Compare(a.Size, b.Size) })
	return list
}
