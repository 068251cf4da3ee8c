// Package live plays the stream of a run while it goes on, for all who want to know what other pools would have done
// with it: records are copied once, looked up once, and each listener plays what they say through policies of its own.
// All of it runs in a thread beside the one that collects the run, which never waits for it.
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
	queueDepth = 512  // batches that may wait: half a second at a million events a second, and 60 MB when it is full
	spareDepth = 32   // batches that are kept to be filled again
)

// Tap is where a run's records are handed over. Take, Flush and Close are for the goroutine that collects them, and
// never wait for the listeners except Close. Rest is for any goroutine.
type Tap struct {
	queue  chan message
	spare  chan []wire.Record // played, to be filled again
	batch  []wire.Record
	missed uint64       // records that are not in batch, because there was no room
	gap    bool         // others are not, because the listeners rest
	made   atomic.Int64 // batches
	deaf   atomic.Bool  // no listener goes on
	rests  atomic.Bool
	until  atomic.Int64 // Unix time in ns until which sated listeners rest; 0: they do not
	done   chan struct{}
}

// message is what the player gets.
type message struct {
	records []wire.Record
	missed  uint64 // before these
	gap     bool   // before these, which no listener wanted
	publish bool
}

// Start lets listeners follow a stream. Close ends it.
func Start(listeners ...Listener) *Tap {
	t, p := assemble(queueDepth, listeners)
	p.begin()
	go p.run()
	return t
}

// StartResting is Start for listeners that rest: they begin when Rest says that they no longer do.
func StartResting(listeners ...Listener) *Tap {
	t, p := assemble(queueDepth, listeners)
	t.rests.Store(true)
	t.gap = true
	go p.run()
	return t
}

// assemble makes a tap and its player, which neither begins nor runs yet.
func assemble(depth int, listeners []Listener) (*Tap, *player) {
	t := &Tap{queue: make(chan message, depth), spare: make(chan []wire.Record, spareDepth), done: make(chan struct{})}
	return t, newPlayer(t, listeners)
}

// Rest says whether the listeners rest: then records cost nothing but a look at their kind, and are left out except for
// what later ones build on. When they rest no longer all begin anew.
func (t *Tap) Rest(rests bool) { t.rests.Store(rests) }

// Take notes a record, of which it keeps nothing that may change. It costs the copy of a record where that says
// anything to a policy, and never waits: when there is no room, records are left out until all that waits is played,
// which the listeners get. What later records build on is never left out.
func (t *Tap) Take(r *wire.Record) {
	if !replay.Matters(&r.Event) || t.deaf.Load() {
		return
	}
	if t.resting() && !lasts(r.Kind) {
		t.leave()
		return
	}
	if t.missed > 0 && len(t.queue) > 0 && (!lasts(r.Kind) || len(t.batch) == batchSize-1) {
		t.missed++
		return
	}
	if t.batch == nil {
		t.batch = t.empty()
	}
	t.batch = append(t.batch, *r)
	last := &t.batch[len(t.batch)-1]
	last.Payload = nil
	if r.Kind == wire.KindLimit { // of the others nothing is looked at but the event
		last.Payload = bytes.Clone(r.Payload)
	}
	if len(t.batch) == batchSize && !t.hand(false) {
		t.leaveOut()
	}
}

// resting reports whether the listeners rest, because they are to or for a while.
func (t *Tap) resting() bool { return t.rests.Load() || t.until.Load() != 0 }

// leave leaves a record out because the listeners rest. They get what was before.
func (t *Tap) leave() {
	if t.gap {
		return
	}
	if len(t.batch) > 0 && !t.hand(false) {
		t.leaveOut()
	}
	t.gap = true
}

// lasts reports whether records of a kind say what holds for those that follow. There are few of them.
func lasts(k wire.Kind) bool {
	return k == wire.KindDevice || k == wire.KindContext || k == wire.KindLimit
}

// Flush hands over what was taken, and lets the listeners publish what they have. It is to be called now and then.
func (t *Tap) Flush() {
	if until := t.until.Load(); until != 0 && time.Now().UnixNano() >= until {
		t.until.CompareAndSwap(until, 0)
	}
	if t.gap && t.resting() {
		return // to begin anew is work
	}
	if t.missed == 0 || len(t.queue) == 0 {
		t.hand(true)
	}
}

// hand hands over what was taken, and reports whether there was room.
func (t *Tap) hand(publish bool) bool {
	select {
	case t.queue <- message{t.batch, t.missed, t.gap, publish}:
		t.batch, t.missed, t.gap = nil, 0, false
		return true
	default:
		return false
	}
}

// leaveOut leaves a batch out except for what lasts.
func (t *Tap) leaveOut() {
	kept := t.batch[:0]
	for i := range t.batch {
		if lasts(t.batch[i].Kind) && len(kept) < batchSize-1 {
			kept = append(kept, t.batch[i])
		}
	}
	t.missed += uint64(len(t.batch) - len(kept))
	t.batch = kept
}

// empty returns a batch to fill.
func (t *Tap) empty() []wire.Record {
	select {
	case batch := <-t.spare:
		return batch[:0]
	default:
		t.made.Add(1)
		return make([]wire.Record, 0, batchSize)
	}
}

// Close waits until what was taken is played, which a full queue bounds to part of a second, and ends the listeners'
// work. What they have published stays. It is called once.
func (t *Tap) Close() {
	if !t.gap || !t.resting() {
		t.queue <- message{t.batch, t.missed, t.gap, false}
	}
	close(t.queue)
	<-t.done
}
