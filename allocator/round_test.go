package allocator

import (
	"testing"

	"codeberg.org/gpumemtop/gpumemtop/internal/wire"
)

// TestRoundingStops at Request.Round, in every rule: what is created is not larger, unless the request itself is.
func TestRoundingStops(t *testing.T) {
	for _, c := range []struct {
		policy, limits    string
		size, round, want uint64
	}{
		{"none", "", 1000, 65536, 1000},
		{"futhark", "", 1, 0, 4}, {"futhark", "", 1, 1, 1}, {"futhark", "", 1, 3, 3}, {"futhark", "", 2, 1, 2},
		{"futhark-2018", "min_block=131072", 1000, 65536, 65536}, {"futhark-2018", "min_block=131072", 70_000, 65536, 70_000},
		{"futhark-2018", "min_block=131072", 1000, 0, 131072}, {"futhark-2018", "", 1, 2, 2},
		{"pow2", "", 1000, 1000, 1000}, {"pow2", "", 600, 1000, 1000}, {"pow2", "", 500, 1000, 512}, {"pow2", "", 2000, 1000, 2000},
		{"pinned", "", 600, 1000, 1000}, {"buckets", "", 40_000, 65_535, 65_535}, {"buckets", "", 40_000, 65_536, 65_536},
		{"mantissa", "", 65_536, 65_536, 65_536}, {"mantissa", "", 65_536, 1 << 20, 69_631},
		{"slab", "", 2, 3, 3}, {"buddy", "", 2, 3, 3}, {"ualloc", "", 2, 3, 3}, // blocks of their own
	} {
		for _, most := range []uint64{0, 1 << 30} { // Round counts before Max
			d := newDriver(t, c.policy, c.limits)
			req := d.request(c.size, 1, 1)
			req.Round, req.Max = c.round, most
			if decision, _ := d.policy.Decide(req, nil); decision.Size != c.want {
				t.Errorf("%s %s: %d rounds to %d, want %d: no more than %d", c.policy, c.limits, c.size, decision.Size, c.want, c.round)
			}
		}
	}
}

// TestTinyRoundingStopsAtMax, too: a driver that creates 2 bytes at most refuses 4.
func TestTinyRoundingStopsAtMax(t *testing.T) {
	for _, name := range []string{"futhark", "futhark-2018"} {
		for most, want := range map[uint64]uint64{1: 1, 2: 2, 3: 3, 4: 4, 5: 4} {
			d := newDriver(t, name, "")
			req := d.request(1, 1, 1)
			req.Max = most
			if decision, _ := d.policy.Decide(req, nil); decision.Size != want {
				t.Errorf("%s: 1 byte becomes %d where the driver creates %d at most", name, decision.Size, most)
			}
		}
	}
}

// TestNoCachedBlockAboveRound serves a request that must not be rounded up so far: it would be refused each time.
func TestNoCachedBlockAboveRound(t *testing.T) {
	for _, policy := range []string{"futhark", "futhark-2018", "slab", "buddy", "ualloc"} {
		for _, c := range []struct {
			block, size, round uint64
			tag                Tag
			hit                bool
		}{
			{1500, 1000, 1499, 1, false}, {1500, 1000, 1499, 2, false},
			{1500, 1000, 1500, 1, true}, {1500, 1000, 1500, 2, true}, {1500, 1000, 0, 1, true},
			{1500, 1500, 1000, 1, true}, // the request itself is larger: nothing is rounded
			{1500, 1499, 1000, 1, false},
			{65536 + 1, 65536, 65536, 1, false}, {65536, 65536, 65536, 2, true},
		} {
			d := newDriver(t, policy, "")
			if policy == "futhark-2018" {
				d.set("steal_other_tag", "on")
			}
			d.free(d.alloc(c.block, 1, 1).Block, false)
			req := d.request(c.size, 1, c.tag)
			req.Round = c.round
			decision, out := d.policy.Decide(req, nil)
			d.release(out)
			if decision.Hit != c.hit || !c.hit && decision.Reason != wire.MissTooWasteful {
				t.Errorf("%s, %+v: %+v", policy, c, decision)
			}
		}
		if findPolicy(policy).carver != nil {
			continue
		}
		d := newDriver(t, policy, "steal_other_tag=off")
		d.free(d.alloc(1500, 1, 1).Block, false)
		req := d.request(1000, 1, 1)
		req.Round = 1499
		if decision, _ := d.policy.Decide(req, nil); decision.Hit {
			t.Errorf("%s without stealing: %+v", policy, decision)
		}
	}
}

// TestNoPartAboveRound: a sub-allocation has whole units, pages or slots; a request that must not have so much gets a
// block of its own.
func TestNoPartAboveRound(t *testing.T) {
	for name, part := range map[string]uint64{"slab": 1024, "buddy": 4096, "ualloc": 1024} {
		for _, known := range []bool{false, true} { // there is a slab with room already
			d := newPartDriver(t, name)
			if known {
				d.alloc(1000, 1, 1)
			}
			for round, want := range map[uint64]bool{0: true, part: true, part - 1: false, 1000: false} {
				req := d.request(1000, 1, 1)
				req.Round = round
				decision, _ := d.policy.Decide(req, nil)
				if got := decision.Slab != 0; got != want || got && decision.Size != part || !got && decision.Size != 1000 {
					t.Errorf("%s, no more than %d: %+v, want a part: %v", name, round, decision, want)
				}
				d.commit(decision, 1)
				d.free(decision.Block, false)
				d.release(d.policy.Trim(0, nil))
			}
		}
	}
}

// TestExactRequests: the driver copies as much as it creates, so a new block has just the size; an old one may be
// larger where the policy takes such.
func TestExactRequests(t *testing.T) {
	for _, name := range PolicyNames() {
		d := newDriver(t, name, "")
		req := d.request(5000, 1, 1)
		req.Exact, req.Pinned = true, true
		first, _ := d.policy.Decide(req, nil)
		if first.Size != 5000 || first.Hit {
			t.Errorf("%s: %+v, want a new block of 5000 bytes", name, first)
		}
		d.commit(first, 1)
		d.free(first.Block, false)
		req.Size = 4000
		second, evicted := d.policy.Decide(req, nil)
		d.release(evicted)
		if takes := findPolicy(name).rule != nil && findPolicy(name).rule.sortsByTag(); second.Hit != takes || !second.Hit && second.Size != 4000 {
			t.Errorf("%s: %+v for 4000 bytes with 5000 free", name, second)
		}
	}
}
