package curve

import (
	"slices"

	"codeberg.org/gpumemtop/gpumemtop/allocator"
	"codeberg.org/gpumemtop/gpumemtop/internal/lab"
	"codeberg.org/gpumemtop/gpumemtop/internal/lab/cost"
)

// ghosts play a policy at a few limits beside a curve. They begin without a block, so that what they hit at first is less
// than it should be: it does not count.
type ghosts struct {
	all  []ghost
	cold bool
	warm float64 // requests after which they count
	next float64 // requests after which other limits are chosen
}

// ghost is one limit.
type ghost struct {
	limit          uint64
	voice          int
	hits, requests uint64 // that do not count
}

func newGhosts() ghosts { return ghosts{next: placedFirst} }

// leave ends all, because they are of another policy.
func (g *ghosts) leave(c *lab.Chorus) {
	for _, one := range g.all {
		c.Remove(one.voice)
	}
	*g = newGhosts()
}

// place chooses limits, after so many requests. They keep what they have where a limit stays.
func (g *ghosts) place(c *lab.Chorus, s *Snapshot, policy string, settings []allocator.Setting, requests float64) {
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
	for _, one := range g.all {
		c.Remove(one.voice)
	}
	g.all, g.cold = stay, true
	g.warm = requests + max(requests/4, shownLeast)
	g.next = min(requests*placedAgain, placedLast)
}

// play plays what a chorus has read.
func (g *ghosts) play(c *lab.Chorus) {
	g.all = slices.DeleteFunc(g.all, func(one ghost) bool {
		err := c.Play(one.voice)
		if err != nil { // a limit that was changed since contradicts
			c.Remove(one.voice)
		}
		return err != nil
	})
}

// count counts from here on.
func (g *ghosts) count(c *lab.Chorus) {
	g.cold = false
	for i := range g.all {
		r := c.Result(g.all[i].voice, cost.Device{})
		g.all[i].hits, g.all[i].requests = r.Hits, r.Hits+r.Misses
	}
}

// points returns the hit rates since then, ascending by limit.
func (g *ghosts) points(c *lab.Chorus) []Exact {
	var points []Exact
	if g.cold {
		return nil
	}
	for _, one := range g.all {
		r := c.Result(one.voice, cost.Device{})
		if requests := r.Hits + r.Misses - one.requests; requests > 0 {
			points = append(points, Exact{one.limit, float64(r.Hits-one.hits) / float64(requests), r.PeakReserved})
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
