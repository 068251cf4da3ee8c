package semaphore

import (
	"math/rand/v2"
	"runtime"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
)

// until lets the others run until a condition holds that they must bring about.
func until(holds func() bool) {
	for !holds() {
		runtime.Gosched()
	}
}

// TestFigure1b: eight threads, one unit each, batches of four. Threads 0 and 4 grow, at the same time.
func TestFigure1b(t *testing.T) {
	b := NewBulk(0)
	var growers []int
	var wg sync.WaitGroup
	results := make([]atomic.Int32, 8)
	for i, want := range []Counts{
		{0, 3, 0}, {0, 3, 1}, {0, 3, 2}, {0, 3, 3}, {0, 6, 3}, {0, 6, 4}, {0, 6, 5}, {0, 6, 6},
	} {
		wg.Go(func() {
			if b.Wait(1, 4) {
				results[i].Store(1)
			} else {
				results[i].Store(2)
			}
		})
		until(func() bool { return b.Counts() == want })
		until(func() bool { return results[i].Load() != 0 || want.Reserved > 0 && i%4 != 0 })
		if results[i].Load() == 2 {
			growers = append(growers, i)
		}
	}
	if !slices.Equal(growers, []int{0, 4}) {
		t.Fatalf("threads %v grow", growers)
	}
	b.Signal(3, 3)
	b.Signal(3, 3)
	wg.Wait()
	if got := b.Counts(); got != (Counts{}) {
		t.Errorf("left over: %+v", got)
	}
}

// TestFigure1a: the same with a counting semaphore. Thread 4 can grow only when thread 0 has.
func TestFigure1a(t *testing.T) {
	c := newCounting(0)
	if got := c.Wait(1); got != 0 || c.Value() != -1 {
		t.Fatalf("thread 0 gets %d and leaves %d", got, c.Value())
	}
	got := make(chan int)
	for range 7 {
		go func() { got <- c.Wait(1) }()
	}
	until(func() bool { return c.lot.parked.Load() == 7 })
	c.Grown(3)
	served := []int{<-got, <-got, <-got, <-got}
	slices.Sort(served)
	if !slices.Equal(served, []int{0, 1, 1, 1}) {
		t.Fatalf("after the first batch four threads get %v", served)
	}
	until(func() bool { return c.Value() == -1 })
	c.Grown(3)
	if last := []int{<-got, <-got, <-got}; !slices.Equal(last, []int{1, 1, 1}) {
		t.Errorf("after the second batch three threads get %v", last)
	}
	if c.Value() != 0 {
		t.Errorf("%d left over", c.Value())
	}
}

func TestCountingGivesWhatIsLeft(t *testing.T) {
	c := newCounting(3)
	if got := c.Wait(5); got != 3 || c.Value() != -1 {
		t.Fatalf("got %d, left %d", got, c.Value())
	}
	c.Signal(1)
	if got := c.Wait(1); got != 1 {
		t.Errorf("a unit given back while a thread grows: got %d", got)
	}
	c.Grown(3) // it failed
	if c.Value() != 3 || c.TryWait(4) || !c.TryWait(3) {
		t.Errorf("after a failure: %d", c.Value())
	}
}

// TestWaiterGrowsWhenTheGrowerFails: it must neither hang nor give up.
func TestWaiterGrowsWhenTheGrowerFails(t *testing.T) {
	b := NewBulk(0)
	if b.Wait(1, 3) {
		t.Fatal("took a unit of none")
	}
	results := make(chan bool)
	for range 2 {
		go func() { results <- b.Wait(1, 3) }()
	}
	until(func() bool { return b.lot.parked.Load() == 2 })
	b.Signal(0, 2)
	if <-results {
		t.Fatal("took a unit that never came")
	}
	until(func() bool { return b.Counts() == Counts{0, 2, 1} })
	b.Signal(2, 2)
	if !<-results || b.Counts() != (Counts{1, 0, 0}) {
		t.Errorf("left with %+v", b.Counts())
	}
}

func TestTryWaitLeavesWhatIsPromised(t *testing.T) {
	b := NewBulk(0)
	for _, c := range []struct {
		counts Counts
		n      int
		want   bool
	}{
		{Counts{0, 0, 0}, 1, false},
		{Counts{0, 5, 0}, 1, false},
		{Counts{1, 0, 0}, 1, true},
		{Counts{1, 0, 1}, 1, false},
		{Counts{1, 1, 1}, 1, true},
		{Counts{2, 0, 1}, 2, false},
		{Counts{3, 0, 1}, 2, true},
	} {
		b.word.Store(c.counts.pack())
		if got := b.TryWait(c.n); got != c.want {
			t.Errorf("%+v: TryWait(%d) is %v", c.counts, c.n, got)
		}
	}
}

// TestExpectHoldsThreads: a thread promises units although it needs none.
func TestExpectHoldsThreads(t *testing.T) {
	b := NewBulk(0)
	b.PromiseUnits(1)
	taken := make(chan bool)
	go func() { taken <- b.Wait(1, 2) }()
	until(func() bool { return b.Counts() == Counts{0, 1, 1} })
	b.Signal(1, 1)
	if !<-taken || b.Counts() != (Counts{}) {
		t.Errorf("left with %+v", b.Counts())
	}
}

func TestCountersDoNotSpill(t *testing.T) {
	for _, c := range []Counts{{MaxUnits, 0, 0}, {0, MaxExpected, 0}, {0, 0, MaxReserved}, {1, 2, 3}} {
		if got := unpack(c.pack()); got != c {
			t.Errorf("%+v comes back as %+v", c, got)
		}
	}
	for name, misuse := range map[string]func(){
		"units: 16777216 ":          func() { NewBulk(MaxUnits).Signal(1, 0) },
		"units: 16777217 ":          func() { NewBulk(MaxUnits + 2) },
		"expected units: 2097152 ":  func() { NewBulk(0).Wait(1, MaxExpected+2) },
		"expected units: 2097153 ":  func() { NewBulk(0).PromiseUnits(MaxExpected + 2) },
		"expected units: -1 ":       func() { NewBulk(0).Signal(1, 1) },
		"reserved units: 524288 ":   func() { c := Counts{0, MaxExpected, 0}; c, _ = c.wait(MaxReserved+1, MaxReserved+1, false); c.pack() },
		"wait for 0 units":          func() { NewBulk(0).Wait(0, 1) },
		"wait for 2 units of a":     func() { NewBulk(0).Wait(2, 1) },
		": -1 units":                func() { NewBulk(0).Signal(-1, 0) },
		"count 1 units and -1 grow": func() { newCounting(0).Grown(1) },
		"count 1099511627776 units": func() { newCounting(maxCounted).Signal(1) },
	} {
		func() {
			defer func() {
				if message, _ := recover().(string); !strings.Contains(message+" ", name) {
					t.Errorf("want a panic about %q, have %q", name, message)
				}
			}()
			misuse()
		}()
	}
}

// accountant is what the two semaphores have in common, for tests and benchmarks.
type accountant interface {
	take(n, batch int) (grow int) // 0: taken; else the batch that the caller adds
	grown(n, batch int, ok bool)
	give(n int)
}

type bulkAccountant struct{ *Bulk }

func (a bulkAccountant) take(n, batch int) int {
	if a.Wait(n, batch) {
		return 0
	}
	return batch
}

func (a bulkAccountant) grown(n, batch int, ok bool) {
	if ok {
		a.Signal(batch-n, batch-n)
	} else {
		a.Signal(0, batch-n)
	}
}

func (a bulkAccountant) give(n int) { a.Signal(n, 0) }

// countingAccountant takes single units, so that a grower never holds a part.
type countingAccountant struct{ *countingSemaphore }

func (a countingAccountant) take(n, batch int) int {
	if a.Wait(n) == n {
		return 0
	}
	return batch
}

func (a countingAccountant) grown(n, batch int, ok bool) {
	if ok {
		a.Grown(batch - n)
	} else {
		a.Grown(0)
	}
}

func (a countingAccountant) give(n int) { a.Signal(n) }

// TestThreadsLoseNoUnit: many threads take, give back, grow and fail to; in the end all units are accounted for.
func TestThreadsLoseNoUnit(t *testing.T) {
	bulk, counting := NewBulk(3), newCounting(3)
	if made := hammer(bulkAccountant{bulk}, 3); bulk.Counts() != (Counts{Units: made + 3}) {
		t.Errorf("%d units made, left with %+v", made, bulk.Counts())
	}
	if made := hammer(countingAccountant{counting}, 1); counting.Value() != made+3 {
		t.Errorf("%d units made, left with %d", made, counting.Value())
	}
}

// hammer has takers of up to widest units each, and returns how many units they have made.
func hammer(a accountant, widest int) (made int) {
	var total atomic.Int64
	var wg sync.WaitGroup
	for seed := range uint64(32) {
		wg.Go(func() {
			rng := rand.New(rand.NewPCG(seed, 1))
			held := 0
			for range 500 {
				n := 1 + rng.IntN(widest)
				batch := n + rng.IntN(6)
				grow := a.take(n, batch)
				if ok := rng.IntN(3) > 0; grow == 0 {
					held += n
				} else if a.grown(n, batch, ok); ok {
					held += n
					total.Add(int64(grow))
				}
				if rng.IntN(3) == 0 {
					a.give(held)
					held = 0
				}
			}
			a.give(held)
		})
	}
	wg.Wait()
	return int(total.Load())
}

// TestSleepersAreWoken: with no units left and a slow grower, all other threads sleep; each unit that comes wakes one.
func TestSleepersAreWoken(t *testing.T) {
	const sleepers = 20
	b := NewBulk(0)
	b.PromiseUnits(sleepers)
	done := make(chan bool)
	for range sleepers {
		go func() { done <- b.Wait(1, 2) }()
	}
	until(func() bool { return b.lot.parked.Load() == sleepers })
	for i := range sleepers {
		b.Signal(1, 1)
		if !<-done {
			t.Fatalf("sleeper %d was asked to grow", i)
		}
	}
}
