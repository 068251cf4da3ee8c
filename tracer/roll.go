package tracer

import (
	"sync"

	"codeberg.org/gpumemtop/gpumemtop/tracer/target"
)

// rememberedMax bounds how many processes that have ended are still known, for those who want to open their files.
const rememberedMax = 1024

// roll is the list of processes by their numbers, from 1. Its methods may be called from any goroutine.
type roll struct {
	mu       sync.Mutex
	numbered []*target.Process // nil: ended long ago
	ended    []uint32          // in this order
	watched  int
}

// add gives a process its number.
func (r *roll) add(p *target.Process) uint32 {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.numbered = append(r.numbered, p)
	r.watched++
	return uint32(len(r.numbered))
}

// end notes that a process is not watched any more.
func (r *roll) end(number uint32) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.watched--
	r.ended = append(r.ended, number)
	if len(r.ended) > rememberedMax {
		r.numbered[r.ended[0]-1] = nil
		r.ended = r.ended[1:]
	}
}

// find returns a process by its number, nil when there is none or it ended long ago.
func (r *roll) find(number uint32) *target.Process {
	r.mu.Lock()
	defer r.mu.Unlock()
	if number == 0 || int(number) > len(r.numbered) {
		return nil
	}
	return r.numbered[number-1]
}

func (r *roll) count() int {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.watched
}
