package allocator

import (
	"codeberg.org/gpumemtop/gpumemtop/allocator/carve"
	"codeberg.org/gpumemtop/gpumemtop/internal/wire"
)

// humongous is the size of the largest request that a slab serves while max_part is 0: a quarter of the largest slab that
// a program's requests suggest (carve.Sizing).
const humongous = 16 << 20

// slabs are the large blocks that are cut into sub-allocations, with their carvers.
//
//   - An entry that is a slab, and each sub-allocation in it, has the slab's number, by which the carver knows the
//     slab.
//   - The counts of a slab agree with the entries that lie in it.
//   - A slab that has no sub-allocations, or only lost ones, is cached. The free bytes of other slabs count as cached,
//     too.
//   - Each slab belongs to one carved: that of its class, a former one, or that of an arena.
type slabs struct {
	freeBlocks
	classes map[Class]*carved // nil: there never were slabs
	last    *carved           // of the class latest
	latest  Class             // the class that was looked up last
	former  []*carved         // no sub-allocation is carved from these; each goes with its last slab
	list    []slab            // by number, [0] is unused
	vacant  []int32           // unused numbers
	bytes   uint64            // of all grown slabs
	version int               // number of changes of limits that carvers depend on
}

// carved is a carver with the slabs of one class that it cuts.
type carved struct {
	carver  carve.Carver
	version int    // slabs.version when the carver was made
	align   uint64 // bytes
	largest uint64 // bytes of the largest request so far
	slabs   int
	most    uint64    // bytes of the largest slab to ask the driver for, 0: no limit; see halveSlabBound
	evicted int       // slabs that were given up, and that explain no miss yet
	blame   wire.Miss // the reason of the misses that they explain
}

// slab is one block that is handed out in sub-allocations. Its entry is decided until the slab is grown, then in use;
// it is cached while the slab has no sub-allocations except lost ones.
type slab struct {
	entry   int32
	home    *carved
	grown   bool
	parts   int32   // decided, in use, cooling or lost
	cooling int32   // parts that cool
	lost    []int32 // entries of sub-allocations that never come back
	used    uint64  // bytes of all sub-allocations
}

// prepareForSlabs prepares the pool for slabs.
func (sl *slabs) prepareForSlabs() {
	sl.classes, sl.list = map[Class]*carved{}, make([]slab, 1)
}

// maySlabsExist reports whether the pool may have slabs.
func (sl *slabs) maySlabsExist() bool { return sl.classes != nil }

// slabOf returns the slab that entry i is or lies in.
func (sl *slabs) slabOf(e *entry) *slab { return &sl.list[e.slab] }

// coarsest is the largest alignment for which slabs are carved: the chunks of ualloc, and therefore its slabs, then
// have 32 MiB. Most OpenCL devices require 128 or 512 bytes. Requests for a larger alignment get blocks of their own.
const coarsest = 2048

// carverOf returns the carver of a class; nil if the class has slabs of another alignment, or if slabs cannot have the
// alignment. A class that has a slab keeps its carver, because its sub-allocations cannot move.
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

// serveBySubAlloc serves a request with a sub-allocation of a slab, and reports whether it did; if necessary the decision creates
// the slab. If it reports false, the request gets a block of its own.
func (p *Pool) serveBySubAlloc(decision *Decision, req *Request) bool {
	if req.Align == 0 || p.isDropped(req.Class) || exceedsBound(req.Size, p.limits.largestSubAlloc()) {
		return false
	}
	c := p.carverOf(req.Class, req.Align)
	if c == nil {
		return false
	}
	if size := c.carver.RoundUp(req.Size); size == 0 || exceedsBound(size, req.MaxBlockBytes()) {
		return false
	}
	c.largest = max(c.largest, req.Size)
	if part, ok := c.carver.Carve(req.Size); ok {
		p.fillSubAlloc(decision, p.newEntry(), req, part)
		decision.Hit = true
		return true
	}
	if i := p.free.smallestAtLeast(req.Class, req.Size); i != 0 && isWithinWaste(p.free.sizeOf(i), req.Size, &p.limits) {
		return false // a cached block serves
	}
	return p.decideSlab(decision, req, c)
}

// largestSubAlloc returns the largest request that a slab serves.
func (l *limits) largestSubAlloc() uint64 {
	if l.maxPart != 0 {
		return l.maxPart
	}
	return humongous
}

// decideSlab decides on a new slab with the request's sub-allocation in it.
func (p *Pool) decideSlab(decision *Decision, req *Request, c *carved) bool {
	slack := p.bytesForWaste(req, req.Heap) // not p.short: after a shortage carved.most bounds slabs
	if slack < req.Size {
		return false
	}
	sizing := carve.Sizing{
		M: p.limits.maxPart, H: p.limits.heapBytes, K: p.limits.slabsPerHeap, Limit: smallerOfBounds(p.largestSlabSize(req, c), slack), Memory: p.heap,
	}
	size, serves := sizing.ChooseSlabSize(c.carver, carve.Hints{Request: c.largest, InUse: max(p.stats.PeakWanted, p.others.wanted)})
	if req.Size > serves || len(p.slabs.vacant) == 0 && len(p.slabs.list) == carve.MaxSlabs {
		c.doubleSlabBound()
		return false
	}
	if size > slack {
		return false
	}
	reason := p.whyNoSlabHasRoom(req, c)
	number := p.newSlab(req, size, c)
	c.carver.AddSlab(number, size)
	c.slabs++
	part, ok := c.carver.Carve(req.Size)
	if !ok { // never: Choose promised room
		p.forgetSlab(number)
		return false
	}
	p.fillSubAlloc(decision, p.newEntry(), req, part)
	decision.SlabSize, decision.Reason = size, reason
	p.entryAt(p.entryOf(decision.Block)).reason = reason
	return true
}

// share bounds a slab whose size is not set: it has at most 1/share of the device's memory.
const share = 16

// largestSlabSize returns the bytes of the largest slab that may be created, 0 if no bound is known.
func (p *Pool) largestSlabSize(req *Request, c *carved) uint64 {
	most := req.Max
	if p.limits.maxPart == 0 && p.heap != 0 {
		most = smallerOfBounds(most, max(p.heap/share, 1))
	}
	return smallerOfBounds(most, c.most)
}

// smallerOfBounds returns the smaller of two bounds, where 0 means no bound.
func smallerOfBounds(a, b uint64) uint64 {
	if a == 0 || b == 0 {
		return a + b
	}
	return min(a, b)
}

// halveSlabBound notes that the driver had no memory for a slab: the next slab is at most half as large. doubleSlabBound doubles
// that bound with each slab that is created, and with each request that is too large for a slab.
func (c *carved) halveSlabBound(size uint64) { c.most = max(size/2, 1) }

// doubleSlabBound raises the bound that halveSlabBound set. Beyond 1 TiB there is no bound.
func (c *carved) doubleSlabBound() {
	if c.most *= 2; c.most > 1<<40 {
		c.most = 0
	}
}

// newSlab makes an entry for a slab to be created.
func (sl *slabs) newSlab(req *Request, size uint64, home *carved) (number int32) {
	if n := len(sl.vacant); n > 0 {
		number, sl.vacant = sl.vacant[n-1], sl.vacant[:n-1]
	} else {
		number = int32(len(sl.list))
		sl.list = append(sl.list, slab{})
	}
	i := sl.newEntry()
	sl.list[number].entry, sl.list[number].home = i, home
	e := sl.entryAt(i)
	e.size, e.tag, e.class, e.state, e.isSlab, e.slab = size, req.Tag, req.Class, decided, true, number
	return number
}

// fillSubAlloc fills in entry i and the decision for a carved range, and counts the range in the slab.
func (sl *slabs) fillSubAlloc(decision *Decision, i int32, req *Request, part carve.Part) {
	s := &sl.list[part.Slab]
	if sl.entryAt(s.entry).state == cached {
		sl.removeCached(s.entry)
		sl.entryAt(s.entry).state = inUse
	}
	s.parts++
	s.used += part.Size
	if s.grown {
		sl.stats.BytesCached -= part.Size
	}
	e := sl.entryAt(i)
	e.size, e.wanted, e.tag, e.class, e.state, e.route = part.Size, req.Size, req.Tag, req.Class, decided, decision.Route
	e.slab, e.offset = part.Slab, part.Offset
	decision.Block, decision.Size = sl.blockOfEntry(i), part.Size
	decision.Slab, decision.Offset, decision.Fresh = sl.blockOfEntry(s.entry), part.Offset, part.Fresh
}

// whyNoSlabHasRoom says why no slab has room.
func (sl *slabs) whyNoSlabHasRoom(req *Request, c *carved) wire.Miss {
	if sl.coolingBlocks.smallestAtLeast(req.Class, req.Size) != 0 {
		return wire.MissCooling
	}
	if c.evicted > 0 {
		c.evicted--
		return c.blame
	}
	for class, other := range sl.classes {
		if class != req.Class && other.carver.FreeSpace().Largest >= req.Size {
			return wire.MissOtherClass
		}
	}
	if c.carver.FreeSpace().Bytes > 0 {
		return wire.MissTooSmall
	}
	return wire.MissCold
}

// SlabCreated says that the slab of a decision was created.
func (p *Pool) SlabCreated(decision Decision) {
	i := p.findEntry(decision.Block, decided)
	if i == 0 || !p.entryAt(i).isSubAlloc() {
		return
	}
	s := p.slabOf(p.entryAt(i))
	if s.grown || p.blockOfEntry(s.entry) != decision.Slab {
		return
	}
	e := p.entryAt(s.entry)
	s.home.doubleSlabBound()
	e.state, s.grown = inUse, true
	p.stats.Blocks++
	p.stats.Slabs++
	p.slabs.bytes += e.size
	p.stats.BytesAllocated += e.size
	p.stats.BytesCached += e.size - s.used
	p.stats.raisePeaks()
}

// largestCached returns the largest cached block, slabs included; of equal ones the latest; 0 when there is none.
func (sl *slabs) largestCached() (found int32) {
	found = sl.free.firstAmongLargest(sl.compareBySize)
	for number := range sl.list {
		i := sl.list[number].entry
		if sl.entryAt(i).state == cached && sl.entryAt(i).isSlab && (found == 0 || sl.compareBySize(i, found) < 0) {
			found = i
		}
	}
	return found
}

// freeSpaceInSlabs sums the free ranges of slabs. Bytes that a carver keeps for itself are free, but in no range.
func (sl *slabs) freeSpaceInSlabs(arenas []activeArena) Space {
	var all Space
	for _, c := range sl.classes {
		all.addFreeRanges(c.carver.FreeSpace())
	}
	for _, c := range sl.former {
		all.addFreeRanges(c.carver.FreeSpace())
	}
	for i := range arenas {
		all.addFreeRanges(arenas[i].carver.FreeSpace())
	}
	all.Bytes = sl.stats.BytesCached - sl.tally.Bytes
	return all
}

// addFreeRanges adds the free ranges of one carver, except their bytes.
func (s *Space) addFreeRanges(free carve.Space) {
	s.Largest = max(s.Largest, free.Largest)
	s.Ranges += uint64(free.Ranges)
	s.Squares += free.Squares
}

// beginCooling begins the cooling of a released block or sub-allocation.
func (sl *slabs) beginCooling(i int32) {
	e := sl.entryAt(i)
	e.state = cooling
	if e.isSubAlloc() {
		sl.slabOf(e).cooling++
	}
	sl.coolingBlocks.addBlock(i, e)
	sl.chain.addAsNewest(&sl.coolingByAge, i)
	sl.stats.BytesCooling += e.size
	sl.stats.raisePeaks()
}

// removeFromCooling removes a block or sub-allocation from the cooling ones.
func (sl *slabs) removeFromCooling(i int32) {
	e := sl.entryAt(i)
	if e.isSubAlloc() {
		sl.slabOf(e).cooling--
	}
	sl.coolingBlocks.removeBlock(i, e)
	sl.chain.removeEntry(&sl.coolingByAge, i)
	sl.stats.BytesCooling -= e.size
}

// evictCachedBlock evicts a cached block.
func (sl *slabs) evictCachedBlock(i int32, reason wire.Evict, out []Eviction) []Eviction {
	sl.removeCached(i)
	return sl.dismissBlock(i, reason, out)
}

// dismissBlock removes a block, which is on no list, from the pool, and reports its eviction.
func (sl *slabs) dismissBlock(i int32, reason wire.Evict, out []Eviction) []Eviction {
	e := sl.entryAt(i)
	out = append(out, Eviction{Block: sl.blockOfEntry(i), Size: e.size, Tag: e.tag, Reason: reason})
	if e.isSlab {
		sl.removeSlab(i, reason)
	} else {
		sl.evicted.rememberEviction(e, reason)
	}
	sl.stats.Evictions++
	sl.stats.Blocks--
	sl.recycleEntry(i)
	return out
}

// bytesFreedByEvicting returns the bytes that the driver gets back at once if a cached block is evicted. The bytes of a slab's
// lost sub-allocations are not among them.
func (sl *slabs) bytesFreedByEvicting(i int32) uint64 {
	e := sl.entryAt(i)
	if e.isSlab {
		return e.size - sl.slabOf(e).used
	}
	return e.size
}
