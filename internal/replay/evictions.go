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

// evictions are the evictions of a process. Where blocks have ids, recorded and replayed evictions are matched by id,
// and those that one thread records must come in the order of the replay. Otherwise all evictions of the process must
// come in that order.
type evictions struct {
	process  uint32
	numbered bool
	exited   bool
	recorded []recordedEviction
	replayed []eviction
}

// compareLists matches both lists, and counts the evictions that only one of them has.
func (e *evictions) compareLists(c *comparer) {
	unmatched := map[uint64][]int{} // by block: indices of replayed evictions
	for index, replayed := range e.replayed {
		unmatched[replayed.block] = append(unmatched[replayed.block], index)
	}
	lastMatch, lastOfThread := -1, map[uint32]int{} // index of the last match, overall and by thread
	var missing, extra []eviction
	for i := range e.recorded {
		recorded := &e.recorded[i]
		candidates := unmatched[recorded.block]
		if len(candidates) == 0 {
			missing = append(missing, recorded.eviction)
			continue
		}
		index := candidates[0]
		unmatched[recorded.block] = candidates[1:]
		e.compareWithReplayed(c, recorded, index, index < lastOfThread[recorded.thread])
		lastMatch, lastOfThread[recorded.thread] = max(lastMatch, index), max(lastOfThread[recorded.thread], index)
	}
	for index, replayed := range e.replayed {
		switch candidates := unmatched[replayed.block]; {
		case len(candidates) == 0 || index < candidates[0]:
		case replayed.block != 0 && e.exited && index > lastMatch:
			c.Unreleased++
		default:
			extra = append(extra, replayed)
		}
	}
	c.Evictions += uint64(len(missing) + len(extra))
	if len(missing) > 0 {
		c.noteDifference(e.process, 0, fmt.Sprintf("evictions that were recorded and are none here: %d; the first was %s", len(missing), missing[0]))
	}
	if len(extra) > 0 {
		c.noteDifference(e.process, 0, fmt.Sprintf("evictions here that were none: %d; the first is %s", len(extra), extra[0]))
	}
}

// compareWithReplayed compares a recorded eviction with the replayed one of the same block.
func (e *evictions) compareWithReplayed(c *comparer, recorded *recordedEviction, index int, late bool) {
	c.Evictions++
	switch replayed := e.replayed[index]; {
	case recorded.eviction != replayed:
		c.noteDifference(e.process, recorded.time, fmt.Sprintf("the next eviction was %s; here it is %s", recorded.eviction, replayed))
	case late:
		c.noteDifference(e.process, recorded.time, fmt.Sprintf("the eviction %s came after one that it comes before here", recorded.eviction))
	default:
		c.SameEvictions++
	}
}

// String describes which block left the pool and why.
func (e eviction) String() string {
	if e.block == 0 {
		return fmt.Sprintf("of %d bytes (%s)", e.size, e.reason)
	}
	return fmt.Sprintf("of %d bytes (%s), block %d", e.size, e.reason, e.block)
}
