// Package auto decides which policy a program should be under, from what others would have done with the same
// requests. It only decides: who asks it applies what it says. It reads no clock and does no I/O.
package auto

import (
	"slices"

	"codeberg.org/gpumemtop/gpumemtop/internal/lab"
)

const (
	windowRequests = 1024 // requests that make a window: below that a single large miss decides
	better         = 0.9  // of the present one's time in the driver: what a successor may take at most
	worthWhile     = 1e-3 // of the time that passes: what a successor must save
	worse          = 1.02 // of the base's time in the driver: from here on the base comes back
	moreMemory     = 1.25 // of the base's peak: what a successor may hold at most
	patience       = 3    // windows in a row that must say the same at first; each change doubles it
	mostPatience   = 96
	settling       = 1  // windows after a change that say nothing: blocks of two policies are about
	banned         = 32 // windows for which a policy that was worse than the base does not come back at first
)

// Sample is what a configuration has done since the program started. Times are ns, sizes bytes.
type Sample struct {
	DriverNS     float64
	PeakReserved uint64
	Stopped      bool // it fell behind, and is no longer kept up
}

// Row is a configuration that is kept up beside the program.
type Row struct {
	Configuration lab.Configuration
	Sample
}

// Look is how things stand at a time in ns.
type Look struct {
	Time     uint64
	Requests uint64 // of the program, since it started
	Real     Sample // what the program really did, under whatever it was
	Rows     []Row  // the base and the present one among them
}

// Choice is a configuration to go over to.
type Choice struct {
	Configuration lab.Configuration
	Back          bool    // to the base, since the present one turned out to be worse
	Saves         float64 // of the time in the driver, 0 to 1, as the last windows have it
}

// Controller watches one program. One goroutine uses it.
type Controller struct {
	base, present string
	last          *Look // the end of the window before
	leader        string
	streak        int // windows in a row that leader has won
	bad           int // windows in a row in which the present one was worse than the base
	patience      int
	settle        int
	bans          map[string]*ban
}

// ban keeps a configuration away for so many windows, and for twice as many the next time.
type ban struct{ left, next int }

// New starts a controller for a program that begins under the base, which no other configuration is to be worse than.
func New(base lab.Configuration) *Controller {
	return &Controller{base: base.String(), present: base.String(), patience: patience, bans: map[string]*ban{}}
}

// Present says what the program is under now, when somebody else has changed it.
func (c *Controller) Present(now lab.Configuration) { c.went(now.String()) }

// Look takes in how things stand, as often as one likes, and says what to go over to, if anything: a configuration that
// would have saved a tenth of the time in the driver, and time that counts, in several windows one after the other, and
// that holds little more memory than the base.
func (c *Controller) Look(l Look) (Choice, bool) {
	if c.last == nil || l.Requests < c.last.Requests {
		c.last = keep(l)
		return Choice{}, false
	}
	if l.Requests-c.last.Requests < windowRequests {
		return Choice{}, false
	}
	w := c.window(&l)
	c.last = keep(l)
	c.serve()
	if c.settle > 0 {
		c.settle--
		return Choice{}, false
	}
	if choice, ok := c.back(w); ok {
		return choice, true
	}
	return c.forth(w)
}

// window is what the configurations did between two looks.
type window struct {
	elapsed  float64
	real     float64
	rows     []spent
	base, at int // indexes; -1: not there, or not kept up
}

type spent struct {
	row *Row
	ns  float64
}

func (c *Controller) window(l *Look) window {
	w := window{elapsed: float64(l.Time - c.last.Time), real: l.Real.DriverNS - c.last.Real.DriverNS, base: -1, at: -1}
	for i := range l.Rows {
		row := &l.Rows[i]
		name := row.Configuration.String()
		before := slices.IndexFunc(c.last.Rows, func(r Row) bool { return r.Configuration.String() == name })
		if before < 0 || row.Stopped {
			continue
		}
		if name == c.base {
			w.base = len(w.rows)
		}
		if name == c.present {
			w.at = len(w.rows)
		}
		w.rows = append(w.rows, spent{row, row.DriverNS - c.last.Rows[before].DriverNS})
	}
	return w
}

// back says to return to the base when the program has really been slower than the base would have been.
func (c *Controller) back(w window) (Choice, bool) {
	if c.present == c.base || w.base < 0 || w.real <= worse*w.rows[w.base].ns || w.real-w.rows[w.base].ns < worthWhile*w.elapsed {
		c.bad = 0
		return Choice{}, false
	}
	if c.bad++; c.bad < patience {
		return Choice{}, false
	}
	c.ban(c.present)
	base := w.rows[w.base]
	c.went(c.base)
	return Choice{Configuration: base.row.Configuration, Back: true, Saves: 1 - base.ns/w.real}, true
}

// forth says to go over to the one that took least time, when it has done so for long enough.
func (c *Controller) forth(w window) (Choice, bool) {
	best := c.best(w)
	if best < 0 {
		c.leader, c.streak = "", 0
		return Choice{}, false
	}
	leader := w.rows[best]
	if name := leader.row.Configuration.String(); name != c.leader {
		c.leader, c.streak = name, 0
	}
	if c.streak++; c.streak < c.patience {
		return Choice{}, false
	}
	saves := 1 - leader.ns/w.rows[w.at].ns
	c.went(c.leader)
	c.patience = min(2*c.patience, mostPatience)
	return Choice{Configuration: leader.row.Configuration, Saves: saves}, true
}

// best returns the index of the one that took least time and is worth going over to, -1 when none is.
func (c *Controller) best(w window) int {
	if w.at < 0 || w.base < 0 {
		return -1
	}
	best, now := -1, w.rows[w.at].ns
	most := moreMemory * float64(w.rows[w.base].row.PeakReserved)
	for i, r := range w.rows {
		if c.bans[r.row.Configuration.String()].holds() || float64(r.row.PeakReserved) > most {
			continue
		}
		if r.ns <= better*now && now-r.ns >= worthWhile*w.elapsed && (best < 0 || r.ns < w.rows[best].ns) {
			best = i
		}
	}
	return best
}

func (c *Controller) went(to string) {
	c.present, c.leader, c.streak, c.bad, c.settle = to, "", 0, 0, settling
}

func (c *Controller) ban(name string) {
	b := c.bans[name]
	if b == nil {
		b = &ban{next: banned}
		c.bans[name] = b
	}
	b.left, b.next = b.next, 2*b.next
}

// serve lets a window of each ban pass.
func (c *Controller) serve() {
	for _, b := range c.bans {
		b.left = max(0, b.left-1)
	}
}

func (b *ban) holds() bool { return b != nil && b.left > 0 }

func keep(l Look) *Look {
	l.Rows = slices.Clone(l.Rows)
	return &l
}
