package allocator

import "codeberg.org/gpumemtop/gpumemtop/internal/wire"

const (
	allowed      = 50      // at first an arena's pool holds at most a fiftieth more than the program ever had in use
	allowanceMax = 1 << 12 // fiftieths
	judgedAfter  = 256     // requests
	regretsMax   = 4       // a quarter of the requests
	grows        = 4       // times
	passedMax    = 64      // blocks of a plan that a search for others passes

	regretted = wire.MissPolicy // blames a miss on makeRoom; its record has the reason that it would have without that
)

// allowance bounds what a policy with plans caches besides them. A pool without a plan pays for its hits with memory; this
// one pays only where much depends on it: the allowance grows when a quarter of the requests wanted what was given up.
type allowance struct {
	fiftieths         uint64 // of the program's peak
	requests, regrets uint64 // since it was judged
}

// judge has the allowance grow if there were too many regrets.
func (a *allowance) judge() {
	if a.requests < judgedAfter {
		return
	}
	if a.regrets*regretsMax > a.requests && a.fiftieths < allowanceMax {
		a.fiftieths *= grows
	}
	a.requests, a.regrets = 0, 0
}

// makeRoom gives up what the base policy has cached, the oldest first, until a new block fits into the allowance.
func (p *Pool) makeRoom(size uint64, out []Eviction) []Eviction {
	p.planner.judge()
	most := max(p.stats.PeakWanted, p.stats.BytesWanted+size)
	most += most / allowed * p.planner.fiftieths
	passed := 0
	for i := p.cachedByAge.oldest; i != 0 && passed < passedMax && p.stats.Reserved()+size > most; {
		next := p.chain[i].newer
		if e := &p.entries[i]; e.isSlab || e.class >= ofPlans {
			passed++
		} else {
			p.evicted.put(e, regretted)
			out = p.evict(i, wire.EvictPolicy, out)
		}
		i = next
	}
	return out
}
