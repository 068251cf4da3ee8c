package tbuddy

import (
	"runtime"
	"sync/atomic"
	"testing"
)

// The tests in this file stop a thread where it matters.

// gate stops one thread at a point of a stock, once.
type gate struct {
	armed   atomic.Bool
	reached chan bool
	open    chan bool
}

func newGate() *gate { return &gate{reached: make(chan bool), open: make(chan bool)} }

func (g *gate) pass() {
	if g != nil && g.armed.CompareAndSwap(true, false) {
		g.reached <- true
		<-g.open
	}
}

// gatedStock stops before a wait, after a wait that took a unit, after a try-wait that did, or when it has been
// signalled blocks, and reports a try-wait that took none.
type gatedStock struct {
	bulkStock
	before, waited, tried, signalled *gate
	failed                           func()
}

func (s *gatedStock) signal(n, promises int) {
	s.bulkStock.signal(n, promises)
	if n > 0 {
		s.signalled.pass()
	}
}

func (s *gatedStock) wait() bool {
	s.before.pass()
	taken := s.bulkStock.wait()
	if taken {
		s.waited.pass()
	}
	return taken
}

func (s *gatedStock) tryWait() bool {
	taken := s.bulkStock.tryWait()
	if taken {
		s.tried.pass()
	} else if s.failed != nil {
		s.failed()
	}
	return taken
}

func gated(pages int) (*Tree, []*gatedStock) {
	var stocks []*gatedStock
	tree := newSharedBy(pages, func(units int) stock {
		stocks = append(stocks, &gatedStock{bulkStock: newBulkStock(units)})
		return stocks[len(stocks)-1]
	})
	return tree, stocks
}

// start runs an Alloc of order 0 in a thread of its own.
func start(tree *Tree) chan bool {
	done := make(chan bool, 1)
	go func() {
		_, ok := tree.Alloc(0, 0)
		done <- ok
	}()
	return done
}

// waitsOrEnds lets the others run until a thread waits for a block of that stock, or until it is done.
func waitsOrEnds(s *gatedStock, done chan bool) {
	for s.Counts().Reserved == 0 && len(done) == 0 {
		runtime.Gosched()
	}
}

// TestSplitHidesNothing: while one thread splits the only block, another one that needs half of it waits.
func TestSplitHidesNothing(t *testing.T) {
	tree, stocks := gated(2)
	g := newGate()
	stocks[1].waited = g
	g.armed.Store(true)
	first := start(tree)
	<-g.reached
	second := start(tree)
	waitsOrEnds(stocks[0], second)
	close(g.open)
	if !<-first || !<-second {
		t.Error("out of memory with a page on its way")
	}
}

// TestMergeHidesNothing: a page is free all the time, although for a moment a merge has taken it and has not given it
// back as a part of something larger.
func TestMergeHidesNothing(t *testing.T) {
	tree, stocks := gated(2)
	g := newGate()
	stocks[0].tried = g
	tree.Alloc(0, 0)
	g.armed.Store(true)
	freed := make(chan bool)
	go func() { freed <- tree.Free(0, 0) }()
	<-g.reached
	taken := start(tree)
	waitsOrEnds(stocks[1], taken)
	close(g.open)
	if !<-freed || !<-taken {
		t.Error("out of memory with a page free all the time")
	}
	if err := tree.Validate(); err != nil {
		t.Error(err)
	}
}

// TestPassingByHidesNothing: a thread finds no page, then one is freed, then the larger block that it was to split next
// is taken. There was room at each moment.
func TestPassingByHidesNothing(t *testing.T) {
	tree, stocks := gated(4)
	tree.Alloc(0, 0)
	tree.Alloc(0, 0)
	g := newGate()
	stocks[1].before = g
	g.armed.Store(true)
	taken := start(tree)
	<-g.reached
	tree.Free(0, 0)
	if _, ok := tree.Alloc(1, 0); !ok {
		t.Fatal("the upper half is free")
	}
	close(g.open)
	if !<-taken {
		t.Error("out of memory with room at each moment")
	}
}

// TestLateFreeHidesNothing: the same, but a free that has not ended has already signalled the page.
func TestLateFreeHidesNothing(t *testing.T) {
	tree, stocks := gated(4)
	tree.Alloc(0, 0)
	tree.Alloc(0, 0)
	passing, late := newGate(), newGate()
	stocks[1].before, stocks[0].signalled = passing, late
	passing.armed.Store(true)
	taken := start(tree)
	<-passing.reached
	late.armed.Store(true)
	freed := make(chan bool)
	go func() { freed <- tree.Free(0, 0) }()
	<-late.reached
	if _, ok := tree.Alloc(1, 0); !ok {
		t.Fatal("the upper half is free")
	}
	close(passing.open)
	if !<-taken {
		t.Error("out of memory with room at each moment")
	}
	close(late.open)
	<-freed
}

// TestMergeIsSeen: a search that has passed the order of a page and returns when a merge has taken it learns of that.
func TestMergeIsSeen(t *testing.T) {
	tree, stocks := gated(2)
	tree.Alloc(0, 0)
	g := newGate()
	stocks[1].signalled = g
	g.armed.Store(true)
	before := tree.moved.Load()
	freed := make(chan bool)
	go func() { freed <- tree.Free(0, 0) }()
	<-g.reached
	if tree.moved.Load() == before {
		t.Error("a page was taken out of the books unseen")
	}
	close(g.open)
	<-freed
}

// TestBlockBeingSplitIsNotAllocated: it cannot be freed as a whole.
func TestBlockBeingSplitIsNotAllocated(t *testing.T) {
	tree := newShared(4)
	half := tree.nodeOf(0, 1)
	tree.lock(half) // so that the thread that takes the root cannot split it
	taken := start(tree)
	for tree.listedOrders(1) != 0 {
		runtime.Gosched()
	}
	merged, ok := tree.Release(0, 2)
	tree.unlock(half)
	if ok {
		t.Errorf("a block that was never handed out has been freed, as one of order %d", merged)
	}
	if !<-taken || !tree.Free(0, 0) {
		t.Error("the page was not served or not freed")
	}
	whole(t, tree, 4)
}

// TestFreeWaitsForThePromised: the buddy of a freed page is Available, but its unit is with a thread that still looks.
// The free must not leave two buddies free and unmerged when that thread takes another page.
func TestFreeWaitsForThePromised(t *testing.T) {
	tree, stocks := gated(4)
	for range 4 {
		tree.Alloc(0, 0)
	}
	tree.Free(1, 0)
	g := newGate()
	stocks[0].waited = g
	g.armed.Store(true)
	looking := start(tree)
	<-g.reached
	freed := make(chan bool, 1)
	go func() { freed <- tree.Free(0, 0) }()
	tree.Free(2, 0) // another page for the one that looks
	close(g.open)
	if !<-looking || !<-freed {
		t.Error("the page was not served or not freed")
	}
	if err := tree.Validate(); err != nil {
		t.Error(err)
	}
}

// TestWaitingFreeKeepsTheLists: a free that has merged once and then waits has updated the lists above the merged
// block; otherwise searches for what it has merged would go astray.
func TestWaitingFreeKeepsTheLists(t *testing.T) {
	tree, stocks := gated(4)
	tree.Alloc(0, 0)
	tree.Alloc(0, 0)
	tree.Free(0, 0)
	g := newGate()
	stocks[1].waited = g
	g.armed.Store(true)
	looking := make(chan bool)
	go func() {
		_, ok := tree.Alloc(1, 0)
		looking <- ok
	}()
	<-g.reached
	tries := 0
	stocks[1].failed = func() {
		if tries++; tries == 2 {
			if got := tree.listedOrders(1); got != availableBit(1) {
				t.Errorf("the root lists %#x while only the upper half is Available", got)
			}
			close(g.open)
		}
	}
	if !tree.Free(1, 0) || !<-looking {
		t.Error("the page was not freed or the half not served")
	}
	if err := tree.Validate(); err != nil {
		t.Error(err)
	}
}
