package ualloc

import (
	"fmt"
	"math/rand/v2"
	"slices"
	"testing"

	"codeberg.org/gpumemtop/gpumemtop/internal/testkit/racetest"
)

// The figures of seed 001 §4.2: those that it states, and what its contradictions leave of them.
func TestGeometryOfTheSeed(t *testing.T) {
	g := Geometry{Unit: 8, Pages: 1024}
	for _, fact := range []struct {
		what      string
		got, want uint64
	}{
		{"bin", g.PageBytes(), 4 << 10},
		{"chunk", g.ChunkBytes(), 512 << 10},
		{"header", headerUnits * g.Unit, 128},
		{"tail", tailUnits * g.Unit, 128},
		{"bytes below the header of a bin", bodyUnits * g.Unit, 3968},
		{"tails", tailedBins, 62},
		{"bins in a chunk", chunkBins, 128},
		{"slots in a bin's bitmap", bitmapWords * 64, 512},
		{"largest size", g.LargestSmall(), 1 << 10},
	} {
		if fact.got != fact.want {
			t.Errorf("%s: %d, want %d", fact.what, fact.got, fact.want)
		}
	}
}

// Every unit of a chunk belongs to a header or to one unit of one bin, and the mapping goes both ways.
func TestUnitsAndSlotsAreOneToOne(t *testing.T) {
	for class := range classes {
		seen := make([]bool, chunkBins*binUnits)
		slots := 0
		for index := headerBins; index < chunkBins; index++ {
			for slot := range binCapacity(class, index) {
				unit := unitOf(class, index, slot)
				for i := range 1 << class {
					if seen[unit+i] || (unit+i)%binUnits < headerUnits {
						t.Fatalf("class %d, bin %d, slot %d: unit %d is in use or a header", class, index, slot, unit+i)
					}
					seen[unit+i] = true
				}
				got, within, ok := locateUnit(unit)
				if !ok || got != index || within != slot<<class {
					t.Fatalf("unit %d is in bin %d at %d (%v), want bin %d at %d", unit, got, within, ok, index, slot<<class)
				}
				slots++
			}
		}
		if declared := (Geometry{}).chunkSlots(); class == 0 && slots != declared {
			t.Errorf("a chunk has %d slots, declared as %d", slots, declared)
		}
	}
	if _, _, ok := locateUnit(5*binUnits + headerUnits - 1); ok {
		t.Error("a header is in a bin")
	}
}

// The exhaustion of seed 001 §5.3 with one chunk: how many blocks of a size fit. The arithmetic, for units of 8 bytes:
//
//	    8 B  62 bins of 496+16 and 64 bins of 496          62*512 + 64*496 = 63488 of 65536
//	   64 B  62 bins of  62+2  and 64 bins of  62          62* 64 + 64* 62 =  7936 of  8192
//	  128 B  62 bins of  31+1  and 64 bins of  31          62* 32 + 64* 31 =  3968 of  4096
//	  256 B  15 in each of 126 bins: 3968/256 = 15.5               126* 15 =  1890 of  2048
//	  512 B   7 in each: 3968/512 = 7.75                           126*  7 =   882 of  1024
//	1 KiB     3 in each: 3968/1024 = 3.875, 3 of 4                 126*  3 =   378 of   512
//	2 KiB     a page each: half of them fail                                   128 of   256
//	4 KiB     a page each                                                      128 of   128
//	512 KiB   the pool                                                           1 of     1
func TestExhaustionOfOneChunk(t *testing.T) {
	for _, test := range []struct {
		size uint64
		want int
	}{{8, 63488}, {64, 7936}, {128, 3968}, {256, 1890}, {512, 882}, {1 << 10, 378}, {2 << 10, 128}, {4 << 10, 128}, {512 << 10, 1}} {
		for _, unit := range []uint64{8, 128, 512} {
			t.Run(fmt.Sprintf("size=%d/unit=%d", test.size, unit), func(t *testing.T) {
				coarse := newBuddy(chunkBins)
				al, err := New(coarse, Geometry{Unit: unit, Pages: chunkBins}, 1)
				if err != nil {
					t.Fatal(err)
				}
				// All sizes scale with the unit.
				var offsets []uint64
				for {
					offset, _, ok := al.Alloc(0, test.size*unit/8)
					if !ok {
						break
					}
					offsets = append(offsets, offset)
				}
				if len(offsets) != test.want {
					t.Errorf("%d blocks, want %d", len(offsets), test.want)
				}
				if err := al.Validate(); err != nil {
					t.Error(err)
				}
				slices.Sort(offsets)
				for i, offset := range offsets {
					if i > 0 && offset-offsets[i-1] < test.size*unit/8 {
						t.Fatalf("blocks at %d and %d overlap", offsets[i-1], offset)
					}
				}
				for _, offset := range offsets {
					if _, ok := al.Free(offset); !ok {
						t.Fatalf("offset %d cannot be freed", offset)
					}
				}
				al.Trim()
				if coarse.free != chunkBins {
					t.Errorf("%d pages are home, want %d", coarse.free, chunkBins)
				}
			})
		}
	}
}

// A chunk of fewer bins has fewer usable bins, all with tails. The chunk goes back as a whole.
func TestChunksOfFewerBins(t *testing.T) {
	for bins, want := range map[int]int{4: 2 * 512, 16: 14 * 512, 32: 30 * 512, 64: 62 * 512, 128: 62*512 + 64*496} {
		p := newPool(t, Geometry{Unit: 8, Pages: bins, Bins: bins}, 1)
		got := 0
		for {
			if _, _, ok := p.Alloc(0, 8); !ok {
				break
			}
			got++
		}
		if got != want || p.coarse.free != 0 {
			t.Errorf("a chunk of %d bins holds %d units, want %d; %d pages are left", bins, got, want, p.coarse.free)
		}
		if err := p.Validate(); err != nil {
			t.Error(err)
		}
		for offset := uint64(0); offset < p.Geometry().ChunkBytes(); offset += 8 {
			p.Free(offset)
		}
		p.Trim()
		if p.coarse.free != bins {
			t.Errorf("of a chunk of %d bins %d are home", bins, p.coarse.free)
		}
	}
}

// Small sizes first take bins with tails, sizes that cannot use tails bins without.
func TestTailsGoToThoseWhoCanUseThem(t *testing.T) {
	p := newPool(t, Geometry{Unit: 8, Pages: chunkBins}, 1)
	small, _ := p.alloc(0, 128)
	large, _ := p.alloc(0, 1024)
	if small.offset != 2*4096+128 || large.offset != 127*4096+128 {
		t.Errorf("first blocks at %d and %d, want those of bins 2 and 127", small.offset, large.offset)
	}
	for range 31 {
		p.alloc(0, 100)
	}
	if last := p.blocks[0]; last.offset != 128 { // the 32nd block of bin 2 is in the first tail
		t.Errorf("first block by offset at %d, want the first tail", last.offset)
	}
	p.empty()
}

func TestRefusals(t *testing.T) {
	p := newPool(t, Geometry{Unit: 8, Pages: 3 * chunkBins}, 2)
	for _, size := range []uint64{0, 3*512<<10 + 1, 1 << 63, ^uint64(0)} {
		if _, ok := p.alloc(0, size); ok {
			t.Errorf("a block of %d bytes", size)
		}
	}
	p.alloc(-1, 8)
	p.alloc(7, 1024)
	p.alloc(0, 300<<10)
	p.check()
	out := map[uint64]bool{}
	for _, b := range p.blocks {
		out[b.offset] = true
	}
	for offset := uint64(0); offset < 4*512<<10; offset++ {
		if out[offset] {
			continue
		}
		if _, ok := p.Free(offset); ok {
			t.Fatalf("offset %d is no block's and was freed", offset)
		}
	}
	if _, ok := p.Free(^uint64(0)); ok {
		t.Error("an offset outside of the pool was freed")
	}
	p.check()
	p.empty()
	for offset := range out {
		if _, ok := p.Free(offset); ok {
			t.Errorf("offset %d was freed twice", offset)
		}
	}
}

func TestNewRefuses(t *testing.T) {
	for _, test := range []struct {
		g      Geometry
		arenas int
	}{{Geometry{0, 1, 0}, 1}, {Geometry{24, 1, 0}, 1}, {Geometry{1 << 60, 1, 0}, 1}, {Geometry{8, 0, 0}, 1}, {Geometry{8, 1 << 50, 0}, 1},
		{Geometry{8, 1, 0}, 0}, {Geometry{8, 1, 2}, 1}, {Geometry{8, 1, 48}, 1}, {Geometry{8, 1, 256}, 1}, {Geometry{8, 1, -32}, 1}} {
		if _, err := New(newBuddy(1), test.g, test.arenas); err == nil {
			t.Errorf("%+v with %d arenas is accepted", test.g, test.arenas)
		}
	}
}

// An arena has no more chunks than its semaphores can count slots for.
func TestArenaHasALimit(t *testing.T) {
	maxChunks := Geometry{}.MaxChunks()
	pages := (maxChunks + 1) * chunkBins
	for arenas, want := range map[int]int{1: maxChunks * 378, 2: (maxChunks + 1) * 378} {
		al, err := New(newBuddy(pages), Geometry{Unit: 8, Pages: pages}, arenas)
		if err != nil {
			t.Fatal(err)
		}
		got := 0
		for ok := true; ok; got++ {
			_, _, ok = al.Alloc(0, 1024)
		}
		if got--; got != want {
			t.Errorf("%d blocks in %d arenas, want %d", got, arenas, want)
		}
	}
}

// A thread whose arena is exhausted finds memory that other arenas have left.
func TestOtherArenasHelpOut(t *testing.T) {
	p := newPool(t, Geometry{Unit: 8, Pages: 2 * chunkBins}, 3)
	p.alloc(1, 1024)
	p.alloc(2, 8)
	for range 377 + 125*3 { // the rest of arena 1, and 125 bins of arena 2
		if _, ok := p.alloc(0, 1024); !ok {
			t.Fatal("refused, although there is room")
		}
	}
	if _, ok := p.alloc(0, 1024); ok {
		t.Error("more blocks than fit")
	}
	if _, ok := p.alloc(0, 8); !ok {
		t.Error("another class of another arena is not found")
	}
	p.empty()
}

// run is a random program: requests of all sizes and frees, one after the other.
func run(p *pool, rng *rand.Rand, steps int, each func(b block, ok bool)) {
	for range steps {
		if len(p.blocks) > 0 && rng.IntN(100) < 45 {
			p.release(rng.IntN(len(p.blocks)))
		} else {
			each(p.alloc(rng.IntN(3), 1+rng.Uint64N(p.Geometry().Unit<<rng.IntN(12))))
		}
		p.check()
	}
}

func TestAgainstIntervals(t *testing.T) {
	racetest.Slow(t)
	for _, unit := range []uint64{8, 512} {
		for _, pages := range []int{chunkBins - 1, 3*chunkBins + 5} {
			for seed, bins := range []int{0, 64, 32, 4} {
				p := newPool(t, Geometry{Unit: unit, Pages: pages, Bins: bins}, 2)
				run(p, rand.New(rand.NewPCG(uint64(seed), unit)), 800, func(block, bool) {})
				p.empty()
			}
		}
	}
}

func TestSameCallsSameAnswers(t *testing.T) {
	log := func() (log []block) {
		p := newPool(t, Geometry{Unit: 8, Pages: 2 * chunkBins}, 2)
		run(p, rand.New(rand.NewPCG(1, 2)), 300, func(b block, ok bool) { log = append(log, b) })
		return log
	}
	if !slices.Equal(log(), log()) {
		t.Error("the same calls got different answers")
	}
}

// FuzzCalls reads a program: two bytes a call.
func FuzzCalls(f *testing.F) {
	f.Add([]byte{0, 7, 1, 200, 128, 0, 2, 13, 129, 1})
	f.Fuzz(func(t *testing.T, program []byte) {
		p := newPool(t, Geometry{Unit: 8, Pages: 2*chunkBins + 3}, 2)
		for ; len(program) >= 2 && len(p.blocks) < 200; program = program[2:] {
			what, how := program[0], program[1]
			if what < 128 || len(p.blocks) == 0 {
				p.alloc(int(what), 1+uint64(how)<<(what%13))
			} else if what < 250 {
				p.release(int(how) % len(p.blocks))
			} else { // near a block, but not at its beginning
				b := p.blocks[int(how)%len(p.blocks)]
				if _, ok := p.Free(b.offset + 1 + uint64(how)%max(1, b.size-1)); ok {
					t.Fatal("the inside of a block was freed")
				}
			}
			p.check()
		}
		p.empty()
	})
}
