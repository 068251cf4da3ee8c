package session

import (
	"slices"
	"testing"

	"codeberg.org/gpumemtop/gpumemtop/internal/session/machine"
	"codeberg.org/gpumemtop/gpumemtop/internal/stats"
	"codeberg.org/gpumemtop/gpumemtop/internal/wire"
)

// timing is an intake whose pool of process 1 is asked for blocks whose release is timed, which it gives.
type timing struct {
	intake
	asked []uint64 // bytes
	gives bool
}

func newTiming(free uint64) *timing {
	x := &timing{intake: newIntake(stats.New(stats.Options{Started: 1}), nil, ""), gives: true}
	x.sampler = newSampler()
	x.places, x.timed = map[uint32]place{1: {host: true}}, map[uint32]*timed{}
	x.sampler.relief = newRelief(func(process uint32, r wire.Relief) {
		x.asked = append(x.asked, r.Asked)
		if e := (wire.EvictFields{Time: 1, Reason: wire.EvictTimed, Bytes: r.Asked, Cost: 700}).Event(); x.gives {
			record := wire.Record{Process: process, Event: e}
			x.model.Apply(&record)
			x.countTimedRelease(record.AsEvict(), process)
		}
	})
	x.sampler.relief.askPools(1, []look{lookOf(1, 0, gib, []machine.Shared{{Name: "host", Total: 64 * gib, Free: headroomBytes(64*gib) + free}})})
	return x
}

// hit lets the pool serve requests of a size.
func (x *timing) hit(number int, size uint64) {
	for i := range uint64(number) {
		r := wire.Record{Process: 1, Event: wire.CreateFields{
			Time: 1, Duration: 100, Outcome: wire.OutcomeHit, Object: size + i, Block: size, Requested: size, Granted: size,
		}.Event()}
		x.model.Apply(&r)
	}
}

// TestSomeReleasesAreTimed: eight of each size class, those with the most hits first, in a run that lasts; larger blocks more
// rarely.
func TestSomeReleasesAreTimed(t *testing.T) {
	x := newTiming(gib)
	x.hit(3, 4096)
	x.hit(2, 64*mib)
	var large []uint64
	for now := uint64(0); now <= 200e9; now += 1e8 {
		before := len(x.asked)
		if x.askForTimedReleases(now); now < timedAfter && len(x.asked) > 0 {
			t.Fatalf("asked after %d ns", now)
		}
		if len(x.asked) > before && x.asked[before] > 4096 {
			large = append(large, now)
		}
	}
	want := append(slices.Repeat([]uint64{4096}, 8), slices.Repeat([]uint64{64 * mib}, 8)...)
	if !slices.Equal(x.asked, want) {
		t.Errorf("asked for %d, want %d", x.asked, want)
	}
	for i := 1; i < len(large); i++ {
		if large[i]-large[i-1] < 9e9 {
			t.Errorf("blocks of 64 MiB went at %d", large)
		}
	}
}

// TestNoReleaseIsTimed: where memory is short, and no longer where the blocks are always in use.
func TestNoReleaseIsTimed(t *testing.T) {
	short, used := newTiming(4096), newTiming(gib)
	used.gives = false
	for _, x := range []*timing{short, used} {
		x.hit(3, 4096)
		for now := uint64(0); now <= 200e9; now += 1e8 {
			x.askForTimedReleases(now)
		}
	}
	if len(short.asked) > 0 || len(used.asked) != timedAsked {
		t.Errorf("asked %d times where memory is short, %d times where all is in use", len(short.asked), len(used.asked))
	}
}
