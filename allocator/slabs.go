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
	classes map[Class]*carved
	last    *carved   // of latest
	latest  Class     // asked for
	former  []*carved // of other policies, as long as they have slabs: nothing more is carved out of these
	list    []slab    // by number, [0] is none
	spare   []int32   // unused numbers
	bytes   uint64    // of all grown slabs
	version int       // counts changes of the limits that carvers are made by
}

// carved is what one class has in slabs.
type carved struct {
	carver  carve.Carver
	version int    // of the limits that the carver was made by
	align   uint64 // bytes
	largest uint64 // request so far
	slabs   int
	most    uint64    // bytes of the largest slab to ask the driver for, 0: no limit; see refuse
	gone    int       // slabs given up that no miss has been blamed on
	blame   wire.Miss // for these
}

// slab is one block that is handed out in sub-allocations. Its entry is decided until it is grown, then in use, and
// cached while it has no sub-allocations but lost ones.
type slab struct {
	entry   int32
	home    *carved
	grown   bool
	parts   int32   // decided, in use, cooling or lost
	cooling int32   // of these
	lost    []int32 // entries of sub-allocations that never come back
	used    uint64  // bytes of all sub-allocations
}

func newSlabs() *slabs {
	return &slabs{classes: map[Class]*carved{}, list: make([]slab, 1)}
}

// slabOf returns the slab that entry i is, or lies in.
func (p *Pool) slabOf(i int32) *slab { return &p.slabs.list[p.entries[i].slab] }

// coarsest is the largest alignment that slabs are carved for: with it the chunks of ualloc, and so its slabs, have
// 32 MiB. OpenCL devices want 128 or 512 bytes as a rule; the requests of one that wants more get blocks of their own.
const coarsest = 2048

// carverOf returns the carver of a class; nil if the class has slabs of another alignment, or the alignment cannot be
// served. A class that has a slab keeps its carver: its sub-allocations cannot move.
func (p *Pool) carverOf(class Class, align uint64) *carved {
	c := p.slabs.last
	if c == nil || p.slabs.latest != class {
		c = p.slabs.classes[class]
	}
	if c == nil {
		if align&(align-1) != 0 || align > coarsest {
			return nil
		}
		c = &carved{align: align}
		p.slabs.classes[class] = c
	}
	p.slabs.last, p.slabs.latest = c, class
	if c.align != align {
		return nil
	}
	if c.carver == nil || c.slabs == 0 && c.version != p.slabs.version {
		c.carver, c.version = p.carver(align, &p.limits), p.slabs.version
	}
	return c
}

// carve serves a request with a sub-allocation, an old one or one to be created; false: it gets a block of its own.
func (p *Pool) carve(decision *Decision, req *Request) bool {
	if req.Align == 0 || p.gone(req.Class) || over(req.Size, p.limits.mostSubAlloc()) {
		return false
	}
	c := p.carverOf(req.Class, req.Align)
	if c == nil {
		return false
	}
	if size := c.carver.Round(req.Size); size == 0 || over(size, req.Most()) {
		return false
	}
	c.largest = max(c.largest, req.Size)
	if part, ok := c.carver.Carve(req.Size); ok {
		p.subAlloc(decision, p.newEntry(), req, part)
		decision.Hit = true
		return true
	}
	if i := p.free.first(req.Class, req.Size); i != 0 && within(p.free.sizeOf(i), req.Size, &p.limits) {
		return false // a block of its own that is there already
	}
	return p.grow(decision, req, c)
}

// mostSubAlloc returns the largest request that a slab serves.
func (l *limits) mostSubAlloc() uint64 {
	if l.maxPart != 0 {
		return l.maxPart
	}
	return humongous
}

// grow decides on a new slab with the request's sub-allocation in it.
func (p *Pool) grow(decision *Decision, req *Request, c *carved) bool {
	slack := p.slack(req, req.Heap) // after a shortage carved.most holds slabs down
	if slack < req.Size {
		return false
	}
	sizing := carve.Sizing{
		M: p.limits.maxPart, H: p.limits.heapBytes, K: p.limits.slabsPerHeap, Limit: least(p.mostSlab(req, c), slack), Memory: p.heap,
	}
	size, serves := sizing.Choose(c.carver, carve.Hints{Request: c.largest, InUse: p.stats.PeakWanted})
	if req.Size > serves || len(p.slabs.spare) == 0 && len(p.slabs.list) == carve.MaxSlabs {
		c.regain()
		return false
	}
	if size > slack {
		return false
	}
	reason := p.slabReason(req, c)
	number := p.newSlab(req, size, c)
	c.carver.Add(number, size)
	c.slabs++
	part, ok := c.carver.Carve(req.Size)
	if !ok { // Choose promised room
		p.forgetSlab(number)
		return false
	}
	p.subAlloc(decision, p.newEntry(), req, part)
	decision.SlabSize, decision.Reason = size, reason
	p.entries[uint32(decision.Block)].reason = reason
	return true
}

// share of the device's memory is the size limit of a slab whose size is not set.
const share = 16

// mostSlab returns the bytes of the largest slab to create, 0 when nothing is known.
func (p *Pool) mostSlab(req *Request, c *carved) uint64 {
	most := req.Max
	if p.limits.maxPart == 0 && p.heap != 0 {
		most = least(most, max(p.heap/share, 1))
	}
	return least(most, c.most)
}

// least returns the smaller of two numbers of which 0 means that there is none.
func least(a, b uint64) uint64 {
	if a == 0 || b == 0 {
		return a + b
	}
	return min(a, b)
}

// refuse notes that the driver had no memory for a slab: the next is at most half as large. With regain it grows back,
// a slab or a request that found none too large at a time.
func (c *carved) refuse(size uint64) { c.most = max(size/2, 1) }

func (c *carved) regain() {
	if c.most *= 2; c.most > 1<<40 {
		c.most = 0
	}
}

// newSlab makes an entry for a slab to be created.
func (p *Pool) newSlab(req *Request, size uint64, home *carved) (number int32) {
	s := p.slabs
	if n := len(s.spare); n > 0 {
		number, s.spare = s.spare[n-1], s.spare[:n-1]
	} else {
		number = int32(len(s.list))
		s.list = append(s.list, slab{})
	}
	i := p.newEntry()
	s.list[number].entry, s.list[number].home = i, home
	e := &p.entries[i]
	e.size, e.tag, e.class, e.state, e.isSlab, e.slab = size, req.Tag, req.Class, decided, true, number
	return number
}

// subAlloc fills entry i and the decision for a carved range, and counts it in the slab.
func (p *Pool) subAlloc(decision *Decision, i int32, req *Request, part carve.Part) {
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
	e := &p.entries[i]
	e.size, e.wanted, e.tag, e.class, e.state, e.route = part.Size, req.Size, req.Tag, req.Class, decided, p.route
	e.slab, e.offset = part.Slab, part.Offset
	decision.Block, decision.Size = p.block(i), part.Size
	decision.Slab, decision.Offset, decision.Fresh = p.block(s.entry), part.Offset, part.Fresh
}

// slabReason says why no slab has room.
func (p *Pool) slabReason(req *Request, c *carved) wire.Miss {
	if p.coolingBlocks.first(req.Class, req.Size) != 0 {
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

// Grown says that the slab of a decision was created.
func (p *Pool) Grown(decision Decision) {
	i := p.find(decision.Block, decided)
	if i == 0 || !p.isSubAlloc(i) || p.slabOf(i).grown || p.block(p.slabOf(i).entry) != decision.Slab {
		return
	}
	s := p.slabOf(i)
	e := &p.entries[s.entry]
	s.home.regain()
	e.state, s.grown = inUse, true
	p.stats.Blocks++
	p.stats.Slabs++
	p.slabs.bytes += e.size
	p.stats.BytesAllocated += e.size
	p.stats.BytesCached += e.size - s.used
	p.stats.peaks()
}

// largest returns the largest cached block, of equal ones the latest, slabs without sub-allocations included; 0 when
// there is none.
func (p *Pool) largest() (found int32) {
	found = p.free.largest(p.bySize)
	if p.slabs == nil {
		return found
	}
	for number := range p.slabs.list {
		i := p.slabs.list[number].entry
		if p.entries[i].state == cached && p.entries[i].isSlab && (found == 0 || p.bySize(i, found) < 0) {
			found = i
		}
	}
	return found
}

// inSlabs sums the free ranges of slabs up. What a carver keeps for itself is free, and in no range.
func (p *Pool) inSlabs() Space {
	var all Space
	for _, c := range p.slabs.classes {
		all.add(c.carver.Space())
	}
	for _, c := range p.slabs.former {
		all.add(c.carver.Space())
	}
	if p.layouts != nil && p.layouts.current != nil {
		for i := range p.layouts.current.arenas {
			all.add(p.layouts.current.arenas[i].carver.Space())
		}
	}
	all.Bytes = p.stats.BytesCached - p.tally.Bytes
	return all
}

// add adds the free ranges of one carver, except their bytes.
func (s *Space) add(free carve.Space) {
	s.Largest = max(s.Largest, free.Largest)
	s.Ranges += uint64(free.Ranges)
	s.Squares += free.Squares
}
