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

// entry is one block. The Block of entry i is generation<<32 | i: the index finds it, the generation tells it from
// earlier blocks of the same index.
type entry struct {
	size       uint64
	wanted     uint64 // requested by whoever has it
	order      uint64 // when it was freed, descending
	generation uint32
	tag        Tag
	class      Class
	older      int32 // in the list of its state: cached or cooling
	newer      int32
	state      state
	was        state     // of a planned block: cached for a hit
	reason     wire.Miss // of a planned block that is to be created
}

// ages is a list of entries from the oldest to the newest, linked through the entries.
type ages struct{ oldest, newest int32 }

func (a *ages) push(entries []entry, i int32) {
	entries[i].older, entries[i].newer = a.newest, 0
	if a.newest != 0 {
		entries[a.newest].newer = i
	} else {
		a.oldest = i
	}
	a.newest = i
}

func (a *ages) remove(entries []entry, i int32) {
	e := &entries[i]
	if e.older != 0 {
		entries[e.older].newer = e.newer
	} else {
		a.oldest = e.newer
	}
	if e.newer != 0 {
		entries[e.newer].older = e.older
	} else {
		a.newest = e.older
	}
	e.older, e.newer = 0, 0
}
