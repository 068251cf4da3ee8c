package curve

import (
	"slices"

	"codeberg.org/gpumemtop/gpumemtop/allocator"
	"codeberg.org/gpumemtop/gpumemtop/internal/cost"
	"codeberg.org/gpumemtop/gpumemtop/internal/replay"
)

// ghosts play a policy at a few limits beside a curve. They begin without a block, so that what they hit at first is
// less than it should be: it does not count. Where requests come fast they take more than all else of a curve, and know
// enough soon: then they rest for most of the time.
type ghosts struct {
	all     []ghost
	cold    bool
	resting bool
	warm    float64 // requests after which they count
	enough  float64 // requests after which they may rest
	next    float64 // requests after which other limits are chosen
	since   uint64  // when they began to count, ns
}

// ghost is one limit.
type ghost struct {
	limit          uint64
	voice          int
	hits, requests uint64 // that do not count
}

func newGhosts() ghosts { return ghosts{next: placedFirst} }

// leave ends all, because they are of another policy.
func (g *ghosts) leave(c *replay.Batch) {
	g.dismiss(c)
	*g = newGhosts()
}

// dismiss ends all.
func (g *ghosts) dismiss(c *replay.Batch) {
	for _, one := range g.all {
		c.Remove(one.voice)
	}
	g.all = nil
}

// rest ends all until others are placed, after the given number of requests.
func (g *ghosts) rest(c *replay.Batch, requests float64) {
	g.dismiss(c)
	g.resting, g.next = true, min(g.next, requests*restsFor)
}

// tired reports whether all that count have seen enough after that many requests, because they come faster than that
// many in a second.
func (g *ghosts) tired(requests float64, time uint64, rate int) bool {
	return !g.cold && len(g.all) > 0 && requests >= g.enough && time > g.since &&
		requests*1e9 > float64(rate)*float64(time-g.since)
}

// place chooses limits, after the given number of requests. They keep what they have where a limit stays.
func (g *ghosts) place(c *replay.Batch, s *Snapshot, policy string, settings []allocator.Setting, requests float64) {
	var stay []ghost
	for _, limit := range s.spread() {
		if i := slices.IndexFunc(g.all, func(one ghost) bool { return one.limit == limit }); i >= 0 {
			stay = append(stay, g.all[i])
			g.all = slices.Delete(g.all, i, i+1)
			continue
		}
		if voice, err := c.Add(at(policy, settings, limit)); err == nil {
			stay = append(stay, ghost{limit: limit, voice: voice})
		}
	}
	g.dismiss(c)
	g.all, g.cold, g.resting = stay, true, false
	g.warm = requests + max(requests/4, shownLeast)
	g.enough = min(max(requests/2, shownLeast), restsLast)
	g.next = min(requests*placedAgain, placedLast)
}

// play plays what a chorus has read.
func (g *ghosts) play(c *replay.Batch) {
	g.all = slices.DeleteFunc(g.all, func(one ghost) bool {
		err := c.Play(one.voice)
		if err != nil { // a limit that was changed since contradicts
			c.Remove(one.voice)
		}
		return err != nil
	})
}

// count counts from a time on.
func (g *ghosts) count(c *replay.Batch, time uint64) {
	g.cold, g.since = false, time
	for i := range g.all {
		r := c.Result(g.all[i].voice, cost.Device{})
		g.all[i].hits, g.all[i].requests = r.Hits, r.Hits+r.Misses
	}
}

// points returns the hit rates since then, ascending by limit.
func (g *ghosts) points(c *replay.Batch) []Point {
	var points []Point
	if g.cold {
		return nil
	}
	for _, one := range g.all {
		r := c.Result(one.voice, cost.Device{})
		if requests := r.Hits + r.Misses - one.requests; requests > 0 {
			points = append(points, Point{
				Limit: one.limit, HitRate: float64(r.Hits-one.hits) / float64(requests), PeakReserved: r.PeakReserved,
			})
		}
	}
	slices.SortFunc(points, byLimit)
	return points
}

// spread returns limits below the one from which on a curve is at its top, and that, ascending. They do not depend on
// where it rises: a curve that is wrong is so where it should and does not.
func (s *Snapshot) spread() []uint64 {
	top := s.Points[s.first(1)].Limit
	var limits []uint64
	for _, shift := range [ghostsMost]int{4, 2, 1, 0} {
		if limit := top >> shift; limit > 0 {
			limits = append(limits, limit)
		}
	}
	return slices.Compact(limits)
}
