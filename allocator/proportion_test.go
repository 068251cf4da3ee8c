package allocator

import (
	"math/rand/v2"
	"testing"

	"codeberg.org/gpumemtop/gpumemtop/internal/wire"
)

// clocked is a driver whose program waits between its calls.
type clocked struct {
	*driver
	peak, reserved, served, hits uint64
	reasons                      map[wire.Evict]int
	latest                       []Eviction // of the last call
}

func newClocked(t testing.TB, policy, limits string) *clocked {
	t.Helper()
	return &clocked{driver: newDriver(t, policy, limits), reasons: map[wire.Evict]int{}}
}

func (c *clocked) sleep(seconds float64) { c.now += int64(seconds * second) }

// note counts evictions, which are few.
func (c *clocked) note(out []Eviction) {
	c.t.Helper()
	for _, e := range out {
		c.reasons[e.Reason]++
	}
	if len(out) > requestGives {
		c.t.Errorf("%d blocks went at once: %v", len(out), out)
	}
	c.latest = out
}

func (c *clocked) create(size uint64, tag Tag) Block {
	c.t.Helper()
	decision, out := c.policy.Decide(c.request(size, 1, tag), nil)
	c.release(out)
	c.note(out)
	c.commit(decision, 1)
	c.served++
	if decision.Hit {
		c.hits++
	}
	s := c.policy.Stats()
	c.peak, c.reserved = max(c.peak, s.BytesInUse), max(c.reserved, s.ReservedBytes())
	return decision.Block
}

func (c *clocked) give(b Block) {
	c.t.Helper()
	c.note(c.free(b, false))
}

// temporary creates and releases a buffer.
func (c *clocked) temporary(size uint64, tag Tag) { c.give(c.create(size, tag)) }

// bounded fails where more is reserved than the default allows.
func (c *clocked) bounded() {
	c.t.Helper()
	if s := c.policy.Stats(); float64(s.ReservedBytes()) > 1.5*float64(c.peak)+smallPool {
		c.t.Fatalf("%d MiB reserved, the peak is %d", s.ReservedBytes()/mib, c.peak/mib)
	}
}

// TestScratchThatGrows is a buffer that a larger one replaces, in steps of 16 MiB: nothing of the smaller ones stays.
func TestScratchThatGrows(t *testing.T) {
	for _, sites := range []int{1, 16} { // of one call site they are outgrown; of many they are too much
		c := newClocked(t, "futhark", "")
		for round := range 36 {
			c.temporary(min(uint64(round+1), 16)*16*mib, Tag(1+round%sites))
			c.bounded()
		}
		if want := uint64(416 * mib); c.reserved > want || sites == 1 && c.reserved > 256*mib || c.hits < 20 {
			t.Errorf("%d sites: %d MiB reserved, %d hits, %v", sites, c.reserved/mib, c.hits, c.reasons)
		}
		off := newClocked(t, "futhark", "proportion=0,outgrown=off")
		for round := range 36 {
			off.temporary(min(uint64(round+1), 16)*16*mib, Tag(1+round%sites))
		}
		if off.reserved != 16*17/2*16*mib || off.hits > c.hits {
			t.Errorf("without the rules %d MiB reserved, %d hits, with them %d", off.reserved/mib, off.hits, c.hits)
		}
	}
}

// TestSweepThatComesBack asks for the same sizes in each iteration, from the smallest to the largest, some of them at
// once: all of them are hits after the first iterations.
func TestSweepThatComesBack(t *testing.T) {
	for _, ratio := range []string{"2", "1"} {
		c := newClocked(t, "futhark", "max_waste_ratio="+ratio)
		var hits, served uint64
		for iteration := range 20 {
			if iteration == 4 {
				hits, served = c.hits, c.served
			}
			for step := range uint64(12) {
				other := c.create((step+1)*200_000, 2)
				c.temporary((step+1)*100_000, 1)
				c.give(other)
			}
		}
		if c.hits-hits != c.served-served {
			t.Errorf("ratio %s: %d hits of %d, %v", ratio, c.hits-hits, c.served-served, c.reasons)
		}
	}
}

// TestVectorThatDoubles copies each buffer into one twice as large, and then uses the last one for long.
func TestVectorThatDoubles(t *testing.T) {
	c := newClocked(t, "futhark", "")
	last := c.create(16<<10, 1)
	for size := uint64(32 << 10); size <= 256*mib; size *= 2 {
		larger := c.create(size, 1)
		c.give(last)
		last = larger
		c.bounded()
	}
	if c.reserved > 384*mib {
		t.Errorf("%d MiB reserved, 384 are needed", c.reserved/mib)
	}
	if c.sleep(11); c.policy.Stats().BytesCached != 128*mib {
		t.Errorf("%+v: the former buffer waits", c.policy.Stats())
	}
	c.temporary(4<<10, 2)
	if s := c.policy.Stats(); s.ReservedBytes() != 256*mib+4<<10 || c.reasons[wire.EvictAge] != 1 {
		t.Errorf("after ten seconds %d MiB reserved, %v", s.ReservedBytes()/mib, c.reasons)
	}
}

// TestTwoPhases has sizes that have nothing in common: what the first phase held goes when its peak is a minute ago,
// though the second one takes long to begin.
func TestTwoPhases(t *testing.T) {
	c := newClocked(t, "futhark", "max_age=0")
	phase := func(rounds int, base uint64) {
		for range rounds {
			var held []Block
			for i := range 8 {
				held = append(held, c.create(base+uint64(i)*base/8, Tag(base+uint64(i))))
			}
			for _, b := range held {
				c.give(b)
			}
			c.sleep(0.1)
		}
	}
	phase(50, 40*mib)
	most := c.policy.Stats().BytesCached // all of it
	phase(550, mib)
	if s := c.policy.Stats(); s.ReservedBytes() != most+8*mib+8*7/2*mib/8 {
		t.Errorf("%d MiB reserved before the peak is a minute old", s.ReservedBytes()/mib)
	}
	c.peak = 12 * mib
	c.sleep(10)
	phase(1, mib)
	if c.bounded(); c.reasons[wire.EvictProportion] == 0 || c.reasons[wire.EvictAge] != 0 {
		t.Errorf("%v", c.reasons)
	}
	if hits := c.hits; c.served-hits > 16 {
		t.Errorf("%d misses, want one for each buffer of a phase", c.served-hits)
	}
}

// TestOldBlocksGoSmoothly: ten seconds after the last request for them, a few with each call, the oldest first.
func TestOldBlocksGoSmoothly(t *testing.T) {
	c := newClocked(t, "futhark", "")
	var held []Block
	for i := range 40 {
		held = append(held, c.create(10_000+uint64(i), Tag(i)))
	}
	for _, b := range held {
		c.give(b)
	}
	c.sleep(9.9)
	if c.temporary(10_000, 0); len(c.reasons) != 0 || c.hits != 1 {
		t.Fatalf("%v before ten seconds, %d hits", c.reasons, c.hits)
	}
	c.sleep(0.2)
	for call := range 10 {
		b := c.create(10_000, 0)
		for i, e := range c.latest {
			if e.Reason != wire.EvictAge || e.Block != held[1+4*call+i] {
				t.Errorf("call %d: evicted %v, want the oldest: %x", call, c.latest, held[1+4*call])
			}
		}
		c.give(b)
	}
	if s := c.policy.Stats(); s.BytesCached < 10_000 || s.Blocks != 1 || c.reasons[wire.EvictAge] != 39 {
		t.Errorf("%+v, %v: want all but the block that serves gone", s, c.reasons)
	}
}

// TestIdleProgram makes no calls: looks between them take more at once, and no more than are too old.
func TestIdleProgram(t *testing.T) {
	c := newClocked(t, "futhark", "")
	var held []Block
	for i := range 50 {
		held = append(held, c.create(10_000, Tag(i)))
	}
	for _, b := range held {
		c.give(b)
	}
	freed := c.now
	out, next := c.policy.Expire(freed+5*second, nil)
	if len(out) != 0 || next < freed+10*second-100 || next > freed+10*second {
		t.Errorf("evicted %v, next at %d, released at %d", out, next, freed)
	}
	for _, want := range []int{32, 18, 0} {
		if out, next = c.policy.Expire(freed+10*second, nil); len(out) != want || want == 32 && next > freed+10*second {
			t.Errorf("%d went, want %d; next at %d", len(out), want, next)
		}
		c.release(out)
	}
	c.check()
}

// TestProportionHolds plays programs whose peaks come and go: within 100 requests after a peak left the window, and with
// each request that raises what is held, the bound holds.
func TestProportionHolds(t *testing.T) {
	for seed := range uint64(30) {
		rng := rand.New(rand.NewPCG(seed, 7))
		c := newClocked(t, "futhark", "")
		var live []Block
		var inUse []uint64 // after each request
		var times []int64
		over := 0
		scale := uint64(mib)
		for range 3000 {
			switch rng.IntN(40) {
			case 0:
				scale = uint64(mib) >> rng.IntN(8) << rng.IntN(5)
			case 1:
				c.sleep(float64(rng.IntN(40)))
			}
			if rng.IntN(2) == 0 && len(live) > 0 {
				i := rng.IntN(len(live))
				c.give(live[i])
				live[i] = live[len(live)-1]
				live = live[:len(live)-1]
			} else if len(live) < 30 {
				live = append(live, c.create(1+rng.Uint64N(4*scale), Tag(rng.IntN(50))))
			}
			s := c.policy.Stats()
			inUse, times = append(inUse, s.BytesInUse), append(times, c.now)
			peak := uint64(0)
			for i := len(times) - 1; i >= 0 && c.now-times[i] <= 60*second; i-- {
				peak = max(peak, inUse[i])
			}
			if over++; float64(s.ReservedBytes()) <= 1.5*float64(peak)+smallPool {
				over = 0
			}
			if over > 100 {
				t.Fatalf("seed %d: %d MiB reserved, the peak is %d, for %d requests", seed, s.ReservedBytes()/mib, peak/mib, over)
			}
		}
		c.check()
	}
}

// TestOutgrownRemembersSizes: a size that came back stays, also after it was given up once.
func TestOutgrownRemembersSizes(t *testing.T) {
	c := newClocked(t, "futhark", "max_waste_ratio=1,steal_other_tag=off")
	grow := func() {
		for i := range uint64(3) {
			c.temporary((i+1)*10_000, 1)
		}
	}
	grow()
	if c.reasons[wire.EvictOutgrown] != 2 || c.policy.Stats().Blocks != 1 {
		t.Fatalf("%v, %+v", c.reasons, c.policy.Stats())
	}
	// Smaller ones of another site do not count, nor do those of a site that has a larger one.
	c.temporary(40_000, 2)
	c.temporary(25_000, 1)
	if c.reasons[wire.EvictOutgrown] != 2 {
		t.Fatalf("%v", c.reasons)
	}
	c.release(c.policy.Trim(0, nil))
	grow() // each size was given up, and is asked for again
	if c.reasons[wire.EvictOutgrown] != 2 || c.policy.Stats().Blocks != 3 {
		t.Errorf("%v, %+v: sizes that came back went again", c.reasons, c.policy.Stats())
	}
}

// TestRoomUntilDue: what comes back before the pool is due evicts nothing.
func TestRoomUntilDue(t *testing.T) {
	c := newClocked(t, "futhark", "")
	first, second := c.create(mib, 1), c.create(mib, 2)
	c.give(first)
	due := c.policy.NextExpiry()
	if want := c.now + 10*1e9; due != want || c.policy.FreeableBytes() == 0 {
		t.Fatalf("due at %d, want %d; room for %d", due, want, c.policy.FreeableBytes())
	}
	c.now = due - 2
	if c.give(second); len(c.reasons) != 0 || c.policy.NextExpiry() != due {
		t.Errorf("%v, due at %d", c.reasons, c.policy.NextExpiry())
	}
	c.now = due
	if c.temporary(4096, 3); c.reasons[wire.EvictAge] != 1 || c.policy.NextExpiry() <= due {
		t.Errorf("%v, due at %d, was due at %d", c.reasons, c.policy.NextExpiry(), due)
	}
	if never := newClocked(t, "futhark-2018", "").policy.NextExpiry(); never != 1<<63-1 {
		t.Errorf("without such limits due at %d", never)
	}
}

// TestPeaksOfAnArmThatWaits: no time passes for an arm while the other one decides.
func TestPeaksOfAnArmThatWaits(t *testing.T) {
	var w peaks
	w.beginTick(5*second+7, 100)
	w.beginTick(7*second, 30)
	w.shiftTimes(90 * second)
	for _, c := range []struct {
		at   int64
		want uint64
	}{{98, 100}, {155, 100}, {156, 30}, {157, 30}, {158, 0}} {
		if got := w.highestBytesAt(c.at*second + second/2); got != c.want {
			t.Errorf("at %d s: %d, want %d", c.at, got, c.want)
		}
	}
	if w.beginTick(97*second+5, 40); w.highestBytes() != 100 || w.highestPeakEnd(97*second) != 156*second {
		t.Errorf("%+v", w)
	}
}

// TestIterationsLongerThanTheAge: what iterations of 40 seconds need stays once the pool knows how long they take, and goes
// after that.
func TestIterationsLongerThanTheAge(t *testing.T) {
	for _, known := range []bool{false, true} {
		c := newClocked(t, "futhark", "")
		iteration := func() {
			first, second := c.create(100*mib, 1), c.create(100*mib, 2)
			c.sleep(1)
			c.give(first)
			c.give(second)
			c.sleep(39)
			c.temporary(4096, 3)
			c.sleep(45) // together longer than a minute: the peak is forgotten
		}
		if known {
			c.policy.SetIterationTime(85 * second)
		}
		iteration()
		hits := c.hits
		for range 5 {
			iteration()
		}
		if got := c.hits - hits; (got == 15) != known || !known && got > 0 {
			t.Errorf("known %v: %d hits, %v", known, got, c.reasons)
		}
		c.policy.SetIterationTime(0)
		c.sleep(62)
		for range 4 {
			c.temporary(4096, 3)
		}
		if s := c.policy.Stats(); s.BytesCached > 1*mib {
			t.Errorf("known %v: %d MiB stay", known, s.BytesCached/mib)
		}
	}
}

// TestPeaksOfAnyWindow: a window that changes forgets no peak that it still has to know, and knows none for more than two
// ticks longer.
func TestPeaksOfAnyWindow(t *testing.T) {
	type at struct {
		time  int64
		bytes uint64
	}
	rng := rand.New(rand.NewPCG(7, 7))
	var w peaks
	var all []at
	now, window, widest, changed := int64(0), int64(60*second), int64(60*second), int64(0)
	for range 50_000 {
		now += rng.Int64N(3 * second)
		if rng.IntN(500) == 0 {
			window, changed = 60*second*(1+rng.Int64N(10)), now
			w.setWindow(window)
			widest = max(widest, window)
		}
		bytes := uint64(rng.ExpFloat64() * 1000)
		if now >= w.until {
			w.beginTick(now, bytes)
		}
		w.raisePeak(bytes)
		all = append(all, at{now, bytes})
		for all[0].time < now-widest-widest/10 {
			all = all[1:]
		}
		var least, most uint64
		for _, x := range all {
			if x.time >= now-min(window, max(60*second, now-changed)) {
				least = max(least, x.bytes)
			}
			if x.time >= now-widest-widest/10 {
				most = max(most, x.bytes)
			}
		}
		if got := w.highestBytes(); got < least || got > most || w.count > peaksSize {
			t.Fatalf("%d of %d to %d, %d ticks", got, least, most, w.count)
		}
	}
}
