package allocator

import "codeberg.org/gpumemtop/gpumemtop/internal/wire"

const (
	allowed      = 50      // 1/allowed of the program's peak is the first allowance
	allowanceMax = 1 << 12 // fiftieths
	judgedAfter  = 256     // requests
	regretsMax   = 4       // the allowance grows if more than 1/regretsMax of the requests were regrets
	grows        = 4       // factor by which the allowance grows
	passedMax    = 64      // arena blocks and slabs that makeRoomInAllowance skips in one search

	// regretted marks a block that makeRoomInAllowance gave up. A request that the block would have served is a regret; its record
	// has the miss reason that the request would have without makeRoomInAllowance.
	regretted = wire.MissPolicy
)

// allowance bounds the blocks that a policy with layouts caches outside of arenas. Cached blocks cost memory, so the
// allowance starts small. It grows if blocks that were given up would have served more than a quarter of the requests.
type allowance struct {
	fiftieths         uint64 // of the program's peak
	requests, regrets uint64 // since growIfRegretted last decided
}

// growIfRegretted raises the allowance if there were too many regrets.
func (a *allowance) growIfRegretted() {
	if a.requests < judgedAfter {
		return
	}
	if a.regrets*regretsMax > a.requests && a.fiftieths < allowanceMax {
		a.fiftieths *= grows
	}
	a.requests, a.regrets = 0, 0
}

// makeRoomInAllowance gives up the base policy's cached blocks, the oldest first, until a new block fits into the allowance.
func (p *Pool) makeRoomInAllowance(size uint64, out []Eviction) []Eviction {
	p.layouts.growIfRegretted()
	most := max(p.stats.PeakWanted, p.stats.BytesWanted+size)
	most += most / allowed * p.layouts.fiftieths
	passed := 0
	for i := p.cachedByAge.oldest; i != 0 && passed < passedMax && p.stats.ReservedBytes()+size > most; {
		next := p.chain.At(i).newer
		if e := p.entryAt(i); e.isSlab || e.class >= ofArena {
			passed++
		} else {
			p.evicted.rememberMissReason(e, regretted)
			out = p.evictCachedBlock(i, wire.EvictPolicy, out)
		}
		i = next
	}
	return out
}
