package report

import (
	"fmt"
	"strings"

	"codeberg.org/gpumemtop/gpumemtop/internal/replay"
	"codeberg.org/gpumemtop/gpumemtop/internal/units"
)

// PlanJSON is what plans did for a policy that takes them; docs/METRICS.md defines the figures.
type PlanJSON struct {
	Plans      int               `json:"plans"`
	Period     int               `json:"period_requests"`
	Outside    int               `json:"outside_requests"`
	Size       uint64            `json:"arena_bytes"`
	Bound      uint64            `json:"bound_bytes"`
	Planned    uint64            `json:"planned"`
	Departures map[string]uint64 `json:"departures"`
	Reserved   uint64            `json:"peak_reserved_planned"`
	Requested  uint64            `json:"peak_requested_planned"`
}

// newPlanJSON returns nil where the policy takes no plans.
func newPlanJSON(r *replay.Result) *PlanJSON {
	if r.Policy != replay.Learns {
		return nil
	}
	a := &r.Arena
	j := &PlanJSON{
		Plans: a.Plans, Period: a.Period, Outside: a.Outside, Size: a.Size, Bound: a.Bound, Planned: a.Planned,
		Departures: map[string]uint64{}, Reserved: a.Reserved, Requested: a.Wanted,
	}
	for why, n := range a.Departures {
		j.Departures[units.Key(replay.DepartureName(why))] = n
	}
	return j
}

// PlanText says what plans did; empty where the policy takes none.
func PlanText(policy string, a *replay.Arena) string {
	if policy != replay.Learns {
		return ""
	}
	if a.Plans == 0 {
		return "none: no period of requests was found"
	}
	parts := []string{fmt.Sprintf("%s of each period in %s (%s)", units.Count(uint64(a.Period-a.Outside), "request"), units.FormatLong(a.Size), gapText(a))}
	if a.Outside > 0 {
		parts = append(parts, fmt.Sprintf("%d outside", a.Outside))
	}
	all := a.Planned
	var why []string
	for reason, n := range a.Departures {
		if all += n; n > 0 {
			why = append(why, fmt.Sprintf("%d %s", n, replay.DepartureName(reason)))
		}
	}
	parts = append(parts, fmt.Sprintf("%s of %s as planned", units.Percent(float64(a.Planned)/float64(max(all, 1)), all), units.Count(all, "request")))
	if len(why) > 0 {
		parts = append(parts, strings.Join(why, ", "))
	}
	if a.Reserved > 0 {
		parts = append(parts, fmt.Sprintf("then peak %s reserved for %s requested", units.FormatLong(a.Reserved), units.FormatLong(a.Wanted)))
	}
	return strings.Join(parts, "; ")
}

// gapText says how far an arena may be from the smallest.
func gapText(a *replay.Arena) string {
	if a.Size == a.Bound {
		return "optimal"
	}
	return fmt.Sprintf("at least %s, gap %s", units.FormatLong(a.Bound), units.Percent(float64(a.Size)/float64(a.Bound)-1, a.Bound))
}
