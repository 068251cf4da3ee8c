package replay

import (
	"fmt"
	"testing"

	"codeberg.org/gpumemtop/gpumemtop/internal/testkit/labtest"
	"codeberg.org/gpumemtop/gpumemtop/internal/wire"
)

// thousand fills a device of 1024 bytes with four buffers, releases three, and requests 512 bytes.
func thousand() *labtest.Tape {
	t := labtest.NewTape()
	for object := range uint64(4) {
		t.AddCreate(object+1, 256)
	}
	for object := range uint64(3) {
		t.AddRelease(object+1, wire.OutcomeCached)
	}
	return t
}

func TestCapacity(t *testing.T) {
	tape := thousand()
	r := replay(t, tape, "futhark", 1024, "min_block=1")
	if r.Free != 768 || fmt.Sprintf("%.3f %.3f %.3f", r.ExternalFragmentation(), r.QuadraticFragmentation(), r.RootFragmentation()) != "0.667 0.667 0.423" {
		t.Errorf("free %d, fragmentation %g %g %g", r.Free, r.ExternalFragmentation(), r.QuadraticFragmentation(), r.RootFragmentation())
	}
	tape.AddCreate(5, 512) // all 768 free bytes are stranded: two blocks make room
	r = replay(t, tape, "futhark", 1024, "min_block=1")
	if r.Failures != 0 || r.Misses != 5 || r.MissReasons[wire.MissTooSmall] != 1 || r.Evictions != 2 || r.PeakReserved != 1024 ||
		r.DriverCreates != 5 || r.InUse != 768 || r.Cached != 256 {
		t.Errorf("with room for 1024: %+v", r)
	}
	if r = replay(t, tape, "futhark", 0, "min_block=1"); r.Evictions != 0 || r.PeakReserved != 1536 {
		t.Errorf("with any room: %+v", r)
	}
	tape.AddCreate(6, 512)
	tape.AddRelease(6, wire.OutcomeCached)
	tape.AddCreate(7, 256)
	r = replay(t, tape, "futhark", 1024, "min_block=1")
	if r.Failures != 1 || r.Requests != 7 || r.Hits != 0 || r.InUse != 1024 || r.Evictions != 3 {
		t.Errorf("with a request that finds no memory: %+v", r)
	}
}

// TestRoundingRefusesNothingThatFits: rounding does not refuse a request that fits the device.
func TestRoundingRefusesNothingThatFits(t *testing.T) {
	tape := labtest.NewTape()
	tape.AddCreate(1, 600) // 1024 do not fit
	tape.AddCreate(2, 300)
	tape.AddRelease(1, wire.OutcomeCached)
	tape.AddCreate(3, 400)
	r := replay(t, tape, "pow2", 1000)
	if r.Direct != 2 || r.Failures != 0 || r.Misses != 1 || r.PeakInUse != 900 || r.PeakReserved != 900 {
		t.Errorf("%+v", r)
	}
}

func TestSlabsWithinACapacity(t *testing.T) {
	tape := labtest.NewTape()
	for object := range uint64(3) {
		tape.AddCreate(object+1, 1000)
	}
	if r := replay(t, tape, "slab", 0); r.Slabs != 1 || r.Hits != 2 || r.DriverCreates != 1 {
		t.Errorf("with any room: %+v", r)
	}
	if r := replay(t, tape, "slab", 10_000); r.Slabs != 0 || r.Hits != 0 || r.DriverCreates != 3 || r.PeakReserved != 3000 {
		t.Errorf("with room for no slab: %+v", r)
	}
}

// TestTooLarge requests more than the device has: the pool keeps its blocks.
func TestTooLarge(t *testing.T) {
	tape := labtest.NewTape()
	tape.AddCreate(1, 4096)
	tape.AddRelease(1, wire.OutcomeCached)
	tape.AddCreate(2, 20_000)
	tape.AddCreate(3, 4096)
	for _, policy := range []string{"futhark", "pow2", "slab", "buddy"} {
		if r := replay(t, tape, policy, 10_000); r.Failures != 1 || r.Evictions != 0 || r.Hits != 1 || r.DriverCreates != 1 {
			t.Errorf("%s: %+v", policy, r)
		}
	}
}

// TestSlabGivesWayToTheRequest: beside the cached blocks the request fits, but a slab does not. The cached blocks stay.
func TestSlabGivesWayToTheRequest(t *testing.T) {
	tape := labtest.NewTape()
	tape.AddCreate(1, 1<<20).Access |= wire.CopyHostPtr // a block of its own
	tape.AddRelease(1, wire.OutcomeCached)
	tape.AddCreate(2, 100_000)
	for policy, slab := range map[string]uint64{"slab": 1 << 20, "buddy": 1 << 20, "ualloc": 2 << 20} {
		if r := replay(t, tape, policy, slab+1<<20); r.Slabs != 1 || r.DriverCreates != 2 || r.Evictions != 0 {
			t.Errorf("%s with room for a slab: %+v", policy, r)
		}
		if r := replay(t, tape, policy, slab+1<<19); r.Slabs != 0 || r.DriverCreates != 2 || r.Evictions != 0 || r.Failures != 0 {
			t.Errorf("%s without: %+v", policy, r)
		}
	}
}

// TestGivesBackWhatLacks evicts no more than necessary.
func TestGivesBackWhatLacks(t *testing.T) {
	tape := labtest.NewTape()
	for object := range uint64(4) {
		tape.AddCreate(object+1, 1000)
	}
	for object := range uint64(4) {
		tape.AddRelease(object+1, wire.OutcomeCached)
	}
	tape.AddCreate(5, 3000)
	if r := replay(t, tape, "futhark", 5000, "min_block=1"); r.Evictions != 2 || r.Cached != 2000 || r.Failures != 0 {
		t.Errorf("%+v", r)
	}
}
