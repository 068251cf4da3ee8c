package report

import (
	"strings"

	"codeberg.org/gpumemtop/gpumemtop/internal/analysis"
	"codeberg.org/gpumemtop/gpumemtop/internal/figures"
	"codeberg.org/gpumemtop/gpumemtop/internal/units"
	"codeberg.org/gpumemtop/gpumemtop/internal/whatif/curve"
)

// LimitsJSON is the hit rate by limit of cached bytes in each process.
type LimitsJSON struct {
	Policy   string           `json:"policy"`
	Requests uint64           `json:"requests"`
	Present  uint64           `json:"present_limit"` // 0 where there was no pool
	Knee     uint64           `json:"knee_limit"`
	Enough   uint64           `json:"enough_limit"` // for 99 % of the best hit rate
	Points   []LimitPointJSON `json:"points"`       // ascending, the last without a limit; none if the policy has no such limit
}

// LimitPointJSON is the result of a replay with one limit.
type LimitPointJSON struct {
	Limit        *uint64 `json:"limit"` // null: none
	HitRate      float64 `json:"hit_rate"`
	PeakReserved uint64  `json:"peak_reserved"`
}

func limitsJSON(m *curve.Measurement) *LimitsJSON {
	if m == nil {
		return nil
	}
	l := &LimitsJSON{
		Policy: m.Policy, Requests: m.Requests, Present: m.Present, Knee: m.Knee.Limit, Enough: m.Enough.Limit, Points: []LimitPointJSON{},
	}
	for i := range m.Exact {
		p := LimitPointJSON{HitRate: m.Exact[i].HitRate, PeakReserved: m.Exact[i].PeakReserved}
		if !m.Exact[i].IsUnlimited() {
			p.Limit = &m.Exact[i].Limit
		}
		l.Points = append(l.Points, p)
	}
	return l
}

// limitsSection is the section of the hit rate by limit.
func (v *view) limitsSection() section {
	m := v.o.Limits
	if m == nil {
		return section{}
	}
	s := section{Title: "Hit rate by limit"}
	if why := whyNoLimitFigures(m); why != "" {
		s.addFact("limit", why)
		return s
	}
	s.addFact("limit", "max_cached_bytes in each process, with "+m.Policy+", of the whole recording"+poollessNote(m, v.a))
	s.addFact("knee", limitAndHitRateText(m, m.Knee)+"; the least within 2 points of the best")
	s.addFact("enough", limitAndHitRateText(m, m.Enough)+", 99 % of the best or more")
	t := v.newTable("", 0, numberColumn("limit"), numberColumn(figures.HitRate.Name), figureColumn(figures.PeakReserved), wordsColumn(""))
	for i, e := range m.Exact {
		if name := limitDistinctionText(m, e); name != "" || !isFlatAround(m.Exact, i) {
			t.addRow(cell{Text: cacheLimitText(e)}, v.rateCell(e.HitRate, m.Requests), v.bytesCell(e.PeakReserved), cell{Text: name})
		}
	}
	s.Tables = []table{t}
	return s
}

// poollessNote returns the note that the programs had no pool, if so.
func poollessNote(m *curve.Measurement, a *analysis.Analysis) string {
	if a.Run.Header.Policy != "none" || m.Policy == "none" {
		return ""
	}
	return " (it had no pool)"
}

// whyNoLimitFigures says why there are no figures, "" if there are.
func whyNoLimitFigures(m *curve.Measurement) string {
	switch {
	case len(m.Exact) > 0:
		return ""
	case curve.LimitsCachedBytes(m.Policy):
		return "nothing was asked of the pool"
	}
	return "policy " + units.Clean(m.Policy) + " has none of cached bytes"
}

// isFlatAround reports whether a point is equal to both of its neighbours.
func isFlatAround(points []curve.Point, i int) bool {
	return i > 0 && i+1 < len(points) && points[i-1].HitRate == points[i].HitRate && points[i].HitRate == points[i+1].HitRate
}

func limitAndHitRateText(m *curve.Measurement, e curve.Point) string {
	return cacheLimitText(e) + ", " + units.Percent(e.HitRate, m.Requests)
}

func cacheLimitText(e curve.Point) string {
	if e.IsUnlimited() {
		return "none"
	}
	return units.Format(e.Limit)
}

// limitDistinctionText says what distinguishes a limit, such as that it is the present one; "" if nothing does.
func limitDistinctionText(m *curve.Measurement, e curve.Point) string {
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
