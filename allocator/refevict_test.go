package allocator

import (
	"cmp"
	"math"
	"math/bits"
	"slices"
	"strings"

	"codeberg.org/gpumemtop/gpumemtop/internal/wire"
)

// This file is the part of the reference that gives blocks up.

func (r *reference) find(b Block, s state) *refBlock {
	for _, x := range r.blocks {
		if x.block == b && x.state == s {
			return x
		}
	}
	return nil
}

func (r *reference) drop(b *refBlock) {
	r.blocks = slices.DeleteFunc(r.blocks, func(x *refBlock) bool { return x == b })
}

// enter puts a block into a state in which it waits; a cached one takes the lowest empty slot.
func (r *reference) enter(b *refBlock, s state) {
	r.clock++
	b.state, b.since, b.time = s, r.clock, r.now
	if s != cached {
		return
	}
	slot := slices.Index(r.slots, nil)
	if slot < 0 {
		slot = len(r.slots)
		r.slots = append(r.slots, nil)
	}
	r.slots[slot] = b
}

func (r *reference) leaveSlot(b *refBlock) {
	if slot := slices.Index(r.slots, b); slot >= 0 {
		r.slots[slot] = nil
	}
}

func (r *reference) evict(b *refBlock, reason wire.Evict, out []Eviction) []Eviction {
	r.leaveSlot(b)
	r.drop(b)
	r.count.Evictions++
	blame := map[wire.Evict]wire.Miss{
		wire.EvictLimit: wire.MissLimit, wire.EvictAge: wire.MissLimit, wire.EvictProportion: wire.MissLimit,
		wire.EvictOutgrown: wire.MissLimit, wire.EvictTagCap: wire.MissTagCap,
		wire.EvictDrain: wire.MissDrained, wire.EvictTrim: wire.MissDrained, wire.EvictRelief: wire.MissDrained, wire.EvictTimed: wire.MissDrained,
	}[reason]
	if blame != wire.MissNone {
		r.remember(b, blame)
	}
	return append(out, Eviction{b.block, b.size, b.tag, reason})
}

func (r *reference) remember(b *refBlock, blame wire.Miss) {
	r.clock++
	r.gone = append(r.gone, &refBlock{size: b.size, class: b.class, tag: b.tag, blame: blame, since: r.clock})
	r.gone = r.gone[max(0, len(r.gone)-1024):]
}

// oldest returns the block that has been in a state longest.
func (r *reference) oldest(s state) (found *refBlock) {
	for _, b := range r.in(s) {
		if found == nil || b.since < found.since {
			found = b
		}
	}
	return found
}

// largest returns the largest cached block among some, of equal ones the latest.
func (r *reference) largest(among func(*refBlock) bool) *refBlock {
	list := slices.DeleteFunc(r.in(cached), func(b *refBlock) bool { return !among(b) })
	if len(list) == 0 {
		return nil
	}
	return slices.MinFunc(list, func(a, b *refBlock) int {
		return cmp.Or(cmp.Compare(b.size, a.size), cmp.Compare(b.since, a.since))
	})
}

// next returns the cached block that goes first in drain_order, among some.
func (r *reference) next(among func(*refBlock) bool) *refBlock {
	switch r.limits["drain_order"] {
	case "slot":
		for _, b := range r.slots {
			if b != nil && among(b) {
				return b
			}
		}
		return nil
	case "largest-first":
		return r.largest(among)
	}
	list := slices.DeleteFunc(r.in(cached), func(b *refBlock) bool { return !among(b) })
	if len(list) == 0 {
		return nil
	}
	return slices.MinFunc(list, func(a, b *refBlock) int { return cmp.Compare(a.since, b.since) })
}

func anyBlock(*refBlock) bool { return true }

func (r *reference) cachedBytes() (sum uint64) {
	for _, b := range r.in(cached) {
		sum += b.size
	}
	return sum
}

func (r *reference) cap() uint64 {
	most := r.limit("max_cached_bytes", math.MaxInt64)
	if share := r.limit("max_cached_fraction", 1); share < 1 && r.heap != 0 {
		most = min(most, share*float64(r.heap))
	}
	return uint64(most)
}

// owed returns what an earlier abort could not report.
func (r *reference) owed() (out []Eviction) {
	for _, b := range r.doomed {
		if r.closed[b.class] {
			b.doom = wire.EvictContext
		}
		out = r.evict(b, b.doom, out)
	}
	r.doomed = nil
	return out
}

// bytes sums the blocks in a state.
func (r *reference) bytes(s state) (sum uint64) {
	for _, b := range r.in(s) {
		sum += b.size
	}
	return sum
}

// pass moves time on, never back, and gives up some of what is too old or too much.
func (r *reference) pass(time int64, out []Eviction) []Eviction {
	r.tick(time)
	r.mayGive = 2
	return r.settleUp(0, out)
}

// tick moves time on. Into a new second goes what is in use already.
func (r *reference) tick(time int64) {
	r.now = max(r.now, time)
	if _, there := r.seconds[r.now/second]; !there {
		r.seconds[r.now/second] = r.bytes(inUse)
	}
}

// highest returns the most bytes in use of the minute before a time, and the last second that had it.
func (r *reference) highest(time int64) (peak uint64, last int64) {
	last = time / second
	found := false
	for s, bytes := range r.seconds {
		if time < (s+61)*second && (!found || bytes > peak || bytes == peak && s > last) {
			peak, last, found = bytes, s, true
		}
	}
	return peak, last
}

// ageLimit is max_age in ns, the largest number where there is none.
func (r *reference) ageLimit() int64 {
	if age := int64(math.Round(r.limit("max_age", 0) * 1e9)); age != 0 {
		return max(age, 3*r.period)
	}
	return math.MaxInt64
}

// due says why the oldest block has to go at a time, with more bytes to come into use.
func (r *reference) due(now int64, more uint64) wire.Evict {
	peak, _ := r.highest(now)
	used := r.bytes(inUse) + more
	most := r.limit("proportion", 0)*float64(max(peak, used)) + duelBeyond
	switch b := r.oldest(cached); {
	case b == nil:
	case now-b.time >= r.ageLimit():
		return wire.EvictAge
	case r.limit("proportion", 0) != 0 && float64(used+r.cachedBytes()) > most:
		return wire.EvictProportion
	}
	return wire.EvictNone
}

// settleUp gives up the oldest blocks while they are due.
func (r *reference) settleUp(more uint64, out []Eviction) []Eviction {
	for ; r.mayGive > 0 && r.due(r.now, more) != wire.EvictNone; r.mayGive-- {
		out = r.evict(r.oldest(cached), r.due(r.now, more), out)
	}
	return out
}

// dropOutgrown gives up the smallest blocks of a call site that has none as large as its request.
func (r *reference) dropOutgrown(req Request, out []Eviction) []Eviction {
	if r.limits["outgrown"] != "on" || req.Tag == 0 {
		return out
	}
	if r.sizes.outgrown.has(r.grant(req)) {
		r.sizes.again.add(r.grant(req))
	}
	var own []*refBlock
	for _, b := range r.in(cached) {
		if b.class == req.Class && b.tag == req.Tag {
			own = append(own, b)
		}
	}
	slices.SortFunc(own, func(a, b *refBlock) int { return cmp.Or(cmp.Compare(a.size, b.size), cmp.Compare(b.since, a.since)) })
	if len(own) == 0 || own[len(own)-1].size >= r.grant(req) {
		return out
	}
	looks, passed := 0, uint64(0)
	for _, b := range own {
		if b.size == passed { // a size that stays is looked at once
			continue
		}
		if looks++; looks > outgrownLooks || r.mayGive == 0 {
			break
		}
		if passed = 0; r.sizes.again.has(b.size) {
			passed = b.size
			continue
		}
		r.mayGive--
		r.sizes.outgrown.add(b.size)
		out = r.evict(b, wire.EvictOutgrown, out)
	}
	return out
}

func (r *reference) shrink(keep uint64, reason wire.Evict, out []Eviction) []Eviction {
	for r.cachedBytes() > keep {
		out = r.evict(r.next(anyBlock), reason, out)
		if r.limits["drain_order"] == "all" {
			keep = 0
		}
	}
	return out
}

// thin gives up what call sites and sizes have too many of.
func (r *reference) thin(out []Eviction) []Eviction {
	over := func(b *refBlock) bool {
		tags, sizes := r.peers(b)
		return tags > r.most("max_per_tag") || sizes > r.most("max_per_bucket")
	}
	for b := r.next(over); b != nil; b = r.next(over) {
		out = r.evict(b, wire.EvictTagCap, out)
	}
	return out
}

// store makes a block cached, as the limits allow.
func (r *reference) store(b *refBlock, out []Eviction) []Eviction {
	reject := r.limits["over_limit"] == "reject-new"
	if b.stale || b.size > r.cap() || reject && r.cachedBytes()+b.size > r.cap() {
		return r.evict(b, wire.EvictLimit, out)
	}
	for _, limit := range []struct {
		name string
		peer func(x *refBlock) bool
	}{
		{"max_per_tag", func(x *refBlock) bool { return x.class == b.class && x.tag == b.tag }},
		{"max_per_bucket", func(x *refBlock) bool { return x.class == b.class && x.size == b.size }},
	} {
		peers := slices.DeleteFunc(r.in(cached), func(x *refBlock) bool { return !limit.peer(x) })
		slices.SortFunc(peers, func(a, b *refBlock) int { return cmp.Compare(a.since, b.since) })
		for ; float64(len(peers)) >= r.most(limit.name); peers = peers[1:] {
			if reject {
				return r.evict(b, wire.EvictTagCap, out)
			}
			out = r.evict(peers[0], wire.EvictTagCap, out)
		}
	}
	r.enter(b, cached)
	for r.cachedBytes() > r.cap() {
		out = r.evict(r.oldest(cached), wire.EvictLimit, out)
	}
	for b := r.oldest(cached); b != nil && r.debt > 0; b = r.oldest(cached) {
		r.debt -= min(r.debt, b.size)
		out = r.evict(b, wire.EvictRelief, out)
	}
	return out
}

func (r *reference) free(block Block, busy bool, time int64) []Eviction {
	out := r.pass(time, r.owed())
	b := r.find(block, inUse)
	switch {
	case b == nil:
		return out
	case b.reason == wire.MissPolicy:
		return r.evict(b, wire.EvictPolicy, out)
	case r.closed[b.class]:
		return r.evict(b, wire.EvictContext, out)
	case busy:
		r.enter(b, cooling)
		return out
	}
	return r.store(b, out)
}

func (r *reference) cooled(block Block, time int64) []Eviction {
	b := r.find(block, cooling)
	if b == nil {
		return nil
	}
	return r.store(b, r.pass(time, r.owed()))
}

func (r *reference) forget(block Block) {
	for _, s := range []state{inUse, cooling} {
		if b := r.find(block, s); b != nil {
			r.drop(b)
		}
	}
}

func (r *reference) drain(need uint64) []Eviction {
	reserved := 0.0
	for _, b := range r.blocks {
		if b.state == inUse || b.state == cached || b.state == cooling {
			reserved += float64(b.size)
		}
	}
	if reserved = max(reserved, r.peak); reserved > 0 && (r.short == 0 || reserved < r.short) {
		r.short = reserved
	}
	out := r.owed()
	given := uint64(0)
	for _, e := range out { // the driver gets these, too
		given += e.Size
	}
	for b := r.next(anyBlock); b != nil; b = r.next(anyBlock) {
		if r.limits["drain_order"] != "all" && given >= max(need, 1) {
			break
		}
		given += b.size
		out = r.evict(b, wire.EvictDrain, out)
	}
	if given > 0 {
		return out
	}
	for b := r.oldest(cooling); b != nil; b = r.oldest(cooling) {
		out = r.evict(b, wire.EvictDrain, out)
	}
	return out
}

// timeRelease gives up the block of a size class that has been cached for longest.
func (r *reference) timeRelease(size uint64) []Eviction {
	out := r.owed()
	var oldest *refBlock
	for _, b := range r.in(cached) {
		if bits.Len64(b.size) == bits.Len64(size) && (oldest == nil || b.since < oldest.since) {
			oldest = b
		}
	}
	if oldest == nil {
		return out
	}
	return r.evict(oldest, wire.EvictTimed, out)
}

// relieve gives up what has been cached for longest, and owes the rest.
func (r *reference) relieve(need uint64, idle, time int64) []Eviction {
	out := r.owed()
	r.debt = need
	for _, e := range out {
		r.debt -= min(r.debt, e.Size)
	}
	for b := r.oldest(cached); b != nil && r.debt > 0 && b.time <= max(r.now, time)-idle; b = r.oldest(cached) {
		r.debt -= min(r.debt, b.size)
		out = r.evict(b, wire.EvictRelief, out)
	}
	if idle > 0 {
		r.debt = 0
	}
	return out
}

func (r *reference) expire(time int64) (out []Eviction, next int64) {
	out = r.owed()
	age, timed := r.ageLimit(), r.limit("proportion", 0) != 0
	if age == math.MaxInt64 && !timed {
		return out, 0
	}
	now := max(r.now, time)
	if r.due(now, 0) != wire.EvictNone {
		r.tick(time)
		r.mayGive = 32
		out = r.settleUp(0, out)
	}
	next = math.MaxInt64
	if timed {
		_, last := r.highest(now)
		next = (last + 61) * second
	}
	since := now // of a block that is freed from here on
	if b := r.oldest(cached); b != nil {
		since = b.time
	}
	if age != math.MaxInt64 {
		next = min(next, since+age)
	}
	return out, next
}

// dropClass returns its evictions in any order.
func (r *reference) dropClass(c Class) []Eviction {
	out := r.owed()
	r.closed[c] = true
	for _, b := range append(r.in(cached), r.in(cooling)...) {
		if b.class == c {
			out = r.evict(b, wire.EvictContext, out)
		}
	}
	for _, b := range r.gone {
		if b.class == c {
			b.blame = wire.MissNone
		}
	}
	return out
}

// gives says whether some request, which nothing stops from being rounded up, gets a block of that size.
func (r *reference) gives(size uint64) bool {
	if r.policy == "none" || strings.HasPrefix(r.policy, "futhark") {
		return true
	}
	return r.grant(Request{Size: size, Pinned: true}) == size
}

func (r *reference) setLimit(name, value string, time int64) []Eviction {
	out := r.owed()
	given := map[*refBlock]bool{}
	for _, b := range r.blocks {
		given[b] = r.gives(b.size)
	}
	r.limits[name] = value
	for _, b := range r.blocks {
		b.stale = !r.gives(b.size) && (b.stale || given[b])
	}
	stale := func(b *refBlock) bool { return b.stale }
	for b := r.next(stale); b != nil; b = r.next(stale) {
		out = r.evict(b, wire.EvictLimit, out)
	}
	return r.thin(r.shrink(r.cap(), wire.EvictLimit, r.pass(time, out)))
}
