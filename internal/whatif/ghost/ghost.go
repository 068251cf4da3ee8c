// Package ghost plays a run through other policies and limits while it goes on, beside the real one: what each of them
// would have done, as pure bookkeeping. All of it runs here, nothing in the program that is watched.
package ghost

import (
	"fmt"
	"sync/atomic"
	"time"

	"codeberg.org/gpumemtop/gpumemtop/internal/cost"
	"codeberg.org/gpumemtop/gpumemtop/internal/replay"
	"codeberg.org/gpumemtop/gpumemtop/internal/stats"
)

// Options say what ghosts are compared with.
type Options struct {
	Present  replay.Configuration // that the program begins under; it is a ghost, too, so that like is compared with like
	Capacity uint64               // bytes that each process may have from the driver; 0: any
	// Device is what the driver takes. The zero Device: what it takes in the run, as soon as enough calls were timed.
	Device cost.Device
	Late   bool // the stream begins in the middle of the run
}

// Books are what ghosts have done so far. They are immutable.
type Books struct {
	Rows    []Book
	Device  cost.Device // what the driver takes
	Assumed bool        // too little was timed so far for that
}

// Book is what one ghost has done.
type Book struct {
	stats.Ghost
	Configuration replay.Configuration
	Work          cost.Work
}

// Ghosts are several configurations on the stream of one run. New, Board and Configuration are for any goroutine; the
// rest is for live, whose listener they are.
type Ghosts struct {
	names map[string]replay.Configuration
	first string // the present one's name at the beginning
	board atomic.Pointer[stats.Ghosts]
	books atomic.Pointer[Books]

	options Options
	chorus  *replay.Batch
	list    []*ghost
	present replay.Configuration
	late    *ghost // of the present configuration, if the program switched to one that was not simulated

	events, records uint64
	time            uint64 // of the latest record
	since           int    // parts since a ghost was stopped
	stopped         string // why all were
	fresh           bool   // they begin with the next record

	published, marked time.Time
	busy              time.Duration // of the processor
	marks             []mark        // oldest first, at most marksMax
}

// New makes ghosts of configurations, and of the present one if that is not among them; of one that is there twice one
// is made. An error says what is wrong with a policy or a setting.
func New(configurations []replay.Configuration, o Options) (*Ghosts, error) {
	now := time.Now()
	g := &Ghosts{names: map[string]replay.Configuration{}, options: o, marked: now, marks: []mark{{at: now}}}
	for i, c := range append([]replay.Configuration{o.Present}, configurations...) {
		c, err := normal(c)
		if err != nil {
			return nil, fmt.Errorf("ghost %s: %w", c, err)
		}
		if i == 0 {
			g.present, g.first = c, nameOf(c)
		}
		if _, there := g.names[nameOf(c)]; there {
			continue
		}
		g.names[nameOf(c)] = c
		g.list = append(g.list, newGhost(c, 0))
	}
	return g, nil
}

// Board returns what the ghosts have found; it is renewed when the stream is flushed.
func (g *Ghosts) Board() *stats.Ghosts { return g.board.Load() }

// Books returns what the board is made from, as it was when that was renewed; nil before the first time.
func (g *Ghosts) Books() *Books { return g.books.Load() }

// First returns the name of the present configuration's ghost as it was at the beginning.
func (g *Ghosts) First() string { return g.first }

// Configuration returns the one of a row that New was asked for, by its name.
func (g *Ghosts) Configuration(name string) (c replay.Configuration, known bool) {
	c, known = g.names[name]
	return c, known
}
