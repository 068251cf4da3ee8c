package stats

import (
	"math/rand/v2"
	"testing"

	"codeberg.org/gpumemtop/gpumemtop/internal/heap"
	"codeberg.org/gpumemtop/gpumemtop/internal/recording"
	"codeberg.org/gpumemtop/gpumemtop/internal/wire"
)

// TestIntervalsAddUp compares intervals of random lengths with what the totals say after every event.
func TestIntervalsAddUp(t *testing.T) {
	for seed := range uint64(20) {
		records := simulate(seed, 1000)
		m, rng := New(Options{}), rand.New(rand.NewPCG(seed, 3))
		var most recording.Summary // its gauges; counts are those at the interval's beginning
		look := func() recording.Summary {
			c := &m.totals.run.counters
			return recording.Summary{
				InUse: heap.NonNegative(m.totals.run.InUse), Cached: m.totals.run.FreeBytes(),
				Cooling: heap.NonNegative(m.totals.run.Cooling),
				Hits:    c.Hits, Misses: c.Misses, Creates: c.Creates, Releases: c.Releases, Lost: m.lost,
			}
		}
		for i := range records {
			m.Apply(&records[i])
			if now := look(); now.InUse > most.InUse {
				most.InUse, most.Cached, most.Cooling = now.InUse, now.Cached, now.Cooling
			}
			if rng.IntN(10) > 0 {
				continue
			}
			now := look()
			want := recording.Summary{
				InUse: most.InUse, Cached: most.Cached, Cooling: most.Cooling, Hits: now.Hits - most.Hits, Misses: now.Misses - most.Misses,
				Creates: now.Creates - most.Creates, Releases: now.Releases - most.Releases, Lost: now.Lost - most.Lost,
			}
			got := m.SummarizeSinceLastCall()
			if got != want {
				t.Fatalf("seed %d, event %d: %+v, want %+v", seed, i, got, want)
			}
			var sum recording.Summary
			for _, p := range m.processes.list {
				own, _ := m.SummarizeProcessSinceLastCall(p.shown.Number)
				sum.Hits, sum.Misses = sum.Hits+own.Hits, sum.Misses+own.Misses
				sum.Creates, sum.Releases = sum.Creates+own.Creates, sum.Releases+own.Releases
			}
			sum.InUse, sum.Cached, sum.Cooling, sum.Lost = got.InUse, got.Cached, got.Cooling, got.Lost
			if sum != got {
				t.Fatalf("seed %d, event %d: %+v in the processes, %+v in all", seed, i, sum, got)
			}
			most = now
		}
	}
}

// TestIntervalOfProcesses: each process has its own interval.
func TestIntervalOfProcesses(t *testing.T) {
	m := New(Options{})
	create := func(process uint32, size uint64) {
		m.Apply(&wire.Record{Process: process, Event: wire.Event{Time: 1, Kind: wire.KindCreate, Object: size, Size: size}})
	}
	create(1, 100)
	create(2, 50)
	m.Apply(&wire.Record{Process: 2, Event: wire.Event{Time: 2, Kind: wire.KindLost, Size: 7}})
	of := func(process uint32) recording.Summary {
		i, known := m.SummarizeProcessSinceLastCall(process)
		if known != (process < 3) {
			t.Errorf("process %d: known %v", process, known)
		}
		return i
	}
	for _, c := range []struct{ got, want recording.Summary }{
		{m.SummarizeSinceLastCall(), recording.Summary{InUse: 150, Creates: 2, Lost: 7}},
		{m.SummarizeSinceLastCall(), recording.Summary{InUse: 150}},
		{of(1), recording.Summary{InUse: 100, Creates: 1}},
		{of(2), recording.Summary{InUse: 50, Creates: 1, Lost: 7}},
		{of(2), recording.Summary{InUse: 50}},
		{of(3), recording.Summary{}},
	} {
		if c.got != c.want {
			t.Errorf("%+v, want %+v", c.got, c.want)
		}
	}
}
