package common

import (
	"math/bits"
	"slices"

	"codeberg.org/gpumemtop/gpumemtop/internal/heap"
)

// Bounds of addresses: the page at 0 is never used, and readers that use doubles hold whole numbers only up to 2^53.
const (
	first     = 1 << 32
	alignment = 512
	widest    = 1 << 47 // bytes of one range; a recording with a larger one is damaged
)

// Layout gives memory addresses, since a program sees none of its buffers. Each block, each slab, and each object with a
// driver object of its own has a range for as long as it lives. Ranges never overlap, and are reused.
//
// A recording does not say in which slab a sub-allocation lies, nor where. So a sub-allocation goes to the first place
// where it fits in a slab of its class. If none has room, because real slabs are divided differently, it gets a range of its
// own, which is Outside. If a slab ends while we have sub-allocations in it, it swaps its range with an empty slab of the same
// size. If there is none, the range stays, Lingering, until the last of these sub-allocations ends.
type Layout struct {
	ranges map[rangeKey]*Range
	arenas map[arenaKey]*arena
	next   uint64
	free   [64][]uint64 // addresses of free ranges, by the power of two of their size
}

// Range is the addresses of a block, slab or object. Only Lingering and the fields of the caller change.
type Range struct {
	Addr, Size uint64
	Process    uint32
	Slab       *Range // the slab that it is a part of
	Outside    bool   // a part without a place in a slab
	Lingering  bool   // a slab that is gone while parts are in it

	// For the caller's use.
	Pending bool
	Tag     uint32
	List    int

	key   rangeKey
	arena *arena
	gaps  []gap  // of a slab, by offset
	room  uint64 // no gap is larger
	parts int
}

type gap struct{ offset, size uint64 }

type rangeKey struct {
	process uint32
	object  bool // number is an object's, not a block's
	number  uint64
}

type arenaKey struct {
	process uint32
	class   uint32
}

// arena has the slabs of one class, the oldest first.
type arena struct{ slabs []*Range }

// IsSlab reports whether the range is a slab's.
func (r *Range) IsSlab() bool { return r.arena != nil }

// NewLayout returns a layout without memory.
func NewLayout() *Layout {
	return &Layout{ranges: map[rangeKey]*Range{}, arenas: map[arenaKey]*arena{}, next: first}
}

func rangeKeyOf(p *heap.Process, o *heap.Object) rangeKey {
	if o.Block != 0 {
		return rangeKey{p.Number, false, o.Block}
	}
	return rangeKey{p.Number, true, o.ID}
}

// RangeOfObject returns the range of an object that owns memory, nil if it has none yet.
func (l *Layout) RangeOfObject(p *heap.Process, o *heap.Object) *Range {
	return l.ranges[rangeKeyOf(p, o)]
}

// RangeOfBlock returns the range of a block, nil if it has none yet.
func (l *Layout) RangeOfBlock(p *heap.Process, number uint64) *Range {
	return l.ranges[rangeKey{p.Number, false, number}]
}

// PlaceObject gives a range to an object that has none.
func (l *Layout) PlaceObject(p *heap.Process, o *heap.Object, part bool) *Range {
	r := &Range{Size: o.Granted, Process: p.Number, key: rangeKeyOf(p, o)}
	l.ranges[r.key] = r
	if part && r.Size > 0 && l.placeInSlab(r, l.arenaOfClass(p.Number, o.Scope, o.Access)) {
		return r
	}
	r.Outside = part
	r.Addr = l.allocateAddress(r.Size)
	return r
}

// PlaceSlab gives a range to a slab that has none.
func (l *Layout) PlaceSlab(p *heap.Process, b *heap.Block) *Range {
	r := &Range{
		Size: b.Size, Process: p.Number, key: rangeKey{p.Number, false, b.ID}, Addr: l.allocateAddress(b.Size),
		arena: l.arenaOfClass(p.Number, b.Scope, b.Access), gaps: []gap{{0, b.Size}}, room: b.Size,
	}
	l.ranges[r.key] = r
	r.arena.slabs = append(r.arena.slabs, r)
	return r
}

func (l *Layout) arenaOfClass(process uint32, scope, access uint16) *arena {
	key := arenaKey{process, uint32(scope)<<16 | uint32(access)}
	a := l.arenas[key]
	if a == nil {
		a = &arena{}
		l.arenas[key] = a
	}
	return a
}

// FreeRange frees a range. It returns the range if its addresses are free then, nil if it is a part of a slab or a slab that
// lingers. If a slab lingered only for this part, FreeRange returns the slab.
func (l *Layout) FreeRange(r *Range) *Range {
	delete(l.ranges, r.key)
	switch {
	case r.arena != nil:
		return l.freeSlab(r)
	case r.Slab != nil:
		s := r.Slab
		s.joinPiece(gap{r.Addr - s.Addr, r.Size})
		s.parts--
		if !s.Lingering || s.parts > 0 {
			return nil
		}
		r = s
	}
	l.releaseAddress(r.Addr, r.Size)
	return r
}

func (l *Layout) freeSlab(r *Range) *Range {
	a := r.arena
	if r.parts > 0 {
		i := slices.IndexFunc(a.slabs, func(s *Range) bool { return s.parts == 0 && s.Size == r.Size })
		if i < 0 {
			r.Lingering = true
			a.slabs = slices.DeleteFunc(a.slabs, func(s *Range) bool { return s == r })
			return nil
		}
		empty := a.slabs[i]
		r.key, empty.key = empty.key, r.key
		l.ranges[r.key] = r
		r = empty
	}
	a.slabs = slices.DeleteFunc(a.slabs, func(s *Range) bool { return s == r })
	l.releaseAddress(r.Addr, r.Size)
	return r
}

// placeInSlab finds a place for a part in a slab of its class.
func (l *Layout) placeInSlab(r *Range, a *arena) bool {
	for _, s := range a.slabs {
		if s.room < r.Size {
			continue
		}
		if offset, ok := s.cutPiece(r.Size); ok {
			r.Slab, r.Addr = s, s.Addr+offset
			s.parts++
			return true
		}
	}
	return false
}

// cutPiece cuts a piece off the first gap that is large enough.
func (r *Range) cutPiece(size uint64) (offset uint64, ok bool) {
	var widest uint64
	for i := range r.gaps {
		g := &r.gaps[i]
		if g.size < size {
			widest = max(widest, g.size)
			continue
		}
		offset = g.offset
		g.offset += size
		g.size -= size
		if g.size == 0 {
			r.gaps = slices.Delete(r.gaps, i, i+1)
		}
		return offset, true
	}
	r.room = widest
	return 0, false
}

// joinPiece joins a piece with the gaps beside it.
func (r *Range) joinPiece(g gap) {
	i, _ := slices.BinarySearchFunc(r.gaps, g.offset, func(g gap, offset uint64) int {
		if g.offset < offset {
			return -1
		}
		return 1
	})
	if i < len(r.gaps) && g.offset+g.size == r.gaps[i].offset {
		g.size += r.gaps[i].size
		r.gaps = slices.Delete(r.gaps, i, i+1)
	}
	if i > 0 && r.gaps[i-1].offset+r.gaps[i-1].size == g.offset {
		r.gaps[i-1].size += g.size
		g = r.gaps[i-1]
	} else {
		r.gaps = slices.Insert(r.gaps, i, g)
	}
	r.room = max(r.room, g.size)
}

// allocateAddress returns an address for a number of bytes.
func (l *Layout) allocateAddress(size uint64) uint64 {
	class := sizeExponent(size)
	if n := len(l.free[class]); n > 0 {
		addr := l.free[class][n-1]
		l.free[class] = l.free[class][:n-1]
		return addr
	}
	addr := l.next
	l.next += 1 << class
	return addr
}

func (l *Layout) releaseAddress(addr, size uint64) {
	class := sizeExponent(size)
	l.free[class] = append(l.free[class], addr)
}

// sizeExponent returns the exponent of the power of two that a range of size bytes takes.
func sizeExponent(size uint64) int { return bits.Len64(min(max(size, alignment), widest) - 1) }
