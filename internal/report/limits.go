package report

import (
	"strings"

	"codeberg.org/gpumemtop/gpumemtop/internal/analysis"
	"codeberg.org/gpumemtop/gpumemtop/internal/lab/curve"
	"codeberg.org/gpumemtop/gpumemtop/internal/plain"
	"codeberg.org/gpumemtop/gpumemtop/internal/size"
)

// LimitsJSON is the hit rate by limit of cached bytes in each process.
type LimitsJSON struct {
	Policy   string           `json:"policy"`
	Requests uint64           `json:"requests"`
	Present  uint64           `json:"present_limit"` // 0 where there was no pool
	Knee     uint64           `json:"knee_limit"`
	Enough   uint64           `json:"enough_limit"` // for 99 % of the best hit rate
	Points   []LimitPointJSON `json:"points"`       // ascending, the last without a limit; none where the policy has no such limit
}

// LimitPointJSON is what a replay with a limit found.
type LimitPointJSON struct {
	Limit        *uint64 `json:"limit"` // null: none
	HitRate      float64 `json:"hit_rate"`
	PeakReserved uint64  `json:"peak_reserved"`
}

func limitsJSON(m *curve.Measurement) *LimitsJSON {
	if m == nil {
		return nil
	}
	return &LimitsJSON{
		Policy: m.Policy, Requests: m.Requests, Present: m.Present, Knee: m.Knee.Limit, Enough: m.Enough.Limit,
		Points: each(m.Exact, func(e curve.Exact) LimitPointJSON {
			p := LimitPointJSON{HitRate: e.HitRate, PeakReserved: e.PeakReserved}
			if !e.Unlimited() {
				p.Limit = &e.Limit
			}
			return p
		}),
	}
}

// limits is the section of the hit rate by limit.
func (v *view) limits() section {
	m := v.o.Limits
	if m == nil {
		return section{}
	}
	s := section{heading: "hit rate by limit"}
	fact := func(name, text string) { s.facts = append(s.facts, [2]string{name, text}) }
	if why := noLimits(m); why != "" {
		fact("limit", why)
		return s
	}
	fact("limit", "max_cached_bytes in each process, with "+m.Policy+", of the whole recording"+poolless(m, v.a))
	fact("knee", limitPoint(m, m.Knee)+"; beyond it memory gains less than on average")
	fact("enough", limitPoint(m, m.Enough)+", 99 % of the best or more")
	t := table{columns: []string{"limit", "hit rate", "peak reserved", ""}}
	for i, e := range m.Exact {
		if name := limitName(m, e); name != "" || !level(m.Exact, i) {
			t.add(limitText(e), plain.Percent(e.HitRate, m.Requests), size.Format(e.PeakReserved), name)
		}
	}
	s.tables = []table{t}
	return s
}

// poolless says that what is told of a pool is of one that the programs did not have.
func poolless(m *curve.Measurement, a *analysis.Analysis) string {
	if a.Run.Header.Policy != "none" || m.Policy == "none" {
		return ""
	}
	return " (it had no pool)"
}

// noLimits says why there is nothing to tell, "" where there is something.
func noLimits(m *curve.Measurement) string {
	switch {
	case len(m.Exact) > 0:
		return ""
	case curve.Limited(m.Policy):
		return "nothing was asked of the pool"
	}
	return "policy " + plain.Clean(m.Policy) + " has none of cached bytes"
}

// level reports whether a point is like both of its neighbours.
func level(points []curve.Exact, i int) bool {
	return i > 0 && i+1 < len(points) && points[i-1].HitRate == points[i].HitRate && points[i].HitRate == points[i+1].HitRate
}

func limitPoint(m *curve.Measurement, e curve.Exact) string {
	return limitText(e) + ", " + plain.Percent(e.HitRate, m.Requests)
}

func limitText(e curve.Exact) string {
	if e.Unlimited() {
		return "none"
	}
	return size.Format(e.Limit)
}

// limitName says what a limit is, "" of one that is nothing else.
func limitName(m *curve.Measurement, e curve.Exact) string {
	var names []string
	for _, of := range []struct {
		name  string
		limit uint64
	}{{"present", m.Present}, {"knee", m.Knee.Limit}, {"enough", m.Enough.Limit}} {
		if of.limit == e.Limit {
			names = append(names, of.name)
		}
	}
	return strings.Join(names, ", ")
}
