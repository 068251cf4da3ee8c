package session

import "codeberg.org/gpumemtop/gpumemtop/internal/wire"

// releaseEvery is how many events are read from a ring before their space goes back to the producer. Each release
// writes a cache line that the producer reads, so not after every event.
const releaseEvery = 256

// source is one ring in the merge.
type source struct {
	record wire.Record // the event at its front, while it is in the heap
	cursor *wire.Cursor
	peer   *peer
	ring   int
	queued bool // in the heap
	read   uint32
}

func (s *source) comesBefore(t *source) bool {
	if s.record.Time != t.record.Time {
		return s.record.Time < t.record.Time
	}
	if s.peer.number != t.peer.number {
		return s.peer.number < t.peer.number
	}
	return s.ring < t.ring
}

// readNextEvent reads the following event, which replaces the one at the front.
func (s *source) readNextEvent(until uint64) bool {
	if s.read++; s.read%releaseEvery == 0 {
		s.cursor.Release()
	}
	return s.cursor.Next(&s.record, until)
}

// merge brings the events of all rings of all processes into the order of their times. Within a ring the order of
// writing is kept. One goroutine uses it.
//
// An event whose time is at most the moment that the pass began was preceded, in memory, by everything that the
// application could have seen happen before it: so a release never comes out before its create, whatever the threads.
type merge struct {
	heap []*source
}

// addFirstEvent reads the first event of a ring that is not in the heap yet, if it has one.
func (m *merge) addFirstEvent(s *source, until uint64) bool {
	if s.queued || !s.cursor.Next(&s.record, until) {
		return false
	}
	s.record.Process = s.peer.number
	s.queued = true
	m.heap = append(m.heap, s)
	m.siftUp(len(m.heap) - 1)
	return true
}

// deliverMerged hands at most budget events to sink, in order, and returns how many there were. What is left over stays at
// the front for the next run, and so is what follows an EXIT (exits is true then): the process may be gone before that happens.
func (m *merge) deliverMerged(until uint64, budget int, sink func(*peer, *wire.Record)) (n int, exits bool) {
	for ; n < budget && len(m.heap) > 0 && !exits; n++ {
		s := m.heap[0]
		exits = s.record.Kind == wire.KindExit
		sink(s.peer, &s.record)
		limit := until
		if s.peer.ended {
			limit = s.peer.limit
		}
		if s.readNextEvent(limit) {
			m.siftDown(0)
		} else {
			m.popFirst()
		}
	}
	for _, s := range m.heap {
		s.cursor.Release()
	}
	return n, exits
}

func (m *merge) popFirst() {
	s := m.heap[0]
	s.queued = false
	s.cursor.Release()
	last := len(m.heap) - 1
	m.heap[0], m.heap[last] = m.heap[last], nil
	m.heap = m.heap[:last]
	if last > 0 {
		m.siftDown(0)
	}
}

// removeRingsOfProcess removes all rings of a process.
func (m *merge) removeRingsOfProcess(p *peer) {
	kept := m.heap[:0]
	for _, s := range m.heap {
		if s.peer != p {
			kept = append(kept, s)
		}
	}
	clear(m.heap[len(kept):])
	m.heap = kept
	for i := len(kept)/2 - 1; i >= 0; i-- {
		m.siftDown(i)
	}
}

func (m *merge) siftUp(i int) {
	for i > 0 {
		parent := (i - 1) / 2
		if !m.heap[i].comesBefore(m.heap[parent]) {
			return
		}
		m.heap[i], m.heap[parent] = m.heap[parent], m.heap[i]
		i = parent
	}
}

func (m *merge) siftDown(i int) {
	for {
		child := 2*i + 1
		if child >= len(m.heap) {
			return
		}
		if right := child + 1; right < len(m.heap) && m.heap[right].comesBefore(m.heap[child]) {
			child = right
		}
		if !m.heap[child].comesBefore(m.heap[i]) {
			return
		}
		m.heap[i], m.heap[child] = m.heap[child], m.heap[i]
		i = child
	}
}
