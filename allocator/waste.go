package allocator

import "math"

// Waste, the bytes by which a block exceeds its request, cannot go back to the driver while the buffer lives, and neither
// can a slab with a live sub-allocation. A program that fits the device without a pool must fit with it, too. So waste and
// slabs may only take memory that the program will not need. The pool assumes that the program will need half of the
// memory that is still free. Beyond the other half it grants exact sizes; on a small device it always does.

// smallDevice is the memory below which a device is small.
const smallDevice = 256 << 20

// untried is the share of the device's memory that waste and slabs may have while the program still grows.
const untried = 32

// isDemandSteady reports whether the need of the program has stopped growing: the second half of its requests did not raise the
// peak of the first half.
func (p *Pool) isDemandSteady() bool { return p.stats.Hits+p.stats.Misses >= 2*p.risen+8 }

// bytesForWaste returns how many of the device's bytes may go into the waste of a request, or into a new slab.
func (p *Pool) bytesForWaste(req *Request, memory uint64) uint64 {
	switch {
	case memory == 0:
		return math.MaxUint64
	case memory < p.small:
		return 0
	}
	wanted := max(max(p.stats.PeakWanted, p.others.wanted)+p.others.excess, p.others.held+p.stats.BytesWanted+req.Size)
	most := (memory - min(memory, wanted)) / 2
	if !p.isDemandSteady() {
		most = min(most, memory/untried)
	}
	taken := p.stats.BytesInUse - p.stats.BytesWanted
	if p.maySlabsExist() {
		taken += p.slabs.bytes
	}
	return most - min(most, taken)
}

// tightenRounding lowers the size at which rounding stops for a request, so that its waste stays within the slack. If rounding
// would go beyond the slack, the request gets exactly its size.
func (p *Pool) tightenRounding(req *Request) {
	slack := p.bytesForWaste(req, smallerOfBounds(req.Heap, p.short))
	switch most := req.Size + slack; {
	case most < req.Size: // it overflowed: the device's memory is unknown
	case p.rule.grantedSize(req, &p.limits) > most:
		req.Round = req.Size
	default:
		req.Round = smallerOfBounds(req.MaxBlockBytes(), most)
	}
}

// noteShortage notes that the driver ran out of memory with the present blocks. Other programs, images and kernels have the
// rest of the device.
func (p *Pool) noteShortage() {
	p.short = smallerOfBounds(p.short, max(p.stats.ReservedBytes()+p.others.held, p.stats.PeakWanted, p.others.wanted))
}
