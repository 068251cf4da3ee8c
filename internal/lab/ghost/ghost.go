// Package ghost plays a run through other policies and limits while it goes on, beside the real one: what each of them
// would have done, as pure bookkeeping. All of it runs here, nothing in the program that is watched.
package ghost

import (
	"bytes"
	"fmt"
	"sync/atomic"

	"codeberg.org/gpumemtop/gpumemtop/internal/lab"
	"codeberg.org/gpumemtop/gpumemtop/internal/lab/cost"
	"codeberg.org/gpumemtop/gpumemtop/internal/model"
	"codeberg.org/gpumemtop/gpumemtop/internal/wire"
)

const (
	batchSize  = 1024 // records that are handed over together
	queueDepth = 512  // batches that may wait: half a second at a million events a second, and 60 MB when it is full
	spareDepth = 32   // batches that are kept to be filled again
)

// Options say what ghosts are compared with.
type Options struct {
	Present  lab.Configuration // that the program begins under; it is a ghost, too, so that like is compared with like
	Capacity uint64            // bytes that each process may have from the driver; 0: any
	// Device is what the driver takes. The zero Device: what it takes in the run, as soon as enough calls were timed.
	Device cost.Device
}

// Books are what ghosts have done so far. Nobody changes them any more.
type Books struct {
	Rows    []Book
	Device  cost.Device // what the driver takes
	Assumed bool        // too little was timed so far for that
}

// Book is what one ghost has done.
type Book struct {
	Configuration lab.Configuration
	Name          string // of the configuration
	Present       bool   // the program runs under this one
	Whole         bool   // it has seen all of the run so far
	Requests      uint64
	PeakReserved  uint64 // bytes
	Work          cost.Work
}

// Ghosts are several configurations on the stream of one run. Take, Flush and Close are for the goroutine that collects
// its records, and never wait for the ghosts but for Close; Board is for any.
type Ghosts struct {
	queue chan []wire.Record
	spare chan []wire.Record // played, to be filled again
	batch []wire.Record
	made  atomic.Int64 // batches
	// deaf says that nothing more is to be told: the queue was full, so that records are missing, or no ghost goes on.
	deaf  atomic.Bool
	board atomic.Pointer[model.Ghosts]
	books atomic.Pointer[Books]
	done  chan struct{}

	names map[string]lab.Configuration
}

// New starts ghosts of configurations, and of the present one if that is not among them; one that is there twice is
// started once. Close ends them. An error says what is wrong with a policy or a setting.
func New(configurations []lab.Configuration, o Options) (*Ghosts, error) {
	g, p, err := assemble(configurations, o, queueDepth)
	if err != nil {
		return nil, err
	}
	go p.run()
	return g, nil
}

// assemble makes ghosts and their player, which does not run yet.
func assemble(configurations []lab.Configuration, o Options, depth int) (*Ghosts, *player, error) {
	g := &Ghosts{
		queue: make(chan []wire.Record, depth), spare: make(chan []wire.Record, spareDepth), done: make(chan struct{}),
		names: map[string]lab.Configuration{},
	}
	p, err := newPlayer(g, o)
	if err != nil {
		return nil, nil, err
	}
	for _, c := range append([]lab.Configuration{o.Present}, configurations...) {
		c, err := normal(c)
		if err != nil {
			return nil, nil, fmt.Errorf("ghost %s: %w", c, err)
		}
		if _, there := g.names[nameOf(c)]; there {
			continue
		}
		g.names[nameOf(c)] = c
		if err := p.add(c, 0); err != nil {
			return nil, nil, fmt.Errorf("ghost %s: %w", c, err)
		}
	}
	p.publish()
	return g, p, nil
}

// Take notes a record, of which it keeps nothing that may change. It costs the copy of a record where that says anything
// to a policy, and never waits: when the ghosts are so far behind that there is no room, all of them stop.
func (g *Ghosts) Take(r *wire.Record) {
	if !lab.Hears(&r.Event) || g.deaf.Load() {
		return
	}
	if g.batch == nil {
		g.batch = g.empty()
	}
	g.batch = append(g.batch, *r)
	last := &g.batch[len(g.batch)-1]
	last.Payload = nil
	if r.Kind == wire.KindLimit { // of the others nothing is looked at but the event
		last.Payload = bytes.Clone(r.Payload)
	}
	if len(g.batch) == batchSize {
		g.hand()
	}
}

// Flush hands over what was taken. Called now and then it keeps the board up to date.
func (g *Ghosts) Flush() {
	if len(g.batch) > 0 || g.deaf.Load() { // the player may not have seen that it is to stop
		g.hand()
	}
}

func (g *Ghosts) hand() {
	select {
	case g.queue <- g.batch:
	default:
		g.deaf.Store(true)
	}
	g.batch = nil
}

// empty returns a batch to fill.
func (g *Ghosts) empty() []wire.Record {
	select {
	case batch := <-g.spare:
		return batch[:0]
	default:
		g.made.Add(1)
		return make([]wire.Record, 0, batchSize)
	}
}

// Close waits until what was taken is played, which a full queue bounds to part of a second, and ends the ghosts. The
// board stays. It is called once.
func (g *Ghosts) Close() {
	g.Flush()
	close(g.queue)
	<-g.done
}

// Board returns what the ghosts have found; it is renewed up to ten times a second.
func (g *Ghosts) Board() *model.Ghosts { return g.board.Load() }

// Books returns what the board is made from, as it was when that was renewed.
func (g *Ghosts) Books() *Books { return g.books.Load() }

// Configuration returns the one of a row that New was asked for, by its name.
func (g *Ghosts) Configuration(name string) (c lab.Configuration, known bool) {
	c, known = g.names[name]
	return c, known
}
