package auto

import "codeberg.org/gpumemtop/gpumemtop/internal/whatif/ghost"

const (
	idle      = 5e-3 // of the time that passes: what the driver takes at most where there is nothing to be gained
	louder    = 1.5  // times what it took when the ghosts went to rest, from which on they are asked again
	loudMost  = 2    // looks in a row that say so
	dullMost  = 4    // windows in a row without a leader, after which the ghosts rest though the driver takes time
	restFirst = 5_000_000_000
	restMost  = 64_000_000_000 // ns that they rest at a time: twice as long each time, if nothing came of it
	coldMost  = 8              // windows after a rest in which they may come to hold what the program's pool holds
	astray    = 0.01           // of the requests: how many more than the program the present one's ghost may miss
)

// rest decides when the ghosts have nothing to find and need no records.
type rest struct {
	may, on bool
	last    Look    // while it is on: the look before
	until   uint64  // when it ends, though nothing has changed; 0: it does not
	level   float64 // what part of the time the driver took when it began
	loud    int     // looks in a row that found more
	length  uint64  // of the next
	dull    int     // windows in a row without a leader
	quiet   int     // windows in a row in which all that is in force was found good
	cold    int     // windows that may pass until the ghosts are warm; 0: they are
}

// Resting reports whether the ghosts need not hear of the program. When they hear of it again, they begin with nothing.
func (c *Controller) Resting() bool { return c.rest.on }

// share returns what part of the time the driver took between two looks.
func share(from, to *Look) float64 {
	if to.Time <= from.Time {
		return 0
	}
	return float64(to.DriverNS-from.DriverNS) / float64(to.Time-from.Time)
}

// wakes reports whether a rest ends: the driver takes much more of the time than when it began, or it was long enough.
func (r *rest) wakes(l *Look) bool {
	if r.last.Time == 0 {
		r.last = *l
	}
	part := share(&r.last, l)
	r.last = *l
	if r.loud++; part < max(idle, louder*r.level) {
		r.loud = 0
	}
	if r.loud < loudMost && (r.until == 0 || l.Time < r.until) {
		return false
	}
	r.on, r.loud, r.dull, r.quiet, r.cold = false, 0, 0, 0, coldMost
	return true
}

// begin lets the ghosts rest, for a while or until the driver takes more of the time.
func (r *rest) begin(l *Look, part float64, forAWhile bool) {
	r.on, r.last, r.level, r.until, r.loud = true, *l, part, 0, 0
	if forAWhile {
		r.length = min(max(restFirst, 2*r.length), restMost)
		r.until = l.Time + r.length
	}
}

// warm reports whether the ghosts may be believed after a rest: the present one's misses as little as the program does.
// If that does not come, they rest again.
func (c *Controller) warm(w *window, l *Look) bool {
	r := &c.rest
	if r.cold == 0 {
		return true
	}
	if w.at >= 0 && w.rows[w.at].misses <= w.misses+astray {
		r.cold = 0
		return false // this window was the last that was not
	}
	if r.cold--; r.cold == 0 {
		r.begin(l, w.driver, true)
	}
	return false
}

// tire lets the ghosts rest after a window that led to nothing: the driver takes hardly any time, or none of them has
// been better for a while. What is not the base must have proved good before.
func (c *Controller) tire(w *window, l *Look) {
	r := &c.rest
	r.quiet++
	r.dull++
	if c.bad > 0 {
		r.quiet = 0
	}
	if c.leader != "" {
		r.dull = 0
	}
	away := c.present != c.base
	switch {
	case !r.may || away && r.quiet < patience:
	case w.driver < idle:
		r.begin(l, w.driver, away)
	case r.dull >= dullMost:
		r.begin(l, w.driver, true)
	}
}

// begun returns when the base's ghost began, 0: with the program. Only what began with it compares.
func (c *Controller) begun(b *ghost.Results) uint64 {
	for i := range b.Rows {
		if b.Rows[i].Name == c.base {
			return b.Rows[i].Since
		}
	}
	return 0
}
