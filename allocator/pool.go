package allocator

import (
	"math"
	"strconv"

	"codeberg.org/gpumemtop/gpumemtop/internal/wire"
)

// pool is the machinery that all policies share: the block table, free and cooling blocks, limits, counters. What
// differs is its rule.
type pool struct {
	name   string
	names  []string // of the limits that it obeys
	rule   rule     // nil: cache nothing
	limits limits
	stats  Stats

	entries []entry // [0] is none
	spare   []int32 // unused entries
	free    shelf   // cached blocks
	warm    shelf   // cooling blocks
	cachedByAge,
	coolingByAge ages
	ghosts  *ghosts
	freed   uint64           // frees so far: the age of blocks
	blocks  map[Class]uint64 // known, by class
	dropped map[Class]bool   // classes that are not cached any more
	doomed  []int32          // blocks in that state, for the next call that reports evictions
}

func newPool(catalogued int) *pool {
	c := &catalogue[catalogued]
	p := &pool{
		name:    c.Name,
		names:   c.names,
		rule:    c.rule,
		entries: make([]entry, 1),
		free:    newShelf(),
		warm:    newShelf(),
		ghosts:  &ghosts{shelf: newShelf()},
		blocks:  map[Class]uint64{},
		dropped: map[Class]bool{},
	}
	for i := range limitTable {
		limitTable[i].set(&p.limits, limitTable[i].Value)
	}
	for _, s := range c.defaults {
		for i := range limitTable {
			if limitTable[i].Name == s.Name {
				value, _ := strconv.ParseFloat(s.Value, 64)
				limitTable[i].set(&p.limits, value)
			}
		}
	}
	return p
}

// Name implements Policy.
func (p *pool) Name() string { return p.name }

// Plan implements Policy. What a hit needs is taken off the shelf at once, so that no second plan gets it.
func (p *pool) Plan(req Request, out []Eviction) (Plan, []Eviction) {
	out = p.flush(out)
	req.Size = max(req.Size, 1)
	if p.rule == nil {
		return p.create(req, req.Size, wire.MissPolicy), out
	}
	if i := p.rule.find(&p.free, req.Class, req, &p.limits); i != 0 {
		e := &p.entries[i]
		p.unshelve(i)
		p.stats.BytesCached -= e.size
		e.state, e.was, e.wanted = planned, cached, req.Size
		return Plan{Hit: true, Block: p.block(i), Size: e.size, Tag: req.Tag}, out
	}
	return p.create(req, p.rule.grant(req, &p.limits), p.reason(req)), out
}

// create reserves an entry for a block that the driver is to make.
func (p *pool) create(req Request, size uint64, reason wire.Miss) Plan {
	i := p.newEntry()
	e := &p.entries[i]
	e.size, e.wanted, e.tag, e.class = size, req.Size, req.Tag, req.Class
	e.state, e.was, e.reason = planned, unused, reason
	p.blocks[req.Class]++
	return Plan{Block: p.block(i), Size: size, Reason: reason, Tag: req.Tag}
}

// reason says why a request found no block. What stands first here could have been had: in flight before evicted,
// evicted before too large, and so on.
func (p *pool) reason(req Request) wire.Miss {
	if p.rule.find(&p.warm, req.Class, req, &p.limits) != 0 {
		return wire.MissCooling
	}
	if why, found := p.ghosts.blame(p.rule, req.Class, req, &p.limits); found {
		return why
	}
	if p.free.first(req.Class, p.rule.grant(req, &p.limits)) != 0 {
		return wire.MissTooWasteful
	}
	for class := range p.free.classes {
		if class != req.Class && p.rule.find(&p.free, class, req, &p.limits) != 0 {
			return wire.MissOtherClass
		}
	}
	if !p.free.empty(req.Class) {
		return wire.MissTooSmall
	}
	return wire.MissCold
}

// Commit implements Policy.
func (p *pool) Commit(plan Plan) {
	i := p.find(plan.Block, planned)
	if i == 0 {
		return
	}
	e := &p.entries[i]
	if e.was == cached {
		p.stats.Hits++
	} else {
		p.stats.Misses++
		p.stats.MissReasons[e.reason]++
		p.stats.BytesAllocated += e.size
		p.stats.Blocks++
	}
	e.state, e.tag = inUse, plan.Tag
	p.stats.BytesRequested += e.wanted
	p.stats.BytesInUse += e.size
	p.stats.BytesWanted += e.wanted
	p.stats.PeakInUse = max(p.stats.PeakInUse, p.stats.BytesInUse)
	p.stats.PeakReserved = max(p.stats.PeakReserved, p.stats.Reserved())
}

// Grown implements Policy.
func (p *pool) Grown(Plan) {}

// Expire implements Policy.
func (p *pool) Expire(_ int64, out []Eviction) ([]Eviction, int64) { return p.flush(out), 0 }

// Rows implements Policy.
func (p *pool) Rows(Dimension) []Row { return nil }

// Abort implements Policy.
func (p *pool) Abort(plan Plan) {
	i := p.find(plan.Block, planned)
	if i == 0 {
		return
	}
	e := &p.entries[i]
	if e.was != cached {
		p.recycle(i)
		return
	}
	if p.dropped[e.class] || p.stats.BytesCached+e.size > p.limits.maxCachedBytes {
		e.state = doomed
		p.doomed = append(p.doomed, i)
		return
	}
	p.keep(i)
}

// flush reports the blocks that Abort could not put back.
func (p *pool) flush(out []Eviction) []Eviction {
	for _, i := range p.doomed {
		reason := wire.EvictLimit
		if p.dropped[p.entries[i].class] {
			reason = wire.EvictContext
		}
		out = p.dismiss(i, reason, out)
	}
	p.doomed = p.doomed[:0]
	return out
}

// keep puts a block among the cached ones.
func (p *pool) keep(i int32) {
	e := &p.entries[i]
	e.state = cached
	p.stats.BytesCached += e.size
	p.free.put(i, e.class, e.tag, e.size, e.order)
	p.cachedByAge.push(p.entries, i)
}

// Free implements Policy.
func (p *pool) Free(b Block, busy bool, _ int64, out []Eviction) []Eviction {
	out = p.flush(out)
	i := p.find(b, inUse)
	if i == 0 {
		return out
	}
	e := &p.entries[i]
	p.leaveUse(e)
	p.freed++
	e.order = ^p.freed
	switch {
	case p.rule == nil:
		return p.dismiss(i, wire.EvictPolicy, out)
	case p.dropped[e.class]:
		return p.dismiss(i, wire.EvictContext, out)
	case !busy:
		return p.shelve(i, out)
	}
	e.state = cooling
	p.stats.BytesCooling += e.size
	p.warm.put(i, e.class, e.tag, e.size, e.order)
	p.coolingByAge.push(p.entries, i)
	return out
}

// Cooled implements Policy.
func (p *pool) Cooled(b Block, _ int64, out []Eviction) []Eviction {
	out = p.flush(out)
	i := p.find(b, cooling)
	if i == 0 {
		return out
	}
	p.leaveCooling(i)
	return p.shelve(i, out)
}

// shelve makes a block cached, and evicts what is then too much. One that alone exceeds the cap would push out
// everything else and then itself, so it goes at once.
func (p *pool) shelve(i int32, out []Eviction) []Eviction {
	if p.entries[i].size > p.limits.maxCachedBytes {
		return p.dismiss(i, wire.EvictLimit, out)
	}
	p.keep(i)
	return p.shrink(p.limits.maxCachedBytes, wire.EvictLimit, out)
}

// shrink evicts the blocks freed longest ago until at most keep bytes are cached.
func (p *pool) shrink(keep uint64, reason wire.Evict, out []Eviction) []Eviction {
	for p.stats.BytesCached > keep && p.cachedByAge.oldest != 0 {
		out = p.evict(p.cachedByAge.oldest, reason, out)
	}
	return out
}

// Forget implements Policy.
func (p *pool) Forget(b Block) {
	if i := p.find(b, inUse); i != 0 {
		p.leaveUse(&p.entries[i])
		p.stats.Blocks--
		p.recycle(i)
	} else if i := p.find(b, cooling); i != 0 {
		p.leaveCooling(i)
		p.stats.Blocks--
		p.recycle(i)
	}
}

// Drain implements Policy.
func (p *pool) Drain(need uint64, out []Eviction) []Eviction {
	out = p.flush(out)
	need = min(max(need, 1), math.MaxInt64)
	given := uint64(0)
	for given < need && p.cachedByAge.oldest != 0 {
		given += p.entries[p.cachedByAge.oldest].size
		out = p.evict(p.cachedByAge.oldest, wire.EvictDrain, out)
	}
	if given > 0 {
		return out
	}
	for p.coolingByAge.oldest != 0 {
		i := p.coolingByAge.oldest
		p.leaveCooling(i)
		out = p.dismiss(i, wire.EvictDrain, out)
	}
	return out
}

// Trim implements Policy.
func (p *pool) Trim(keep uint64, out []Eviction) []Eviction {
	return p.shrink(keep, wire.EvictTrim, p.flush(out))
}

// DropClass implements Policy.
func (p *pool) DropClass(c Class, out []Eviction) []Eviction {
	out = p.flush(out)
	if s := p.free.classes[c]; s != nil {
		for s.all.Root != 0 {
			out = p.evict(s.all.Root, wire.EvictContext, out)
		}
		p.free.drop(c)
	}
	if s := p.warm.classes[c]; s != nil {
		for s.all.Root != 0 {
			i := s.all.Root
			p.leaveCooling(i)
			out = p.dismiss(i, wire.EvictContext, out)
		}
		p.warm.drop(c)
	}
	p.ghosts.drop(c)
	p.dropped[c] = true
	return out
}

// SetLimit implements Policy.
func (p *pool) SetLimit(name, text string, _ int64, out []Eviction) ([]Eviction, error) {
	i, value, err := check(p.name, p.names, name, text)
	if err != nil {
		return out, err
	}
	limitTable[i].set(&p.limits, value)
	return p.shrink(p.limits.maxCachedBytes, wire.EvictLimit, p.flush(out)), nil
}

// Limits implements Policy.
func (p *pool) Limits() []Limit {
	var obeyed []Limit
	for i := range limitTable {
		if contains(p.names, limitTable[i].Name) {
			l := limitTable[i].Limit
			l.Value = limitTable[i].get(&p.limits)
			l.Text = number(l.Value)
			obeyed = append(obeyed, l)
		}
	}
	return obeyed
}

// Stats implements Policy.
func (p *pool) Stats() Stats { return p.stats }

// evict takes a cached block out of the pool.
func (p *pool) evict(i int32, reason wire.Evict, out []Eviction) []Eviction {
	p.stats.BytesCached -= p.entries[i].size
	p.unshelve(i)
	return p.dismiss(i, reason, out)
}

// dismiss reports a block that is on no list any more as gone.
func (p *pool) dismiss(i int32, reason wire.Evict, out []Eviction) []Eviction {
	e := &p.entries[i]
	out = append(out, Eviction{Block: p.block(i), Size: e.size, Tag: e.tag, Reason: reason})
	p.ghosts.remember(e.class, e.tag, e.size, reason)
	p.stats.Evictions++
	p.stats.Blocks--
	p.recycle(i)
	return out
}

func (p *pool) unshelve(i int32) {
	e := &p.entries[i]
	p.free.take(i, e.class, e.tag)
	p.cachedByAge.remove(p.entries, i)
}

func (p *pool) leaveUse(e *entry) {
	p.stats.BytesInUse -= e.size
	p.stats.BytesWanted -= e.wanted
}

func (p *pool) leaveCooling(i int32) {
	e := &p.entries[i]
	p.stats.BytesCooling -= e.size
	p.warm.take(i, e.class, e.tag)
	p.coolingByAge.remove(p.entries, i)
}

func (p *pool) block(i int32) Block {
	return Block(p.entries[i].generation)<<32 | Block(uint32(i))
}

// find returns the entry of a block in that state, 0 when there is none.
func (p *pool) find(b Block, s state) int32 {
	i := uint64(uint32(b))
	if i == 0 || i >= uint64(len(p.entries)) {
		return 0
	}
	if e := &p.entries[i]; e.generation != uint32(b>>32) || e.state != s {
		return 0
	}
	return int32(i)
}

func (p *pool) newEntry() int32 {
	if n := len(p.spare); n > 0 {
		i := p.spare[n-1]
		p.spare = p.spare[:n-1]
		return i
	}
	p.entries = append(p.entries, entry{})
	return int32(len(p.entries) - 1)
}

// recycle gives an entry that is on no list back. Its next block has another generation.
func (p *pool) recycle(i int32) {
	e := &p.entries[i]
	if p.blocks[e.class]--; p.blocks[e.class] == 0 {
		delete(p.blocks, e.class)
	}
	*e = entry{generation: e.generation + 1}
	if e.generation != 0 { // else the numbers of this entry are used up
		p.spare = append(p.spare, i)
	}
}
