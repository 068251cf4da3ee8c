package curve

import (
	"cmp"
	"fmt"
	"math"
	"slices"

	"codeberg.org/gpumemtop/gpumemtop/allocator"
	"codeberg.org/gpumemtop/gpumemtop/internal/cost"
	"codeberg.org/gpumemtop/gpumemtop/internal/recording"
	"codeberg.org/gpumemtop/gpumemtop/internal/replay"
	"codeberg.org/gpumemtop/gpumemtop/internal/view"
)

// Measurement is the hit rate of a recording by limit of cached bytes.
type Measurement struct {
	Policy   string
	Requests uint64            // poolable requests of all processes
	Present  uint64            // the limit at the start, bytes in each process
	Exact    []view.CurvePoint // ascending by limit, the last without a limit; empty if there were no requests, or the policy has no such limit
	Knee     view.CurvePoint
	Enough   view.CurvePoint // the smallest limit with at least 99 % of the best hit rate
}

const (
	// recordsAtOnce is how many records are looked up before the policies play them.
	recordsAtOnce = 1024
	// Passes is how often Measure reads a recording.
	Passes = 3
	// limitsAtOnce is how many limits are played in one pass.
	limitsAtOnce = 8
)

// MeasureCurve plays a recording through a policy at limits that it chooses: first halves, quarters and so on of what the
// policy caches without a limit, then more limits where the hit rate changes most. That takes three passes, and memory
// that does not grow with events. The present limit is that of the settings. The error is that of the source, or
// reports invalid settings.
func MeasureCurve(src recording.Source, policy string, settings []allocator.Setting) (*Measurement, error) {
	p, err := allocator.New(policy, settings)
	if err != nil {
		return nil, err
	}
	m := &Measurement{Policy: policy, Present: cachedBytesLimit(p.Limits())}
	if !LimitsCachedBytes(policy) {
		return m, nil
	}
	limits := []uint64{min(m.Present, unlimited), unlimited}
	for pass := range Passes {
		if err := m.playAtLimits(src, settings, limits); err != nil || m.Requests == 0 {
			return m, err
		}
		if pass == 0 { // the peak without a limit is now known
			limits = halvedLimits(m.Exact[len(m.Exact)-1].PeakReserved, limitsAtOnce)
			continue
		}
		if limits = m.furtherLimits(limitsAtOnce); len(limits) == 0 {
			break // the hit rate is the same everywhere
		}
	}
	m.Knee, m.Enough = m.pointAt(m.snapshot().KneePoint()), m.pointAt(m.snapshot().NearlyBestPoint())
	return m, nil
}

// unlimited is a limit that no policy reaches.
const unlimited = view.Unlimited

// Names of the limits of cached bytes.
const (
	limitName    = "max_cached_bytes"
	fractionName = "max_cached_fraction"
)

// LimitsCachedBytes reports whether a policy limits what it caches. Other policies have no curve.
func LimitsCachedBytes(policy string) bool {
	d, _ := allocator.DescribePolicy(policy)
	return slices.ContainsFunc(d.Limits, func(l allocator.Limit) bool { return l.Name == limitName })
}

// cachedBytesLimit returns the limit of cached bytes.
func cachedBytesLimit(limits []allocator.Limit) uint64 {
	for _, l := range limits {
		if l.Name == limitName {
			return uint64(l.Value)
		}
	}
	return 0
}

// optionsAtLimit returns the simulation of a policy at a limit.
func optionsAtLimit(policy string, settings []allocator.Setting, limit uint64) replay.Options {
	return replay.Configuration{Policy: policy, Settings: settings}.WithLimit(limitName, fmt.Sprint(limit)).WithLimit(fractionName, "1").OptionsKeepingLimits()
}

// otherSettings returns the settings that do not limit cached bytes.
func otherSettings(settings []allocator.Setting) []allocator.Setting {
	return slices.DeleteFunc(slices.Clone(settings), func(s allocator.Setting) bool {
		return s.Name == limitName || s.Name == fractionName
	})
}

// playAtLimits plays a recording at several limits at once.
func (m *Measurement) playAtLimits(src recording.Source, settings []allocator.Setting, limits []uint64) error {
	limits = slices.Compact(limits)
	simulations := replay.NewBatch()
	for _, limit := range limits {
		if _, err := simulations.AddSimulation(optionsAtLimit(m.Policy, settings, limit)); err != nil {
			return err
		}
	}
	playRead := func() error {
		defer simulations.ForgetReadSteps()
		for i := range limits {
			if err := simulations.PlayMember(i); err != nil {
				return err
			}
		}
		return nil
	}
	read := 0
	for record, err := range recording.Records(src) {
		if err != nil {
			return err
		}
		simulations.ReadRecord(record)
		if read++; read%recordsAtOnce == 0 {
			if err := playRead(); err != nil {
				return err
			}
		}
	}
	simulations.EndStream()
	if err := playRead(); err != nil {
		return err
	}
	m.Requests = simulations.ResultOfMember(0, cost.Device{}).Requests
	if m.Requests == 0 {
		return nil
	}
	for i, limit := range limits {
		r := simulations.ResultOfMember(i, cost.Device{})
		m.Exact = append(m.Exact, Point{Limit: limit, HitRate: r.HitRate(), PeakReserved: r.PeakReserved})
	}
	slices.SortFunc(m.Exact, compareLimits)
	m.Exact = slices.CompactFunc(m.Exact, func(a, b Point) bool { return a.Limit == b.Limit })
	return nil
}

func compareLimits(a, b Point) int { return cmp.Compare(a.Limit, b.Limit) }

// halvedLimits returns n ascending limits: most, and its halves.
func halvedLimits(most uint64, n int) []uint64 {
	limits := make([]uint64, n)
	for i := range limits {
		limits[i] = max(most>>(n-1-i), 1)
	}
	return limits
}

// furtherLimits returns up to n further limits, ascending, where the hit rate changes most from one exact point to the next.
func (m *Measurement) furtherLimits(n int) []uint64 {
	type gap struct{ low, high, change float64 }
	var gaps []gap
	for i := 1; i < len(m.Exact); i++ {
		a, b := &m.Exact[i-1], &m.Exact[i]
		gaps = append(gaps, gap{float64(a.Limit), float64(b.Limit), math.Abs(b.HitRate - a.HitRate)})
	}
	var limits []uint64
	for len(limits) < n && len(gaps) > 0 {
		widest := slices.IndexFunc(gaps, func(g gap) bool {
			return !slices.ContainsFunc(gaps, func(other gap) bool { return other.change > g.change })
		})
		g := gaps[widest]
		gaps = slices.Delete(gaps, widest, widest+1)
		if g.change == 0 {
			break
		}
		if middle := math.Round(math.Sqrt(g.low * g.high)); middle > g.low*1.02 && middle*1.02 < g.high {
			limits = append(limits, uint64(middle))
			gaps = append(gaps, gap{g.low, middle, g.change / 2}, gap{middle, g.high, g.change / 2})
		}
	}
	slices.Sort(limits)
	return limits
}

// Curve returns the measurement for display. It leaves out points above which the hit rate stays equal, because they
// would take space from the others.
func (m *Measurement) Curve() *view.Curve {
	last := len(m.Exact)
	for last > 1 && m.Exact[last-1].HitRate == m.Exact[last-2].HitRate {
		last--
	}
	return &view.Curve{
		Policy: m.Policy, Limits: LimitsCachedBytes(m.Policy), Whole: true, Requests: m.Requests, Knee: m.Knee, Enough: m.Enough,
		Points: append([]Point{{}}, m.Exact[:last]...), Exact: m.Exact[:last],
	}
}

// snapshot returns the curve of the exact points.
func (m *Measurement) snapshot() *Snapshot {
	return &Snapshot{Points: append([]Point{{}}, m.Exact...)}
}

// pointAt returns the first exact point at or above the limit of a point.
func (m *Measurement) pointAt(p Point) Point {
	for _, e := range m.Exact {
		if e.Limit >= p.Limit {
			return e
		}
	}
	return Point{}
}
