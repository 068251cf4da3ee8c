package allocator

import (
	"codeberg.org/gpumemtop/gpumemtop/allocator/carve"
	"codeberg.org/gpumemtop/gpumemtop/internal/wire"
)

// humongous is the size from which a request gets a block of its own while max_part is 0: a quarter of the largest
// slab that a program's requests suggest (carve.Sizing).
const humongous = 16 << 20

// slabs are the large blocks of a policy that carves, and who carves them.
type slabs struct {
	make    func(align uint64, l *limits) carve.Carver
	classes map[Class]*carved
	list    []slab  // by number, [0] is none
	spare   []int32 // unused numbers
}

// carved is what one class has in slabs.
type carved struct {
	carver  carve.Carver
	align   uint64 // bytes
	largest uint64 // request so far
	slabs   int
	gone    int       // slabs given up that no miss has been blamed on
	blame   wire.Miss // for these
}

// slab is one block that is handed out in parts. Its entry is planned until it is grown, then in use, and cached while
// it has no parts but lost ones.
type slab struct {
	entry   int32
	grown   bool
	parts   int32   // planned, in use, cooling or lost
	cooling int32   // of these
	lost    []int32 // entries of parts that never come back
	used    uint64  // bytes of all parts
}

func newSlabs(carver func(align uint64, l *limits) carve.Carver) *slabs {
	return &slabs{make: carver, classes: map[Class]*carved{}, list: make([]slab, 1)}
}

// isPart reports whether an entry is a part of a slab.
func (p *pool) isPart(i int32) bool { return p.entries[i].slab != 0 && !p.entries[i].isSlab }

// slabOf returns the slab that an entry is, or is a part of.
func (p *pool) slabOf(i int32) *slab { return &p.slabs.list[p.entries[i].slab] }

// coarsest is the largest alignment that slabs are carved for: with it the chunks of ualloc, and so its slabs, have
// 32 MiB. OpenCL devices want 128 or 512 bytes as a rule; the requests of one that wants more get blocks of their own.
const coarsest = 2048

// carverOf returns what carves the slabs of a class; nil when that is not possible, or done for another alignment.
func (p *pool) carverOf(class Class, align uint64) *carved {
	c := p.slabs.classes[class]
	if c == nil {
		if align&(align-1) != 0 || align > coarsest {
			return nil
		}
		c = &carved{carver: p.slabs.make(align, &p.limits), align: align}
		p.slabs.classes[class] = c
	}
	if c.align != align {
		return nil
	}
	return c
}

// carve serves a request with a part of a slab, an old one or one to be created; false: it gets a block of its own.
func (p *pool) carve(req *Request) (Plan, bool) {
	if req.Align == 0 || p.dropped[req.Class] || over(req.Size, p.mostPart()) {
		return Plan{}, false
	}
	c := p.carverOf(req.Class, req.Align)
	if c == nil {
		return Plan{}, false
	}
	if size := c.carver.Round(req.Size); size == 0 || over(size, req.most()) {
		return Plan{}, false
	}
	c.largest = max(c.largest, req.Size)
	if part, ok := c.carver.Carve(req.Size); ok {
		plan := p.newPart(req, part)
		plan.Hit = true
		return plan, true
	}
	return p.grow(req, c)
}

// mostPart returns the largest request that a slab serves.
func (p *pool) mostPart() uint64 {
	if p.limits.maxPart != 0 {
		return p.limits.maxPart
	}
	return humongous
}

// grow plans a new slab with the request's part in it.
func (p *pool) grow(req *Request, c *carved) (Plan, bool) {
	sizing := carve.Sizing{
		M: p.limits.maxPart, H: p.limits.heapBytes, K: p.limits.slabsPerHeap, Limit: req.Max, Memory: p.heap,
	}
	size, serves := sizing.Choose(c.carver, carve.Hints{Request: c.largest, InUse: p.stats.PeakWanted})
	if req.Size > serves || len(p.slabs.spare) == 0 && len(p.slabs.list) == carve.MaxSlabs {
		return Plan{}, false
	}
	reason := p.slabReason(req, c)
	number := p.newSlab(req, size)
	c.carver.Add(number, size)
	c.slabs++
	part, ok := c.carver.Carve(req.Size)
	if !ok { // Choose promised room
		p.forgetSlab(number)
		return Plan{}, false
	}
	plan := p.newPart(req, part)
	plan.SlabSize, plan.Reason = size, reason
	p.entries[uint32(plan.Block)].reason = reason
	return plan, true
}

// newSlab makes an entry for a slab to be created.
func (p *pool) newSlab(req *Request, size uint64) (number int32) {
	s := p.slabs
	if n := len(s.spare); n > 0 {
		number, s.spare = s.spare[n-1], s.spare[:n-1]
	} else {
		number = int32(len(s.list))
		s.list = append(s.list, slab{})
	}
	i := p.newEntry()
	s.list[number].entry = i
	e := &p.entries[i]
	e.size, e.tag, e.class, e.state, e.isSlab, e.slab = size, req.Tag, req.Class, planned, true, number
	return number
}

// newPart makes an entry for a part that was carved.
func (p *pool) newPart(req *Request, part carve.Part) Plan {
	s := &p.slabs.list[part.Slab]
	if p.entries[s.entry].state == cached {
		p.unkeep(s.entry)
		p.entries[s.entry].state = inUse
	}
	s.parts++
	s.used += part.Size
	if s.grown {
		p.stats.BytesCached -= part.Size
	}
	i := p.newEntry()
	e := &p.entries[i]
	e.size, e.wanted, e.tag, e.class, e.state = part.Size, req.Size, req.Tag, req.Class, planned
	e.slab, e.offset = part.Slab, part.Offset
	return Plan{
		Block: p.block(i), Size: part.Size, Tag: req.Tag,
		Slab: p.block(s.entry), Offset: part.Offset, Fresh: part.Fresh,
	}
}

// slabReason says why no slab has room.
func (p *pool) slabReason(req *Request, c *carved) wire.Miss {
	if p.warm.first(req.Class, req.Size) != 0 {
		return wire.MissCooling
	}
	if c.gone > 0 {
		c.gone--
		return c.blame
	}
	for class, other := range p.slabs.classes {
		if class != req.Class && other.carver.Space().Largest >= req.Size {
			return wire.MissOtherClass
		}
	}
	if c.carver.Space().Bytes > 0 {
		return wire.MissTooSmall
	}
	return wire.MissCold
}

// Grown implements Policy.
func (p *pool) Grown(plan Plan) {
	i := p.find(plan.Block, planned)
	if i == 0 || !p.isPart(i) || p.slabOf(i).grown || p.block(p.slabOf(i).entry) != plan.Slab {
		return
	}
	s := p.slabOf(i)
	e := &p.entries[s.entry]
	e.state, s.grown = inUse, true
	p.stats.Blocks++
	p.stats.Slabs++
	p.stats.BytesAllocated += e.size
	p.stats.BytesCached += e.size - s.used
	p.stats.peaks()
}

// abortPart gives a part back that was not made, and a slab that was not created, with its last part.
func (p *pool) abortPart(i int32) {
	s := p.slabOf(i)
	number, grower := p.entries[i].slab, p.entries[i].reason != wire.MissNone
	p.giveBack(i)
	if !s.grown && grower {
		p.orphan(number)
	}
	switch {
	case !s.idle():
	case !s.grown:
		p.forgetSlab(number)
	default:
		p.settle(s)
	}
	p.stats.peaks()
}

// orphan takes the parts that other plans have in a slab that will never be created out of it, so that no further plan
// gets one. Their numbers stay until their plans are aborted, too.
func (p *pool) orphan(number int32) {
	s, c := &p.slabs.list[number], p.slabs.classes[p.entries[p.slabs.list[number].entry].class]
	for i := 0; s.parts > 0 && i < len(p.entries); i++ { // rarely anybody has one
		if e := &p.entries[i]; e.slab == number && !e.isSlab {
			c.carver.Free(carve.Part{Slab: number, Offset: e.offset, Size: e.size})
			e.slab = 0
			s.parts--
			s.used -= e.size
		}
	}
}

// settle does what the end of its last part means for a slab, where no eviction can be reported.
func (p *pool) settle(s *slab) {
	e := &p.entries[s.entry]
	switch {
	case s.used == e.size: // all of it is lost
		e.doom = wire.EvictState
		p.doom(s.entry)
	case p.dropped[e.class] || p.stats.BytesCached > p.cap():
		p.doom(s.entry)
	default:
		p.keep(s.entry)
	}
}

// idle reports whether nobody has a part of the slab, nor ever will have those that are lost.
func (s *slab) idle() bool { return int(s.parts) == len(s.lost) }

// giveBack returns a part's range to the carver.
func (p *pool) giveBack(i int32) {
	e, s := &p.entries[i], p.slabOf(i)
	p.slabs.classes[e.class].carver.Free(carve.Part{Slab: e.slab, Offset: e.offset, Size: e.size})
	s.parts--
	s.used -= e.size
	if s.grown {
		p.stats.BytesCached += e.size
	}
	p.recycle(i)
}

// freePart takes back a part that nothing uses any more.
func (p *pool) freePart(i int32, out []Eviction) []Eviction {
	s := p.slabOf(i)
	p.stats.Parts--
	p.giveBack(i)
	if s.idle() {
		switch {
		case p.dropped[p.entries[s.entry].class]:
			return p.dismiss(s.entry, wire.EvictContext, out)
		case p.limits.rejectNew && p.stats.BytesCached > p.cap():
			return p.dismiss(s.entry, wire.EvictLimit, out)
		}
		p.keep(s.entry)
	}
	out = p.evictOld(out)
	p.stats.peaks()
	return out
}

// losePart notes that a part's range may be used for as long as its slab lives: it counts as cooling until then.
func (p *pool) losePart(i int32) {
	e, s := &p.entries[i], p.slabOf(i)
	e.state = doomed // no call finds it any more
	p.stats.Parts--
	p.stats.BytesCooling += e.size
	s.lost = append(s.lost, i)
	p.stats.peaks()
	if s.idle() {
		p.settle(s)
	}
}

// removeSlab takes a slab that has no parts but lost ones from its carver.
func (p *pool) removeSlab(i int32, reason wire.Evict) {
	e, s := &p.entries[i], p.slabOf(i)
	c := p.slabs.classes[e.class]
	for _, part := range s.lost {
		p.stats.BytesCooling -= p.entries[part].size
		p.giveBack(part)
	}
	p.stats.Slabs--
	p.stats.BytesCached -= e.size
	switch reason {
	case wire.EvictLimit, wire.EvictAge:
		c.gone, c.blame = c.gone+1, wire.MissLimit
	case wire.EvictDrain, wire.EvictTrim:
		c.gone, c.blame = c.gone+1, wire.MissDrained
	}
	c.remove(e.slab)
	p.slabs.free(e.slab)
	p.forgetCarver(e.class)
}

// forgetCarver ends a class that was dropped, with its last slab.
func (p *pool) forgetCarver(class Class) {
	if c := p.slabs.classes[class]; c != nil && c.slabs == 0 && p.dropped[class] {
		delete(p.slabs.classes, class)
	}
}

// forgetSlab ends a slab that was never created.
func (p *pool) forgetSlab(number int32) {
	i := p.slabs.list[number].entry
	class := p.entries[i].class
	p.slabs.classes[class].remove(number)
	p.slabs.free(number)
	p.recycle(i)
	p.forgetCarver(class)
}

func (c *carved) remove(number int32) {
	c.carver.Remove(number)
	c.slabs--
}

// remake gives classes that have no slab a carver of the present limits. The others keep theirs: their parts lie where
// they lie.
func (p *pool) remake() {
	for _, c := range p.slabs.classes {
		if c.slabs == 0 {
			c.carver = p.slabs.make(c.align, &p.limits)
		}
	}
}

func (s *slabs) free(number int32) {
	s.list[number] = slab{}
	s.spare = append(s.spare, number)
}

// drainSlabs gives up slabs whose parts all cool, or are lost. Their parts' driver objects were released by the
// program; the driver keeps the memory until their commands end.
func (p *pool) drainSlabs(out []Eviction) []Eviction {
	for i := p.coolingByAge.oldest; i != 0; {
		next := p.chain[i].newer
		if s := p.slabOf(i); p.isPart(i) && int(s.parts) == int(s.cooling)+len(s.lost) {
			out = p.coolAtOnce(i, wire.EvictDrain, out)
		}
		i = next
	}
	return out
}

// coolAtOnce ends a cooling part whose range nobody will be given, and its slab with the last one.
func (p *pool) coolAtOnce(i int32, reason wire.Evict, out []Eviction) []Eviction {
	s := p.slabOf(i)
	p.leaveCooling(i)
	p.stats.Parts--
	p.giveBack(i)
	if !s.idle() {
		return out
	}
	return p.dismiss(s.entry, reason, out)
}

// dropSlabs gives up the cooling parts of a class, and the slabs that nobody has a part of.
func (p *pool) dropSlabs(class Class, out []Eviction) []Eviction {
	c := p.slabs.classes[class]
	if c == nil {
		return out
	}
	for i := p.coolingByAge.oldest; i != 0; {
		next := p.chain[i].newer
		if p.isPart(i) && p.entries[i].class == class {
			out = p.coolAtOnce(i, wire.EvictContext, out)
		}
		i = next
	}
	for number := range p.slabs.list {
		i := p.slabs.list[number].entry
		if e := &p.entries[i]; e.isSlab && e.class == class && e.state == cached {
			out = p.evict(i, wire.EvictContext, out)
		}
	}
	p.forgetCarver(class)
	out = p.evictOld(out) // ranges that cooled are free now, in slabs that stay
	p.stats.peaks()
	return out
}

// largest returns the largest cached block, slabs without parts included; 0 when there is none.
func (p *pool) largest() (found int32) {
	found = p.free.largest()
	if p.slabs == nil {
		return found
	}
	for number := range p.slabs.list {
		i := p.slabs.list[number].entry
		if p.entries[i].state == cached && p.entries[i].isSlab && (found == 0 || p.entries[i].size > p.entries[found].size) {
			found = i
		}
	}
	return found
}

// inSlabs sums the free ranges of slabs up. What a carver keeps for itself is free, and in no range.
func (p *pool) inSlabs() Space {
	var all Space
	for _, c := range p.slabs.classes {
		space := c.carver.Space()
		all.Largest = max(all.Largest, space.Largest)
		all.Ranges += uint64(space.Ranges)
		all.Squares += space.Squares
	}
	all.Bytes = p.stats.BytesCached - p.whole
	return all
}
