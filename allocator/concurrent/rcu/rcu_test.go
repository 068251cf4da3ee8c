package rcu

import (
	"runtime"
	"slices"
	"sync"
	"sync/atomic"
	"testing"
)

// until runs other goroutines until something holds.
func until(holds func() bool) {
	for !holds() {
		runtime.Gosched()
	}
}

func TestSteadyStateAllocatesNothing(t *testing.T) {
	d, calls := New(), 0
	call := func() { calls++ }
	if n := testing.AllocsPerRun(100, func() { d.Defer(call); d.Defer(call); d.Barrier() }); n != 0 || calls != 202 {
		t.Errorf("%v allocations, %d calls", n, calls)
	}
}

func TestBarrierWaitsForReadersAndRunsCallbacksInOrder(t *testing.T) {
	d := New()
	var ran []int
	for i := range 3 {
		d.Defer(func() { ran = append(ran, i) })
	}
	d.Barrier()
	if want := []int{0, 1, 2}; !slices.Equal(ran, want) {
		t.Fatalf("callbacks ran as %v, want %v", ran, want)
	}
	d.Barrier()
	if len(ran) != 3 {
		t.Errorf("a callback ran twice: %v", ran)
	}

	r := d.Enter()
	_, previous := d.begin()
	if d.hasNoReaders(previous) {
		t.Error("an epoch with a reader counts as drained")
	}
	later := d.Enter()
	d.Exit(r)
	if !d.hasNoReaders(previous) {
		t.Error("the barrier waits for a reader that entered after it")
	}
	d.Exit(later)
}

// begin does the steps of a barrier before its wait.
func (d *Domain) begin() ([]func(), uint64) {
	d.waiting.Add(1)
	return d.advanceEpoch()
}

// The reader reads the epoch, and others run two barriers before it counts itself. If it were let in under the old
// epoch, the third barrier would not see it.
func TestReaderPreemptedBetweenEpochAndCounter(t *testing.T) {
	for barriers := range 5 {
		d := New()
		read := d.epoch.Load()
		for range barriers {
			d.Barrier()
		}
		r, ok := d.joinEpoch(read)
		if ok != (barriers == 0) {
			t.Fatalf("after %d barriers the reader of an old epoch is let in: %v", barriers, ok)
		}
		if !ok {
			r = d.Enter()
		}
		_, previous := d.begin()
		if d.hasNoReaders(previous) {
			t.Errorf("after %d barriers the next one does not see the reader", barriers)
		}
		d.Exit(r)
		if !d.hasNoReaders(previous) {
			t.Errorf("after %d barriers the reader's visit to another counter left a trace", barriers)
		}
	}
}

// A reader that is turned away while a barrier sleeps on the counter it visited must wake it.
func TestVisitToTheWrongCounterWakesTheBarrier(t *testing.T) {
	d := New()
	old := d.epoch.Load()
	r := d.Enter()
	done := make(chan struct{})
	go func() { d.Barrier(); close(done) }()
	until(d.parked.Load)
	d.readers[old&1].Add(1) // the late one is between counting and looking
	d.Exit(r)
	select {
	case <-done:
		t.Fatal("the barrier did not see the late reader")
	default:
	}
	d.Exit(Reader{old})
	<-done
}

func TestDelegatedCallbackRunsWithoutItsOwner(t *testing.T) {
	for _, kind := range []struct {
		name    string
		barrier func(*Domain)
	}{{"full", (*Domain).Barrier}, {"conditional", func(d *Domain) { d.TryBarrier() }}} {
		t.Run(kind.name, func(t *testing.T) {
			d := New()
			r := d.Enter()
			var all sync.WaitGroup
			all.Go(d.Barrier) // increments the epoch and waits for r
			until(func() bool { return d.epoch.Load() == 1 })
			all.Go(func() { kind.barrier(d) }) // waits to increment it
			until(func() bool { return d.waiting.Load() == 1 })

			var ran atomic.Bool
			d.Defer(func() { ran.Store(true) })
			if d.TryBarrier() { // were it a full barrier, it would wait for r and never return
				t.Error("the conditional barrier did not delegate")
			}
			if ran.Load() {
				t.Error("the callback ran while a reader was inside")
			}
			d.Exit(r)
			all.Wait()
			if !ran.Load() {
				t.Error("the callback was lost")
			}
		})
	}
}

// One full barrier and one conditional barrier meet, again and again, with no later barrier to pick up what they lost.
func TestNoCallbackIsLostBetweenTwoBarriers(t *testing.T) {
	for round := range 20_000 {
		d := New()
		var ran atomic.Int64
		var all sync.WaitGroup
		all.Go(d.Barrier)
		for range 2 {
			all.Go(func() {
				d.Defer(func() { ran.Add(1) })
				d.TryBarrier()
			})
		}
		all.Wait()
		if ran.Load() != 2 {
			t.Fatalf("round %d: %d of 2 callbacks ran", round, ran.Load())
		}
	}
}

func TestConditionalBarrierIsFullWhenNobodyWaits(t *testing.T) {
	d := New()
	ran := false
	d.Defer(func() { ran = true })
	if !d.TryBarrier() || !ran {
		t.Errorf("alone, a conditional barrier must run the callback: ran %v", ran)
	}

	// A barrier that has incremented the epoch is too late to delegate to.
	r := d.Enter()
	var all sync.WaitGroup
	all.Go(d.Barrier)
	until(func() bool { return d.epoch.Load() == 2 })
	ran = false
	d.Defer(func() { ran = true })
	all.Go(func() {
		if !d.TryBarrier() || !ran {
			t.Error("delegated to a barrier that had begun")
		}
	})
	until(func() bool { return d.waiting.Load() == 1 })
	d.Exit(r)
	all.Wait()
}

// A callback that panics keeps no other callback from running, including callbacks that are queued later.
func TestPanicLosesNoCallback(t *testing.T) {
	d := New()
	var ran []int
	queue := func(i int) { d.Defer(func() { ran = append(ran, i) }) }
	panics := func() {
		defer func() {
			if recover() == nil {
				t.Error("the panic was swallowed")
			}
		}()
		d.Barrier()
	}
	queue(0)
	d.Barrier()
	queue(1)
	d.Defer(func() { queue(4); panic("on purpose") })
	queue(2)
	queue(3)
	panics()
	queue(5)
	d.Barrier()
	d.Defer(func() { panic("as the last one") })
	panics()
	for i := range 3 {
		queue(6 + 2*i)
		queue(7 + 2*i)
		d.Barrier()
	}
	if want := []int{0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11}; !slices.Equal(ran, want) {
		t.Errorf("callbacks ran as %v, want %v", ran, want)
	}
}

func TestTooManyExitsPanic(t *testing.T) {
	d := New()
	r := d.Enter()
	d.Exit(r)
	defer func() {
		if recover() == nil {
			t.Error("no panic")
		}
	}()
	d.Exit(r)
}

// TestReadersSeeNoFreedNode has writers take nodes out of a list that readers walk. Callbacks write to the nodes without any
// care: the race detector complains if a reader can still see one.
func TestReadersSeeNoFreedNode(t *testing.T) {
	const nodes, readers, writers = 200, 2, 4
	d := New()
	l := newList(nodes)
	var ran, delegated atomic.Int64
	var all sync.WaitGroup
	for w := range writers {
		all.Go(func() {
			for tag := w; tag < nodes; tag += writers {
				n := l.find(d, tag)
				if n == nil {
					t.Errorf("tag %d is missing", tag)
					return
				}
				l.unlink(n)
				d.Defer(func() { n.tag = -1; ran.Add(1) })
				if !d.TryBarrier() {
					delegated.Add(1)
				}
			}
		})
	}
	for range readers {
		all.Go(func() {
			for l.head.Load() != nil {
				r := d.Enter()
				for n := l.head.Load(); n != nil; n = n.next.Load() {
					if n.tag < 0 {
						t.Error("a reader saw a reclaimed node")
					}
				}
				d.Exit(r)
			}
		})
	}
	all.Wait()
	if ran.Load() != nodes {
		t.Errorf("%d of %d callbacks ran (%d delegated)", ran.Load(), nodes, delegated.Load())
	}
}
