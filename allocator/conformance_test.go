package allocator

import (
	"fmt"
	"math/rand/v2"
	"testing"

	"codeberg.org/gpumemtop/gpumemtop/internal/wire"
)

const mib = 1 << 20

// everyKind runs a test for every policy, with requests that it caches if it caches any: whole blocks, and
// sub-allocations of slabs where it has them.
func everyKind(t *testing.T, test func(t *testing.T, d *driver)) {
	t.Helper()
	for _, name := range PolicyNames() {
		t.Run(name, func(t *testing.T) { test(t, newDriver(t, name, "")) })
	}
	for _, name := range carving() {
		t.Run(name+" parts", func(t *testing.T) { test(t, newPartDriver(t, name)) })
	}
	for i, name := range PolicyNames() {
		t.Run(name+" after another", func(t *testing.T) {
			d := newDriver(t, name, "")
			d.policy = switched(t, PolicyNames()[(i+5)%len(PolicyNames())], name)
			test(t, d)
		})
	}
}

// caches says whether a policy keeps anything at all.
func (d *driver) caches() bool { return d.policy.PolicyName() != "none" }

func TestSameSizeAgain(t *testing.T) {
	everyKind(t, func(t *testing.T, d *driver) {
		first := d.alloc(mib, 1, 1)
		d.free(first.Block, false)
		second := d.alloc(mib, 1, 1)
		if second.Hit != d.caches() {
			t.Errorf("second request: hit %v", second.Hit)
		}
		if second.Hit && (second.Slab != first.Slab || second.Slab == 0 && second.Block != first.Block) {
			t.Errorf("a hit on %+v, the first was %+v", second, first)
		}
		d.check()
	})
}

func TestAbort(t *testing.T) {
	everyKind(t, func(t *testing.T, d *driver) {
		d.policy.Abort(d.decide(mib, 1, 1))
		if s := d.policy.Stats(); s != (Stats{}) {
			t.Errorf("after an aborted miss: %+v", s)
		}
		kept := d.alloc(mib, 1, 1)
		d.free(kept.Block, false)
		before := d.policy.Stats()
		again := d.decide(mib, 1, 1)
		d.policy.Abort(again)
		if s := d.policy.Stats(); s != before || again.Hit != d.caches() {
			t.Errorf("before an aborted hit: %+v\nafter it: %+v", before, s)
		}
		d.check()
		if third := d.alloc(mib, 1, 1); third.Hit != d.caches() {
			t.Error("the block of an aborted hit serves no request")
		}
		d.check()
	})
}

func TestStrangersAreIgnored(t *testing.T) {
	everyKind(t, func(t *testing.T, d *driver) {
		other := d.alloc(mib, 1, 1)
		decision := d.alloc(mib, 1, 2)
		d.free(decision.Block, false)
		before := d.policy.Stats()
		for _, b := range []Block{decision.Block, 0, 1 << 60, other.Block + 1000, other.Block + 1<<32, 1<<64 - 1, other.Slab} {
			if out := d.policy.Free(b, false, 9, nil); len(out) > 0 {
				t.Errorf("freeing %d evicted %v", b, out)
			}
			if out := d.policy.CoolingEnded(b, 9, nil); len(out) > 0 {
				t.Errorf("cooling %d evicted %v", b, out)
			}
			d.policy.Forget(b)
			d.policy.Commit(Decision{Block: b})
			d.policy.Abort(Decision{Block: b})
			d.policy.SlabCreated(Decision{Block: b, Slab: b, SlabSize: mib})
		}
		d.policy.Commit(decision)
		d.policy.Abort(other)
		d.policy.CoolingEnded(other.Block, 9, nil) // in use, not cooling
		if got := d.policy.Stats(); got != before {
			t.Errorf("unknown blocks changed %+v to %+v", before, got)
		}
		d.check()
	})
}

func TestCooling(t *testing.T) {
	everyKind(t, func(t *testing.T, d *driver) {
		block := d.alloc(mib, 1, 1).Block
		if d.free(block, true); !d.caches() {
			return // it is gone at once
		}
		d.check()
		if second := d.alloc(mib, 1, 1); second.Hit || second.Reason != wire.MissCooling {
			t.Fatalf("%+v while the only block cools", second)
		}
		d.free(block, true) // freed twice
		d.check()
		d.cooled(block)
		d.check()
		if third := d.alloc(mib, 1, 1); !third.Hit {
			t.Errorf("after cooling: %+v", third)
		}
	})
}

func TestClassesNeverMix(t *testing.T) {
	everyKind(t, func(t *testing.T, d *driver) {
		d.free(d.alloc(mib, 1, 1).Block, false)
		other := d.alloc(mib, 2, 1)
		if other.Hit {
			t.Fatal("a block served another class")
		}
		if d.caches() && other.Reason != wire.MissOtherClass {
			t.Errorf("reason %v, want other class", other.Reason)
		}
		d.check()
	})
}

func TestDroppedClass(t *testing.T) {
	everyKind(t, func(t *testing.T, d *driver) {
		var out []Block
		for range 3 {
			out = append(out, d.alloc(mib, 1, 1).Block)
		}
		other := d.alloc(mib, 2, 1)
		d.free(other.Block, false)
		d.free(out[0], false)
		if d.free(out[1], true); d.caches() {
			d.drop(out[1]) // with its context
		}
		d.release(d.policy.DropClass(1, nil))
		d.check()
		if s := d.policy.Stats(); s.BytesInUse < mib || s.BytesCooling != 0 {
			t.Fatalf("%+v, want the one in use and what another class has", s)
		}
		if evicted := d.free(out[2], false); len(evicted) != 1 || d.caches() && evicted[0].Reason != wire.EvictContext {
			t.Fatalf("evicted %v, want a block of a class that was dropped", evicted)
		}
		for range 2 { // it stays dropped, cooling included
			again := d.alloc(mib, 1, 1)
			if again.Hit {
				t.Fatal("a dropped class served a request")
			}
			d.drop(again.Block)
			if evicted := d.free(again.Block, true); len(evicted) != 1 {
				t.Fatalf("evicted %v, want the block", evicted)
			}
		}
		d.check()
		if d.alloc(mib, 2, 1).Hit != d.caches() {
			t.Error("the other class lost its block")
		}
	})
}

func TestForget(t *testing.T) {
	everyKind(t, func(t *testing.T, d *driver) {
		a, b := d.alloc(mib, 1, 1), d.alloc(mib, 1, 1)
		d.forget(a.Block)
		d.free(b.Block, true)
		d.forget(b.Block)
		s := d.policy.Stats()
		if s.BytesInUse != 0 || s.Parts != 0 || a.Slab == 0 && (s.Blocks != 0 || s.BytesCooling != 0) {
			t.Errorf("after forgetting all: %+v", s)
		}
		if again := d.alloc(mib, 1, 1); again.Hit || again.Block == a.Block || again.Block == b.Block {
			t.Errorf("%+v: a forgotten range serves", again)
		}
		if err := d.policy.Validate(); err != nil {
			t.Error(err)
		}
		d.release(d.policy.Trim(0, nil)) // slabs go with what was forgotten of them
		if s := d.policy.Stats(); s.BytesCooling != 0 || s.Blocks != 1 {
			t.Errorf("trim left %+v", s)
		}
		d.check()
	})
}

// TestTimeRelease: one block of the size goes, that which has been cached for longest; of other sizes, and of slabs, none.
func TestTimeRelease(t *testing.T) {
	everyKind(t, func(t *testing.T, d *driver) {
		var blocks []Block
		for i := range 3 {
			blocks = append(blocks, d.alloc(mib, 1, Tag(i)).Block)
		}
		for _, b := range blocks {
			d.free(b, false)
		}
		before := d.policy.Stats().BytesCached
		if out := d.policy.EvictForTiming(16*mib, nil); len(out) != 0 {
			t.Errorf("%+v went for another size", out)
		}
		out := d.policy.EvictForTiming(mib+1, nil)
		if one := before > 0 && d.align == 0; one != (len(out) == 1) || one && (out[0].Block != blocks[0] || out[0].Reason != wire.EvictTimed) {
			t.Errorf("%+v went", out)
		}
		d.release(out)
		d.check()
	})
}

// TestOldestGoesFirst: what has been cached for longest goes first, and no more than is needed; what is owed goes when it comes back.
func TestOldestGoesFirst(t *testing.T) {
	everyKind(t, func(t *testing.T, d *driver) {
		var blocks []Block
		for i := range 4 {
			blocks = append(blocks, d.alloc(mib, 1, Tag(i)).Block)
		}
		for _, b := range blocks {
			d.free(b, false)
		}
		before := d.policy.Stats().BytesCached
		out := d.policy.EvictForOthers(1, 0, d.now, nil)
		if len(out) != min(1, int(before)) {
			t.Fatalf("%d evictions for a byte of %d", len(out), before)
		}
		for _, e := range out {
			if e.Reason != wire.EvictRelief || d.align == 0 && e.Block != blocks[0] {
				t.Errorf("evicted %+v, want the oldest block", e)
			}
		}
		d.release(out)
		if out := d.policy.EvictForOthers(1<<40, 1<<40, d.now, nil); len(out) != 0 {
			t.Errorf("%d blocks were idle for long", len(out))
		}
		used := d.alloc(mib, 1, 9).Block
		d.release(d.policy.EvictForOthers(1<<40, 0, d.now, nil))
		if d.free(used, false); d.policy.Stats().BytesCached != 0 {
			t.Errorf("%d bytes are cached while others lack memory", d.policy.Stats().BytesCached)
		}
		d.release(d.policy.EvictForOthers(0, 0, d.now, nil))
		d.free(d.alloc(mib, 1, 9).Block, false)
		if d.caches() && d.policy.Stats().BytesCached == 0 {
			t.Error("nothing is cached though others have enough")
		}
		d.check()
	})
}

func TestTrim(t *testing.T) {
	everyKind(t, func(t *testing.T, d *driver) {
		var blocks []Block
		for i := range 4 {
			blocks = append(blocks, d.alloc(mib, 1, Tag(i)).Block)
		}
		for _, b := range blocks {
			d.free(b, false)
		}
		cached := d.policy.Stats().BytesCached
		if d.release(d.policy.Trim(2*mib, nil)); d.caches() && cached <= 2*mib {
			t.Fatalf("%d bytes cached before trim", cached)
		}
		if s := d.policy.Stats(); s.BytesCached > 2*mib || d.caches() && s.BytesCached == 0 {
			t.Errorf("%d bytes cached after trim", s.BytesCached)
		}
		d.check()
		d.release(d.policy.Trim(0, nil))
		if s := d.policy.Stats(); s.BytesCached != 0 || len(d.blocks) != 0 {
			t.Errorf("%d bytes in %d blocks left", s.BytesCached, len(d.blocks))
		}
		d.check()
	})
}

// TestDrainEndsWithWhatCools: blocks in use by commands go last, and only when nothing else is left.
func TestDrainEndsWithWhatCools(t *testing.T) {
	everyKind(t, func(t *testing.T, d *driver) {
		if !d.caches() {
			return
		}
		free, cools, used := d.alloc(mib, 1, 1), d.alloc(mib, 1, 2), d.alloc(mib, 1, 3)
		d.free(free.Block, false)
		d.free(cools.Block, true)
		d.release(d.policy.Drain(1<<40, nil)) // fails the test when what cools goes
		d.check()
		d.drop(cools.Block)
		if out := d.policy.Drain(1, nil); len(out) != 1 || out[0].Reason != wire.EvictDrain {
			t.Fatalf("drained %v, want what cools", out)
		}
		if out := d.policy.Drain(1, nil); len(out) != 0 {
			t.Fatalf("drained %v, nothing is left but what is in use", out)
		}
		if out := d.policy.CoolingEnded(cools.Block, d.now, nil); len(out) != 0 {
			t.Fatalf("what was drained cooled down: %v", out)
		}
		if s := d.policy.Stats(); s.BytesInUse != used.Size || s.BytesCooling != 0 {
			t.Errorf("left: %+v", s)
		}
	})
}

// churn makes random requests in three classes, with memory short at times, and logs all answers.
func (d *driver) churn(steps int, classes [3]Class) (log string) {
	rng := rand.New(rand.NewPCG(7, 7))
	var live []Block
	for range steps {
		switch n := rng.IntN(32); {
		case n == 0:
			out := d.policy.Drain(uint64(1+rng.IntN(64))<<14, nil)
			d.release(out)
			log += fmt.Sprint(out)
		case n < 16 && len(live) > 0:
			i := rng.IntN(len(live))
			log += fmt.Sprint(d.free(live[i], false))
			live = append(live[:i], live[i+1:]...)
		default:
			decision := d.alloc(uint64(1+rng.IntN(16))<<16, classes[rng.IntN(3)], Tag(rng.IntN(5)))
			log += fmt.Sprint(decision)
			live = append(live, decision.Block)
		}
		d.check()
	}
	return log + fmt.Sprintf("%+v", d.policy.Stats())
}

// TestSameRequestsSamePlans: replay relies on it. It numbers classes in the order in which it meets them, which is not
// always that of the program.
func TestSameRequestsSamePlans(t *testing.T) {
	for _, order := range []string{"slot", "largest-first", "oldest-first"} {
		logs := map[string]string{}
		for _, classes := range [][3]Class{{1, 2, 3}, {1, 2, 3}, {3, 1, 2}, {2, 3, 1}} {
			everyKind(t, func(t *testing.T, d *driver) {
				if d.caches() {
					d.set("drain_order", order)
				}
				kind, log := fmt.Sprint(d.policy.PolicyName(), d.align), d.churn(500, classes)
				if first, again := logs[kind]; again && first != log {
					t.Errorf("the same requests are answered differently with classes %d and %s", classes, order)
				}
				logs[kind] = log
			})
		}
	}
}

// TestHitAllocatesNothing has several sizes and tags go round, and some of them cool. An arena's pool takes five times 256
// requests to allow for all of them.
func TestHitAllocatesNothing(t *testing.T) {
	everyKind(t, func(t *testing.T, d *driver) {
		var out []Eviction
		i := 0
		cycle := func() {
			i++
			req := Request{
				Size: uint64(1+i%7) << 14, Class: Class(1 + i%2), Tag: Tag(i % 7), Align: d.align, Pinned: d.pinned, Time: int64(i),
			}
			decision, _ := d.policy.Decide(req, out[:0])
			if decision.SlabSize != 0 {
				d.policy.SlabCreated(decision)
			}
			d.policy.Commit(decision)
			out = d.policy.Free(decision.Block, i%3 == 0, int64(i), out[:0])
			out = d.policy.CoolingEnded(decision.Block, int64(i), out[:0])
		}
		for range 1500 {
			cycle()
		}
		misses := d.policy.Stats().Misses
		if n := testing.AllocsPerRun(1000, cycle); n != 0 {
			t.Errorf("%v allocations per hit", n)
		}
		if s := d.policy.Stats(); d.caches() && s.Misses != misses {
			t.Errorf("%d misses in steady state", s.Misses-misses)
		}
	})
}

// TestMissAllocatesNothing has blocks and slabs come and go: what is kept of them does not grow. A slab with a tree of
// pages needs memory for that.
func TestMissAllocatesNothing(t *testing.T) {
	everyKind(t, func(t *testing.T, d *driver) {
		var out []Eviction
		cycle := func() {
			decision, _ := d.policy.Decide(Request{Size: mib, Class: 1, Align: d.align, Pinned: d.pinned}, out[:0])
			if decision.SlabSize != 0 {
				d.policy.SlabCreated(decision)
			}
			if decision.Block.Index() > 2 || decision.Slab.Index() > 2 {
				t.Fatalf("%+v, and nothing else is there", decision)
			}
			d.policy.Commit(decision)
			out = d.policy.Free(decision.Block, false, 0, out[:0])
			out = d.policy.Trim(0, out)
		}
		for range 2000 { // more than are remembered of those that went
			cycle()
		}
		n, tree := testing.AllocsPerRun(100, cycle), d.align != 0 && (d.policy.PolicyName() == "buddy" || d.policy.PolicyName() == "ualloc")
		if n != 0 && !tree {
			t.Errorf("%v allocations per miss", n)
		}
		if s := d.policy.Stats(); s.Hits != 0 || s.Blocks != 0 {
			t.Errorf("after misses only: %+v", s)
		}
	})
}
