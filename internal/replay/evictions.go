package replay

import (
	"fmt"
	"maps"
	"slices"

	"codeberg.org/gpumemtop/gpumemtop/internal/wire"
)

// eviction is a block that left a pool.
type eviction struct {
	block  uint64 // its id; 0: unknown
	size   uint64
	reason wire.Evict
}

// recordedEviction is an eviction that a thread recorded.
type recordedEviction struct {
	eviction
	thread uint32
	time   uint64
}

// placed is an eviction of the replay, with its place among them.
type replayedEviction struct {
	eviction
	at int
}

// evictions of a process that were not compared yet. Where blocks are known, each is looked for by its number, and
// those that one thread records must come in the order of the replay. Else all of the process must.
type evictions struct {
	process  uint32
	numbered bool
	exited   bool
	count    int
	matched  int                           // place of the last that both sides have
	latest   map[uint32]int                // place of the latest, by thread
	open     map[uint64]replayedEviction   // replayed, by block
	early    map[uint64][]recordedEviction // recorded, by block: the decision comes later

	queued struct { // of unknown blocks: at most one of the lists has some
		recorded []recordedEviction
		replayed []eviction
	}
}

// replay notes an eviction of the replay.
func (e *evictions) replay(w *comparer, out eviction) {
	if !e.numbered {
		out.block = 0
		e.queued.replayed = append(e.queued.replayed, out)
		e.match(w)
		return
	}
	e.count++
	p := replayedEviction{out, e.count}
	early := e.early[out.block]
	if len(early) == 0 {
		e.open[out.block] = p
		return
	}
	if e.early[out.block] = early[1:]; len(early) == 1 {
		delete(e.early, out.block)
	}
	e.compare(w, &early[0], &p)
}

// record notes one that was recorded.
func (e *evictions) record(w *comparer, out recordedEviction) {
	if out.block == 0 {
		e.queued.recorded = append(e.queued.recorded, out)
		e.match(w)
		return
	}
	p, known := e.open[out.block]
	if !known {
		e.early[out.block] = append(e.early[out.block], out)
		return
	}
	delete(e.open, out.block)
	e.compare(w, &out, &p)
}

// match compares evictions of unknown blocks as far as both sides have some.
func (e *evictions) match(w *comparer) {
	q := &e.queued
	for len(q.recorded) > 0 && len(q.replayed) > 0 {
		e.count++
		e.compare(w, &q.recorded[0], &replayedEviction{q.replayed[0], e.count})
		q.recorded, q.replayed = q.recorded[1:], q.replayed[1:]
	}
}

func (e *evictions) compare(w *comparer, was *recordedEviction, is *replayedEviction) {
	w.Evictions++
	late := is.at < e.latest[was.thread]
	e.latest[was.thread] = max(is.at, e.latest[was.thread])
	e.matched = max(is.at, e.matched)
	switch {
	case was.eviction != is.eviction:
		w.differs(e.process, was.time, fmt.Sprintf("the next eviction was %s; here it is %s", was.eviction, is.eviction))
	case late:
		w.differs(e.process, was.time, fmt.Sprintf("the eviction %s came after one that it comes before here", was.eviction))
	default:
		w.SameEvictions++
	}
}

// finish counts evictions that only one side has.
func (e *evictions) finish(w *comparer) {
	var was []eviction
	for _, block := range slices.Sorted(maps.Keys(e.early)) {
		for _, r := range e.early[block] {
			was = append(was, r.eviction)
		}
	}
	for _, r := range e.queued.recorded {
		was = append(was, r.eviction)
	}
	is := e.queued.replayed
	for _, block := range slices.Sorted(maps.Keys(e.open)) {
		if e.exited && e.open[block].at > e.matched {
			w.Unreleased++
			continue
		}
		is = append(is, e.open[block].eviction)
	}
	w.Evictions += uint64(len(was) + len(is))
	if len(was) > 0 {
		w.differs(e.process, 0, fmt.Sprintf("evictions that were recorded and are none here: %d, of which the first was %s", len(was), was[0]))
	}
	if len(is) > 0 {
		w.differs(e.process, 0, fmt.Sprintf("evictions here that were none: %d, of which the first is %s", len(is), is[0]))
	}
}

// String says what left the pool and why.
func (e eviction) String() string {
	if e.block == 0 {
		return fmt.Sprintf("of %d bytes (%s)", e.size, e.reason)
	}
	return fmt.Sprintf("of %d bytes (%s), block %d", e.size, e.reason, e.block)
}
