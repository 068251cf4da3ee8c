package calls

import "codeberg.org/gpumemtop/gpumemtop/internal/wire"

// event is an event that the program holds.
type event struct {
	counts     *counts
	references uint32
	thread     uint32
	time       uint64 // when its call returned
}

// eventsMax bounds the events that are followed. Further ones are only counted, as in the shim.
const eventsMax = 1 << 18

// events are those of a process, by handle. They are only counted.
type events struct {
	ledger   *ledger
	byHandle map[uint64]event
}

// countReturnedEvent counts the event that a command returned, unless the command failed.
func (es *events) countReturnedEvent(s *wire.Sample) {
	name := Functions[s.Function].Name
	if name == "clEnqueueMapBuffer" || name == "clEnqueueMapImage" { // return a pointer
		if s.Result == 0 {
			return
		}
	} else if int32(s.Result) != 0 {
		return
	}
	es.addEvent(s, s.Event)
}

func (es *events) addEvent(s *wire.Sample, handle uint64) {
	l := es.ledger
	old, known := es.byHandle[handle]
	switch {
	case known && old.thread == s.Tid && old.time >= s.Entered: // reported by a call inside this one
		return
	case known: // the earlier event's release was missed
		old.counts.released++
		l.markCountsChanged(old.counts)
	case len(es.byHandle) == eventsMax:
		c := l.countsOfSite(wire.HeldEvent, l.tags.SiteTag(s))
		c.untracked++
		l.markCountsChanged(c)
		return
	}
	c := l.countsOfSite(wire.HeldEvent, l.tags.SiteTag(s))
	c.created++
	l.markCountsChanged(c)
	es.byHandle[handle] = event{counts: c, references: 1, thread: s.Tid, time: s.Time}
}

// ignoreCommand handles commands whose event alone matters.
func (es *events) ignoreCommand(*wire.Sample) {}

func (es *events) handleCreate(s *wire.Sample) {
	if s.Result != 0 {
		es.addEvent(s, s.Result)
	}
}

func (es *events) handleRetain(s *wire.Sample) {
	if e, known := es.byHandle[s.Argument[0]]; known {
		e.references++
		es.byHandle[s.Argument[0]] = e
	}
}

func (es *events) handleRelease(s *wire.Sample) {
	l := es.ledger
	e, known := es.byHandle[s.Argument[0]]
	if !known {
		return
	}
	if e.references > 1 {
		e.references--
		es.byHandle[s.Argument[0]] = e
		return
	}
	delete(es.byHandle, s.Argument[0])
	e.counts.released++
	l.markCountsChanged(e.counts)
}
