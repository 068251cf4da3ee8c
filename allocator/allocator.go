// Package allocator decides how requests for device memory are served: from a cached block or by a new one, what
// becomes of a block when the program lets it go, and which blocks go back to the driver. It is pure: no device,
// no clock, no I/O, no goroutine, no lock. Whoever holds a Policy serialises the calls and performs what a plan
// says, so that the same code decides in a running program, in replay, in fuzz tests and in benchmarks.
//
// # Life of a block
//
//	Plan ──► Commit ──► (in use) ──► Free ──► cached ──► Plan (hit) …
//	   └───► Abort                     └────► cooling ──► Cooled ──► cached
//
// Whatever leaves the pool is reported as an Eviction, exactly once, and its Block is never seen again.
package allocator

import "codeberg.org/gpumemtop/gpumemtop/internal/wire"

// Block names one driver object that a policy knows. Numbers are never reused within one Policy; 0 is no block.
type Block uint64

// Class separates blocks that must not serve each other's requests: one number per (context, flags, alignment).
// The caller numbers them, from 1.
type Class uint32

// Tag is an allocation site, numbered by the caller; 0 is unknown.
type Tag uint32

// Request asks for memory.
type Request struct {
	Size   uint64 // bytes, at least 1
	Max    uint64 // largest block the driver creates in this class, in bytes; 0: unknown
	Round  uint64 // no block larger than this or Size may serve, in bytes: rounding up stops here; 0: at Max
	Heap   uint64 // bytes of memory that the class's device has; 0: unknown
	Align  uint64 // bytes, a power of two: where a part of a block may begin; 0: no part can serve this request
	Class  Class
	Tag    Tag
	Exact  bool  // a block that is created must have just the size (the driver copies as much as it creates); a larger one may serve
	Pinned bool  // host memory that the device reaches by itself (CL_MEM_ALLOC_HOST_PTR)
	Time   int64 // ns, any epoch, the same for all calls, not negative
}

// most returns the bytes of the largest block that may be created for the request, 0 when nobody knows.
func (r *Request) most() uint64 {
	if r.Round != 0 {
		return r.Round
	}
	return r.Max
}

// bounded returns a size that the request was rounded up to, or less where rounding stops before.
func (r *Request) bounded(size uint64) uint64 {
	switch {
	case r.Exact:
		return r.Size
	case size < r.Size || over(size, r.most()):
		return max(r.most(), r.Size)
	}
	return size
}

// takes reports whether a block of that size, which is large enough, is not larger than may serve the request.
func (r *Request) takes(size uint64) bool { return !over(size, r.Round) || size <= r.Size }

// Plan is a policy's answer. The caller performs it and calls Commit or Abort exactly once; several plans may be
// open at a time.
//
// Slab is not 0 when the block is a part of a larger one. The caller then creates the slab if SlabSize is not 0 and
// says so with Grown, makes the part, and calls Commit, or Abort wherever it fails. A plan may name a slab that
// another open plan is still to create: whoever carries out plans at the same time waits for that one's Grown or Abort,
// and after an Abort gives this plan up with Abort, too, and plans anew.
type Plan struct {
	Hit      bool   // no new memory of the driver is needed
	Block    Block  // the block to hand out, or the number of the block or part to be created
	Size     uint64 // bytes of that block, at least the request's
	Reason   wire.Miss
	Tag      Tag   // the block's new tag
	Slab     Block // the block that this one is a part of
	Offset   uint64
	SlabSize uint64 // bytes of the slab, when it is to be created
	Fresh    bool   // a part that nobody had any byte of before
}

// Eviction is a block that left the pool; the caller releases its driver object.
type Eviction struct {
	Block  Block
	Size   uint64
	Tag    Tag
	Reason wire.Evict
}

// Policy is one way to manage blocks. Calls must be serialised by the caller. Evictions are appended to out, which
// is returned, so that steady state allocates nothing.
type Policy interface {
	// Name is the name that --policy takes.
	Name() string

	// Plan decides how to serve a request. Evictions must be released before a driver create (futhark-2018 gives
	// up a misfit first).
	Plan(req Request, out []Eviction) (Plan, []Eviction)

	// Grown says that the slab of a plan was created.
	Grown(p Plan)

	// Commit says that a plan was carried out: the block is in use.
	Commit(p Plan)

	// Abort says that the driver refused: a block that was to be created is forgotten, a slab as well unless it was
	// Grown.
	Abort(p Plan)

	// Free says that the application let the block go. While busy is set, queued commands still use it: it cools
	// until Cooled. Freeing a block that is not in use is ignored (the caller diagnoses it).
	Free(b Block, busy bool, time int64, out []Eviction) []Eviction

	// Cooled says that the last command that used a cooling block has completed.
	Cooled(b Block, time int64, out []Eviction) []Eviction

	// Forget takes a block that is in use or cooling out of the policy's books without an Eviction: the caller
	// disposes of it (it is still mapped, say).
	Forget(b Block)

	// Drain gives up the blocks that should go next after the driver failed to allocate need bytes, in
	// drain_order; nothing is appended once no cached block is left. Cooling blocks are given up last: releasing
	// them is legal, the driver frees them when their commands end.
	Drain(need uint64, out []Eviction) []Eviction

	// Trim gives up cached blocks until at most keep bytes are cached.
	Trim(keep uint64, out []Eviction) []Eviction

	// DropClass gives up every cached and cooling block of a class and caches none of it from then on: its context
	// is gone.
	DropClass(c Class, out []Eviction) []Eviction

	// Expire gives up the blocks that have been cached for max_age. It returns when there may be something to do again,
	// 0 when there is no such limit. Plan, Free and Cooled do the same in passing.
	Expire(time int64, out []Eviction) (_ []Eviction, next int64)

	// SetLimit changes one limit and evicts what no longer fits, in drain_order. An unknown name, a limit that this
	// policy ignores, a value out of range or one that contradicts another limit is an error that names the limit and
	// what it takes, and changes nothing.
	SetLimit(name, value string, time int64, out []Eviction) ([]Eviction, error)

	// Limits returns the limits that this policy obeys, with their present values, in a fixed order.
	Limits() []Limit

	// Stats returns counters and gauges. It costs O(1), but for O(classes) to find the largest free block.
	Stats() Stats

	// Rows returns the same by tag, by bucket and by class, those with something to say, in ascending order.
	Rows(by Dimension) []Row

	// Validate checks every invariant that the policy states, for tests. It may be slow.
	Validate() error
}
