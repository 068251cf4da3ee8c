// Package live simulates other policies on the stream of a running program. The collector copies each record once into
// a Tap; the dispatcher, in a thread of its own, reads the records into a batch; each listener plays the batch through
// its simulations. The collector never waits for them.
package live

import (
	"bytes"
	"sync/atomic"
	"time"

	"codeberg.org/gpumemtop/gpumemtop/internal/replay"
	"codeberg.org/gpumemtop/gpumemtop/internal/wire"
)

const (
	batchSize  = 1024 // records that are handed over together
	queueDepth = 512  // batches that may wait: half a second at a million events a second, and 60 MB when the queue is full
	spareDepth = 32   // empty batches that are kept
)

// Tap is where the collector hands over a run's records. Take, Flush and Close are for the goroutine that collects
// them; only Close waits for the listeners. SetResting is for any goroutine.
type Tap struct {
	queue         chan message
	spare         chan []wire.Record // played batches, to be filled again
	batch         []wire.Record
	missed        uint64       // records before those in batch that found no room
	gap           bool         // records before those in batch were skipped, because the listeners rest
	batchesMade   atomic.Int64 // batches allocated
	allStopped    atomic.Bool  // no listener continues
	restRequested atomic.Bool  // SetResting was called with true
	restUntil     atomic.Int64 // Unix time in ns until which listeners that can skip rest; 0: they do not rest
	done          chan struct{}
}

// message is what the dispatcher receives.
type message struct {
	records []wire.Record
	missed  uint64 // records missing before these
	gap     bool   // records were skipped before these, because the listeners rested
	publish bool   // the listeners publish after these
}

// Start lets listeners follow a stream. Close ends it.
func Start(listeners ...Listener) *Tap {
	t, p := newTap(queueDepth, listeners)
	p.beginListeners()
	go p.runDispatcher()
	return t
}

// StartResting is Start for listeners that rest at first: they begin after SetResting(false).
func StartResting(listeners ...Listener) *Tap {
	t, p := newTap(queueDepth, listeners)
	t.restRequested.Store(true)
	t.gap = true
	go p.runDispatcher()
	return t
}

// newTap makes a tap and its dispatcher. The dispatcher has not begun and does not run.
func newTap(depth int, listeners []Listener) (*Tap, *dispatcher) {
	t := &Tap{queue: make(chan message, depth), spare: make(chan []wire.Record, spareDepth), done: make(chan struct{})}
	return t, newDispatcher(t, listeners)
}

// SetResting pauses the listeners or lets them continue. During a pause a record costs a look at its kind; only records
// that later records depend on are kept. After a pause all listeners begin with a new batch.
func (t *Tap) SetResting(resting bool) { t.restRequested.Store(resting) }

// TakeRecord copies a record. It costs a copy if the record concerns a policy, and never waits. When the queue is full,
// records are dropped until the queue is empty; the listeners learn how many. Records that later records depend on are
// never dropped.
func (t *Tap) TakeRecord(r *wire.Record) {
	if !replay.ConcernsPolicy(&r.Event) || t.allStopped.Load() {
		return
	}
	if t.isResting() && !mustKeepKind(r.Kind) {
		t.skipRecord()
		return
	}
	if t.missed > 0 && len(t.queue) > 0 && (!mustKeepKind(r.Kind) || len(t.batch) == batchSize-1) {
		t.missed++
		return
	}
	if t.batch == nil {
		t.batch = t.takeBatchToFill()
	}
	t.batch = append(t.batch, *r)
	last := &t.batch[len(t.batch)-1]
	last.Payload = nil
	if r.Kind == wire.KindLimit { // no other record's payload is read
		last.Payload = bytes.Clone(r.Payload)
	}
	if len(t.batch) == batchSize && !t.handOverRecords(false) {
		t.dropBatch()
	}
}

// isResting reports whether the listeners rest, on request or for a while.
func (t *Tap) isResting() bool { return t.restRequested.Load() || t.restUntil.Load() != 0 }

// skipRecord skips a record because the listeners rest. They still get the records before it.
func (t *Tap) skipRecord() {
	if t.gap {
		return
	}
	if len(t.batch) > 0 && !t.handOverRecords(false) {
		t.dropBatch()
	}
	t.gap = true
}

// mustKeepKind reports whether later records depend on records of this kind. There are few of them.
func mustKeepKind(k wire.Kind) bool {
	return k == wire.KindDevice || k == wire.KindContext || k == wire.KindLimit
}

// Flush hands over the copied records and lets the listeners publish their figures. The collector calls it from time to
// time.
func (t *Tap) Flush() {
	if until := t.restUntil.Load(); until != 0 && time.Now().UnixNano() >= until {
		t.restUntil.CompareAndSwap(until, 0)
	}
	if t.gap && t.isResting() {
		return // a new batch would cost time
	}
	if t.missed == 0 || len(t.queue) == 0 {
		t.handOverRecords(true)
	}
}

// handOverRecords hands over the copied records, and reports whether the queue had room.
func (t *Tap) handOverRecords(publish bool) bool {
	select {
	case t.queue <- message{t.batch, t.missed, t.gap, publish}:
		t.batch, t.missed, t.gap = nil, 0, false
		return true
	default:
		return false
	}
}

// dropBatch drops a batch, except for the records that later records depend on.
func (t *Tap) dropBatch() {
	kept := t.batch[:0]
	for i := range t.batch {
		if mustKeepKind(t.batch[i].Kind) && len(kept) < batchSize-1 {
			kept = append(kept, t.batch[i])
		}
	}
	t.missed += uint64(len(t.batch) - len(kept))
	t.batch = kept
}

// takeBatchToFill returns a batch to fill.
func (t *Tap) takeBatchToFill() []wire.Record {
	select {
	case batch := <-t.spare:
		return batch[:0]
	default:
		t.batchesMade.Add(1)
		return make([]wire.Record, 0, batchSize)
	}
}

// Close waits until the copied records are played, which takes at most part of a second for a full queue, and stops the
// listeners. Their published figures stay. It is called once.
func (t *Tap) Close() {
	if !t.gap || !t.isResting() {
		t.queue <- message{t.batch, t.missed, t.gap, false}
	}
	close(t.queue)
	<-t.done
}
