package allocator

import (
	"math"

	"codeberg.org/gpumemtop/gpumemtop/internal/wire"
)

// cap returns the most bytes that may wait in the pool.
func (p *Pool) cap() uint64 {
	if p.heap == 0 || p.limits.maxCachedFraction == 1 {
		return p.limits.maxCachedBytes
	}
	return min(p.limits.maxCachedBytes, uint64(p.limits.maxCachedFraction*float64(p.heap)))
}

// Room returns how many bytes of blocks in use can be freed, while nothing uses them, before Free evicts anything.
func (p *Pool) Room() uint64 {
	l := &p.limits
	most := p.cap()
	if p.leaving > 0 || len(p.doomed) > 0 || l.maxAge != 0 || l.maxPerTag != 0 || l.maxPerBucket != 0 || most < p.stats.BytesCached {
		return 0
	}
	return most - p.stats.BytesCached
}

// shelve makes a block cached, and evicts what is then too much. One that alone exceeds the cap would push out
// everything else and then itself, so it goes at once.
func (p *Pool) shelve(i int32, out []Eviction) []Eviction {
	e := &p.entries[i]
	if e.stale != wire.EvictNone {
		return p.dismiss(i, e.stale, out)
	}
	if e.size > p.cap() || p.limits.rejectNew && p.stats.BytesCached+e.size > p.cap() {
		return p.dismiss(i, wire.EvictLimit, out)
	}
	for p.limits.maxPerTag != 0 {
		peers := p.peers(e)
		if uint64(peers.count) < p.limits.maxPerTag {
			break
		}
		if p.limits.rejectNew {
			return p.dismiss(i, wire.EvictTagCap, out)
		}
		out = p.evict(peers.oldest, wire.EvictTagCap, out)
	}
	for p.limits.maxPerBucket != 0 {
		count, oldest := p.free.ofSize(e.class, e.size)
		if uint64(count) < p.limits.maxPerBucket {
			break
		}
		if p.limits.rejectNew {
			return p.dismiss(i, wire.EvictTagCap, out)
		}
		out = p.evict(oldest, wire.EvictTagCap, out)
	}
	p.keep(i)
	out = p.evictOld(out)
	p.stats.peaks()
	return out
}

// evictOld gives up what was freed longest ago until the cap holds, or nothing is left that could go.
func (p *Pool) evictOld(out []Eviction) []Eviction {
	for p.stats.BytesCached > p.cap() && p.cachedByAge.oldest != 0 {
		out = p.evict(p.cachedByAge.oldest, wire.EvictLimit, out)
	}
	return out
}

// fit gives up what limits do not allow any more, in drain_order.
func (p *Pool) fit(out []Eviction) []Eviction {
	out = p.shrink(p.cap(), wire.EvictLimit, out)
	if p.limits.maxPerTag != 0 || p.limits.maxPerBucket != 0 {
		out = p.fitCounts(out)
	}
	return out
}

// fitCounts gives up blocks of tags and sizes that have too many.
func (p *Pool) fitCounts(out []Eviction) []Eviction {
	for _, i := range p.inDrainOrder(p.limits.drainOrder) {
		if e := &p.entries[i]; !e.isSlab && p.tooMany(e, 0) {
			out = p.evict(i, wire.EvictTagCap, out)
		}
	}
	return out
}

// tooMany reports whether more blocks of a block's tag or size would be cached than may, if there were some more.
func (p *Pool) tooMany(e *entry, more int) bool {
	if p.limits.maxPerTag != 0 && over(uint64(p.peers(e).count+more), p.limits.maxPerTag) {
		return true
	}
	if p.limits.maxPerBucket == 0 {
		return false
	}
	sizes, _ := p.free.ofSize(e.class, e.size)
	return over(uint64(int(sizes)+more), p.limits.maxPerBucket)
}

func over(count, most uint64) bool { return most != 0 && count > most }

// retire evicts cached blocks whose size no request gets after a change of limits, and marks others of that size to go
// when they come back. A size at which rounding stopped is given again; blocks of a former policy stay.
func (p *Pool) retire(was *limits, out []Eviction) []Eviction {
	for i := range p.entries {
		e := &p.entries[i]
		switch {
		case e.state == unused || e.stale == wire.EvictPolicy:
		case p.rule.stale(e.size, &p.limits) && (e.stale != wire.EvictNone || !p.rule.stale(e.size, was)):
			p.mark(e, e.passes, wire.EvictLimit)
		default:
			p.mark(e, e.passes, wire.EvictNone)
		}
	}
	return p.evictStale(out)
}

// evictStale gives up the cached blocks that are not cached any more, in drain_order.
func (p *Pool) evictStale(out []Eviction) []Eviction {
	for _, i := range p.inDrainOrder(p.limits.drainOrder) {
		if why := p.entries[i].stale; why != wire.EvictNone {
			out = p.evict(i, why, out)
		}
	}
	return out
}

// next returns the block that goes first in drain_order, 0 when nothing is cached.
func (p *Pool) next() int32 {
	switch p.limits.drainOrder {
	case bySlot:
		return p.slots.first()
	case largestFirst:
		return p.largest()
	default:
		return p.cachedByAge.oldest
	}
}

// shrink gives up blocks in drain_order until at most keep bytes are cached.
func (p *Pool) shrink(keep uint64, reason wire.Evict, out []Eviction) []Eviction {
	for p.stats.BytesCached > keep {
		i := p.next()
		if i == 0 {
			break // what is left lies in slabs that are in use
		}
		out = p.evict(i, reason, out)
		if p.limits.drainOrder == allAtOnce {
			keep = 0
		}
	}
	return out
}

// Drain gives up the blocks that should go next after the driver failed to allocate need bytes, in
// drain_order; nothing is appended once no cached block is left. Cooling blocks are given up last: releasing
// them is legal, the driver frees them when their commands end.
func (p *Pool) Drain(need uint64, out []Eviction) []Eviction {
	p.runShort()
	given := uint64(0)
	owed := len(out)
	out = p.flush(out)
	for _, e := range out[owed:] {
		given += e.Size // on its way to the driver as well
	}
	need = min(max(need, 1), math.MaxInt64)
	for given < need || p.limits.drainOrder == allAtOnce {
		i := p.next()
		if i == 0 {
			break
		}
		given += p.gives(i)
		out = p.evict(i, wire.EvictDrain, out)
	}
	if given > 0 {
		return out
	}
	return p.drainCooling(out)
}

// gives returns the bytes that the driver gets back with a cached block at once: not those of a slab's lost
// sub-allocations.
func (p *Pool) gives(i int32) uint64 {
	e := &p.entries[i]
	if e.isSlab {
		return e.size - p.slabOf(i).used
	}
	return e.size
}

// drainCooling evicts cooling blocks. A sub-allocation goes only with its whole slab, because its range must not be
// reused.
func (p *Pool) drainCooling(out []Eviction) []Eviction {
	for i := p.coolingByAge.oldest; i != 0; {
		next := p.chain[i].newer
		if !p.isSubAlloc(i) {
			p.leaveCooling(i)
			out = p.dismiss(i, wire.EvictDrain, out)
		}
		i = next
	}
	if p.slabs != nil {
		out = p.drainSlabs(out)
	}
	return out
}

// Trim gives up cached blocks until at most keep bytes are cached.
func (p *Pool) Trim(keep uint64, out []Eviction) []Eviction {
	return p.shrink(keep, wire.EvictTrim, p.flush(out))
}

// Expire gives up the blocks that have been cached for max_age. It returns when there may be something to do again,
// 0 when there is no such limit. Decide, Free and Cooled do the same in passing.
func (p *Pool) Expire(time int64, out []Eviction) (_ []Eviction, next int64) {
	out = p.flush(out)
	if p.limits.maxAge == 0 {
		return out, 0
	}
	since := max(p.now, time) // of a block that is freed from here on
	if i := p.cachedByAge.oldest; i != 0 && since-p.entries[i].since >= p.limits.maxAge {
		out = p.expire(time, out)
	}
	if i := p.cachedByAge.oldest; i != 0 {
		since = p.entries[i].since
	}
	return out, since + p.limits.maxAge
}

// expire moves time on. The threads of a program do not agree on it: it never goes back.
func (p *Pool) expire(time int64, out []Eviction) []Eviction {
	p.now = max(p.now, time)
	if p.limits.maxAge == 0 {
		return out
	}
	for i := p.cachedByAge.oldest; i != 0 && p.now-p.entries[i].since >= p.limits.maxAge; i = p.cachedByAge.oldest {
		out = p.evict(i, wire.EvictAge, out)
	}
	return out
}

// DropClass gives up every cached and cooling block of a class and caches none of it from then on: its context
// is gone.
func (p *Pool) DropClass(c Class, out []Eviction) []Eviction {
	out = p.flush(out)
	p.dropped[c] = true
	both := [...]Class{c, c | ofArena}
	for _, c := range both {
		for i := p.free.first(c, 0); i != 0; i = p.free.first(c, 0) {
			out = p.evict(i, wire.EvictContext, out)
		}
	}
	if p.slabs != nil {
		out = p.dropSlabs(c, out)
	}
	for _, c := range both {
		for i := p.coolingBlocks.first(c, 0); i != 0; i = p.coolingBlocks.first(c, 0) {
			p.leaveCooling(i)
			out = p.dismiss(i, wire.EvictContext, out)
		}
		p.free.drop(c)
		p.coolingBlocks.drop(c)
		p.evicted.drop(c)
	}
	for i := range p.entries {
		if e := &p.entries[i]; e.state != unused && e.class&^ofArena == c {
			p.markDropped(e)
		}
	}
	return out
}

// evict takes a cached block out of the pool.
func (p *Pool) evict(i int32, reason wire.Evict, out []Eviction) []Eviction {
	p.unkeep(i)
	return p.dismiss(i, reason, out)
}

// dismiss reports a block that is on no list any more as gone.
func (p *Pool) dismiss(i int32, reason wire.Evict, out []Eviction) []Eviction {
	e := &p.entries[i]
	out = append(out, Eviction{Block: p.block(i), Size: e.size, Tag: e.tag, Reason: reason})
	if e.isSlab {
		p.removeSlab(i, reason)
	} else {
		p.evicted.remember(e, reason)
	}
	p.stats.Evictions++
	p.stats.Blocks--
	p.recycle(i)
	return out
}

func (p *Pool) enterCooling(i int32) {
	e := &p.entries[i]
	e.state = cooling
	if p.isSubAlloc(i) {
		p.slabOf(i).cooling++
	}
	p.coolingBlocks.put(i, e)
	p.chain.push(&p.coolingByAge, i)
	p.stats.BytesCooling += e.size
	p.stats.peaks()
}

func (p *Pool) leaveCooling(i int32) {
	e := &p.entries[i]
	if p.isSubAlloc(i) {
		p.slabOf(i).cooling--
	}
	p.coolingBlocks.take(i, e)
	p.chain.remove(&p.coolingByAge, i)
	p.stats.BytesCooling -= e.size
}
