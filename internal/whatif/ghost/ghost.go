// Package ghost simulates other policies and limits beside a running program: it feeds each simulation the program's
// requests and counts what its policy would have done. The simulations run in this process; the watched program does
// not notice them.
package ghost

import (
	"fmt"
	"sync/atomic"
	"time"

	"codeberg.org/gpumemtop/gpumemtop/internal/cost"
	"codeberg.org/gpumemtop/gpumemtop/internal/replay"
	"codeberg.org/gpumemtop/gpumemtop/internal/stats"
)

// Options say what the ghosts are compared with.
type Options struct {
	Current  replay.Configuration // the configuration in force when the program starts; a ghost simulates it too, so that rows compare simulations with simulations
	Capacity uint64               // bytes that each process may have from the driver; 0: any number
	// Device is what driver calls cost. The zero Device: the costs are learned in the run, as soon as enough calls were
	// timed.
	Device cost.Device
	MidRun bool // the stream begins in the middle of the run
}

// Results are the figures of all ghosts at one moment. They are immutable.
type Results struct {
	Rows    []Result
	Device  cost.Device // what driver calls cost
	Assumed bool        // too few calls were timed, so Device is assumed
}

// Result is the figures of one ghost.
type Result struct {
	stats.Ghost
	Configuration replay.Configuration
	Work          cost.Work
}

// Ghosts simulates several configurations on the stream of one run. New, Leaderboard, Results, InitialName and
// Configuration are for any goroutine; the other methods are for package live, whose listener Ghosts is.
type Ghosts struct {
	configurations map[string]replay.Configuration
	initialName    string // the name of the configuration that was in force at the start
	leaderboard    atomic.Pointer[stats.Ghosts]
	results        atomic.Pointer[Results]

	options Options
	batch   *replay.Batch
	ghosts  []*ghost
	current replay.Configuration
	added   *ghost // the ghost that followToConfiguration added for the current configuration; nil: none

	events, records uint64
	time            uint64 // of the latest record
	partsSinceStop  int    // parts played since a ghost was stopped
	stopReason      string // why all ghosts were stopped; empty: some are active
	startPending    bool   // the ghosts start with the next record

	published, lastCheckpoint time.Time
	busy                      time.Duration // processor time
	checkpoints               []checkpoint  // the oldest first, at most checkpointsMax
}

// New makes a ghost for each configuration, and one for the current configuration if the list lacks it. Duplicates are
// ignored. The error reports an invalid policy or setting.
func New(configurations []replay.Configuration, o Options) (*Ghosts, error) {
	now := time.Now()
	g := &Ghosts{configurations: map[string]replay.Configuration{}, options: o, lastCheckpoint: now, checkpoints: []checkpoint{{at: now}}}
	for i, c := range append([]replay.Configuration{o.Current}, configurations...) {
		c, err := normalize(c)
		if err != nil {
			return nil, fmt.Errorf("ghost %s: %w", c, err)
		}
		if i == 0 {
			g.current, g.initialName = c, nameOfConfiguration(c)
		}
		if _, known := g.configurations[nameOfConfiguration(c)]; known {
			continue
		}
		g.configurations[nameOfConfiguration(c)] = c
		g.ghosts = append(g.ghosts, newGhost(c, 0))
	}
	return g, nil
}

// Leaderboard returns the ranked ghosts. It is renewed when the stream is flushed.
func (g *Ghosts) Leaderboard() *stats.Ghosts { return g.leaderboard.Load() }

// Results returns the figures that the leaderboard was made from; nil before the first leaderboard.
func (g *Ghosts) Results() *Results { return g.results.Load() }

// InitialName returns the name of the ghost whose configuration was in force at the start.
func (g *Ghosts) InitialName() string { return g.initialName }

// ConfigurationOfGhost returns the configuration of a ghost that New made, by the ghost's name.
func (g *Ghosts) ConfigurationOfGhost(name string) (c replay.Configuration, known bool) {
	c, known = g.configurations[name]
	return c, known
}
