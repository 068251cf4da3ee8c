package tune

import (
	"context"

	"codeberg.org/gpumemtop/gpumemtop/internal/cost"
	"codeberg.org/gpumemtop/gpumemtop/internal/replay"
)

// A choice over-fits that is worse by more than this, where it was not made, than the choice that would have been made
// there: by that factor, and by that many ns or bytes.
const (
	worse        = 1.1
	worseByNS    = 1e6
	worseByBytes = 1 << 20
)

// halvesMost is how many configurations the halves of a recording are played through.
const halvesMost = 24

// Fold scores a configuration on data that it was not chosen by.
type Fold struct {
	Held   int   // the recording, or half, that it is scored on and was not chosen by
	Chosen Point // its Score is that on Held
	Best   Point // what would have been chosen by Held alone
	None   Score // no pool
	Slower bool  // than Best by more than chance: it over-fits
	Larger bool  // it needs more memory than Best without being faster, or than there may be: it over-fits, too
}

// OverFits reports whether the choice does not hold there.
func (f *Fold) OverFits() bool { return f.Slower || f.Larger }

// foldsMost is how many choices are made at most: with more recordings, each leaves several of them out.
const foldsMost = 32

// Folds chooses by all recordings but one, for each of them, and scores that on the one that was left out. Choices are
// among the configurations that were tried on all. Of more than foldsMost, others are left out with each: that many
// choices are made, and each recording is scored on one that it was not chosen by.
//
// Of one recording it takes the halves, and the choices are among the front and the policies as they are. It returns
// nil where a half asks for nothing, the context ends first, or the recording is not there (Gather).
func (r *Result) Folds(ctx context.Context) []Fold {
	points, columns := r.Points, len(r.Points[0].On)
	if columns == 1 {
		points, columns = r.halves(ctx), 2
	}
	if points == nil {
		return nil
	}
	groups := min(columns, foldsMost)
	var choices []*Point
	for out := range groups {
		var others []int
		for i := range columns {
			if i%groups != out {
				others = append(others, i)
			}
		}
		choices = append(choices, r.chooseBy(part(points, others)))
	}
	var folds []Fold
	for held := range columns {
		here := part(points, []int{held})
		chosen, best := choices[held%groups], r.chooseBy(here)
		if chosen == nil || best == nil { // nothing keeps to the memory
			continue
		}
		folds = append(folds, r.fold(held, find(here, chosen), best, find(here, &Point{Configuration: bare})))
	}
	return folds
}

func (r *Result) fold(held int, chosen, best, none *Point) Fold {
	f := Fold{Held: held, Chosen: *chosen, Best: *best, None: none.Score}
	f.Slower = exceeds(chosen.DriverNS, best.DriverNS, worseByNS)
	f.Larger = exceeds(float64(chosen.PeakReserved), float64(best.PeakReserved), worseByBytes) && !exceeds(best.DriverNS, chosen.DriverNS, worseByNS)
	if r.options.MaxMemory > 0 && chosen.PeakReserved > r.options.MaxMemory {
		f.Larger = true
	}
	return f
}

func exceeds(a, b, by float64) bool { return a > worse*b && a > b+by }

// chooseBy returns what would be recommended of points.
func (r *Result) chooseBy(points []Point) *Point {
	front, _ := peel(points, r.options.Present)
	best, _ := recommend(front, find(points, &Point{Configuration: bare}), r.options.MaxMemory)
	return best
}

// part returns points as they are on some of the recordings alone.
func part(points []Point, columns []int) []Point {
	parts := make([]Point, len(points))
	for i := range points {
		parts[i].Configuration = points[i].Configuration
		for _, at := range columns {
			parts[i].On = append(parts[i].On, points[i].On[at])
		}
		parts[i].Score = total(parts[i].On)
	}
	return parts
}

// find returns the point of a configuration, which is there.
func find(points []Point, like *Point) *Point {
	name := like.Configuration.String()
	for i := range points {
		if points[i].Configuration.String() == name {
			return &points[i]
		}
	}
	return nil
}

// halves plays both halves of the only recording through the front and the policies as they are.
func (r *Result) halves(ctx context.Context) []Point {
	if ctx.Err() != nil || len(r.field.tapes) == 0 {
		return nil
	}
	first, second := r.field.tapes[0].Split()
	device := r.field.devices[0]
	if first.Events() == 0 || first.Bound(device).Peak == 0 || second.Bound(device).Peak == 0 {
		return nil
	}
	list := []replay.Configuration{bare}
	seen := map[string]bool{bare.String(): true}
	add := func(c *replay.Configuration) {
		if !seen[c.String()] && len(list) < halvesMost {
			seen[c.String()] = true
			list = append(list, *c)
		}
	}
	if r.Recommended != nil {
		add(&r.Recommended.Configuration)
	}
	for i := range r.Points {
		if c := &r.Points[i].Configuration; len(c.Settings) == 0 {
			add(c)
		}
	}
	for i := range r.Front {
		add(&r.Front[i].Configuration)
	}
	field := field{tapes: []*replay.Loaded{first, second}, devices: []cost.Device{device, device}, workers: r.field.workers}
	var points []Point
	for _, p := range field.try(ctx, list, func() {}) {
		if p == nil {
			return nil
		}
		points = append(points, *p)
	}
	return points
}
