package tune

import (
	"context"
	"sync"
	"sync/atomic"

	"codeberg.org/gpumemtop/gpumemtop/internal/cost"
	"codeberg.org/gpumemtop/gpumemtop/internal/replay"
)

// testbed is the recordings and devices on which configurations are tried.
type testbed struct {
	tapes   []*replay.Loaded // the recordings
	devices []cost.Device    // by recording
	workers int
}

// playConfigurations plays every recording through each configuration and returns the points, in order. A point is nil if the
// context ended first, or if the configuration is invalid. done is called after each, by one goroutine at a time.
func (f *testbed) playConfigurations(ctx context.Context, list []replay.Configuration, done func()) []*Point {
	points := make([]*Point, len(list))
	var next atomic.Int64
	var doneMutex sync.Mutex
	var group sync.WaitGroup
	for range min(f.workers, len(list)) {
		group.Go(func() {
			for ctx.Err() == nil {
				i := int(next.Add(1)) - 1
				if i >= len(list) {
					return
				}
				points[i] = f.playAllRecordings(ctx, list[i])
				doneMutex.Lock()
				done()
				doneMutex.Unlock()
			}
		})
	}
	group.Wait()
	return points
}

// playAllRecordings plays every recording through one configuration. It returns nil if the context ended, or if limits contradict
// each other after the recording has changed some: such a configuration is invalid.
func (f *testbed) playAllRecordings(ctx context.Context, c replay.Configuration) *Point {
	p := &Point{Configuration: c}
	for i, tape := range f.tapes {
		o := c.OptionsKeepingLimits()
		o.Device = f.devices[i]
		r, err := tape.ReplayUntilDone(ctx, o)
		if err != nil {
			return nil
		}
		score := Score{
			DriverNS: r.DriverNS, PeakReserved: r.PeakReserved, Hits: r.Hits, Requests: r.Hits + r.Misses, DriverCreates: r.DriverCreates, Unpooled: r.Unpooled,
		}
		if o.Device.PartAssumed {
			score.AssumedNS = r.PartNS
		}
		p.On = append(p.On, score)
	}
	p.Score = sumScores(p.On)
	return p
}

// sumScores sums up scores.
func sumScores(scores []Score) (sum Score) {
	for i := range scores {
		s := &scores[i]
		sum.DriverNS += s.DriverNS
		sum.AssumedNS += s.AssumedNS
		sum.PeakReserved = max(sum.PeakReserved, s.PeakReserved)
		sum.Hits += s.Hits
		sum.Requests += s.Requests
		sum.DriverCreates += s.DriverCreates
		sum.Unpooled += s.Unpooled
	}
	return sum
}
