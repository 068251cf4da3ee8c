// Package plan places buffers whose lifetimes are known into one arena, so that no two that live at a time overlap and
// the arena is small: the static allocation problem, in the form that Google's MiniMalloc gave it (M. D. Moffitt,
// ASPLOS 2023).
//
// Quick heuristics give a first placement. Then an exact search looks for a better one, many times over with different
// orders, mostly with few steps and now and then with more than ever, until a placement is as small as a lower bound, or
// time is up.
package plan

import (
	"fmt"
	"math"
)

// Buffer is something to place.
type Buffer struct {
	ID string
	// Lower and Upper bound its life, in any unit: it is there from Lower on and no more at Upper.
	Lower, Upper int64
	Size         uint64 // bytes
	Align        uint64 // its offset is a multiple of this; 0 and 1: any
	// Gaps are times within its life at which it needs less or nothing, in their order. They do not overlap.
	Gaps []Gap
}

// Gap is a time within a life at which only a part of a buffer is needed.
type Gap struct {
	Lower, Upper int64 // half open, as a life is
	// From and To bound the bytes of the buffer that are needed in that time: none when they are equal.
	From, To uint64
}

// sumMax bounds what all buffers together need, so that no sum overflows.
const sumMax = math.MaxInt64 / 4

// check says what is wrong with a buffer.
func (b *Buffer) check() error {
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

// checkAll says what is wrong with a set of buffers.
func checkAll(buffers []Buffer) error {
	sum := uint64(0)
	for i := range buffers {
		b := &buffers[i]
		if err := b.check(); err != nil {
			return err
		}
		if sum += b.Size + b.Align; sum > sumMax {
			return fmt.Errorf("buffer %.40q: all up to it are larger than %d bytes", b.ID, int64(sumMax))
		}
	}
	return nil
}
