package allocator

import (
	"testing"

	"codeberg.org/gpumemtop/gpumemtop/internal/wire"
)

// TestArenaGivesUpBeforeItGrows has seed 000's device: three free blocks of 256 MiB, and a request of 512 MiB.
func TestArenaGivesUpBeforeItGrows(t *testing.T) {
	d := newDriver(t, "arena", "")
	var blocks []Block
	for i := range 3 {
		blocks = append(blocks, d.alloc(256*mib, 1, Tag(i)).Block)
	}
	for _, b := range blocks {
		d.free(b, false)
	}
	decision, evicted := d.policy.Decide(d.request(512*mib, 1, 99), nil)
	d.release(evicted)
	d.commit(decision, 1)
	if len(evicted) != 2 || evicted[0].Block != blocks[0] || evicted[1].Block != blocks[1] || evicted[0].Reason != wire.EvictPolicy {
		t.Errorf("%v was given up, want the two oldest of %v", evicted, blocks)
	}
	if s := d.policy.Stats(); s.PeakReserved != 768*mib {
		t.Errorf("%d bytes reserved, want what the program had in use", s.PeakReserved)
	}
}

// TestAllowanceGrowsWhereRequestsFindBlocks grows where most requests would find a block, and not where one in eight would.
func TestAllowanceGrowsWhereRequestsFindBlocks(t *testing.T) {
	const sizes = 5
	play := func(other int) Stats {
		d := newDriver(t, "arena", "max_waste_ratio=1")
		for i := range 4096 {
			size := uint64(mib)
			if i%other == 0 {
				size += uint64(1+i/other%sizes) * 4096
			}
			d.free(d.alloc(size, 1, Tag(size)).Block, false)
		}
		return d.policy.Stats()
	}
	if s := play(1); s.Hits < 3000 || s.BytesCached < sizes*mib {
		t.Errorf("%d hits and %d bytes cached where every request has another size, want all sizes", s.Hits, s.BytesCached)
	}
	if s := play(8); s.PeakReserved > s.PeakWanted+s.PeakWanted/50 || s.Misses < 500 {
		t.Errorf("%d bytes reserved, want hardly more than the %d in use; %d misses", s.PeakReserved, s.PeakWanted, s.Misses)
	}
}
