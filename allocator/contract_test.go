package allocator

import (
	"reflect"
	"testing"

	"codeberg.org/gpumemtop/gpumemtop/internal/wire"
)

// An aborted hit may find its place in the cache taken, or its class dropped. Abort cannot report evictions, so the
// next call does.
func TestAbortedHitThatNoLongerFitsIsEvictedByTheNextCall(t *testing.T) {
	d := newDriver(t, "futhark", "max_cached_bytes=1048576")
	first, second := d.alloc(1<<20, 1, 1), d.alloc(1<<20, 1, 1)
	d.free(first.Block, false)
	hit := d.decide(1<<20, 1, 1)
	d.free(second.Block, false) // takes the room
	d.policy.Abort(hit)
	if err := d.policy.Validate(); err != nil {
		t.Error(err)
	}
	evicted := d.policy.Trim(1<<20, nil)
	if len(evicted) != 1 || evicted[0].Block != first.Block || evicted[0].Reason != wire.EvictLimit {
		t.Fatalf("evicted %v, want the aborted block by the limit", evicted)
	}
	d.release(evicted)
	d.check()
}

// While a block of a dropped class is in use, its end evicts it; after that there is room again.
func TestADroppedClassTakesTheRoomUntilItsLastBlockIsFreed(t *testing.T) {
	for _, policy := range []string{"futhark", "slab", "ualloc"} {
		d := newDriver(t, policy, "")
		mine := d.alloc(1<<12, 1, 1)
		d.release(d.policy.DropClass(1, nil))
		if room := d.policy.FreeableBytes(); room != 0 {
			t.Errorf("%s: a block will be evicted, and there is room for %d bytes", policy, room)
		}
		d.free(mine.Block, false)
		if d.policy.FreeableBytes() == 0 {
			t.Errorf("%s: no block will be evicted, and there is no room", policy)
		}
		d.check()
	}
}

// TestWhatCanBeFreedIsWhatTheCapLeaves: each byte more would be evicted.
func TestWhatCanBeFreedIsWhatTheCapLeaves(t *testing.T) {
	d := newDriver(t, "futhark", "max_cached_bytes=4194304")
	blocks := []Block{d.alloc(mib, 1, 1).Block, d.alloc(mib, 1, 1).Block, d.alloc(mib, 1, 1).Block}
	for i, b := range blocks {
		if got, want := d.policy.FreeableBytes(), uint64(4-i)*mib; got != want {
			t.Fatalf("room for %d bytes beside %d blocks of a MiB, want %d", got, i, want)
		}
		d.free(b, false)
	}
}

// TestArmsAddUp: what both arms count is the sum, except peaks, and the largest is that of one.
func TestArmsAddUp(t *testing.T) {
	var sum, one, other Stats
	fill(reflect.ValueOf(&sum).Elem(), 3)
	fill(reflect.ValueOf(&one).Elem(), 1)
	fill(reflect.ValueOf(&other).Elem(), 2)
	sum.PeakInUse, sum.PeakWanted, sum.PeakCached, sum.PeakCooling, sum.PeakReserved = 1, 1, 1, 1, 1
	sum.Largest, sum.InSlabs.Largest = 2, 2
	if one.addArm(&other); one != sum {
		t.Fatalf("%+v, want %+v", one, sum)
	}
}

// fill sets all numbers of a value to n.
func fill(v reflect.Value, n uint64) {
	switch v.Kind() {
	case reflect.Struct:
		for i := range v.NumField() {
			fill(v.Field(i), n)
		}
	case reflect.Array:
		for i := range v.Len() {
			fill(v.Index(i), n)
		}
	case reflect.Float64:
		v.SetFloat(float64(n))
	default:
		v.SetUint(n)
	}
}

func TestAbortedHitOfADroppedClassIsNotCached(t *testing.T) {
	d := newDriver(t, "futhark", "")
	first := d.alloc(1<<20, 1, 1)
	d.free(first.Block, false)
	hit := d.decide(1<<20, 1, 1)
	d.release(d.policy.DropClass(1, nil))
	d.policy.Abort(hit)
	if err := d.policy.Validate(); err != nil {
		t.Error(err)
	}
	if s := d.policy.Stats(); s.BytesCached != 0 {
		t.Errorf("%d bytes of a dropped class are cached", s.BytesCached)
	}
	evicted := d.policy.Trim(1<<40, nil)
	if len(evicted) != 1 || evicted[0].Reason != wire.EvictContext {
		t.Errorf("evicted %v, want the block with its context", evicted)
	}
}

func TestCommitWithAForeignReasonIsCountedSomewhere(t *testing.T) {
	d := newDriver(t, "futhark", "")
	decision := d.decide(1<<20, 1, 1)
	decision.Reason = 200 // decisions travel through the program's memory
	d.commit(decision, 1)
	d.check()
}

// An aborted hit may also find as many blocks of its call site, or of its size, as there may be.
func TestAbortedHitBeyondACountIsEvictedByTheNextCall(t *testing.T) {
	for policy, limits := range map[string]string{"futhark-2018": "", "futhark": "max_per_tag=1", "pow2": "max_per_bucket=1"} {
		d := newDriver(t, policy, limits)
		first, second := d.alloc(mib, 1, 1), d.alloc(mib, 1, 1)
		d.free(first.Block, false)
		hit := d.decide(mib, 1, 1)
		d.free(second.Block, false)
		d.policy.Abort(hit)
		evicted := d.policy.Trim(1<<40, nil)
		if len(evicted) != 1 || evicted[0].Block != first.Block || evicted[0].Reason != wire.EvictTagCap {
			t.Errorf("%s evicted %v, want the aborted block over its count", policy, evicted)
		}
		d.release(evicted)
		d.check()
	}
}

// TestBlameIsBounded: of more than 1024 blocks that went, the first are forgotten, and each is blamed once.
func TestBlameIsBounded(t *testing.T) {
	d := newDriver(t, "futhark", "max_waste_ratio=1,max_cached_bytes=0")
	for size := range uint64(evictedMax + 2) {
		d.free(d.alloc(10_000-size, 1, Tag(size)).Block, false)
	}
	for _, c := range []struct {
		size uint64
		want wire.Miss
	}{
		{10_000, wire.MissCold}, {9_999, wire.MissCold}, {9_998, wire.MissLimit}, {9_998, wire.MissCold},
		{10_000 - evictedMax - 1, wire.MissLimit},
	} {
		if decision := d.decide(c.size, 1, 1<<20); decision.Reason != c.want {
			t.Errorf("a request of %d: reason %v, want %v", c.size, decision.Reason, c.want)
		}
	}
}

// TestPartsOfAnotherAlignment: slabs are carved for the alignment that their class began with.
func TestPartsOfAnotherAlignment(t *testing.T) {
	for _, name := range carving() {
		d := newPartDriver(t, name)
		first := d.alloc(1000, 1, 1)
		d.align = 4096
		if other := d.alloc(1000, 1, 1); first.Slab == 0 || other.Slab != 0 {
			t.Errorf("%s: %+v, then with another alignment %+v", name, first, other)
		}
		d.check()
	}
}

// TestNobodyWaitsForASlabThatFailed has three decisions share a slab whose creation fails: no later one gets a
// sub-allocation of it, however long the others take to give up.
func TestNobodyWaitsForASlabThatFailed(t *testing.T) {
	for _, name := range carving() {
		d := newPartDriver(t, name)
		decide := func() Decision {
			p, _ := d.policy.Decide(d.request(1000, 1, 1), nil)
			return p
		}
		grower, second, third := decide(), decide(), decide()
		if grower.SlabSize == 0 || second.Slab != grower.Slab || third.Slab != grower.Slab || !second.Hit || second.SlabSize != 0 {
			t.Fatalf("%s: decisions %+v, %+v, %+v", name, grower, second, third)
		}
		d.policy.Abort(second)
		d.policy.Abort(grower)
		again := decide()
		if again.Hit || again.Slab == grower.Slab || again.SlabSize > grower.SlabSize/2 {
			t.Errorf("%s: %+v, want a smaller slab, or a block of its own", name, again)
		}
		d.policy.Abort(third)
		d.commit(again, 1)
		d.check()
		if s := d.policy.Stats(); s.Hits != 0 || s.Misses != 1 || s.Blocks != 1 {
			t.Errorf("%s: %+v", name, s)
		}
	}
}

// TestSlabsShrinkWhereMemoryIsShort: what the driver refused is not asked for again at once, and in the end it is.
func TestSlabsShrinkWhereMemoryIsShort(t *testing.T) {
	for _, name := range carving() {
		p := newDriver(t, name, "").policy
		req := Request{Size: 100_000, Align: 64, Class: 1, Max: 1 << 30, Heap: 1 << 33}
		first, _ := p.Decide(req, nil)
		last := first.SlabSize
		for p.Abort(first); last != 0; {
			decision, _ := p.Decide(req, nil)
			if decision.SlabSize > last/2 {
				t.Fatalf("%s: a slab of %d after one of %d was refused", name, decision.SlabSize, last)
			}
			last = decision.SlabSize
			p.Abort(decision)
		}
		for i := 0; ; i++ {
			decision, _ := p.Decide(req, nil)
			if decision.SlabSize == first.SlabSize {
				break
			}
			if i == 100 {
				t.Fatalf("%s: no slab of %d is left", name, first.SlabSize)
			}
			if decision.SlabSize != 0 {
				p.SlabCreated(decision)
			}
			p.Commit(decision)
		}
	}
}

// TestSlabsLeaveRoom: on a small device slabs are small, and there are none where memory runs short.
func TestSlabsLeaveRoom(t *testing.T) {
	for _, name := range carving() {
		d := newDriver(t, name, "")
		d.align = 64
		const heap = 64 * mib
		whole := 0
		for range 200 {
			req := d.request(300_000, 1, 1)
			req.Heap = heap
			before := d.policy.Stats()
			decision, _ := d.policy.Decide(req, nil)
			if decision.SlabSize > heap/16 || decision.SlabSize != 0 && before.ReservedBytes()+decision.SlabSize > heap/4*3 {
				t.Fatalf("%s: a slab of %d with %d reserved", name, decision.SlabSize, before.ReservedBytes())
			}
			if decision.Slab == 0 {
				whole++
			}
			if decision.SlabSize != 0 {
				d.policy.SlabCreated(decision)
			}
			d.policy.Commit(decision)
		}
		if whole == 0 {
			t.Errorf("%s: all of 60 MB in slabs of a card of 64 MiB", name)
		}
	}
}
