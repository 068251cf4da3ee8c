package replay

import (
	"fmt"

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

// evictions of a process. Where blocks are known, each is looked for by its number, and those that one thread records
// must come in the order of the replay. Else all of the process must.
type evictions struct {
	process  uint32
	numbered bool
	exited   bool
	recorded []recordedEviction
	replayed []eviction
}

// compare compares both lists, and counts what only one of them has.
func (e *evictions) compare(w *comparer) {
	places := map[uint64][]int{} // of replayed evictions that no recorded one is yet, by block
	for at, is := range e.replayed {
		places[is.block] = append(places[is.block], at)
	}
	last, latest := -1, map[uint32]int{} // place of the last that both sides have, of all and by thread
	var missing, more []eviction
	for i := range e.recorded {
		was := &e.recorded[i]
		open := places[was.block]
		if len(open) == 0 {
			missing = append(missing, was.eviction)
			continue
		}
		at := open[0]
		places[was.block] = open[1:]
		e.match(w, was, at, at < latest[was.thread])
		last, latest[was.thread] = max(last, at), max(latest[was.thread], at)
	}
	for at, is := range e.replayed {
		switch open := places[is.block]; {
		case len(open) == 0 || at < open[0]:
		case is.block != 0 && e.exited && at > last:
			w.Unreleased++
		default:
			more = append(more, is)
		}
	}
	w.Evictions += uint64(len(missing) + len(more))
	if len(missing) > 0 {
		w.differs(e.process, 0, fmt.Sprintf("evictions that were recorded and are none here: %d, of which the first was %s", len(missing), missing[0]))
	}
	if len(more) > 0 {
		w.differs(e.process, 0, fmt.Sprintf("evictions here that were none: %d, of which the first is %s", len(more), more[0]))
	}
}

// match compares a recorded eviction with the replayed one of its block.
func (e *evictions) match(w *comparer, was *recordedEviction, at int, late bool) {
	w.Evictions++
	switch is := e.replayed[at]; {
	case was.eviction != is:
		w.differs(e.process, was.time, fmt.Sprintf("the next eviction was %s; here it is %s", was.eviction, is))
	case late:
		w.differs(e.process, was.time, fmt.Sprintf("the eviction %s came after one that it comes before here", was.eviction))
	default:
		w.SameEvictions++
	}
}

// String says what left the pool and why.
func (e eviction) String() string {
	if e.block == 0 {
		return fmt.Sprintf("of %d bytes (%s)", e.size, e.reason)
	}
	return fmt.Sprintf("of %d bytes (%s), block %d", e.size, e.reason, e.block)
}
