package timeline

import (
	"sort"

	"codeberg.org/gpumemtop/gpumemtop/internal/recording"
	"codeberg.org/gpumemtop/gpumemtop/internal/stats"
)

// rough is what the summaries tell: samples, and the totals at the end of each, with the bytes of its fullest moment.
type rough struct {
	first   stats.Snapshot // what is known before any event
	samples []stats.Sample
	totals  []stats.Totals
}

func newRough(h recording.Header, o Options) rough {
	known := o.Model(h)
	r := rough{first: stats.Snapshot{
		Time: h.ClockNS, Started: h.ClockNS, Program: known.Program, Arguments: known.Arguments, Policy: known.Policy, Limits: known.Limits,
	}}
	var sum stats.Totals
	latest := h.ClockNS
	for i := range o.Blocks {
		lastNS, b := o.Blocks[i].LastNS, &o.Blocks[i].Summary
		sum.Hits += b.Hits
		sum.Misses += b.Misses
		sum.Creates += b.Creates
		sum.Releases += b.Releases
		sum.InUse, sum.Cached, sum.Cooling = b.InUse, b.Cached, b.Cooling
		if b.InUse > sum.PeakInUse {
			sum.PeakInUse, sum.PeakInUseTime = b.InUse, lastNS
		}
		latest = max(latest, lastNS) // blocks of several processes may overlap a little
		r.totals = append(r.totals, sum)
		r.samples = append(r.samples, stats.Sample{
			Time: latest, InUse: b.InUse, Cached: b.Cached, Cooling: b.Cooling, Hits: b.Hits, Misses: b.Misses, Creates: b.Creates,
		})
	}
	return r
}

// coveredUntil is the latest time that the summaries cover.
func (r *rough) coveredUntil() uint64 {
	if len(r.samples) == 0 {
		return 0
	}
	return r.samples[len(r.samples)-1].Time
}

// roughSnapshot returns the totals of the last summary up to a time, with all else as it was in a picture, nil for none.
func (r *rough) roughSnapshot(at uint64, rest *stats.Snapshot) *stats.Snapshot {
	s := r.first
	if rest != nil {
		s = *rest
	}
	i := sort.Search(len(r.samples), func(i int) bool { return r.samples[i].Time > at }) - 1
	if i < 0 {
		return &s
	}
	s.Totals, s.Time = r.totals[i], r.samples[i].Time
	return &s
}
