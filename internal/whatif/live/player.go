package live

import (
	"reflect"
	"runtime"
	"time"

	"golang.org/x/sys/unix"

	"codeberg.org/gpumemtop/gpumemtop/internal/replay"
	"codeberg.org/gpumemtop/gpumemtop/internal/wire"
)

// Listener plays a stream. One goroutine calls its methods.
type Listener interface {
	// Begin gives it the chorus to take part in, before the first part. After records that are missing, after a rest, and
	// after many lost events, there is another one, which has none of the buffers that were there, for what follows
	// these; missed is how many records there was no room for, of the whole stream.
	Begin(c *replay.Batch, missed uint64)
	// Play plays what the chorus has read, and reports whether the listener goes on: else nothing is played any more.
	Play(p *Part) bool
	// Sated reports that it can do without what comes next for a while, and begin anew behind that. All rest if all are sated.
	Sated() bool
	// Publish shows what there is.
	Publish(l *Load)
}

// Part is a part of the stream: what was read since the chorus was cleared last.
type Part struct {
	Records int
	Time    uint64        // of the latest record
	Looked  time.Duration // of the processor, that reading took
	Change  []byte        // what the part's last record says, when that is of a limit or the policy; else nil
	Behind  bool          // more than half of what may wait does: who can do with less, should
	Ends    bool          // nothing follows
}

// Load is what following the stream costs.
type Load struct {
	Waiting int    // records, at most
	Bytes   uint64 // of what waits and of what a chorus keeps, nearly
	Ends    bool   // nothing follows
}

// stepLeast is how many records are read at once at the beginning, and after a change: few, so that listeners who
// choose something by what they have seen can do that early.
const stepLeast = 16

// lostMax is how many events may be lost before the listeners begin anew. A buffer whose release was lost stays in every
// pool: without this, losses would add buffers for as long as a program runs.
const lostMax = 1 << 16

// restTimes is how many times as long as they have worked listeners rest that are sated.
const restTimes = 20

// player reads batches to the listeners. Its goroutine alone touches it.
type player struct {
	tap       *Tap
	chorus    *replay.Batch
	listeners []Listener
	going     []bool // none does before it begins
	begun     bool
	missed    uint64
	lost      uint64 // events, since the listeners began
	step      int
	since     time.Time     // they work; zero: no batch has come yet
	spent     time.Duration // by this thread at that time
}

func newPlayer(t *Tap, listeners []Listener) *player {
	return &player{tap: t, chorus: replay.NewBatch(), listeners: listeners, going: make([]bool, len(listeners))}
}

// begin lets all listeners take part, those that have stopped, too: it is for them to say so.
func (p *player) begin() {
	p.begun, p.step, p.lost, p.since = true, stepLeast, 0, time.Time{}
	for i, l := range p.listeners {
		l.Begin(p.chorus, p.missed)
		p.going[i] = true
	}
}

func (p *player) beginAnew() {
	p.chorus = p.chorus.Restart()
	p.begin()
}

// run is the player's goroutine.
func (p *player) run() {
	defer close(p.tap.done)
	runtime.LockOSThread() // whose time is what all this costs; with the goroutine the thread ends
	for m := range p.tap.queue {
		if m.missed > 0 || m.gap {
			p.missed += m.missed
			p.beginAnew()
		}
		p.take(m.records)
		p.rest()
		if m.publish {
			p.publish(false)
		}
	}
	p.chorus.Finish()
	p.play(&Part{Ends: true})
	p.publish(true)
}

// rest lets listeners rest that have worked for more than their share of the time, if all of them can.
func (p *player) rest() {
	if p.since.IsZero() {
		p.since, p.spent = time.Now(), Spent()
		return
	}
	more := restTimes*(Spent()-p.spent) - time.Since(p.since)
	if more <= 0 {
		return
	}
	for i, l := range p.listeners {
		if p.going[i] && !l.Sated() {
			return
		}
	}
	p.tap.until.Store(time.Now().Add(more).UnixNano())
}

// take plays a batch, and gives it back to be filled again.
func (p *player) take(batch []wire.Record) {
	for rest := batch; len(rest) > 0 && !p.tap.deaf.Load(); {
		rest = rest[p.read(rest):]
		if p.lost >= lostMax {
			p.beginAnew()
		}
	}
	if batch == nil {
		return
	}
	select {
	case p.tap.spare <- batch:
	default: // a full queue leaves more than are needed
		p.tap.made.Add(-1)
	}
}

// read plays a part from the beginning of some records, and returns how many it has.
func (p *player) read(records []wire.Record) int {
	start := Spent()
	part := Part{Behind: 2*len(p.tap.queue) > cap(p.tap.queue)}
	for i := range records[:min(p.step, len(records))] {
		r := &records[i]
		p.chorus.Read(r)
		part.Records, part.Time = i+1, r.Time
		if r.Kind == wire.KindLimit && r.AsLimit().Status() == 0 {
			part.Change = r.Payload
			break
		}
		if r.Kind == wire.KindLost {
			if p.lost += r.AsLost().Events(); p.lost >= lostMax {
				break
			}
		}
	}
	part.Looked = Spent() - start
	p.step = min(2*p.step, batchSize)
	if part.Change != nil {
		p.step = stepLeast
	}
	p.play(&part)
	return part.Records
}

// play lets all listeners play what was read.
func (p *player) play(part *Part) {
	deaf := true
	for i, l := range p.listeners {
		p.going[i] = p.going[i] && l.Play(part)
		deaf = deaf && !p.going[i]
	}
	p.chorus.Clear()
	p.tap.deaf.Store(deaf)
}

// publish lets the listeners show what there is, if they have begun.
func (p *player) publish(ends bool) {
	if !p.begun {
		return
	}
	t := p.tap
	load := Load{
		Waiting: len(t.queue) * batchSize, Ends: ends,
		Bytes: uint64(t.made.Load())*batchSize*uint64(reflect.TypeFor[wire.Record]().Size()) + uint64(p.chorus.Bytes()),
	}
	for _, l := range p.listeners {
		l.Publish(&load)
	}
}

// Spent returns the processor time of this thread, for listeners that measure what they cost.
func Spent() time.Duration {
	var t unix.Timespec
	if unix.ClockGettime(unix.CLOCK_THREAD_CPUTIME_ID, &t) != nil {
		return 0 // every Linux has this clock
	}
	return time.Duration(t.Nano())
}
