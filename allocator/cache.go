package allocator

import (
	"cmp"
	"math"

	"codeberg.org/gpumemtop/gpumemtop/internal/wire"
)

// cache keeps the blocks that the program released within the limits, and gives up the others. Each block that leaves
// is reported once, as an Eviction; a doomed block with the next call that can report evictions.
//
//   - No more bytes are cached than cap allows, except in slabs that are in use, until the next call that reports evictions.
//   - No tag and no size has more cached blocks than max_per_tag and max_per_bucket allow.
//   - Blocks beyond proportion and max_age go with the next calls, a few with each.
type cache struct {
	slabs
	limits  limits
	heap    uint64  // memory of the largest device that requests have named, in bytes
	doomed  []int32 // blocks in that state
	mayGive int     // blocks that the present call may still give back, see giveBackExcess
	beyond  uint64  // bytes that the pool may hold beyond its proportion
	peaks   peaks
	period  int64 // ns: see SetIterationTime
	sizes   knownSizes
	debt    uint64 // bytes that the pool owes to other programs, see Relieve
}

// maxCachedBytes returns the most bytes that may be cached.
func (c *cache) maxCachedBytes() uint64 {
	if c.heap == 0 || c.limits.maxCachedFraction == 1 {
		return c.limits.maxCachedBytes
	}
	return min(c.limits.maxCachedBytes, uint64(c.limits.maxCachedFraction*float64(c.heap)))
}

// noteDeviceMemory notes how much memory a device has. max_cached_fraction may then mean fewer bytes than before.
func (c *cache) noteDeviceMemory(heap uint64, out []Eviction) []Eviction {
	if heap <= c.heap {
		return out
	}
	c.heap = heap
	return c.shrinkTo(c.maxCachedBytes(), wire.EvictLimit, out)
}

// markDoomed notes that a block must go with the next call that reports evictions.
func (c *cache) markDoomed(i int32) {
	c.entryAt(i).state = doomed
	c.doomed = append(c.doomed, i)
}

// evictDoomed evicts the doomed blocks. It also evicts cached blocks if a new slab or an aborted sub-allocation has brought
// more free bytes than the cap allows.
func (c *cache) evictDoomed(out []Eviction) []Eviction {
	for _, i := range c.doomed {
		reason := cmp.Or(c.entryAt(i).doom, wire.EvictLimit)
		if c.entryAt(i).dropped {
			reason = wire.EvictContext
		}
		out = c.dismissBlock(i, reason, out)
	}
	c.doomed = c.doomed[:0]
	if c.maySlabsExist() {
		out = c.evictOldest(out)
	}
	return out
}

// cacheOrEvict caches a block, and evicts blocks that then exceed a limit. A block that alone exceeds the cap goes at
// once: otherwise it would first push out all others.
func (c *cache) cacheOrEvict(i int32, out []Eviction) []Eviction {
	e := c.entryAt(i)
	if e.stale != wire.EvictNone {
		return c.dismissBlock(i, e.stale, out)
	}
	if e.size > c.maxCachedBytes() || c.limits.rejectNew && c.stats.BytesCached+e.size > c.maxCachedBytes() {
		return c.dismissBlock(i, wire.EvictLimit, out)
	}
	for c.limits.maxPerTag != 0 {
		peers := c.cachedOfTag(e)
		if uint64(peers.count) < c.limits.maxPerTag {
			break
		}
		if c.limits.rejectNew {
			return c.dismissBlock(i, wire.EvictTagCap, out)
		}
		out = c.evictCachedBlock(peers.oldest, wire.EvictTagCap, out)
	}
	for c.limits.maxPerBucket != 0 {
		count, oldest := c.free.countAndOldestOfSize(e.class, e.size)
		if uint64(count) < c.limits.maxPerBucket {
			break
		}
		if c.limits.rejectNew {
			return c.dismissBlock(i, wire.EvictTagCap, out)
		}
		out = c.evictCachedBlock(oldest, wire.EvictTagCap, out)
	}
	c.addCached(i)
	out = c.evictOldest(out)
	c.stats.raisePeaks()
	return out
}

// evictOldest gives up the blocks that were freed first until the cap holds and the pool owes nothing, or no cached block
// is left.
func (c *cache) evictOldest(out []Eviction) []Eviction {
	for c.stats.BytesCached > c.maxCachedBytes() && c.cachedByAge.oldest != 0 {
		out = c.evictCachedBlock(c.cachedByAge.oldest, wire.EvictLimit, out)
	}
	if c.debt > 0 {
		return c.evictOwedBytes(math.MaxInt64, out)
	}
	return out
}

// evictOwedBytes gives up blocks that became cached at a time or before, the oldest first, until the pool owes nothing.
func (c *cache) evictOwedBytes(since int64, out []Eviction) []Eviction {
	for i := c.cachedByAge.oldest; i != 0 && c.debt > 0 && c.cachingMoment(i).since <= since; i = c.cachedByAge.oldest {
		c.debt -= min(c.debt, c.bytesFreedByEvicting(i))
		out = c.evictCachedBlock(i, wire.EvictRelief, out)
	}
	return out
}

// evictUnused gives up the blocks, except slabs, that became cached before a time.
func (c *cache) evictUnused(since int64, out []Eviction) []Eviction {
	for i := c.cachedByAge.oldest; i != 0 && c.cachingMoment(i).since < since; {
		next := c.chain.At(i).newer
		if !c.entryAt(i).isSlab {
			out = c.evictCachedBlock(i, wire.EvictPolicy, out)
		}
		i = next
	}
	return out
}

// evictClassForArena gives up the base policy's blocks of a class that gets an arena: cached ones at once, the others when they
// come back.
func (c *cache) evictClassForArena(class Class, out []Eviction) []Eviction {
	for i := range c.made {
		if e := c.entryAt(i); e.state != unused && e.class == class && e.slab == 0 {
			c.setLeavesOnReturn(e, e.passes, wire.EvictPolicy)
		}
	}
	return c.evictStale(out)
}

// evictStale gives up the cached blocks that were marked as stale, in drain_order.
func (c *cache) evictStale(out []Eviction) []Eviction {
	for _, i := range c.cachedInDrainOrder(c.limits.drainOrder) {
		if why := c.entryAt(i).stale; why != wire.EvictNone {
			out = c.evictCachedBlock(i, why, out)
		}
	}
	return out
}

// shrinkTo gives up blocks in drain_order until at most keep bytes are cached.
func (c *cache) shrinkTo(keep uint64, reason wire.Evict, out []Eviction) []Eviction {
	for c.stats.BytesCached > keep {
		i := c.firstInDrainOrder()
		if i == 0 {
			break // the remaining cached bytes lie in slabs that are in use
		}
		out = c.evictCachedBlock(i, reason, out)
		if c.limits.drainOrder == allAtOnce {
			keep = 0
		}
	}
	return out
}

// firstInDrainOrder returns the block that goes first in drain_order, 0 if no block is cached.
func (c *cache) firstInDrainOrder() int32 {
	switch c.limits.drainOrder {
	case bySlot:
		return c.slots.blockInLowestSlot()
	case largestFirst:
		return c.largestCached()
	default:
		return c.cachedByAge.oldest
	}
}

// evictBeyondLimits gives up blocks that exceed changed limits, in drain_order.
func (c *cache) evictBeyondLimits(out []Eviction) []Eviction {
	out = c.shrinkTo(c.maxCachedBytes(), wire.EvictLimit, out)
	if c.limits.maxPerTag != 0 || c.limits.maxPerBucket != 0 {
		out = c.evictBeyondCountLimits(out)
	}
	return out
}

// evictBeyondCountLimits gives up blocks whose tag or size has too many cached blocks.
func (c *cache) evictBeyondCountLimits(out []Eviction) []Eviction {
	for _, i := range c.cachedInDrainOrder(c.limits.drainOrder) {
		if e := c.entryAt(i); !e.isSlab && c.exceedsCountLimits(e, 0) {
			out = c.evictCachedBlock(i, wire.EvictTagCap, out)
		}
	}
	return out
}

// exceedsCountLimits reports whether the cached blocks of a block's tag or size would exceed a limit if there were more of them by
// that number.
func (c *cache) exceedsCountLimits(e *entry, more int) bool {
	if c.limits.maxPerTag != 0 && exceedsBound(uint64(c.cachedOfTag(e).count+more), c.limits.maxPerTag) {
		return true
	}
	if c.limits.maxPerBucket == 0 {
		return false
	}
	sizes, _ := c.free.countAndOldestOfSize(e.class, e.size)
	return exceedsBound(uint64(int(sizes)+more), c.limits.maxPerBucket)
}

// drainCooling evicts cooling blocks. A sub-allocation goes only with its whole slab, because its range must not be
// reused.
func (c *cache) drainCooling(out []Eviction) []Eviction {
	for i := c.coolingByAge.oldest; i != 0; {
		next := c.chain.At(i).newer
		if !c.entryAt(i).isSubAlloc() {
			c.removeFromCooling(i)
			out = c.dismissBlock(i, wire.EvictDrain, out)
		}
		i = next
	}
	if c.maySlabsExist() {
		out = c.drainSlabs(out)
	}
	return out
}
