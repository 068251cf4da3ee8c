package live

import (
	"sync/atomic"
	"time"

	"codeberg.org/gpumemtop/gpumemtop/internal/replay"
	"codeberg.org/gpumemtop/gpumemtop/internal/stats"
)

// Mapper follows the program's policy for a map of its slabs. It is a Listener.
type Mapper struct {
	slabs     *replay.Slabs
	published atomic.Pointer[stats.HeapMap]
	next      time.Time // of the next map
	begun     bool
	behind    int // parts in a row
	ended     bool
}

// NewMapper returns one for a program that begins under a configuration, with so much memory on its device, 0: any.
func NewMapper(present replay.Configuration, capacity uint64) *Mapper {
	return &Mapper{slabs: replay.NewSlabs(present, capacity)}
}

// Map returns the latest map, nil while the policy does not carve. Any goroutine may call it.
func (m *Mapper) Map() *stats.HeapMap { return m.published.Load() }

// Begin implements Listener. After records that are missing it knows nothing of what was there.
func (m *Mapper) Begin(c *replay.Batch, _ uint64) {
	m.slabs.Join(c, m.begun)
	m.begun = true
}

// lastBehind is for how many parts in a row the map stays where too much waits: ghosts go first, which take more.
const lastBehind = 128

// Play implements Listener.
func (m *Mapper) Play(part *Part) bool {
	m.behind++
	if !part.Behind {
		m.behind = 0
	}
	switch err := m.slabs.Play(part.Time, part.Change); {
	case err != nil:
		m.end(err.Error())
	case m.behind > lastBehind:
		m.end("could not keep up")
	}
	return !m.ended
}

// Sated implements Listener: without slabs there is no map.
func (m *Mapper) Sated() bool { return m.slabs.Idle() }

// end leaves the last map as it is.
func (m *Mapper) end(why string) {
	last := stats.HeapMap{}
	if m.Map() != nil {
		last = *m.Map()
	}
	last.Ended = why
	m.published.Store(&last)
	m.slabs.Leave()
	m.ended = true
}

// Publish implements Listener: it renews the map once a second, or seldom enough to take a hundredth of the time.
func (m *Mapper) Publish(load *Load) {
	now := time.Now()
	if m.ended || !load.Ends && now.Before(m.next) {
		return
	}
	m.published.Store(m.slabs.Map())
	m.next = now.Add(max(time.Second, 100*time.Since(now)))
}
