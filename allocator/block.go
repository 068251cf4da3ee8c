package allocator

import "codeberg.org/gpumemtop/gpumemtop/internal/wire"

// ArmBit is set in the ids of blocks that the alternative of Arms has made. It is below the generation, so that ids stay
// small enough for readers whose numbers are doubles.
const ArmBit = 1 << 31

// Arm returns the number of the arm that made a block: Present unless there is an experiment.
func (b Block) Arm() int { return int(b / ArmBit % 2) }

// Index returns a small number for the caller's tables. No two blocks that one arm knows at one time share it.
func (b Block) Index() int { return int(b%ArmBit) - 1 }

// state of an entry in the block table.
type state uint8

const (
	unused state = iota
	decided
	inUse
	cached
	cooling
	doomed // it must go, and waits for a call that reports evictions
)

// entry is one block. The Block of entry i is generation<<32 | arm | i: the index finds it, the generation
// distinguishes it from earlier blocks with that index. A program may hold very many, so an entry has only what a block in
// use needs; moments has the rest.
type entry struct {
	size       uint64
	wanted     uint64 // bytes of the request that it serves; while cached: its slot
	offset     uint64 // of a sub-allocation: in its slab
	generation uint32
	tag        Tag
	class      Class
	slab       int32 // number of the slab that it is or lies in; 0: none
	state      state
	reason     wire.Miss  // of a decided block; MissNone: a hit, or a sub-allocation of a slab that there was
	doom       wire.Evict // why a doomed block goes; EvictNone: a limit
	route      wire.Route
	passes     bool // the policy does not cache this block
	dropped    bool // its class was dropped
	isSlab     bool
	stale      wire.Evict // why it is not cached again: no request gets its size now, or the policy changed; EvictNone: it is cached again
}

// entryAt returns entry i.
func (t *blockTable) entryAt(i int32) *entry { return t.entries.At(i) }

// isSubAlloc reports whether a block is a sub-allocation.
func (e *entry) isSubAlloc() bool { return e.slab != 0 && !e.isSlab }

// isEvictedOnReturn reports whether a block goes to the driver when it comes back.
func (e *entry) isEvictedOnReturn() bool { return e.passes || e.dropped || e.stale != wire.EvictNone }

// blockTable holds all blocks that the pool knows, by the index of their entry, and the classes that were dropped.
//
//   - A Block is found as long as its entry has its generation: until it is recycled.
//   - leaving counts the blocks for which entry.isEvictedOnReturn is true; only mark, markDropped and recycle change that.
//   - A block is marked as dropped if and only if its class was.
type blockTable struct {
	arm     uint32 // ArmBit: the pool is the alternative of Arms
	entries Chunked[entry]
	made    int32          // entries there are; [0] is none
	spare   []int32        // unused entries
	dropped map[Class]bool // classes whose context is gone
	leaving int
}

func newBlockTable() blockTable {
	return blockTable{entries: Chunked[entry]{{}}, made: 1, dropped: map[Class]bool{}}
}

// blockOfEntry returns the number of an entry's block.
func (t *blockTable) blockOfEntry(i int32) Block {
	return Block(t.entryAt(i).generation)<<32 | Block(t.arm|uint32(i))
}

// findEntry returns the entry of a block in that state, 0 if there is none. It finds no slabs: the program never gets a
// whole slab.
func (t *blockTable) findEntry(b Block, s state) int32 {
	i := t.entryOf(b)
	if e := t.entryAt(i); i == 0 || e.state != s || e.isSlab {
		return 0
	}
	return i
}

// entryOf returns the entry of a block, 0 if it is gone.
func (t *blockTable) entryOf(b Block) int32 {
	i := uint32(b) ^ t.arm
	if i >= uint32(t.made) || t.entryAt(int32(i)).generation != uint32(b>>32) {
		return 0
	}
	return int32(i)
}

// hasNoBlocks reports whether there are no blocks, decided ones included.
func (t *blockTable) hasNoBlocks() bool { return len(t.spare) == int(t.made)-1 }

// newEntry returns an unused entry.
func (t *blockTable) newEntry() int32 {
	if n := len(t.spare); n > 0 {
		i := t.spare[n-1]
		t.spare = t.spare[:n-1]
		return i
	}
	t.entries.MakePlace(t.made)
	t.made++
	return t.made - 1
}

// recycleEntry makes an entry, which is on no list, unused. Its next block has another generation.
func (t *blockTable) recycleEntry(i int32) {
	e := t.entryAt(i)
	if e.isEvictedOnReturn() {
		t.leaving--
	}
	*e = entry{generation: e.generation + 1}
	if e.generation != 0 { // otherwise all generations of this entry are used up
		t.spare = append(t.spare, i)
	}
}

// setLeavesOnReturn sets whether a block leaves when it comes back: passes if the policy does not cache it, stale if it is not
// cached again.
func (t *blockTable) setLeavesOnReturn(e *entry, passes bool, stale wire.Evict) {
	if e.isEvictedOnReturn() {
		t.leaving--
	}
	if e.passes, e.stale = passes, stale; e.isEvictedOnReturn() {
		t.leaving++
	}
}

// markDropped notes that a block's class was dropped.
func (t *blockTable) markDropped(e *entry) {
	if !e.isEvictedOnReturn() {
		t.leaving++
	}
	e.dropped = true
}

// isDropped reports whether a class was dropped. Most programs drop no class.
func (t *blockTable) isDropped(class Class) bool {
	return len(t.dropped) > 0 && t.dropped[class&^ofArena]
}

// decideOnNewBlock makes an entry for a block that the driver is to create, and completes the decision on it.
func (t *blockTable) decideOnNewBlock(decision *Decision, req *Request, size uint64, reason wire.Miss) {
	i := t.newEntry()
	e := t.entryAt(i)
	e.size, e.wanted, e.tag, e.class = size, req.Size, req.Tag, req.Class
	e.state, e.reason, e.route = decided, reason, decision.Route
	t.setLeavesOnReturn(e, reason == wire.MissPolicy, wire.EvictNone)
	if t.isDropped(e.class) {
		t.markDropped(e)
	}
	decision.Block, decision.Size, decision.Reason = t.blockOfEntry(i), size, reason
}
