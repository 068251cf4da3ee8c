package allocator

import (
	"math/bits"

	"codeberg.org/gpumemtop/gpumemtop/internal/wire"
)

const (
	sizesKept     = 512 // sizes that a set remembers
	outgrownLooks = 8   // sizes of a site that one request looks at
)

// sizeSet remembers sizes. Each size has one place; a new size there replaces the old one.
type sizeSet [sizesKept]uint64

// slotOfSize depends on nothing but the size: a replay may number everything else in another way.
func (s *sizeSet) slotOfSize(size uint64) *uint64 {
	return &s[size*0x9e3779b97f4a7c15>>(64-bits.Len(sizesKept-1))]
}

func (s *sizeSet) add(size uint64)      { *s.slotOfSize(size) = size }
func (s *sizeSet) has(size uint64) bool { return *s.slotOfSize(size) == size }

// knownSizes are the sizes that a pool remembers for the limit outgrown, also of blocks that left.
type knownSizes struct {
	again    sizeSet // sizes served from the pool, or asked for again after they were outgrown: their blocks stay
	outgrown sizeSet // sizes whose blocks were given up as outgrown
}

// evictOutgrownBlocks gives up blocks of a request's site if all of them are smaller than size, which the driver will be asked
// for, and their sizes were never asked for again. So a scratch buffer that grows leaves nothing in the pool, and sizes
// that come back stay. The smallest blocks go first: where a site grows, they are the oldest.
func (p *Pool) evictOutgrownBlocks(req *Request, size uint64, out []Eviction) []Eviction {
	if !p.limits.outgrown || req.Tag == 0 {
		return out
	}
	if p.sizes.outgrown.has(size) {
		p.sizes.again.add(size)
	}
	largest := p.free.largestOfTag(req.Class, req.Tag)
	if largest == 0 || p.free.sizeOf(largest) >= size {
		return out
	}
	from := uint64(0)
	for looks := 0; looks < outgrownLooks && p.mayGive > 0; looks++ {
		i := p.free.smallestOfTag(req.Class, req.Tag, from)
		if i == 0 {
			break
		}
		this := p.free.sizeOf(i)
		if p.sizes.again.has(this) {
			from = this + 1
			continue
		}
		p.sizes.outgrown.add(this)
		out = p.evictCachedBlock(i, wire.EvictOutgrown, out)
		p.mayGive--
	}
	return out
}
