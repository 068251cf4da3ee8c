package twostage

import "sync"

// Stack is a Tracker that gives the unit that came last. The zero value is empty and ready.
type Stack[T any] struct {
	mu    sync.Mutex
	units []T
}

// Put implements Tracker.
func (s *Stack[T]) Put(unit T) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.units = append(s.units, unit)
}

// Take implements Tracker.
func (s *Stack[T]) Take() (unit T, ok bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if len(s.units) == 0 {
		return unit, false
	}
	last := len(s.units) - 1
	var none T
	unit, s.units[last] = s.units[last], none
	s.units = s.units[:last]
	return unit, true
}

// Naive is the pool of seed 001 §3.1: blocks of units in a stack and no accounts. A thread takes a block out, cuts its
// unit off and puts the rest back. Whoever comes meanwhile finds the pool empty and reports that there is no memory.
type Naive[T any] struct {
	blocks Stack[[]T]
	cut    func(block []T) (T, []T)
}

// NewNaive returns a naive pool of one block. Cut parts a unit from a block, which has at least one.
func NewNaive[T any](block []T, cut func(block []T) (unit T, rest []T)) *Naive[T] {
	n := &Naive[T]{cut: cut}
	n.blocks.Put(block)
	return n
}

// Get returns a unit. It fails if the pool is empty at that moment.
func (n *Naive[T]) Get() (unit T, ok bool) {
	block, ok := n.blocks.Take()
	if !ok {
		return unit, false
	}
	unit, rest := n.cut(block)
	if len(rest) > 0 {
		n.blocks.Put(rest)
	}
	return unit, true
}

// Put gives a unit back.
func (n *Naive[T]) Put(unit T) { n.blocks.Put([]T{unit}) }
