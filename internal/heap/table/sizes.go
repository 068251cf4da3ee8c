package table

// Sizes is a multiset of sizes that knows its largest: a count per distinct size, and a binary max-heap of the distinct
// ones. Add and Remove cost O(log distinct) and allocate only when there are more distinct sizes than ever. The zero
// value is empty. It is for one goroutine.
type Sizes struct {
	index   Table // size to place in entries
	entries Arena[sizeCount]
	heap    []int32 // places in entries, largest size first
}

type sizeCount struct {
	size  uint64
	count uint64
	at    int // index in the heap
}

// Add adds a size.
func (s *Sizes) Add(size uint64) {
	if place := s.index.PlaceOf(size); place >= 0 {
		s.entries.At(place).count++
		return
	}
	place, entry := s.entries.TakePlace()
	*entry = sizeCount{size: size, count: 1, at: len(s.heap)}
	s.index.Put(size, place)
	s.heap = append(s.heap, place)
	s.siftUp(len(s.heap) - 1)
}

// Remove takes one of a size out. A size that is not there is ignored.
func (s *Sizes) Remove(size uint64) {
	place := s.index.PlaceOf(size)
	if place < 0 {
		return
	}
	e := s.entries.At(place)
	if e.count--; e.count > 0 {
		return
	}
	at, last := e.at, len(s.heap)-1
	s.swapEntries(at, last)
	s.heap = s.heap[:last]
	if at < last {
		s.siftDown(at)
		s.siftUp(at)
	}
	s.index.Remove(size)
	s.entries.ReturnPlace(place)
}

// Reset removes all sizes and seeds the hash table, see Table.
func (s *Sizes) Reset(seed uint64) { *s = Sizes{index: Table{Seed: seed}} }

// EachSize calls f for every distinct size with how many there are, in no particular order.
func (s *Sizes) EachSize(f func(size, count uint64)) {
	s.index.EachKey(func(size uint64, place int32) { f(size, s.entries.At(place).count) })
}

// Largest returns the largest size, 0 when there is none.
func (s *Sizes) Largest() uint64 {
	if len(s.heap) == 0 {
		return 0
	}
	return s.sizeAt(0)
}

func (s *Sizes) sizeAt(at int) uint64 { return s.entries.At(s.heap[at]).size }

func (s *Sizes) swapEntries(a, b int) {
	s.heap[a], s.heap[b] = s.heap[b], s.heap[a]
	s.entries.At(s.heap[a]).at = a
	s.entries.At(s.heap[b]).at = b
}

func (s *Sizes) siftUp(at int) {
	for at > 0 {
		parent := (at - 1) / 2
		if s.sizeAt(parent) >= s.sizeAt(at) {
			return
		}
		s.swapEntries(parent, at)
		at = parent
	}
}

func (s *Sizes) siftDown(at int) {
	for {
		child := 2*at + 1
		if child >= len(s.heap) {
			return
		}
		if right := child + 1; right < len(s.heap) && s.sizeAt(right) > s.sizeAt(child) {
			child = right
		}
		if s.sizeAt(at) >= s.sizeAt(child) {
			return
		}
		s.swapEntries(at, child)
		at = child
	}
}
