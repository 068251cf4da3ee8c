package carve

import "testing"

// TestBlockSizeOfSeed004 has the seed's figures. With K = 62 and a heap of 8 GB it prints 133,333,333, which is 8 GB
// divided by 60; divided by 62 it is 129,032,258.
func TestBlockSizeOfSeed004(t *testing.T) {
	const heap = 8_000_000_000
	for _, c := range []struct{ m, h, k, want uint64 }{
		{64_000_000, heap, 62, 129_032_258},
		{64_000_000, heap, 60, 133_333_333},
		{0, heap, 250, 32_000_000},              // "32mb ... around 250 allocations"
		{16_000_000, heap, 250, 32_000_000},     // a 2048x2048 texture has room to spare
		{64_000_000, heap, 250, 64_000_000},     // M is larger
		{64_000_000, heap, 0, heap},             // K counts as 1
		{64_000_000, heap, 1, heap},             //
		{0, 0, 62, 0},                           //
		{1 << 63, ^uint64(0), 2, 1 << 63},       // no overflow
		{0, ^uint64(0), 1, ^uint64(0)},          //
		{128_000_000, heap, 62, 129_032_258},    // "128mb ... just over 62 allocations"
		{130_000_000, 7 * heap, 434, 1.3e8},     // K is a wish
		{129_032_258, heap, 62, 129_032_258},    //
		{129_032_259, heap, 62, 129_032_259},    //
		{67_108_864, 12 << 30, 62, 207_820_998}, // the seed's HD 620
	} {
		if got := SeedBlockSize(c.m, c.h, c.k); got != c.want {
			t.Errorf("M %d, H %d, K %d: %d, want %d", c.m, c.h, c.k, got, c.want)
		}
	}
	if blocks := uint64(heap / 128_000_000); blocks != 62 {
		t.Errorf("8 GB are %d blocks of 128 MB, the seed has just over 62", blocks)
	}
}

func TestChoose(t *testing.T) {
	const k, m = 1 << 10, 1 << 20
	best := NewBestFit(256)
	for _, c := range []struct {
		name         string
		sizing       Sizing
		hints        Hints
		slab, serves uint64
	}{
		{"nothing known", Sizing{}, Hints{}, m, m / 4},
		{"small requests", Sizing{}, Hints{Request: 100}, m, m / 4},
		{"the largest below 1 MiB", Sizing{}, Hints{Request: 256 * k}, m, 256 * k},
		{"one byte more", Sizing{}, Hints{Request: 256*k + 1}, 2 * m, 512 * k},
		{"rounded up", Sizing{}, Hints{Request: 3 * m}, 16 * m, 4 * m},
		{"the largest below 64 MiB", Sizing{}, Hints{Request: 16 * m}, 64 * m, 16 * m},
		{"humongous", Sizing{}, Hints{Request: 16*m + 1}, 64 * m, 16 * m},
		{"absurd", Sizing{}, Hints{Request: ^uint64(0)}, 64 * m, 16 * m},
		{"much in use", Sizing{}, Hints{Request: m, InUse: 62 * 5 * m}, 5 * m, m},
		{"more than the device has", Sizing{Memory: 62 * 6 * m}, Hints{Request: m, InUse: 620 * m}, 6 * m, m},
		{"few blocks", Sizing{K: 2}, Hints{Request: m, InUse: 62 * m}, 31 * m, m},
		{"rounded to the alignment", Sizing{K: 1}, Hints{Request: m, InUse: 5*m + 1}, 5*m + 256, m},
		{"M given", Sizing{M: 3 * m}, Hints{Request: 100 * m}, 3 * m, 3 * m},
		{"M and H given", Sizing{M: 3 * m, H: 620 * m}, Hints{Request: 9 * m, InUse: m}, 10 * m, 3 * m},
		{"H given, memory does not matter", Sizing{H: 620 * m, Memory: m}, Hints{}, 10 * m, m / 4},
		{"the device has less", Sizing{M: 8 * m, Limit: 2*m + 255}, Hints{}, 2 * m, 2 * m},
		{"exactly the device's limit", Sizing{M: 8 * m, Limit: 8 * m}, Hints{}, 8 * m, 8 * m},
		{"the device has nothing", Sizing{Limit: 255}, Hints{}, 0, 0},
		{"no slab is that large", Sizing{M: 1 << 60}, Hints{}, 1 << 48, 1 << 48},
	} {
		c.slab = min(c.slab, best.UsableBytes(^uint64(0)))
		c.serves = min(c.serves, best.UsableBytes(^uint64(0)))
		if slab, serves := c.sizing.ChooseSlabSize(best, c.hints); slab != c.slab || serves != c.serves {
			t.Errorf("%s: slab %d, serves %d; want %d, %d", c.name, slab, serves, c.slab, c.serves)
		}
	}
}

// TestChooseRounds: what a carver rounds requests and slabs to is in the size.
func TestChooseRounds(t *testing.T) {
	const m = 1 << 20
	for _, c := range []struct {
		name         string
		carver       Carver
		sizing       Sizing
		slab, serves uint64
	}{
		{"buddy", NewBuddy(4096), Sizing{M: 3 * m}, 4 * m, 3 * m},
		{"buddy, H/K is larger", NewBuddy(4096), Sizing{M: 3 * m, H: 5*m + 1, K: 1}, 5*m + 4096, 3 * m},
		{"buddy, the device has less", NewBuddy(4096), Sizing{M: 3 * m, Limit: 3 * m}, 2 * m, 2 * m},
		{"ualloc", NewUAlloc(128), Sizing{}, 2 * m, m / 4},
		{"ualloc of 512", NewUAlloc(512), Sizing{}, 8 * m, m / 4},
		{"ualloc, the device has less than a chunk", NewUAlloc(128), Sizing{Limit: 2*m - 1}, 0, 0},
	} {
		if slab, serves := c.sizing.ChooseSlabSize(c.carver, Hints{}); slab != c.slab || serves != c.serves {
			t.Errorf("%s: slab %d, serves %d; want %d, %d", c.name, slab, serves, c.slab, c.serves)
		}
	}
}
