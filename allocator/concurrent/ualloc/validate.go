package ualloc

import (
	"errors"
	"fmt"

	"codeberg.org/gpumemtop/gpumemtop/allocator/concurrent/semaphore"
)

// Stats says what the pool is used for. It is exact when no call is under way.
type Stats struct {
	Small      int    // blocks in bins
	SmallBytes uint64 // granted for them
	Large      int    // blocks of pages
	LargeBytes uint64
	Chunks     int
	Bins       int    // with a class
	Kept       int    // of these, without blocks
	SpareBytes uint64 // in chunks, not granted, and no header: what Small can grow by without another chunk, if sizes suit
}

// Stats counts everything again. It takes time in proportion to the pool.
func (al *Allocator) Stats() Stats {
	var s Stats
	for i := range al.chunks {
		c := al.chunks[i].Load()
		if c == nil {
			continue
		}
		s.Chunks++
		for i := range c.bins {
			if class, count := c.bins[i].loadState(); class >= 0 {
				s.Bins++
				n := c.bins[i].capacity(class) - count
				if n == 0 {
					s.Kept++
				}
				s.Small += n
				s.SmallBytes += uint64(n) * al.geometry.Unit << class
			}
		}
	}
	s.SpareBytes = uint64(s.Chunks*al.geometry.chunkSlots())*al.geometry.Unit - s.SmallBytes
	for page := range al.large {
		if order := al.large[page].Load(); order > 0 {
			s.Large++
			s.LargeBytes += al.geometry.PageBytes() << (order - 1)
		}
	}
	return s
}

// Validate checks the invariants, and says which does not hold. No call may be under way.
func (al *Allocator) Validate() error {
	owned := make(map[*arena]int)
	end := 0 // of the last block of pages or chunk
	for page := range al.large {
		pages := 0
		if order := al.large[page].Load(); order > 0 {
			pages = 1 << (order - 1)
		}
		if c := al.chunks[page/al.geometry.binsPerChunk()].Load(); c != nil && page%al.geometry.binsPerChunk() == 0 {
			if pages > 0 || c.page != page {
				return fmt.Errorf("page %d is the first of a chunk that says page %d, and of a block of %d pages", page, c.page, pages)
			}
			pages = al.geometry.binsPerChunk()
			owned[c.arena]++
			if err := c.validate(); err != nil {
				return fmt.Errorf("chunk at page %d: %w", page, err)
			}
		}
		if pages > 0 && (page < end || page%pages != 0 || page+pages > len(al.large)) {
			return fmt.Errorf("%d pages at page %d, where %d is the next free one", pages, page, end)
		}
		end = max(end, page+pages)
	}
	for i, a := range al.arenas {
		if err := a.validate(owned[a]); err != nil {
			return fmt.Errorf("arena %d: %w", i, err)
		}
	}
	return nil
}

func (c *chunk) validate() error {
	free := 0
	for i := range c.bins {
		b := &c.bins[i]
		idle := c.free[i/64].Load()>>(i%64)&1 == 1
		class, count := b.loadState()
		if idle {
			free++
		}
		if used := !idle && i >= headerBins; (class >= 0) != used || idle && i < headerBins {
			return fmt.Errorf("bin %d has class %d, and its chunk says that it is in use: %v", i, class, used)
		}
		if b.linked != (class >= 0 && count > 0) {
			return fmt.Errorf("bin %d of class %d with %d free slots is linked: %v", i, class, count, b.linked)
		}
		if class < 0 {
			continue
		}
		if zeros := b.countFreeSlots(); count > b.capacity(class) || zeros != count {
			return fmt.Errorf("bin %d of class %d counts %d free slots of %d, its bitmap %d", i, class, count, b.capacity(class), zeros)
		}
	}
	if free != int(c.count.Load()) || c.linked != (free > 0) {
		return fmt.Errorf("%d bins are free, counted as %d; linked: %v", free, c.count.Load(), c.linked)
	}
	return nil
}

func (a *arena) validate(owned int) error {
	if owned != int(a.owned.Load()) || a.leaving.Load() != 0 {
		return fmt.Errorf("%d chunks, counted as %d; %d bins on their way", owned, a.owned.Load(), a.leaving.Load())
	}
	if err := a.chunks.validate(a); err != nil {
		return err
	}
	for class := range a.lists {
		if err := a.lists[class].validate(a); err != nil {
			return fmt.Errorf("class %d: %w", class, err)
		}
	}
	return nil
}

func (s *chunkList) validate(a *arena) error {
	units, linked := 0, 0
	var previous *chunk
	for c := s.head; c != nil; previous, c = c, c.next {
		if c.arena != a || !c.linked || c.previous != previous {
			return fmt.Errorf("the chunk at page %d stands wrongly in the list", c.page)
		}
		units += int(c.count.Load())
		linked++
	}
	for i := range a.of.chunks {
		if c := a.of.chunks[i].Load(); c != nil && c.arena == a && c.linked {
			linked--
		}
	}
	if linked != 0 {
		return errors.New("the list of chunks is not that of the chunks that are linked")
	}
	return checkSemaphoreAtRest("bins", s.units, units)
}

func (l *list) validate(a *arena) error {
	units, linked := 0, 0
	var previous *bin
	for b := l.head.Load(); b != nil; previous, b = b, b.next.Load() {
		class, count := b.loadState()
		if class != l.class || b.chunk.arena != a || !b.linked || b.previous != previous {
			return fmt.Errorf("bin %d of the chunk at page %d stands wrongly in the list", b.index, b.chunk.page)
		}
		if b.isEmpty(class) && b != l.kept.Load() {
			return fmt.Errorf("bin %d of the chunk at page %d has no block and is not the one that stays", b.index, b.chunk.page)
		}
		units += count
		linked++
	}
	for i := range a.of.chunks {
		c := a.of.chunks[i].Load()
		if c == nil || c.arena != a {
			continue
		}
		for i := range c.bins {
			if class, _ := c.bins[i].loadState(); class == l.class && c.bins[i].linked {
				linked--
			}
		}
	}
	if linked != 0 {
		return errors.New("the list is not that of the bins that are linked")
	}
	return checkSemaphoreAtRest("slots", l.units, units)
}

func checkSemaphoreAtRest(what string, s *semaphore.Bulk, units int) error {
	if got, want := s.Counts(), (semaphore.Counts{Units: units}); got != want {
		return fmt.Errorf("%s: the semaphore has %+v, the list %+v", what, got, want)
	}
	return nil
}
