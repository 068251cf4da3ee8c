package check

import (
	"codeberg.org/gpumemtop/gpumemtop/internal/analysis"
	"codeberg.org/gpumemtop/gpumemtop/internal/stats"
)

// kind is what the values of a rule measure.
type kind uint8

const (
	amount kind = iota
	count
	rate
	nanos
)

// metric is one figure that a rule can bound.
type metric struct {
	key  string // of the rule, with max_ or min_
	kind kind
	help string
	// whole returns the figure of a run; if known is false there is nothing to judge, and why gives the reason.
	whole func(a *analysis.Analysis) (value float64, known bool, why string)
	// tag returns the figure of a call site; nil: the rule is for whole runs only.
	tag func(a *analysis.Analysis, t *stats.Tag) (value float64, known bool, why string)
}

// lostEvents is the rule that holds by default.
const lostEvents = "max_lost_events"

// metrics is the table of all rules.
var metrics = []metric{
	{"max_peak_in_use", amount, "most memory in use at one time", of(func(a *analysis.Analysis) uint64 { return a.Peak.InUse }), tagOf(func(t *stats.Tag) uint64 { return t.PeakInUse })},
	{"max_peak_reserved", amount, "most memory reserved at one time", total(func(t *stats.Totals) uint64 { return t.PeakReserved }), nil},
	{"max_peak_cached", amount, "most memory cached at one time", total(func(t *stats.Totals) uint64 { return t.PeakCached }), nil},
	{"max_leaked_bytes", amount, "memory never released", leaked(func(l *analysis.Leak) uint64 { return l.Bytes }), tagLeak(func(l *analysis.Leak) uint64 { return l.Bytes })},
	{"max_leaked_buffers", count, "never released", leaked(func(l *analysis.Leak) uint64 { return l.Buffers }), tagLeak(func(l *analysis.Leak) uint64 { return l.Buffers })},
	{"max_leaked_objects", count, "events, kernels, queues and so on never released", leakedObjects(func(t stats.ObjectType) bool { return t < stats.SubBuffers }), nil},
	{"max_leaked_events", count, "of these, events", leakedObjects(func(t stats.ObjectType) bool { return t == stats.Events }), nil},
	{"max_object_growth", count, "growth of these per iteration", objectGrowth, nil},
	{"min_hit_rate", rate, "share of poolable requests that the pool served", hitRate, tagHitRate},
	{"min_steady_hit_rate", rate, "the same for the later half of the requests", steadyRate, nil},
	{"max_misses", count, "poolable requests that reached the driver", total(func(t *stats.Totals) uint64 { return t.Misses }), tagOf(func(t *stats.Tag) uint64 { return t.Misses })},
	{"max_waste", rate, "(granted - requested) / granted at the peak", waste, nil},
	{"max_external_fragmentation", rate, "1 - largest free / all free, at the end", fragmentation, nil},
	{"max_growth", amount, "growth of memory in use per iteration, the median", growth, nil},
	{"max_creates", count, "buffers created", total(func(t *stats.Totals) uint64 { return t.Creates }), tagOf(func(t *stats.Tag) uint64 { return t.Creates })},
	{"max_driver_creates", count, "creates that reached the driver", total(func(t *stats.Totals) uint64 { return t.DriverCreates }), nil},
	{"max_driver_time", nanos, "time in the driver's creates and releases", total(func(t *stats.Totals) uint64 { return t.DriverNS }), nil},
	{"max_mistakes", count, "certain mistakes of the program", mistakes, nil},
	{lostEvents, count, "events missing from the recording", of(func(a *analysis.Analysis) uint64 { return a.Snapshot.Lost }), nil},
}

// of is for figures that are always known.
func of(value func(*analysis.Analysis) uint64) func(*analysis.Analysis) (float64, bool, string) {
	return func(a *analysis.Analysis) (float64, bool, string) { return float64(value(a)), true, "" }
}

func total(value func(*stats.Totals) uint64) func(*analysis.Analysis) (float64, bool, string) {
	return of(func(a *analysis.Analysis) uint64 { return value(&a.Snapshot.Totals) })
}

func tagOf(value func(*stats.Tag) uint64) func(*analysis.Analysis, *stats.Tag) (float64, bool, string) {
	return func(_ *analysis.Analysis, t *stats.Tag) (float64, bool, string) { return float64(value(t)), true, "" }
}

func leaked(value func(*analysis.Leak) uint64) func(*analysis.Analysis) (float64, bool, string) {
	return of(func(a *analysis.Analysis) uint64 {
		var sum uint64
		for i := range a.Leaks {
			sum += value(&a.Leaks[i])
		}
		return sum
	})
}

func tagLeak(value func(*analysis.Leak) uint64) func(*analysis.Analysis, *stats.Tag) (float64, bool, string) {
	return func(a *analysis.Analysis, t *stats.Tag) (float64, bool, string) {
		for i := range a.Leaks {
			if a.Leaks[i].Name == t.Name {
				return float64(value(&a.Leaks[i])), true, ""
			}
		}
		return 0, true, ""
	}
}

// leakedObjects counts objects of some types.
func leakedObjects(counts func(stats.ObjectType) bool) func(*analysis.Analysis) (float64, bool, string) {
	return of(func(a *analysis.Analysis) uint64 {
		var sum uint64
		for i := range a.Snapshot.Objects {
			if c := &a.Snapshot.Objects[i]; counts(c.Type) {
				sum += c.Leaked
			}
		}
		return sum
	})
}

func objectGrowth(a *analysis.Analysis) (float64, bool, string) {
	most, known := 0.0, false
	for i := range a.Phases {
		known = known || a.Phases[i].Iterations > 0
		sum := 0.0
		for _, g := range a.Phases[i].Objects {
			if !g.SharesMemory() {
				sum += g.PerIteration
			}
		}
		most = max(most, sum)
	}
	return most, known, "no iterations were found, so growth is unknown"
}

func hitRate(a *analysis.Analysis) (float64, bool, string) {
	t := &a.Snapshot.Totals
	return rateOf(a, t.HitRate(), t.Hits+t.Misses)
}

func tagHitRate(a *analysis.Analysis, t *stats.Tag) (float64, bool, string) {
	return rateOf(a, t.HitRate(), t.Hits+t.Misses)
}

func steadyRate(a *analysis.Analysis) (float64, bool, string) {
	t := &a.Snapshot.Totals
	return rateOf(a, t.SteadyHitRate(), t.SteadyRequests)
}

// rateOf returns a hit rate if there was a pool and a poolable request.
func rateOf(a *analysis.Analysis, hits float64, requests uint64) (rate float64, known bool, reason string) {
	switch {
	case a.Snapshot.Policy == "none":
		return 0, false, "there was no pool"
	case requests == 0:
		return 0, false, "no request was poolable"
	}
	return hits, true, ""
}

func waste(a *analysis.Analysis) (float64, bool, string) {
	var granted, requested uint64
	for i := range a.Peak.Tags {
		granted += a.Peak.Tags[i].InUse
		requested += a.Peak.Tags[i].Requested
	}
	if granted <= requested {
		return 0, true, "" // nothing in use wastes nothing
	}
	return float64(granted-requested) / float64(granted), true, ""
}

func fragmentation(a *analysis.Analysis) (float64, bool, string) {
	return a.Snapshot.Totals.ExternalFragmentation(), true, ""
}

func growth(a *analysis.Analysis) (float64, bool, string) {
	most, known := 0.0, false
	for i := range a.Phases {
		if p := &a.Phases[i]; p.Iterations > 0 {
			if g := float64(p.Growth); !known || g > most {
				most = g
			}
			known = true
		}
	}
	return most, known, "no iterations were found, so growth is unknown"
}

func mistakes(a *analysis.Analysis) (float64, bool, string) {
	certain := 0
	for i := range a.Snapshot.Findings {
		if a.Snapshot.Findings[i].Certain() {
			certain++
		}
	}
	return float64(certain) + float64(a.Snapshot.OtherFindings), true, ""
}
