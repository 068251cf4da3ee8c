package allocator

import "math/bits"

// rule is what makes one policy differ from another: how much to create, and which free block may serve.
type rule interface {
	// grant returns the size of the block to create for a request.
	grant(req Request, l *limits) uint64

	// find returns the block of a shelf that serves a request best, 0 when none is acceptable.
	find(s *shelf, class Class, req Request, l *limits) int32
}

// smallest is what seed 000 never goes below: its alloc raises a request to sizeof(int).
const smallest = 4

// futhark is the free list of Futhark's present runtime (rts/c/free_list.h, 2022): best fit among the blocks that
// are small, or have the same tag, or are less than max_waste_ratio times the request.
type futhark struct{}

func (futhark) grant(req Request, _ *limits) uint64 { return max(req.Size, smallest) }

func (futhark) find(s *shelf, class Class, req Request, l *limits) int32 {
	want := max(req.Size, smallest)
	i := s.first(class, want)
	if i == 0 {
		return 0
	}
	if size := s.sizeOf(i); size == want || size < l.minBlock || float64(size) < l.maxWasteRatio*float64(want) {
		return i
	}
	return s.firstOfTag(class, req.Tag, want)
}

// pow2 is seed 003's BufferPool: every block has a power of two of bytes, and serves requests that round up to it.
type pow2 struct{}

func (pow2) grant(req Request, l *limits) uint64 {
	size := max(req.Size, l.minBlock)
	if size > 1<<63 {
		return size
	}
	rounded := uint64(1) << bits.Len64(size-1)
	if req.Max != 0 && rounded > req.Max {
		return max(req.Max, req.Size)
	}
	return rounded
}

func (p pow2) find(s *shelf, class Class, req Request, l *limits) int32 {
	want := p.grant(req, l)
	if i := s.first(class, want); i != 0 && s.sizeOf(i) == want {
		return i
	}
	return 0
}
