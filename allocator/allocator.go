// Package allocator decides how requests for device memory are served, from a cached block or by a new one; what
// happens to a block when the program releases it; and which blocks go back to the driver. It is pure: no device, no
// clock, no I/O, no goroutine, no lock. The caller serialises all calls on a Pool and carries out its decisions. So the
// same code decides in a running program, in replay, in fuzz tests and in benchmarks.
//
// # Life of a block
//
//	Decide ──► Commit ──► (in use) ──► Free ──► cached ──► Decide (hit) …
//	   └─────► Abort                     └────► cooling ──► CoolingEnded ──► cached
//
// Each block that leaves the pool is reported as an Eviction, exactly once, and its Block is never seen again.
package allocator

import "codeberg.org/gpumemtop/gpumemtop/internal/wire"

// Block identifies one driver object of a pool. Ids are never reused within one Pool; 0 is no block.
type Block uint64

// Class separates blocks that must not serve each other's requests: one number per (context, flags, alignment).
// The caller numbers them, from 1.
type Class uint32

// Tag is the number that the caller gave a call site; 0 is unknown.
type Tag uint32

// Request asks for memory.
type Request struct {
	Size   uint64 // bytes, at least 1
	Max    uint64 // largest block the driver creates in this class, in bytes; 0: unknown
	Round  uint64 // no block larger than this or Size may serve, in bytes: rounding up stops here; 0: at Max
	Heap   uint64 // bytes of memory that the class's device has; 0: unknown
	Align  uint64 // bytes, a power of two: where a sub-allocation may begin; 0: no sub-allocation can serve this request
	Class  Class
	Tag    Tag
	Exact  bool  // a created block must have exactly this size, because the driver copies all of it; a larger cached block may serve
	Pinned bool  // host memory that the device accesses directly (CL_MEM_ALLOC_HOST_PTR)
	Again  bool  // an earlier decision on this request was aborted, so Arms does not count the request again
	Time   int64 // ns, any epoch, the same for all calls, not negative
}

// MaxBlockBytes returns the bytes of the largest block that may be created for the request, 0 if unknown.
func (r *Request) MaxBlockBytes() uint64 {
	if r.Round != 0 {
		return r.Round
	}
	return r.Max
}

// roundUpToBound returns a rounded-up size for the request, or a smaller one where rounding stops.
func (r *Request) roundUpToBound(size uint64) uint64 {
	switch {
	case r.Exact:
		return r.Size
	case size < r.Size || exceedsBound(size, r.MaxBlockBytes()):
		return max(r.MaxBlockBytes(), r.Size)
	}
	return size
}

// canUseBlockOfSize reports whether a block that is large enough is not too large to serve the request.
func (r *Request) canUseBlockOfSize(size uint64) bool {
	return !exceedsBound(size, r.Round) || size <= r.Size
}

// Decision says how a pool serves one request. The caller carries it out and calls Commit or Abort exactly once; several
// decisions may be open at once.
//
// Slab is not 0 if the block is a sub-allocation. If SlabSize is not 0, the caller first creates the slab and calls
// SlabCreated; it then creates the sub-buffer and calls Commit, or Abort if any step fails. A decision may name a slab that
// the caller has yet to create for another open decision: it then waits for SlabCreated or Abort of that decision. After an
// Abort it aborts this decision, too, and calls Decide again.
type Decision struct {
	Hit      bool   // needs no new memory from the driver
	Block    Block  // the block to hand out, or the id of the block or sub-allocation to create
	Size     uint64 // bytes of that block, at least the request's
	Reason   wire.Miss
	Tag      Tag   // the block's new tag
	Slab     Block // the block that contains this one
	Offset   uint64
	SlabSize uint64 // bytes of the slab to create, 0 if it exists
	Route    wire.Route
	Fresh    bool // a sub-allocation whose bytes were never used before
}

// Eviction is a block that left the pool; the caller releases its driver object.
type Eviction struct {
	Block  Block
	Size   uint64
	Tag    Tag
	Reason wire.Evict
}
