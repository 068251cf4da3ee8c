package stats

import (
	"math"

	"codeberg.org/gpumemtop/gpumemtop/allocator/carve"
	"codeberg.org/gpumemtop/gpumemtop/internal/callsite"
	"codeberg.org/gpumemtop/gpumemtop/internal/heap"
	"codeberg.org/gpumemtop/gpumemtop/internal/heap/table"
	"codeberg.org/gpumemtop/gpumemtop/internal/wire"
)

// slabsID is the number of the row for free memory in slabs. No tag has it.
const slabsID = math.MaxUint32

// ranges are the free ranges in slabs as the policy reported them last.
type ranges struct {
	largest, ranges uint64
	squares         float64
}

// rangesOfGauge reads a GAUGE.
func rangesOfGauge(g wire.GaugeView) ranges {
	t := ranges{largest: g.Largest(), ranges: g.Ranges(), squares: g.Squares()}
	if !(t.squares >= 0) {
		t.squares = 0
	}
	return t
}

// spread says how free memory is divided.
type spread struct {
	largest uint64 // block or range
	ranges  uint64 // in slabs
	squares float64
	idle    uint64 // bytes, see Totals.Idle
	room    uint64 // of these, in slabs
}

// freeMemory says how the free memory of a process is divided. It counts the sizes of cached blocks and of slabs; cooling blocks
// are in neither.
type freeMemory struct {
	heap     *heap.Process
	sizes    table.Sizes // of cached blocks
	cached   carve.Tally // of the same blocks, with the sum of their squares: sizes that no memory has may overflow it
	slabs    table.Sizes
	reported ranges // of the free ranges in slabs
	idle     uint64 // bytes of the cached blocks that were found idle
	rooms    rooms
	room     uint64 // of what is free in slabs, idle when Model.findIdleBlocks looked
	left     *Tag   // the row of the slabs when the process left; nil: it has not left, or had no slabs
}

func newFreeMemory(p *heap.Process, seed uint64) freeMemory {
	f := freeMemory{heap: p}
	f.reset(seed)
	return f
}

func (f *freeMemory) reset(seed uint64) {
	f.sizes.Reset(seed)
	f.slabs.Reset(seed)
}

// addBlock counts a cached block or a slab.
func (f *freeMemory) addBlock(b *heap.Block) {
	switch b.State {
	case heap.Slab:
		f.slabs.Add(b.Size)
	case heap.Cached:
		f.sizes.Add(b.Size)
		f.cached.AddRanges(b.Size, 1)
	default: // a cooling block serves no request yet
	}
}

// removeBlock takes a cached block or a slab off.
func (f *freeMemory) removeBlock(b *heap.Block) {
	switch b.State {
	case heap.Slab:
		f.slabs.Remove(b.Size)
	case heap.Cached:
		f.sizes.Remove(b.Size)
		f.cached.AddRanges(b.Size, -1)
	default:
	}
}

// noteSlabRoom notes that a slab, or the end of a sub-allocation, has made room.
func (f *freeMemory) noteSlabRoom(b *heap.Block, now uint64, c *clock) {
	f.rooms.noteFreeFromNow(f.heap.Room-int64(b.Size), now, c.latestTimeForIdle(now))
}

// freeSpread returns how free memory is divided. What the policy reported of its slabs may be a moment older than what is free
// now. If it has reported nothing yet, all that is free counts as one range.
func (f *freeMemory) freeSpread() spread {
	s := spread{largest: f.sizes.Largest(), squares: f.cached.Squares(), idle: f.idle}
	free := heap.NonNegative(f.heap.Room)
	if free == 0 || f.heap.Left { // a process that left keeps what it shows
		return s
	}
	s.room = min(f.room, free)
	s.idle += s.room
	t := f.reported
	if t.ranges == 0 || t.largest == 0 {
		t = ranges{largest: free, ranges: 1, squares: float64(free) * float64(free)}
	}
	t.largest = min(t.largest, free)
	s.largest = max(s.largest, t.largest)
	s.ranges = t.ranges
	s.squares += min(t.squares, float64(t.largest)*float64(free))
	return s
}

// saveSlabRow keeps the row of the slabs before they go.
func (f *freeMemory) saveSlabRow() {
	if t, ok := f.slabRow(); ok {
		f.left = &t
	}
}

// slabRow returns the row of a process's slabs, false when it has none.
func (f *freeMemory) slabRow() (Tag, bool) {
	if f.left != nil {
		return *f.left, true
	}
	t := newSlabTag(&f.heap.Gauges, f.freeSpread())
	appendFreeClasses(&f.slabs, &t.Free)
	sortClasses(t.Free)
	return t, len(t.Free) > 0 || t.Cached > 0
}

// freeSpread returns how the free memory of all processes is divided: no free block serves another process.
func (ps *processes) freeSpread() spread {
	var all spread
	for _, p := range ps.list {
		s := p.free.freeSpread()
		all.largest = max(all.largest, s.largest)
		all.ranges += s.ranges
		all.squares += s.squares
		all.idle += s.idle
		all.room += s.room
	}
	return all
}

// slabRow returns the row of all slabs, false when there are none. free says how free memory is divided.
func (ps *processes) slabRow(free spread) (Tag, bool) {
	t := newSlabTag(&ps.heap.Gauges, free)
	for _, p := range ps.list {
		appendFreeClasses(&p.free.slabs, &t.Free)
	}
	sortClasses(t.Free)
	t.Free = joinEqualClasses(t.Free)
	return t, len(t.Free) > 0 || t.Cached > 0
}

func newSlabTag(g *heap.Gauges, free spread) Tag {
	return Tag{
		ID: slabsID, Name: callsite.Slabs, Slabs: true, Cached: heap.NonNegative(g.Room), Idle: free.room,
		CachedCount: free.ranges, Free: []FreeClass{},
	}
}

// appendFreeClasses appends sizes with their counts.
func appendFreeClasses(s *table.Sizes, to *[]FreeClass) {
	s.EachSize(func(size, count uint64) { *to = append(*to, FreeClass{Size: size, Blocks: count}) })
}
