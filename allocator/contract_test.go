package allocator

import (
	"testing"

	"codeberg.org/gpumemtop/gpumemtop/internal/wire"
)

// An aborted hit may find its place in the cache taken, or its class dropped. Abort cannot report evictions, so the
// next call does.
func TestAbortedHitThatNoLongerFitsIsEvictedByTheNextCall(t *testing.T) {
	d := newDriver(t, "futhark", "max_cached_bytes=1048576")
	first, second := d.alloc(1<<20, 1, 1), d.alloc(1<<20, 1, 1)
	d.free(first.Block, false)
	hit := d.plan(1<<20, 1, 1)
	d.free(second.Block, false) // takes the room
	d.policy.Abort(hit)
	d.check()
	evicted := d.policy.Trim(1<<20, nil)
	if len(evicted) != 1 || evicted[0].Block != first.Block || evicted[0].Reason != wire.EvictLimit {
		t.Fatalf("evicted %v, want the aborted block by the limit", evicted)
	}
	d.release(evicted)
	d.check()
}

func TestAbortedHitOfADroppedClassIsNotCached(t *testing.T) {
	d := newDriver(t, "futhark", "")
	first := d.alloc(1<<20, 1, 1)
	d.free(first.Block, false)
	hit := d.plan(1<<20, 1, 1)
	d.release(d.policy.DropClass(1, nil))
	d.policy.Abort(hit)
	d.check()
	if s := d.policy.Stats(); s.BytesCached != 0 {
		t.Errorf("%d bytes of a dropped class are cached", s.BytesCached)
	}
	evicted := d.policy.Trim(1<<40, nil)
	if len(evicted) != 1 || evicted[0].Reason != wire.EvictContext {
		t.Errorf("evicted %v, want the block with its context", evicted)
	}
}

func TestDroppedClassStaysDropped(t *testing.T) {
	for _, name := range []string{"futhark", "pow2"} {
		d := newDriver(t, name, "")
		d.release(d.policy.DropClass(1, nil))
		if evicted := d.free(d.alloc(1<<20, 1, 1).Block, false); len(evicted) != 1 || evicted[0].Reason != wire.EvictContext {
			t.Errorf("%s: evicted %v, want the block: its class was dropped before", name, evicted)
		}
	}
}

func TestParseSettings(t *testing.T) {
	got, err := ParseSettings("max_cached_bytes=1048576,max_waste_ratio=1.5")
	if err != nil || len(got) != 2 || got[0] != (Setting{"max_cached_bytes", "1048576"}) || got[1] != (Setting{"max_waste_ratio", "1.5"}) {
		t.Errorf("got %v, %v", got, err)
	}
	for _, text := range []string{"a", "=1", "a=1,", ",a=1"} {
		if settings, err := ParseSettings(text); err == nil {
			t.Errorf("%q gave %v", text, settings)
		}
	}
}

func TestValuesArePlainDecimals(t *testing.T) {
	p := newDriver(t, "futhark", "").policy
	for _, text := range []string{"1e1", "0x10p2", "+2", "-2", ".5", "5.", "1_0", "", "inf", "1.2.3", " 2"} {
		if _, err := p.SetLimit("max_waste_ratio", text, 0, nil); err == nil {
			t.Errorf("%q was taken", text)
		}
	}
}

func TestCommitWithAForeignReasonIsCountedSomewhere(t *testing.T) {
	d := newDriver(t, "futhark", "")
	plan := d.plan(1<<20, 1, 1)
	plan.Reason = 200 // plans travel through the program's memory
	d.commit(plan, 1)
	d.check()
}
