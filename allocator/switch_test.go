package allocator

import (
	"fmt"
	"maps"
	"slices"
	"testing"

	"codeberg.org/gpumemtop/gpumemtop/internal/wire"
)

// switched returns a policy that replaced another before the first request.
func switched(tb testing.TB, from, to string) *Pool {
	tb.Helper()
	s := newPolicy(tb, from, "")
	if out := s.SwitchPolicy(newPolicy(tb, to, ""), 0, nil); len(out) > 0 {
		tb.Fatalf("nothing was there, and %v went", out)
	}
	return s
}

// TestReferenceAfterASwitch plays the games of TestReference with policies that were others before.
func TestReferenceAfterASwitch(t *testing.T) {
	for _, from := range PolicyNames() {
		for seed, to := range whole() {
			t.Run(from+" to "+to, func(t *testing.T) {
				runDuelOf(t, switched(t, from, to), noise(uint64(seed), 1500))
			})
		}
	}
}

// exchange switches to another policy, with a random limit or none.
func (y *yard) exchange() {
	name, time := PolicyNames()[y.next()%len(PolicyNames())], y.clock()
	to := newPolicy(y, name, "")
	if limits := to.Limits(); len(limits) > 0 && y.next()%2 == 0 {
		limit := limits[y.next()%len(limits)].Name
		if _, err := to.SetLimit(limit, values[limit][y.next()%len(values[limit])], 0, nil); err != nil {
			y.Fatal(err)
		}
	}
	y.pass(time)
	out := y.p.SwitchPolicy(to, time, nil)
	for _, b := range y.blocks {
		b.passes = false
	}
	y.letSome(out)
	for _, s := range y.slabs {
		s.former = true
		if s.idle() {
			y.Fatalf("%+v no longer serves a request, and stays", s)
		}
	}
	for _, b := range y.blocks {
		if b.state == cached && !to.createsBlocksOfSize(b.size) {
			y.Fatalf("%s keeps %+v, which it would not have made", name, b)
		}
	}
}

func newSwitchingYard(tb testing.TB, name string, ops []byte) *yard {
	tb.Helper()
	y := newYard(tb, name, ops)
	y.switches = true
	return y
}

// TestEveryPolicyTakesOverFromEveryOther goes over from every policy to every other one at random moments: nothing is handed out twice, given up
// while it is used, or lost, and at the end nothing is left.
func TestEveryPolicyTakesOverFromEveryOther(t *testing.T) {
	for _, name := range PolicyNames() {
		for seed := range uint64(4) {
			t.Run(fmt.Sprintf("%s/%d", name, seed), func(t *testing.T) {
				newSwitchingYard(t, name, noise(100+seed, 4000)).run()
			})
		}
	}
}

func FuzzSwitches(f *testing.F) {
	names := PolicyNames()
	for i := range names {
		f.Add(byte(i), noise(uint64(i), 400))
	}
	f.Fuzz(func(t *testing.T, policy byte, ops []byte) {
		newSwitchingYard(t, names[int(policy)%len(names)], ops[:min(len(ops), 2000)]).run()
	})
}

// change switches to another policy and returns what that evicts.
func (d *driver) change(to, limits string) []Eviction {
	d.t.Helper()
	d.now++
	out := d.policy.SwitchPolicy(newPolicy(d.t, to, limits), d.now, nil)
	d.release(out)
	return out
}

func newSwitchDriver(t testing.TB, policy, limits string) *driver {
	t.Helper()
	d := newDriver(t, policy, limits)
	return d
}

// TestWhoTakesBlocksOver frees a block before a switch, one while it cools and one in use, all of the same size, and
// asks for three afterwards: a policy that would have made such blocks has them, any other gives them up.
func TestWhoTakesBlocksOver(t *testing.T) {
	const power, odd, large = 1 << 20, 1_000_000, 64 << 20
	for _, c := range []struct {
		from, to, limits string
		size             uint64
		hits             uint64
	}{
		{"futhark", "futhark-2018", "max_per_tag=0", odd, 2},
		{"futhark", "pow2", "", power, 2},
		{"futhark", "pow2", "", odd, 0},
		{"futhark", "pow2", "min_block=2097152", power, 0},
		{"futhark", "buckets", "", power, 2},
		{"futhark", "buckets", "bucket_sizes=1000:1000000", odd, 2},
		{"futhark", "mantissa", "", power, 0},
		{"pow2", "futhark", "", odd, 2},
		{"pow2", "pow2", "", odd, 2},
		{"futhark", "pinned", "", power, 0},
		{"futhark", "slab", "", power, 0},
		{"futhark", "slab", "", large, 2},
		{"slab", "futhark", "", large, 2},
		{"none", "futhark", "", odd, 1}, // it did not keep the others before,
		{"futhark", "none", "", odd, 0},
	} {
		t.Run(fmt.Sprintf("%s to %s %s/%d", c.from, c.to, c.limits, c.size), func(t *testing.T) {
			d, kept := newSwitchDriver(t, c.from, ""), c.hits > 0
			free, cools, used := d.alloc(c.size, 1, 1), d.alloc(c.size, 1, 1), d.alloc(c.size, 1, 1)
			d.free(free.Block, false)
			d.free(cools.Block, true)
			out := d.change(c.to, c.limits)
			d.check()
			out = append(out, d.free(used.Block, false)...)
			if d.blocks[cools.Block] != nil {
				d.drop(cools.Block)
				was := len(d.blocks)
				d.cooled(cools.Block)
				if kept != (len(d.blocks) == was) {
					t.Errorf("what cooled stays: %v", !kept)
				}
			}
			for _, e := range out {
				if kept || e.Reason != wire.EvictPolicy {
					t.Errorf("%+v went", e)
				}
			}
			d.check()
			before := d.policy.Stats().Hits
			for range 2 {
				d.alloc(c.size, 1, 1)
			}
			if hits := d.policy.Stats().Hits - before; hits != c.hits {
				t.Errorf("%d hits on what was there before", hits)
			}
			d.check()
		})
	}
}

// TestFormerPolicysOrder: what goes at a switch goes in the drain_order of the policy that had it, and what the limits
// of the new one do not allow in that of the new one.
func TestFormerPolicysOrder(t *testing.T) {
	d := newSwitchDriver(t, "futhark", "drain_order=largest-first")
	blocks := map[Block]uint64{}
	for _, size := range []uint64{3000, 4096, 9000, 8192, 5000, 16384} {
		blocks[d.alloc(size, 1, Tag(size)).Block] = size
	}
	for _, b := range slices.Sorted(maps.Keys(blocks)) {
		d.free(b, false)
	}
	var sizes []uint64
	for _, e := range d.change("pow2", "max_cached_bytes=16384,drain_order=oldest-first") {
		sizes = append(sizes, e.Size)
	}
	if want := []uint64{9000, 5000, 3000, 4096, 8192}; !slices.Equal(sizes, want) {
		t.Errorf("%v went, want %v", sizes, want)
	}
	d.check()
}

// TestSlabsOfAFormerPolicy: sub-allocations stay where they are, and their slab goes with the last one, whatever comes
// back later.
func TestSlabsOfAFormerPolicy(t *testing.T) {
	for _, from := range carving() {
		for _, to := range PolicyNames() {
			t.Run(from+" to "+to, func(t *testing.T) {
				d := newPartDriver(t, from)
				first, second := d.alloc(1000, 1, 1), d.alloc(2000, 1, 1)
				cools, aborted := d.alloc(3000, 1, 1), d.decide(500, 1, 1)
				d.free(cools.Block, true)
				if out := d.change(to, ""); len(out) > 0 {
					t.Fatalf("%v went with parts in use", out)
				}
				if later := d.alloc(1000, 1, 1); later.Slab == first.Slab {
					t.Fatalf("%+v lies in a former slab", later)
				}
				d.change(from, "")
				if later := d.alloc(1000, 1, 1); later.Slab == first.Slab {
					t.Fatalf("%+v lies in a former slab", later)
				}
				d.free(first.Block, false)
				d.cooled(cools.Block)
				d.policy.Abort(aborted)
				d.check()
				if out := d.free(second.Block, false); len(out) != 1 || out[0].Block != first.Slab || out[0].Reason != wire.EvictPolicy {
					t.Fatalf("%v went with the last part, want slab %x", out, first.Slab)
				}
				if s := d.policy.slabs; len(s.former) > 1 {
					t.Errorf("%d former carvers are kept", len(s.former))
				}
				d.check()
			})
		}
	}
}

// TestDecisionsAcrossASwitch: a thread that is in the driver while the policy changes carries out its decision.
func TestDecisionsAcrossASwitch(t *testing.T) {
	for _, to := range PolicyNames() {
		t.Run(to, func(t *testing.T) {
			d := newPartDriver(t, "slab")
			refused, _ := d.policy.Decide(d.request(100_000, 2, 1), nil)
			waits, _ := d.policy.Decide(d.request(1000, 2, 1), nil)
			grows := d.decide(1000, 1, 1)
			if waits.Slab != refused.Slab || grows.SlabSize == 0 {
				t.Fatalf("%+v, %+v, %+v", refused, waits, grows)
			}
			d.change(to, "")
			d.policy.Abort(refused)
			d.policy.Abort(waits)
			d.commit(grows, 1)
			d.check()
			if s := d.policy.Stats(); s.Slabs != 1 || s.BytesInUse != grows.Size {
				t.Errorf("%+v", s)
			}
			if out := d.free(grows.Block, false); len(out) != 1 || out[0].Block != grows.Slab {
				t.Errorf("%v went with the last part", out)
			}
			d.check()
		})
	}
	d := newSwitchDriver(t, "futhark", "")
	block := d.alloc(1000, 1, 1).Block
	d.free(block, false)
	hit := d.decide(1000, 1, 1)
	d.change("pow2", "")
	d.policy.Abort(hit)
	if out := d.policy.Trim(1<<40, nil); len(out) != 1 || out[0].Block != block || out[0].Reason != wire.EvictPolicy {
		t.Errorf("%v went, want the block of an aborted hit", out)
	}
}

// TestCountersGoOn: counters continue after a switch, and nothing is counted twice.
func TestCountersGoOn(t *testing.T) {
	d := newSwitchDriver(t, "futhark", "")
	for _, to := range []string{"pow2", "slab", "mantissa", "none", "futhark"} {
		b := d.alloc(5000, 1, 1).Block
		d.free(b, false)
		d.free(d.alloc(5000, 1, 1).Block, false)
		before := d.policy.Stats()
		out := d.change(to, "")
		after := d.policy.Stats()
		if d.policy.PolicyName() != to || after.Hits != before.Hits || after.Misses != before.Misses ||
			after.BytesRequested != before.BytesRequested || after.PeakReserved != before.PeakReserved ||
			after.Evictions != before.Evictions+uint64(len(out)) {
			t.Errorf("to %s: from %+v to %+v", to, before, after)
		}
		d.check()
	}
	if s := d.policy.Stats(); s.Hits != 4 || s.Misses != 6 {
		t.Errorf("%d hits and %d misses of ten requests, including one under policy none", s.Hits, s.Misses)
	}
}

func TestCarried(t *testing.T) {
	for _, c := range []struct{ from, present, to, want string }{
		{"futhark", "max_cached_bytes=4294967296,max_age=30,max_per_tag=3,drain_order=slot", "pow2", "[{max_age 30}]"},
		{"futhark", "max_cached_bytes=1000,max_per_tag=3", "futhark-2018", "[{max_cached_bytes 1000} {max_per_tag 3}]"},
		{"buckets", "over_limit=reject-new,min_block=1,bucket_sizes=1:2", "pow2", "[]"},
		{"slab", "max_part=1024,max_age=5", "buddy", "[{max_age 5}]"}, // a page of buddy is larger
		{"slab", "max_part=8192,max_age=5", "buddy", "[{max_part 8192} {max_age 5}]"},
		{"slab", "max_age=5", "none", "[]"},
		{"", "max_age=5", "pow2", "[{max_age 5}]"},
	} {
		present, err := ParseSettings(c.present)
		if err != nil {
			t.Fatal(err)
		}
		if got := fmt.Sprint(CarriedSettings(c.from, present, c.to)); got != c.want {
			t.Errorf("%s of %s to %s: %s, want %s", c.present, c.from, c.to, got, c.want)
		}
	}
}
