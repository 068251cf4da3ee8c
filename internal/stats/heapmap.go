package stats

import "codeberg.org/gpumemtop/gpumemtop/allocator"

// MappedSlabsMax is the most slabs in a map.
const MappedSlabsMax = 64

// HeapMap says where sub-allocations lie in slabs. Records carry no offsets: the recorded decisions are repeated, by the
// same code. It is immutable.
type HeapMap struct {
	Time  uint64       // of the latest record in it
	Since uint64       // it lacks memory that was there at that time; 0: it has all memory
	Slabs []MappedSlab // the most scattered free memory first
	Total uint64       // slabs, listed or not
	Ended string       // why it is no longer renewed; empty: it is renewed
}

// MapCells is how many equal parts a slab has in its map.
const MapCells = allocator.MapCells

// CarvesSlabs reports whether the present policy cuts slabs into sub-allocations.
func (s *Snapshot) CarvesSlabs() bool { return allocator.UsesSlabs(s.Policy) }

// MappedSlab is a slab of a process.
type MappedSlab struct {
	Process uint32 // number in the session
	allocator.SlabMap
}

// SetHeapMapSource sets the source of Snapshot.Heap. Call it before the first event.
func (m *Model) SetHeapMapSource(show func() *HeapMap) { m.heapMap = show }
