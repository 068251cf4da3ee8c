package stats

import "strings"

// Ghosts say what other policies and limits would have done with the run so far. internal/whatif/ghost simulates each of them
// on a simulated driver. Ghosts are immutable.
type Ghosts struct {
	Rows    []Ghost // best first: see docs/METRICS.md
	Events  uint64  // that the ghosts have simulated
	Stopped string  // why all ghosts have stopped; empty: they go on

	// A create in the driver takes A + B·size ns, and so does a release. Assumed: too few calls were timed so far, and these
	// are round figures.
	CreateA, CreateB, ReleaseA, ReleaseB float64
	Assumed                              bool

	Waiting int     // records that they have still to simulate
	Busy    float64 // the part of a core that they took in the last seconds, 0…1
	Bytes   uint64  // of memory that they take, nearly
}

// Ghost is one policy with its limits. Its keys in JSON mean what they mean in what a replay writes.
type Ghost struct {
	Name    string `json:"configuration"` // the policy, and the limits that are not at their defaults
	Policy  string `json:"policy"`
	Present bool   `json:"present"`           // the program runs under this one
	Since   uint64 `json:"-"`                 // CLOCK_MONOTONIC ns when it began, if the program was running already; 0: it has simulated the whole run
	Stopped string `json:"stopped,omitempty"` // why its figures end; empty: it goes on

	Requests                   uint64  `json:"requests"` // hits and misses
	Hits                       uint64  `json:"hits"`
	RecentHits, RecentRequests uint64  `json:"-"`                      // the same in the last ten seconds or so
	Failures                   uint64  `json:"failures"`               // requests that found no memory
	PeakReserved               uint64  `json:"peak_reserved_poolable"` // bytes
	Reserved                   uint64  `json:"-"`
	DriverNS                   float64 `json:"driver_ns_simulated"`
	Assumed                    bool    `json:"assumed,omitempty"` // part of DriverNS follows from costs that were not measured
}

// HitRate returns hits / requests, 0 before the first.
func (g *Ghost) HitRate() float64 { return ratioOf(g.Hits, g.Requests) }

// RecentHitRate returns the hit rate of the last ten seconds or so.
func (g *Ghost) RecentHitRate() float64 { return ratioOf(g.RecentHits, g.RecentRequests) }

// FlagsText returns the flags that start a program under this configuration, as in "--policy slab --set max_part=1M".
func (g *Ghost) FlagsText() string {
	policy, limits, _ := strings.Cut(g.Name, " ")
	words := []string{"--policy", policy}
	for limit := range strings.FieldsSeq(limits) {
		words = append(words, "--set", limit)
	}
	return strings.Join(words, " ")
}

// CoversRun reports whether the figures cover the whole run so far.
func (g *Ghost) CoversRun() bool { return g.Since == 0 && g.Stopped == "" }

// IsComparable reports whether the driver time is of the whole run so far, and follows from measured costs.
func (g *Ghost) IsComparable() bool { return g.CoversRun() && !g.Assumed }

// Leader returns the best ghost; nil: it does not compare, or there was no request.
func (g *Ghosts) Leader() *Ghost {
	if g == nil || len(g.Rows) == 0 || !g.Rows[0].IsComparable() || g.Rows[0].Requests == 0 {
		return nil
	}
	return &g.Rows[0]
}

// PresentGhost returns the ghost of the configuration that the program runs under; nil: there is none.
func (g *Ghosts) PresentGhost() *Ghost {
	if g == nil {
		return nil
	}
	for i := range g.Rows {
		if g.Rows[i].Present {
			return &g.Rows[i]
		}
	}
	return nil
}

// LeaderSaving returns how many ns in the driver the leader would have saved against the present configuration, and which part of its
// time that is, 0…1. Both times are simulated. known is false if the two do not compare.
func (g *Ghosts) LeaderSaving() (ns, part float64, known bool) {
	leader, present := g.Leader(), g.PresentGhost()
	if leader == nil || present == nil || !present.IsComparable() || present.DriverNS <= 0 {
		return 0, 0, false
	}
	ns = present.DriverNS - leader.DriverNS
	return ns, ns / present.DriverNS, true
}

// What the leader must save at least to be mentioned.
const (
	worthPart = 0.10 // of the time in the driver
	worthRun  = 0.01 // of the run
	worthNS   = 1e6
)

// IsWorthMention reports whether the leader would have saved enough of a run of some ns to mention it.
func (g *Ghosts) IsWorthMention(run uint64) bool {
	ns, part, known := g.LeaderSaving()
	return known && part >= worthPart && ns >= max(worthNS, worthRun*float64(run))
}

// SetGhostSource sets the source of Snapshot.Ghosts. Call it before the first event.
func (m *Model) SetGhostSource(board func() *Ghosts) { m.ghosts = board }

// Auto describes a session that switches policies by itself. It is immutable.
type Auto struct {
	Steers bool   // it still switches: the user has not changed the policy
	Said   string // the last decision: what stays or comes, and what was measured; empty: none yet
	Number uint64 // of the last decision
}

// SetAutoSource sets the source of Snapshot.Auto. Call it before the first event.
func (m *Model) SetAutoSource(auto func() *Auto) { m.auto = auto }

// autoForSnapshot returns Snapshot.Auto. A recording does not say whether the user took over.
func (m *Model) autoForSnapshot() *Auto {
	a := Auto{Steers: true}
	switch {
	case m.auto != nil:
		a = *m.auto()
	case !m.options.Auto:
		return nil
	}
	a.Number, a.Said = m.measured.AutoDecisions()
	return &a
}
