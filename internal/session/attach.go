package session

import (
	"errors"
	"io"
	"sync"
	"time"

	"codeberg.org/gpumemtop/gpumemtop/internal/stats"
	"codeberg.org/gpumemtop/gpumemtop/internal/symbol"
	"codeberg.org/gpumemtop/gpumemtop/internal/wire"
)

// Feed reports what happens in running programs; *tracer.Tracer is one. One goroutine calls its methods, except Watched
// and Wake, which any goroutine may call until Close.
type Feed interface {
	// Poll waits, at most so long, until there is something, hands over what is there, in the order of time and with
	// the numbers of processes set, and returns how many records these were. It hands over a bounded number, so that
	// its caller gets to do something else. io.EOF says that nothing is left to watch and no record follows.
	//
	// A process begins with a PROCESS. A process that is gone ends with an EXIT whose thread is 0: status is as a shell
	// has it (128 + n after signal n), -1 when it is not known, and object the signal that ended it, 0 for none.
	// What was there before the watch began is a CREATE with wire.FlagCarried.
	Poll(wait time.Duration, put func(*wire.Record)) (int, error)
	// Watched returns how many processes are watched now.
	Watched() int
	// Wake ends the wait of a Poll.
	Wake()
	// Detach takes everything out of the processes that was put into them. Afterwards Poll hands over what is left,
	// without waiting, and then nothing.
	Detach() error
	// Close gives the rest back. Nothing else may be called afterwards.
	Close() error
}

// AttachOptions describe a session that watches programs which run already.
type AttachOptions struct {
	Feed      Feed // the session closes it
	Model     *stats.Model
	Recorder  Recorder // nil: nothing is recorded. The session does not close it
	Recording string   // its path, to show
	Tap       Tap      // nil: there is none. The session closes it
	// Resolve and Published are those of Options.
	Resolve   func(module string, offset uint64) []symbol.Frame
	Names     symbol.Options // as in Options
	Published func(things, events, now uint64)
	// Open returns the path by which this process can open a file that a watched process knows by another one, as in a
	// container. It is called from one goroutine, also for processes that have ended. nil: by the same.
	Open func(process uint32, path string) string
}

// Attached is a session that watches programs which run already. It does nothing to them, and they go on after its end.
// Its methods may be called from any goroutine.
type Attached struct {
	intake
	feed    Feed
	running map[uint32]bool // processes that were introduced and have not ended
	err     error           // of the feed
	done    chan struct{}

	mu      sync.Mutex
	stopped bool
	closed  bool
}

// Watch is what is left of an attached session.
type Watch struct {
	Snapshot *stats.Snapshot
	// Running is how many of the processes go on after the session: what they have in use is no leak.
	Running int
	// Recording is the error that ended the recording early, nil when it is whole.
	Recording error
	// Err is the error that ended the session before it was stopped, or that it ended with.
	Err error
}

// Attach begins to take in what a feed tells. Afterwards Wait must be called.
func Attach(options AttachOptions) *Attached {
	a := newAttached(options)
	a.sampler = newSampler()
	go a.run()
	return a
}

func newAttached(o AttachOptions) *Attached {
	a := &Attached{
		intake: newIntake(o.Model, o.Recorder, o.Recording), feed: o.Feed, running: map[uint32]bool{},
		done: make(chan struct{}),
	}
	a.sites, a.tap, a.published = newSites(o.Resolve), o.Tap, o.Published
	a.sites.names = o.Names
	if o.Open != nil {
		a.sites.open = o.Open
	}
	return a
}

// Stop ends the session: it lets go of the programs, soon. It may be called at any time, and more than once.
func (a *Attached) Stop() {
	a.mu.Lock()
	defer a.mu.Unlock()
	a.stopped = true
	if !a.closed {
		a.feed.Wake()
	}
}

// Ended is closed when the session is over, because of Stop, because nothing is left to watch, or because the feed
// failed. Model and recording are complete then.
func (a *Attached) Ended() <-chan struct{} { return a.done }

// Wait waits for the end of the session and returns what is left of it.
func (a *Attached) Wait() Watch {
	<-a.done
	return Watch{Snapshot: a.model.Published(), Running: len(a.running), Recording: a.failure, Err: a.err}
}

// run is the session's goroutine.
func (a *Attached) run() {
	defer close(a.done)
	for !a.stopping() {
		_, err := a.feed.Poll(tickNS, a.deliver)
		a.applySites()
		a.chores()
		if errors.Is(err, io.EOF) {
			break
		}
		if err != nil {
			a.err = err
			break
		}
	}
	a.letGo()
	now := a.clock()
	a.clock = func() uint64 { return now } // names are still to come, and nothing is left to watch
	a.model.Finish(now)
	a.end()
}

func (a *Attached) stopping() bool {
	a.mu.Lock()
	defer a.mu.Unlock()
	return a.stopped
}

// letGo detaches the feed and takes in what it still has: a release that was seen must not be missing from the
// recording.
func (a *Attached) letGo() {
	err := a.feed.Detach()
	for {
		n, pollErr := a.feed.Poll(0, a.deliver)
		if pollErr != nil && !errors.Is(pollErr, io.EOF) && a.err == nil {
			err = errors.Join(err, pollErr)
		}
		if n == 0 || pollErr != nil {
			break
		}
		a.chores()
	}
	a.mu.Lock()
	a.closed = true
	a.mu.Unlock()
	a.err = errors.Join(a.err, err, a.feed.Close())
}

// deliver takes a record of the feed.
func (a *Attached) deliver(r *wire.Record) {
	switch {
	case r.Kind == wire.KindProcess:
		a.running[r.Process] = true
	case r.Kind == wire.KindExit && r.Thread == 0:
		delete(a.running, r.Process)
		a.exited(r.Process, statusOf(r.AsExit()), r.Time)
		return
	}
	a.take(r)
}

// statusOf reads how a feed says that a process ended.
func statusOf(e wire.ExitView) Status {
	if signal := e.Signal(); signal != 0 {
		return Status{Signal: int(signal)}
	}
	return Status{Code: int(e.Status())}
}
