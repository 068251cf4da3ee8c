package ui

import (
	"time"

	"codeberg.org/gpumemtop/gpumemtop/internal/stats"
)

// recentTime is how old what is called recent is at least.
const recentTime = 10 * time.Second

// recent knows what tags did lately: in the last 10 to 20 s, or since the start in a younger run. What was cured long ago,
// as by a change of a limit, must not look like a fault for ever.
type recent struct {
	before, next map[uint32]requests // at the beginning of the time, and of the next one
	turn         time.Time           // when that begins
}

// requests counts what a tag asked the pool for.
type requests struct{ hits, misses uint64 }

// update takes the latest snapshot.
func (r *recent) update(now time.Time, s *stats.Snapshot) {
	if s == nil || now.Before(r.turn) {
		return
	}
	first := r.turn.IsZero()
	r.turn = now.Add(recentTime)
	if first {
		return
	}
	r.before, r.next = r.next, make(map[uint32]requests, len(s.Tags))
	for i := range s.Tags {
		t := &s.Tags[i]
		r.next[t.ID] = requests{t.Hits, t.Misses}
	}
}

// of returns what a tag did lately.
func (r *recent) of(t *stats.Tag) requests {
	before := r.before[t.ID]
	return requests{since(before.hits, t.Hits), since(before.misses, t.Misses)}
}

// suspicious reports whether the hit rate of a tag is low.
func (r *recent) suspicious(t *stats.Tag) bool {
	n := r.of(t)
	return add(n.hits, n.misses) >= lowHitCount && n.rate() < lowHitRate
}

func (n requests) rate() float64 { return float64(n.hits) / float64(max(add(n.hits, n.misses), 1)) }
