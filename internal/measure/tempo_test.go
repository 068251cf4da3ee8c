package measure

import (
	"math"
	"testing"

	"codeberg.org/gpumemtop/gpumemtop/internal/wire"
)

// TestTempoOfAWholeRun: start and end do not count, long runs keep few times, and with a pool or without one the creates are the same.
func TestTempoOfAWholeRun(t *testing.T) {
	for _, c := range []struct {
		iterations int
		sizes      []uint64
		outcome    wire.Outcome
		want       Iterations
	}{
		{100, []uint64{4096, 8192, 4096}, wire.OutcomeHit, Iterations{2003000, 89, 3}},
		{100, []uint64{4096, 8192, 4096}, wire.OutcomeDriver, Iterations{2003000, 89, 3}},
		{150_000, []uint64{4096, 8192}, wire.OutcomeMiss, Iterations{2002000, 134999, 2}},
		{100, []uint64{4096}, wire.OutcomeMiss, Iterations{2001000, 88, 1}},
		{1, []uint64{4096}, wire.OutcomeMiss, Iterations{}},
	} {
		var tempo Tempo
		now := uint64(1e9)
		create := func(process, site uint32, size uint64, outcome wire.Outcome) {
			now += 1000
			f := wire.CreateFields{Time: now, Duration: 900, Outcome: outcome, Tag: site, Requested: size, Granted: size}
			r := wire.Record{Event: f.Event(), Process: process}
			tempo.TakeRecord(&r)
		}
		for i := range c.iterations {
			if now += 2e6; i < c.iterations/20 { // caches fill
				now += 50e6
			}
			for k, size := range c.sizes {
				create(1, uint32(k+1), size, c.outcome)
			}
		}
		now += 3e9 // the program writes its results
		create(2, 9, 1<<20, wire.OutcomeMiss)
		create(1, 8, 1<<20, wire.OutcomeFailed)
		if got := tempo.Iterations(); math.Abs(got.NS-c.want.NS) > 1000 || got.Count != c.want.Count || got.Creates != c.want.Creates {
			t.Errorf("%d iterations: %+v, want %+v", c.iterations, got, c.want)
		}
	}
}
