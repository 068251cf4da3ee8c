package stats

import (
	"math/bits"

	"codeberg.org/gpumemtop/gpumemtop/internal/heap"
	"codeberg.org/gpumemtop/gpumemtop/internal/wire"
)

// Touches estimate the time that hits saved because their memory had been touched before.
type Touches struct {
	NS     uint64 `json:"ns"`
	Hits   uint64 `json:"hits"`          // that the estimate covers; 0: nothing is known
	Fresh  uint64 `json:"timed_new"`     // first writes to new blocks that were timed in this run
	Reused uint64 `json:"timed_reused"`  // the same to reused blocks
	Device string `json:"probed_device"` // whose probe gave the estimate; empty: this run did
}

// touches times the first command on a block, if that is a blocking write of the whole block. Other commands have no time of
// their own.
type touches struct{ fresh, reused timings }

// noteUse takes a USE before the heap does. A first touch takes longer in memory that is new to the process than in memory that the driver
// got back, which it would hand out without a pool. So only as many new blocks count as the driver has released before.
func (t *touches) noteUse(p *heap.Process, u wire.UseView, released *timings) {
	if u.Command() != wire.CommandWrite || u.Duration() == 0 {
		return
	}
	o := p.Object(u.Object())
	if o == nil || o.Used != 0 || o.CarriedOver || o.SubAllocation || u.Bytes() < o.Size {
		return
	}
	switch o.Outcome {
	case wire.OutcomeMiss:
		if class := bits.Len64(o.Granted); t.fresh[class].timedCalls() < released[class].timedCalls() {
			t.fresh.addCall(o.Granted, u.Duration())
		}
	case wire.OutcomeHit:
		t.reused.addCall(o.Granted, u.Duration())
	default: // memory that no pool serves
	}
}

// estimateSaved returns the estimate for hits by size class. It leaves out classes with too few timed writes to new or to reused blocks,
// and those where the quarter of new blocks that took least took no longer than the quarter of reused ones that took most. For new blocks
// it takes the lower median and for reused blocks the upper, so that the estimate is at most hits × the longest first write.
func (t *touches) estimateSaved(hits *[65]uint64) (out Touches) {
	for class := range hits {
		fresh, reused := t.fresh[class], t.reused[class]
		out.Fresh, out.Reused = out.Fresh+fresh.timedCalls(), out.Reused+reused.timedCalls()
		if hits[class] == 0 || fresh.timedCalls() < enoughServed || reused.timedCalls() < enoughServed {
			continue
		}
		least, _ := fresh.boundsOfMiddle(quartile)
		if _, most := reused.boundsOfMiddle(quartile); least <= most {
			continue
		}
		low, _ := fresh.boundsOfMiddle(median)
		_, high := reused.boundsOfMiddle(median)
		out.NS += hits[class] * uint64(low-min(low, high))
		out.Hits += hits[class]
	}
	return out
}

// SavedTouchesByProbe is the estimate with the times that the probe of a device measured: ns returns how long the device takes to
// touch new memory of a size. Sizes count as the power of two below them.
func (s *Snapshot) SavedTouchesByProbe(device string, ns func(size uint64) float64) Touches {
	out := Touches{Device: device}
	for i := range s.Buckets {
		b := &s.Buckets[i]
		out.NS += uint64(float64(b.Hits) * ns(b.Smallest))
		out.Hits += b.Hits
	}
	return out
}

// SavedCallsByProbe is the same for driver calls: ns returns how long the device takes to create and release a block of a size. What the pool
// took is of this run.
func (s *Snapshot) SavedCallsByProbe(device string, ns func(size uint64) float64) SavedCalls {
	out := SavedCalls{Pool: s.Totals.Saved.Pool, Releases: true, Device: device}
	var driver uint64
	for i := range s.Buckets {
		driver += uint64(float64(s.Buckets[i].Hits) * ns(s.Buckets[i].Smallest))
	}
	out.NS = driver - min(driver, out.Pool)
	return out
}
