package allocator

import "codeberg.org/gpumemtop/gpumemtop/internal/wire"

const (
	allowed      = 50      // the first allowance is this part of the program's peak: a fiftieth
	allowanceMax = 1 << 12 // fiftieths
	judgedAfter  = 256     // requests
	regretsMax   = 4       // the allowance grows if more than this part of the requests were regrets: a quarter
	grows        = 4       // factor by which the allowance grows
	passedMax    = 64      // arena blocks and slabs that makeRoom skips in one search

	// regretted marks a block that makeRoom gave up. A request that the block would have served is a regret; its record has
	// the reason for the miss that it would have without makeRoom.
	regretted = wire.MissPolicy
)

// allowance bounds the blocks that a policy with layouts caches outside of arenas. Cached blocks cost memory, so it starts
// small. It grows when a quarter of the requests would have been served by blocks that were given up.
type allowance struct {
	fiftieths         uint64 // of the program's peak
	requests, regrets uint64 // since the last judgement
}

// judge lets the allowance grow if there were too many regrets.
func (a *allowance) judge() {
	if a.requests < judgedAfter {
		return
	}
	if a.regrets*regretsMax > a.requests && a.fiftieths < allowanceMax {
		a.fiftieths *= grows
	}
	a.requests, a.regrets = 0, 0
}

// makeRoom gives up the base policy's cached blocks, the oldest first, until a new block fits into the allowance.
func (p *Pool) makeRoom(size uint64, out []Eviction) []Eviction {
	p.layouts.judge()
	most := max(p.stats.PeakWanted, p.stats.BytesWanted+size)
	most += most / allowed * p.layouts.fiftieths
	passed := 0
	for i := p.cachedByAge.oldest; i != 0 && passed < passedMax && p.stats.Reserved()+size > most; {
		next := p.chain[i].newer
		if e := &p.entries[i]; e.isSlab || e.class >= ofArena {
			passed++
		} else {
			p.evicted.put(e, regretted)
			out = p.evict(i, wire.EvictPolicy, out)
		}
		i = next
	}
	return out
}
