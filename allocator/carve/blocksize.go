package carve

import "math/bits"

// SeedBlockSize is seed 004's size of the blocks that a heap of h bytes is divided into: about k of them, and each large
// enough for a resource of m bytes. It is max(m, h/k), in bytes; k = 0 counts as 1.
func SeedBlockSize(m, h, k uint64) uint64 { return max(m, h/max(k, 1)) }

// DefaultBlocks is seed 004's example of k.
const DefaultBlocks = 62

// The range of M while it is not set.
const (
	smallestM = 1 << 20
	largestM  = 64 << 20
)

// Sizing says how large slabs should be. A field of 0 is not given.
type Sizing struct {
	M      uint64 // bytes: the largest request that slabs serve
	H      uint64 // bytes that the program will use at once
	K      uint64 // how many slabs H is divided into; DefaultBlocks when not given
	Limit  uint64 // bytes: the largest allocation of the device
	Memory uint64 // bytes of the device
}

// Hints describe a program's requests so far. In seed 004 the program gives such hints in advance.
type Hints struct {
	Request uint64 // bytes: the largest request
	InUse   uint64 // bytes: the most in use at once
}

// ChooseSlabSize returns the bytes of a new slab for a carver, and the largest request that slabs of that size serve. A larger
// request is humongous (seed 004) and gets a block of its own.
//
// When not given, M is four times the largest request so far, rounded up to a power of two, between 1 MiB and 64 MiB;
// slabs then serve requests up to a quarter of M, so one slab has room for several. A given M is itself the largest
// request. When not given, H is the most bytes in use so far, and never above the device's memory.
//
// ChooseSlabSize rounds the slab up to a size that the carver can manage. If the device cannot allocate that much, ChooseSlabSize returns the
// largest manageable size that the device can allocate, or 0 twice if there is no such size: then every request is humongous.
func (s Sizing) ChooseSlabSize(c Carver, hints Hints) (slab, serves uint64) {
	m, serves := s.M, s.M
	if m == 0 {
		m = seedMFor(hints.Request)
		serves = m / 4
	}
	h := s.H
	if h == 0 {
		h = hints.InUse
		if s.Memory != 0 {
			h = min(h, s.Memory)
		}
	}
	k := s.K
	if k == 0 {
		k = DefaultBlocks
	}
	slab = slabSizeFor(c, max(SeedBlockSize(m, h, k), c.RoundUp(m)), s.Limit)
	return slab, min(serves, c.UsableBytes(slab))
}

// seedMFor returns M for the largest request so far.
func seedMFor(request uint64) uint64 {
	if request > largestM/4 {
		return largestM
	}
	return max(uint64(4)<<bits.Len64(max(request, 1)-1), smallestM)
}

// slabSizeFor returns the bytes of a slab with room for a request of size bytes, or of the largest slab that the limit allows.
func slabSizeFor(c Carver, size, limit uint64) uint64 {
	slab := c.SlabSize(size)
	if slab != 0 && (limit == 0 || slab <= limit) {
		return slab
	}
	if limit == 0 {
		limit = maxBytes
	}
	most := c.UsableBytes(limit)
	if most == 0 {
		return 0
	}
	return c.SlabSize(most)
}
