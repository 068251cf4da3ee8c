package common_test

import (
	"regexp"
	"testing"

	"codeberg.org/gpumemtop/gpumemtop/internal/callsite"
	"codeberg.org/gpumemtop/gpumemtop/internal/export/common"
	"codeberg.org/gpumemtop/gpumemtop/internal/heap"
	"codeberg.org/gpumemtop/gpumemtop/internal/wire"
)

// bench is a heap with a layout that follows it.
type bench struct {
	heap.Base
	heap   *heap.Heap
	layout *common.Layout
	gone   []*common.Range
}

func (b *bench) ObjectAllocated(p *heap.Process, o *heap.Object, _ *heap.Block) {
	b.layout.PlaceObject(p, o, o.SubAllocation)
}

func (b *bench) BlockPooled(p *heap.Process, k *heap.Block) {
	if k.State == heap.Slab {
		b.layout.PlaceSlab(p, k)
	}
}

func (b *bench) BlockGone(p *heap.Process, k *heap.Block) {
	if r := b.layout.FreeRange(b.layout.RangeOfBlock(p, k.ID)); r != nil {
		b.gone = append(b.gone, r)
	}
}

func (b *bench) step(kind wire.Kind, object, link, size uint64) {
	r := wire.Record{Process: 1, Thread: 1}
	r.Kind, r.Object, r.Link, r.Size, r.Granted, r.Scope = kind, object, link, size, size, 1
	r.Outcome = wire.OutcomeHit
	if kind != wire.KindSlab && kind != wire.KindEvict {
		r.Flags = wire.FlagSubAlloc
	}
	if kind == wire.KindRelease {
		r.Granted, r.Outcome = 0, wire.OutcomeCached
	}
	b.heap.Apply(&r)
}

func newBench() *bench {
	b := &bench{layout: common.NewLayout()}
	b.heap = heap.New(heap.Options{}, b)
	return b
}

func (b *bench) at(number uint64) *common.Range {
	return b.layout.RangeOfBlock(b.heap.Process(1), number)
}

// A slab that goes while parts are in ours takes an empty one's place.
func TestSlabsChangePlaces(t *testing.T) {
	b := newBench()
	b.step(wire.KindSlab, 0, 1, 1000)
	b.step(wire.KindSlab, 0, 2, 1000)
	one, two := b.at(1), b.at(2)
	b.step(wire.KindCreate, 10, 10, 600)
	part := b.at(10)
	if part.Slab != one {
		t.Fatalf("the part lies at %d in %v, want in %v", part.Addr, part.Slab, one)
	}
	b.step(wire.KindEvict, 0, 1, 1000)
	if len(b.gone) != 1 || b.gone[0] != two {
		t.Fatalf("gone: %v, want %v", b.gone, two)
	}
	b.step(wire.KindRelease, 10, 10, 0)
	b.step(wire.KindEvict, 0, 2, 1000)
	if len(b.gone) != 2 || b.gone[1] != one {
		t.Errorf("gone: %v, want %v second", b.gone, one)
	}
}

// Without an empty one it stays until the last of the parts has gone, and takes no more.
func TestSlabLingers(t *testing.T) {
	b := newBench()
	b.step(wire.KindSlab, 0, 1, 1000)
	one := b.at(1)
	b.step(wire.KindCreate, 10, 10, 400)
	b.step(wire.KindCreate, 11, 11, 400)
	b.step(wire.KindEvict, 0, 1, 1000)
	if len(b.gone) != 0 || !one.Lingering {
		t.Fatalf("gone: %v; lingers: %v", b.gone, one.Lingering)
	}
	b.step(wire.KindCreate, 12, 12, 100)
	if r := b.at(12); r.Slab != nil || !r.Outside || r.Addr < one.Addr+1000 && one.Addr < r.Addr+100 {
		t.Errorf("a new part lies at %+v", r)
	}
	b.step(wire.KindRelease, 10, 10, 0)
	if len(b.gone) != 0 {
		t.Errorf("gone with a part in it: %v", b.gone)
	}
	b.step(wire.KindRelease, 11, 11, 0)
	if len(b.gone) != 1 || b.gone[0] != one {
		t.Errorf("gone: %v, want %v", b.gone, one)
	}
}

// A part that fits in no gap lies outside; gaps that meet become one.
func TestPartsOutsideAndGapsMeet(t *testing.T) {
	b := newBench()
	b.step(wire.KindSlab, 0, 1, 1000)
	for number := range uint64(4) {
		b.step(wire.KindCreate, 10+number, 10+number, 250)
	}
	b.step(wire.KindRelease, 10, 10, 0)
	b.step(wire.KindRelease, 12, 12, 0)
	b.step(wire.KindCreate, 20, 20, 300)
	if r := b.at(20); !r.Outside {
		t.Errorf("500 are free in two gaps, and a part of 300 lies at %+v", r)
	}
	b.step(wire.KindRelease, 11, 11, 0)
	b.step(wire.KindCreate, 21, 21, 750)
	if r, slab := b.at(21), b.at(1); r.Outside || r.Addr != slab.Addr {
		t.Errorf("three gaps that meet do not hold a part of 750: %+v", r)
	}
}

func TestChoice(t *testing.T) {
	names := callsite.NewNames()
	r := wire.Record{Process: 1, Payload: []byte("create\t/src/a.c\t7\tm+0x1\n")}
	r.Kind, r.Tag = wire.KindSite, 1
	names.AddRecord(&r)
	c := common.ChooseSites(names, regexp.MustCompile(`a\.c:7`))
	if !c.IncludesSite(1, 1) || c.IncludesSite(2, 1) || c.IncludesSite(1, 2) || !c.IncludesSite(1, 1) {
		t.Error("the pattern a.c:7 matches other than tag 1 of process 1")
	}
	if c := common.ChooseSites(names, nil); !c.IncludesSite(1, 2) {
		t.Error("no pattern matches not all")
	}
}

func TestFrameName(t *testing.T) {
	for want, frame := range map[string]callsite.Frame{
		"f":           {Function: "f", Module: "/lib/m.so"},
		"m.so+0x12":   {Module: "/lib/m.so", Offset: 0x12},
		"(unknown)":   {},
		"g<int>(x,y)": {Function: "g<int>(x,y)"},
	} {
		if got := common.FrameName(&frame); got != want {
			t.Errorf("%+v: %q, want %q", frame, got, want)
		}
	}
}
