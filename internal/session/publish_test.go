package session

import (
	"testing"

	"codeberg.org/gpumemtop/gpumemtop/internal/stats"
)

// TestDearSnapshotsAreRare: one that takes 10 ms is made 5 times a second at most, none is later than half a second, and
// cheap ones come with each tick.
func TestDearSnapshotsAreRare(t *testing.T) {
	for cost, want := range map[uint64]int{0: 20, 1_000_000: 20, 10_000_000: 10, 200_000_000: 4} {
		m := stats.New(stats.Options{Started: 1})
		in := newIntake(m, nil, "")
		now := uint64(1e9)
		calls := uint64(0)
		in.clock = func() uint64 { // each look after the first of chores is behind the snapshot
			calls++
			if calls > 1 {
				return now + cost
			}
			return now
		}
		made, last := 0, m.PublishedSnapshot()
		for range 20 { // two seconds
			calls = 0
			in.publishNameSampleAndFlush()
			if s := m.PublishedSnapshot(); s != last {
				made, last = made+1, s
			}
			now += tickNS
		}
		if made != want {
			t.Errorf("%d snapshots that take %d ns, want %d", made, cost, want)
		}
	}
}
