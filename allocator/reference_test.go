package allocator

import (
	"math"
	"slices"
	"strconv"
	"strings"

	"codeberg.org/gpumemtop/gpumemtop/internal/wire"
)

// reference is a policy of whole blocks written as plainly as the contract reads: one list of blocks, scanned for every
// question. It predicts each decision with its reason, and each eviction with its reason, in order.
type reference struct {
	policy       string
	takesLayouts bool
	room         allowance
	limits       map[string]string
	blocks       []*refBlock
	slots        []*refBlock // as Futhark's array: the cached block of each slot, nil where it is empty
	gone         []*refBlock // evicted ones that a miss can be blamed on, the latest 1024
	closed       map[Class]bool
	doomed       []*refBlock // aborted hits without a place, to be reported by the next call
	clock        int
	now          int64
	period       int64 // of an iteration
	heap         uint64
	peak         float64          // the most that was wanted
	risen        uint64           // requests until then
	short        float64          // what the driver had given out when it had no more
	count        Stats            // counters and peaks; gauges are counted from the blocks
	seconds      map[int64]uint64 // the most in use of each
	mayGive      int              // blocks that the present call may still give back
	sizes        knownSizes
	debt         uint64 // bytes that others lack
}

type refBlock struct {
	block  Block
	size   uint64
	wanted uint64
	class  Class
	tag    Tag
	state  state
	hit    bool       // decided: existed before
	stale  bool       // its size was done away with
	since  int        // when it came into its state
	time   int64      // the same in the caller's time
	reason wire.Miss  // of a decided one that is to be created
	doom   wire.Evict // of a doomed one
	blame  wire.Miss  // of a gone one; none once blamed
}

func newReference(p *Pool) *reference {
	r := &reference{
		policy: p.PolicyName(), limits: map[string]string{}, closed: map[Class]bool{}, seconds: map[int64]uint64{},
	}
	if p.takesLayouts { // without a layout
		r.policy, r.takesLayouts, r.room.fiftieths = "futhark", true, 1
	}
	for _, l := range p.Limits() {
		r.limits[l.Name] = l.Text
	}
	return r
}

// limit returns a limit as a number, or what stands for it in a policy that has none of that name.
func (r *reference) limit(name string, none float64) float64 {
	text, there := r.limits[name]
	if !there {
		return none
	}
	value, err := strconv.ParseFloat(text, 64)
	if err != nil {
		panic(err)
	}
	return value
}

func (r *reference) caches(req Request) bool {
	return r.policy != "none" && (r.policy != "pinned" || req.Pinned)
}

// round returns the largest size of the bucket that a size belongs to.
func (r *reference) round(size uint64) uint64 {
	switch r.policy {
	case "buckets":
		for text := range strings.SplitSeq(r.limits["bucket_sizes"], ":") {
			if listed, _ := strconv.ParseUint(text, 10, 64); size <= listed {
				return listed
			}
		}
	case "mantissa":
		// Between 2^e and 2^(e+1) there are 2^m bins of equal width.
		low := uint64(1)
		for low*2 <= size {
			low *= 2
		}
		width := max(low>>int(r.limit("mantissa_bits", 0)), 1)
		return low + ((size-low)/width+1)*width - 1
	}
	power := uint64(1)
	for power < size {
		power *= 2
	}
	return power
}

// grant is the size of a new block.
func (r *reference) grant(req Request) uint64 {
	switch {
	case !r.caches(req):
		return req.Size
	case r.policy == "futhark":
		return stopped(max(req.Size, 4), req) // sizeof(int)
	case r.policy == "futhark-2018":
		return stopped(max(req.Size, uint64(r.limit("min_block", 4))), req)
	}
	return stopped(r.round(max(req.Size, uint64(r.limit("min_block", 1)))), req)
}

// stopped is a size that a request is rounded up to, or the one at which rounding stops.
func stopped(size uint64, req Request) uint64 {
	for _, most := range []uint64{req.Round, req.Max} {
		if most != 0 {
			return max(min(size, most), req.Size)
		}
	}
	return size
}

// accepts says whether a block may serve a request; own: only the request's own call site counts.
func (r *reference) accepts(b *refBlock, req Request, own bool) bool {
	want := r.grant(req)
	size, ratio := float64(b.size), r.limit("max_waste_ratio", 2)*float64(want)
	same := b.tag == req.Tag
	if req.Round != 0 && b.size > max(req.Round, req.Size) {
		return false
	}
	if !same && (own || r.limits["steal_other_tag"] == "off") {
		return false
	}
	switch r.policy {
	case "futhark-2018":
		return b.size >= want && size <= ratio
	case "futhark":
		return b.size == want || b.size > want && (same || size < ratio || size < r.limit("min_block", 0))
	}
	return b.size == want
}

// best returns the smallest acceptable block, of equal ones the latest.
func best(blocks []*refBlock, accept func(*refBlock) bool) (found *refBlock) {
	for _, b := range blocks {
		if accept(b) && (found == nil || b.size < found.size || b.size == found.size && b.since > found.since) {
			found = b
		}
	}
	return found
}

// pick returns the block that serves a request best among those of a class.
func (r *reference) pick(blocks []*refBlock, class Class, req Request) *refBlock {
	if r.policy == "futhark-2018" { // its own call site first
		if b := best(blocks, func(b *refBlock) bool { return b.class == class && r.accepts(b, req, true) }); b != nil {
			return b
		}
	}
	return best(blocks, func(b *refBlock) bool { return b.class == class && r.accepts(b, req, false) })
}

func (r *reference) in(s state) (list []*refBlock) {
	for _, b := range r.blocks {
		if b.state == s {
			list = append(list, b)
		}
	}
	return list
}

// decide predicts a decision; a miss has no block number yet.
func (r *reference) decide(req Request) (Decision, *refBlock, []Eviction) {
	out := r.pass(req.Time, r.owed())
	if req.Heap > r.heap {
		r.heap = req.Heap
		out = r.shrink(r.cap(), wire.EvictLimit, out)
	}
	r.room.requests++
	if r.caches(req) {
		req = r.tightened(req)
		if b := r.pick(r.in(cached), req.Class, req); b != nil {
			r.leaveSlot(b)
			b.state, b.hit, b.wanted = decided, true, req.Size
			r.sizes.again.add(b.size)
			return Decision{Hit: true, Block: b.block, Size: b.size, Tag: req.Tag}, b, out
		}
	}
	reason := r.reason(req)
	if r.policy == "futhark-2018" {
		if b := r.largest(func(b *refBlock) bool { return b.class == req.Class && b.tag == req.Tag }); b != nil {
			out = r.evict(b, wire.EvictMisfit, out)
		}
	}
	if r.caches(req) {
		out = r.settleUp(r.grant(req), r.dropOutgrown(req, out))
	}
	if r.takesLayouts {
		out = r.makeRoom(req, out)
	}
	b := &refBlock{
		size: r.grant(req), wanted: req.Size, class: req.Class, tag: req.Tag, state: decided, reason: reason,
	}
	r.blocks = append(r.blocks, b)
	return Decision{Size: b.size, Reason: b.reason, Tag: req.Tag}, b, out
}

// makeRoom gives up what is cached, the oldest first, if a new block for a request makes the pool too large.
func (r *reference) makeRoom(req Request, out []Eviction) []Eviction {
	var wanted, reserved uint64
	for _, b := range r.blocks {
		switch b.state {
		case inUse:
			wanted += b.wanted
			reserved += b.size
		case cached, cooling:
			reserved += b.size
		}
	}
	r.room.growIfRegretted()
	size := r.grant(req)
	most := max(uint64(r.peak), wanted+size)
	most += most / 50 * r.room.fiftieths
	for b := r.oldest(cached); b != nil && reserved+size > most; b = r.oldest(cached) {
		reserved -= b.size
		r.remember(b, regretted)
		out = r.evict(b, wire.EvictPolicy, out)
	}
	return out
}

// tightened is a request with Round as far as the device can spare what the program does not ask for.
func (r *reference) tightened(req Request) Request {
	memory := float64(req.Heap)
	if r.short > 0 && (memory == 0 || r.short < memory) {
		memory = r.short
	}
	if memory == 0 {
		return req
	}
	var wanted, waste float64
	for _, b := range r.in(inUse) {
		wanted += float64(b.wanted)
		waste += float64(b.size - b.wanted)
	}
	free := math.Floor(max(memory-max(r.peak, wanted+float64(req.Size)), 0) / 2)
	if r.count.Hits+r.count.Misses < 2*r.risen+8 {
		free = min(free, math.Floor(memory/32))
	}
	most := req.Size + uint64(max(free-waste, 0))
	switch {
	case r.grant(req) > most:
		req.Round = req.Size
	case req.Round != 0:
		req.Round = min(req.Round, most)
	case req.Max != 0:
		req.Round = min(req.Max, most)
	default:
		req.Round = most
	}
	return req
}

func (r *reference) reason(req Request) wire.Miss {
	if !r.caches(req) {
		return wire.MissPolicy
	}
	if r.pick(r.in(cooling), req.Class, req) != nil {
		return wire.MissCooling
	}
	var blamable []*refBlock
	for _, b := range r.gone {
		if b.blame != wire.MissNone {
			blamable = append(blamable, b)
		}
	}
	if b := r.pick(blamable, req.Class, req); b != nil {
		blame := b.blame
		b.blame = wire.MissNone
		if blame != regretted {
			return blame
		}
		r.room.regrets++
	}
	free := r.in(cached)
	others := slices.DeleteFunc(slices.Clone(free), func(b *refBlock) bool { return b.class == req.Class })
	own := slices.DeleteFunc(slices.Clone(free), func(b *refBlock) bool { return b.class != req.Class })
	switch {
	case slices.ContainsFunc(own, func(b *refBlock) bool { return b.size >= r.grant(req) }):
		return wire.MissTooWasteful
	case slices.ContainsFunc(others, func(b *refBlock) bool { return r.accepts(b, req, false) }):
		return wire.MissOtherClass
	case len(own) > 0:
		return wire.MissTooSmall
	}
	return wire.MissCold
}

func (r *reference) commit(b *refBlock, decision Decision) {
	b.state, b.tag = inUse, decision.Tag
	r.count.BytesRequested += b.wanted
	if decision.Hit {
		r.count.Hits++
	} else {
		r.count.Misses++
		r.count.MissReasons[b.reason]++
		r.count.BytesAllocated += b.size
	}
	wanted := 0.0
	for _, x := range r.in(inUse) {
		wanted += float64(x.wanted)
	}
	if wanted > r.peak {
		r.peak, r.risen = wanted, r.count.Hits+r.count.Misses
	}
	this := r.now / second
	r.seconds[this] = max(r.seconds[this], r.bytes(inUse))
}

func (r *reference) abort(b *refBlock) {
	tags, sizes := r.peers(b)
	switch {
	case !b.hit:
		r.drop(b)
		return
	case r.closed[b.class]:
		b.doom = wire.EvictContext
	case b.stale, r.cachedBytes()+b.size > r.cap():
		b.doom = wire.EvictLimit
	case tags+1 > r.most("max_per_tag"), sizes+1 > r.most("max_per_bucket"):
		b.doom = wire.EvictTagCap
	default:
		r.enter(b, cached)
		return
	}
	b.state = doomed
	r.doomed = append(r.doomed, b)
}

// most returns a limit on a number of blocks.
func (r *reference) most(name string) float64 {
	if n := r.limit(name, 0); n != 0 {
		return n
	}
	return math.Inf(1)
}

// peers counts the cached blocks of a block's call site, and those of its size.
func (r *reference) peers(b *refBlock) (tags, sizes float64) {
	for _, x := range r.in(cached) {
		if x.class == b.class && x.tag == b.tag {
			tags++
		}
		if x.class == b.class && x.size == b.size {
			sizes++
		}
	}
	return tags, sizes
}
