package carve

import (
	"cmp"
	"slices"
)

// kind is one way to carve, as tests see it.
type kind struct {
	name   string
	unit   uint64 // everything is a multiple of it
	create func() Carver
	slabs  []uint64 // sizes worth trying
	sizes  []uint64 // requests are spread below one of these

	// ranges lists the free ranges that a slab must have; nil: they do not follow from the sub-allocations.
	ranges func(s *refSlab) []uint64
	// choose predicts where a request goes; nil: any room will do, refused says whether a refusal is right.
	choose  func(r *reference, size uint64) (slab int32, offset uint64, ok bool)
	refused func(size uint64, s Space) bool
}

// gaps lists the free ranges of a slab, neighbours joined.
func gaps(s *refSlab) (offsets, sizes []uint64) {
	parts := make([]Part, 0, len(s.parts)+1)
	for _, p := range s.parts {
		parts = append(parts, p)
	}
	slices.SortFunc(parts, func(a, b Part) int { return cmp.Compare(a.Offset, b.Offset) })
	at := uint64(0)
	for _, p := range append(parts, Part{Offset: s.size}) {
		if p.Offset > at {
			offsets, sizes = append(offsets, at), append(sizes, p.Offset-at)
		}
		at = p.Offset + p.Size
	}
	return offsets, sizes
}

// smallestGap is best fit as its contract reads.
func smallestGap(r *reference, size uint64) (slab int32, offset uint64, ok bool) {
	size = max(size, 1)
	least := ^uint64(0)
	for _, n := range r.numbers() {
		offsets, sizes := gaps(r.slabs[n])
		for i := range sizes {
			if sizes[i] >= size && sizes[i] < least {
				slab, offset, ok = n, offsets[i], true
				least = sizes[i]
			}
		}
	}
	return slab, offset, ok
}

var kinds = []kind{
	{
		name:   "bestfit",
		unit:   16,
		create: func() Carver { return NewBestFit(16) },
		slabs:  []uint64{4096, 1024, 16, 4096 + 160},
		sizes:  []uint64{64, 400, 2000, 5000},
		ranges: func(s *refSlab) []uint64 { _, sizes := gaps(s); return sizes },
		choose: smallestGap,
	},
	{
		name:   "buddy",
		unit:   16,
		create: func() Carver { return NewBuddy(16) },
		slabs:  []uint64{4096, 1024, 16, 4096 + 160},
		sizes:  []uint64{64, 400, 2000, 5000},
		ranges: blocks,
		choose: lowestBlock,
	},
	{
		name:   "ualloc",
		unit:   1,
		create: func() Carver { return NewUAlloc(1) },
		slabs:  []uint64{32 * 512, 75 * 512, 64 * 512},
		sizes:  []uint64{20, 130, 600, 6_000, 20_000},
		// A large request is refused when no block is left, a small one when in addition no chunk fits.
		refused: func(size uint64, s Space) bool { return s.Largest < size || size <= 128 && s.Largest < 32*512 },
	},
}

// blocks lists the free blocks of a slab of buddies: a block is free unless something in it is taken, and is
// sub-allocation of the block around it if all of that is free. Pages are units.
func blocks(s *refSlab) []uint64 {
	var found []uint64
	var walk func(page, count int) bool // all free; then the caller lists it
	walk = func(page, count int) bool {
		if count == 1 {
			return page < len(s.taken) && !s.taken[page]
		}
		left, right := walk(page, count/2), walk(page+count/2, count/2)
		if left && right {
			return true
		}
		if left || right {
			found = append(found, uint64(count/2))
		}
		return false
	}
	root := 1
	for root < len(s.taken) {
		root *= 2
	}
	if walk(0, root) {
		found = append(found, uint64(root))
	}
	unit := s.size / uint64(len(s.taken))
	for i := range found {
		found[i] *= unit
	}
	return found
}

// lowestBlock is the buddy system's choice: the lowest slab with room, there the smallest free block that is large
// enough, of those the lowest.
func lowestBlock(r *reference, size uint64) (slab int32, offset uint64, ok bool) {
	want := r.kind.unit
	for want < size {
		want *= 2
	}
	for _, n := range r.numbers() {
		sizes := blocks(r.slabs[n])
		if len(sizes) == 0 || slices.Max(sizes) < want {
			continue
		}
		least := slices.Min(slices.DeleteFunc(sizes, func(x uint64) bool { return x < want }))
		for at := uint64(0); at+least <= r.slabs[n].size; at += least {
			if r.slabs[n].aligned(at, least, r.kind.unit) {
				return n, at, true
			}
		}
	}
	return 0, 0, false
}

// aligned says whether a block is free and the block around it is not.
func (s *refSlab) aligned(offset, size, unit uint64) bool {
	free := func(offset, size uint64) bool {
		if offset+size > s.size {
			return false
		}
		return !slices.Contains(s.taken[offset/unit:(offset+size)/unit], true)
	}
	return free(offset, size) && !free(offset&^(2*size-1), 2*size)
}
