package allocator

import (
	"slices"

	"codeberg.org/gpumemtop/gpumemtop/internal/wire"
)

// This file is the part of the yard that asks for blocks and looks at what it gets.

var partSizes = [...]uint64{1, 255, 256, 257, 1000, 4096, 5000, 65536, 100_000, 262_144, 262_145, 400_000, 1 << 20, 17 << 20}

func (y *yard) decide() {
	req := Request{
		Size: partSizes[y.next()%len(partSizes)], Class: Class(1 + y.next()%3), Tag: Tag(y.next() % 3), Time: y.clock(),
	}
	req.Pinned = req.Class == 2
	if kind := y.next(); kind%8 != 0 {
		req.Align = alignment(req.Class)
	} else if kind > 200 {
		req.Heap = 1 << 20 << (kind % 4)
		y.heap = max(y.heap, req.Heap)
	}
	if y.next()%16 == 0 {
		req.Max = max(req.Size, 100_000)
	}
	if kind := y.next(); kind < 16 {
		req.Round = req.Size + uint64(kind)*100
	}
	decision, out := y.p.Decide(req, nil)
	y.pass(req.Time)
	y.letSome(out)
	if req.Round != 0 && decision.Size > req.Round {
		y.Fatalf("request %+v is rounded up to %+v", req, decision)
	}
	if decision.Size < req.Size || decision.Hit != (decision.Reason == wire.MissNone) {
		y.Fatalf("request %+v: %+v", req, decision)
	}
	if decision.Slab == 0 {
		y.decideWhole(req, decision)
	} else {
		y.decidePart(req, decision)
	}
}

func (y *yard) decideWhole(req Request, decision Decision) {
	b := y.blocks[decision.Block]
	if decision.Hit != (b != nil) || b != nil && (b.state != cached || b.class != req.Class || b.size != decision.Size) {
		y.Fatalf("request %+v: %+v, which is %+v", req, decision, b)
	}
	if b == nil {
		b = &yardBlock{block: decision.Block, size: decision.Size, class: req.Class, since: -1} // no block of the driver yet
		y.blocks[decision.Block] = b
	}
	b.state, b.wanted, b.passes = decided, req.Size, decision.Reason == wire.MissPolicy
	y.open = append(y.open, &opening{decision: decision, b: b})
}

func (y *yard) decidePart(req Request, decision Decision) {
	rounded := (req.Size + req.Align - 1) / req.Align * req.Align
	tightest, ok := y.fits(req.Class, rounded)
	s := y.slabs[decision.Slab]
	exact := y.p.PolicyName() == "slab" && !y.switches
	switch {
	case req.Align == 0 || y.closed[req.Class] || s != nil && s.former:
		y.Fatalf("request %+v cannot be a part", req)
	case decision.Hit == (decision.SlabSize != 0) || decision.Hit != (s != nil) || decision.SlabSize > 0 && req.Max > 0 && decision.SlabSize > req.Max:
		y.Fatalf("request %+v: %+v", req, decision)
	case exact && (decision.Hit != ok || decision.Size != rounded):
		y.Fatalf("request %+v: %+v, there is room: %v", req, decision, ok)
	}
	if s == nil {
		s = &yardSlab{block: decision.Slab, size: decision.SlabSize, class: req.Class, touched: make([]bool, decision.SlabSize/unit)}
		y.slabs[decision.Slab] = s
	}
	before := s.gaps()
	b := &yardBlock{
		block: decision.Block, slab: decision.Slab, offset: decision.Offset, size: decision.Size, wanted: req.Size, class: req.Class, state: decided,
	}
	y.place(s, b, req, decision)
	if exact && decision.Hit && !slices.Contains(before, tightest) {
		y.Fatalf("request %+v: %+v, a range of %d would have been tighter", req, decision, tightest)
	}
	s.parts = append(s.parts, b)
	y.open = append(y.open, &opening{decision: decision, b: b})
}

// place looks at where a sub-allocation is to be.
func (y *yard) place(s *yardSlab, b *yardBlock, req Request, decision Decision) {
	if s.class != req.Class || b.offset%req.Align != 0 || b.offset+b.size > s.size {
		y.Fatalf("request %+v: %+v in a slab of class %d with %d bytes", req, decision, s.class, s.size)
	}
	for _, x := range s.parts {
		if b.offset < x.offset+x.size && x.offset < b.offset+b.size {
			y.Fatalf("request %+v: %+v overlaps %+v", req, decision, x)
		}
	}
	fresh := true
	for i := b.offset / unit; i < (b.offset+b.size+unit-1)/unit; i++ {
		fresh = fresh && !s.touched[i]
		s.touched[i] = true
	}
	if decision.Fresh && !fresh || !decision.Fresh && fresh && !y.layouts {
		y.Fatalf("request %+v: %+v, unused before: %v", req, decision, fresh)
	}
}

// free returns all free ranges: those of slabs, and whole blocks.
func (y *yard) free() (list []uint64) {
	for _, s := range y.slabs {
		list = append(list, s.gaps()...)
	}
	for _, b := range y.blocks {
		if b.state == cached {
			list = append(list, b.size)
		}
	}
	return list
}

// fits reports whether some slab of a class has room, and how large the tightest is.
func (y *yard) fits(class Class, size uint64) (tightest uint64, ok bool) {
	for _, s := range y.slabs {
		if s.class != class {
			continue
		}
		for _, gap := range s.gaps() {
			if gap >= size && (!ok || gap < tightest) {
				tightest, ok = gap, true
			}
		}
	}
	return tightest, ok
}
