package allocator

import "math"

// Bytes that a live buffer has too much cannot be given back when the driver runs out of memory, and neither can a slab
// with a single live part. A program that fits the device alone must fit it with them as well, so they may only have what
// the program will not need. The pool reckons with a need that grows by half of what is still free, and beyond that it
// grants exact sizes; on a small device always.

// smallDevice is the memory below which a device is small.
const smallDevice = 256 << 20

// untried is the share of the device's memory that waste and slabs may have while the program still grows.
const untried = 32

// steady reports whether the need of the program has stopped growing: all requests of the second half fitted below the
// peak of the first.
func (p *Pool) steady() bool { return p.stats.Hits+p.stats.Misses >= 2*p.risen+8 }

// slack returns how many of the device's bytes may go into the waste of a request, or into a new slab.
func (p *Pool) slack(req *Request, memory uint64) uint64 {
	switch {
	case memory == 0:
		return math.MaxUint64
	case memory < p.small:
		return 0
	}
	most := (memory - min(memory, max(p.stats.PeakWanted, p.stats.BytesWanted+req.Size))) / 2
	if !p.steady() {
		most = min(most, memory/untried)
	}
	taken := p.stats.BytesInUse - p.stats.BytesWanted
	if p.slabs != nil {
		taken += p.slabs.bytes
	}
	return most - min(most, taken)
}

// tighten lowers the size at which rounding stops for the present request to what can be spared. If rounding would go
// beyond that, the request gets exactly its size.
func (p *Pool) tighten(req *Request) {
	slack := p.slack(req, least(req.Heap, p.short))
	switch most := req.Size + slack; {
	case most < req.Size: // nothing is known of the device
	case p.rule.grant(req, &p.limits) > most:
		req.Round = req.Size
	default:
		req.Round = least(req.Most(), most)
	}
}

// runShort notes that the driver was out of memory with what it has given out now. Other programs, images and kernels
// have the rest.
func (p *Pool) runShort() {
	p.short = least(p.short, max(p.stats.Reserved(), p.stats.PeakWanted))
}
