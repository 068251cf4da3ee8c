package semaphore

import (
	"fmt"
	"math/bits"
	"testing"
)

// The model runs a few threads one step at a time, in every order that there is. A step is what the code does
// atomically: one compare-and-swap, one load, or a stretch under the lot's mutex between two looks at the word. Steps
// on the word are the functions that Bulk itself uses.

type step uint8

const (
	atOp     step = iota // about to begin its next operation
	waiting              // has reserved, about to look
	parking              // about to lock the mutex to park
	checking             // parked, holds the mutex, about to look
	sleeping             // only a waker can end this
	woken                // about to lock the mutex again
	growing              // owes units
	counting             // has signalled, about to read parked
	waking               // has seen threads parked, about to lock the mutex
)

type op struct {
	kind  byte // 't'ake, 'r'y to take, 'g'ive all back
	n     int
	batch int
}

type modelThread struct {
	at      int8 // operation
	pc      step
	held    int8
	granted int8 // units signalled, for waking
	all     bool // wake all
}

type modelState struct {
	counts  Counts
	threads [4]modelThread
	made    int8
	grown   int8
	mutex   int8 // 0: free
	parked  int8
	wide    int8
}

type modelRun struct {
	t       *testing.T
	scripts [][]op
	fails   bool // growers may fail
	seen    map[modelState]bool
	open    map[modelState]bool // on the path: coming back to one would be a loop without progress
	ends    func(s modelState)
}

func (m *modelRun) explore(s modelState) {
	if m.seen[s] {
		if m.open[s] {
			m.t.Fatalf("threads can go round in circles: %+v", s)
		}
		return
	}
	m.seen[s], m.open[s] = true, true
	m.check(s)
	moved := false
	for i := range m.scripts {
		for _, next := range m.steps(s, i) {
			moved = true
			m.explore(next)
		}
	}
	delete(m.open, s)
	if moved {
		return
	}
	for i, script := range m.scripts {
		if int(s.threads[i].at) != len(script) {
			m.t.Fatalf("thread %d sleeps for ever: %+v", i, s)
		}
	}
	if s.counts.Expected != 0 || s.counts.Reserved != 0 || s.parked != 0 || s.wide != 0 {
		m.t.Fatalf("something is left over: %+v", s)
	}
	m.ends(s)
}

// check tests the invariants of the package comment in one state.
func (m *modelRun) check(s modelState) {
	held, owed, asked, settled := 0, 0, 0, true
	for i, script := range m.scripts {
		th := s.threads[i]
		held += int(th.held)
		switch th.pc {
		case growing:
			owed += script[th.at].batch - script[th.at].n
		case waiting, parking, checking, sleeping, woken:
			asked += script[th.at].n
		}
		settled = settled && (th.pc == sleeping || th.pc == atOp || th.pc == growing)
	}
	if s.counts.Units+held != int(s.made) || s.counts.Expected != owed || s.counts.Reserved != asked {
		m.t.Fatalf("%d held, %d owed, %d asked for: %+v", held, owed, asked, s)
	}
	for i, script := range m.scripts {
		if !settled || s.threads[i].pc != sleeping {
			continue
		}
		if _, what := s.counts.wait(script[s.threads[i].at].n, 9, true); what != stays {
			m.t.Fatalf("thread %d sleeps and no thread is about to wake it: %+v", i, s)
		}
	}
}

// steps returns what thread i can do next.
func (m *modelRun) steps(s modelState, i int) []modelState {
	th := &s.threads[i]
	if int(th.at) == len(m.scripts[i]) {
		return nil
	}
	o := m.scripts[i][th.at]
	switch th.pc {
	case atOp:
		return m.begin(s, i, o)
	case waiting:
		return []modelState{look(s, i, o, true)}
	case growing:
		return m.grow(s, i, o)
	case counting:
		if th.pc = waking; s.parked == 0 {
			finish(th)
		}
		return []modelState{s}
	case waking:
		return wakeSome(s, i)
	}
	return lotStep(s, i, o)
}

func (m *modelRun) begin(s modelState, i int, o op) []modelState {
	th := &s.threads[i]
	switch o.kind {
	case 't':
		return []modelState{look(s, i, o, false)}
	case 'r':
		next, ok := s.counts.tryWait(o.n)
		if s.counts = next; ok {
			th.held += int8(o.n)
		}
		finish(th)
	case 'g':
		s.counts = s.counts.signal(int(th.held), 0)
		th.granted, th.held, th.pc = th.held, 0, counting
	}
	return []modelState{s}
}

// look is one round of Wait.
func look(s modelState, i int, o op, reserved bool) modelState {
	th := &s.threads[i]
	next, what := s.counts.wait(o.n, o.batch, reserved)
	s.counts = next
	switch what {
	case took:
		th.held += int8(o.n)
		finish(th)
	case grows:
		th.pc = growing
	case reserves:
		th.pc = waiting
	case stays:
		th.pc = parking
	}
	return s
}

func (m *modelRun) grow(s modelState, i int, o op) []modelState {
	failed, good := s, s
	th := &good.threads[i]
	good.counts = good.counts.signal(o.batch-o.n, o.batch-o.n)
	th.held += int8(o.n)
	th.granted, th.pc = int8(o.batch-o.n), counting
	good.made += int8(o.batch)
	good.grown++
	if !m.fails {
		return []modelState{good}
	}
	failed.counts = failed.counts.signal(0, o.batch-o.n)
	failed.threads[i].all, failed.threads[i].pc = true, counting
	return []modelState{good, failed}
}

// lotStep is a step of lot.idle.
func lotStep(s modelState, i int, o op) []modelState {
	th := &s.threads[i]
	wide := int8(min(o.n-1, 1))
	switch {
	case th.pc == sleeping, th.pc != checking && s.mutex != 0:
		return nil
	case th.pc == parking:
		s.mutex, th.pc = int8(i+1), checking
		s.parked++
		s.wide += wide
	case th.pc == woken:
		s.mutex, th.pc = int8(i+1), checking
	default:
		s.mutex = 0
		if _, what := s.counts.wait(o.n, o.n, true); what == stays {
			th.pc = sleeping
			break
		}
		th.pc = waiting
		s.parked--
		s.wide -= wide
	}
	return []modelState{s}
}

// wakeSome is the part of lot.wakeEnough and lot.wakeAll under the mutex, for every choice of sleepers.
func wakeSome(s modelState, i int) (next []modelState) {
	if s.mutex != 0 {
		return nil
	}
	th := &s.threads[i]
	asleep := uint(0)
	for j := range s.threads {
		if s.threads[j].pc == sleeping {
			asleep |= 1 << j
		}
	}
	wanted := min(int(th.granted), bits.OnesCount(asleep))
	if th.all || needsWakeAll(int(th.granted), int(s.parked), int(s.wide)) {
		wanted = bits.OnesCount(asleep)
	}
	finish(th)
	for set := range uint(1 << len(s.threads)) {
		if set&^asleep != 0 || bits.OnesCount(set) != wanted {
			continue
		}
		one := s
		for j := range s.threads {
			if set>>j&1 == 1 {
				one.threads[j].pc = woken
			}
		}
		next = append(next, one)
	}
	return next
}

func finish(th *modelThread) {
	th.at++
	th.pc, th.granted, th.all = atOp, 0, false
}

func TestEveryInterleaving(t *testing.T) {
	take := func(n, batch int) op { return op{'t', n, batch} }
	give, try := op{kind: 'g'}, op{'r', 1, 0}
	for _, c := range []struct {
		name    string
		units   int
		scripts [][]op
	}{
		{"four take of a batch of two", 0, [][]op{{take(1, 2)}, {take(1, 2)}, {take(1, 2)}, {take(1, 2)}}},
		{"four take of a batch of three", 1, [][]op{{take(1, 3)}, {take(1, 3)}, {take(1, 3)}, {take(1, 3)}}},
		{"take and give", 1, [][]op{{take(1, 2), give}, {take(1, 2), give}, {take(1, 2), give}}},
		{"take twice", 0, [][]op{{take(1, 2), take(1, 2), give}, {take(1, 2), give}, {take(1, 2)}}},
		{"a merger among takers", 1, [][]op{{take(1, 2)}, {take(1, 2), give}, {try, give}, {try}}},
		{"different needs", 0, [][]op{{take(3, 4), give}, {take(1, 4)}, {take(2, 4), give}, {take(1, 4)}}},
		{"single units for a wide one and a narrow one", 0, [][]op{{take(1, 2)}, {take(2, 4)}, {take(2, 4)}, {take(1, 2)}}},
		{"wide and narrow", 2, [][]op{{take(3, 3), give}, {take(1, 3), give}, {take(2, 3)}}},
	} {
		for _, fails := range []bool{false, true} {
			t.Run(fmt.Sprintf("%s, growers fail %v", c.name, fails), func(t *testing.T) {
				m := &modelRun{t: t, scripts: c.scripts, fails: fails, seen: map[modelState]bool{}, open: map[modelState]bool{}}
				ends := 0
				m.ends = func(modelState) { ends++ }
				m.explore(modelState{counts: Counts{Units: c.units}, made: int8(c.units)})
				if ends == 0 {
					t.Fatal("nothing came to an end")
				}
				t.Logf("%d states, %d ends", len(m.seen), ends)
			})
		}
	}
}

// TestGrowersAreAsManyAsNeeded: as long as nothing is given back, the batches cover what is asked for, and there is
// none beyond that, in whatever order the threads come.
func TestGrowersAreAsManyAsNeeded(t *testing.T) {
	for batch := 1; batch <= 5; batch++ {
		for units := range 3 {
			scripts := make([][]op, 4)
			for i := range scripts {
				scripts[i] = []op{{'t', 1, batch}}
			}
			m := &modelRun{t: t, scripts: scripts, seen: map[modelState]bool{}, open: map[modelState]bool{}}
			want := (len(scripts) - units + batch - 1) / batch
			m.ends = func(s modelState) {
				if int(s.grown) != want {
					t.Errorf("batch %d, %d units: %d growers, want %d", batch, units, s.grown, want)
				}
			}
			m.explore(modelState{counts: Counts{Units: units}, made: int8(units)})
		}
	}
}
