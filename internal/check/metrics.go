package check

import (
	"codeberg.org/gpumemtop/gpumemtop/internal/analysis"
	"codeberg.org/gpumemtop/gpumemtop/internal/model"
)

// kind says what the values of a rule look like.
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
	// whole returns the figure of a run; known is false when there is nothing to judge, and why says so.
	whole func(a *analysis.Analysis) (value float64, known bool, why string)
	// tag returns that of a call site; nil: the rule is for whole runs only.
	tag func(a *analysis.Analysis, t *model.Tag) (value float64, known bool, why string)
}

// lostEvents is the rule that holds when nobody gives it.
const lostEvents = "max_lost_events"

// metrics is the table of all rules.
var metrics = []metric{
	{"max_peak_in_use", amount, "most granted to the application at one time", of(func(a *analysis.Analysis) uint64 { return a.Peak.InUse }), tagOf(func(t *model.Tag) uint64 { return t.PeakInUse })},
	{"max_peak_reserved", amount, "most held from the driver at one time, in use or not", total(func(t *model.Totals) uint64 { return t.PeakReserved }), nil},
	{"max_peak_cached", amount, "most free in the pool at one time", total(func(t *model.Totals) uint64 { return t.PeakCached }), nil},
	{"max_leaked_bytes", amount, "granted and never released", leaked(func(l *analysis.Leak) uint64 { return l.Bytes }), tagLeak(func(l *analysis.Leak) uint64 { return l.Bytes })},
	{"max_leaked_buffers", count, "never released", leaked(func(l *analysis.Leak) uint64 { return l.Buffers }), tagLeak(func(l *analysis.Leak) uint64 { return l.Buffers })},
	{"min_hit_rate", rate, "of poolable requests, served from the pool", hitRate, tagHitRate},
	{"min_steady_hit_rate", rate, "the same of the later half of the requests", steadyRate, nil},
	{"max_misses", count, "poolable requests that reached the driver", total(func(t *model.Totals) uint64 { return t.Misses }), tagOf(func(t *model.Tag) uint64 { return t.Misses })},
	{"max_waste", rate, "(granted - requested) / granted at the peak", waste, nil},
	{"max_external_fragmentation", rate, "1 - largest free / all free, at the end", fragmentation, nil},
	{"max_growth", amount, "more in use after an iteration than before it, the median", growth, nil},
	{"max_creates", count, "by the application", total(func(t *model.Totals) uint64 { return t.Creates }), tagOf(func(t *model.Tag) uint64 { return t.Creates })},
	{"max_driver_creates", count, "that reached the driver", total(func(t *model.Totals) uint64 { return t.DriverCreates }), nil},
	{"max_driver_time", nanos, "spent in the driver's creates and releases", total(func(t *model.Totals) uint64 { return t.DriverNS }), nil},
	{"max_mistakes", count, "kinds of mistakes that are certain, one for each place", mistakes, nil},
	{lostEvents, count, "events that the recording lacks", of(func(a *analysis.Analysis) uint64 { return a.Snapshot.Lost }), nil},
}

// of takes a figure that is always known.
func of(value func(*analysis.Analysis) uint64) func(*analysis.Analysis) (float64, bool, string) {
	return func(a *analysis.Analysis) (float64, bool, string) { return float64(value(a)), true, "" }
}

func total(value func(*model.Totals) uint64) func(*analysis.Analysis) (float64, bool, string) {
	return of(func(a *analysis.Analysis) uint64 { return value(&a.Snapshot.Totals) })
}

func tagOf(value func(*model.Tag) uint64) func(*analysis.Analysis, *model.Tag) (float64, bool, string) {
	return func(_ *analysis.Analysis, t *model.Tag) (float64, bool, string) { return float64(value(t)), true, "" }
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

func tagLeak(value func(*analysis.Leak) uint64) func(*analysis.Analysis, *model.Tag) (float64, bool, string) {
	return func(a *analysis.Analysis, t *model.Tag) (float64, bool, string) {
		for i := range a.Leaks {
			if a.Leaks[i].Name == t.Name {
				return float64(value(&a.Leaks[i])), true, ""
			}
		}
		return 0, true, ""
	}
}

func hitRate(a *analysis.Analysis) (float64, bool, string) {
	t := &a.Snapshot.Totals
	return rateOf(a, t.HitRate(), t.Hits+t.Misses)
}

func tagHitRate(a *analysis.Analysis, t *model.Tag) (float64, bool, string) {
	return rateOf(a, t.HitRate(), t.Hits+t.Misses)
}

func steadyRate(a *analysis.Analysis) (float64, bool, string) {
	t := &a.Snapshot.Totals
	return rateOf(a, t.SteadyHitRate(), t.SteadyRequests)
}

// rateOf is a hit rate, where there is a pool and something to serve.
func rateOf(a *analysis.Analysis, hits float64, requests uint64) (rate float64, known bool, reason string) {
	switch {
	case a.Snapshot.Policy == "none":
		return 0, false, "there was no pool that could have hit"
	case requests == 0:
		return 0, false, "no request could have been served from the pool"
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
	return most, known, "nothing that repeats was found, so that growth cannot be judged"
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
