package arena

import (
	"cmp"
	"slices"
)

// cell is what a buffer needs in one section: its bytes from lo to hi.
type cell struct {
	section int32
	lo, hi  int64
}

// entry is a cell as the section sees it.
type entry struct {
	buffer   int32
	cell     int32 // index of the cell in the buffer's cells
	lo, size int64
}

// problem is a set of buffers cut into sections of time. Of all moments between two changes, only those at which the
// number of living buffers is greatest are sections: buffers that live together at another moment also live together in
// one of these.
type problem struct {
	exactSize []int64   // by buffer
	size      []int64   // by buffer; rounded up where no other buffer could use the rest
	align     []int64   // by buffer
	cells     [][]cell  // by buffer, in the order of time; none if a buffer needs no memory
	sections  [][]entry // by section
	total     int       // number of cells
	order     []int32   // buffers that have cells, by their first cell
	plain     bool      // no buffer has gaps
	unit      int64     // heights of placements without needless room are multiples of this, with rounded sizes
	step      int64     // the same with exact sizes
	common    int64     // greatest common divisor of all alignments
	pad       int64     // the most that a size was rounded up by
	load      int64     // the most bytes that are needed at a time
	bound     int64     // no arena is smaller: load, less the padding of the highest buffer
}

// cellsMax bounds the problem that is searched; larger ones are only placed by time. A cell takes 48 bytes, and 30 more
// for each worker. The workers together have at most workMax cells, so that a search fits 512 MiB.
const (
	cellsMax = 5 << 20
	workMax  = 2 * cellsMax
)

// newProblem cuts checked buffers into sections. It returns false if there are too many cells.
func newProblem(buffers []Buffer) (*problem, bool) {
	p := &problem{plain: true, cells: make([][]cell, len(buffers))}
	for i := range buffers {
		b := &buffers[i]
		p.plain = p.plain && len(b.Gaps) == 0
		p.align = append(p.align, int64(max(b.Align, 1)))
	}
	common := int64(0)
	for _, align := range p.align {
		common = gcd(common, align)
	}
	p.common = max(common, 1)
	all := cutAtGaps(buffers)
	for i := range buffers {
		size := int64(buffers[i].Size)
		if p.plain { // every offset is a multiple of common, also that of the buffer above
			size = roundUp(size, common)
		}
		p.exactSize, p.size = append(p.exactSize, int64(buffers[i].Size)), append(p.size, size)
		p.unit = gcd(gcd(p.unit, size), p.align[i])
		p.pad = max(p.pad, size-int64(buffers[i].Size))
	}
	if !p.plain { // a part of a buffer may have any size
		p.unit = 1
	}
	p.step = p.unit
	if p.pad > 0 {
		p.step = 1
	}
	changes := beginAndEndEvents(all)
	p.computeLoadAndBound(buffers, all, changes)
	return p, p.cutSections(all, changes)
}

// computeLoadAndBound gives the pieces the sizes of their buffers, and finds the load and the bound.
func (p *problem) computeLoadAndBound(buffers []Buffer, all []piece, changes []event) {
	load, exact := int64(0), p.pad == 0
	for _, e := range changes {
		q := &all[e.piece]
		if p.plain {
			q.hi = p.size[q.buffer]
		}
		if !e.begin {
			load -= q.hi - q.lo
			continue
		}
		load += q.hi - q.lo
		p.load = max(p.load, load)
		if exact {
			continue
		}
		p.bound = max(p.bound, load-p.pad)
	}
	if exact {
		p.bound = p.load
	}
	for _, q := range all {
		p.bound = max(p.bound, int64(buffers[q.buffer].Size))
	}
}

// cutSections finds the sections, and the cells of each piece.
func (p *problem) cutSections(all []piece, changes []event) bool {
	first := make([]int32, len(all))
	section, open := int32(-1), false
	for _, e := range changes {
		switch {
		case e.begin && !open:
			section, open = section+1, true
			first[e.piece] = section
		case e.begin:
			first[e.piece] = section
		default:
			open = false
			if p.total += int(section - first[e.piece] + 1); p.total > cellsMax {
				return false
			}
			q := &all[e.piece]
			for s := first[e.piece]; s <= section; s++ {
				p.cells[q.buffer] = append(p.cells[q.buffer], cell{s, q.lo, q.hi})
			}
		}
	}
	p.sections = make([][]entry, section+1)
	for b, cells := range p.cells {
		if len(cells) > 0 {
			p.order = append(p.order, int32(b))
		}
		for i, c := range cells {
			p.sections[c.section] = append(p.sections[c.section], entry{int32(b), int32(i), c.lo, c.hi - c.lo})
		}
	}
	slices.SortStableFunc(p.order, func(a, b int32) int { return int(p.firstSection(a) - p.firstSection(b)) })
	return true
}

// firstSection and lastSection return the sections in which a buffer begins and ends.
func (p *problem) firstSection(b int32) int32 { return p.cells[b][0].section }
func (p *problem) lastSection(b int32) int32  { return p.cells[b][len(p.cells[b])-1].section }

// piece is a rectangle of a buffer: a time, and the bytes that are needed in it.
type piece struct {
	buffer       int32
	lower, upper int64
	lo, hi       int64
}

// cutAtGaps cuts buffers at their gaps. A buffer without a size or a life has none.
func cutAtGaps(buffers []Buffer) []piece {
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

// event is the begin or the end of a piece.
type event struct {
	time  int64
	begin bool
	piece int32
}

// beginAndEndEvents returns the begins and ends in the order of time, ends before begins. If several pieces end together, the last
// comes first: a list of pieces by offset then shrinks at its end.
func beginAndEndEvents(all []piece) []event {
	list := make([]event, 0, 2*len(all))
	for i := range all {
		list = append(list, event{all[i].lower, true, int32(i)}, event{all[i].upper, false, int32(i)})
	}
	slices.SortFunc(list, func(a, b event) int {
		switch c := cmp.Compare(a.time, b.time); {
		case c != 0:
			return c
		case a.begin && b.begin:
			return cmp.Compare(a.piece, b.piece)
		case a.begin:
			return 1
		case b.begin:
			return -1
		default:
			return cmp.Compare(b.piece, a.piece)
		}
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
