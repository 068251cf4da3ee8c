package allocator

import (
	"fmt"

	"codeberg.org/gpumemtop/gpumemtop/allocator/treap"
)

// Validate implements Policy: it counts everything again from the block table, and walks every order.
func (p *pool) Validate() error {
	want := p.stats
	want.BytesCached, want.BytesCooling, want.BytesInUse, want.BytesWanted, want.Blocks = 0, 0, 0, 0, 0
	blocks := map[Class]uint64{}
	for i := 1; i < len(p.entries); i++ {
		e := &p.entries[i]
		switch e.state {
		case unused:
			continue
		case inUse:
			want.BytesInUse += e.size
			want.BytesWanted += e.wanted
		case cached:
			want.BytesCached += e.size
		case cooling:
			want.BytesCooling += e.size
		}
		blocks[e.class]++
		if e.state != planned || e.was == cached {
			want.Blocks++
		}
		if e.state == inUse && e.size < e.wanted {
			return fmt.Errorf("block %d has %d bytes and serves a request of %d", i, e.size, e.wanted)
		}
	}
	if want != p.stats {
		return fmt.Errorf("counters are %+v, the blocks say %+v", p.stats, want)
	}
	for class, n := range blocks {
		if p.blocks[class] != n {
			return fmt.Errorf("class %d has %d blocks, counted as %d", class, n, p.blocks[class])
		}
	}
	if p.stats.BytesCached > p.limits.maxCachedBytes {
		return fmt.Errorf("%d bytes are cached, the limit is %d", p.stats.BytesCached, p.limits.maxCachedBytes)
	}
	if err := p.validateFree(&p.free, &p.cachedByAge, cached); err != nil {
		return err
	}
	return p.validateFree(&p.warm, &p.coolingByAge, cooling)
}

// validateFree checks that a shelf and a list of ages hold exactly the blocks in one state.
func (p *pool) validateFree(s *shelf, a *ages, want state) error {
	left := map[int32]bool{}
	for i := 1; i < len(p.entries); i++ {
		if p.entries[i].state == want {
			left[int32(i)] = true
		}
	}
	listed := 0
	for i := a.oldest; i != 0; i = p.entries[i].newer {
		if !left[i] {
			return fmt.Errorf("block %d is listed by age in state %d", i, p.entries[i].state)
		}
		listed++
	}
	if listed != len(left) {
		return fmt.Errorf("%d blocks are listed by age, %d are in state %d", listed, len(left), want)
	}
	for class, c := range s.classes {
		if err := p.validateTree(&s.bySize, &c.all, class, left); err != nil {
			return err
		}
		tagged := 0
		for _, t := range c.tags {
			tagged += t.Count
		}
		if tagged != c.all.Count {
			return fmt.Errorf("class %d has %d blocks by tag and %d by size", class, tagged, c.all.Count)
		}
	}
	if len(left) > 0 {
		return fmt.Errorf("%d blocks in state %d stand in no order", len(left), want)
	}
	return nil
}

// validateTree checks one tree's order and members, and strikes these off.
func (p *pool) validateTree(f *treap.Forest, t *treap.Tree, class Class, left map[int32]bool) (err error) {
	before, count := int32(0), 0
	f.Each(t, func(i int32) {
		switch {
		case !left[i] || p.entries[i].class != class || p.entries[i].size != f.Size(i):
			err = fmt.Errorf("block %d stands in the order of class %d and does not belong there", i, class)
		case before != 0 && !f.Less(before, i):
			err = fmt.Errorf("blocks %d and %d are out of order", before, i)
		}
		before = i
		count++
		delete(left, i)
	})
	if err == nil && count != t.Count {
		err = fmt.Errorf("class %d counts %d blocks and holds %d", class, t.Count, count)
	}
	return err
}
