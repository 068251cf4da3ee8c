package report

import (
	"cmp"
	"fmt"
	"strings"

	"codeberg.org/gpumemtop/gpumemtop/internal/replay"
	"codeberg.org/gpumemtop/gpumemtop/internal/stats"
	"codeberg.org/gpumemtop/gpumemtop/internal/units"
	"codeberg.org/gpumemtop/gpumemtop/internal/wire"
)

// PlanJSON has the effect of plans under a policy that takes them; docs/METRICS.md defines the figures.
type PlanJSON struct {
	Plans      uint64            `json:"plans"`
	Period     int               `json:"period_requests,omitempty"`  // of a replay
	Outside    int               `json:"outside_requests,omitempty"` // of a replay
	Places     uint64            `json:"places,omitempty"`           // of a run
	Size       uint64            `json:"arena_bytes"`
	Bound      uint64            `json:"bound_bytes"`
	Planned    uint64            `json:"planned"`
	Departures map[string]uint64 `json:"departures"`
	Learning   uint64            `json:"peak_reserved_learning,omitempty"` // of a run
	Reserved   uint64            `json:"peak_reserved_planned"`
	Requested  uint64            `json:"peak_requested_planned"`
	Unplanned  map[string]uint64 `json:"peak_reserved_by_policy,omitempty"` // poolable memory under other policies, simulated
}

// planEffectOfReplay returns the effect of plans in a replay, nil if the policy takes no plans.
func planEffectOfReplay(r *replay.Result) *PlanJSON {
	if r.Policy != replay.LayoutPolicy {
		return nil
	}
	a := &r.Arena
	j := &PlanJSON{
		Plans: uint64(a.Layouts), Period: a.Period, Outside: a.Outside, Size: a.Size, Bound: a.Bound, Planned: a.Planned,
		Departures: map[string]uint64{}, Reserved: a.Reserved, Requested: a.Wanted,
	}
	for why, n := range a.Departures {
		j.Departures[units.JSONKey(replay.DepartureText(why))] = n
	}
	return j
}

// planEffectOfRun returns the effect of plans in a run, nil if no policy took plans.
func planEffectOfRun(p *stats.Plans) *PlanJSON {
	if p.PlannableRequests() == 0 {
		return nil
	}
	j := &PlanJSON{
		Plans: p.Installed, Places: p.Places, Size: p.Arenas, Bound: p.Bound, Planned: p.Routes[wire.RoutePlanned],
		Departures: map[string]uint64{}, Learning: p.Learning, Reserved: p.Reserved, Requested: p.Requested,
	}
	for route := wire.RouteNoPlanYet; route <= wire.RouteNoArena; route++ {
		j.Departures[units.JSONKey(route.String())] = p.Routes[route]
	}
	return j
}

// ReplayPlanText describes the effect of plans in a replay; empty if the policy takes none.
func ReplayPlanText(policy string, a *replay.Arena) string {
	if policy != replay.LayoutPolicy {
		return ""
	}
	if a.Layouts == 0 && a.Given {
		return "none: the recording has none of the plan's call sites"
	}
	if a.Layouts == 0 {
		return "none: no period of requests was found"
	}
	parts := []string{fmt.Sprintf("%s of each period in %s (%s)", units.Count(uint64(a.Period-a.Outside), "request"),
		units.FormatLong(a.Size), arenaExcessText(a.Size, a.Bound))}
	if a.Outside > 0 {
		parts = append(parts, fmt.Sprintf("%d outside", a.Outside))
	}
	parts = append(parts, servedAsPlannedText(a.Planned, a.Departures[:])...)
	if a.Reserved > 0 {
		parts = append(parts, fmt.Sprintf("then peak %s reserved for %s requested", units.FormatLong(a.Reserved), units.FormatLong(a.Wanted)))
	}
	return strings.Join(parts, "; ")
}

// runPlansText describes the effect of plans in a run; empty if no policy took plans.
func runPlansText(s *stats.Snapshot) string {
	p := &s.Totals.Plans
	if p.PlannableRequests() == 0 {
		return ""
	}
	if p.Installed == 0 {
		return "none: " + cmp.Or(s.NoPlan, "the program got no plan before its end")
	}
	parts := []string{fmt.Sprintf("%s of each iteration in %s (%s)", units.Count(p.Places, "request"),
		units.FormatLong(p.Arenas), arenaExcessText(p.Arenas, p.Bound))}
	parts = append(parts, servedAsPlannedText(p.Routes[wire.RoutePlanned], p.Routes[wire.RouteNoPlanYet:])...)
	text := "peak reserved " + units.FormatLong(p.Learning) + " before"
	if p.Reserved > 0 {
		text += fmt.Sprintf(", then %s for %s requested", units.FormatLong(p.Reserved), units.FormatLong(p.Requested))
	}
	return strings.Join(append(parts, text), "; ")
}

// servedAsPlannedText says how many requests were served as planned, and why others were not.
func servedAsPlannedText(planned uint64, departures []uint64) (parts []string) {
	all := planned
	var why []string
	for reason, n := range departures {
		if all += n; n > 0 {
			why = append(why, fmt.Sprintf("%d %s", n, replay.DepartureText(reason)))
		}
	}
	parts = []string{fmt.Sprintf("%s of %s as planned", units.Percent(float64(planned)/float64(max(all, 1)), all), units.Count(all, "request"))}
	if len(why) > 0 {
		parts = append(parts, strings.Join(why, ", "))
	}
	return parts
}

// arenaExcessText says by how much an arena may exceed the smallest possible one.
func arenaExcessText(size, bound uint64) string {
	switch {
	case size == bound:
		return "optimal"
	case bound == 0:
		return "how small it could be is unknown"
	}
	return fmt.Sprintf("at least %s, gap %s", units.FormatLong(bound), units.Percent(float64(size)/float64(bound)-1, bound))
}

// reservedWithoutPlanText says how much memory other policies would have reserved.
func reservedWithoutPlanText(list []Unplanned) string {
	var parts []string
	for _, u := range list {
		parts = append(parts, fmt.Sprintf("%s %s", u.Policy, units.FormatLong(u.Reserved)))
	}
	return strings.Join(parts, ", ")
}
