package allocator

import (
	"testing"

	"codeberg.org/gpumemtop/gpumemtop/internal/wire"
)

// TestSlabsOverTheCap: of two slabs of a MiB one may wait. What was freed last stays, or goes, as over_limit says.
func TestSlabsOverTheCap(t *testing.T) {
	for _, name := range carving() {
		for over, want := range map[string]int{"evict-old": 0, "reject-new": 1} {
			d := newPartDriver(t, name)
			d.set("over_limit", over)
			decisions := []Decision{d.alloc(mib, 1, 1), d.alloc(mib, 1, 1)}
			d.set("max_cached_bytes", formatDecimal(float64(decisions[0].SlabSize)))
			if out := d.free(decisions[0].Block, false); len(out) != 0 {
				t.Fatalf("%s: evicted %v, one may wait", name, out)
			}
			out := d.free(decisions[1].Block, false)
			if len(out) != 1 || out[0].Block != decisions[want].Slab || out[0].Reason != wire.EvictLimit {
				t.Errorf("%s, %s: evicted %v, want slab %x", name, over, out, decisions[want].Slab)
			}
			d.check()
		}
	}
}

// TestAPartOfABusySlabIsNeverRejected: its range cannot go to the driver alone, so over the cap an old slab goes,
// whatever over_limit says. The slab itself is rejected when it comes back as a whole and is too much.
func TestAPartOfABusySlabIsNeverRejected(t *testing.T) {
	for _, name := range carving() {
		for _, over := range []string{"evict-old", "reject-new"} {
			d := newPartDriver(t, name)
			d.set("over_limit", over)
			old := d.alloc(mib, 1, 1)
			part, other := d.alloc(mib/4, 2, 1), d.alloc(mib/4, 2, 1)
			if part.Slab != other.Slab || part.SlabSize == 0 {
				t.Fatalf("%s: %+v and %+v are to share a slab", name, part, other)
			}
			d.free(old.Block, false)
			d.set("max_cached_bytes", formatDecimal(float64(d.policy.Stats().BytesCached)))
			if out := d.free(part.Block, false); len(out) != 1 || out[0].Block != old.Slab || out[0].Reason != wire.EvictLimit {
				t.Errorf("%s, %s: evicted %v, want the slab that waits", name, over, out)
			}
			d.set("max_cached_bytes", formatDecimal(float64(part.SlabSize-1)))
			if out := d.free(other.Block, false); len(out) != 1 || out[0].Block != part.Slab || out[0].Reason != wire.EvictLimit {
				t.Errorf("%s, %s: evicted %v, want the slab that is too large", name, over, out)
			}
			d.check()
		}
	}
}

// TestASlabIsBlamedOnce for the first miss that needs one again.
func TestASlabIsBlamedOnce(t *testing.T) {
	for _, name := range carving() {
		for _, c := range []struct {
			give func(d *driver) []Eviction
			want wire.Miss
		}{
			{func(d *driver) []Eviction { return d.policy.Trim(0, nil) }, wire.MissDrained},
			{func(d *driver) []Eviction { return d.policy.Drain(1, nil) }, wire.MissDrained},
			{func(d *driver) []Eviction {
				out, _ := d.policy.SetLimit("max_cached_bytes", "0", d.now, nil)
				return out
			}, wire.MissLimit},
		} {
			d := newPartDriver(t, name)
			d.free(d.alloc(mib, 1, 1).Block, false)
			d.release(c.give(d))
			for _, want := range []wire.Miss{c.want, wire.MissCold} {
				if decision := d.alloc(mib, 1, 1); decision.Reason != want {
					t.Errorf("%s: reason %v, want %v", name, decision.Reason, want)
				}
			}
			d.check()
		}
	}
}

// TestSlabSizes: seed 004's max(M, H/K), and requests above M get blocks of their own.
func TestSlabSizes(t *testing.T) {
	const heap = 8 << 30
	d := newDriver(t, "slab", "max_part=67108864,heap_bytes=8589934592,slabs_per_heap=62")
	d.align = 256
	if decision := d.alloc(1000, 1, 1); decision.SlabSize != (heap/62+255)/256*256 {
		t.Errorf("%+v, want a slab of 8 GiB / 62", decision)
	}
	if decision := d.alloc(64*mib, 1, 1); decision.Slab == 0 {
		t.Errorf("%+v, want a part", decision)
	}
	if decision := d.alloc(64*mib+1, 1, 1); decision.Slab != 0 {
		t.Errorf("%+v, want a block of its own", decision)
	}
	d = newDriver(t, "slab", "max_part=67108864,heap_bytes=134217728,slabs_per_heap=62")
	d.align = 256
	if decision := d.alloc(1000, 1, 1); decision.SlabSize != 64*mib {
		t.Errorf("%+v, want a slab of M", decision)
	}
}

// TestANewSlabMayPushOutOthers: what is free of it waits in the pool, too. SlabCreated cannot say so, the next call does.
func TestANewSlabMayPushOutOthers(t *testing.T) {
	for _, name := range carving() {
		d := newPartDriver(t, name)
		old := d.alloc(mib, 1, 1)
		d.free(old.Block, false)
		d.set("max_cached_bytes", formatDecimal(float64(old.SlabSize)))
		if d.alloc(mib/4, 2, 1); d.blocks[old.Slab] == nil {
			t.Fatalf("%s: evicted before there was a need", name)
		}
		out, _ := d.policy.Expire(d.now, nil)
		if len(out) != 1 || out[0].Block != old.Slab || out[0].Reason != wire.EvictLimit {
			t.Errorf("%s: evicted %v, want the slab that waits", name, out)
		}
		d.release(out)
		d.check()
	}
}

// TestRangesOfADroppedClassAreFree: what cooled of it waits in a slab that another class still uses, within the cap.
func TestRangesOfADroppedClassAreFree(t *testing.T) {
	for _, name := range carving() {
		d := newPartDriver(t, name)
		other := d.alloc(mib, 2, 1)
		used, cools := d.alloc(mib/4, 1, 1), d.alloc(mib/4, 1, 1)
		if used.Slab != cools.Slab {
			t.Fatalf("%s: %+v and %+v are to share a slab", name, used, cools)
		}
		d.free(other.Block, false)
		d.free(cools.Block, true)
		s := d.policy.Stats()
		d.set("max_cached_bytes", formatDecimal(float64(s.BytesCached)))
		d.drop(cools.Block)
		out := d.policy.DropClass(1, nil)
		if len(out) != 1 || out[0].Block != other.Slab || out[0].Reason != wire.EvictLimit {
			t.Errorf("%s: evicted %v, want the slab that waits", name, out)
		}
		d.release(out)
		d.check()
		if now := d.policy.Stats(); now.BytesCooling != 0 || now.BytesCached != s.BytesCached-other.SlabSize+cools.Size {
			t.Errorf("%s: %+v\nbefore: %+v", name, now, s)
		}
	}
}

// TestPagesOfTheNextSlab: when the slabs of a class are gone, its next slab has the page_bytes of that time, whether or
// not the class had a slab when the limit was set. While it has a slab, nothing changes.
func TestPagesOfTheNextSlab(t *testing.T) {
	d := newPartDriver(t, "buddy")
	part := func(class Class, want uint64) Block {
		t.Helper()
		decision := d.alloc(1, class, 1)
		if decision.Slab == 0 || decision.Size != want {
			t.Errorf("%+v of class %d, want a part of %d bytes", decision, class, want)
		}
		return decision.Block
	}
	first := part(1, 4096)
	d.free(part(2, 4096), false)
	d.set("page_bytes", "65536")
	second := part(1, 4096)
	d.free(first, false)
	d.free(second, false)
	d.free(part(1, 4096), false) // its slab waits
	d.release(d.policy.Trim(0, nil))
	first = part(1, 65536)
	part(2, 65536)
	part(3, 65536)
	d.set("page_bytes", "1024")
	d.set("page_bytes", "512")
	d.free(first, false)
	d.release(d.policy.Trim(0, nil))
	part(1, 512)
	d.check()
}

// TestSlabsGrowWithTheProgram: without heap_bytes what has been in use at most is divided, but no more than half of what
// the program leaves of the device.
func TestSlabsGrowWithTheProgram(t *testing.T) {
	for memory, want := range map[uint64]uint64{0: 128 * mib, 1024 * mib: 128 * mib, 296 * mib: 20 * mib} {
		d := newDriver(t, "slab", "slabs_per_heap=2,max_part=1048576")
		d.align = 256
		alloc := func(size uint64) Decision {
			req := d.request(size, 1, 1)
			req.Heap = memory
			decision, out := d.policy.Decide(req, nil)
			d.release(out)
			d.commit(decision, 1)
			return decision
		}
		for range 10 {
			d.free(alloc(256*mib).Block, false) // a block of its own
		}
		d.release(d.policy.Trim(0, nil))
		if decision := alloc(1000); decision.SlabSize != want {
			t.Errorf("256 MiB in use of %d: %+v, want a slab of %d", memory, decision, want)
		}
		d.check()
	}
}

// TestCoarseAlignments get no slabs, whose chunks would be huge.
func TestCoarseAlignments(t *testing.T) {
	for _, name := range carving() {
		for align, want := range map[uint64]bool{1: true, 128: true, 2048: true, 4096: false, 1 << 20: false, 3: false} {
			d := newDriver(t, name, "")
			d.align = align
			if decision := d.alloc(1000, 1, 1); (decision.Slab != 0) != want {
				t.Errorf("%s: %+v for an alignment of %d", name, decision, align)
			}
			d.check()
		}
	}
}

// TestTheLargestGoesFirst, be it a slab or a block of its own.
func TestTheLargestGoesFirst(t *testing.T) {
	for _, name := range carving() {
		for _, size := range []uint64{4 * mib, mib / 2} {
			d := newPartDriver(t, name)
			d.set("drain_order", "largest-first")
			small, large := d.alloc(mib, 1, 1), d.alloc(mib, 1, 1)
			d.align = 0
			whole := d.alloc(size, 1, 1)
			for _, decision := range []Decision{small, whole, large} {
				d.free(decision.Block, false)
			}
			want := large.Slab // the latest of equal ones
			if size > small.SlabSize {
				want = whole.Block
			}
			out := d.policy.Drain(1, nil)
			if len(out) != 1 || out[0].Block != want {
				t.Errorf("%s: %v went, want %x: slabs of %d and a block of %d", name, out, want, small.SlabSize, size)
			}
			d.release(out)
			d.check()
		}
	}
}
