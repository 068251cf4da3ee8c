package live

import (
	"runtime"
	"testing"

	"codeberg.org/gpumemtop/gpumemtop/internal/replay"
	"codeberg.org/gpumemtop/gpumemtop/internal/wire"
)

// witness notes what a listener gets.
type witness struct {
	begun    []uint64
	records  []int // of the parts since
	last     uint64
	changes  []string
	behind   int
	ends     bool
	shown    int
	leavesAt uint64 // time of the record after which it does not go on; 0: it does
	played   int
	canSkip  bool
}

func (w *witness) Begin(_ *replay.Batch, missed uint64) {
	w.begun, w.records = append(w.begun, missed), nil
}

func (w *witness) Play(p *Part) bool {
	w.played++
	w.records = append(w.records, p.Records)
	w.last = max(w.last, p.Time)
	if p.Change != nil {
		w.changes = append(w.changes, string(p.Change))
	}
	if p.Behind {
		w.behind++
	}
	w.ends = p.Final
	return w.leavesAt == 0 || w.last < w.leavesAt
}

func (w *witness) CanSkip() bool { return w.canSkip }

func (w *witness) Publish(l *Load) {
	w.shown++
	w.ends = w.ends && l.Final
}

func (w *witness) sum() int {
	sum := 0
	for _, n := range w.records {
		sum += n
	}
	return sum
}

func create(time uint64) *wire.Record {
	return &wire.Record{Process: 1, Event: wire.Event{Time: time, Kind: wire.KindCreate, Outcome: wire.OutcomeMiss, Object: time, Size: 1}}
}

// TestAllGetAll: each listener gets every record that concerns a policy. A change ends a part, and the tap keeps a
// copy of its payload.
func TestAllGetAll(t *testing.T) {
	one, other := &witness{}, &witness{leavesAt: 3000}
	tap := Start(one, other)
	for i := range uint64(5000) {
		tap.TakeRecord(create(i + 1))
		tap.TakeRecord(&wire.Record{Event: wire.Event{Kind: wire.KindUse}})
		if i == 2999 {
			payload := []byte("policy=pow2")
			tap.TakeRecord(&wire.Record{Event: wire.Event{Time: i + 1, Kind: wire.KindLimit}, Payload: payload})
			tap.TakeRecord(&wire.Record{Event: wire.Event{Time: i + 1, Kind: wire.KindLimit, Status: -1}, Payload: payload})
			clear(payload)
		}
	}
	tap.Close()
	if one.sum() != 5002 || one.last != 5000 || len(one.changes) != 1 || one.changes[0] != "policy=pow2" || !one.ends || one.shown != 1 {
		t.Errorf("%d records: %+v", one.sum(), one)
	}
	if other.sum() >= 5002 || other.last < 3000 {
		t.Errorf("the listener that left got %d: %+v", other.sum(), other)
	}
}

// begun makes a tap and a dispatcher that has begun and does not run.
func begun(depth int, w *witness) (*Tap, *dispatcher) {
	tap, p := newTap(depth, []Listener{w})
	p.beginListeners()
	return tap, p
}

// TestFlushPublishes: Flush hands over the records, however few, and publishes.
func TestFlushPublishes(t *testing.T) {
	w := &witness{}
	tap, p := begun(4, w)
	tap.TakeRecord(create(1))
	tap.Flush()
	tap.Flush()
	go p.runDispatcher()
	tap.Close()
	if w.sum() != 1 || w.shown != 3 || len(w.begun) != 1 {
		t.Errorf("%+v", w)
	}
}

// TestLeavesOut: records that find no room are dropped until the queue is empty; records that later ones depend on are
// kept.
func TestLeavesOut(t *testing.T) {
	w := &witness{}
	const depth, more = 4, 100
	tap, p := begun(depth, w)
	take := func(from, n uint64) {
		for i := range n {
			tap.TakeRecord(create(from + i))
		}
	}
	take(1, depth*batchSize+more)
	tap.TakeRecord(&wire.Record{Event: wire.Event{Time: 1 << 20, Kind: wire.KindContext, Object: 7}})
	take(1<<20+1, 3*batchSize)
	tap.Flush()
	if len(tap.queue) != depth || tap.missed != more+3*batchSize || len(tap.batch) != 1 {
		t.Fatalf("%d wait, %d missed, %d to deliver", len(tap.queue), tap.missed, len(tap.batch))
	}
	for range depth { // as the player does, but nothing more comes in between
		p.playBatch((<-tap.queue).records)
	}
	if w.sum() != depth*batchSize || w.behind == 0 {
		t.Errorf("%d records, behind in %d parts", w.sum(), w.behind)
	}
	take(1<<21, 10)
	go p.runDispatcher()
	tap.Close()
	if len(w.begun) != 2 || w.begun[1] != more+3*batchSize || w.sum() != 11 || !w.ends {
		t.Errorf("%d records since it began again: %+v", w.sum(), w)
	}
}

// TestRestingListenerGetsWhatLaterRecordsNeed: a resting listener gets only records that later ones depend on, and begins with
// a new batch after the pause.
func TestRestingListenerGetsWhatLaterRecordsNeed(t *testing.T) {
	w := &witness{}
	tap := StartResting(w)
	take := func(from, n uint64) {
		for i := range n {
			tap.TakeRecord(create(from + i))
		}
	}
	context := &wire.Record{Process: 1, Event: wire.Event{Time: 50, Kind: wire.KindContext, Object: 7}}
	take(1, 3*batchSize)
	tap.TakeRecord(context)
	tap.Flush()
	if len(tap.queue) != 0 || len(tap.batch) != 1 {
		t.Fatalf("%d batches wait, %d records", len(tap.queue), len(tap.batch))
	}
	for range 2 {
		tap.SetResting(false)
		take(1000, batchSize)
		tap.Flush()
		take(5000, 10)
		tap.SetResting(true)
		take(10_000, 3*batchSize)
		tap.Flush()
		tap.TakeRecord(context)
	}
	tap.Close()
	if len(w.begun) != 2 || w.begun[1] != 0 || w.sum() != 1+batchSize+10 || w.last != 5009 || !w.ends {
		t.Errorf("%d records since it began again, the last at %d: begun %v", w.sum(), w.last, w.begun)
	}
	idle := &witness{}
	tap = StartResting(idle)
	take(1, 10)
	tap.Close()
	if len(idle.begun) != 0 || idle.played != 0 || idle.shown != 0 {
		t.Errorf("who never was to begin: %+v", idle)
	}
}

// TestAllCanSkip: listeners that can all skip the records of a fast stream rest for most of the time.
func TestAllCanSkip(t *testing.T) {
	one, other := &witness{canSkip: true}, &witness{}
	tap, p := newTap(64, []Listener{one, other})
	p.beginListeners()
	take := func() {
		for i := range uint64(16 * batchSize) {
			tap.TakeRecord(create(i + 1))
		}
		for len(tap.queue) > 0 {
			if m := <-tap.queue; m.gap {
				p.beginNewBatch()
			} else {
				p.playBatch(m.records)
			}
			p.restIfBusy()
		}
	}
	runtime.LockOSThread() // whose time it is
	defer runtime.UnlockOSThread()
	if take(); tap.isResting() {
		t.Fatal("one rests that is not canSkip")
	}
	other.canSkip = true
	if take(); !tap.isResting() {
		t.Fatal("none rests though all are canSkip")
	}
	played := one.played
	if take(); one.played != played || len(one.begun) != 1 {
		t.Errorf("%d parts while they rest, begun %v", one.played-played, one.begun)
	}
	tap.Flush()
	if !tap.isResting() {
		t.Error("the rest ends at once")
	}
	tap.restUntil.Store(1)
	tap.Flush()
	if take(); one.played == played || len(one.begun) != 2 || len(other.begun) != 2 {
		t.Errorf("%d parts after the rest, begun %v and %v", one.played-played, one.begun, other.begun)
	}
}

// TestAllStopped: without active listeners nothing is copied.
func TestAllStopped(t *testing.T) {
	w := &witness{leavesAt: 1}
	tap, p := begun(8, w)
	take := func() {
		for i := range uint64(2 * batchSize) {
			tap.TakeRecord(create(i + 1))
		}
	}
	take()
	for range 2 {
		p.playBatch((<-tap.queue).records)
	}
	if take(); len(tap.queue) != 0 || w.played != 1 {
		t.Errorf("%d batches wait, played %d times", len(tap.queue), w.played)
	}
	go p.runDispatcher()
	tap.Close()
}

// BenchmarkTake is what it costs the goroutine that collects records, for each that says something to a policy.
func BenchmarkTake(b *testing.B) {
	tap, _ := newTap(1, nil)
	r := create(1)
	for b.Loop() {
		tap.TakeRecord(r)
		if len(tap.queue) > 0 {
			tap.spare <- (<-tap.queue).records
		}
	}
}

// TestManyLossesBeginAnew: lost events may have been releases, so that the simulated pools would grow forever. A new
// batch ends that.
func TestManyLossesBeginAnew(t *testing.T) {
	w := &witness{}
	tap := Start(w)
	lose := func(time, events uint64) {
		tap.TakeRecord(create(time))
		tap.TakeRecord(&wire.Record{Process: 1, Event: wire.LostFields{Time: time, Events: events}.Event()})
		tap.TakeRecord(create(time))
	}
	lose(1, 1000)
	lose(2, lostEventsMax-1001)
	lose(3, 1) // enough
	lose(4, lostEventsMax-1)
	tap.Close()
	if len(w.begun) != 2 || w.begun[1] != 0 || w.sum() != 4 { // the create that follows the third loss, and the fourth
		t.Errorf("begun %v, then %d records", w.begun, w.sum())
	}
}
