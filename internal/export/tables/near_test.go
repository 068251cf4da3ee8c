package tables

import (
	"math/rand/v2"
	"testing"
)

// TestTimeNearThePeakEqualsASecondPass compares with a second pass that knows the peak.
func TestTimeNearThePeakEqualsASecondPass(t *testing.T) {
	for seed := range uint64(50) {
		random := rand.New(rand.NewPCG(seed, 1))
		n := near{since: 10}
		type step struct {
			level    int64
			from, to uint64
		}
		var steps []step
		now, level, peak := uint64(10), int64(0), int64(0)
		for range 3000 {
			steps = append(steps, step{level: level, from: now})
			now += random.Uint64N(50)
			steps[len(steps)-1].to = now
			level = max(0, level+random.Int64N(2001)-990)
			peak = max(peak, level)
			n.noteLevel(level, now, true)
		}
		want := uint64(0)
		for _, s := range steps {
			if s.level > peak-peak/10 {
				want += s.to - s.from
			}
		}
		if level > peak-peak/10 {
			want += 100
		}
		if got := n.timeNearPeak(now + 100); got != want || want == 0 {
			t.Errorf("seed %d: %d ns, want %d", seed, got, want)
		}
	}
	var carried near
	carried.noteLevel(1000, 5, false) // comes before a part of a recording
	carried.noteLevel(100, 5, false)
	carried.noteLevel(100, 7, true)
	if got := carried.timeNearPeak(25); got != 20 || carried.peak != 100 {
		t.Errorf("%d ns near %d", got, carried.peak)
	}
}

// TestNearWithManyLevels stays within its bound, and is exact except for one entry.
func TestNearWithManyLevels(t *testing.T) {
	random := rand.New(rand.NewPCG(1, 2))
	n, now, levels := near{}, uint64(0), map[int64]uint64{}
	for range 200_000 {
		level := 1 << 30 * (90 + random.Int64N(int64(11+now/2e6))) / 100
		level += random.Int64N(1 << 20)
		n.noteLevel(level, now, true)
		step := 1 + random.Uint64N(100)
		levels[level] += step
		if now += step; len(n.levels) > levelsMost {
			t.Fatalf("%d levels are kept", len(n.levels))
		}
	}
	var least, most uint64
	for level, ns := range levels {
		if n.isLevelNearPeak(level) {
			least += ns
		}
		if n.isLevelNearPeak(level + n.grain) {
			most += ns
		}
	}
	if got := n.timeNearPeak(now); got < least || got > most || most > least*101/100 || n.grain == 0 || n.grain > n.peak/2000 {
		t.Errorf("%d ns, want %d to %d; entries of %d", got, least, most, n.grain)
	}
}
