package allocator

import (
	"fmt"
	"math"
	"testing"

	"codeberg.org/gpumemtop/gpumemtop/internal/wire"
)

// TestFutharkAcceptance is what today's runtime takes: it is best fit among blocks that are small, of the same call
// site, or not too wasteful.
func TestFutharkAcceptance(t *testing.T) {
	for _, c := range []struct {
		name       string
		block      uint64
		want       uint64
		hit        bool
		reason     wire.Miss
		limits     string
		requestTag Tag
	}{
		{"exact", mib, mib, true, 0, "", 2},
		{"just below twice", 2*mib - 1, mib, true, 0, "", 2},
		{"twice, other tag", 2 * mib, mib, false, wire.MissTooWasteful, "", 2},
		{"ten times, same tag", 10 * mib, mib, true, 0, "", 1},
		{"4095 bytes serve all", 4095, 1, true, 0, "", 2},
		{"4096 bytes do not", 4096, 1, false, wire.MissTooWasteful, "", 2},
		{"4096 bytes are twice 2048", 4096, 2048, false, wire.MissTooWasteful, "", 2},
		{"and less than twice 2049", 4096, 2049, true, 0, "", 2},
		{"min_block moves that bound", 4095, 1, false, wire.MissTooWasteful, "min_block=64", 2},
		{"too small", mib - 1, mib, false, wire.MissTooSmall, "", 2},
		{"too small, same tag", mib - 1, mib, false, wire.MissTooSmall, "", 1},
		{"a wider ratio", 3 * mib, mib, true, 0, "max_waste_ratio=4", 2},
		{"ratio 1 is exact fit", mib, mib, true, 0, "max_waste_ratio=1", 2},
		{"ratio 1 is nothing else", mib + 1, mib, false, wire.MissTooWasteful, "max_waste_ratio=1", 2},
		{"no stealing", mib, mib, false, wire.MissTooWasteful, "steal_other_tag=off", 2},
		{"no stealing, same tag", 10 * mib, mib, true, 0, "steal_other_tag=off", 1},
	} {
		t.Run(c.name, func(t *testing.T) {
			d := newDriver(t, "futhark", c.limits)
			d.free(d.alloc(c.block, 1, 1).Block, false)
			decision := d.alloc(c.want, 1, c.requestTag)
			if decision.Hit != c.hit || decision.Reason != c.reason {
				t.Errorf("hit %v, reason %v", decision.Hit, decision.Reason)
			}
			d.check()
		})
	}
}

func TestFutharkTakesTheSmallestAcceptable(t *testing.T) {
	d := newDriver(t, "futhark", "")
	var blocks []Block
	for i, size := range []uint64{1900, 1500, 900, 1500, 1700} {
		blocks = append(blocks, d.alloc(size*1024, 1, Tag(i)).Block)
	}
	for _, b := range blocks {
		d.free(b, false)
	}
	for _, want := range []int{3, 1, 4, 0} { // of equal ones the latest
		if decision := d.alloc(mib, 1, 9); decision.Block != blocks[want] {
			t.Errorf("block %x, want %x", decision.Block, blocks[want])
		}
	}
}

// TestFuthark2018Acceptance is seed 000's opencl_alloc: min_size <= size <= min_size*2, and what is not just right is
// released.
func TestFuthark2018Acceptance(t *testing.T) {
	for _, c := range []struct {
		name      string
		block     uint64
		want      uint64
		tag       Tag
		hit       bool
		evictions int
		limits    string
	}{
		{"as large", 100, 100, 1, true, 0, ""},
		{"twice as large", 200, 100, 1, true, 0, ""},
		{"one byte more", 201, 100, 1, false, 1, ""},
		{"one byte less", 99, 100, 1, false, 1, ""},
		{"another label", 100, 100, 2, false, 0, ""},
		{"another label's, stolen", 200, 100, 2, true, 0, "steal_other_tag=on"},
		{"another label's, too large to steal", 201, 100, 2, false, 0, "steal_other_tag=on"},
		{"less than sizeof(int)", 4, 1, 1, true, 0, ""},
		{"at most twice sizeof(int)", 8, 1, 1, true, 0, ""},
		{"more than that", 9, 1, 1, false, 1, ""},
		{"three times", 300, 100, 1, true, 0, "max_waste_ratio=3"},
	} {
		t.Run(c.name, func(t *testing.T) {
			d := newDriver(t, "futhark-2018", c.limits)
			block := d.alloc(c.block, 1, 1).Block
			d.free(block, false)
			decision, evicted := d.policy.Decide(d.request(c.want, 1, c.tag), nil)
			if decision.Hit != c.hit || len(evicted) != c.evictions || !decision.Hit && decision.Size != max(c.want, 4) {
				t.Errorf("%+v, evicted %v", decision, evicted)
			}
			for _, e := range evicted {
				if e.Block != block || e.Reason != wire.EvictMisfit {
					t.Errorf("evicted %v", e)
				}
			}
		})
	}
}

// TestFuthark2018KeepsOneBlockForEachLabel is seed 000's opencl_free: the old block goes, the new one stays.
func TestFuthark2018KeepsOneBlockForEachLabel(t *testing.T) {
	d := newDriver(t, "futhark-2018", "")
	first, second, other := d.alloc(100, 1, 1), d.alloc(120, 1, 1), d.alloc(100, 1, 2)
	d.free(first.Block, false)
	d.free(other.Block, false)
	evicted := d.free(second.Block, false)
	if len(evicted) != 1 || evicted[0].Block != first.Block || evicted[0].Reason != wire.EvictTagCap {
		t.Errorf("evicted %v, want the block that the label had", evicted)
	}
	if decision := d.alloc(100, 1, 1); decision.Block != second.Block {
		t.Errorf("%+v, want the block freed last", decision)
	}
	d.check()
}

// TestFuthark2018StealsBeforeItCreates even when its own label has a block of the wrong size.
func TestFuthark2018StealsBeforeItCreates(t *testing.T) {
	d := newDriver(t, "futhark-2018", "steal_other_tag=on")
	misfit, other := d.alloc(1000, 1, 1), d.alloc(100, 1, 2)
	d.free(misfit.Block, false)
	d.free(other.Block, false)
	if decision := d.alloc(100, 1, 1); decision.Block != other.Block {
		t.Errorf("%+v, want another label's block", decision)
	}
	d.check()
}

func TestFutharkRaisesTinyRequests(t *testing.T) {
	for _, name := range []string{"futhark", "futhark-2018"} {
		if decision := newDriver(t, name, "").alloc(1, 1, 1); decision.Size != 4 {
			t.Errorf("%s: a request of 1 got %d bytes, want sizeof(int)", name, decision.Size)
		}
	}
}

func TestRounding(t *testing.T) {
	for _, c := range []struct {
		policy, limits    string
		size, limit, want uint64
	}{
		{"none", "", 1000, 0, 1000},
		{"pow2", "", 1, 0, 4}, {"pow2", "", 4, 0, 4}, {"pow2", "", 5, 0, 8}, {"pow2", "", mib, 0, mib},
		{"pow2", "", 1153434, 0, 2 * mib}, // seed 003: a 1.1 MiB tensor consumes a 2 MiB bucket
		{"pow2", "", 600, 1000, 1000}, {"pow2", "", 1000, 1000, 1000}, {"pow2", "", 500, 1000, 512},
		{"pow2", "", 1001, 1000, 1001}, // the driver refuses it, not the pool
		{"pow2", "min_block=100", 3, 0, 128},
		{"pow2", "", 1<<63 + 1, 0, 1<<64 - 1},
		{"pinned", "", 600, 0, 1024},
		{"buckets", "", 1, 0, 1024}, {"buckets", "", 1024, 0, 1024}, {"buckets", "", 1025, 0, 4096},
		{"buckets", "", 40_000_000, 0, 67_108_864}, // seed 003
		{"buckets", "", 256 * mib, 0, 256 * mib}, {"buckets", "", 256*mib + 1, 0, 512 * mib}, {"buckets", "", 3 << 30, 0, 4 << 30},
		{"buckets", "bucket_sizes=100:5000", 101, 0, 5000}, {"buckets", "bucket_sizes=100:5000", 5001, 0, 8192},
		{"buckets", "min_block=2000", 1, 0, 4096}, {"buckets", "", 300 * mib, 400 * mib, 400 * mib},
		{"mantissa", "", 16_777_216, 0, 17_825_791}, {"mantissa", "", 17_825_791, 0, 17_825_791},
		{"mantissa", "", 17_825_792, 0, 18_874_367}, {"mantissa", "mantissa_bits=2", 16_777_216, 0, 20_971_519},
		{"mantissa", "mantissa_bits=0", 16_777_216, 0, 33_554_431}, {"mantissa", "", 31, 0, 31}, {"mantissa", "", 32, 0, 33},
		{"mantissa", "", 1<<64 - 1, 0, 1<<64 - 1}, {"mantissa", "", 1, 0, 1},
	} {
		d := newDriver(t, c.policy, c.limits)
		req := d.request(c.size, 1, 1)
		req.Max = c.limit
		if decision, _ := d.policy.Decide(req, nil); decision.Size != c.want {
			t.Errorf("%s %s: %d (largest %d) rounds to %d, want %d", c.policy, c.limits, c.size, c.limit, decision.Size, c.want)
		}
	}
}

// TestMantissaWaste sweeps PyOpenCL's bins: what a block has too much is less than 1/(2^m + 1) of it, and bins follow
// each other without a gap.
func TestMantissaWaste(t *testing.T) {
	for _, c := range []struct {
		bits  uint
		bound float64
	}{{4, 1.0 / 17}, {2, 1.0 / 5}, {0, 1.0 / 2}} {
		l := limits{mantissaBits: c.bits}
		worst, last := 0.0, uint64(65535)
		for last < 64*mib {
			largest := mantissa.round(last+1, &l)
			if top := mantissa.round(largest, &l); top != largest || largest <= last {
				t.Fatalf("m = %d: %d rounds to %d", c.bits, largest, top)
			}
			worst = max(worst, 1-float64(last+1)/float64(largest))
			last = largest
		}
		if worst > c.bound || worst < 0.99*c.bound {
			t.Errorf("m = %d: up to %.4f is wasted, want just below %.4f", c.bits, worst, c.bound)
		}
	}
}

// TestPersistentPoolOf003 has 17 blocks of one size come back: 16 may wait. Then blocks up to 4 GiB.
func TestPersistentPoolOf003(t *testing.T) {
	d := newDriver(t, "buckets", "")
	var blocks []Block
	for range 17 {
		blocks = append(blocks, d.alloc(256*mib, 1, 1).Block)
	}
	large := d.alloc(512*mib, 1, 1).Block
	for i, b := range blocks {
		evicted := d.free(b, false)
		if i < 16 && len(evicted) != 0 || i == 16 && (len(evicted) != 1 || evicted[0].Block != b) {
			t.Errorf("block %d: evicted %v", i, evicted)
		}
	}
	// 16 × 256 MiB are 4 GiB: a newly released buffer is not added to the free list.
	if evicted := d.free(large, false); len(evicted) != 1 || evicted[0].Block != large || evicted[0].Reason != wire.EvictLimit {
		t.Errorf("over 4 GiB: evicted %v", evicted)
	}
	d.check()
}

// stranded returns which share of the cached bytes a policy would refuse for a request. It leaves nothing behind but
// another order.
func stranded(d *driver, size uint64, tag Tag) float64 {
	before := d.policy.Stats().BytesCached
	var decisions []Decision
	for {
		decision := d.decide(size, 1, tag)
		decisions = append(decisions, decision)
		if !decision.Hit {
			break
		}
	}
	left := d.policy.Stats().BytesCached
	for _, decision := range decisions {
		d.policy.Abort(decision)
	}
	return float64(left) / float64(before)
}

// TestFragmentation is the example of METRICS: free {256, 256, 256}.
func TestFragmentation(t *testing.T) {
	d := newDriver(t, "futhark", "proportion=0")
	var blocks []Block
	for i := range 3 {
		blocks = append(blocks, d.alloc(256*mib, 1, Tag(i)).Block)
	}
	for _, b := range blocks {
		d.free(b, false)
	}
	s := d.policy.Stats()
	for name, c := range map[string]struct{ got, want float64 }{
		"external":                  {1 - float64(s.Largest)/float64(s.BytesCached), 0.667},
		"quadratic":                 {QuadraticFragmentation(s.Squares, s.BytesCached), 0.667},
		"root":                      {RootFragmentation(s.Squares, s.BytesCached), 0.423},
		"stranded(512)":             {stranded(d, 512*mib, 9), 1},
		"stranded(256)":             {stranded(d, 256*mib, 9), 0},
		"stranded(128)":             {stranded(d, 128*mib, 9), 1}, // twice the request is too wasteful
		"stranded(128) of one site": {stranded(d, 128*mib, 1), 0.667},
	} {
		if math.Abs(c.got-c.want) > 0.0005 {
			t.Errorf("%s is %.4f, want %.3f", name, c.got, c.want)
		}
	}
	if QuadraticFragmentation(0, 0) != 0 || RootFragmentation(0, 0) != 0 {
		t.Error("nothing is free, and something is fragmented")
	}
}

// wasteOfAll returns what a policy with one size per bucket wastes of sizes in a range, each requested once: the mean
// share of a block, the share of all bytes, and the largest share of a block.
func wasteOfAll(r bucketed, l *limits, from, to uint64) (mean, all, worst float64) {
	granted := 0.0
	for size := from; size <= to; {
		largest := r.round(size, l)
		last := min(largest, to)
		n, most := float64(last-size+1), float64(largest-size)
		wasted := n * (most + float64(largest-last)) / 2 // from size to last
		all += wasted
		granted += n * float64(largest)
		mean += wasted / float64(largest)
		worst = max(worst, most/float64(largest))
		size = last + 1
	}
	return mean / float64(to-from+1), all / granted, worst
}

// TestWasteOfRounding: of sizes between 64 KiB and 64 MiB mantissa wastes 2.0 to 2.1 % with 4 bits and 7.7 to 7.9 %
// with 2, as one takes the mean. A block of pow2 may be half waste, one of buckets, which lie four times apart, up to
// three quarters; seed 003 does not say so.
func TestWasteOfRounding(t *testing.T) {
	l := limits{bucketSizes: findPolicy("buckets").defaultLimits().bucketSizes}
	four, two := limits{mantissaBits: 4}, limits{mantissaBits: 2}
	for _, c := range []struct {
		name   string
		rule   bucketed
		limits *limits
		from   uint64
		want   string
	}{
		{"mantissa of 4", mantissa, &four, 64 << 10, "2.1 2.0 5.88 %"},
		{"mantissa of 2", mantissa, &two, 64 << 10, "7.9 7.7 20.00 %"},
		{"pow2", pow2, &l, 64<<10 + 1, "25.0 25.0 50.00 %"},
		{"buckets", listed, &l, 64<<10 + 1, "37.5 37.5 75.00 %"},
	} {
		mean, all, worst := wasteOfAll(c.rule, c.limits, c.from, 64*mib)
		if got := fmt.Sprintf("%.1f %.1f %.2f %%", 100*mean, 100*all, 100*worst); got != c.want {
			t.Errorf("%s wastes %s, want %s", c.name, got, c.want)
		}
	}
	// The same through a policy: one byte above a bucket.
	for policy, want := range map[string]float64{"pow2": 0.5, "buckets": 0.75} {
		d := newDriver(t, policy, "")
		d.alloc(16*mib+1, 1, 1)
		s := d.policy.Stats()
		if waste := 1 - float64(s.BytesWanted)/float64(s.BytesInUse); waste > want || waste < want-1e-6 {
			t.Errorf("%s: %.7f is wasted, want just below %v", policy, waste, want)
		}
	}
}
