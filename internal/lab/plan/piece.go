package plan

import (
	"cmp"
	"slices"
)

// piece is a rectangle of a buffer: a time and the bytes that are needed in it.
type piece struct {
	buffer       int32
	lower, upper int64
	lo, hi       int64
}

// pieces cuts buffers at their gaps. Nothing is left of one without a size or a time.
func pieces(buffers []Buffer) []piece {
	var all []piece
	for i := range buffers {
		b := &buffers[i]
		add := func(lower, upper int64, lo, hi uint64) {
			if lower < upper && lo < hi {
				all = append(all, piece{int32(i), lower, upper, int64(lo), int64(hi)})
			}
		}
		from := b.Lower
		for _, g := range b.Gaps {
			add(from, g.Lower, 0, b.Size)
			add(g.Lower, g.Upper, g.From, g.To)
			from = g.Upper
		}
		add(from, b.Upper, 0, b.Size)
	}
	return all
}

// event is the beginning or the end of a piece.
type event struct {
	time  int64
	begin bool
	piece int32
}

// events gives the beginnings and ends in the order of time, ends before beginnings.
func events(all []piece) []event {
	list := make([]event, 0, 2*len(all))
	for i := range all {
		list = append(list, event{all[i].lower, true, int32(i)}, event{all[i].upper, false, int32(i)})
	}
	slices.SortFunc(list, func(a, b event) int {
		if c := cmp.Compare(a.time, b.time); c != 0 || a.begin == b.begin {
			return cmp.Or(c, cmp.Compare(a.piece, b.piece))
		}
		if a.begin {
			return 1
		}
		return -1
	})
	return list
}

func roundUp(n, to int64) int64 {
	if rest := n % to; rest != 0 {
		n += to - rest
	}
	return n
}

func gcd(a, b int64) int64 {
	for b != 0 {
		a, b = b, a%b
	}
	return a
}
