package analysis

import (
	"fmt"

	"codeberg.org/gpumemtop/gpumemtop/internal/stats"
	"codeberg.org/gpumemtop/gpumemtop/internal/units"
)

// findBetterPolicy finds a policy, or its limits, that do not serve what the best ghost would serve.
func findBetterPolicy(e *Evidence) (Diagnosis, bool) {
	now, would, known := e.compareWithBestGhost()
	best := leadingGhost(e.Run.Ghosts)
	if !known || best.Policy == e.Run.Policy && e.isLimitNamed() {
		return Diagnosis{}, false
	}
	policy, title, text := e.Run.Policy, "%s serves %s of these requests", "%s would serve %s in the last 10 s, simulated beside the run"
	if best.Policy == policy {
		policy += " with its limits"
	}
	if e.State == Over {
		title, text = "%s served %s of the requests", "%s would have served %s, simulated beside the run"
	}
	return Diagnosis{
		Severity: Advice, Title: fmt.Sprintf(title, policy, now.servedPartText()),
		Text:  fmt.Sprintf(text, best.Name, would.servedPartText()),
		Share: would.hitRate() - now.hitRate(), About: AboutGhost,
	}, true
}

// nameLeanestGhost makes a finding name the ghost that reserved the least at no loss of hits, if that is clearly less. Without ghosts policies are
// tried.
func (d *Diagnosis) nameLeanestGhost(e *Evidence) {
	present := e.Run.Ghosts.PresentGhost()
	if present == nil {
		d.offerBestPolicy(lessMemory, "futhark", "slab", "arena")
		return
	}
	now, least := outcomeOfGhost(present), present
	for i := range e.Run.Ghosts.Rows {
		g := &e.Run.Ghosts.Rows[i]
		if o := outcomeOfGhost(g); g.CoversRun() && lessMemory.hasGainedEnough(&now, &o) && g.PeakReserved < least.PeakReserved {
			least = g
		}
	}
	if least != present && present.CoversRun() {
		then := outcomeOfGhost(least)
		then.Unpooled = e.Run.Totals.Unpooled
		d.Text += "; simulated beside the run with " + least.Name + ": " + now.ComparedWithPresentText(then)
	}
}

func outcomeOfGhost(g *stats.Ghost) Outcome {
	return Outcome{Hits: g.Hits, Requests: g.Requests, PeakReserved: g.PeakReserved}
}

// leadingGhost is the leader. Where none leads, as driver calls were not measured, it is the one with the most hits of those that hold at
// most twice as much as the present one. It is nil if nothing compares.
func leadingGhost(g *stats.Ghosts) (best *stats.Ghost) {
	leader, present := g.Leader(), g.PresentGhost()
	if leader != nil || present == nil {
		return leader
	}
	for i := range g.Rows {
		row := &g.Rows[i]
		if row.CoversRun() && row.Requests > 0 && row.PeakReserved <= 2*present.PeakReserved && (best == nil || row.Hits > best.Hits) {
			best = row
		}
	}
	return best
}

// compareWithBestGhost returns what is served, and what the best ghost would serve: of late, or in a run that is over in all.
// known: it is clearly more, also than what a ghost of the present policy serves.
func (e *Evidence) compareWithBestGhost() (now, would Requests, known bool) {
	best, present := leadingGhost(e.Run.Ghosts), e.Run.Ghosts.PresentGhost()
	if best == nil || present == nil || best.Present || e.Run.Policy == "none" {
		return now, would, false
	}
	simulated := newRequests(present.RecentHits, present.RecentRequests)
	switch {
	case e.Late != nil:
		now, would = e.Late.Requests, newRequests(best.RecentHits, best.RecentRequests)
	case e.State != Over || !present.CoversRun():
		return now, would, false
	default:
		t := &e.Run.Totals
		now, would, simulated = Requests{Hits: t.Hits, Misses: t.Misses}, newRequests(best.Hits, best.Requests), newRequests(present.Hits, present.Requests)
	}
	enough := min(now.total(), would.total(), simulated.total()) >= requestsLeast
	return now, would, enough && would.hitRate()-max(now.hitRate(), simulated.hitRate()) >= servesMore
}

// isLimitNamed reports whether another rule names a limit that evicts too much or refuses too much.
func (e *Evidence) isLimitNamed() bool {
	if e.Late == nil {
		return false
	}
	limit, _ := findHarmfulLimit(e)
	site, _ := findWorstMissSite(e)
	return limit.Knob.Limit != "" || site.Knob.Limit != ""
}

// findLeadingGhost finds a policy that could still be chosen, or could have been.
func findLeadingGhost(e *Evidence) (Diagnosis, bool) {
	g := e.Run.Ghosts
	if e.State == BrokenOff || !g.IsWorthMention(e.Length) {
		return Diagnosis{}, false
	}
	if _, misses := findBetterPolicy(e); misses { // which says more
		return Diagnosis{}, false
	}
	would := " would do better"
	if e.State == Over {
		would = " would have done better"
	}
	_, part, _ := g.LeaderSaving()
	return Diagnosis{
		Severity: Advice, Title: g.Leader().Name + would, Share: part, Text: units.Percent(part, 1) +
			" less time in the driver, simulated beside the run", About: AboutGhost,
	}, true
}
