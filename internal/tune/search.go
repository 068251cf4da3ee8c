package tune

import (
	"context"
	"slices"

	"codeberg.org/gpumemtop/gpumemtop/allocator"
	"codeberg.org/gpumemtop/gpumemtop/internal/replay"
)

// batch is how many configurations are tried before the search decides where to continue. It does not depend on the
// number of cores, so that the result does not either.
const batch = 32

// noPool is the configuration that all others are compared with.
var noPool = replay.Configuration{Policy: "none"}

// search is a search in progress. One goroutine uses it.
type search struct {
	testbed
	options           Options
	bound             replay.Bound
	partNS            float64 // Result.PartNS
	points            []Point
	seen              map[string]int                    // by configuration: 1 + index in points, 0 for an invalid one
	untriedNeighbours map[string][]replay.Configuration // by configuration, as far as known
	ending            Ending
}

// tryNewConfigurations tries the new configurations of a list, up to the allowed number. It reports whether the search continues.
func (s *search) tryNewConfigurations(ctx context.Context, list []replay.Configuration) bool {
	var fresh []replay.Configuration
	for _, c := range list {
		if _, seen := s.seen[c.String()]; !seen && len(s.points)+len(fresh) < s.options.Most {
			s.seen[c.String()] = 0
			fresh = append(fresh, c)
		}
	}
	done := len(s.points)
	for _, p := range s.testbed.playConfigurations(ctx, fresh, func() {
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

// tryDefaults tries the configurations that a search always reports: no pool, the present one, and every policy with
// its defaults.
func (s *search) tryDefaults(ctx context.Context) {
	list := []replay.Configuration{noPool}
	if s.options.Present != nil {
		list = append(list, *s.options.Present)
	}
	for _, name := range allocator.PolicyNames() {
		list = append(list, replay.Configuration{Policy: name})
	}
	list = takeAlternating([][]replay.Configuration{list}, len(list)) // each once
	s.options.Most = max(s.options.Most, len(list))
	s.tryNewConfigurations(ctx, list)
}

// tryAmounts tries every policy with different amounts of memory, which matter most.
func (s *search) tryAmounts(ctx context.Context) {
	var list []replay.Configuration
	for _, name := range allocator.PolicyNames() {
		for _, a := range axesToVary(name, s.bound.Peak) {
			if !isMemoryAmount(&a.limit) {
				continue
			}
			for _, value := range a.values {
				if c, ok := withLimit(replay.Configuration{Policy: name}, a.limit.Name, value); ok {
					list = append(list, c)
				}
			}
		}
	}
	s.tryNewConfigurations(ctx, list)
}

// tryNeighbours tries neighbours of the front, then neighbours of the front without those points, and so on, one batch at a
// time, because each batch may change the front. It leaves the given number of configurations for later.
func (s *search) tryNeighbours(ctx context.Context, left int) {
	for s.tryNewConfigurations(ctx, nil) && len(s.points) < s.options.Most-left {
		fresh := s.nextConfigurations(min(batch, s.options.Most-left-len(s.points)))
		if len(fresh) == 0 {
			s.ending = Exhausted
			return
		}
		s.tryNewConfigurations(ctx, fresh)
	}
}

// nextConfigurations returns up to most configurations to try: neighbours of the points of the outermost front that has untried
// ones, alternating among the points. Assumed points come last.
func (s *search) nextConfigurations(most int) []replay.Configuration {
	known, assumed := splitByAssumed(s.points)
	for _, rest := range [][]Point{known, assumed} {
		for len(rest) > 0 {
			var layer []Point
			layer, rest = s.splitFront(rest)
			var lists [][]replay.Configuration
			for i := range layer {
				lists = append(lists, s.neighboursNotTried(layer[i].Configuration))
			}
			if fresh := takeAlternating(lists, most); len(fresh) > 0 {
				return fresh
			}
		}
	}
	return nil
}

// neighboursNotTried returns the neighbours of a configuration that were not tried.
func (s *search) neighboursNotTried(c replay.Configuration) []replay.Configuration {
	name := c.String()
	list, known := s.untriedNeighbours[name]
	if !known {
		list = neighbours(c, s.bound.Peak)
	}
	list = slices.DeleteFunc(list, func(c replay.Configuration) bool {
		_, seen := s.seen[c.String()]
		return seen
	})
	s.untriedNeighbours[name] = list
	return list
}

// takeAlternating takes one configuration from each list in turn, each configuration once, at most most.
func takeAlternating(lists [][]replay.Configuration, most int) (taken []replay.Configuration) {
	seen := map[string]bool{}
	for index, more := 0, true; more; index++ {
		more = false
		for _, list := range lists {
			if index >= len(list) {
				continue
			}
			more = true
			if name := list[index].String(); !seen[name] && len(taken) < most {
				seen[name] = true
				taken = append(taken, list[index])
			}
		}
	}
	return taken
}

// tryWithOneLimitLess tries the points of the front with one limit less, while that finds new configurations, so that a limit
// without effect is not recommended.
func (s *search) tryWithOneLimitLess(ctx context.Context) {
	for more := true; more; {
		known, _ := splitByAssumed(s.points)
		front, _ := s.splitFront(known)
		var lists [][]replay.Configuration
		for i := range front {
			lists = append(lists, s.withoutOneLimit(&front[i].Configuration))
		}
		list := takeAlternating(lists, batch)
		more = s.tryNewConfigurations(ctx, list) && len(list) > 0
	}
}

// withoutOneLimit returns the untried configurations that have one limit less.
func (s *search) withoutOneLimit(c *replay.Configuration) (list []replay.Configuration) {
	for i := range c.Settings {
		next := replay.Configuration{Policy: c.Policy, Settings: slices.Delete(slices.Clone(c.Settings), i, i+1)}
		if _, seen := s.seen[next.String()]; seen {
			continue
		}
		if _, err := allocator.New(next.Policy, next.Settings); err == nil { // no other limit needs this one
			list = append(list, next)
		}
	}
	return list
}

func (s *search) splitFront(points []Point) (front, rest []Point) {
	return splitFront(points, s.options.Present)
}

// pointOf returns the point of a configuration, nil if it was not tried.
func (s *search) pointOf(c *replay.Configuration) *Point {
	if c == nil || s.seen[c.String()] == 0 {
		return nil
	}
	return &s.points[s.seen[c.String()]-1]
}

func (s *search) newResult(ctx context.Context) (*Result, error) {
	none := s.pointOf(&noPool)
	if none == nil {
		return nil, ErrNothing
	}
	r := &Result{
		Points: s.points, Bound: s.bound, Ending: s.ending, PartNS: s.partNS, None: *none, Present: s.pointOf(s.options.Present),
		testbed: s.testbed, options: s.options,
	}
	for _, tape := range s.testbed.tapes {
		r.RanNS += tape.DurationNS()
	}
	if ctx.Err() != nil {
		r.Ending = Cut
	}
	known, _ := splitByAssumed(s.points)
	r.Front, _ = s.splitFront(known)
	all, _ := s.splitFront(s.points)
	_, r.Assumed = splitByAssumed(all)
	r.Recommended, r.Reason = recommendFrom(r.Front, none, s.options.MaxMemory)
	return r, nil
}
