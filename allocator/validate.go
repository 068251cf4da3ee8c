package allocator

import (
	"cmp"
	"fmt"
	"math"
	"slices"

	"codeberg.org/gpumemtop/gpumemtop/allocator/carve"
	"codeberg.org/gpumemtop/gpumemtop/internal/wire"
)

// Validate checks every invariant of the pool, for tests. It is slow: it counts everything again from the block table,
// and walks every list.
func (p *Pool) Validate() error {
	if err := p.validateStats(); err != nil {
		return err
	}
	if p.stats.BytesCached > p.maxCachedBytes() && p.carver == nil && p.stats.Slabs == 0 { // slabs wait for the next call that reports evictions
		return fmt.Errorf("%d bytes are cached, the limit is %d", p.stats.BytesCached, p.maxCachedBytes())
	}
	if err := p.validateFree(&p.free, &p.cachedByAge, cached); err != nil {
		return err
	}
	if err := p.validateFree(&p.coolingBlocks, &p.coolingByAge, cooling); err != nil {
		return err
	}
	if !p.maySlabsExist() {
		return nil
	}
	return p.validateSlabs(p.layouts.currentArenas())
}

// validateStats computes the gauges from the block table, and compares them.
func (sl *slabs) validateStats() error {
	want, tally := sl.stats, carve.Tally{}
	want.BytesCached, want.BytesCooling, want.BytesInUse, want.BytesWanted = 0, 0, 0, 0
	want.Blocks, want.Slabs, want.Parts = 0, 0, 0
	leaving := 0
	for i := int32(1); i < sl.made; i++ {
		e := sl.entryAt(i)
		if e.state == unused {
			continue
		}
		sl.addBlockToGauges(i, &want)
		if e.isEvictedOnReturn() {
			leaving++
		}
		if e.dropped != sl.isDropped(e.class) {
			return fmt.Errorf("block %d is of class %d: dropped is %t", i, e.class, e.dropped)
		}
		if e.state == cached && !e.isSlab {
			tally.AddRanges(e.size, 1)
		}
		if e.state == inUse && e.size < e.wanted {
			return fmt.Errorf("block %d has %d bytes and serves a request of %d", i, e.size, e.wanted)
		}
	}
	if want != sl.stats {
		return fmt.Errorf("counters are %+v, the blocks say %+v", sl.stats, want)
	}
	if leaving != sl.leaving {
		return fmt.Errorf("%d blocks are leaving, counted as %d", leaving, sl.leaving)
	}
	if tally != sl.tally {
		return fmt.Errorf("cached blocks are counted as %+v, and are %+v", sl.tally, tally)
	}
	return nil
}

// addBlockToGauges adds one block to the gauges in sum.
func (sl *slabs) addBlockToGauges(i int32, sum *Stats) {
	e := sl.entryAt(i)
	part := e.isSubAlloc()
	switch {
	case e.isSlab:
		if s := sl.slabOf(e); s.grown {
			sum.BytesCached += e.size - s.used
			sum.Slabs++
		}
	case e.state == inUse:
		sum.BytesInUse += e.size
		sum.BytesWanted += e.wanted
	case e.state == cached:
		sum.BytesCached += e.size
	case e.state == cooling, part && e.state == doomed:
		sum.BytesCooling += e.size
	}
	switch {
	case part && (e.state == inUse || e.state == cooling):
		sum.Parts++
	case !part && (e.state != decided || e.reason == wire.MissNone && !e.isSlab):
		sum.Blocks++
	}
}

// validateFree checks that a freeList and a list of ages hold exactly the blocks in one state; slabs stand on no
// freeList.
func (f *freeBlocks) validateFree(s *freeList, a *ages, want state) error {
	count, free, last := 0, 0, int64(math.MinInt64)
	for i := a.oldest; i != 0; i = f.chain.At(i).newer {
		e := f.entryAt(i)
		if e.state != want {
			return fmt.Errorf("block %d is listed by age in state %d", i, e.state)
		}
		if want == cached && f.slots.blocks[e.wanted] != i {
			return fmt.Errorf("block %d is not in its slot %d", i, e.wanted)
		}
		if want == cached && f.cachingMoment(i).since < last {
			return fmt.Errorf("block %d is listed after a younger one", i)
		}
		if want == cached {
			last = f.cachingMoment(i).since
		}
		count++
		if !e.isSlab {
			free++
		}
	}
	for i := range f.made {
		if f.entryAt(i).state == want {
			count--
		}
	}
	if count != 0 {
		return fmt.Errorf("%d more blocks are listed by age than are in state %d", count, want)
	}
	for class, c := range s.classes {
		if err := f.validateSection(s, class, c); err != nil {
			return err
		}
		free -= c.free
	}
	if free != 0 {
		return fmt.Errorf("%d blocks in state %d stand on no freeList", free, want)
	}
	return nil
}

// validateSection checks one class on a freeList.
func (f *freeBlocks) validateSection(s *freeList, class Class, c *section) error {
	onShelf, err := f.validateIndex(&s.all, c.all, class)
	if err != nil {
		return err
	}
	byTag := onShelf
	if s.tagged != nil {
		byTag = 0
		c.eachTagOfClass(func(t *tagged) {
			n, found := f.validateIndex(s.tagged, t.section, class)
			if found == nil && s.byAge && n != t.ages.count {
				found = fmt.Errorf("tag %d has %d blocks by size and %d by age", t.tag, n, t.ages.count)
			}
			if found == nil && c.blocksOfTag(t.tag) != t {
				found = fmt.Errorf("tag %d is not found", t.tag)
			}
			err = cmp.Or(err, found)
			byTag += n
		})
	}
	if err != nil {
		return err
	}
	if onShelf != c.free || byTag != c.free {
		return fmt.Errorf("class %d has %d free blocks, %d by size and %d by tag", class, c.free, onShelf, byTag)
	}
	return nil
}

// validateIndex checks the blocks of one section and returns how many there are.
func (f *freeBlocks) validateIndex(x *index, section int32, class Class) (count int, err error) {
	if err := x.validate(section); err != nil {
		return 0, err
	}
	for _, strip := range x.sections[section].strips {
		for _, n := range x.strips[strip].nodes {
			listed, size := int32(0), x.nodes[n].size
			for i := x.nodes[n].newest; i != 0; i = x.links.At(i).older {
				if e := f.entryAt(i); e.class != class || e.size != size {
					return 0, fmt.Errorf("block %d does not belong under size %d of class %d", i, size, class)
				}
				listed++
			}
			if listed != x.nodes[n].count {
				return 0, fmt.Errorf("%d blocks of size %d, counted as %d", listed, size, x.nodes[n].count)
			}
			count += int(listed)
		}
	}
	return count, nil
}

// validate checks that the sizes of a section are in order, and that find finds them.
func (x *index) validate(section int32) error {
	s, last := &x.sections[section], uint64(0)
	for rank, strip := range s.strips {
		on := &x.strips[strip]
		if len(s.strips) > 1 && on.full == 0 {
			return fmt.Errorf("strip %d of section %d has no blocks", rank, section)
		}
		for place, n := range on.nodes {
			node := &x.nodes[n]
			full := on.full>>(place&63)&1 != 0
			if node.size <= last || node.size != on.sizes[place] || full != (node.count > 0) || x.findNode(section, node.size) != n {
				return fmt.Errorf("size %d of section %d is out of order, or not found by size", node.size, section)
			}
			if node.section != section || node.strip != strip {
				return fmt.Errorf("size %d is on strip %d of section %d, and believes otherwise", node.size, rank, section)
			}
			last = node.size
		}
	}
	return nil
}

// validateSlabs checks that slabs and their sub-allocations agree.
func (sl *slabs) validateSlabs(arenas []activeArena) error {
	found := make([]slab, len(sl.list))
	for i := range sl.made {
		e := sl.entryAt(i)
		if !sl.entryAt(i).isSubAlloc() {
			continue
		}
		s := &found[e.slab]
		s.parts++
		s.used += e.size
		switch e.state {
		case cooling:
			s.cooling++
		case doomed:
			s.lost = append(s.lost, i)
		}
	}
	for number := 1; number < len(found); number++ {
		s, f := &sl.list[number], &found[number]
		slices.Sort(f.lost)
		lost := slices.Sorted(slices.Values(s.lost))
		if s.parts != f.parts || s.used != f.used || s.cooling != f.cooling || !slices.Equal(lost, f.lost) {
			return fmt.Errorf("slab %d keeps %+v, its parts say %+v", number, *s, *f)
		}
		e := sl.entryAt(s.entry)
		if s.entry != 0 && (!e.isSlab || s.grown && s.hasOnlyLostSubAllocs() != (e.state == cached) && e.state != doomed) {
			return fmt.Errorf("slab %d with %d parts is in state %d", number, s.parts, e.state)
		}
	}
	for _, c := range sl.former {
		if err := c.carver.Validate(); err != nil {
			return fmt.Errorf("a former carver: %w", err)
		}
	}
	for i := range arenas {
		if err := arenas[i].carver.Validate(); err != nil {
			return fmt.Errorf("arena %d: %w", i, err)
		}
	}
	for class, c := range sl.classes {
		if err := c.carver.Validate(); err != nil {
			return fmt.Errorf("class %d: %w", class, err)
		}
	}
	return nil
}
