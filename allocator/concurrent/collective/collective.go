// Package collective is a mutex that a group enters together: the collective mutex of seed 001 §4.2.2.
//
// Definition. All members of a group enter the critical section at the same time. Each has a rank from 0 to the
// group's size less one. They coordinate by barriers, so that they work in parallel and one of them updates the shared
// structure for all. Each unlocks when it leaves, and the mutex stays locked until all have left.
//
// In the seed a group is a block of threads that the hardware starts together. Here threads that arrive while the mutex
// is locked, and have the same purpose, form a group and enter together on unlock. Without contention a group has one
// member and the mutex is an ordinary one.
//
// Invariants:
//   - At most one group is inside. All its members are inside, have left, or are about to return from Lock.
//   - While a group is inside, its size is fixed: who arrives joins or begins a group that waits.
//   - Groups enter in the order in which they began to wait.
package collective

import (
	"slices"
	"sync"
)

// Alone is the purpose of those who enter by themselves.
const Alone = -1

// Mutex is a collective mutex. The zero value is unlocked. It must not be copied after first use.
type Mutex struct {
	mutex   sync.Mutex // guards the fields and the sizes of waiting teams; held for a few instructions
	inside  *team      // nil: unlocked, and no thread waits
	waiting []*team    // the next one first
	spent   *team      // one that all threads have left and none waits for; nil: none
}

// Member is one goroutine's part in the group that is inside.
type Member struct {
	Rank  int // 0 to Size-1, each once
	Size  int // of the group
	team  *team
	entry uint64 // of the team
}

// team is one entering of one group.
type team struct {
	of      *Mutex
	purpose int           // Alone: no thread joins
	size    int           // fixed once it is inside
	entry   uint64        // how many groups have used it and left
	entered chan struct{} // closed when it is inside; nil if it never waited

	mutex   sync.Mutex    // guards the rest
	present int           // have not left
	arrived int           // of them, at the barrier
	turn    chan struct{} // closed when all present have arrived; nil before the first has
	gone    []uint64      // a bit per rank that has left a team of several, which enters once
}

// Lock waits until the caller's group is inside. Callers with the same purpose, which is 0 or more, who wait at the
// same time are one group. They must go through the same barriers, so a purpose stands for a piece of code. A caller
// with purpose Alone is a group by itself.
func (m *Mutex) Lock(purpose int) Member {
	m.mutex.Lock()
	t := m.joinable(purpose)
	if t != nil {
		t.size++
	} else {
		t = m.team(purpose)
		m.admit(t)
	}
	rank := t.size - 1
	m.mutex.Unlock()
	return t.member(rank)
}

// team returns a team of one.
func (m *Mutex) team(purpose int) *team {
	t := m.spent
	if t == nil {
		return &team{of: m, purpose: purpose, size: 1}
	}
	m.spent = nil
	t.purpose, t.size = purpose, 1
	return t
}

// Waiting returns how many callers of Lock wait for their turn, for tests and statistics.
func (m *Mutex) Waiting() int {
	m.mutex.Lock()
	defer m.mutex.Unlock()
	n := 0
	for _, t := range m.waiting {
		n += t.size
	}
	return n
}

// joinable returns the waiting team that a newcomer belongs to, nil when it must begin one.
func (m *Mutex) joinable(purpose int) *team {
	for _, t := range m.waiting {
		if purpose != Alone && t.purpose == purpose {
			return t
		}
	}
	return nil
}

// admit lets a team in, or has it wait for its turn.
func (m *Mutex) admit(t *team) {
	if m.inside == nil {
		m.enter(t)
		return
	}
	if t.entered == nil {
		t.entered = make(chan struct{})
	}
	m.waiting = append(m.waiting, t)
}

func (m *Mutex) enter(t *team) {
	m.inside, t.present = t, t.size
	if t.entered != nil {
		close(t.entered)
	}
}

// member returns a place in the team, once it is inside.
func (t *team) member(rank int) Member {
	if t.entered != nil {
		<-t.entered
	}
	return Member{Rank: rank, Size: t.size, team: t, entry: t.entry}
}

// Barrier waits until every member of the group has called it as often as the caller, or has left.
func (m Member) Barrier() {
	t := m.team
	t.mutex.Lock()
	t.arrived++
	if t.arrived == t.present {
		t.release()
		t.mutex.Unlock()
		return
	}
	if t.turn == nil {
		t.turn = make(chan struct{})
	}
	turn := t.turn
	t.mutex.Unlock()
	<-turn
}

// release lets all threads pass the barrier.
func (t *team) release() {
	if t.turn != nil {
		close(t.turn)
	}
	t.arrived, t.turn = 0, nil
}

// Unlock is the member's leaving, and does not wait for the others. The last to leave lets the next group in. It
// panics when this member has left before.
func (m Member) Unlock() {
	t := m.team
	t.mutex.Lock()
	if t.entry != m.entry || m.Size > 1 && !t.leave(m.Rank) {
		t.mutex.Unlock()
		panic("collective: unlock by a member that has left")
	}
	t.present--
	last := t.present == 0
	if last {
		t.entry++
	}
	// Those at the barrier may have waited for us only.
	if t.arrived == t.present {
		t.release()
	}
	t.mutex.Unlock()
	if last {
		t.of.handOver(t)
	}
}

// leave notes that a rank has left. It is false when it had left before.
func (t *team) leave(rank int) bool {
	if t.gone == nil {
		t.gone = make([]uint64, (t.size+63)/64)
	}
	word, bit := &t.gone[rank/64], uint64(1)<<(rank%64)
	if *word&bit != 0 {
		return false
	}
	*word |= bit
	return true
}

// handOver lets the next team in, all of it at once. The one that has left serves again unless it had to wait.
func (m *Mutex) handOver(gone *team) {
	m.mutex.Lock()
	defer m.mutex.Unlock()
	m.inside = nil
	if gone.entered == nil {
		m.spent = gone
	}
	if len(m.waiting) == 0 {
		return
	}
	next := m.waiting[0]
	m.waiting = slices.Delete(m.waiting, 0, 1)
	m.enter(next)
}
