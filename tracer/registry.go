package tracer

import (
	"sync"

	"codeberg.org/gpumemtop/gpumemtop/tracer/target"
)

// endedMax is how many ended processes the registry keeps, so that their files can still be opened.
const endedMax = 1024

// registry numbers the processes, from 1. Any goroutine may call its methods.
type registry struct {
	mu       sync.Mutex
	numbered []*target.Process // nil: ended long ago
	ended    []uint32          // in this order
	watched  int
}

// addProcess gives a process its number.
func (r *registry) addProcess(p *target.Process) uint32 {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.numbered = append(r.numbered, p)
	r.watched++
	return uint32(len(r.numbered))
}

// endProcess notes that a process is no longer watched.
func (r *registry) endProcess(number uint32) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.watched--
	r.ended = append(r.ended, number)
	if len(r.ended) > endedMax {
		r.numbered[r.ended[0]-1] = nil
		r.ended = r.ended[1:]
	}
}

// findProcess returns a process by its number, nil if there is none or it ended long ago.
func (r *registry) findProcess(number uint32) *target.Process {
	r.mu.Lock()
	defer r.mu.Unlock()
	if number == 0 || int(number) > len(r.numbered) {
		return nil
	}
	return r.numbered[number-1]
}

func (r *registry) countWatched() int {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.watched
}
