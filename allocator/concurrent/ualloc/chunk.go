package ualloc

import (
	"math/bits"
	"sync/atomic"

	"codeberg.org/gpumemtop/gpumemtop/allocator/concurrent/collective"
	"codeberg.org/gpumemtop/gpumemtop/allocator/concurrent/semaphore"
)

// chunk is the header of one chunk.
type chunk struct {
	arena *arena
	page  int // its first page
	bins  []bin
	reuse func() // keeps the header for another chunk of the arena

	// The rest is guarded by the chunk list's mutex. Members of a group that take bins change free and count at the
	// same time.
	free           [chunkBins / 64]atomic.Uint64 // a bit per bin that has no class
	count          atomic.Int32                  // of those bits
	next, previous *chunk
	linked         bool // in the list: it has a free bin
}

func newChunk(a *arena, page, bins int) *chunk {
	c := &chunk{arena: a, page: page, bins: make([]bin, bins)}
	c.reuse = func() { a.keepHeader(c) }
	for i := range c.bins {
		c.bins[i].chunk, c.bins[i].index = c, i
	}
	for i := range c.free {
		c.free[i].Store(^(^uint64(0) << min(64, max(0, bins-64*i))))
	}
	c.free[0].And(^uint64(1<<headerBins - 1))
	c.count.Store(int32(bins - headerBins))
	return c
}

// side is the end of a chunk from which a bin is taken: classes that can use tails first take bins with a tail, other
// classes bins without one. It is also the purpose by which threads form groups (collective.Mutex).
type side int

const (
	tailed side = iota
	plain
)

func sideOfClass(class int) side {
	if class < tailClasses {
		return tailed
	}
	return plain
}

// nthFreeBin returns the index of the free bin that has n free bins before it, seen from a side.
func (c *chunk) nthFreeBin(from side, n int) int {
	if from == plain {
		n = int(c.count.Load()) - 1 - n
	}
	word := 0
	for ones := bits.OnesCount64(c.free[0].Load()); n >= ones; ones = bits.OnesCount64(c.free[word].Load()) {
		n -= ones
		word++
	}
	free := c.free[word].Load()
	for range n {
		free &= free - 1
	}
	return 64*word + bits.TrailingZeros64(free)
}

// takeBinAt takes a free bin out of the chunk.
func (c *chunk) takeBinAt(index int) *bin {
	c.free[index/64].And(^(1 << (index % 64)))
	c.count.Add(-1)
	return &c.bins[index]
}

// chunkList holds an arena's chunks that have free bins. The semaphore's units are those bins: a bin is counted after
// its chunk has been linked, and the bins of a chunk are uncounted before the chunk is unlinked.
type chunkList struct {
	mutex      collective.Mutex
	units      *semaphore.Bulk
	usable     int // bins of a chunk
	head       *chunk
	drop       func(*chunk) // takes a chunk without a bin in use, after it was unlinked
	missed     atomic.Bool  // a chunk without a bin in use may be in the list, because units were out when it became empty
	operations int          // how often head was written, for tests
}

// takeBin returns a free bin. The caller has a unit. All threads that wait for a bin at the same time enter together:
// each goes as far in the list as its rank says, and the thread that goes furthest cuts off the chunks that they have
// exhausted.
func (s *chunkList) takeBin(from side) *bin {
	in := s.mutex.Lock(int(from))
	c, skip := s.head, in.Rank
	for skip >= int(c.count.Load()) {
		skip -= int(c.count.Load())
		c = c.next
	}
	index, next := c.nthFreeBin(from, skip), c.next
	exhausted := skip == int(c.count.Load())-1
	first := s.head
	in.Barrier() // all have looked

	b := c.takeBinAt(index)
	if exhausted {
		c.linked, c.next, c.previous = false, nil, nil
	}
	if in.Rank == in.Size-1 {
		if !exhausted {
			next = c
		}
		if next != first {
			s.dropBefore(next)
		}
	}
	in.Unlock()
	return b
}

// dropBefore makes c the first chunk of the list, because the chunks before it are exhausted. c may be nil.
func (s *chunkList) dropBefore(c *chunk) {
	if c != nil {
		c.previous = nil
	}
	s.head = c
	s.operations++
}

// addChunk links a new chunk and signals all of its bins but the caller's. Then addChunk drops empty chunks, as putBin does: a
// thread whose unit kept a chunk from being dropped can take a bin of the new chunk.
func (s *chunkList) addChunk(c *chunk) {
	in := s.mutex.Lock(collective.Alone)
	defer in.Unlock()
	s.push(c)
	s.units.Signal(s.usable-1, s.usable-1)
	s.dropEmptyChunks(nil)
}

// dropMissedChunks drops the chunks that were missed, if it can.
func (s *chunkList) dropMissedChunks() {
	in := s.mutex.Lock(collective.Alone)
	defer in.Unlock()
	s.dropEmptyChunks(nil)
}

func (s *chunkList) push(c *chunk) {
	c.linked, c.previous, c.next = true, nil, s.head
	if s.head != nil {
		s.head.previous = c
	}
	s.head = c
	s.operations++
}

// putBin returns a bin without class to its chunk, and drops the chunks that are no longer needed.
func (s *chunkList) putBin(b *bin) {
	in := s.mutex.Lock(collective.Alone)
	defer in.Unlock()
	c := b.chunk
	c.free[b.index/64].Or(1 << (b.index % 64))
	c.count.Add(1)
	if !c.linked {
		s.push(c)
	}
	s.units.Signal(1, 0)
	s.dropEmptyChunks(c)
}

// dropEmptyChunks drops the chunks without a bin in use: changed, which may be nil, and chunks that were missed. The caller
// holds the mutex. Threads may hold units for bins that they are about to take: then the chunk is missed. If they take
// and keep bins of other chunks, a thread that signals units afterwards looks here again.
func (s *chunkList) dropEmptyChunks(changed *chunk) {
	for c := s.emptyChunk(changed); c != nil; c = s.emptyChunk(nil) {
		if !s.units.TryWait(s.usable) {
			s.missed.Store(true)
			return
		}
		s.unlink(c)
		s.drop(c)
	}
}

// emptyChunk returns a chunk of the list without a bin in use: changed, or a chunk that was missed.
func (s *chunkList) emptyChunk(changed *chunk) *chunk {
	if changed != nil && int(changed.count.Load()) == s.usable {
		return changed
	}
	if !s.missed.Load() {
		return nil
	}
	for c := s.head; c != nil; c = c.next {
		if int(c.count.Load()) == s.usable {
			return c
		}
	}
	s.missed.Store(false)
	return nil
}

func (s *chunkList) unlink(c *chunk) {
	if c.next != nil {
		c.next.previous = c.previous
	}
	if c.previous != nil {
		c.previous.next = c.next
	} else {
		s.head = c.next
	}
	c.linked = false
	s.operations++
}
