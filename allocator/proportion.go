package allocator

import (
	"math"

	"codeberg.org/gpumemtop/gpumemtop/internal/wire"
)

// Three rules keep a pool in proportion to its program: proportion, max_age (both here) and outgrown. They give blocks
// back a few at a time, the oldest first, so that no request pays for many others. All of them look only at the calls and
// their times: a replay gives back the same blocks at the same calls.
const (
	smallPool    = 32 << 20 // bytes that a pool may hold beyond its proportion: a small program needs no rule
	requestGives = 2        // blocks that a call of the program gives back at most
	idleGives    = 32       // blocks that a look between the calls gives back at most
)

// Due returns when the pool may have to give a block back for its age, or because a peak is a minute ago; math.MaxInt64:
// never. Until then a block that is freed evicts nothing, if it fits in Room.
func (p *Pool) Due() int64 { return p.due(p.now) }

// due is Due at a time that is not earlier than the pool's.
func (c *cache) due(now int64) int64 {
	due := int64(never)
	if c.limits.maxAge != 0 {
		since := now // a block that is freed next becomes cached no earlier
		if i := c.cachedByAge.oldest; i != 0 {
			since = c.entries[i].since
		}
		due = since + c.oldAge()
	}
	if c.limits.proportion != 0 {
		due = min(due, c.peaks.falls(now))
	}
	return due
}

// timed reports whether a limit depends on the time.
func (l *limits) timed() bool { return l.maxAge != 0 || l.proportion != 0 }

// pass sets the time. Threads of a program may report an earlier time than others did: the pool's time never goes back.
func (c *cache) pass(time int64) {
	c.now = max(c.now, time)
	if c.now >= c.peaks.until {
		c.peaks.pass(c.now, c.stats.BytesInUse)
	}
}

// expire sets the time, and gives back what is too old or too much.
func (c *cache) expire(time int64, out []Eviction) []Eviction {
	c.pass(time)
	c.mayGive = requestGives
	return c.settleUp(0, 0, out)
}

// settleUp gives up the oldest blocks while they are too old, or while the pool would be too large with more bytes from
// the driver. Of these bytes, used come into use.
func (c *cache) settleUp(more, used uint64, out []Eviction) []Eviction {
	for i := c.cachedByAge.oldest; i != 0 && c.mayGive > 0; i = c.cachedByAge.oldest {
		switch {
		case c.tooOld(i, c.now):
			out = c.evict(i, wire.EvictAge, out)
		case c.tooMuch(c.peaks.highest(), more, used):
			out = c.evict(i, wire.EvictProportion, out)
		default:
			return out
		}
		c.mayGive--
	}
	return out
}

// overdue reports whether the pool has something to give back at a time that is not earlier than its own.
func (c *cache) overdue(now int64) bool {
	i := c.cachedByAge.oldest
	return i != 0 && (c.tooOld(i, now) || c.tooMuch(c.peaks.highestAt(now), 0, 0))
}

func (c *cache) tooOld(i int32, now int64) bool {
	return c.limits.maxAge != 0 && now-c.entries[i].since >= c.oldAge()
}

// periods is how many iterations of the program a block stays and a peak counts at least.
const periods = 3

// Repeat tells the pool how long an iteration of the program takes, in ns; 0: unknown. Blocks stay for three of them and peaks
// count as long, where max_age and a minute are less: what each iteration needs stays.
func (p *Pool) Repeat(period int64) {
	p.period = min(period, math.MaxInt64/(2*periods))
	p.peaks.last(periods * p.period)
}

// oldAge is the age at which blocks go, under max_age.
func (c *cache) oldAge() int64 { return max(c.limits.maxAge, periods*c.period) }

// tooMuch reports whether the pool holds more than its proportion of a peak, what cools aside.
func (c *cache) tooMuch(peak, more, used uint64) bool {
	held := c.stats.BytesInUse + c.stats.BytesCached + more
	if held <= c.beyond || c.limits.proportion == 0 {
		return false
	}
	peak = max(peak, c.stats.BytesInUse+used)
	return float64(held-c.beyond) > c.limits.proportion*float64(peak)
}
