package analysis

import (
	"codeberg.org/gpumemtop/gpumemtop/internal/heap"
	"codeberg.org/gpumemtop/gpumemtop/internal/wire"
)

// kindsMax bounds the kinds of free blocks that the simplest pool keeps.
const kindsMax = 1 << 16

// simplest counts what the simplest pool would serve: it keeps each buffer that is released for a request of the same size and kind.
// It does not wait for queued commands, so it serves at most that.
type simplest struct {
	free           map[kind]*uint64
	latest         kind
	latestFree     *uint64 // of that kind; nil: not known
	hits, requests uint64
	created        uint64 // bytes; the pool holds all of them
}

// kind is what a block must share with a request that it serves.
type kind struct {
	process       uint32
	scope, access uint16
	shape         int16
	size          uint64
}

func kindOfObject(p *heap.Process, o *heap.Object) kind {
	return kind{p.Number, o.Scope, o.Access, o.Shape, o.Size}
}

// isPoolRequest reports whether an object was requested of the pool.
func isPoolRequest(o *heap.Object) bool {
	return o.Outcome == wire.OutcomeHit || o.Outcome == wire.OutcomeMiss
}

func (s *simplest) countCreate(p *heap.Process, o *heap.Object) {
	if !isPoolRequest(o) {
		return
	}
	s.requests++
	if free := s.freeBlocksOfKind(kindOfObject(p, o)); free != nil && *free > 0 {
		*free--
		s.hits++
		return
	}
	s.created += o.Size
}

func (s *simplest) countRelease(p *heap.Process, o *heap.Object) {
	if !isPoolRequest(o) || o.CarriedOver {
		return
	}
	k := kindOfObject(p, o)
	if s.freeBlocksOfKind(k) == nil {
		if len(s.free) == kindsMax {
			return
		}
		if s.free == nil {
			s.free = map[kind]*uint64{}
		}
		s.latestFree = new(uint64)
		s.free[k] = s.latestFree
	}
	*s.latestFree++
}

// freeBlocksOfKind returns how many blocks of a kind are free, nil for a kind that no release had. Most come several times in turn.
func (s *simplest) freeBlocksOfKind(k kind) *uint64 {
	if s.latestFree == nil || k != s.latest {
		s.latest, s.latestFree = k, s.free[k]
	}
	return s.latestFree
}

// hitRate returns the hit rate, 0 if it would hold more than twice the peak.
func (s *simplest) hitRate(peak uint64) float64 {
	if s.requests == 0 || s.created > 2*peak {
		return 0
	}
	return float64(s.hits) / float64(s.requests)
}
