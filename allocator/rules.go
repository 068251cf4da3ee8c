package allocator

import (
	"math/bits"
	"slices"
)

// rule is the strategy of a whole-block policy: how much to create, and which free block serves.
type rule interface {
	// grantedSize returns the size of the block to create for a request.
	grantedSize(req *Request, l *limits) uint64

	// findBlock returns the block of a freeList that serves a request best, 0 when none is acceptable.
	findBlock(s *freeList, class Class, req *Request, l *limits) int32

	// misfitToEvict returns a block to give up if find has found none, 0 for none.
	misfitToEvict(s *freeList, req *Request, l *limits) int32

	// isStaleSize reports whether no request is rounded up to that size.
	isStaleSize(size uint64, l *limits) bool

	// sortsByTag reports whether find looks at tags.
	sortsByTag() bool
}

// futhark is the free list of Futhark's present runtime (rts/c/free_list.h, 2022): best fit among the blocks that
// are small, or have the same tag, or are less than max_waste_ratio times the request.
type futhark struct{}

// smallest is the smallest block of seed 000: its alloc raises a request to sizeof(int).
const smallest = 4

func (futhark) grantedSize(req *Request, _ *limits) uint64 {
	return req.roundUpToBound(max(req.Size, smallest))
}

func (f futhark) findBlock(s *freeList, class Class, req *Request, l *limits) int32 {
	want := f.grantedSize(req, l)
	if l.stealOtherTag {
		i := s.smallestAtLeast(class, want)
		if i == 0 || !req.canUseBlockOfSize(s.sizeOf(i)) {
			return 0
		}
		if size := s.sizeOf(i); size == want || size < l.minBlock || float64(size) < l.maxWasteRatio*float64(want) {
			return i
		}
	}
	if i := s.smallestOfTag(class, req.Tag, want); i != 0 && req.canUseBlockOfSize(s.sizeOf(i)) {
		return i
	}
	return 0
}

func (futhark) misfitToEvict(*freeList, *Request, *limits) int32 { return 0 }

func (futhark) isStaleSize(uint64, *limits) bool { return false }

func (futhark) sortsByTag() bool { return true }

// first2018 is the free list of seed 000: a block of the same tag serves if it is at least as large as the request and
// at most max_waste_ratio times as large. Otherwise it is released before a block is created. With steal_other_tag,
// which the seed only considers, a block of another tag may serve before a block is created; the blocks of the
// request's own tag then stay.
type first2018 struct{}

func (first2018) grantedSize(req *Request, l *limits) uint64 {
	return req.roundUpToBound(max(req.Size, l.minBlock))
}

func (r first2018) findBlock(s *freeList, class Class, req *Request, l *limits) int32 {
	want := r.grantedSize(req, l)
	if i := s.smallestOfTag(class, req.Tag, want); i != 0 && isWithinWaste(s.sizeOf(i), want, l) && req.canUseBlockOfSize(s.sizeOf(i)) {
		return i
	}
	if !l.stealOtherTag {
		return 0
	}
	if i := s.smallestAtLeast(class, want); i != 0 && isWithinWaste(s.sizeOf(i), want, l) && req.canUseBlockOfSize(s.sizeOf(i)) {
		return i
	}
	return 0
}

// isWithinWaste reports whether a block is not too wasteful for a size.
func isWithinWaste(size, want uint64, l *limits) bool {
	return float64(size) <= l.maxWasteRatio*float64(want)
}

func (first2018) misfitToEvict(s *freeList, req *Request, _ *limits) int32 {
	return s.largestOfTag(req.Class, req.Tag)
}

func (first2018) isStaleSize(uint64, *limits) bool { return false }

func (first2018) sortsByTag() bool { return true }

// bucketed is the rule of policies that round sizes up to buckets: a block serves exactly the requests that are rounded up
// to its size.
type bucketed struct {
	round func(size uint64, l *limits) uint64
}

func (b bucketed) grantedSize(req *Request, l *limits) uint64 {
	return req.roundUpToBound(b.round(max(req.Size, l.minBlock), l))
}

func (b bucketed) findBlock(s *freeList, class Class, req *Request, l *limits) int32 {
	want := b.grantedSize(req, l)
	if i := s.smallestAtLeast(class, want); i != 0 && s.sizeOf(i) == want {
		return i
	}
	return 0
}

func (bucketed) misfitToEvict(*freeList, *Request, *limits) int32 { return 0 }

func (b bucketed) isStaleSize(size uint64, l *limits) bool {
	return size != b.round(size, l) || size < b.round(l.minBlock, l)
}

func (bucketed) sortsByTag() bool { return false }

// pow2 is seed 003's BufferPool: every size is a power of two.
var pow2 = bucketed{func(size uint64, _ *limits) uint64 { return nextPowerOfTwo(size) }}

// nextPowerOfTwo returns the power of two that a size does not exceed, the largest number where there is none.
func nextPowerOfTwo(size uint64) uint64 {
	if number := bits.Len64(max(size, 1) - 1); number < 64 {
		return 1 << number
	}
	return 1<<64 - 1
}

// listed is seed 003's PersistentBufferPool: sizes come from a list, and are powers of two above its last.
var listed = bucketed{func(size uint64, l *limits) uint64 {
	if i, _ := slices.BinarySearch(l.bucketSizes, size); i < len(l.bucketSizes) {
		return l.bucketSizes[i]
	}
	return nextPowerOfTwo(size)
}}

// mantissa is PyOpenCL's MemoryPool (src/mempool.hpp): a bin has the sizes with the same mantissa_bits after the highest
// bit, and its blocks have the largest of these sizes.
var mantissa = bucketed{func(size uint64, l *limits) uint64 {
	exponent := uint(bits.Len64(size)) - 1
	if exponent <= l.mantissaBits {
		return size
	}
	shift := exponent - l.mantissaBits
	top := size>>shift + 1 // the first value of the next bin, without its low bits
	if bits.Len64(top)+int(shift) > 64 {
		return 1<<64 - 1
	}
	return top<<shift - 1
}}
