package devicebench

import (
	"maps"
	"slices"
)

// costs are the repetitions with one size, ns.
type costs struct {
	create, touch, reuse, release, firstUse, afterUse []float64
	n                                                 int
}

func (c *costs) addSample(s *sample) {
	c.n++
	c.create = append(c.create, s.Create)
	c.reuse = append(c.reuse, s.Again)
	c.release = append(c.release, s.Release)
	first := s.First - s.Again
	if !s.Poked {
		c.touch = append(c.touch, first)
		return
	}
	c.firstUse = append(c.firstUse, s.Poke-s.PokeAgain)
	c.afterUse = append(c.afterUse, first)
}

// medianOfDifferences is the median of differences; what is below 0 is noise.
func medianOfDifferences(values []float64) float64 { return max(0, median(values)) }

// gathered is what the child reported about a device so far.
type gathered struct {
	steady, fresh         map[uint64]*costs
	subCreate, subRelease []float64
}

func newGathered() *gathered {
	return &gathered{steady: map[uint64]*costs{}, fresh: map[uint64]*costs{}}
}

func (g *gathered) addSample(s *sample) {
	into := g.steady
	if s.Fresh {
		into = g.fresh
	}
	if into[s.Size] == nil {
		into[s.Size] = &costs{}
	}
	into[s.Size].addSample(s)
}

// medianPoints returns the medians, ascending by size. A size whose first touch was never seen in the steady state is left
// out.
func (g *gathered) medianPoints() []Point {
	list := []Point{}
	for _, size := range slices.Sorted(maps.Keys(g.steady)) {
		c := g.steady[size]
		if len(c.touch) == 0 {
			continue
		}
		p := Point{
			Size: size, N: c.n, Create: median(c.create), Touch: medianOfDifferences(c.touch), Reuse: median(c.reuse),
			Release: median(c.release), FirstUse: medianOfDifferences(c.firstUse), AfterUse: medianOfDifferences(c.afterUse),
		}
		if f := g.fresh[size]; f != nil && len(f.touch) > 0 {
			p.Fresh = &Fresh{median(f.create), medianOfDifferences(f.touch), medianOfDifferences(f.firstUse), medianOfDifferences(f.afterUse), f.n}
		}
		list = append(list, p)
	}
	return list
}

// Costs below these are unknown: the clock's grain, and the part of a cost by which differences from it scatter.
const (
	grain   = 20.0 // ns
	scatter = 0.1
)

// fitAndJudge fits and judges what was gathered.
func (g *gathered) fitAndJudge(d *Device) {
	d.Points = g.medianPoints()
	d.SubCreate, d.SubRelease = median(g.subCreate), median(g.subRelease)
	d.Verdict = residencyOfLargeSizes(d.Points)
	d.Create = fitCostOfPoints(d.Points, func(p *Point) (float64, float64) { return p.Create, 0 })
	d.Touch = fitCostOfPoints(d.Points, func(p *Point) (float64, float64) { return p.Touch, scatter * p.Reuse })
	d.Reuse = fitCostOfPoints(d.Points, func(p *Point) (float64, float64) { return p.Reuse, 0 })
	d.Release = fitCostOfPoints(d.Points, func(p *Point) (float64, float64) { return p.Release, 0 })
	if fresh := pointsMeasuredFresh(d.Points); len(fresh) > 0 {
		d.New = &New{
			Create: fitCostOfPoints(fresh, func(p *Point) (float64, float64) { return p.Fresh.Create, 0 }),
			Touch:  fitCostOfPoints(fresh, func(p *Point) (float64, float64) { return p.Fresh.Touch, scatter * p.Reuse }),
		}
	}
}

// fitCostOfPoints fits one of the costs of points, which has some noise, ns.
func fitCostOfPoints(points []Point, cost func(*Point) (ns, noise float64)) Fit {
	list := make([]measured, len(points))
	for i := range points {
		ns, noise := cost(&points[i])
		list[i] = measured{points[i].Size, ns, max(ns, noise, grain)}
	}
	return fitLines(list)
}
