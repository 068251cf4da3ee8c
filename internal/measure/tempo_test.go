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

// TestTempoOfAProgramAheadOfItsDevice: where the device has much left when all creates are made, their times are not those of iterations.
func TestTempoOfAProgramAheadOfItsDevice(t *testing.T) {
	for wait, want := range map[uint32]uint64{2e6: 89, 3.9e6: 89, 150e6: 0, math.MaxUint32: 0} {
		var tempo Tempo
		for i := range uint64(300) {
			r := wire.Record{Event: wire.CreateFields{Time: 1e9 + i*666e3, Outcome: wire.OutcomeMiss, Tag: uint32(i % 3), Requested: 4096}.Event(), Process: 1}
			tempo.TakeRecord(&r)
		}
		for _, f := range []wire.SyncFields{{Sync: wire.SyncFlush, Duration: 3e9}, {Sync: wire.SyncBlocking, Duration: wait}, {Sync: wire.SyncWait}} {
			r := wire.Record{Event: f.Event(), Process: 1}
			tempo.TakeRecord(&r)
		}
		if got := tempo.Iterations(); got.Count != want {
			t.Errorf("a wait of %d ns: %+v, want %d iterations", wait, got, want)
		}
	}
}
