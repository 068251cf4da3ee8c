package allocator

import (
	"testing"

	"codeberg.org/gpumemtop/gpumemtop/internal/wire"
)

// retry plays a driver with that many bytes: while it refuses a block, the pool gives up what it takes need for. It
// returns how many driver objects were released.
func (d *driver) retry(device, size, need uint64) (releases int) {
	d.t.Helper()
	decision := d.decide(size, 1, 99)
	for {
		sum := decision.Size
		for _, b := range d.blocks {
			sum += b.size
		}
		if sum <= device {
			break
		}
		evicted := d.policy.Drain(need, nil)
		if len(evicted) == 0 {
			d.t.Fatalf("%d bytes are taken of %d, and nothing more can go", sum, device)
		}
		for _, e := range evicted {
			if e.Reason != wire.EvictDrain {
				d.t.Errorf("drained %v", e)
			}
		}
		d.release(evicted)
		releases += len(evicted)
	}
	d.commit(decision, 1)
	d.check()
	return releases
}

// TestSeed000sDevice has 1024 MiB, three free blocks of 256 MiB, and a request of 512 MiB. With one block less there
// is room. An arena's pool does not come into that situation.
func TestSeed000sDevice(t *testing.T) {
	for _, name := range whole() {
		if name == "none" || findPolicy(name).takesLayouts {
			continue
		}
		for order, releases := range map[string]struct{ one, need int }{
			"slot": {1, 2}, "largest-first": {1, 2}, "oldest-first": {1, 2}, "all": {3, 3},
		} {
			for _, atOnce := range []bool{false, true} {
				d := newDriver(t, name, "proportion=0,drain_order="+order)
				device, need, want := uint64(1024*mib), uint64(1), releases.one
				if atOnce {
					need, want = 512*mib, releases.need
				}
				if name == "mantissa" { // its blocks are a sixteenth larger, less one byte
					device = device / 16 * 17
				}
				var blocks []Block
				for i := range 3 {
					blocks = append(blocks, d.alloc(256*mib, 1, Tag(i)).Block)
				}
				for _, b := range blocks {
					d.free(b, false)
				}
				if got := d.retry(device, 512*mib, need); got != want {
					t.Errorf("%s, %s, %d bytes at a time: %d releases, want %d", name, order, need, got, want)
				}
			}
		}
	}
}

// TestDrainOrders plays one trace with each order. Futhark goes by slots, PyOpenCL takes the largest first, CUB gives
// up everything; the oldest first is what a cache would do. They need different numbers of driver releases.
func TestDrainOrders(t *testing.T) {
	for order, want := range map[string]int{"largest-first": 2, "slot": 3, "oldest-first": 4, "all": 5} {
		d := newDriver(t, "futhark", "max_waste_ratio=1,drain_order="+order)
		alloc := func(size uint64, tag Tag) Block { return d.alloc(size, 1, tag).Block }
		small := []Block{alloc(4, 91), alloc(8, 92), alloc(12, 93)}
		blocks := map[uint64]Block{}
		for i, size := range []uint64{50, 100, 150, 300, 400} {
			blocks[size] = alloc(size*mib, Tag(i))
		}
		for _, b := range small { // slots 0, 1 and 2
			d.free(b, false)
		}
		d.free(blocks[50], false) // slot 3
		alloc(8, 92)
		alloc(12, 93)
		d.free(blocks[100], false) // slot 1
		d.free(blocks[150], false) // slot 2
		alloc(4, 91)
		d.free(blocks[300], false) // slot 0
		d.free(blocks[400], false) // slot 4
		if got := d.retry(1024*mib+24, 500*mib, 1); got != want {
			t.Errorf("%s: %d releases, want %d", order, got, want)
		}
	}
}
