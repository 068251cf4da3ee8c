package ui

import (
	"strings"
	"testing"

	"github.com/charmbracelet/x/exp/golden"

	"codeberg.org/gpumemtop/gpumemtop/allocator"
	"codeberg.org/gpumemtop/gpumemtop/internal/stats"
)

// mapped has three slabs: one with holes all over, one that is half full, and a plan's arena.
func mapped(s *stats.Snapshot) *stats.Snapshot {
	s.Policy = "slab"
	draw := func(at func(i int) byte) string {
		cells := make([]byte, allocator.MapCells)
		for i := range cells {
			cells[i] = at(i)
		}
		return string(cells)
	}
	s.Heap = &stats.HeapMap{Time: s.Time, Total: 3, Slabs: []stats.MappedSlab{
		{Process: 1, SlabMap: allocator.SlabMap{
			Number: 2, Size: 64 * mib, InUse: 40 * mib, Cooling: 4 * mib, Holes: 17, Largest: 3 * mib, Serves: 8 * mib,
			Cells: draw(func(i int) byte { return []byte{0xf0, 0xf0, 0x70, 0, 0x0f, 0xf0, 0}[i%7] }),
		}},
		{Process: 1, SlabMap: allocator.SlabMap{
			Number: 1, Size: 32 * mib, InUse: 16 * mib, Holes: 1, Largest: 16 * mib, Serves: 8 * mib,
			Cells: draw(func(i int) byte {
				if i < allocator.MapCells/2 {
					return 0xf0
				}
				return 0
			}),
		}},
		{Process: 1, SlabMap: allocator.SlabMap{Number: 3, Arena: true, Size: 8 * mib, InUse: 8 * mib, Cells: draw(func(int) byte { return 0xf0 })}},
	}}
	return s
}

func TestHeapMapGolden(t *testing.T) {
	for _, size := range goldenSizes {
		t.Run(itoa(size[0])+"x"+itoa(size[1]), func(t *testing.T) {
			d := newTest((&calls{}).options(), size[0], size[1], mapped(sampleSnapshot()))
			press(d, "H")
			checkFrame(t, frameText(d), size[0], size[1])
			golden.RequireEqual(t, screen(d))
		})
	}
}

// TestFitsASlab types sizes into F while the map is on the screen.
func TestFitsASlab(t *testing.T) {
	for size, want := range map[string]string{
		"8M":  "8.00M now: fits a slab of its class",
		"12M": "12.0M now: no slab serves it, though a hole is as large",
		"20M": "20.0M now: does not fit: 36.0M are free, but no hole is larger than 16.0M (fragmentation)",
		"40M": "40.0M now: does not fit: only 36.0M are free in slabs",
	} {
		d := newTest((&calls{}).options(), 120, 36, mapped(sampleSnapshot()))
		press(d, "H", "F")
		press(d, strings.Split(size, "")...)
		press(d, "enter")
		shows(t, d, want, "in slabs: in use 64.0M, free 36.0M in 18 holes, the largest 16.0M; a slab serves up to 8.00M")
	}
}

// TestHeapMapSaysWhatItIsWorth names what a map lacks, and why there is none.
func TestHeapMapSaysWhatItIsWorth(t *testing.T) {
	for want, change := range map[string]func(s *stats.Snapshot){
		"where parts lie is worked out from the records":      func(*stats.Snapshot) {},
		"≈ without what was there at 00:05":                   func(s *stats.Snapshot) { s.Heap.Since = s.Started + 5e9 },
		"lost events are missing in them":                     func(s *stats.Snapshot) { s.Lost = 1 },
		"the map stays as it was at 00:07: could not keep up": func(s *stats.Snapshot) { s.Heap.Ended, s.Heap.Time = "could not keep up", s.Started+7e9 },
		"no map: could not keep up":                           func(s *stats.Snapshot) { s.Heap = &stats.HeapMap{Ended: "could not keep up"} },
		"no slab yet":                                         func(s *stats.Snapshot) { s.Heap = nil },
		"no map: nothing is simulated":                        func(s *stats.Snapshot) { s.Heap, s.Totals.Slabs = nil, 1 },
		"no slab: images":                                     func(s *stats.Snapshot) { s.Heap, s.WholeBlocks = nil, "images" },
		"policy futhark cuts no slabs":                        func(s *stats.Snapshot) { s.Heap, s.Policy = nil, "futhark" },
		"worst first":                                         func(s *stats.Snapshot) { s.Heap.Total = 900 },
	} {
		s := mapped(sampleSnapshot())
		change(s)
		d := newTest((&calls{}).options(), 140, 36, s)
		press(d, "H")
		shows(t, d, want)
	}
}

// TestHeapMapOfOneProcess leaves the slabs of the others out.
func TestHeapMapOfOneProcess(t *testing.T) {
	s := mapped(sampleSnapshot())
	s.Heap.Slabs[1].Process = 2
	other := s.Processes[0]
	other.Number, other.PID = 2, 4712
	s.Processes = append(s.Processes, other)
	d := newTest((&calls{}).options(), 140, 36, s)
	press(d, "H")
	shows(t, d, "1:s2", "2:s1", "1:a3")
	press(d, "p", "p")
	shows(t, d, "s1")
	hides(t, d, "s2", "a3")
}
