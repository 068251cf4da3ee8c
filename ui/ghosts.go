package ui

import (
	"fmt"
	"slices"
	"strconv"

	"codeberg.org/gpumemtop/gpumemtop/internal/stats"
)

// simulatedGhosts returns what other configurations would have done, nil if none are simulated.
func (p *ghostsPane) simulatedGhosts() *stats.Ghosts {
	if p.d.live == nil {
		return nil
	}
	return p.d.live.Ghosts
}

// adoptLeader switches to the configuration that leads the list. Where the list is not on the screen, it only shows the list;
// the same key again switches.
func (p *ghostsPane) adoptLeader() {
	d := p.d
	leader, why := p.leaderToAdopt()
	switch {
	case why != "":
		d.sayMessage(warnStyle, why)
	case d.zoom != paneGhosts:
		d.showPaneAlone(paneGhosts)
		d.sayMessage(warnStyle, "press y again to switch to "+leader.Name+p.gainText())
	case d.policies.requestPolicy(d.o.Adopt, leader.Name, leader.Policy):
		d.sayMessage(warnStyle, "switching to "+leader.Name+p.gainText())
	}
}

// leaderToAdopt returns the ghost that leads, or why the run cannot switch to it.
func (p *ghostsPane) leaderToAdopt() (leader *stats.Ghost, why string) {
	d, g := p.d, p.simulatedGhosts()
	leader = g.Leader()
	switch {
	case g == nil:
		return nil, d.mode.noGhosts
	case leader == nil && g.Stopped != "":
		return nil, "no ghost leads: all " + g.Stopped
	case leader == nil && slices.ContainsFunc(g.Rows, func(row stats.Ghost) bool { return row.Assumed && row.Requests > 0 }):
		return nil, "no ghost leads: too few driver calls were measured so far"
	case leader == nil:
		return nil, "no ghost leads: none has seen the whole run, or there was no request yet"
	case g.PresentGhost() != nil && g.PresentGhost().Policy != d.live.Policy:
		return nil, "the policy has just changed; the ghosts will follow"
	case leader.Present:
		return nil, leader.Name + " leads and is in force"
	case hasPresentMoreHits(g.PresentGhost(), leader):
		return nil, fmt.Sprintf("the present policy is too new to rank, but has had more hits recently: %s %% hits, %s %s %%", formatRatio(g.PresentGhost().RecentHits, g.PresentGhost().RecentRequests),
			leader.Name, formatRatio(leader.RecentHits, leader.RecentRequests))
	}
	if why := p.onlyFromStartText(); why != "" {
		return nil, why + "; to use the leader: gpumemtop " + leader.FlagsText() + " ./app"
	}
	if why := d.policies.obstacleText(); why != "" {
		return nil, why
	}
	switch {
	case d.policies.pendingPolicy() != "":
		return nil, "policy " + d.policies.pendingPolicy() + " is pending"
	case d.o.Adopt == nil:
		return nil, "the policy cannot be changed here"
	}
	return leader, ""
}

// elapsedNS is how long the run took so far, ns.
func (p *ghostsPane) elapsedNS() uint64 { return differenceOrZero(p.d.live.Started, p.d.live.Time) }

// hasPresentMoreHits reports whether the present configuration has had more hits lately than the leader. It began too late to be
// ranked.
func hasPresentMoreHits(present, leader *stats.Ghost) bool {
	return present != nil && !present.CoversRun() && present.Stopped == "" && present.RecentRequests > 0 && leader.RecentRequests > 0 &&
		present.RecentHitRate() > leader.RecentHitRate()
}

// onlyFromStartText says why this run cannot change its policy, which another run could get from its start. It is empty if the run
// can.
func (p *ghostsPane) onlyFromStartText() string {
	switch d := p.d; {
	case !d.mode.pool:
		return "attach only watches"
	case d.hasProgramEnded():
		return "the program has ended"
	case d.hasNoPool() && len(d.live.Change.Former) == 0:
		return "the program was started without a pool"
	}
	return ""
}

// gainText says what the leader would have saved, empty if that is not known.
func (p *ghostsPane) gainText() string {
	_, part, known := p.simulatedGhosts().LeaderSaving()
	if !known {
		return ""
	}
	return ": " + relativeChangeText(-part) + " time in the driver"
}

// relativeChangeText writes a relative change of -1 or more in percent. Close to -100 % it keeps a digit.
func relativeChangeText(part float64) string {
	digits := 0
	if part < -0.99 && part > -1 {
		digits, part = 1, max(part, -0.999)
	}
	text := strconv.FormatFloat(100*part, 'f', digits, 64)
	switch {
	case text == "0" || text == "-0":
		return "±0 %"
	case part < 0:
		return "−" + text[1:] + " %"
	case part >= 10:
		return "×" + strconv.FormatFloat(part+1, 'f', 0, 64)
	}
	return "+" + text + " %"
}
