package model

// sizes is a multiset of block sizes that knows its largest: a count per distinct size, and a binary max-heap of the
// distinct ones. add and remove cost O(log distinct) and allocate only when there are more distinct sizes than ever.
type sizes struct {
	index   table // size to place in entries
	entries arena[sizeCount]
	heap    []int32 // places in entries, largest size first
}

type sizeCount struct {
	size  uint64
	count uint64
	at    int // index in the heap
}

func (s *sizes) add(size uint64) {
	if place := s.index.get(size); place >= 0 {
		s.entries.at(place).count++
		return
	}
	place := s.entries.take(sizeCount{size: size, count: 1, at: len(s.heap)})
	s.index.put(size, place)
	s.heap = append(s.heap, place)
	s.up(len(s.heap) - 1)
}

// remove takes one block of a size out; a size that is not there is ignored.
func (s *sizes) remove(size uint64) {
	place := s.index.get(size)
	if place < 0 {
		return
	}
	e := s.entries.at(place)
	if e.count--; e.count > 0 {
		return
	}
	at, last := e.at, len(s.heap)-1
	s.swap(at, last)
	s.heap = s.heap[:last]
	if at < last {
		s.down(at)
		s.up(at)
	}
	s.index.remove(size)
	s.entries.give(place)
}

// largest returns the largest size, 0 when there is none.
func (s *sizes) largest() uint64 {
	if len(s.heap) == 0 {
		return 0
	}
	return s.size(0)
}

func (s *sizes) size(at int) uint64 { return s.entries.at(s.heap[at]).size }

func (s *sizes) swap(a, b int) {
	s.heap[a], s.heap[b] = s.heap[b], s.heap[a]
	s.entries.at(s.heap[a]).at = a
	s.entries.at(s.heap[b]).at = b
}

func (s *sizes) up(at int) {
	for at > 0 {
		parent := (at - 1) / 2
		if s.size(parent) >= s.size(at) {
			return
		}
		s.swap(parent, at)
		at = parent
	}
}

func (s *sizes) down(at int) {
	for {
		child := 2*at + 1
		if child >= len(s.heap) {
			return
		}
		if right := child + 1; right < len(s.heap) && s.size(right) > s.size(child) {
			child = right
		}
		if s.size(at) >= s.size(child) {
			return
		}
		s.swap(at, child)
		at = child
	}
}

// list appends the sizes with their counts.
func (s *sizes) list(to *[]FreeClass) {
	s.index.all(func(size uint64, place int32) {
		*to = append(*to, FreeClass{Size: size, Blocks: s.entries.at(place).count})
	})
}
