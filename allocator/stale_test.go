package allocator

import (
	"testing"

	"codeberg.org/gpumemtop/gpumemtop/internal/wire"
)

// TestSizesThatEnd: when a limit does away with a size, blocks of it go: those that wait at once, others when they come
// back, however that is.
func TestSizesThatEnd(t *testing.T) {
	for _, c := range []struct{ policy, limit, value string }{
		{"buckets", "bucket_sizes", "3000:5000"}, {"mantissa", "mantissa_bits", "1"},
		{"pow2", "min_block", "65536"}, {"pinned", "min_block", "65536"}, {"buckets", "min_block", "65536"},
		{"mantissa", "min_block", "65536"},
	} {
		d := newDriver(t, c.policy, "")
		waits, used, cools, hit := d.alloc(900, 1, 1), d.alloc(900, 1, 1), d.alloc(900, 1, 1), d.alloc(900, 1, 1)
		d.free(waits.Block, false)
		d.free(cools.Block, true)
		d.free(hit.Block, false)
		open := d.decide(900, 1, 1)
		if !open.Hit || open.Block != hit.Block {
			t.Fatalf("%+v: %+v, want the block freed last", c, open)
		}
		gone := func(what string, block Block, out []Eviction) {
			t.Helper()
			if len(out) != 1 || out[0].Block != block || out[0].Reason != wire.EvictLimit {
				t.Errorf("%+v, %s: evicted %v, want %x", c, what, out, block)
			}
		}
		gone("waits", waits.Block, d.set(c.limit, c.value))
		gone("used", used.Block, d.free(used.Block, false))
		d.drop(cools.Block)
		out := d.policy.CoolingEnded(cools.Block, d.now, nil)
		gone("cools", cools.Block, out)
		d.release(out)
		d.policy.Abort(open)
		out, _ = d.policy.Expire(d.now, nil)
		gone("aborted", hit.Block, out)
		d.release(out)
		d.check()
	}
}

// TestSizesThatReturn: what is as before when a block comes back was never said.
func TestSizesThatReturn(t *testing.T) {
	d := newDriver(t, "buckets", "")
	block := d.alloc(1000, 1, 1).Block
	d.set("bucket_sizes", "3000:5000")
	d.set("min_block", "2")
	d.set("bucket_sizes", netcl)
	if out := d.free(block, false); len(out) != 0 || !d.alloc(1000, 1, 1).Hit {
		t.Errorf("evicted %v, want nothing", out)
	}
	d.check()
}

// TestSizesWhereRoundingStopped are given again, whatever the buckets are.
func TestSizesWhereRoundingStopped(t *testing.T) {
	d := newDriver(t, "pow2", "")
	req := d.request(900, 1, 1)
	req.Max = 1000
	decision, _ := d.policy.Decide(req, nil)
	d.commit(decision, 1)
	d.set("min_block", "512")
	d.free(decision.Block, false)
	if out := d.set("min_block", "256"); len(out) != 0 {
		t.Errorf("evicted %v, want nothing", out)
	}
	if again, _ := d.policy.Decide(req, nil); decision.Size != 1000 || again.Block != decision.Block {
		t.Errorf("%+v, then %+v", decision, again)
	}
}
