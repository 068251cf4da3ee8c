package carve

import (
	"fmt"
	"math/rand/v2"
	"slices"
	"sort"
	"strings"
	"testing"
)

// TestThreeHoles is the example of METRICS: three free ranges of 256 bytes with sub-allocations between them.
func TestThreeHoles(t *testing.T) {
	c := NewBestFit(16)
	c.AddSlab(1, 6*256)
	var parts [6]Part
	for i := range parts {
		parts[i], _ = c.Carve(256)
	}
	for _, i := range []int{4, 0, 2} {
		c.Free(parts[i])
	}
	if got, want := c.FreeSpace(), (Space{Bytes: 768, Largest: 256, Squares: 3 * 256 * 256, Ranges: 3}); got != want {
		t.Errorf("%+v, want %+v", got, want)
	}
	if p, ok := c.Carve(512); ok {
		t.Errorf("a request of 512 bytes got %+v", p)
	}
}

// TestSameCallsSameParts: replay relies on it.
func TestSameCallsSameParts(t *testing.T) {
	for i := range kinds {
		run := func() string {
			var log strings.Builder
			w := newChurn(kinds[i].create(), 1<<16, kinds[i].sizes[1])
			for range 500 {
				w.grow()
			}
			for range 500 {
				fmt.Fprint(&log, w.step())
			}
			return log.String()
		}
		if first, again := run(), run(); first != again {
			t.Errorf("%s answers the same calls differently", kinds[i].name)
		}
	}
}

// churn holds sub-allocations of random sizes, and replaces them one by one.
type churn struct {
	c        Carver
	rng      *rand.Rand
	slab     uint64
	size     uint64
	slabs    int32
	live     []Part
	requests []uint64
}

func newChurn(c Carver, slab, size uint64) *churn {
	return &churn{c: c, rng: rand.New(rand.NewPCG(5, 5)), slab: c.SlabSize(slab), size: size}
}

func (w *churn) carve(size uint64) Part {
	p, ok := w.c.Carve(size)
	if !ok {
		w.slabs++
		w.c.AddSlab(w.slabs, w.slab)
		p, _ = w.c.Carve(size)
	}
	return p
}

func (w *churn) grow() {
	size := 1 + w.rng.Uint64N(w.size)
	w.requests = append(w.requests, size)
	w.live = append(w.live, w.carve(size))
}

// step frees one sub-allocation and carves one of the size that another has.
func (w *churn) step() Part {
	i := w.rng.IntN(len(w.live))
	w.c.Free(w.live[i])
	w.live[i] = w.carve(w.requests[w.rng.IntN(len(w.live))])
	return w.live[i]
}

func TestSteadyStateAllocatesNothing(t *testing.T) {
	for i := range kinds {
		w := newChurn(kinds[i].create(), 1<<20, kinds[i].sizes[1])
		for range 1000 {
			w.grow()
		}
		for range 100_000 { // until it never had that few ranges before, and each bin has been home
			w.step()
		}
		if n := testing.AllocsPerRun(10, func() {
			for range 1000 {
				w.step()
			}
		}); n != 0 {
			t.Errorf("%s: %v allocations per thousand", kinds[i].name, n)
		}
	}
}

// BenchmarkCarve frees one of many sub-allocations of 1 to 64 KiB, at random, and carves another.
func BenchmarkCarve(b *testing.B) {
	for _, c := range []struct {
		name   string
		create func() Carver
	}{
		{"bestfit", func() Carver { return NewBestFit(128) }},
		{"buddy", func() Carver { return NewBuddy(4096) }},
		{"ualloc", func() Carver { return NewUAlloc(128) }},
	} {
		for _, n := range []int{100, 1_000, 10_000, 100_000, 1_000_000} {
			b.Run(fmt.Sprintf("%s/parts=%d", c.name, n), func(b *testing.B) {
				w := newChurn(c.create(), 64<<20, 64<<10)
				for range n {
					w.grow()
				}
				b.ReportAllocs()
				for b.Loop() {
					w.step()
				}
			})
		}
	}
}

// TestMisusePanics: calls that only a bug makes panic at once, with a message.
func TestMisusePanics(t *testing.T) {
	for i := range kinds {
		k := &kinds[i]
		for name, misuse := range map[string]func(c Carver, p Part){
			"slab 0":             func(c Carver, _ Part) { c.AddSlab(0, 4096) },
			"slab -1":            func(c Carver, _ Part) { c.AddSlab(-1, 4096) },
			"too many slabs":     func(c Carver, _ Part) { c.AddSlab(MaxSlabs, 4096) },
			"added twice":        func(c Carver, p Part) { c.AddSlab(p.Slab, k.slabs[0]) },
			"too small a slab":   func(c Carver, _ Part) { c.AddSlab(3, 0) },
			"removed with parts": func(c Carver, p Part) { c.RemoveSlab(p.Slab) },
			"unknown slab":       func(c Carver, _ Part) { c.RemoveSlab(7) },
			"part of no slab":    func(c Carver, p Part) { p.Slab = 9; c.Free(p) },
			"freed twice":        func(c Carver, p Part) { c.Free(p); c.Free(p) },
			"part moved":         func(c Carver, p Part) { p.Offset += p.Size; c.Free(p) },
			"part beyond":        func(c Carver, p Part) { p.Offset += 1 << 50; c.Free(p) },
			"part off by one":    func(c Carver, p Part) { p.Offset++; c.Free(p) },
			"part grown":         func(c Carver, p Part) { p.Size *= 2; c.Free(p) },
			"part shrunk":        func(c Carver, p Part) { p.Size--; c.Free(p) },
			"part before":        func(c Carver, p Part) { p.Offset = 0; p.Size = c.RoundUp(1); c.Free(p) },
		} {
			for _, size := range []uint64{1, 600} {
				c := k.create()
				c.AddSlab(1, k.slabs[0])
				c.AddSlab(2, k.slabs[0])
				c.Carve(size + 40)
				p, _ := c.Carve(size)
				if said := catch(func() { misuse(c, p) }); !strings.HasPrefix(said, "carve: ") {
					t.Errorf("%s, %s, %+v: panic %q", k.name, name, p, said)
				}
			}
		}
	}
	for name, create := range map[string]func(uint64) Carver{"bestfit": NewBestFit, "buddy": NewBuddy, "ualloc": NewUAlloc} {
		for _, align := range []uint64{0, 3, 1 << 21, 1 << 63} {
			if said := catch(func() { create(align) }); !strings.HasPrefix(said, "carve: ") {
				t.Errorf("%s, alignment %d: panic %q", name, align, said)
			}
		}
		for align := uint64(1); align <= 1<<20; align *= 2 {
			c := create(align)
			if size := c.SlabSize(1); size%align != 0 || c.RoundUp(1) != align || c.UsableBytes(size) < align || c.UsableBytes(1<<63) > 1<<48 {
				t.Errorf("%s, alignment %d: slab of %d, part of %d, usable up to %d", name, align, size, c.RoundUp(1), c.UsableBytes(1<<63))
			}
		}
	}
}

// TestSmallPartsFillBins: a new bin is begun when all of its size are full, and a new chunk when no bin is left,
// whatever the slabs' numbers.
func TestSmallPartsFillBins(t *testing.T) {
	c := NewUAlloc(1)
	c.AddSlab(2, 2*32*512)
	carve := func(size uint64, slab int32) Part {
		t.Helper()
		p, ok := c.Carve(size)
		if !ok || p.Slab != slab {
			t.Fatalf("a request of %d got %+v, %v; want slab %d", size, p, ok, slab)
		}
		return p
	}
	carve(1, 2)
	c.AddSlab(1, 32*512)
	carve(1, 2)            // a slot of the bin that is there
	carve(100, 2)          // a bin of the chunk that is there
	large := carve(129, 1) // pages of the lowest slab
	for range 29*3 - 1 {   // 30 bins less one hold three each
		carve(128, 2)
	}
	carve(128, 2) // another chunk, for which slab 1 has no room
	c.Free(large)
	if p := carve(513, 1); p.Size != 1024 || p.Offset != 0 {
		t.Errorf("a large request got %+v", p)
	}
	if err := c.Validate(); err != nil {
		t.Error(err)
	}
}

// TestEmptySlabIsWhole: the bins and the chunk that stay for the next small sub-allocation block no other request.
func TestEmptySlabIsWhole(t *testing.T) {
	c := NewUAlloc(1)
	const chunk = 32 * 512
	c.AddSlab(1, 2*chunk)
	untouched := c.FreeSpace()
	cycle := func() {
		for class := range 8 {
			p, _ := c.Carve(1 << class)
			c.Free(p)
		}
	}
	cycle()
	if got := c.FreeSpace(); got != untouched || got.Largest != c.UsableBytes(2*chunk) {
		t.Errorf("an empty slab has %+v, before its first part %+v", got, untouched)
	}
	large, ok := c.Carve(2 * chunk)
	if !ok || large.Fresh {
		t.Errorf("a request for all of an empty slab got %+v, %v", large, ok)
	}
	c.Free(large)
	cycle()
	c.Carve(chunk + 1) // nothing: it takes both
	if p, ok := c.Carve(1); ok {
		t.Errorf("a full slab has %+v", p)
	}
	c.Free(Part{Slab: 1, Size: 2 * chunk})
	cycle()
	low, _ := c.Carve(chunk)
	high, _ := c.Carve(1)
	c.Free(high)
	c.Free(low)
	if got := c.FreeSpace(); got != untouched || high.Offset < chunk {
		t.Errorf("with the second chunk left, an empty slab has %+v, before its first part %+v", got, untouched)
	}
	if err := c.Validate(); err != nil {
		t.Error(err)
	}
	c.RemoveSlab(1)
	if got := c.FreeSpace(); got != (Space{}) {
		t.Errorf("no slab is left, and space is %+v", got)
	}
}

// TestOneChunkStays: sub-allocations of a different size in each of many chunks leave one chunk at most.
func TestOneChunkStays(t *testing.T) {
	c := NewUAlloc(1)
	c.AddSlab(1, 8*32*512)
	var parts []Part
	for class := range 8 {
		for range 30 * (496>>class + 16>>class) {
			p, ok := c.Carve(1 << class)
			if !ok || int(p.Offset>>9)/32 != class {
				t.Fatalf("a request of %d got %+v, %v; want it in chunk %d", 1<<class, p, ok, class)
			}
			parts = append(parts, p)
		}
	}
	for _, p := range parts {
		c.Free(p)
	}
	s := *c.(*binned).slabs.elementOf(1)
	if free := s.pages.tree.FreePages(); free < 7*32 {
		t.Errorf("%d pages are free; want all but those of one chunk", free)
	}
	if err := c.Validate(); err != nil {
		t.Error(err)
	}
}

// TestNoSlabWithoutRoomForAChunk: without room for a chunk of bins there is no slab.
func TestNoSlabWithoutRoomForAChunk(t *testing.T) {
	for _, unit := range []uint64{8, 128, 512} {
		c := NewUAlloc(unit)
		chunk := 32 * 512 * unit
		if c.SlabSize(1) != chunk || c.UsableBytes(chunk) != chunk || c.UsableBytes(chunk-1) != 0 || c.SlabSize(chunk+1) != chunk+512*unit {
			t.Errorf("unit %d: slabs of %d and %d bytes, %d and %d are usable of one chunk and a byte less", unit, c.SlabSize(1), c.SlabSize(chunk+1), c.UsableBytes(chunk), c.UsableBytes(chunk-1))
		}
	}
}

func catch(f func()) (said string) {
	defer func() {
		if r := recover(); r != nil {
			said = fmt.Sprint(r)
		}
	}()
	f()
	return ""
}

// TestSizesAtTheEndsOf64Bits: sizes at the ends of what 64 bits hold.
func TestSizesAtTheEndsOf64Bits(t *testing.T) {
	for i := range kinds {
		c := kinds[i].create()
		most := c.UsableBytes(^uint64(0))
		if most == 0 || c.RoundUp(most) != most || c.SlabSize(most) < most || c.UsableBytes(c.SlabSize(most)) < most {
			t.Errorf("%s: %d bytes are usable, round to %d and need %d", kinds[i].name, most, c.RoundUp(most), c.SlabSize(most))
		}
		for _, size := range []uint64{most + 1, 1 << 62, 1 << 63, ^uint64(0)} {
			if c.RoundUp(size) != 0 || size > maxBytes && c.SlabSize(size) != 0 {
				t.Errorf("%s: %d rounds to %d and needs a slab of %d", kinds[i].name, size, c.RoundUp(size), c.SlabSize(size))
			}
			if p, ok := c.Carve(size); ok {
				t.Errorf("%s: %d got %+v", kinds[i].name, size, p)
			}
		}
		largest := uint64(sort.Search(1<<50, func(size int) bool { return size > 0 && c.SlabSize(uint64(size)) == 0 }) - 1)
		if c.SlabSize(largest) != largest || largest < most {
			t.Errorf("%s: the largest slab has %d bytes, for which %d are needed", kinds[i].name, largest, c.SlabSize(largest))
		}
		if c.RoundUp(0) != c.RoundUp(1) || c.UsableBytes(0) != 0 {
			t.Errorf("%s: 0 rounds to %d, 1 to %d; of nothing %d is usable", kinds[i].name, c.RoundUp(0), c.RoundUp(1), c.UsableBytes(0))
		}
		for want := uint64(1); want < most/4; want = want*3 + 1 {
			if slab := c.SlabSize(want); slab < want || c.SlabSize(slab) != slab {
				t.Errorf("%s: a slab for %d has %d, and for that %d", kinds[i].name, want, slab, c.SlabSize(slab))
			}
			if slab := c.SlabSize(c.RoundUp(want)); c.UsableBytes(slab) < want {
				t.Errorf("%s: a slab for a part of %d has %d and serves %d", kinds[i].name, want, slab, c.UsableBytes(slab))
			}
		}
	}
}

// TestUnitsScale: with another unit, the same sub-allocations and free ranges are as many times larger.
func TestUnitsScale(t *testing.T) {
	const unit, slab = 64, 1 << 16
	for name, create := range map[string]func(uint64) Carver{"bestfit": NewBestFit, "buddy": NewBuddy, "ualloc": NewUAlloc} {
		rng := rand.New(rand.NewPCG(6, 6))
		one, many := create(1), create(unit)
		one.AddSlab(1, slab)
		many.AddSlab(1, unit*slab)
		scaled := func(p Part) Part { return Part{p.Slab, unit * p.Offset, unit * p.Size, p.Fresh} }
		var live []Part
		for range 3000 {
			if i := rng.IntN(100 + len(live)); i < len(live) {
				if one.Free(live[i]) != many.Free(scaled(live[i])) {
					t.Fatalf("%s: %+v comes back", name, live[i])
				}
				live = slices.Delete(live, i, i+1)
			} else {
				size := 1 + rng.Uint64N(4000)>>rng.IntN(12)
				p, there := one.Carve(size)
				if q, too := many.Carve(unit * size); q != scaled(p) || too != there {
					t.Fatalf("%s: %+v and, with a unit of %d, %+v", name, p, unit, q)
				}
				if there {
					live = append(live, p)
				}
			}
			if a, b := one.FreeSpace(), many.FreeSpace(); b != (Space{unit * a.Bytes, unit * a.Largest, unit * unit * a.Squares, a.Ranges}) {
				t.Fatalf("%s: %+v and, with a unit of %d, %+v", name, a, unit, b)
			}
		}
	}
}
