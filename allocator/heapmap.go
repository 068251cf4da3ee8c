package allocator

import (
	"cmp"
	"slices"

	"codeberg.org/gpumemtop/gpumemtop/allocator/carve"
)

// MapCells is how many equal parts a slab has in its map.
const MapCells = 128

// SlabMap describes the ranges of a slab. Sizes are bytes.
type SlabMap struct {
	Number  int32 // in its pool, from 1
	Arena   bool  // it is a layout's arena
	Size    uint64
	InUse   uint64 // by sub-allocations, decided ones included
	Cooling uint64 // by sub-allocations that commands still use, or may use as long as the slab lives
	Holes   int    // ranges without a sub-allocation
	Largest uint64 // bytes of the largest hole
	Serves  uint64 // the largest request that a slab of its class can serve now; 0: none, or the slab is an arena
	Cells   string // MapCells bytes, see CellUse
}

// CellUse returns how much of a cell is in use and cooling, 0…15; a cell with any byte in use or cooling has 1 at least.
// Cells outside of the map are empty.
func (m *SlabMap) CellUse(i int) (inUse, cooling int) {
	if i < 0 || i >= len(m.Cells) {
		return 0, 0
	}
	return int(m.Cells[i] >> 4), int(m.Cells[i] & 15)
}

// FreeBytes returns the bytes in holes.
func (m *SlabMap) FreeBytes() uint64 { return m.Size - m.InUse - m.Cooling }

// ScatteredBytes returns the bytes in all holes but the largest.
func (m *SlabMap) ScatteredBytes() uint64 { return m.FreeBytes() - m.Largest }

// slabRange is a sub-allocation with its place in a slab.
type slabRange struct {
	slab    int32
	cooling bool
	offset  uint64
	size    uint64
}

// SlabMaps returns maps of at most n slabs that the driver has made: those with the most free bytes. It visits each
// block and sorts the sub-allocations, so only simulations should call it.
func (p *Pool) SlabMaps(n int) []SlabMap {
	if !p.maySlabsExist() {
		return nil
	}
	numbers := p.slabsEmptiestFirst(n)
	maps, places := make([]SlabMap, len(numbers)), map[int32]int{}
	for i, number := range numbers {
		s := &p.slabs.list[number]
		maps[i] = SlabMap{Number: number, Size: p.entryAt(s.entry).size}
		if _, maps[i].Arena = s.home.carver.(*carve.Placed); !maps[i].Arena {
			maps[i].Serves = min(s.home.carver.FreeSpace().Largest, p.limits.largestSubAlloc())
		}
		places[number] = i
	}
	var list []slabRange
	for i := range p.made {
		e := p.entryAt(i)
		if _, wanted := places[e.slab]; !wanted || e.isSlab || e.state == unused {
			continue
		}
		list = append(list, slabRange{e.slab, e.state == cooling || e.state == doomed, e.offset, e.size})
	}
	slices.SortFunc(list, func(a, b slabRange) int { return cmp.Or(cmp.Compare(a.slab, b.slab), cmp.Compare(a.offset, b.offset)) })
	for len(list) > 0 {
		end := slices.IndexFunc(list, func(l slabRange) bool { return l.slab != list[0].slab })
		if end < 0 {
			end = len(list)
		}
		maps[places[list[0].slab]].addSubAllocs(list[:end])
		delete(places, list[0].slab)
		list = list[end:]
	}
	for _, empty := range places {
		maps[empty].addSubAllocs(nil)
	}
	return maps
}

// slabsEmptiestFirst returns the numbers of at most n grown slabs, in order from the most free bytes to the fewest.
func (sl *slabs) slabsEmptiestFirst(n int) (numbers []int32) {
	for number := range sl.list {
		if sl.list[number].grown {
			numbers = append(numbers, int32(number))
		}
	}
	free := func(number int32) uint64 { return sl.entryAt(sl.list[number].entry).size - sl.list[number].used }
	slices.SortStableFunc(numbers, func(a, b int32) int { return cmp.Compare(free(b), free(a)) })
	return numbers[:min(n, len(numbers))]
}

// addSubAllocs enters the sub-allocations of a slab, in the order of their offsets.
func (m *SlabMap) addSubAllocs(list []slabRange) {
	var inUse, cools [MapCells]uint64
	end := uint64(0)
	for _, l := range list {
		m.addHole(end, l.offset)
		end = l.offset + l.size
		if l.cooling {
			m.Cooling += l.size
			m.addRange(&cools, l.offset, end)
			continue
		}
		m.InUse += l.size
		m.addRange(&inUse, l.offset, end)
	}
	m.addHole(end, m.Size)
	var cells [MapCells]byte
	for i := range cells {
		size := m.cellStart(i+1) - m.cellStart(i)
		cells[i] = inFifteenths(inUse[i], size)<<4 | inFifteenths(cools[i], size)
	}
	m.Cells = string(cells[:])
}

// addHole counts a range without a sub-allocation, unless it is empty.
func (m *SlabMap) addHole(from, until uint64) {
	if from < until {
		m.Holes++
		m.Largest = max(m.Largest, until-from)
	}
}

// cellStart returns the offset at which a cell begins.
func (m *SlabMap) cellStart(cell int) uint64 {
	const cells = MapCells
	whole, rest := m.Size/cells, m.Size%cells
	return whole*uint64(cell) + rest*uint64(cell)/cells
}

// addRange adds a range to the cells that it touches.
func (m *SlabMap) addRange(cells *[MapCells]uint64, from, until uint64) {
	first := min(int(float64(from)/float64(m.Size)*MapCells), MapCells-1)
	for first > 0 && m.cellStart(first) > from {
		first--
	}
	for i := first; i < MapCells && m.cellStart(i) < until; i++ {
		if a, b := max(from, m.cellStart(i)), min(until, m.cellStart(i+1)); a < b {
			cells[i] += b - a
		}
	}
}

// inFifteenths returns part/size in 15ths, at least 1 unless part is 0.
func inFifteenths(part, size uint64) byte {
	if part == 0 || size == 0 {
		return 0
	}
	return byte(max(1, min(15, 15*float64(part)/float64(size))))
}
