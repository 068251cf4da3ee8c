package collective

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

// members returns the sizes of the groups that wait.
func (m *Mutex) members() []int {
	m.mutex.Lock()
	defer m.mutex.Unlock()
	sizes := []int{}
	for _, t := range m.waiting {
		sizes = append(sizes, t.size)
	}
	return sizes
}

func (m *Mutex) waits(sizes ...int) func() bool {
	return func() bool { return slices.Equal(m.members(), sizes) }
}

func TestOneCallerEntersAtOnce(t *testing.T) {
	var m Mutex
	for range 2 {
		in := m.Lock(0)
		if in.Rank != 0 || in.Size != 1 {
			t.Errorf("rank %d of %d, want 0 of 1", in.Rank, in.Size)
		}
		in.Barrier()
		in.Unlock()
	}
	if m.inside != nil {
		t.Error("still locked")
	}
}

func TestWhoWaitsEntersTogether(t *testing.T) {
	const n = 16
	var m Mutex
	var inside atomic.Int64
	ranks := make([]atomic.Int64, n)
	var all sync.WaitGroup
	first := m.Lock(0)
	for range n {
		all.Go(func() {
			in := m.Lock(0)
			if in.Size != n {
				t.Errorf("a group of %d, want %d", in.Size, n)
			}
			ranks[in.Rank].Add(1)
			inside.Add(1)
			in.Barrier() // no thread passes unless all are inside
			if inside.Load() != n {
				t.Errorf("%d of %d were inside", inside.Load(), n)
			}
			in.Unlock()
		})
	}
	until(m.waits(n))
	if inside.Load() != 0 {
		t.Error("a group entered while another was inside")
	}
	first.Unlock()
	all.Wait()
	for rank := range ranks {
		if got := ranks[rank].Load(); got != 1 {
			t.Errorf("rank %d was given %d times", rank, got)
		}
	}
}

// The seed's use of the mutex: each member takes the element that its rank says, and the member with the highest rank
// splits the list for all.
func TestHighestRankSplitsTheListForAll(t *testing.T) {
	type element struct{ next *element }
	const n, rounds = 8, 20
	var m Mutex
	var head *element
	for range n * rounds {
		head = &element{head}
	}
	operations := 0 // guarded by m
	var taken sync.Map
	for range rounds {
		var all sync.WaitGroup
		gate := m.Lock(Alone)
		for range n {
			all.Go(func() {
				in := m.Lock(0)
				at := head
				for range in.Rank {
					at = at.next
				}
				in.Barrier() // all have looked
				if in.Rank == in.Size-1 {
					head = at.next
					operations++
				}
				in.Unlock()
				if _, twice := taken.LoadOrStore(at, true); twice {
					t.Error("an element was taken twice")
				}
			})
		}
		until(func() bool { return m.WaitingCount() == n })
		gate.Unlock()
		all.Wait()
	}
	if head != nil {
		t.Error("not all elements were taken")
	}
	if operations != rounds {
		t.Errorf("%d list operations for %d elements, want %d", operations, n*rounds, rounds)
	}
}

// Later arrivals join a group that waits, but do not overtake threads that cannot join it.
func TestGroupsEnterInOrder(t *testing.T) {
	var m Mutex
	var mutex sync.Mutex
	var order []int
	var all sync.WaitGroup
	arrive := func(purpose int, sizes ...int) {
		all.Go(func() {
			in := m.Lock(purpose)
			mutex.Lock()
			order = append(order, in.Size*10+purpose)
			mutex.Unlock()
			in.Unlock()
		})
		until(m.waits(sizes...))
	}
	first := m.Lock(0)
	arrive(2, 1)
	arrive(Alone, 1, 1)
	arrive(Alone, 1, 1, 1)
	arrive(3, 1, 1, 1, 1)
	arrive(2, 2, 1, 1, 1)
	first.Unlock()
	all.Wait()
	if want := []int{22, 22, 9, 9, 13}; !slices.Equal(order, want) {
		t.Errorf("entered as %v (size*10+purpose), want %v", order, want)
	}
}

func TestMembersNeedNotWaitForWhoHasLeft(t *testing.T) {
	var m Mutex
	var all sync.WaitGroup
	gate := m.Lock(Alone)
	for range 3 {
		all.Go(func() {
			in := m.Lock(0)
			for range in.Rank { // rank 0 leaves at once, rank 1 after one barrier
				in.Barrier()
			}
			in.Unlock()
		})
	}
	until(m.waits(3))
	gate.Unlock()
	all.Wait()
	if m.inside != nil {
		t.Error("locked although all have left")
	}
}

func TestStaysLockedUntilAllHaveLeft(t *testing.T) {
	var m Mutex
	gate := m.Lock(0)
	members := make(chan Member)
	for range 2 {
		go func() { members <- m.Lock(0) }()
	}
	until(m.waits(2))
	gate.Unlock()
	first, second := <-members, <-members
	done := make(chan Member)
	go func() { done <- m.Lock(0) }()
	until(m.waits(1))
	first.Unlock()
	if !m.waits(1)() {
		t.Error("a group entered before the one inside had left")
	}
	second.Unlock()
	(<-done).Unlock()
}

// A member that leaves twice does not take the place of another member.
func TestLeavingTwiceLetsNobodyIn(t *testing.T) {
	const n = 70
	var m Mutex
	members := make(chan Member, n)
	gate := m.Lock(Alone)
	for range n {
		go func() { members <- m.Lock(0) }()
	}
	until(m.waits(n))
	gate.Unlock()
	for left := range n {
		in := <-members
		in.Unlock()
		func() {
			defer func() {
				if recover() == nil {
					t.Errorf("rank %d left twice", in.Rank)
				}
			}()
			in.Unlock()
		}()
		m.mutex.Lock()
		inside := m.inside != nil
		m.mutex.Unlock()
		if want := left < n-1; inside != want {
			t.Fatalf("after %d of %d have left the mutex is locked: %v", left+1, n, inside)
		}
	}
}

func TestMisusePanics(t *testing.T) {
	panics := func(name string, call func()) {
		defer func() {
			if recover() == nil {
				t.Errorf("%s: no panic", name)
			}
		}()
		call()
	}
	var m Mutex
	in := m.Lock(0)
	in.Unlock()
	panics("unlocked twice", in.Unlock)
	next := m.Lock(0)
	panics("unlocked after another has entered", in.Unlock)
	next.Unlock()
	panics("unlocked twice after that", next.Unlock)
}

func TestAloneAllocatesNothing(t *testing.T) {
	var m Mutex
	if n := testing.AllocsPerRun(100, func() { m.Lock(0).Unlock() }); n != 0 {
		t.Errorf("%v allocations", n)
	}
}

// TestOnlyOneThreadIsInside mixes all ways to enter; plain variables are written inside, for the race detector.
func TestOnlyOneThreadIsInside(t *testing.T) {
	const goroutines, rounds = 4, 500
	var m Mutex
	var holder *team // written by rank 0 only, between barriers
	var inside atomic.Int64
	var entered [3]int // groups by kind
	work := func(kind int, in Member) {
		inside.Add(1)
		in.Barrier()
		if got := inside.Load(); got != int64(in.Size) {
			t.Errorf("%d inside, the group has %d", got, in.Size)
		}
		in.Barrier()
		inside.Add(-1)
		if in.Rank == in.Size-1 {
			holder = in.team
			entered[kind]++
		}
		in.Barrier()
		if holder != in.team {
			t.Error("another group is inside")
		}
		in.Unlock()
	}
	var all sync.WaitGroup
	for range goroutines {
		for kind, lock := range []func() Member{
			func() Member { return m.Lock(0) },
			func() Member { return m.Lock(1) },
			func() Member { return m.Lock(Alone) },
		} {
			all.Go(func() {
				for range rounds {
					work(kind, lock())
				}
			})
		}
	}
	all.Wait()
	if entered[2] != goroutines*rounds {
		t.Errorf("groups by kind %v, want %d alone", entered, goroutines*rounds)
	}
	if m.inside != nil || len(m.waiting) != 0 {
		t.Error("a thread was forgotten")
	}
}
