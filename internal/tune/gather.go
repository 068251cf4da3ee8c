package tune

import (
	"context"
	"errors"
	"runtime"
	"slices"

	"codeberg.org/gpumemtop/gpumemtop/internal/cost"
	"codeberg.org/gpumemtop/gpumemtop/internal/replay"
)

// Column holds the scores of configurations on one recording, or on several that count as one. Scores with the same
// index in several columns belong to the same configuration.
type Column struct {
	Scores []Score
	Cannot []int // indices in Scores of invalid configurations, whose limits contradict changes in the recording
	Bound  replay.Bound
	PartNS float64 // as Result.PartNS
	Priced bool    // a create was timed
	RanNS  uint64  // as Result.RanNS
}

// PlayRecording plays one recording through configurations, with the costs in the recording. The error is that of the context.
func PlayRecording(ctx context.Context, tape *replay.Loaded, list []replay.Configuration, workers int) (*Column, error) {
	if workers <= 0 {
		workers = runtime.GOMAXPROCS(0)
	}
	s := search{testbed: testbed{tapes: []*replay.Loaded{tape}, workers: workers}, options: Options{Fit: true}}
	c := &Column{Scores: make([]Score, len(list))}
	if err := s.findDriverCosts(); err != nil && !errors.Is(err, ErrNoCost) && !errors.Is(err, ErrNoRequest) {
		return nil, err
	}
	c.Bound, c.PartNS, c.Priced = s.bound, s.partNS, s.devices[0].Create != cost.Line{}
	c.RanNS = tape.DurationNS()
	for i, p := range s.testbed.playConfigurations(ctx, list, func() {}) {
		if p == nil {
			c.Cannot = append(c.Cannot, i)
		} else {
			c.Scores[i] = p.Score
		}
	}
	return c, ctx.Err()
}

// Columns returns the scores of a search by recording: the result of Play for the configurations of Points.
func (r *Result) Columns() []Column {
	columns := make([]Column, len(r.testbed.tapes))
	for index := range columns {
		s := search{testbed: testbed{tapes: r.testbed.tapes[index : index+1]}, options: r.options}
		err := s.findDriverCosts()
		columns[index] = Column{Bound: s.bound, PartNS: s.partNS, Priced: !errors.Is(err, ErrNoCost) && s.devices[0].Create != cost.Line{}}
		columns[index].RanNS = s.testbed.tapes[0].DurationNS()
		for i := range r.Points {
			columns[index].Scores = append(columns[index].Scores, r.Points[i].On[index])
		}
	}
	return columns
}

// AddRecording adds another recording's column.
func (c *Column) AddRecording(other *Column) {
	for i := range c.Scores {
		c.Scores[i] = sumScores([]Score{c.Scores[i], other.Scores[i]})
	}
	c.Cannot = append(c.Cannot, other.Cannot...)
	c.Bound.Whole += other.Bound.Whole
	c.Bound.Carved += other.Bound.Carved
	c.Bound.Peak = max(c.Bound.Peak, other.Bound.Peak)
	c.PartNS, c.Priced, c.RanNS = max(c.PartNS, other.PartNS), c.Priced || other.Priced, c.RanNS+other.RanNS
}

// GatherResult makes a result from the scores of configurations on recordings: the result that Search would have returned for
// these configurations. The first configuration is no pool. ending is why no more were tried. Errors are those of
// Search.
func GatherResult(list []replay.Configuration, columns []Column, ending Ending, o Options) (*Result, error) {
	s := search{options: o, seen: map[string]int{}, ending: ending}
	priced := false
	cannot := map[int]bool{}
	for i := range columns {
		c := &columns[i]
		for _, index := range c.Cannot {
			cannot[index] = true
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
	for index, c := range list {
		if cannot[index] {
			continue
		}
		p := Point{Configuration: c}
		for i := range columns {
			p.On = append(p.On, columns[i].Scores[index])
		}
		p.Score = sumScores(p.On)
		s.points = append(s.points, p)
		s.seen[c.String()] = len(s.points)
	}
	if o.Present != nil {
		present := normalize(*o.Present)
		s.options.Present = &present
	}
	r, err := s.newResult(context.Background())
	for i := 0; err == nil && i < len(columns); i++ {
		r.RanNS += columns[i].RanNS
	}
	return r, err
}

// Configurations returns the configurations that were tried, in order.
func (r *Result) Configurations() (list []replay.Configuration) {
	for i := range r.Points {
		list = append(list, r.Points[i].Configuration)
	}
	return slices.Clip(list)
}
