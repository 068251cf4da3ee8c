package lab

import (
	"slices"
	"testing"

	"codeberg.org/gpumemtop/gpumemtop/internal/wire"
)

// TestDemands: what a program wants is told in its order, whatever became of it in the recording.
func TestDemands(t *testing.T) {
	p := newTape()
	p.create(1, 1000)
	p.create(2, 2000)
	p.release(1, wire.OutcomeCached, 0)
	p.release(2, wire.OutcomeCooling, 0)
	p.create(3, 3000)
	p.add(wire.Event{Kind: wire.KindCooled, Link: 2})
	p.release(3, wire.OutcomeRefused, 0)
	p.add(wire.Event{Kind: wire.KindEvict, Link: 3, Reason: uint8(wire.EvictState)})
	p.add(wire.Event{Kind: wire.KindContext, Op: uint8(wire.LifeEnd), Object: scope})
	c := NewChorus()
	for i := range p.records {
		c.Read(&p.records[i])
	}
	type told struct {
		kind DemandKind
		size uint64 // of the request, or of what the buffer was asked for with
	}
	var got []told
	sizes := map[uint32]uint64{}
	c.Demands(func(d *Demand) {
		size := d.Request.Size
		switch d.Kind {
		case Requested:
			sizes[d.Buffer] = size
			if d.Request.Max != 1<<28 || d.Request.Align != 128 || d.Time == 0 {
				t.Errorf("request %+v", d)
			}
		case Freed, Spoiled:
			size = sizes[d.Buffer]
		}
		got = append(got, told{d.Kind, size})
	})
	want := []told{
		{Requested, 1000}, {Requested, 2000}, {Freed, 1000}, {Requested, 3000}, {Freed, 2000}, {Spoiled, 3000}, {Dropped, 0},
	}
	if !slices.Equal(got, want) {
		t.Errorf("%v, want %v", got, want)
	}
	c.Clear()
	c.Demands(func(d *Demand) { t.Errorf("after the batch: %+v", d) })
}
