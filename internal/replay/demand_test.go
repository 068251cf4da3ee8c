package replay

import (
	"slices"
	"testing"

	"codeberg.org/gpumemtop/gpumemtop/internal/testkit/labtest"
	"codeberg.org/gpumemtop/gpumemtop/internal/wire"
)

// TestDemandsComeInTheProgramsOrder: demands come in the program's order, however they were served in the recording.
func TestDemandsComeInTheProgramsOrder(t *testing.T) {
	p := labtest.NewTape()
	p.AddCreate(1, 1000)
	p.AddCreate(2, 2000)
	p.AddRelease(1, wire.OutcomeCached)
	p.AddRelease(2, wire.OutcomeCooling)
	p.AddCreate(3, 3000)
	p.AddCooled(2, 2000)
	p.AddRelease(3, wire.OutcomeRefused)
	p.AddEvict(3, 3000, wire.EvictState)
	p.EndContext(labtest.Scope)
	c := NewBatch()
	for i := range p.Records {
		c.ReadRecord(&p.Records[i])
	}
	type demand struct {
		kind DemandKind
		size uint64 // of the request, or of what the buffer was asked for with
	}
	var got []demand
	sizes := map[uint32]uint64{}
	c.EachReadDemand(func(d *Demand) {
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
		got = append(got, demand{d.Kind, size})
	})
	want := []demand{
		{Requested, 1000}, {Requested, 2000}, {Freed, 1000}, {Requested, 3000}, {Freed, 2000}, {Spoiled, 3000}, {Dropped, 0},
	}
	if !slices.Equal(got, want) {
		t.Errorf("%v, want %v", got, want)
	}
	c.ForgetReadSteps()
	c.EachReadDemand(func(d *Demand) { t.Errorf("after the batch: %+v", d) })
}
