package allocator

import (
	"codeberg.org/gpumemtop/gpumemtop/internal/wire"
)

// Pool is the caching allocator. All policies share it; they differ in their rule, and in whether they carve slabs or take
// layouts. The caller serialises all calls. Evictions are appended to out, which is returned, so that the steady state
// allocates nothing.
//
// A pool has layers. Each embeds the one below it, so that a decision follows no pointers, and calls nothing above it:
//
//	Pool        decisions on requests, layouts, what a request may waste
//	cache       limits: which blocks stay, and which go back to the driver
//	slabs       sub-allocations of large blocks
//	freeBlocks  cached and cooling blocks in order; counters and gauges
//	blockTable  all blocks, by number
type Pool struct {
	*kind
	cache
	request Request  // on which the pool decides now
	layouts *layouts // nil: the policy takes none
	small   uint64   // bytes of memory below which nothing may be wasted
	short   uint64   // bytes with which the driver ran out of memory, 0: it never did
	risen   uint64   // number of the request with which PeakWanted last grew
	others  others   // what the other arm takes
}

func newPool(k *kind) *Pool {
	p := &Pool{kind: k, small: smallDevice}
	p.blockTable = newBlockTable()
	p.rebuildFreeLists(k.rule)
	if k.cutsSlabs() {
		p.prepareForSlabs()
	}
	if k.takesLayouts {
		p.layouts = newLayouts(nil)
	}
	p.limits, p.beyond = k.defaultLimits(), smallPool
	return p
}

// PolicyName is the name that --policy takes.
func (p *Pool) PolicyName() string { return p.kind.Name }

// Decide says how to serve a request. The caller releases the evictions before it calls the driver's create
// (futhark-2018 evicts a misfit first). The block of a hit leaves the free list at once, so no second decision gets it.
func (p *Pool) Decide(request Request, out []Eviction) (decision Decision, _ []Eviction) {
	out = p.DecideInto(&decision, &request, out)
	return decision, out
}

// DecideInto is Decide for frequent calls: decisions are large, and copying one that was just written is slow.
func (p *Pool) DecideInto(decision *Decision, request *Request, out []Eviction) []Eviction {
	p.request = *request // copied into the pool, because a pointer to it goes through interfaces
	*decision = Decision{Tag: request.Tag}
	return p.serveRequest(decision, &p.request, out)
}

// serveRequest decides on a request: the current layout comes first, then slabs, then blocks.
func (p *Pool) serveRequest(decision *Decision, req *Request, out []Eviction) []Eviction {
	out = p.expireBlocks(req.Time, p.evictDoomed(out))
	req.Size = max(req.Size, 1)
	if req.Heap > p.heap {
		out = p.noteDeviceMemory(req.Heap, out)
	}
	if p.rule == nil || p.pinned && !req.Pinned {
		p.decideOnNewBlock(decision, req, req.Size, wire.MissPolicy)
		return out
	}
	if p.layouts != nil {
		evicted, ok := p.serveFromLayout(decision, req, out)
		if out = evicted; ok {
			return out
		}
	}
	if p.carver != nil && p.serveBySubAlloc(decision, req) {
		if decision.SlabSize != 0 {
			out = p.giveBackExcess(decision.SlabSize, decision.Size, out)
		}
		return out
	}
	p.tightenRounding(req)
	if i := p.rule.findBlock(&p.free, req.Class, req, &p.limits); i != 0 {
		p.reuseBlock(decision, i, req)
		p.sizes.again.add(decision.Size)
		return out
	}
	reason := p.whyMissed(req)
	if i := p.rule.misfitToEvict(&p.free, req, &p.limits); i != 0 {
		out = p.evictCachedBlock(i, wire.EvictMisfit, out)
	}
	size := p.rule.grantedSize(req, &p.limits)
	out = p.giveBackExcess(size, size, p.evictOutgrownBlocks(req, size, out))
	if p.layouts != nil {
		out = p.makeRoomInAllowance(size, out)
	}
	p.decideOnNewBlock(decision, req, size, reason)
	return out
}

// othersMax bounds the classes in which a miss looks for a block that would have served. Most programs have few
// classes; with many, the bound keeps misses cheap.
const othersMax = 32

// whyMissed says why a request found no block. The reasons are tried in the order of how little was missing: first a block
// in flight, then an evicted block, then a block that is too large, and so on.
func (p *Pool) whyMissed(req *Request) wire.Miss {
	if !p.coolingBlocks.isClassEmpty(req.Class) && p.rule.findBlock(&p.coolingBlocks, req.Class, req, &p.limits) != 0 {
		return wire.MissCooling
	}
	switch why, found := p.evicted.explainMiss(p.rule, req, &p.limits); {
	case found && why != regretted:
		return why
	case found && p.layouts != nil:
		p.layouts.regrets++
	}
	if p.free.smallestAtLeast(req.Class, p.rule.grantedSize(req, &p.limits)) != 0 {
		return wire.MissTooWasteful
	}
	for _, c := range p.free.filled[:min(len(p.free.filled), othersMax)] {
		if c.class != req.Class && c.class < ofArena && p.rule.findBlock(&p.free, c.class, req, &p.limits) != 0 {
			return wire.MissOtherClass
		}
	}
	if !p.free.isClassEmpty(req.Class) {
		return wire.MissTooSmall
	}
	return wire.MissCold
}

// Commit reports that a decision was carried out: the block is in use.
func (p *Pool) Commit(decision Decision) {
	i := p.findEntry(decision.Block, decided)
	if i == 0 {
		return
	}
	e := p.entryAt(i)
	hit := e.reason == wire.MissNone
	if hit {
		p.stats.Hits++
	} else {
		p.stats.Misses++
		p.stats.MissReasons[e.reason]++
	}
	switch {
	case e.isSubAlloc():
		p.stats.Parts++
	case !hit:
		p.stats.BytesAllocated += e.size
		p.stats.Blocks++
	}
	switch {
	case e.route >= wire.RouteNoPlanYet:
		p.stats.Departures[e.route-wire.RouteNoPlanYet]++
	case e.route == wire.RoutePlanned:
		p.stats.Planned++
	}
	e.state, e.tag = inUse, decision.Tag
	p.stats.BytesRequested += e.wanted
	p.stats.BytesInUse += e.size
	p.stats.BytesWanted += e.wanted
	if p.stats.BytesWanted > p.stats.PeakWanted {
		p.risen = p.stats.Hits + p.stats.Misses
	}
	p.stats.raisePeaks()
	p.peaks.raisePeak(p.stats.BytesInUse)
}

// Abort reports that the driver refused a create: the pool forgets the decided block, and its slab as well unless SlabCreated
// was called for it.
func (p *Pool) Abort(decision Decision) {
	i := p.findEntry(decision.Block, decided)
	if i == 0 {
		return
	}
	e := p.entryAt(i)
	switch {
	case e.isSubAlloc():
		p.abortSubAlloc(i)
	case e.reason != wire.MissNone:
		p.recycleEntry(i)
	case e.dropped || e.stale != wire.EvictNone || p.stats.BytesCached+e.size > p.maxCachedBytes():
		e.doom = e.stale
		p.markDoomed(i)
	case p.exceedsCountLimits(e, 1):
		e.doom = wire.EvictTagCap
		p.markDoomed(i)
	default:
		p.addCached(i)
		p.stats.raisePeaks()
	}
}

// Free reports that the program released the block. If busy, queued commands still use it, and it cools until Cooled.
// Freeing a block that is not in use does nothing (the caller diagnoses it).
func (p *Pool) Free(b Block, busy bool, time int64, out []Eviction) []Eviction {
	out = p.expireBlocks(time, p.evictDoomed(out))
	i := p.findEntry(b, inUse)
	if i == 0 {
		return out
	}
	p.noteBlockOutOfUse(i)
	e := p.entryAt(i)
	switch {
	case e.passes:
		return p.dismissBlock(i, wire.EvictPolicy, out)
	case e.isSubAlloc() && (!busy || e.dropped): // no request gets a range of a dropped class
		return p.freeSubAlloc(i, out)
	case e.dropped:
		return p.dismissBlock(i, wire.EvictContext, out)
	case !busy:
		return p.cacheOrEvict(i, out)
	}
	p.beginCooling(i)
	return out
}

// CoolingEnded reports that the last command that used a cooling block has completed. It does nothing for any other block.
func (p *Pool) CoolingEnded(b Block, time int64, out []Eviction) []Eviction {
	i := p.findEntry(b, cooling)
	if i == 0 {
		return out
	}
	out = p.expireBlocks(time, p.evictDoomed(out))
	p.removeFromCooling(i)
	if p.entryAt(i).isSubAlloc() {
		return p.freeSubAlloc(i, out)
	}
	return p.cacheOrEvict(i, out)
}

// Forget removes a block that is in use or cooling without an Eviction, because the caller disposes of it: it may still
// be mapped.
func (p *Pool) Forget(b Block) {
	i := p.findEntry(b, inUse)
	if i != 0 {
		p.noteBlockOutOfUse(i)
	} else if i = p.findEntry(b, cooling); i != 0 {
		p.removeFromCooling(i)
	} else {
		return
	}
	if p.entryAt(i).isSubAlloc() {
		p.loseSubAlloc(i)
		return
	}
	p.stats.Blocks--
	p.recycleEntry(i)
}

// SetLimit changes one limit and evicts blocks that no longer fit, in drain_order. It returns an error and changes
// nothing if the name is unknown, if this policy ignores the limit, or if the value is out of range or contradicts
// another limit. The error names the limit and the values that it takes.
func (p *Pool) SetLimit(name, text string, time int64, out []Eviction) ([]Eviction, error) {
	out = p.evictDoomed(out)
	i, err := limitIndex(p.PolicyName(), p.names, name)
	if err != nil {
		return out, err
	}
	changed := p.limits
	if err = changed.setFromText(i, p.PolicyName(), text); err != nil {
		return out, err
	}
	if err = changed.checkLimitCombination(p.names); err != nil {
		return out, err
	}
	was := p.limits
	p.limits = changed
	switch name {
	case "page_bytes":
		p.slabs.version++
	case "bucket_sizes", "mantissa_bits", "min_block":
		out = p.evictUnusableSizes(&was, out)
	}
	return p.evictBeyondLimits(p.expireBlocks(time, out)), nil
}

// Limits returns the limits that this policy obeys, with their present values, in a fixed order.
func (p *Pool) Limits() []Limit { return p.limits.listByName(p.names) }
