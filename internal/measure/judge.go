package measure

import (
	"cmp"
	"slices"
)

// Residency says when a buffer's memory comes into being.
type Residency string

// The three ways that there are.
const (
	// AtCreate: it is there when the create returns.
	AtCreate Residency = "create"
	// AtFirstUse: the first command that uses the buffer makes all of it.
	AtFirstUse Residency = "first use"
	// ByPage: each page is made when it is written for the first time.
	ByPage Residency = "page"
)

// Verdict is what follows from the costs.
type Verdict struct {
	Lazy      bool      `json:"lazy"`                // creates return before there is memory
	Residency Residency `json:"residency,omitempty"` // "" when only sizes were measured that do not tell
	// DriverCaches says that the driver, or the C library below it, keeps released memory for the next create: that is
	// much cheaper after a release of the same size than with new memory. CachesUpTo is the largest size seen so.
	DriverCaches bool   `json:"driver_caches"`
	CachesUpTo   uint64 `json:"caches_up_to_bytes,omitempty"`
}

// From when on a difference counts.
const (
	dear       = 0.2    // a first touch that takes this part of writing the memory is no noise
	cheaper    = 5.0    // how many times less a create costs that is served from what was kept
	worthwhile = 1000.0 // ns that it saves at least
	cachedMin  = 2      // sizes that are served so, or it may be chance
	// judgedMin is the smallest size, bytes, that tells when memory comes: smaller ones may be parts of what is there.
	judgedMin = 256 << 10
)

// judge looks for the way that most of the larger sizes behave: there the differences are largest. New memory tells it,
// and where there is none, the steady state, in which a cache may hide it.
func judge(points []Point) Verdict {
	var v Verdict
	v.judgeCaching(points)
	from, _ := slices.BinarySearchFunc(points, judgedMin, func(p Point, size uint64) int { return cmp.Compare(p.Size, size) })
	large := points[from:]
	if fresh := withFresh(large); len(fresh) > 0 {
		large = fresh
	}
	large = large[len(large)/2:]
	var lazy, atUse int
	for i := range large {
		p := &large[i]
		create, touch, use, after := p.Create, p.Touch, p.FirstUse, p.AfterUse
		if p.Fresh != nil {
			create, touch, use, after = p.Fresh.Create, p.Fresh.Touch, p.Fresh.FirstUse, p.Fresh.AfterUse
		}
		if touch > create && touch > dear*p.Reuse {
			lazy++
			if use > after {
				atUse++
			}
		}
	}
	switch {
	case len(large) == 0:
		return v
	case 2*lazy <= len(large):
		v.Residency = AtCreate
	case 2*atUse > lazy:
		v.Lazy, v.Residency = true, AtFirstUse
	default:
		v.Lazy, v.Residency = true, ByPage
	}
	return v
}

func withFresh(points []Point) []Point {
	var list []Point
	for _, p := range points {
		if p.Fresh != nil {
			list = append(list, p)
		}
	}
	return list
}

func (v *Verdict) judgeCaching(points []Point) {
	cached := 0
	for _, p := range withFresh(points) {
		again, fresh := p.Create+p.Touch, p.Fresh.Create+p.Fresh.Touch
		if fresh > cheaper*again && fresh-again > worthwhile {
			cached++
			v.CachesUpTo = p.Size
		}
	}
	if v.DriverCaches = cached >= cachedMin; !v.DriverCaches {
		v.CachesUpTo = 0
	}
}
