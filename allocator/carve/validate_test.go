package carve

import "testing"

// TestValidateFinds damages the books, one entry at a time: a Validate that finds nothing would let every other test
// pass.
func TestValidateFinds(t *testing.T) {
	for name, damage := range map[string]func(b *bestFit){
		"tally":        func(b *bestFit) { b.tally.Bytes++ },
		"squares":      func(b *bestFit) { b.tally.low++ },
		"parts":        func(b *bestFit) { b.slabs.elementOf(1).parts++ },
		"size":         func(b *bestFit) { b.slabs.elementOf(1).size += 16 },
		"used":         func(b *bestFit) { b.slabs.elementOf(1).used = 16 },
		"offset":       func(b *bestFit) { b.segments[2].offset += 16 },
		"link":         func(b *bestFit) { b.segments[2].before = 0 },
		"lost part":    func(b *bestFit) { b.parts.removePlace(b.placeOfSegment(2)) },
		"free twice":   func(b *bestFit) { b.segments[2].free = true },
		"lost segment": func(b *bestFit) { b.newSegment(segment{}) },
		"out of order": func(b *bestFit) { b.order.Remove(&b.free, b.free.Root) },
		"under old key": func(b *bestFit) {
			g := &b.segments[3]
			b.order.Remove(&b.free, 3)
			b.order.Insert(&b.free, 3, g.size+1, 1)
		},
	} {
		b := damaged(t, NewBestFit(16)).(*bestFit)
		if damage(b); b.Validate() == nil {
			t.Errorf("best fit, %s: not found", name)
		}
	}
	for name, damage := range map[string]func(b *buddy){
		"tally":  func(b *buddy) { b.tally.Ranges++ },
		"rank":   func(b *buddy) { b.ranks.setRank(1, 1) },
		"ghost":  func(b *buddy) { b.slabs.addSlab(2); b.slabs.removeSlab(2); b.ranks.setRank(2, 1) },
		"counts": func(b *buddy) { b.slabs.elementOf(1).pages.free[0]++ },
		"tree":   func(b *buddy) { b.slabs.elementOf(1).pages.tree.Alloc(0, 0) },
	} {
		b := damaged(t, NewBuddy(16)).(*buddy)
		if damage(b); b.Validate() == nil {
			t.Errorf("buddy, %s: not found", name)
		}
	}
	for name, damage := range map[string]func(u *binned, s *binSlab){
		"tally":     func(u *binned, _ *binSlab) { u.tally.Bytes++ },
		"rank":      func(u *binned, _ *binSlab) { u.large.setRank(1, 1) },
		"room":      func(u *binned, _ *binSlab) { u.rooms.setRank(1, noRoom) },
		"slot rank": func(u *binned, _ *binSlab) { u.small[3].setRank(1, 1) },
		"ghost":     func(u *binned, _ *binSlab) { u.slabs.addSlab(2); u.slabs.removeSlab(2); u.large.setRank(2, 1) },
		"spare":     func(_ *binned, s *binSlab) { s.spare++ },
		"slots":     func(_ *binned, s *binSlab) { s.slots[3]++ },
		"bin":       func(_ *binned, s *binSlab) { s.bins[2].parts++ },
		"parts":     func(_ *binned, s *binSlab) { s.parts = 0 },
		"lost bin":  func(_ *binned, s *binSlab) { s.chunks[0] = noChunk },
		"tree":      func(_ *binned, s *binSlab) { s.pages.tree.Alloc(0, 0) },
		"slot":      func(_ *binned, s *binSlab) { s.small.Alloc(0, 1) },
	} {
		u := damaged(t, NewUAlloc(1)).(*binned)
		if damage(u, *u.slabs.elementOf(1)); u.Validate() == nil {
			t.Errorf("ualloc, %s: not found", name)
		}
	}
	for name, damage := range map[string]func(c *Placed){
		"parts of no slab": func(c *Placed) { c.slab = 0 },
		"overlap":          func(c *Placed) { c.ranges[0].end++ },
		"no bytes":         func(c *Placed) { c.ranges[1].end = c.starts[1] },
		"beyond the slab":  func(c *Placed) { c.size = c.ranges[1].end - 1 },
		"used":             func(c *Placed) { c.used = c.ranges[1].end - 1 },
		"no owner":         func(c *Placed) { c.ranges[1].owner = 0 },
		"lost mark":        func(c *Placed) { c.taken.clear(1) },
		"lost part":        func(c *Placed) { c.parts-- },
		"unmarked":         func(c *Placed) { c.ranges[2] = placed{c.starts[3], 3} },
		"level":            func(c *Placed) { c.taken[1][0] = 0 },
		"empty level":      func(c *Placed) { c.taken[1][0] |= 2 },
	} {
		starts := make([]uint64, 100)
		for i := range starts {
			starts[i] = 64 * uint64(i)
		}
		c := NewPlaced(64, starts)
		c.AddSlab(1, 6400)
		c.TakeRange(0, 64, 1)
		c.TakeRange(1, 64, 2)
		if err := c.Validate(); err != nil {
			t.Fatal(err)
		}
		if damage(c); c.Validate() == nil {
			t.Errorf("placed, %s: not found", name)
		}
	}
}

// damaged returns a carver with a slab and two sub-allocations, in order so far.
func damaged(t *testing.T, c Carver) Carver {
	t.Helper()
	c.AddSlab(1, max(4096, 2*c.SlabSize(1)))
	c.Carve(1)
	c.Carve(1)
	if err := c.Validate(); err != nil {
		t.Fatal(err)
	}
	return c
}
