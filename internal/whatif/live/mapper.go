package live

import (
	"sync/atomic"
	"time"

	"codeberg.org/gpumemtop/gpumemtop/internal/replay"
	"codeberg.org/gpumemtop/gpumemtop/internal/stats"
)

// Mapper simulates the program's own policy to map its slabs. It is a Listener.
type Mapper struct {
	slabs       *replay.SlabMapper
	published   atomic.Pointer[stats.HeapMap]
	nextMap     time.Time // when the next map is due
	hasBegun    bool
	partsBehind int // parts in a row during which the queue was more than half full
	stopped     bool
}

// NewMapper returns a mapper for a program that starts under a configuration. capacity is the memory of its device; 0:
// unlimited.
func NewMapper(current replay.Configuration, capacity uint64) *Mapper {
	return &Mapper{slabs: replay.NewSlabMapper(current, capacity)}
}

// LatestMap returns the latest map, nil while the policy does not carve. Any goroutine may call it.
func (m *Mapper) LatestMap() *stats.HeapMap { return m.published.Load() }

// Begin implements Listener. After missing records the mapper does not know the earlier buffers.
func (m *Mapper) Begin(batch *replay.Batch, _ uint64) {
	m.slabs.JoinBatch(batch, m.hasBegun)
	m.hasBegun = true
}

// partsBehindMax is after how many parts in a row behind the mapper stops. Ghosts, which cost more, stop earlier.
const partsBehindMax = 128

// Play implements Listener.
func (m *Mapper) Play(part *Part) bool {
	m.partsBehind++
	if !part.Behind {
		m.partsBehind = 0
	}
	switch err := m.slabs.PlayUntil(part.Time, part.Change); {
	case err != nil:
		m.stopMapping(err.Error())
	case m.partsBehind > partsBehindMax:
		m.stopMapping("could not keep up")
	}
	return !m.stopped
}

// CanSkip implements Listener: a policy without slabs needs no map.
func (m *Mapper) CanSkip() bool { return m.slabs.IsIdle() }

// stopMapping stops the mapper and keeps its last map.
func (m *Mapper) stopMapping(reason string) {
	last := stats.HeapMap{}
	if m.LatestMap() != nil {
		last = *m.LatestMap()
	}
	last.Ended = reason
	m.published.Store(&last)
	m.slabs.LeaveBatch()
	m.stopped = true
}

// Publish implements Listener: it renews the map once a second, or less often if drawing the map would take more than a
// hundredth of the time.
func (m *Mapper) Publish(load *Load) {
	now := time.Now()
	if m.stopped || !load.Final && now.Before(m.nextMap) {
		return
	}
	m.published.Store(m.slabs.CurrentHeapMap())
	m.nextMap = now.Add(max(time.Second, 100*time.Since(now)))
}
