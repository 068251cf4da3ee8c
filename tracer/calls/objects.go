package calls

import "codeberg.org/gpumemtop/gpumemtop/internal/wire"

// Bounds of what is counted. Of events beyond theirs only the number is known, as in the shim.
const (
	eventsMax = 1 << 18
	countsMax = 1 << 12 // pairs of type and call site; the rest have tag 0
	writeNS   = 10_000_000
)

// counts are the objects of one type that one call site created, as the shim counts them.
type counts struct {
	held                    wire.Held
	tag                     uint32
	changed                 bool
	untracked               uint64 // that there was no room for
	created, released, most uint64
}

type countsKey struct {
	held wire.Held
	tag  uint32
}

// event is an event that the program holds.
type event struct {
	counts     *counts
	references uint32
	thread     uint32
	time       uint64 // when its call returned
}

// ledger has the counts of all call sites, and which of them a record must follow for.
type ledger struct {
	sites   map[countsKey]*counts
	changed []*counts
	events  map[uint64]event
	due     uint64
}

// of returns the counts of a call site.
func (l *ledger) of(held wire.Held, tag uint32) *counts {
	key := countsKey{held, tag}
	c := l.sites[key]
	if c != nil {
		return c
	}
	if len(l.sites) >= countsMax && tag != 0 {
		return l.of(held, 0)
	}
	if l.sites == nil {
		l.sites = map[countsKey]*counts{}
	}
	c = &counts{held: held, tag: tag}
	l.sites[key] = c
	return c
}

func (l *ledger) change(c *counts) {
	c.most = max(c.most, c.created-c.released)
	if !c.changed {
		c.changed = true
		l.changed = append(l.changed, c)
	}
	if c.held != wire.HeldEvent {
		l.due = 0
	}
}

// count counts an object that a call created.
func (t *Tracker) count(s *wire.Sample, o *object, held wire.Held) {
	o.counts = t.ledger.of(held, t.tags.Site(s))
	o.counts.created++
	t.ledger.change(o.counts)
}

// uncount counts the end of an object. Those from before us are not counted.
func (t *Tracker) uncount(o *object) {
	if c := o.counts; c != nil {
		c.released++
		t.ledger.change(c)
	}
}

// write writes the counts that have changed. Those of events follow a hundred times a second at most, the others at once.
func (l *ledger) write(t *Tracker, s *wire.Sample) {
	for _, c := range l.changed {
		t.write(s, wire.ObjectFields{
			Held: c.held, Tag: c.tag, Created: c.created, Released: c.released, Most: c.most, Untracked: c.untracked,
		}.Event())
		c.changed, c.most = false, c.created-c.released
	}
	if len(l.changed) > 0 {
		l.due = s.Time + writeNS
	}
	l.changed = l.changed[:0]
}

// End writes what has not been written yet, at a time: the process ends.
func (t *Tracker) End(time uint64) {
	t.ledger.write(t, &wire.Sample{Call: wire.Call{Time: time}})
}

// newEvent counts the event that a command returned, unless the command failed.
func (t *Tracker) newEvent(s *wire.Sample) {
	name := Functions[s.Function].Name
	if name == "clEnqueueMapBuffer" || name == "clEnqueueMapImage" { // return a pointer
		if s.Result == 0 {
			return
		}
	} else if int32(s.Result) != 0 {
		return
	}
	t.countEvent(s, s.Event)
}

func (t *Tracker) countEvent(s *wire.Sample, handle uint64) {
	l := &t.ledger
	old, known := l.events[handle]
	switch {
	case known && old.thread == s.Tid && old.time >= s.Entered: // by a call within this one
		return
	case known: // its release was missed
		old.counts.released++
		l.change(old.counts)
	case len(l.events) == eventsMax:
		c := l.of(wire.HeldEvent, t.tags.Site(s))
		c.untracked++
		l.change(c)
		return
	}
	if l.events == nil {
		l.events = map[uint64]event{}
	}
	c := l.of(wire.HeldEvent, t.tags.Site(s))
	c.created++
	l.change(c)
	l.events[handle] = event{counts: c, references: 1, thread: s.Tid, time: s.Time}
}

// returnsEvent handles commands of which only the event matters.
func (t *Tracker) returnsEvent(*wire.Sample) {}

func (t *Tracker) createUserEvent(s *wire.Sample) {
	if s.Result != 0 {
		t.countEvent(s, s.Result)
	}
}

func (t *Tracker) retainEvent(s *wire.Sample) {
	if e, known := t.ledger.events[s.Argument[0]]; known {
		e.references++
		t.ledger.events[s.Argument[0]] = e
	}
}

func (t *Tracker) releaseEvent(s *wire.Sample) {
	l := &t.ledger
	e, known := l.events[s.Argument[0]]
	if !known {
		return
	}
	if e.references > 1 {
		e.references--
		l.events[s.Argument[0]] = e
		return
	}
	delete(l.events, s.Argument[0])
	e.counts.released++
	l.change(e.counts)
}

func (t *Tracker) createProgram(s *wire.Sample) {
	old := t.programs[s.Result]
	if s.Result == 0 || old != nil && old.reportedWithin(s) || old == nil && len(t.programs) >= objectsMax {
		return
	}
	if old != nil {
		t.uncount(old)
	}
	o := newObject(s, 0)
	t.programs[s.Result] = &o
	t.count(s, &o, wire.HeldProgram)
}

func (t *Tracker) retainProgram(s *wire.Sample) {
	if o := t.programs[s.Argument[0]]; o != nil {
		o.references++
	}
}

func (t *Tracker) releaseProgram(s *wire.Sample) {
	if o := t.programs[s.Argument[0]]; o != nil && o.release() {
		delete(t.programs, s.Argument[0])
		t.uncount(o)
	}
}
