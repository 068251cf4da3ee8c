package allocator

import "codeberg.org/gpumemtop/gpumemtop/internal/wire"

// Index returns a small number that no other block known at the same time has, for tables of the caller's.
func (b Block) Index() int { return int(uint32(b)) - 1 }

// state of an entry in the block table.
type state uint8

const (
	unused state = iota
	planned
	inUse
	cached
	cooling
	doomed // must go, but the call that decided so reports no evictions
)

// entry is one block. The Block of entry i is generation<<32 | i: the index finds it, the generation
// distinguishes it from earlier blocks with that index.
type entry struct {
	size       uint64
	wanted     uint64 // requested by its present user
	since      int64  // when it became cached
	turn       uint64 // how many blocks had become cached then
	generation uint32
	tag        Tag
	class      Class
	slot       int32 // while cached, see slots
	state      state
	was        state      // of a planned block: cached for a hit
	reason     wire.Miss  // of a planned block that is to be created
	doom       wire.Evict // of a doomed block; none: limit
	route      wire.Route
	passes     bool // through: it is not cached
	dropped    bool // its class was
	isSlab     bool
	stale      wire.Evict // not none: why it is not cached any more: by a limit that did away with its size, or by a switch
	slab       int32      // number of the slab that it is, or lies in; 0: neither
	offset     uint64
}

// leaves reports whether a block is not cached when it comes back.
func (e *entry) leaves() bool { return e.passes || e.dropped || e.stale != wire.EvictNone }

// chain links entries from the oldest to the newest. An entry is in one list at a time.
type chain []struct{ older, newer int32 }

// ages is one list of a chain.
type ages struct {
	oldest, newest int32
	count          int
}

func (c *chain) push(a *ages, i int32) {
	for len(*c) <= int(i) {
		*c = append(*c, struct{ older, newer int32 }{})
	}
	(*c)[i].older, (*c)[i].newer = a.newest, 0
	if a.newest != 0 {
		(*c)[a.newest].newer = i
	} else {
		a.oldest = i
	}
	a.newest = i
	a.count++
}

func (c *chain) remove(a *ages, i int32) {
	l := &(*c)[i]
	if l.older != 0 {
		(*c)[l.older].newer = l.newer
	} else {
		a.oldest = l.newer
	}
	if l.newer != 0 {
		(*c)[l.newer].older = l.older
	} else {
		a.newest = l.older
	}
	l.older, l.newer = 0, 0
	a.count--
}
