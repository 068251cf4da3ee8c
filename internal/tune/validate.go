package tune

import (
	"context"

	"codeberg.org/gpumemtop/gpumemtop/internal/cost"
	"codeberg.org/gpumemtop/gpumemtop/internal/replay"
)

// A choice over-fits if, on a recording that it was not made by, it is worse than the choice that would have been made
// by that recording: by more than this factor and by more than this many ns or bytes.
const (
	slowerFactor  = 1.1
	slowerByNS    = 1e6
	largerByBytes = 1 << 20
)

// halvesMax is how many configurations the halves of a recording are played through.
const halvesMax = 24

// Fold is the score of a configuration on data that it was not chosen by.
type Fold struct {
	Held   int   // the recording, or half, that the configuration is scored on
	Chosen Point // its Score is that on Held
	Best   Point // the choice by Held alone
	None   Score // the score without a pool
	Slower bool  // slower than Best by more than chance: it over-fits
	Larger bool  // it needs more memory than Best without being faster, or more than allowed: it over-fits, too
}

// OverFits reports whether the choice is not good on Held.
func (f *Fold) OverFits() bool { return f.Slower || f.Larger }

// foldsMax is how many choices are made at most. With more recordings, each choice leaves several out.
const foldsMax = 32

// CrossValidate makes, for each recording, a choice by all other recordings, and scores it on that one. Choices are among the
// configurations that were tried on all recordings. With more than foldsMax recordings, each choice leaves a group of
// them out: foldsMax choices are made, and each recording is scored on one that it was not part of.
//
// For a single recording it uses the two halves, and the choices are among the front and the policies with their
// defaults. It returns nil if a half has no requests, the context ends first, or the recording is not loaded (Gather).
func (r *Result) CrossValidate(ctx context.Context) []Fold {
	points, columns := r.Points, len(r.Points[0].On)
	if columns == 1 {
		points, columns = r.playHalves(ctx), 2
	}
	if points == nil {
		return nil
	}
	groups := min(columns, foldsMax)
	var choices []*Point
	for group := range groups {
		var others []int
		for i := range columns {
			if i%groups != group {
				others = append(others, i)
			}
		}
		choices = append(choices, r.recommendFromPoints(restrictPointsTo(points, others)))
	}
	var folds []Fold
	for held := range columns {
		points := restrictPointsTo(points, []int{held})
		chosen, best := choices[held%groups], r.recommendFromPoints(points)
		if chosen == nil || best == nil { // no configuration keeps to the memory
			continue
		}
		folds = append(folds, r.scoreHeldOut(held, pointWithConfigurationOf(points, chosen), best, pointWithConfigurationOf(points,
			&Point{Configuration: noPool})))
	}
	return folds
}

func (r *Result) scoreHeldOut(held int, chosen, best, none *Point) Fold {
	f := Fold{Held: held, Chosen: *chosen, Best: *best, None: none.Score}
	f.Slower = isClearlyMore(chosen.DriverNS, best.DriverNS, slowerByNS)
	f.Larger = isClearlyMore(float64(chosen.PeakReserved), float64(best.PeakReserved), largerByBytes) && !isClearlyMore(best.DriverNS, chosen.DriverNS, slowerByNS)
	if r.options.MaxMemory > 0 && chosen.PeakReserved > r.options.MaxMemory {
		f.Larger = true
	}
	return f
}

func isClearlyMore(a, b, by float64) bool { return a > slowerFactor*b && a > b+by }

// recommendFromPoints returns the recommendation by some points.
func (r *Result) recommendFromPoints(points []Point) *Point {
	known, _ := splitByAssumed(points)
	front, _ := splitFront(known, r.options.Present)
	best, _ := recommendFrom(front, pointWithConfigurationOf(points, &Point{Configuration: noPool}), r.options.MaxMemory)
	return best
}

// restrictPointsTo returns points with their scores on some of the recordings only.
func restrictPointsTo(points []Point, columns []int) []Point {
	parts := make([]Point, len(points))
	for i := range points {
		parts[i].Configuration = points[i].Configuration
		for _, index := range columns {
			parts[i].On = append(parts[i].On, points[i].On[index])
		}
		parts[i].Score = sumScores(parts[i].On)
	}
	return parts
}

// pointWithConfigurationOf returns the point of a configuration, which is in the list.
func pointWithConfigurationOf(points []Point, like *Point) *Point {
	name := like.Configuration.String()
	for i := range points {
		if points[i].Configuration.String() == name {
			return &points[i]
		}
	}
	return nil
}

// playHalves plays both halves of the only recording through the front and the policies with their defaults.
func (r *Result) playHalves(ctx context.Context) []Point {
	if ctx.Err() != nil || len(r.testbed.tapes) == 0 {
		return nil
	}
	first, second := r.testbed.tapes[0].SplitInHalves()
	device := r.testbed.devices[0]
	if first.EventCount() == 0 || first.LowerBound(device).Peak == 0 || second.LowerBound(device).Peak == 0 {
		return nil
	}
	list := []replay.Configuration{noPool}
	seen := map[string]bool{noPool.String(): true}
	add := func(c *replay.Configuration) {
		if !seen[c.String()] && len(list) < halvesMax {
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
	field := testbed{tapes: []*replay.Loaded{first, second}, devices: []cost.Device{device, device}, workers: r.testbed.workers}
	var points []Point
	for _, p := range field.playConfigurations(ctx, list, func() {}) {
		if p == nil {
			return nil
		}
		points = append(points, *p)
	}
	return points
}
