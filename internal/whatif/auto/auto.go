// Package auto proposes configurations that may suit a program better: no pool, and configurations whose ghosts did
// better with the same requests. Its caller tries a proposal in the program, and applies it if it is better. The
// package reads no clock and does no I/O.
package auto

import (
	"slices"

	"codeberg.org/gpumemtop/gpumemtop/internal/replay"
	"codeberg.org/gpumemtop/gpumemtop/internal/whatif/ghost"
)

const (
	windowRequestsMin = 1024        // requests in a window: in a shorter window a single large miss decides
	windowNSMin       = 500_000_000 // ns of a window: ghosts publish ten times a second
	successorTimeMax  = 0.9         // a successor may take this share of the current driver time
	savingMin         = 1e-3        // a successor must save this share of the elapsed time
	baseTimeFactorMax = 1.02        // the base returns if the program takes more than this many times its expected time under the base
	peakFactorMax     = 1.25        // a successor may reserve this many times the base's peak
	lessMemoryMax     = 0.75        // a successor that is not faster may reserve this share of the current peak
	streakFirst       = 3           // windows in a row that must have the same leader at first; each trial doubles the number
	streakMax         = 96
	settlingWindows   = 1              // windows after a trial that do not count, because blocks of the other policy are still there
	banFirst          = 32             // windows for which a configuration that lost a trial is banned the first time
	noPoolAgain       = 60_000_000_000 // ns from the first trial of no pool to the next; each trial doubles the time
)

// Observation is the state of the program at a time in ns. The numbers count from its start.
type Observation struct {
	Time        uint64
	Requests    uint64 // requests that a policy got
	Misses      uint64 // misses among the requests
	PoolNS      uint64 // measured time of these requests, and of the driver's releases
	AvoidableNS uint64 // the part of PoolNS outside hits, which another policy could avoid
	Results     *ghost.Results
}

// NoPool is the name of the configuration without a pool. No ghost proposes it, because only the program shows what a
// pool costs.
const NoPool = "none"

// Choice is a configuration to try.
type Choice struct {
	Configuration replay.Configuration
	Name, Current string    // names of its ghost, and of the ghost of the configuration in force
	Peak          [2]uint64 // peak bytes that these two ghosts reserved; 0: unknown
}

// SavesMemory reports whether the choice needs less memory, as its ghost shows.
func (c *Choice) SavesMemory() bool {
	return c.Peak[0] > 0 && float64(c.Peak[0]) <= lessMemoryMax*float64(c.Peak[1])
}

// Controller watches one program. One goroutine uses it.
type Controller struct {
	baseName    string
	last        *Observation // the end of the previous window
	current     string       // name of the configuration in force
	leader      string       // name of the configuration that won the last window
	streak      int          // windows in a row that the leader has won
	worseStreak int          // windows in a row in which the current configuration was worse than the base
	settling    int          // windows that do not count yet

	streakMin int   // windows in a row that a leader must win
	reference rates // under the base, when the base was last in force
	bans      map[string]*ban
	rest      rest

	trial      string // the configuration that is tried; empty: none
	noPoolDue  uint64 // when NoPool is tried next, in ns
	noPoolWait uint64 // ns from that trial to the one after it
}

// rates are times in ns per request: measured in the program, and of the base's ghost in the same window.
type rates struct{ real, base float64 }

// ban keeps a configuration away for a number of windows, and for twice as many the next time.
type ban struct{ left, next int }

// New returns a controller for a program that starts under the base configuration. baseName is the name of the base's
// ghost. mayRest says that nothing else reads the ghosts' figures: then the ghosts may rest, and rest at first.
func New(baseName string, mayRest bool) *Controller {
	return &Controller{baseName: baseName, current: baseName, streakMin: streakFirst, bans: map[string]*ban{}, rest: rest{allowed: mayRest, active: mayRest}, noPoolWait: noPoolAgain}
}

// ChooseConfigurationToTry takes an observation and returns the configuration to try, if any. It first proposes no pool. Later it
// proposes a configuration that would have saved a tenth of the driver time, and a relevant share of the elapsed time,
// in several windows in a row, and reserves little more memory than the base; or a configuration that takes no more
// time and reserves a quarter less. Decide may be called at any rate, but after a choice only when NoteTrialResult was called.
func (c *Controller) ChooseConfigurationToTry(o Observation) (Choice, bool) {
	choice, ok := c.chooseNext(&o)
	if ok {
		choice.Current, c.trial = c.current, choice.Name
	}
	return choice, ok
}

// NoteTrialResult notes the result of the trial of the choice. The configuration that lost is banned for a while.
func (c *Controller) NoteTrialResult(adopted bool) {
	loser := c.trial
	if adopted {
		loser, c.current = c.current, c.trial
	}
	c.banConfiguration(loser)
	c.last, c.trial = nil, ""
	c.leader, c.streak, c.worseStreak, c.settling = "", 0, 0, settlingWindows
	c.streakMin = min(2*c.streakMin, streakMax)
	c.rest.last, c.rest.length, c.rest.leaderless, c.rest.goodStreak = Observation{}, 0, 0, 0
}

func (c *Controller) chooseNext(o *Observation) (Choice, bool) {
	if c.current != NoPool && o.Requests > 0 && o.Time >= c.noPoolDue {
		c.noPoolDue, c.noPoolWait = o.Time+c.noPoolWait, 2*c.noPoolWait
		return Choice{Configuration: replay.Configuration{Policy: NoPool}, Name: NoPool}, true
	}
	if c.rest.active {
		if c.rest.isRestOver(o) {
			c.last = nil
		}
		return Choice{}, false
	}
	if o.Results == nil {
		return Choice{}, false
	}
	if c.last == nil || c.startOfBaseGhost(c.last.Results) != c.startOfBaseGhost(o.Results) {
		c.last = o
		return Choice{}, false
	}
	if o.Time < c.last.Time+windowNSMin && c.rest.warmupLeft == 0 || o.Requests < c.last.Requests+windowRequestsMin {
		return Choice{}, false
	}
	w, whole := newWindow(c, o)
	if !whole {
		return Choice{}, false // some ghost has not seen enough requests yet
	}
	c.last = o
	if !c.doGhostFiguresCount(&w, o) || c.isWindowIgnored() {
		return Choice{}, false
	}
	choice, ok := c.chooseAfterWindow(&w, o)
	if !ok {
		c.restIfIdle(&w, o)
	}
	return choice, ok
}

// chooseAfterWindow returns the configuration to try after a window, if any.
func (c *Controller) chooseAfterWindow(w *window, o *Observation) (Choice, bool) {
	if o.Results.Assumed {
		return Choice{}, false
	}
	if c.current == c.baseName {
		c.reference = rates{w.real, w.nsOfBase()}
	}
	if choice, ok := c.baseIfFaster(w); ok {
		return choice, true
	}
	return c.leaderAfterStreak(w)
}

// isWindowIgnored counts a window for bans and settling, and reports whether the window does not count.
func (c *Controller) isWindowIgnored() bool {
	for _, b := range c.bans {
		b.left = max(0, b.left-1)
	}
	c.settling--
	return c.settling >= 0
}

// window compares two observations, in ns per request.
type window struct {
	elapsed, real       float64
	driver              float64 // share of the elapsed time that the driver really took
	misses              float64 // per request, measured
	rows                []row
	baseRow, currentRow int // indices in rows of the base and the current configuration; -1: not there, or lagging
}

// row is the work of one ghost in a window.
type row struct {
	result *ghost.Result
	ns     float64
	misses float64 // per request
}

func (w *window) nsOfBase() float64 {
	if w.baseRow < 0 {
		return 0
	}
	return w.rows[w.baseRow].ns
}

// newWindow compares an observation with the last one. whole is false while a ghost has not seen enough requests.
func newWindow(c *Controller, o *Observation) (w window, whole bool) {
	requests := float64(o.Requests - c.last.Requests)
	w = window{
		elapsed: float64(o.Time-c.last.Time) / requests, real: float64(o.PoolNS-c.last.PoolNS) / requests, baseRow: -1, currentRow: -1,
		driver: driverShare(c.last, o), misses: float64(o.Misses-c.last.Misses) / requests,
	}
	since := c.startOfBaseGhost(o.Results)
	for i := range o.Results.Rows {
		result := &o.Results.Rows[i]
		index := slices.IndexFunc(c.last.Results.Rows, func(b ghost.Result) bool { return b.Name == result.Name })
		if index < 0 || result.Stopped != "" || result.Since != since {
			continue
		}
		earlier := &c.last.Results.Rows[index]
		requestsSeen := result.Requests - earlier.Requests
		if requestsSeen < windowRequestsMin/2 {
			return w, false
		}
		switch result.Name {
		case c.baseName:
			w.baseRow = len(w.rows)
		case c.current:
			w.currentRow = len(w.rows)
		}
		work := result.Work.CallsSince(&earlier.Work)
		missed := float64(requestsSeen - (result.Hits - earlier.Hits))
		w.rows = append(w.rows, row{result, work.TotalNS(&o.Results.Device) / float64(requestsSeen), missed / float64(requestsSeen)})
	}
	if c.current == c.baseName {
		w.currentRow = w.baseRow
	}
	return w, true
}

// baseIfFaster returns the base if the program really takes longer than it would under the base. The expected time is
// what the program took under the base then, plus the change of the base ghost's time since.
func (c *Controller) baseIfFaster(w *window) (Choice, bool) {
	if c.current == c.baseName || w.baseRow < 0 || c.bans[c.baseName].isActive() {
		return Choice{}, false
	}
	expected := max(0, c.reference.real+w.nsOfBase()-c.reference.base)
	if w.real <= baseTimeFactorMax*expected || w.real-expected < savingMin*w.elapsed {
		c.worseStreak = 0
		return Choice{}, false
	}
	if c.worseStreak++; c.worseStreak < streakFirst {
		return Choice{}, false
	}
	return w.proposeRow(w.baseRow), true
}

// proposeRow proposes the configuration of a row.
func (w *window) proposeRow(row int) Choice {
	r := w.rows[row].result
	choice := Choice{Configuration: r.Configuration, Name: r.Name}
	if w.currentRow >= 0 {
		choice.Peak = [2]uint64{r.PeakReserved, w.rows[w.currentRow].result.PeakReserved}
	}
	return choice
}

// leaderAfterStreak returns the ghost that takes the least time, once it has led for enough windows.
func (c *Controller) leaderAfterStreak(w *window) (Choice, bool) {
	best := c.rowWorthTrial(w)
	if best < 0 {
		c.leader, c.streak = "", 0
		return Choice{}, false
	}
	leader := w.rows[best]
	if leader.result.Name != c.leader {
		c.leader, c.streak = leader.result.Name, 0
	}
	if c.streak++; c.streak < c.streakMin {
		return Choice{}, false
	}
	return w.proposeRow(best), true
}

// rowWorthTrial returns the index of the ghost that takes the least time and is worth a trial. If there is none, it returns
// the index of the ghost with the least memory among those that take no more time than the current one, -1 if there is
// none either.
func (c *Controller) rowWorthTrial(w *window) int {
	if w.currentRow < 0 || w.baseRow < 0 {
		return -1
	}
	best, least, current := -1, -1, w.rows[w.currentRow].ns
	peakMax := peakFactorMax * float64(w.rows[w.baseRow].result.PeakReserved)
	leastPeak := lessMemoryMax * float64(w.rows[w.currentRow].result.PeakReserved)
	for i, r := range w.rows {
		if c.bans[r.result.Name].isActive() || r.result.Assumed || float64(r.result.PeakReserved) > peakMax {
			continue
		}
		if r.ns <= successorTimeMax*current && current-r.ns >= savingMin*w.elapsed && (best < 0 || r.ns < w.rows[best].ns) {
			best = i
		}
		if peak := float64(r.result.PeakReserved); r.ns <= current && peak <= leastPeak && i != w.currentRow {
			least, leastPeak = i, peak
		}
	}
	if best < 0 {
		return least
	}
	return best
}

func (c *Controller) banConfiguration(name string) {
	b := c.bans[name]
	if b == nil {
		b = &ban{next: banFirst}
		c.bans[name] = b
	}
	b.left, b.next = b.next, 2*b.next
}

func (b *ban) isActive() bool { return b != nil && b.left > 0 }
