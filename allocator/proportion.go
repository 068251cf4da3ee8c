package allocator

import (
	"math"

	"codeberg.org/gpumemtop/gpumemtop/internal/wire"
)

// Three rules keep a pool in proportion to its program: proportion, max_age (both here) and outgrown. They give blocks
// back a few at a time, the oldest first, so that no request pays for many others. They depend only on the calls and
// their times, so a replay gives back the same blocks at the same calls.
const (
	smallPool    = 32 << 20 // bytes that a pool may hold beyond its proportion, so that the rule does not matter for small programs
	requestGives = 2        // blocks that one call of the program gives back at most
	idleGives    = 32       // blocks that one call of Expire gives back at most
)

// NextExpiry returns when the pool may have to give a block back because of its age, or because a peak no longer counts;
// math.MaxInt64: never. Until then a block that is freed evicts nothing if it fits in Room.
func (p *Pool) NextExpiry() int64 { return p.nextExpiryAt(p.now) }

// nextExpiryAt is NextExpiry at a time that is not before the pool's.
func (c *cache) nextExpiryAt(now int64) int64 {
	due := int64(never)
	if c.limits.maxAge != 0 {
		since := now // a block that is freed next becomes cached no earlier
		if i := c.cachedByAge.oldest; i != 0 {
			since = c.cachingMoment(i).since
		}
		due = since + c.ageLimit()
	}
	if c.limits.proportion != 0 {
		due = min(due, c.peaks.highestPeakEnd(now))
	}
	return due
}

// dependsOnTime reports whether a limit depends on the time.
func (l *limits) dependsOnTime() bool { return l.maxAge != 0 || l.proportion != 0 }

// advanceTime advances the pool's time. Threads of a program may report an earlier time than others did; the pool's time never
// goes back.
func (c *cache) advanceTime(time int64) {
	c.now = max(c.now, time)
	if c.now >= c.peaks.until {
		c.peaks.beginTick(c.now, c.stats.BytesInUse)
	}
}

// expireBlocks advances the pool's time, and gives back blocks that are too old or too many.
func (c *cache) expireBlocks(time int64, out []Eviction) []Eviction {
	c.advanceTime(time)
	c.mayGive = requestGives
	return c.giveBackExcess(0, 0, out)
}

// giveBackExcess gives up the oldest blocks while they are too old, or while the pool would be too large with more
// bytes from the driver. The program gets used of these bytes.
func (c *cache) giveBackExcess(more, used uint64, out []Eviction) []Eviction {
	for i := c.cachedByAge.oldest; i != 0 && c.mayGive > 0; i = c.cachedByAge.oldest {
		switch {
		case c.isTooOld(i, c.now):
			out = c.evictCachedBlock(i, wire.EvictAge, out)
		case c.exceedsProportion(c.peaks.highestBytes(), more, used):
			out = c.evictCachedBlock(i, wire.EvictProportion, out)
		default:
			return out
		}
		c.mayGive--
	}
	return out
}

// isOverdue reports whether the pool must give back a block at a time that is not before its own.
func (c *cache) isOverdue(now int64) bool {
	i := c.cachedByAge.oldest
	return i != 0 && (c.isTooOld(i, now) || c.exceedsProportion(c.peaks.highestBytesAt(now), 0, 0))
}

func (c *cache) isTooOld(i int32, now int64) bool {
	return c.limits.maxAge != 0 && now-c.cachingMoment(i).since >= c.ageLimit()
}

// periods is for how many iterations of the program a block stays cached, and a peak counts, at least.
const periods = 3

// SetIterationTime sets how long an iteration of the program takes, in ns; 0: unknown. Blocks stay cached, and peaks count, for
// at least three iterations, even if max_age and a minute are less: memory that each iteration needs stays.
func (p *Pool) SetIterationTime(period int64) {
	p.period = min(period, math.MaxInt64/(2*periods))
	p.peaks.setWindow(periods * p.period)
}

// ageLimit is the age at which blocks go, under max_age.
func (c *cache) ageLimit() int64 { return max(c.limits.maxAge, periods*c.period) }

// exceedsProportion reports whether the pool would hold more than its proportion of a peak with more bytes from the driver, of
// which the program uses some. Cooling blocks do not count.
func (c *cache) exceedsProportion(peak, more, used uint64) bool {
	held := c.stats.BytesInUse + c.stats.BytesCached + more
	if held <= c.beyond || c.limits.proportion == 0 {
		return false
	}
	peak = max(peak, c.stats.BytesInUse+used)
	return float64(held-c.beyond) > c.limits.proportion*float64(peak)
}
