package collective

import "fmt"

// Group is a fixed number of goroutines that enter a mutex together, like a block of threads. It can enter again and
// again. Make one with NewGroup.
type Group struct {
	mutex   *Mutex
	size    int
	forming *team // guarded by the mutex's mutex; nil: nobody has come for the next entering
}

// NewGroup returns a group of size goroutines for m. It panics unless size is at least 1.
func NewGroup(m *Mutex, size int) *Group {
	if size < 1 {
		panic(fmt.Sprintf("collective: a group of %d", size))
	}
	return &Group{mutex: m, size: size}
}

// Lock waits until all of the group have called it and the group is inside. The rank is the order of arrival. Nobody
// else joins. A goroutine that calls it twice for one entering waits for itself.
func (g *Group) Lock() Member {
	g.mutex.mutex.Lock()
	if g.forming == nil {
		g.forming = &team{of: g.mutex, purpose: Alone}
		if g.size > 1 {
			g.forming.entered = make(chan struct{})
		}
	}
	t := g.forming
	rank := t.size
	t.size++
	if t.size == g.size {
		// The last to arrive acquires the mutex for all.
		g.forming = nil
		g.mutex.admit(t)
	}
	g.mutex.mutex.Unlock()
	return t.member(rank)
}
