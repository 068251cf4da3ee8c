package stats

import "strings"

// Ghosts are what other policies and limits would have done with the run so far, each as pure bookkeeping on a simulated
// driver (internal/whatif/ghost). They are immutable.
type Ghosts struct {
	Rows    []Ghost // best first: see docs/METRICS.md
	Events  uint64  // that the policies have seen
	Stopped string  // why none goes on; empty: they do

	// What a create in the driver takes is A + B·size ns, and a release the same; Assumed: too few were timed so far, and
	// these are round figures.
	CreateA, CreateB, ReleaseA, ReleaseB float64
	Assumed                              bool

	Waiting int     // records that they are behind
	Busy    float64 // what part of a core they took over the last seconds, 0…1
	Bytes   uint64  // of memory, nearly
}

// Ghost is one policy with its limits.
type Ghost struct {
	Name    string // of the configuration: the policy and the limits that are not its defaults
	Policy  string
	Present bool   // the program runs under this one
	Since   uint64 // CLOCK_MONOTONIC ns of its begin, when the program was running already; 0: it has seen all
	Stopped string // why its figures end; empty: they do not

	Hits, Requests             uint64 // hits, and hits and misses
	RecentHits, RecentRequests uint64 // the same of the last ten seconds or so
	Failures                   uint64 // requests that found no memory
	PeakReserved, Reserved     uint64 // bytes
	DriverNS                   float64
}

// HitRate returns hits / requests, 0 before the first.
func (g *Ghost) HitRate() float64 { return rate(g.Hits, g.Requests) }

// RecentHitRate returns the same of the last ten seconds.
func (g *Ghost) RecentHitRate() float64 { return rate(g.RecentHits, g.RecentRequests) }

// Flags returns what gives gpumemtop this configuration from the start of a program, as in "--policy slab --set max_part=1M".
func (g *Ghost) Flags() string {
	policy, limits, _ := strings.Cut(g.Name, " ")
	words := []string{"--policy", policy}
	for limit := range strings.FieldsSeq(limits) {
		words = append(words, "--set", limit)
	}
	return strings.Join(words, " ")
}

// Whole reports whether the figures are of the whole run so far: only such ghosts compare.
func (g *Ghost) Whole() bool { return g.Since == 0 && g.Stopped == "" }

// Leader returns the ghost that does best, nil while there is none whose figures are of the whole run, or no request.
func (g *Ghosts) Leader() *Ghost {
	if g == nil || len(g.Rows) == 0 || !g.Rows[0].Whole() || g.Rows[0].Requests == 0 {
		return nil
	}
	return &g.Rows[0]
}

// Present returns the ghost of the configuration that the program runs under, nil where there is none.
func (g *Ghosts) Present() *Ghost {
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

// Saving returns the ns in the driver that the leader would have saved of those that the present configuration takes, both
// simulated, and what part that is, 0…1. known is false where the two do not compare.
func (g *Ghosts) Saving() (ns, part float64, known bool) {
	leader, present := g.Leader(), g.Present()
	if leader == nil || present == nil || !present.Whole() || present.DriverNS <= 0 {
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

// Worth reports whether the leader would have saved enough of a run of some ns to mention it.
func (g *Ghosts) Worth(run uint64) bool {
	ns, part, known := g.Saving()
	return known && part >= worthPart && ns >= max(worthNS, worthRun*float64(run))
}

// SetGhosts sets the source of Snapshot.Ghosts. Call it before the first event.
func (m *Model) SetGhosts(board func() *Ghosts) { m.ghosts = board }

// Auto describes a session that switches policies by itself. It is immutable.
type Auto struct {
	Steers bool   // it still does: the user has not changed the policy
	Said   string // the last switch: to what, when and why; empty: none yet
	Number uint64 // of that
}

// SetAuto sets the source of Snapshot.Auto. Call it before the first event.
func (m *Model) SetAuto(auto func() *Auto) { m.auto = auto }

// steered returns Snapshot.Auto. Of a recording, only that it switched is known.
func (m *Model) steered() *Auto {
	switch {
	case m.auto != nil:
		return m.auto()
	case m.options.Auto:
		return &Auto{Steers: true}
	}
	return nil
}
