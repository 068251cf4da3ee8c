package plan

import (
	"cmp"
	"fmt"
	"slices"
)

// Validate checks a placement: every offset is aligned, and no two buffers that live at a time overlap. It returns the
// height of the arena in bytes. It goes through time once and compares each buffer with its neighbours in the arena.
func Validate(buffers []Buffer, offsets []uint64) (height uint64, err error) {
	if len(offsets) != len(buffers) {
		return 0, fmt.Errorf("%d offsets for %d buffers", len(offsets), len(buffers))
	}
	if err := checkAll(buffers); err != nil {
		return 0, err
	}
	for i := range buffers {
		b := &buffers[i]
		if offsets[i] > sumMax {
			return 0, fmt.Errorf("buffer %.40q: offset %d: want at most %d", b.ID, offsets[i], int64(sumMax))
		}
		if offsets[i]%max(b.Align, 1) != 0 {
			return 0, fmt.Errorf("buffer %.40q: offset %d is no multiple of its alignment %d", b.ID, offsets[i], b.Align)
		}
		if b.Lower < b.Upper {
			height = max(height, offsets[i]+b.Size)
		}
	}
	all := pieces(buffers)
	for i := range all {
		offset := int64(offsets[all[i].buffer])
		all[i].lo, all[i].hi = all[i].lo+offset, all[i].hi+offset
	}
	return height, sweep(buffers, all)
}

// sweep checks pieces at their places in the arena.
func sweep(buffers []Buffer, all []piece) error {
	var live []int32 // by place
	for _, e := range events(all) {
		p := &all[e.piece]
		at, _ := slices.BinarySearchFunc(live, p.lo, func(i int32, lo int64) int { return cmp.Compare(all[i].lo, lo) })
		if !e.begin {
			live = slices.Delete(live, at, at+1)
			continue
		}
		for _, n := range []int{at - 1, at} {
			if n < 0 || n >= len(live) {
				continue
			}
			if q := &all[live[n]]; q.lo < p.hi && p.lo < q.hi {
				return fmt.Errorf("buffers %.40q and %.40q overlap at %d", buffers[q.buffer].ID, buffers[p.buffer].ID, e.time)
			}
		}
		live = slices.Insert(live, at, e.piece)
	}
	return nil
}
