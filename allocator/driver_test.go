package allocator

import (
	"slices"
	"testing"

	"codeberg.org/gpumemtop/gpumemtop/internal/wire"
)

// driver plays the part of the caller: it creates and releases blocks, and fails the test when
// the policy hands one out twice, gives one up twice, or serves a request from a wrong block.
type driver struct {
	t      testing.TB
	policy *Pool
	blocks map[Block]*held // whole blocks, slabs and sub-allocations
	align  uint64          // of requests; 0: no sub-allocations
	pinned bool
	now    int64
}

type held struct {
	size   uint64
	class  Class
	busy   bool // in use, cooling, or a slab with such sub-allocations
	slab   Block
	offset uint64
	parts  int // of a slab
}

// newDriver makes a policy, and requests that it caches.
func newDriver(t testing.TB, policy, limits string) *driver {
	t.Helper()
	return &driver{t: t, policy: newPolicy(t, policy, limits), blocks: map[Block]*held{}, pinned: policy == "pinned"}
}

func newPolicy(t testing.TB, policy, limits string) *Pool {
	t.Helper()
	settings, err := ParseSettings(limits)
	if err != nil {
		t.Fatal(err)
	}
	p, err := New(policy, settings)
	if err != nil {
		t.Fatal(err)
	}
	return p
}

// newPartDriver makes one whose requests are sub-allocations, if the policy has such: a request of a MiB takes a whole
// slab.
func newPartDriver(t testing.TB, policy string) *driver {
	t.Helper()
	d := newDriver(t, policy, "")
	d.align = 64 // for which a chunk of ualloc is a MiB
	for _, l := range d.policy.Limits() {
		if l.Name == "max_part" {
			d.set("max_part", "1048576")
		}
	}
	return d
}

func (d *driver) set(name, value string) []Eviction {
	d.t.Helper()
	evicted, err := d.policy.SetLimit(name, value, d.now, nil)
	if err != nil {
		d.t.Fatal(err)
	}
	d.release(evicted)
	return evicted
}

func (d *driver) request(size uint64, class Class, tag Tag) Request {
	d.now++
	return Request{Size: size, Class: class, Tag: tag, Align: d.align, Pinned: d.pinned, Time: d.now}
}

func (d *driver) alloc(size uint64, class Class, tag Tag) Decision {
	d.t.Helper()
	decision := d.decide(size, class, tag)
	d.commit(decision, class)
	return decision
}

func (d *driver) decide(size uint64, class Class, tag Tag) Decision {
	d.t.Helper()
	decision, evicted := d.policy.Decide(d.request(size, class, tag), nil)
	d.release(evicted)
	b, slab := d.blocks[decision.Block], d.blocks[decision.Slab]
	switch {
	case decision.Size < size:
		d.t.Fatalf("a request of %d is served by %d bytes", size, decision.Size)
	case decision.Hit != (decision.Reason == wire.MissNone):
		d.t.Fatalf("hit %v with reason %v", decision.Hit, decision.Reason)
	case decision.Slab != 0 && (b != nil || decision.Offset%d.align != 0):
		d.t.Fatalf("%+v is to be a part, and is %+v", decision, b)
	case decision.Slab != 0 && decision.SlabSize == 0 && (slab == nil || slab.class != class || decision.Offset+decision.Size > slab.size):
		d.t.Fatalf("%+v is to be a part of %+v", decision, slab)
	case decision.Slab != 0 && decision.SlabSize != 0 && (slab != nil || decision.Offset+decision.Size > decision.SlabSize):
		d.t.Fatalf("%+v is to be a part of a new slab, which is %+v", decision, slab)
	case decision.Slab != 0:
	case decision.Hit && (b == nil || b.busy || b.class != class || b.size != decision.Size):
		d.t.Fatalf("hit on %d, which is %+v", decision.Block, b)
	case !decision.Hit && b != nil:
		d.t.Fatalf("block %d is to be created and exists", decision.Block)
	}
	return decision
}

func (d *driver) commit(decision Decision, class Class) {
	d.t.Helper()
	if decision.SlabSize != 0 {
		d.policy.SlabCreated(decision)
		d.blocks[decision.Slab] = &held{size: decision.SlabSize, class: class}
	}
	if slab := d.blocks[decision.Slab]; slab != nil {
		slab.parts++
		slab.busy = true
		for block, b := range d.blocks {
			if b.slab == decision.Slab && decision.Offset < b.offset+b.size && b.offset < decision.Offset+decision.Size {
				d.t.Fatalf("%+v overlaps block %d at %d", decision, block, b.offset)
			}
		}
	}
	d.policy.Commit(decision)
	if !decision.Hit || decision.Slab != 0 {
		d.blocks[decision.Block] = &held{size: decision.Size, class: class, slab: decision.Slab, offset: decision.Offset}
	}
	d.blocks[decision.Block].busy = true
}

// drop notes that a block is no longer used; a sub-allocation is gone then.
func (d *driver) drop(b Block) {
	h := d.blocks[b]
	if h == nil {
		return
	}
	h.busy = false
	if slab := d.blocks[h.slab]; h.slab != 0 {
		slab.parts--
		slab.busy = slab.parts > 0
		delete(d.blocks, b)
	}
}

func (d *driver) free(b Block, busy bool) []Eviction {
	d.t.Helper()
	d.now++
	if !busy {
		d.drop(b)
	}
	evicted := d.policy.Free(b, busy, d.now, nil)
	if slices.ContainsFunc(evicted, func(e Eviction) bool { return e.Block == b }) {
		d.drop(b) // it does not cool
	}
	d.release(evicted)
	return evicted
}

func (d *driver) cooled(b Block) {
	d.t.Helper()
	d.drop(b)
	d.release(d.policy.CoolingEnded(b, d.now, nil))
}

func (d *driver) forget(b Block) {
	d.policy.Forget(b)
	d.drop(b)
	delete(d.blocks, b)
}

func (d *driver) release(evicted []Eviction) {
	d.t.Helper()
	for _, e := range evicted {
		b := d.blocks[e.Block]
		if b == nil || b.busy || b.size != e.Size || b.slab != 0 || e.Reason == wire.EvictNone {
			d.t.Fatalf("eviction %+v of %+v", e, b)
		}
		delete(d.blocks, e.Block)
	}
}

// check compares what the policy says of itself with what there is.
func (d *driver) check() {
	d.t.Helper()
	if err := d.policy.Validate(); err != nil {
		d.t.Fatal(err)
	}
	blocks, bytes, used := uint64(0), uint64(0), uint64(0)
	for _, b := range d.blocks {
		if b.slab == 0 {
			blocks++
			bytes += b.size
		}
		if b.busy && b.parts == 0 {
			used += b.size
		}
	}
	s := d.policy.Stats()
	if s.Blocks != blocks || s.ReservedBytes() != bytes || s.BytesInUse+s.BytesCooling != used {
		d.t.Fatalf("%d blocks of %d bytes, %d of them not free, and the policy has %+v", blocks, bytes, used, s)
	}
}
