package common

import (
	"math/bits"
	"slices"

	"codeberg.org/gpumemtop/gpumemtop/internal/heap"
)

// Bounds of addresses: the page at 0 is never used, and readers that use doubles know whole numbers up to 2^53.
const (
	first     = 1 << 32
	alignment = 512
	widest    = 1 << 47 // of one range; more than that is nonsense
)

// Layout gives memory addresses: buffers of OpenCL have none that a program sees. A block, a slab, and an object that
// the driver made for itself have a range each from their beginning to their end, and no two overlap. A range that
// went back is used again.
//
// A recording does not tell in which slab a part lies, nor where: a part goes to the first place where it fits in a
// slab of its class, and to a range of its own, Outside, when our slabs are divided otherwise than the real ones. A
// slab that goes while we have parts in it changes its place with an empty one of the same size; when there is none,
// its range stays, Lingering, until the last of these parts is gone.
type Layout struct {
	ranges map[rangeKey]*Range
	arenas map[arenaKey]*arena
	next   uint64
	free   [64][]uint64 // addresses, by the power of two that they are wide
}

// Range is where something lies. Only Lingering, and what is the caller's own, change.
type Range struct {
	Addr, Size uint64
	Process    uint32
	Slab       *Range // that it is a part of
	Outside    bool   // a part without a place in a slab
	Lingering  bool   // a slab that is gone while parts are in it

	// The caller's own.
	Pending bool
	Tag     uint32
	List    int

	key   rangeKey
	arena *arena
	gaps  []gap  // of a slab, by offset
	room  uint64 // no gap is wider
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

// arena are the slabs of one class, the oldest first.
type arena struct{ slabs []*Range }

// IsSlab reports whether parts lie here.
func (r *Range) IsSlab() bool { return r.arena != nil }

// NewLayout returns a layout without memory.
func NewLayout() *Layout {
	return &Layout{ranges: map[rangeKey]*Range{}, arenas: map[arenaKey]*arena{}, next: first}
}

func keyOf(p *heap.Process, o *heap.Object) rangeKey {
	if o.Block != 0 {
		return rangeKey{p.Number, false, o.Block}
	}
	return rangeKey{p.Number, true, o.ID}
}

// Object returns where an object lies that owns memory, nil when it has no place yet.
func (l *Layout) Object(p *heap.Process, o *heap.Object) *Range { return l.ranges[keyOf(p, o)] }

// Block returns where a block lies, nil when it has no place yet.
func (l *Layout) Block(p *heap.Process, number uint64) *Range {
	return l.ranges[rangeKey{p.Number, false, number}]
}

// Place gives an object a place that has none.
func (l *Layout) Place(p *heap.Process, o *heap.Object, part bool) *Range {
	r := &Range{Size: o.Granted, Process: p.Number, key: keyOf(p, o)}
	l.ranges[r.key] = r
	if part && r.Size > 0 && l.carve(r, l.arena(p.Number, o.Scope, o.Access)) {
		return r
	}
	r.Outside = part
	r.Addr = l.allocate(r.Size)
	return r
}

// Slab gives a slab a place that has none.
func (l *Layout) Slab(p *heap.Process, b *heap.Block) *Range {
	r := &Range{
		Size: b.Size, Process: p.Number, key: rangeKey{p.Number, false, b.ID}, Addr: l.allocate(b.Size),
		arena: l.arena(p.Number, b.Scope, b.Access), gaps: []gap{{0, b.Size}}, room: b.Size,
	}
	l.ranges[r.key] = r
	r.arena.slabs = append(r.arena.slabs, r)
	return r
}

func (l *Layout) arena(process uint32, scope, access uint16) *arena {
	key := arenaKey{process, uint32(scope)<<16 | uint32(access)}
	a := l.arenas[key]
	if a == nil {
		a = &arena{}
		l.arenas[key] = a
	}
	return a
}

// Give takes a place back and returns what went with it: the range itself unless it is a part or a slab that lingers,
// or a slab that has lingered for this part.
func (l *Layout) Give(r *Range) *Range {
	delete(l.ranges, r.key)
	switch {
	case r.arena != nil:
		return l.giveSlab(r)
	case r.Slab != nil:
		s := r.Slab
		s.release(gap{r.Addr - s.Addr, r.Size})
		s.parts--
		if !s.Lingering || s.parts > 0 {
			return nil
		}
		r = s
	}
	l.release(r.Addr, r.Size)
	return r
}

func (l *Layout) giveSlab(r *Range) *Range {
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
	l.release(r.Addr, r.Size)
	return r
}

// carve finds a part a place in a slab.
func (l *Layout) carve(r *Range, a *arena) bool {
	for _, s := range a.slabs {
		if s.room < r.Size {
			continue
		}
		if offset, ok := s.allocate(r.Size); ok {
			r.Slab, r.Addr = s, s.Addr+offset
			s.parts++
			return true
		}
	}
	return false
}

// allocate cuts a piece off the first gap that is wide enough.
func (r *Range) allocate(size uint64) (offset uint64, ok bool) {
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

// release joins a piece with the gaps beside it.
func (r *Range) release(g gap) {
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

// allocate returns an address for a number of bytes.
func (l *Layout) allocate(size uint64) uint64 {
	class := width(size)
	if n := len(l.free[class]); n > 0 {
		addr := l.free[class][n-1]
		l.free[class] = l.free[class][:n-1]
		return addr
	}
	addr := l.next
	l.next += 1 << class
	return addr
}

func (l *Layout) release(addr, size uint64) {
	class := width(size)
	l.free[class] = append(l.free[class], addr)
}

// width returns the power of two that a range of a number of bytes takes.
func width(size uint64) int { return bits.Len64(min(max(size, alignment), widest) - 1) }
