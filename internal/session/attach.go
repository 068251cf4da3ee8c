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
	// Poll waits for records, at most for wait. It gives put a bounded number of them, so that its caller gets to do other
	// work, in the order of time and with the numbers of their processes. It returns how many records there were. io.EOF
	// says that nothing is left to watch and no record follows.
	//
	// The first record of a process is a PROCESS. The last one is an EXIT whose thread is 0: status is that of a shell
	// (128 + n after signal n), or -1 if unknown; object is the signal that ended the process, or 0. Memory from before
	// the watch is a CREATE with wire.FlagCarried.
	Poll(wait time.Duration, put func(*wire.Record)) (int, error)
	// WatchedCount returns how many processes are watched now.
	WatchedCount() int
	// WakePoll ends the wait of a Poll.
	WakePoll()
	// Detach removes all probes from the processes. Afterwards Poll returns the remaining records without waiting.
	Detach() error
	// Close releases all other resources. No method may be called afterwards.
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
	// Open returns the path by which this process can open a file of a watched process, whose paths differ in a
	// container. It is called from one goroutine, also for processes that have ended. nil: all paths are the same.
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

// Watch is the result of an attached session.
type Watch struct {
	Snapshot *stats.Snapshot
	// Running is how many of the processes go on after the session: what they have in use is no leak.
	Running int
	// Recording is the error that ended the recording early, nil when it is whole.
	Recording error
	// Err is the error that ended the session before it was stopped, or that it ended with.
	Err error
}

// Attach begins to take in the records of a feed. Afterwards Wait must be called.
func Attach(options AttachOptions) *Attached {
	a := newAttached(options)
	a.sampler = newSampler()
	go a.takeRecordsOfFeed()
	return a
}

func newAttached(o AttachOptions) *Attached {
	a := &Attached{
		intake: newIntake(o.Model, o.Recorder, o.Recording), feed: o.Feed, running: map[uint32]bool{},
		done: make(chan struct{}),
	}
	a.sites, a.tap, a.published = newSiteNamer(o.Resolve), o.Tap, o.Published
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
		a.feed.WakePoll()
	}
}

// Ended is closed when the session is over, because of Stop, because nothing is left to watch, or because the feed
// failed. Model and recording are complete then.
func (a *Attached) Ended() <-chan struct{} { return a.done }

// Wait waits for the end of the session and returns what is left of it.
func (a *Attached) Wait() Watch {
	<-a.done
	return Watch{Snapshot: a.model.PublishedSnapshot(), Running: len(a.running), Recording: a.failure, Err: a.err}
}

// takeRecordsOfFeed is the session's goroutine.
func (a *Attached) takeRecordsOfFeed() {
	defer close(a.done)
	for !a.isStopping() {
		_, err := a.feed.Poll(tickNS, a.deliverRecord)
		a.applySiteAnswers()
		a.publishNameSampleAndFlush()
		if errors.Is(err, io.EOF) {
			break
		}
		if err != nil {
			a.err = err
			break
		}
	}
	a.detachFeed()
	now := a.clock()
	a.clock = func() uint64 { return now } // only names of call sites may follow
	a.model.NoteEndOfRun(now)
	a.completeRecordingAndModel()
}

func (a *Attached) isStopping() bool {
	a.mu.Lock()
	defer a.mu.Unlock()
	return a.stopped
}

// detachFeed detaches the feed and takes in its remaining records: a release that was seen must not be missing from the
// recording.
func (a *Attached) detachFeed() {
	err := a.feed.Detach()
	for {
		n, pollErr := a.feed.Poll(0, a.deliverRecord)
		if pollErr != nil && !errors.Is(pollErr, io.EOF) && a.err == nil {
			err = errors.Join(err, pollErr)
		}
		if n == 0 || pollErr != nil {
			break
		}
		a.publishNameSampleAndFlush()
	}
	a.mu.Lock()
	a.closed = true
	a.mu.Unlock()
	a.err = errors.Join(a.err, err, a.feed.Close())
}

// deliverRecord takes a record of the feed.
func (a *Attached) deliverRecord(r *wire.Record) {
	switch {
	case r.Kind == wire.KindProcess:
		a.running[r.Process] = true
	case r.Kind == wire.KindExit && r.Thread == 0:
		delete(a.running, r.Process)
		a.recordExit(r.Process, statusOfExit(r.AsExit()), r.Time)
		return
	}
	a.acceptRecord(r)
}

// statusOfExit reads how a feed says that a process ended.
func statusOfExit(e wire.ExitView) Status {
	if signal := e.Signal(); signal != 0 {
		return Status{Signal: int(signal)}
	}
	return Status{Code: int(e.Status())}
}
