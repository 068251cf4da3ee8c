package tune

import (
	"context"
	"sync"
	"sync/atomic"

	"codeberg.org/gpumemtop/gpumemtop/internal/cost"
	"codeberg.org/gpumemtop/gpumemtop/internal/replay"
)

// field is what configurations are tried on.
type field struct {
	tapes   []*replay.Loaded
	devices []cost.Device // of each tape
	workers int
}

// try plays every tape through each configuration and returns how they did, in order: nil for those that the context
// left no time for, and those that cannot be. done is called after each, one at a time.
func (f *field) try(ctx context.Context, list []replay.Configuration, done func()) []*Point {
	points := make([]*Point, len(list))
	var next atomic.Int64
	var one sync.Mutex
	var all sync.WaitGroup
	for range min(f.workers, len(list)) {
		all.Go(func() {
			for ctx.Err() == nil {
				i := int(next.Add(1)) - 1
				if i >= len(list) {
					return
				}
				points[i] = f.play(ctx, list[i])
				one.Lock()
				done()
				one.Unlock()
			}
		})
	}
	all.Wait()
	return points
}

// play plays every tape through one configuration. Its error is one of the context, or of limits that contradict each
// other once the recording has changed some: such a configuration is none.
func (f *field) play(ctx context.Context, c replay.Configuration) *Point {
	p := &Point{Configuration: c}
	for i, tape := range f.tapes {
		o := c.HeldOptions()
		o.Device = f.devices[i]
		r, err := tape.RunContext(ctx, o)
		if err != nil {
			return nil
		}
		p.On = append(p.On, Score{
			DriverNS: r.DriverNS, PeakReserved: r.PeakReserved, Hits: r.Hits, Requests: r.Hits + r.Misses, DriverCreates: r.DriverCreates,
		})
	}
	p.Score = total(p.On)
	return p
}

// total puts scores together.
func total(scores []Score) (sum Score) {
	for i := range scores {
		s := &scores[i]
		sum.DriverNS += s.DriverNS
		sum.PeakReserved = max(sum.PeakReserved, s.PeakReserved)
		sum.Hits += s.Hits
		sum.Requests += s.Requests
		sum.DriverCreates += s.DriverCreates
	}
	return sum
}
