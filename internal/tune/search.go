package tune

import (
	"context"
	"slices"

	"codeberg.org/gpumemtop/gpumemtop/allocator"
	"codeberg.org/gpumemtop/gpumemtop/internal/replay"
)

// batch is how many configurations are tried before looking where to go on. It does not depend on the number of cores,
// so that the result does not.
const batch = 32

// bare is no pool: what all others are compared with.
var bare = replay.Configuration{Policy: "none"}

// search is a search under way. One goroutine uses it.
type search struct {
	field
	options Options
	bound   replay.Bound
	partNS  float64 // Result.PartNS
	points  []Point
	seen    map[string]int                    // configurations: place in points + 1, 0 for those that cannot be
	left    map[string][]replay.Configuration // neighbours that were not tried, as far as known
	ending  Ending
}

// try tries those of a list that were not tried, as many as there may still be. It reports whether the search goes on.
func (s *search) try(ctx context.Context, list []replay.Configuration) bool {
	var fresh []replay.Configuration
	for _, c := range list {
		if _, seen := s.seen[c.String()]; !seen && len(s.points)+len(fresh) < s.options.Most {
			s.seen[c.String()] = 0
			fresh = append(fresh, c)
		}
	}
	done := len(s.points)
	for _, p := range s.field.try(ctx, fresh, func() {
		if done++; s.options.Progress != nil {
			s.options.Progress(done, s.options.Most)
		}
	}) {
		if p != nil {
			s.points = append(s.points, *p)
			s.seen[p.Configuration.String()] = len(s.points)
		}
	}
	return ctx.Err() == nil && len(s.points) < s.options.Most
}

// defaults tries what a search always reports: no pool, the present configuration, every policy as it is.
func (s *search) defaults(ctx context.Context) {
	list := []replay.Configuration{bare}
	if s.options.Present != nil {
		list = append(list, *s.options.Present)
	}
	for _, name := range allocator.Names() {
		list = append(list, replay.Configuration{Policy: name})
	}
	list = turns([][]replay.Configuration{list}, len(list)) // each once
	s.options.Most = max(s.options.Most, len(list))
	s.try(ctx, list)
}

// amounts tries every policy with different amounts of memory: what matters most.
func (s *search) amounts(ctx context.Context) {
	var list []replay.Configuration
	for _, name := range allocator.Names() {
		for _, a := range axes(name, s.bound.Peak) {
			if !amount(&a.limit) {
				continue
			}
			for _, value := range a.values {
				if c, ok := with(replay.Configuration{Policy: name}, a.limit.Name, value); ok {
					list = append(list, c)
				}
			}
		}
	}
	s.try(ctx, list)
}

// refine tries neighbours of the front, then of what would be the front without it, and so on, a batch at a time: each
// batch may change where the front is. It leaves that many of the configurations that may be tried.
func (s *search) refine(ctx context.Context, left int) {
	for s.try(ctx, nil) && len(s.points) < s.options.Most-left {
		fresh := s.next(min(batch, s.options.Most-left-len(s.points)))
		if len(fresh) == 0 {
			s.ending = Exhausted
			return
		}
		s.try(ctx, fresh)
	}
}

// next returns a batch of at most that many to try, taking turns among the points of the outermost front that has
// neighbours left.
func (s *search) next(most int) []replay.Configuration {
	rest := s.points
	for len(rest) > 0 {
		var layer []Point
		layer, rest = s.peel(rest)
		var lists [][]replay.Configuration
		for i := range layer {
			lists = append(lists, s.untried(layer[i].Configuration))
		}
		if fresh := turns(lists, most); len(fresh) > 0 {
			return fresh
		}
	}
	return nil
}

// untried returns the neighbours of a configuration that were not tried.
func (s *search) untried(c replay.Configuration) []replay.Configuration {
	name := c.String()
	list, known := s.left[name]
	if !known {
		list = neighbours(c, s.bound.Peak)
	}
	list = slices.DeleteFunc(list, func(c replay.Configuration) bool {
		_, seen := s.seen[c.String()]
		return seen
	})
	s.left[name] = list
	return list
}

// turns takes one of each list in turn, each configuration once, at most n.
func turns(lists [][]replay.Configuration, most int) (taken []replay.Configuration) {
	seen := map[string]bool{}
	for at, left := 0, true; left; at++ {
		left = false
		for _, list := range lists {
			if at >= len(list) {
				continue
			}
			left = true
			if name := list[at].String(); !seen[name] && len(taken) < most {
				seen[name] = true
				taken = append(taken, list[at])
			}
		}
	}
	return taken
}

// simplify looks whether the points of the front are as good with one limit less, for as long as some are: what does
// not matter shall not be set.
func (s *search) simplify(ctx context.Context) {
	for more := true; more; {
		front, _ := s.peel(s.points)
		var lists [][]replay.Configuration
		for i := range front {
			lists = append(lists, s.less(&front[i].Configuration))
		}
		list := turns(lists, batch)
		more = s.try(ctx, list) && len(list) > 0
	}
}

// less returns the configurations with one limit less than one has that were not tried.
func (s *search) less(c *replay.Configuration) (list []replay.Configuration) {
	for i := range c.Settings {
		next := replay.Configuration{Policy: c.Policy, Settings: slices.Delete(slices.Clone(c.Settings), i, i+1)}
		if _, seen := s.seen[next.String()]; seen {
			continue
		}
		if _, err := allocator.New(next.Policy, next.Settings); err == nil { // else another limit needs this one
			list = append(list, next)
		}
	}
	return list
}

func (s *search) peel(points []Point) (front, rest []Point) { return peel(points, s.options.Present) }

// tried returns a configuration that was tried, nil where it was not.
func (s *search) tried(c *replay.Configuration) *Point {
	if c == nil || s.seen[c.String()] == 0 {
		return nil
	}
	return &s.points[s.seen[c.String()]-1]
}

func (s *search) result(ctx context.Context) (*Result, error) {
	none := s.tried(&bare)
	if none == nil {
		return nil, ErrNothing
	}
	r := &Result{
		Points: s.points, Bound: s.bound, Ending: s.ending, PartNS: s.partNS, None: *none, Present: s.tried(s.options.Present),
		field: s.field, options: s.options,
	}
	if ctx.Err() != nil {
		r.Ending = Cut
	}
	r.Front, _ = s.peel(s.points)
	r.Recommended, r.Reason = recommend(r.Front, none, s.options.MaxMemory)
	return r, nil
}
