package export

import "codeberg.org/gpumemtop/gpumemtop/internal/model"

// GhostSummary is what another configuration would have done, or the present one, as far as it was simulated beside the
// run. Keys mean what they mean in what a replay writes.
type GhostSummary struct {
	Configuration string  `json:"configuration"`
	Policy        string  `json:"policy"`
	Present       bool    `json:"present"`           // at the end
	Late          bool    `json:"late,omitempty"`    // it has not seen the begin
	Stopped       string  `json:"stopped,omitempty"` // why it has not seen the end
	Requests      uint64  `json:"requests"`          // hits and misses
	Hits          uint64  `json:"hits"`
	HitRate       float64 `json:"hit_rate"`
	Failures      uint64  `json:"failures"`
	PeakReserved  uint64  `json:"peak_reserved_poolable"`
	DriverNS      float64 `json:"driver_ns_simulated"`
}

// ghostSummaries returns the best first, nil where there are none.
func ghostSummaries(g *model.Ghosts) []GhostSummary {
	if g == nil {
		return nil
	}
	list := []GhostSummary{}
	for i := range g.Rows {
		row := &g.Rows[i]
		list = append(list, GhostSummary{
			Configuration: row.Name, Policy: row.Policy, Present: row.Present, Late: row.Since != 0, Stopped: row.Stopped,
			Requests: row.Requests, Hits: row.Hits, HitRate: row.HitRate(), Failures: row.Failures, PeakReserved: row.PeakReserved,
			DriverNS: row.DriverNS,
		})
	}
	return list
}
