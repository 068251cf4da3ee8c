// Package arena places buffers whose lifetimes are known into one arena, so that no two that live at a time overlap and
// the arena is small: the static allocation problem, in the form that Google's MiniMalloc gave it (M. D. Moffitt,
// ASPLOS 2023).
//
// Quick heuristics give a first placement. Then an exact search looks for a better one, many times over with different
// orders, mostly with few steps and sometimes with many, until a placement is as small as a lower bound, or time is up.
package arena

import (
	"cmp"
	"fmt"
	"math"
	"slices"
)

// Buffer is a buffer to place.
type Buffer struct {
	ID string
	// Lower and Upper bound its life, in any unit: it lives from Lower until before Upper.
	Lower, Upper int64
	Size         uint64 // bytes
	Align        uint64 // its offset is a multiple of this; 0 and 1: any offset
	// Gaps are times within its life at which it needs fewer bytes or none, in order. They do not overlap.
	Gaps []Gap
}

// Gap is a time within a life at which only a part of a buffer is needed.
type Gap struct {
	Lower, Upper int64 // a half-open interval, as a life is
	// From and To bound the bytes of the buffer that are needed in that time: none if they are equal.
	From, To uint64
}

// sumMax bounds the bytes of all buffers together, so that no sum overflows.
const sumMax = math.MaxInt64 / 4

// checkBuffer reports invalid values of a buffer.
func (b *Buffer) checkBuffer() error {
	switch {
	case b.Upper < b.Lower:
		return fmt.Errorf("buffer %.40q: upper %d is before lower %d", b.ID, b.Upper, b.Lower)
	case b.Size > sumMax:
		return fmt.Errorf("buffer %.40q: size %d: want at most %d", b.ID, b.Size, int64(sumMax))
	case b.Align > sumMax:
		return fmt.Errorf("buffer %.40q: alignment %d: want at most %d", b.ID, b.Align, int64(sumMax))
	}
	from := b.Lower
	for _, g := range b.Gaps {
		switch {
		case g.Lower < from || g.Upper < g.Lower || g.Upper > b.Upper:
			return fmt.Errorf("buffer %.40q: gap %d-%d: want it within the life and behind other gaps", b.ID, g.Lower, g.Upper)
		case g.To < g.From || g.To > b.Size:
			return fmt.Errorf("buffer %.40q: gap %d-%d: bytes %d:%d are not within its size", b.ID, g.Lower, g.Upper, g.From, g.To)
		}
		from = g.Upper
	}
	return nil
}

// checkBuffers reports invalid values of buffers.
func checkBuffers(buffers []Buffer) error {
	sum := uint64(0)
	for i := range buffers {
		b := &buffers[i]
		if err := b.checkBuffer(); err != nil {
			return err
		}
		if sum += b.Size + b.Align; sum > sumMax {
			return fmt.Errorf("buffer %.40q: all up to it are larger than %d bytes", b.ID, int64(sumMax))
		}
	}
	return nil
}

// ValidatePlacement checks a placement: every offset is aligned, and no two buffers that live at the same time overlap. It
// returns the height of the arena in bytes. It goes through time once and compares each buffer with its neighbours in
// the arena.
func ValidatePlacement(buffers []Buffer, offsets []uint64) (height uint64, err error) {
	if len(offsets) != len(buffers) {
		return 0, fmt.Errorf("%d offsets for %d buffers", len(offsets), len(buffers))
	}
	if err := checkBuffers(buffers); err != nil {
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
	all := cutAtGaps(buffers)
	for i := range all {
		offset := int64(offsets[all[i].buffer])
		all[i].lo, all[i].hi = all[i].lo+offset, all[i].hi+offset
	}
	return height, checkOverlaps(buffers, all)
}

// checkOverlaps reports two pieces that overlap in the arena.
func checkOverlaps(buffers []Buffer, all []piece) error {
	var live []int32 // pieces by offset
	for _, e := range beginAndEndEvents(all) {
		p := &all[e.piece]
		index, _ := slices.BinarySearchFunc(live, p.lo, func(i int32, lo int64) int { return cmp.Compare(all[i].lo, lo) })
		if !e.begin {
			live = slices.Delete(live, index, index+1)
			continue
		}
		for _, n := range []int{index - 1, index} {
			if n < 0 || n >= len(live) {
				continue
			}
			if q := &all[live[n]]; q.lo < p.hi && p.lo < q.hi {
				return fmt.Errorf("buffers %.40q and %.40q overlap at %d", buffers[q.buffer].ID, buffers[p.buffer].ID, e.time)
			}
		}
		live = slices.Insert(live, index, e.piece)
	}
	return nil
}
