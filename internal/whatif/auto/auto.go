// Package auto decides which configuration a program should be under, from what ghosts would have done with the same
// requests. It only decides: who asks it applies what it says. It reads no clock and does no I/O.
package auto

import (
	"slices"

	"codeberg.org/gpumemtop/gpumemtop/internal/replay"
	"codeberg.org/gpumemtop/gpumemtop/internal/whatif/ghost"
)

const (
	leastRequests = 1024        // that make a window: below that a single large miss decides
	leastNS       = 500_000_000 // of a window: ghosts publish ten times a second
	better        = 0.9         // of the present one's time in the driver: what a successor may take at most
	worthWhile    = 1e-3        // of the time that passes: what a successor must save
	worse         = 1.02        // of the time that the base would take: from here on the base comes back
	moreMemory    = 1.25        // of the base's peak: what a successor may hold at most
	patience      = 3           // windows in a row that must say the same at first; each change doubles it
	mostPatience  = 96
	settling      = 1  // windows after a change that say nothing: blocks of two policies are about
	banned        = 32 // windows for which one that was worse than the base does not come back at first
)

// Look is how things stand at a time in ns. The numbers are the program's own, since it started.
type Look struct {
	Time     uint64
	Requests uint64 // that a policy was asked
	Misses   uint64 // of these
	RealNS   uint64 // that it really spent in these requests, and in releases by the driver
	DriverNS uint64 // of that, in what a policy could have avoided: not in hits
	Books    *ghost.Results
}

// Choice is a configuration to switch to.
type Choice struct {
	Configuration replay.Configuration
	Name          string  // of it, as ghosts have it
	Back          bool    // to the base, since the present one turned out to be worse
	Saves         float64 // of the time in the driver, 0 to 1, as the last window has it
}

// Controller watches one program. One goroutine uses it.
type Controller struct {
	base    string
	last    *Look // the end of the window before
	present string
	leader  string
	streak  int // windows in a row that leader has won
	bad     int // windows in a row in which the present one was worse than the base
	settle  int // windows that say nothing yet

	patience  int
	reference rates // under the base, when it was left
	bans      map[string]*ban
	rest      rest
}

// rates are ns for each request: what the program really took, and what the base's ghost took in the same windows.
type rates struct{ real, base float64 }

// ban keeps a configuration away for a number of windows, and for twice as many the next time.
type ban struct{ left, next int }

// New starts a controller for a program that begins under the base, which no other configuration is to be worse than.
// base is the name of its ghost. Without another reader the ghosts may rest, and do so at first.
func New(base string, mayRest bool) *Controller {
	return &Controller{base: base, present: base, patience: patience, bans: map[string]*ban{}, rest: rest{may: mayRest, on: mayRest}}
}

// Look reads the present figures, as often as called, and returns what to switch to, if anything: a configuration that
// would have saved a tenth of the time in the driver, and time that counts, in several windows one after the other, and
// that holds little more memory than the base. The choice counts as made.
func (c *Controller) Look(l Look) (Choice, bool) {
	if c.rest.on {
		if c.rest.wakes(&l) {
			c.last = nil
		}
		return Choice{}, false
	}
	if l.Books == nil {
		return Choice{}, false
	}
	if c.last == nil || c.begun(c.last.Books) != c.begun(l.Books) {
		c.last = &l
		return Choice{}, false
	}
	if l.Time < c.last.Time+leastNS && c.rest.cold == 0 || l.Requests < c.last.Requests+leastRequests {
		return Choice{}, false
	}
	w, whole := newWindow(c, &l)
	if !whole {
		return Choice{}, false // the ghosts are behind
	}
	c.last = &l
	if !c.warm(&w, &l) || c.bide() {
		return Choice{}, false
	}
	choice, ok := c.decide(&w, &l)
	if !ok {
		c.tire(&w, &l)
	}
	return choice, ok
}

// decide returns what to switch to after a window.
func (c *Controller) decide(w *window, l *Look) (Choice, bool) {
	if l.Books.Assumed {
		return Choice{}, false
	}
	if c.present == c.base {
		c.reference = rates{w.real, w.base()}
	}
	if choice, ok := c.back(w); ok {
		return choice, true
	}
	return c.forth(w)
}

// bide lets a window pass for all that waits, and reports whether it says nothing.
func (c *Controller) bide() bool {
	for _, b := range c.bans {
		b.left = max(0, b.left-1)
	}
	c.settle--
	return c.settle >= 0
}

// window is what was done between two looks, in ns for each request.
type window struct {
	elapsed, real float64
	driver        float64 // what part of the time the driver really took
	misses        float64 // of a request, really
	rows          []row
	baseAt, at    int // of base and present one; -1: not there, or not kept up
}

type row struct {
	book   *ghost.Result
	ns     float64
	misses float64 // of a request
}

func (w *window) base() float64 {
	if w.baseAt < 0 {
		return 0
	}
	return w.rows[w.baseAt].ns
}

// newWindow compares a look with the last one. It is not whole while a ghost has not heard of enough requests.
func newWindow(c *Controller, l *Look) (w window, whole bool) {
	requests := float64(l.Requests - c.last.Requests)
	w = window{
		elapsed: float64(l.Time-c.last.Time) / requests, real: float64(l.RealNS-c.last.RealNS) / requests, baseAt: -1, at: -1,
		driver: share(c.last, l), misses: float64(l.Misses-c.last.Misses) / requests,
	}
	since := c.begun(l.Books)
	for i := range l.Books.Rows {
		book := &l.Books.Rows[i]
		before := slices.IndexFunc(c.last.Books.Rows, func(b ghost.Result) bool { return b.Name == book.Name })
		if before < 0 || book.Stopped != "" || book.Since != since {
			continue
		}
		earlier := &c.last.Books.Rows[before]
		heard := book.Requests - earlier.Requests
		if heard < leastRequests/2 {
			return w, false
		}
		switch book.Name {
		case c.base:
			w.baseAt = len(w.rows)
		case c.present:
			w.at = len(w.rows)
		}
		work := book.Work.Since(&earlier.Work)
		missed := float64(heard - (book.Hits - earlier.Hits))
		w.rows = append(w.rows, row{book, work.NS(&l.Books.Device) / float64(heard), missed / float64(heard)})
	}
	if c.present == c.base {
		w.at = w.baseAt
	}
	return w, true
}

// back says to return to the base when the program really takes longer than it would under that: what it took under the
// base then, and what the base's ghost takes more now, or less.
func (c *Controller) back(w *window) (Choice, bool) {
	if c.present == c.base || w.baseAt < 0 {
		return Choice{}, false
	}
	expected := max(0, c.reference.real+w.base()-c.reference.base)
	if w.real <= worse*expected || w.real-expected < worthWhile*w.elapsed {
		c.bad = 0
		return Choice{}, false
	}
	if c.bad++; c.bad < patience {
		return Choice{}, false
	}
	c.ban(c.present)
	c.went(c.base)
	return Choice{Configuration: w.rows[w.baseAt].book.Configuration, Name: c.base, Back: true, Saves: 1 - expected/w.real}, true
}

// forth returns the ghost that took least time, once it has done so for long enough.
func (c *Controller) forth(w *window) (Choice, bool) {
	best := c.best(w)
	if best < 0 {
		c.leader, c.streak = "", 0
		return Choice{}, false
	}
	leader := w.rows[best]
	if leader.book.Name != c.leader {
		c.leader, c.streak = leader.book.Name, 0
	}
	if c.streak++; c.streak < c.patience {
		return Choice{}, false
	}
	c.went(c.leader)
	return Choice{Configuration: leader.book.Configuration, Name: leader.book.Name, Saves: 1 - leader.ns/w.rows[w.at].ns}, true
}

// best returns the index of the one that took least time and is worth switching to, -1 if none is.
func (c *Controller) best(w *window) int {
	if w.at < 0 || w.baseAt < 0 {
		return -1
	}
	best, now := -1, w.rows[w.at].ns
	most := moreMemory * float64(w.rows[w.baseAt].book.PeakReserved)
	for i, r := range w.rows {
		if c.bans[r.book.Name].holds() || float64(r.book.PeakReserved) > most {
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
	c.patience = min(2*c.patience, mostPatience)
	c.rest.length, c.rest.dull, c.rest.quiet = 0, 0, 0
}

func (c *Controller) ban(name string) {
	b := c.bans[name]
	if b == nil {
		b = &ban{next: banned}
		c.bans[name] = b
	}
	b.left, b.next = b.next, 2*b.next
}

func (b *ban) holds() bool { return b != nil && b.left > 0 }
