package allocator

import (
	"math"
	"math/bits"

	"codeberg.org/gpumemtop/gpumemtop/internal/wire"
)

// FreeableBytes returns how many bytes of blocks in use can be freed before NextExpiry without an eviction, if no command uses the
// blocks.
func (p *Pool) FreeableBytes() uint64 {
	l := &p.limits
	most := p.maxCachedBytes()
	if p.debt > 0 || p.leaving > 0 || len(p.doomed) > 0 || l.maxPerTag != 0 || l.maxPerBucket != 0 || most < p.stats.BytesCached || p.isOverdue(p.now) {
		return 0
	}
	return most - p.stats.BytesCached
}

// evictUnusableSizes evicts cached blocks whose size no request gets after a change of limits, and marks blocks in use of such
// a size to go when they come back. It keeps blocks whose size no request got before the change either: rounding stopped there,
// and may again. Blocks of a former policy stay marked.
func (p *Pool) evictUnusableSizes(was *limits, out []Eviction) []Eviction {
	for i := range p.made {
		e := p.entryAt(i)
		switch {
		case e.state == unused || e.stale == wire.EvictPolicy:
		case p.rule.isStaleSize(e.size, &p.limits) && (e.stale != wire.EvictNone || !p.rule.isStaleSize(e.size, was)):
			p.setLeavesOnReturn(e, e.passes, wire.EvictLimit)
		default:
			p.setLeavesOnReturn(e, e.passes, wire.EvictNone)
		}
	}
	return p.evictStale(out)
}

// Drain gives up the blocks that should go next after the driver failed to allocate need bytes, in drain_order. Cooling
// blocks go once no cached block is left: to release them is legal, since the driver frees them when their commands end.
// Drain appends nothing when no block is left that could go.
func (p *Pool) Drain(need uint64, out []Eviction) []Eviction {
	p.noteShortage()
	out, given := p.drainCached(need, out)
	if given > 0 {
		return out
	}
	return p.drainCooling(out)
}

// drainCached gives up cached blocks, and blocks that an earlier call could not report. It returns their bytes.
func (p *Pool) drainCached(need uint64, out []Eviction) (_ []Eviction, given uint64) {
	owed := len(out)
	out = p.evictDoomed(out)
	for _, e := range out[owed:] {
		given += e.Size // these blocks go to the driver as well
	}
	need = min(max(need, 1), math.MaxInt64)
	for given < need || p.limits.drainOrder == allAtOnce {
		i := p.firstInDrainOrder()
		if i == 0 {
			break
		}
		given += p.bytesFreedByEvicting(i)
		out = p.evictCachedBlock(i, wire.EvictDrain, out)
	}
	return out, given
}

// EvictForOthers gives up cached blocks, the oldest first, because other programs lack need bytes. The pool owes what it
// cannot give: blocks that become cached go at once until that many bytes went, or until Relieve is called again; a
// need of 0 ends the debt. With an idle time in ns Relieve gives up only blocks that have been cached for at least that
// long, and the pool owes nothing.
func (p *Pool) EvictForOthers(need uint64, idle, time int64, out []Eviction) []Eviction {
	owed := len(out)
	out = p.evictDoomed(out)
	p.debt = need
	for _, e := range out[owed:] {
		p.debt -= min(p.debt, e.Size) // these blocks go to the driver as well
	}
	out = p.evictOwedBytes(max(p.now, time)-idle, out)
	if idle != 0 {
		p.debt = 0
	}
	return out
}

// timedMost bounds the cached blocks that EvictForTiming inspects.
const timedMost = 4096

// EvictForTiming gives up one cached block, so that the duration of its release becomes known. It takes the oldest cached block
// whose size has the same highest bit as size, and no slab.
func (p *Pool) EvictForTiming(size uint64, out []Eviction) []Eviction {
	out = p.evictDoomed(out)
	i := p.cachedByAge.oldest
	for looked := 0; i != 0 && looked < timedMost; looked++ {
		if e := p.entryAt(i); !e.isSlab && bits.Len64(e.size) == bits.Len64(size) {
			return p.evictCachedBlock(i, wire.EvictTimed, out)
		}
		i = p.chain.At(i).newer
	}
	return out
}

// Trim gives up cached blocks until at most keep bytes are cached.
func (p *Pool) Trim(keep uint64, out []Eviction) []Eviction {
	return p.shrinkTo(keep, wire.EvictTrim, p.evictDoomed(out))
}

// Expire gives up blocks that are too old or too many, while the program makes no calls. It returns when to call it
// again, 0 if no limit depends on the time. Decide, Free and CoolingEnded give up such blocks, too. A call that gives nothing
// up changes nothing.
func (p *Pool) Expire(time int64, out []Eviction) (_ []Eviction, next int64) {
	out = p.evictDoomed(out)
	if !p.limits.dependsOnTime() {
		return out, 0
	}
	now := max(p.now, time)
	if p.isOverdue(now) {
		p.advanceTime(time)
		p.mayGive = idleGives
		out = p.giveBackExcess(0, 0, out)
	}
	return out, p.nextExpiryAt(now)
}

// DropClass gives up every cached and cooling block of a class, whose context is gone, and caches no block of it from then
// on.
func (p *Pool) DropClass(c Class, out []Eviction) []Eviction {
	out = p.evictDoomed(out)
	p.dropped[c] = true
	both := [...]Class{c, c | ofArena}
	for _, c := range both {
		for i := p.free.smallestAtLeast(c, 0); i != 0; i = p.free.smallestAtLeast(c, 0) {
			out = p.evictCachedBlock(i, wire.EvictContext, out)
		}
	}
	if p.maySlabsExist() {
		out = p.dropSlabs(c, out)
	}
	for _, c := range both {
		for i := p.coolingBlocks.smallestAtLeast(c, 0); i != 0; i = p.coolingBlocks.smallestAtLeast(c, 0) {
			p.removeFromCooling(i)
			out = p.dismissBlock(i, wire.EvictContext, out)
		}
		p.free.forgetClass(c)
		p.coolingBlocks.forgetClass(c)
		p.evicted.forgetClass(c)
	}
	for i := range p.made {
		if e := p.entryAt(i); e.state != unused && e.class&^ofArena == c {
			p.markDropped(e)
		}
	}
	return out
}
