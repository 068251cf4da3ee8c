package auto

import "codeberg.org/gpumemtop/gpumemtop/internal/whatif/ghost"

const (
	idleShare        = 5e-3 // share of the elapsed time: below it the driver takes so little that nothing can be gained
	wakeFactor       = 1.5  // times the driver's share when the ghosts began to rest: above this they wake
	wakeObservations = 2    // observations in a row above that share
	leaderlessMax    = 4    // windows in a row without a leader, after which the ghosts rest although the driver takes time
	restFirst        = 5_000_000_000
	restMost         = 64_000_000_000 // ns that the ghosts rest at most; each rest without effect doubles the time
	warmupWindows    = 8              // windows after a rest in which the ghosts' pools may fill
	missRateError    = 0.01           // of the requests: how many more than the program the current configuration's ghost may miss
)

// rest decides when the ghosts have nothing to find and need no records.
type rest struct {
	allowed, active bool
	last            Observation // during a rest: the previous observation
	until           uint64      // when the rest ends, even if nothing changes; 0: never
	shareAtStart    float64     // the driver's share of the time when the rest began
	wakeStreak      int         // observations in a row above the share that wakes
	length          uint64      // of the next rest
	leaderless      int         // windows in a row without a leader
	goodStreak      int         // windows in a row in which the current configuration was not worse than the base
	warmupLeft      int         // windows in which the ghosts' pools may still fill; 0: they are warm
}

// IsResting reports whether the ghosts need no records. After a rest they start with empty pools.
func (c *Controller) IsResting() bool { return c.rest.active }

// driverShare returns the driver's share of the time between two observations.
func driverShare(from, to *Observation) float64 {
	if to.Time <= from.Time {
		return 0
	}
	return float64(to.AvoidableNS-from.AvoidableNS) / float64(to.Time-from.Time)
}

// isRestOver reports whether a rest ends: the driver takes a much larger share of the time than when it began, or the rest
// was long enough.
func (r *rest) isRestOver(o *Observation) bool {
	if r.last.Time == 0 {
		r.last = *o
	}
	driverShare := driverShare(&r.last, o)
	r.last = *o
	if r.wakeStreak++; driverShare < max(idleShare, wakeFactor*r.shareAtStart) {
		r.wakeStreak = 0
	}
	if r.wakeStreak < wakeObservations && (r.until == 0 || o.Time < r.until) {
		return false
	}
	r.active, r.wakeStreak, r.leaderless, r.goodStreak, r.warmupLeft = false, 0, 0, 0, warmupWindows
	return true
}

// beginRest lets the ghosts rest, for a while or until the driver takes a larger share of the time.
func (r *rest) beginRest(o *Observation, part float64, forAWhile bool) {
	r.active, r.last, r.shareAtStart, r.until, r.wakeStreak = true, *o, part, 0, 0
	if forAWhile {
		r.length = min(max(restFirst, 2*r.length), restMost)
		r.until = o.Time + r.length
	}
}

// doGhostFiguresCount reports whether the ghosts' figures count after a rest: the ghost of the current configuration must miss
// about as little as the program. If it does not within the warm-up, the ghosts rest again.
func (c *Controller) doGhostFiguresCount(w *window, o *Observation) bool {
	r := &c.rest
	if r.warmupLeft == 0 {
		return true
	}
	if w.currentRow >= 0 && w.rows[w.currentRow].misses <= w.misses+missRateError {
		r.warmupLeft = 0
		return false // the next window is the first warm one
	}
	if r.warmupLeft--; r.warmupLeft == 0 {
		r.beginRest(o, w.driver, true)
	}
	return false
}

// restIfIdle lets the ghosts rest after a window without a choice, if the driver takes hardly any time, or if no ghost
// was better for a while. A configuration other than the base must have proved good before.
func (c *Controller) restIfIdle(w *window, o *Observation) {
	r := &c.rest
	r.goodStreak++
	r.leaderless++
	if c.worseStreak > 0 {
		r.goodStreak = 0
	}
	if c.leader != "" {
		r.leaderless = 0
	}
	away := c.current != c.baseName
	switch {
	case !r.allowed || away && r.goodStreak < streakFirst:
	case w.driver < idleShare:
		r.beginRest(o, w.driver, away)
	case r.leaderless >= leaderlessMax:
		r.beginRest(o, w.driver, true)
	}
}

// startOfBaseGhost returns when the base's ghost started, 0: with the program. Only ghosts that started at the same time are
// compared.
func (c *Controller) startOfBaseGhost(b *ghost.Results) uint64 {
	for i := range b.Rows {
		if b.Rows[i].Name == c.baseName {
			return b.Rows[i].Since
		}
	}
	return 0
}
