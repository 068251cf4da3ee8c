package live

import (
	"reflect"
	"runtime"
	"time"

	"golang.org/x/sys/unix"

	"codeberg.org/gpumemtop/gpumemtop/internal/replay"
	"codeberg.org/gpumemtop/gpumemtop/internal/wire"
)

// Listener simulates policies on the stream of a run. One goroutine calls its methods.
type Listener interface {
	// Begin gives the listener the batch to take part in, before the first part. After missing records, a pause or many
	// lost events a new batch begins; it does not know the buffers created before. missed is how many records of the
	// whole stream found no room.
	Begin(c *replay.Batch, missed uint64)
	// Play plays the records that the batch has read, and reports whether the listener continues. Otherwise Play is not
	// called again before the next Begin.
	Play(p *Part) bool
	// CanSkip reports that the listener can skip the next records and begin with a new batch after them. The listeners
	// pause if all of them can skip.
	CanSkip() bool
	// Publish publishes the listener's figures.
	Publish(l *Load)
}

// Part is a part of the stream: the records read since the batch was cleared.
type Part struct {
	Records  int
	Time     uint64        // of the latest record
	ReadTime time.Duration // processor time spent on reading
	Change   []byte        // the payload of the part's last record if that changes a limit or the policy, else nil
	Behind   bool          // more than half of the queue is full: listeners that can skip work should do so
	Final    bool          // no part follows
}

// Load is the memory that the stream's listeners share.
type Load struct {
	Waiting int    // records in the queue, at most
	Bytes   uint64 // of the queue and the batch, approximately
	Final   bool   // no figures follow
}

// partSizeMin is how many records the first part has, and the first one after a change. The parts then double. Small
// parts let a listener that must choose something choose it early.
const partSizeMin = 16

// lostEventsMax is how many events may be lost before a new batch begins. A buffer whose release was lost stays in use
// in every simulation, so lost events would let the simulated memory grow for as long as the program runs.
const lostEventsMax = 1 << 16

// restFactor is how many times as long as they have worked the listeners pause if all can skip.
const restFactor = 20

// dispatcher reads records into a batch and lets the listeners play them. Only its goroutine uses it.
type dispatcher struct {
	tap          *Tap
	batch        *replay.Batch
	listeners    []Listener
	active       []bool // by listener: it has begun and continues
	hasBegun     bool
	missed       uint64
	lostEvents   uint64        // in the present batch
	partSize     int           // of the next part
	workingSince time.Time     // zero: no records have come since the batch began
	timeBefore   time.Duration // the thread's processor time at workingSince
}

func newDispatcher(t *Tap, listeners []Listener) *dispatcher {
	return &dispatcher{tap: t, batch: replay.NewBatch(), listeners: listeners, active: make([]bool, len(listeners))}
}

// beginListeners lets all listeners begin, stopped listeners included: their Play reports that they do not continue.
func (p *dispatcher) beginListeners() {
	p.hasBegun, p.partSize, p.lostEvents, p.workingSince = true, partSizeMin, 0, time.Time{}
	for i, l := range p.listeners {
		l.Begin(p.batch, p.missed)
		p.active[i] = true
	}
}

// beginNewBatch begins a new batch.
func (p *dispatcher) beginNewBatch() {
	p.batch = p.batch.Restart()
	p.beginListeners()
}

// runDispatcher is the dispatcher's goroutine.
func (p *dispatcher) runDispatcher() {
	defer close(p.tap.done)
	runtime.LockOSThread() // ThreadTime measures this thread, which ends with the goroutine
	for m := range p.tap.queue {
		if m.missed > 0 || m.gap {
			p.missed += m.missed
			p.beginNewBatch()
		}
		p.playBatch(m.records)
		p.restIfBusy()
		if m.publish {
			p.publishListeners(false)
		}
	}
	p.batch.EndStream()
	p.playPart(&Part{Final: true})
	p.publishListeners(true)
}

// restIfBusy pauses the listeners if they have worked for more than their share of the time and all can skip.
func (p *dispatcher) restIfBusy() {
	if p.workingSince.IsZero() {
		p.workingSince, p.timeBefore = time.Now(), ThreadTime()
		return
	}
	rest := restFactor*(ThreadTime()-p.timeBefore) - time.Since(p.workingSince)
	if rest <= 0 {
		return
	}
	for i, l := range p.listeners {
		if p.active[i] && !l.CanSkip() {
			return
		}
	}
	p.tap.restUntil.Store(time.Now().Add(rest).UnixNano())
}

// playBatch plays a batch of records, and returns its memory to the tap.
func (p *dispatcher) playBatch(batch []wire.Record) {
	for remaining := batch; len(remaining) > 0 && !p.tap.allStopped.Load(); {
		remaining = remaining[p.readAndPlayPart(remaining):]
		if p.lostEvents >= lostEventsMax {
			p.beginNewBatch()
		}
	}
	if batch == nil {
		return
	}
	select {
	case p.tap.spare <- batch:
	default: // enough spare batches are there
		p.tap.batchesMade.Add(-1)
	}
}

// readAndPlayPart reads one part from the beginning of the records, lets the listeners play it, and returns its length.
func (p *dispatcher) readAndPlayPart(records []wire.Record) int {
	start := ThreadTime()
	part := Part{Behind: 2*len(p.tap.queue) > cap(p.tap.queue)}
	for i := range records[:min(p.partSize, len(records))] {
		r := &records[i]
		p.batch.ReadRecord(r)
		part.Records, part.Time = i+1, r.Time
		if r.Kind == wire.KindLimit && r.AsLimit().Status() == 0 {
			part.Change = r.Payload
			break
		}
		if r.Kind == wire.KindLost {
			if p.lostEvents += r.AsLost().Events(); p.lostEvents >= lostEventsMax {
				break
			}
		}
	}
	part.ReadTime = ThreadTime() - start
	p.partSize = min(2*p.partSize, batchSize)
	if part.Change != nil {
		p.partSize = partSizeMin
	}
	p.playPart(&part)
	return part.Records
}

// playPart lets the active listeners play a part.
func (p *dispatcher) playPart(part *Part) {
	stopped := true
	for i, l := range p.listeners {
		p.active[i] = p.active[i] && l.Play(part)
		stopped = stopped && !p.active[i]
	}
	p.batch.ForgetReadSteps()
	p.tap.allStopped.Store(stopped)
}

// publishListeners lets the listeners publish, if they have begun.
func (p *dispatcher) publishListeners(final bool) {
	if !p.hasBegun {
		return
	}
	t := p.tap
	load := Load{
		Waiting: len(t.queue) * batchSize, Final: final,
		Bytes: uint64(t.batchesMade.Load())*batchSize*uint64(reflect.TypeFor[wire.Record]().Size()) + uint64(p.batch.TableBytes()),
	}
	for _, l := range p.listeners {
		l.Publish(&load)
	}
}

// ThreadTime returns the processor time of this thread, for listeners that measure their own cost.
func ThreadTime() time.Duration {
	var t unix.Timespec
	if unix.ClockGettime(unix.CLOCK_THREAD_CPUTIME_ID, &t) != nil {
		return 0 // not reached: every Linux has this clock
	}
	return time.Duration(t.Nano())
}
