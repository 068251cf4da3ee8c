package tune

import (
	"context"
	"errors"
	"runtime"
	"slices"

	"codeberg.org/gpumemtop/gpumemtop/internal/cost"
	"codeberg.org/gpumemtop/gpumemtop/internal/replay"
)

// Column is what configurations did on one recording, or on several that count as one: points i of several columns are of
// the same configuration.
type Column struct {
	Scores []Score
	Cannot []int // places in Scores whose configuration contradicts what the recording changed: they are none
	Bound  replay.Bound
	PartNS float64 // as Result.PartNS
	Priced bool    // a create was timed
}

// Play plays one recording through configurations, with the costs that were recorded. The error is that of the context.
func Play(ctx context.Context, tape *replay.Loaded, list []replay.Configuration, workers int) (*Column, error) {
	if workers <= 0 {
		workers = runtime.GOMAXPROCS(0)
	}
	s := search{field: field{tapes: []*replay.Loaded{tape}, workers: workers}, options: Options{Fit: true}}
	c := &Column{Scores: make([]Score, len(list))}
	if err := s.price(); err != nil && !errors.Is(err, ErrNoCost) && !errors.Is(err, ErrNoRequest) {
		return nil, err
	}
	c.Bound, c.PartNS, c.Priced = s.bound, s.partNS, s.devices[0].Create != cost.Line{}
	for i, p := range s.field.try(ctx, list, func() {}) {
		if p == nil {
			c.Cannot = append(c.Cannot, i)
		} else {
			c.Scores[i] = p.Score
		}
	}
	return c, ctx.Err()
}

// Columns returns what a search found on each recording: what Play returns for the configurations of Points.
func (r *Result) Columns() []Column {
	columns := make([]Column, len(r.field.tapes))
	for at := range columns {
		s := search{field: field{tapes: r.field.tapes[at : at+1]}, options: r.options}
		err := s.price()
		columns[at] = Column{Bound: s.bound, PartNS: s.partNS, Priced: !errors.Is(err, ErrNoCost) && s.devices[0].Create != cost.Line{}}
		for i := range r.Points {
			columns[at].Scores = append(columns[at].Scores, r.Points[i].On[at])
		}
	}
	return columns
}

// Add puts another recording's column into one.
func (c *Column) Add(other *Column) {
	for i := range c.Scores {
		c.Scores[i] = total([]Score{c.Scores[i], other.Scores[i]})
	}
	c.Cannot = append(c.Cannot, other.Cannot...)
	c.Bound.Whole += other.Bound.Whole
	c.Bound.Carved += other.Bound.Carved
	c.Bound.Peak = max(c.Bound.Peak, other.Bound.Peak)
	c.PartNS, c.Priced = max(c.PartNS, other.PartNS), c.Priced || other.Priced
}

// Gather makes a result of what configurations did on recordings, the first of which is no pool: what Search returns had it
// tried these on all of them. ending is why no more are there. Errors are those of Search.
func Gather(list []replay.Configuration, columns []Column, ending Ending, o Options) (*Result, error) {
	s := search{options: o, seen: map[string]int{}, ending: ending}
	priced := false
	cannot := map[int]bool{}
	for i := range columns {
		c := &columns[i]
		for _, at := range c.Cannot {
			cannot[at] = true
		}
		s.bound.Whole += c.Bound.Whole
		s.bound.Carved += c.Bound.Carved
		s.bound.Peak = max(s.bound.Peak, c.Bound.Peak)
		s.partNS, priced = max(s.partNS, c.PartNS), priced || c.Priced
	}
	switch {
	case s.bound.Peak == 0:
		return nil, ErrNoRequest
	case !priced:
		return nil, ErrNoCost
	}
	for at, c := range list {
		if cannot[at] {
			continue
		}
		p := Point{Configuration: c}
		for i := range columns {
			p.On = append(p.On, columns[i].Scores[at])
		}
		p.Score = total(p.On)
		s.points = append(s.points, p)
		s.seen[c.String()] = len(s.points)
	}
	if o.Present != nil {
		present := canonical(*o.Present)
		s.options.Present = &present
	}
	return s.result(context.Background())
}

// Configurations returns what was tried, in order.
func (r *Result) Configurations() (list []replay.Configuration) {
	for i := range r.Points {
		list = append(list, r.Points[i].Configuration)
	}
	return slices.Clip(list)
}
