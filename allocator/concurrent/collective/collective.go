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
//   - While a group is inside, its size is fixed: a thread that arrives joins a waiting group or begins one.
//   - Groups enter in the order in which they began to wait.
package collective

import (
	"slices"
	"sync"
)

// Alone is the purpose of a caller that forms a group by itself.
const Alone = -1

// Mutex is a collective mutex. The zero value is unlocked. It must not be copied after first use.
type Mutex struct {
	mutex   sync.Mutex // guards the fields and the sizes of waiting teams; held for a few instructions
	inside  *team      // nil: unlocked, and no thread waits
	waiting []*team    // the next one first
	spent   *team      // a team that all its threads have left and no thread waits for, for reuse; nil: none
}

// Member is a goroutine's place in the group that is inside.
type Member struct {
	Rank  int // 0 to Size-1, each once
	Size  int // of the group
	team  *team
	entry uint64 // of the team
}

// team is a group that waits or is inside. A team that never waited serves several groups, one after the other.
type team struct {
	of      *Mutex
	purpose int           // Alone: no thread joins
	size    int           // fixed once it is inside
	entry   uint64        // how many groups have used it and left
	entered chan struct{} // closed when it is inside; nil if it never waited

	mutex   sync.Mutex    // guards the rest
	present int           // members that have not left
	arrived int           // members at the barrier
	turn    chan struct{} // closed when all present have arrived; nil before the first has
	gone    []uint64      // a bit for each rank that has left; only in a team of several members, which serves one group
}

// Lock waits until the caller's group is inside. Callers with the same purpose, which is 0 or more, who wait at the
// same time are one group. They must go through the same barriers, so a purpose stands for a piece of code. A caller
// with purpose Alone is a group by itself.
func (m *Mutex) Lock(purpose int) Member {
	m.mutex.Lock()
	t := m.teamToJoin(purpose)
	if t != nil {
		t.size++
	} else {
		t = m.newTeam(purpose)
		m.admitTeam(t)
	}
	rank := t.size - 1
	m.mutex.Unlock()
	return t.awaitEntry(rank)
}

// newTeam returns a team of one.
func (m *Mutex) newTeam(purpose int) *team {
	t := m.spent
	if t == nil {
		return &team{of: m, purpose: purpose, size: 1}
	}
	m.spent = nil
	t.purpose, t.size = purpose, 1
	return t
}

// WaitingCount returns how many callers of Lock wait for their turn, for tests and statistics.
func (m *Mutex) WaitingCount() int {
	m.mutex.Lock()
	defer m.mutex.Unlock()
	n := 0
	for _, t := range m.waiting {
		n += t.size
	}
	return n
}

// teamToJoin returns the waiting team that a caller with a purpose joins, nil if the caller must begin a team.
func (m *Mutex) teamToJoin(purpose int) *team {
	for _, t := range m.waiting {
		if purpose != Alone && t.purpose == purpose {
			return t
		}
	}
	return nil
}

// admitTeam lets a team in if the mutex is unlocked. Otherwise the team waits for its turn.
func (m *Mutex) admitTeam(t *team) {
	if m.inside == nil {
		m.letTeamIn(t)
		return
	}
	if t.entered == nil {
		t.entered = make(chan struct{})
	}
	m.waiting = append(m.waiting, t)
}

func (m *Mutex) letTeamIn(t *team) {
	m.inside, t.present = t, t.size
	if t.entered != nil {
		close(t.entered)
	}
}

// awaitEntry waits until the team is inside, and returns the member with a rank.
func (t *team) awaitEntry(rank int) Member {
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
		t.openBarrier()
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

// openBarrier lets all threads pass the barrier.
func (t *team) openBarrier() {
	if t.turn != nil {
		close(t.turn)
	}
	t.arrived, t.turn = 0, nil
}

// Unlock makes the member leave. It does not wait for the other members; the last member to leave lets the next group
// in. It panics if the member has left before.
func (m Member) Unlock() {
	t := m.team
	t.mutex.Lock()
	if t.entry != m.entry || m.Size > 1 && !t.leaveTeam(m.Rank) {
		t.mutex.Unlock()
		panic("collective: unlock by a member that has left")
	}
	t.present--
	last := t.present == 0
	if last {
		t.entry++
	}
	// The members at the barrier may have waited only for this one.
	if t.arrived == t.present {
		t.openBarrier()
	}
	t.mutex.Unlock()
	if last {
		t.of.admitNextTeam(t)
	}
}

// leaveTeam notes that a rank leaves. It returns false if the rank has left before.
func (t *team) leaveTeam(rank int) bool {
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

// admitNextTeam lets the next team in. It keeps the team that has left for reuse, unless that team had to wait.
func (m *Mutex) admitNextTeam(gone *team) {
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
	m.letTeamIn(next)
}
