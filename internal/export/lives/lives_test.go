package lives_test

import (
	"regexp"
	"testing"

	"pgregory.net/rapid"

	"codeberg.org/gpumemtop/gpumemtop/internal/export/lives"
	"codeberg.org/gpumemtop/gpumemtop/internal/export/lives/draw"
	"codeberg.org/gpumemtop/gpumemtop/internal/life"
	"codeberg.org/gpumemtop/gpumemtop/internal/model"
	"codeberg.org/gpumemtop/gpumemtop/internal/wire"
)

// TestRunIsTheModels compares what all processes have in use with the model, record by record, over their ends.
func TestRunIsTheModels(t *testing.T) {
	rapid.Check(t, func(rt *rapid.T) {
		m, run := model.New(model.Options{}), lives.NewRun(nil)
		for i, r := range draw.Run(rt) {
			m.Apply(&r)
			run.Step(&r)
			if want := m.Publish().Totals.InUse; uint64(run.InUse) != want {
				rt.Fatalf("record %d, %v: %d in use, the model says %d", i, r.Kind, run.InUse, want)
			}
		}
	})
}

// A process that only says that it exits is gone a second later.
func TestRunGrace(t *testing.T) {
	run := lives.NewRun(nil)
	step := func(process uint32, time uint64, kind wire.Kind) {
		r := wire.Record{Process: process, Thread: 7}
		r.Time, r.Kind, r.Object, r.Size, r.Granted = time, kind, 1, 10, 10
		run.Step(&r)
	}
	step(1, 0, wire.KindCreate)
	step(2, 0, wire.KindCreate)
	step(1, 5, wire.KindExit)
	step(2, 900_000_000, wire.KindSync)
	if run.InUse != 20 {
		t.Errorf("%d in use while it exits, want 20", run.InUse)
	}
	step(2, 1_100_000_000, wire.KindSync)
	if run.InUse != 10 {
		t.Errorf("%d in use when it is gone, want 10", run.InUse)
	}
}

// Processes that end one after the other each go once.
func TestRunEnds(t *testing.T) {
	run := lives.NewRun(nil)
	step := func(process uint32, kind wire.Kind) {
		r := wire.Record{Process: process}
		r.Kind, r.Object, r.Size, r.Granted = kind, 1, 10, 10
		run.Step(&r)
	}
	const processes = 5
	for process := range uint32(processes) {
		step(process, wire.KindCreate)
	}
	for process := range uint32(processes - 1) {
		step(process, wire.KindExit)
		step(processes-1, wire.KindSync)
		if want := int64(10 * (processes - 1 - process)); run.InUse != want {
			t.Errorf("%d in use when %d processes are gone, want %d", run.InUse, process+1, want)
		}
	}
}

// bench is a fold with a layout beside it.
type bench struct {
	life.Watcher
	fold   *life.Fold
	layout *lives.Layout
	gone   []*lives.Range
}

func (b *bench) Begin(p *life.Process, o *life.Object) {
	b.layout.Place(p, o, o.Flags&wire.FlagPart != 0)
}

func (b *bench) End(*life.Process, *life.Object, life.How) {}

func (b *bench) Pool(p *life.Process, k *life.Block) {
	if k.State == life.Slab {
		b.layout.Slab(p, k)
	}
}

func (b *bench) Unpool(*life.Process, *life.Block, life.How) {}

func (b *bench) Gone(p *life.Process, k *life.Block) {
	if r := b.layout.Give(b.layout.Block(p, k.Number)); r != nil {
		b.gone = append(b.gone, r)
	}
}

func (b *bench) step(kind wire.Kind, object, link, size uint64) {
	r := wire.Record{Process: 1, Thread: 1}
	r.Kind, r.Object, r.Link, r.Size, r.Granted, r.Scope = kind, object, link, size, size, 1
	r.Outcome = wire.OutcomeHit
	if kind != wire.KindSlab && kind != wire.KindEvict {
		r.Flags = wire.FlagPart
	}
	if kind == wire.KindRelease {
		r.Granted, r.Outcome = 0, wire.OutcomeCached
	}
	b.fold.Step(&r)
}

func newBench() *bench {
	b := &bench{layout: lives.NewLayout()}
	b.fold = life.New(b)
	return b
}

func (b *bench) at(number uint64) *lives.Range { return b.layout.Block(b.fold.Process(1), number) }

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
	names := life.NewNames()
	r := wire.Record{Process: 1, Payload: []byte("create\t/src/a.c\t7\tm+0x1\n")}
	r.Kind, r.Tag = wire.KindSite, 1
	names.Add(&r)
	c := lives.NewChoice(names, regexp.MustCompile(`a\.c:7`))
	if !c.Has(1, 1) || c.Has(2, 1) || c.Has(1, 2) || !c.Has(1, 1) {
		t.Error("the pattern a.c:7 matches other than tag 1 of process 1")
	}
	if c := lives.NewChoice(names, nil); !c.Has(1, 2) {
		t.Error("no pattern matches not all")
	}
}

func TestFrameName(t *testing.T) {
	for want, frame := range map[string]model.Frame{
		"f":           {Function: "f", Module: "/lib/m.so"},
		"m.so+0x12":   {Module: "/lib/m.so", Offset: 0x12},
		"(unknown)":   {},
		"g<int>(x,y)": {Function: "g<int>(x,y)"},
	} {
		if got := lives.FrameName(&frame); got != want {
			t.Errorf("%+v: %q, want %q", frame, got, want)
		}
	}
}
