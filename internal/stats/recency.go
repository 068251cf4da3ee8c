package stats

import (
	"cmp"
	"slices"

	"codeberg.org/gpumemtop/gpumemtop/internal/heap"
)

// Recency is how long the memory in use at one moment had not been used, the longest first.
type Recency []Unused

// Unused is memory that was surely not used for so long.
type Unused struct {
	NS uint64
	Part
}

// recencyMax bounds the parts of a Recency. Beyond it, neighbours count as used as late as the later one.
const recencyMax = 256

// AddProcess takes the memory of a process at a time.
func (r *Recency) AddProcess(p *heap.Process, now uint64) {
	for _, o := range p.Objects() {
		since, known := p.ObjectIdleSince(o)
		if p.IsUntouched(o) {
			since, known = o.Started, true
		}
		if known && o.Owns {
			*r = append(*r, Unused{now - min(since, now), Part{1, o.Granted}})
		}
	}
	slices.SortFunc(*r, func(a, b Unused) int { return cmp.Compare(b.NS, a.NS) })
	for len(*r) > recencyMax {
		half := (*r)[:0]
		for pair := range slices.Chunk(*r, 2) {
			joined := pair[len(pair)-1]
			if len(pair) == 2 {
				joined.Buffers += pair[0].Buffers
				joined.Bytes += pair[0].Bytes
			}
			half = append(half, joined)
		}
		*r = half
	}
}

// BytesUnusedFor returns the bytes of the memory that was surely not used in the last ns.
func (r Recency) BytesUnusedFor(ns uint64) (bytes uint64) {
	for i := range r {
		if r[i].NS < ns {
			break
		}
		bytes += r[i].Bytes
	}
	return bytes
}

// Lately is what had been used, at most, in a time before a moment.
type Lately struct {
	NS        uint64 `json:"ns"`           // how long; 0: unknown, because uses were not recorded, or the process is too young
	Iteration bool   `json:"iteration"`    // it is one iteration of the program
	Bytes     uint64 `json:"used_at_most"` // of the memory in use
}

// UsedInLast says how much of the memory in use had been used in the last ns.
func (r Recency) UsedInLast(ns, inUse uint64, iteration bool) Lately {
	return Lately{NS: ns, Iteration: iteration, Bytes: inUse - min(inUse, r.BytesUnusedFor(ns))}
}

// LatelyAtAge returns what "lately" means at an age where iterations are not known: the most of 10 ms, 100 ms and 1 s that is at most a
// quarter of the age; 0: none is.
func LatelyAtAge(age uint64) uint64 {
	for ns := uint64(1e9); ns >= 1e7; ns /= 10 {
		if ns <= age/idleShare {
			return ns
		}
	}
	return 0
}
