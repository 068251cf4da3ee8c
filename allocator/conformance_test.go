package allocator

import (
	"strings"
	"testing"

	"codeberg.org/gpumemtop/gpumemtop/internal/wire"
)

// driver plays the part of whoever holds a policy: it creates and releases blocks, and fails the test when the
// policy hands one out twice, gives one up twice, or serves a request from a wrong block.
type driver struct {
	t      testing.TB
	policy Policy
	blocks map[Block]*held
	now    int64
}

type held struct {
	size  uint64
	class Class
	inUse bool
}

func newDriver(t testing.TB, policy, limits string) *driver {
	t.Helper()
	settings, err := ParseSettings(limits)
	if err != nil {
		t.Fatal(err)
	}
	p, err := New(policy, settings)
	if err != nil {
		t.Fatal(err)
	}
	return &driver{t: t, policy: p, blocks: map[Block]*held{}}
}

func (d *driver) alloc(size uint64, class Class, tag Tag) Plan {
	d.t.Helper()
	plan := d.plan(size, class, tag)
	d.commit(plan, class)
	return plan
}

func (d *driver) plan(size uint64, class Class, tag Tag) Plan {
	d.t.Helper()
	d.now++
	plan, evicted := d.policy.Plan(Request{Size: size, Class: class, Tag: tag, Time: d.now}, nil)
	d.release(evicted)
	b := d.blocks[plan.Block]
	switch {
	case plan.Size < size:
		d.t.Fatalf("a request of %d is served by %d bytes", size, plan.Size)
	case plan.Hit && (b == nil || b.inUse || b.class != class || b.size != plan.Size):
		d.t.Fatalf("hit on %d, which is %+v", plan.Block, b)
	case !plan.Hit && b != nil:
		d.t.Fatalf("block %d is to be created and exists", plan.Block)
	case plan.Hit != (plan.Reason == wire.MissNone):
		d.t.Fatalf("hit %v with reason %v", plan.Hit, plan.Reason)
	}
	return plan
}

func (d *driver) commit(plan Plan, class Class) {
	d.policy.Commit(plan)
	if !plan.Hit {
		d.blocks[plan.Block] = &held{size: plan.Size, class: class}
	}
	d.blocks[plan.Block].inUse = true
}

func (d *driver) free(b Block, busy bool) []Eviction {
	d.t.Helper()
	d.now++
	if h := d.blocks[b]; h != nil {
		h.inUse = false
	}
	evicted := d.policy.Free(b, busy, d.now, nil)
	d.release(evicted)
	return evicted
}

func (d *driver) cooled(b Block) {
	d.t.Helper()
	d.release(d.policy.Cooled(b, d.now, nil))
}

func (d *driver) release(evicted []Eviction) {
	d.t.Helper()
	for _, e := range evicted {
		b := d.blocks[e.Block]
		if b == nil || b.inUse || b.size != e.Size || e.Reason == wire.EvictNone {
			d.t.Fatalf("eviction %+v of %+v", e, b)
		}
		delete(d.blocks, e.Block)
	}
}

func (d *driver) check() {
	d.t.Helper()
	if err := d.policy.Validate(); err != nil {
		d.t.Fatal(err)
	}
	if s := d.policy.Stats(); s.Blocks != uint64(len(d.blocks)) {
		d.t.Fatalf("the policy knows %d blocks, there are %d", s.Blocks, len(d.blocks))
	}
}

// TestConformance holds for every policy.
func TestConformance(t *testing.T) {
	for _, name := range Names() {
		t.Run(name, func(t *testing.T) {
			caches := name != "none"
			for test, run := range map[string]func(t *testing.T, d *driver, caches bool){
				"same size again": sameSizeAgain, "abort": abort, "strangers are ignored": strangers, "cooling": coolingBlocks,
				"classes": classes, "dropped class": droppedClass, "forget": forget, "drain": drain, "trim": trim,
			} {
				t.Run(test, func(t *testing.T) {
					d := newDriver(t, name, "")
					run(t, d, caches)
					d.check()
				})
			}
		})
	}
}

func sameSizeAgain(t *testing.T, d *driver, caches bool) {
	first := d.alloc(1<<20, 1, 1)
	d.free(first.Block, false)
	second := d.alloc(1<<20, 1, 1)
	if second.Hit != caches {
		t.Errorf("second request: hit %v", second.Hit)
	}
	if second.Hit && second.Block != first.Block {
		t.Error("a hit on a block that was never made")
	}
}

func abort(t *testing.T, d *driver, caches bool) {
	lost := d.plan(1<<20, 1, 1)
	d.policy.Abort(lost)
	d.check()
	if s := d.policy.Stats(); s.Misses != 0 || s.Blocks != 0 {
		t.Errorf("after an abort: %+v", s)
	}
	kept := d.alloc(1<<20, 1, 1)
	d.free(kept.Block, false)
	again := d.plan(1<<20, 1, 2)
	d.policy.Abort(again)
	if s := d.policy.Stats(); caches && (s.BytesCached != 1<<20 || s.Hits != 0) {
		t.Errorf("after an aborted hit: %+v", s)
	}
}

func strangers(t *testing.T, d *driver, _ bool) {
	block := d.alloc(1<<20, 1, 1).Block
	d.free(block, false)
	before := d.policy.Stats()
	for _, b := range []Block{block, 0, 1 << 60, block + 1, block + 1<<32} {
		if out := d.policy.Free(b, false, 9, nil); len(out) > 0 {
			t.Errorf("freeing %d evicted %v", b, out)
		}
		d.policy.Cooled(b, 9, nil)
		d.policy.Forget(b)
		d.policy.Commit(Plan{Block: b})
		d.policy.Abort(Plan{Block: b})
	}
	if got := d.policy.Stats(); got != before {
		t.Errorf("strangers changed %+v to %+v", before, got)
	}
}

func coolingBlocks(t *testing.T, d *driver, caches bool) {
	block := d.alloc(1<<20, 1, 1).Block
	d.free(block, true)
	d.check()
	second := d.alloc(1<<20, 1, 1)
	if second.Hit {
		t.Fatal("a cooling block was handed out")
	}
	if caches && second.Reason != wire.MissCooling {
		t.Errorf("reason %v, want cooling", second.Reason)
	}
	d.cooled(block)
	if third := d.alloc(1<<20, 1, 1); third.Hit != caches {
		t.Errorf("after cooling: hit %v", third.Hit)
	}
}

func classes(t *testing.T, d *driver, caches bool) {
	d.free(d.alloc(1<<20, 1, 1).Block, false)
	other := d.alloc(1<<20, 2, 1)
	if other.Hit {
		t.Fatal("a block served another class")
	}
	if caches && other.Reason != wire.MissOtherClass {
		t.Errorf("reason %v, want other class", other.Reason)
	}
}

func droppedClass(t *testing.T, d *driver, _ bool) {
	var out []Block
	for range 3 {
		out = append(out, d.alloc(1<<20, 1, 1).Block)
	}
	d.free(out[0], false)
	d.free(out[1], true)
	d.release(d.policy.DropClass(1, nil))
	d.check()
	if len(d.blocks) != 1 {
		t.Fatalf("%d blocks left, want the one in use", len(d.blocks))
	}
	if evicted := d.free(out[2], false); len(evicted) != 1 {
		t.Fatalf("a block of a dropped class was kept: %v", evicted)
	}
}

func forget(t *testing.T, d *driver, _ bool) {
	a, b := d.alloc(1<<20, 1, 1).Block, d.alloc(1<<20, 1, 1).Block
	d.policy.Forget(a)
	delete(d.blocks, a)
	d.free(b, true)
	if _, there := d.blocks[b]; there {
		d.policy.Forget(b)
		delete(d.blocks, b)
	}
	if s := d.policy.Stats(); s.Blocks != 0 || s.BytesInUse != 0 || s.BytesCooling != 0 {
		t.Errorf("after forgetting all: %+v", s)
	}
}

// drain is seed 000's example on a device of 1024 MiB: three free blocks of 256 MiB, 512 MiB wanted.
func drain(t *testing.T, d *driver, caches bool) {
	const mib = 1 << 20
	var blocks []Block
	for range 3 {
		blocks = append(blocks, d.alloc(256*mib, 1, 1).Block)
	}
	for _, b := range blocks {
		d.free(b, false)
	}
	held := func() (sum uint64) {
		for _, b := range d.blocks {
			sum += b.size
		}
		return sum
	}
	plan := d.plan(512*mib, 1, 2)
	for held()+plan.Size > 1024*mib {
		before := len(d.blocks)
		d.release(d.policy.Drain(plan.Size, nil))
		if len(d.blocks) == before {
			t.Fatal("nothing more to give back")
		}
	}
	d.commit(plan, 1)
	if caches && held() != 768*mib {
		t.Errorf("%d MiB held, want the request and one block that could stay", held()/mib)
	}
}

func trim(t *testing.T, d *driver, _ bool) {
	var blocks []Block
	for range 4 {
		blocks = append(blocks, d.alloc(1<<20, 1, 1).Block)
	}
	for _, b := range blocks {
		d.free(b, false)
	}
	d.release(d.policy.Trim(2<<20, nil))
	if s := d.policy.Stats(); s.BytesCached > 2<<20 {
		t.Errorf("%d bytes cached after trim", s.BytesCached)
	}
	d.release(d.policy.Trim(0, nil))
	if s := d.policy.Stats(); s.BytesCached != 0 || len(d.blocks) != 0 {
		t.Errorf("%d bytes in %d blocks left", s.BytesCached, len(d.blocks))
	}
}

func TestSetLimit(t *testing.T) {
	for _, name := range Names() {
		d := newDriver(t, name, "")
		for _, limit := range d.policy.Limits() {
			for _, value := range []float64{limit.Min, limit.Max, limit.Value} {
				if _, err := d.policy.SetLimit(limit.Name, number(value), 0, nil); err != nil {
					t.Errorf("%s: %v", name, err)
				}
			}
			for _, value := range []float64{limit.Min - 1, limit.Max * 2} {
				_, err := d.policy.SetLimit(limit.Name, number(value), 0, nil)
				if err == nil || !strings.Contains(err.Error(), limit.Name) || !strings.Contains(err.Error(), number(limit.Max)) {
					t.Errorf("%s: %s=%v: %v", name, limit.Name, value, err)
				}
			}
		}
		if _, err := d.policy.SetLimit("nonsense", "1", 0, nil); err == nil {
			t.Errorf("%s obeys a limit called nonsense", name)
		}
	}
	d := newDriver(t, "pow2", "")
	if _, err := d.policy.SetLimit("max_waste_ratio", "2", 0, nil); err == nil || !strings.Contains(err.Error(), "max_cached_bytes") {
		t.Errorf("pow2 has no waste ratio, but: %v", err)
	}
}

func TestLoweringTheCapEvictsTheOldest(t *testing.T) {
	d := newDriver(t, "futhark", "")
	var blocks []Block
	for range 4 {
		blocks = append(blocks, d.alloc(1<<20, 1, 1).Block)
	}
	for _, b := range blocks {
		d.free(b, false)
	}
	evicted, err := d.policy.SetLimit("max_cached_bytes", "2097152", 0, nil)
	if err != nil || len(evicted) != 2 || evicted[0].Block != blocks[0] || evicted[1].Block != blocks[1] {
		t.Fatalf("evicted %v, %v", evicted, err)
	}
	d.release(evicted)
	d.check()
	d.alloc(1<<20, 1, 1)
	d.alloc(1<<20, 1, 1)
	if plan := d.plan(1<<20, 1, 1); plan.Reason != wire.MissLimit {
		t.Errorf("reason %v, want limit: a block of that size was evicted", plan.Reason)
	}
}

func TestBlockAboveTheCapGoesAlone(t *testing.T) {
	d := newDriver(t, "futhark", "max_cached_bytes=1048576")
	small, large := d.alloc(1<<19, 1, 1).Block, d.alloc(1<<21, 1, 2).Block
	d.free(small, false)
	if evicted := d.free(large, false); len(evicted) != 1 || evicted[0].Block != large {
		t.Fatalf("evicted %v, want the large block only", evicted)
	}
	d.check()
}

// TestFutharkAcceptance is seed 000's window and what today's runtime added to it.
func TestFutharkAcceptance(t *testing.T) {
	const mib = 1 << 20
	for _, c := range []struct {
		name       string
		block      uint64
		blockTag   Tag
		want       uint64
		hit        bool
		reason     wire.Miss
		limits     string
		requestTag Tag
	}{
		{"exact", mib, 1, mib, true, 0, "", 2},
		{"just below twice", 2*mib - 1, 1, mib, true, 0, "", 2},
		{"twice, other tag", 2 * mib, 1, mib, false, wire.MissTooWasteful, "", 2},
		{"ten times, same tag", 10 * mib, 1, mib, true, 0, "", 1},
		{"small blocks serve all", 4095, 1, 1, true, 0, "", 2},
		{"min_block moves that bound", 4095, 1, 1, false, wire.MissTooWasteful, "min_block=64", 2},
		{"too small", mib - 1, 1, mib, false, wire.MissTooSmall, "", 2},
		{"a wider ratio", 3 * mib, 1, mib, true, 0, "max_waste_ratio=4", 2},
		{"ratio 1 is exact fit", mib, 1, mib, true, 0, "max_waste_ratio=1", 2},
	} {
		t.Run(c.name, func(t *testing.T) {
			d := newDriver(t, "futhark", c.limits)
			d.free(d.alloc(c.block, 1, c.blockTag).Block, false)
			plan := d.alloc(c.want, 1, c.requestTag)
			if plan.Hit != c.hit || plan.Reason != c.reason {
				t.Errorf("hit %v, reason %v", plan.Hit, plan.Reason)
			}
			d.check()
		})
	}
}

func TestFutharkRaisesTinyRequests(t *testing.T) {
	if plan := newDriver(t, "futhark", "").alloc(1, 1, 1); plan.Size != 4 {
		t.Errorf("a request of 1 got %d bytes, want sizeof(int)", plan.Size)
	}
}

func TestPow2Rounding(t *testing.T) {
	for _, c := range []struct{ size, limit, want uint64 }{
		{1, 0, 4}, {4, 0, 4}, {5, 0, 8}, {1100 * 1024, 0, 2 << 20}, {1 << 20, 0, 1 << 20},
		{600, 1000, 1000}, {1000, 1000, 1000}, {500, 1000, 512},
	} {
		p, err := New("pow2", nil)
		if err != nil {
			t.Fatal(err)
		}
		plan, _ := p.Plan(Request{Size: c.size, Max: c.limit, Class: 1}, nil)
		if plan.Size != c.want {
			t.Errorf("%d (largest %d) rounds to %d, want %d", c.size, c.limit, plan.Size, c.want)
		}
	}
}

// TestHitRate is seed 003's example of a pool in its steady state.
func TestHitRate(t *testing.T) {
	s := Stats{Hits: 8432, Misses: 12}
	if got := s.HitRate(); got < 0.99857 || got > 0.99858 {
		t.Errorf("hit rate %v, want 99.86 %%", got)
	}
	if got := (&Stats{}).HitRate(); got != 0 {
		t.Errorf("hit rate %v before the first request", got)
	}
}

func TestUnknownPolicyNamesAll(t *testing.T) {
	_, err := New("best", nil)
	for _, name := range Names() {
		if err == nil || !strings.Contains(err.Error(), name) {
			t.Errorf("error %v does not name %s", err, name)
		}
		if d, ok := Describe(name); !ok || d.Summary == "" || d.Source == "" {
			t.Errorf("%s is not described", name)
		}
	}
}

func FuzzParseSettings(f *testing.F) {
	for _, s := range []string{"", "a=1", "a=1,b=2.5", "a", "=1", "a=nan", "a=1,", "a=1e400"} {
		f.Add(s)
	}
	f.Fuzz(func(t *testing.T, text string) {
		settings, err := ParseSettings(text)
		if err != nil && settings != nil {
			t.Fatal("settings and an error")
		}
		if err == nil && text != "" && len(settings) != strings.Count(text, ",")+1 {
			t.Fatalf("%q gave %v", text, settings)
		}
	})
}
