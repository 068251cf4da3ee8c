package allocator

import (
	"slices"

	"codeberg.org/gpumemtop/gpumemtop/internal/wire"
)

// This file is the part of the yard that asks for blocks and looks at what it gets.

var partSizes = [...]uint64{1, 255, 256, 257, 1000, 4096, 5000, 65536, 100_000, 262_144, 262_145, 400_000, 1 << 20, 17 << 20}

func (y *yard) plan() {
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
	plan, out := y.p.Plan(req, nil)
	y.pass(req.Time)
	y.release(out, false, wire.EvictAge)
	if req.Round != 0 && plan.Size > req.Round {
		y.Fatalf("request %+v is rounded up to %+v", req, plan)
	}
	if plan.Size < req.Size || plan.Hit != (plan.Reason == wire.MissNone) {
		y.Fatalf("request %+v: %+v", req, plan)
	}
	if plan.Slab == 0 {
		y.planWhole(req, plan)
	} else {
		y.planPart(req, plan)
	}
}

func (y *yard) planWhole(req Request, plan Plan) {
	b := y.blocks[plan.Block]
	if plan.Hit != (b != nil) || b != nil && (b.state != cached || b.class != req.Class || b.size != plan.Size) {
		y.Fatalf("request %+v: %+v, which is %+v", req, plan, b)
	}
	if b == nil {
		b = &yardBlock{block: plan.Block, size: plan.Size, class: req.Class, since: -1} // no block of the driver yet
		y.blocks[plan.Block] = b
	}
	b.state, b.wanted, b.passes = planned, req.Size, plan.Reason == wire.MissPolicy
	y.open = append(y.open, &opening{plan: plan, b: b})
}

func (y *yard) planPart(req Request, plan Plan) {
	rounded := (req.Size + req.Align - 1) / req.Align * req.Align
	tightest, ok := y.fits(req.Class, rounded)
	s := y.slabs[plan.Slab]
	exact := y.p.Name() == "slab" && !y.switches
	switch {
	case req.Align == 0 || y.closed[req.Class] || s != nil && s.former:
		y.Fatalf("request %+v cannot be a part", req)
	case plan.Hit == (plan.SlabSize != 0) || plan.Hit != (s != nil) || plan.SlabSize > 0 && req.Max > 0 && plan.SlabSize > req.Max:
		y.Fatalf("request %+v: %+v", req, plan)
	case exact && (plan.Hit != ok || plan.Size != rounded):
		y.Fatalf("request %+v: %+v, there is room: %v", req, plan, ok)
	}
	if s == nil {
		s = &yardSlab{block: plan.Slab, size: plan.SlabSize, class: req.Class, touched: make([]bool, plan.SlabSize/unit)}
		y.slabs[plan.Slab] = s
	}
	before := s.gaps()
	b := &yardBlock{
		block: plan.Block, slab: plan.Slab, offset: plan.Offset, size: plan.Size, wanted: req.Size, class: req.Class, state: planned,
	}
	y.place(s, b, req, plan)
	if exact && plan.Hit && !slices.Contains(before, tightest) {
		y.Fatalf("request %+v: %+v, a range of %d would have been tighter", req, plan, tightest)
	}
	s.parts = append(s.parts, b)
	y.open = append(y.open, &opening{plan: plan, b: b})
}

// place looks at where a sub-allocation is to be.
func (y *yard) place(s *yardSlab, b *yardBlock, req Request, plan Plan) {
	if s.class != req.Class || b.offset%req.Align != 0 || b.offset+b.size > s.size {
		y.Fatalf("request %+v: %+v in a slab of class %d with %d bytes", req, plan, s.class, s.size)
	}
	for _, x := range s.parts {
		if b.offset < x.offset+x.size && x.offset < b.offset+b.size {
			y.Fatalf("request %+v: %+v overlaps %+v", req, plan, x)
		}
	}
	fresh := true
	for i := b.offset / unit; i < (b.offset+b.size+unit-1)/unit; i++ {
		fresh = fresh && !s.touched[i]
		s.touched[i] = true
	}
	if plan.Fresh && !fresh || !plan.Fresh && fresh && !y.layouts {
		y.Fatalf("request %+v: %+v, unused before: %v", req, plan, fresh)
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
