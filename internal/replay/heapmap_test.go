package replay

import (
	"testing"

	"codeberg.org/gpumemtop/gpumemtop/internal/stats"
	"codeberg.org/gpumemtop/gpumemtop/internal/testkit/labtest"
	"codeberg.org/gpumemtop/gpumemtop/internal/wire"
)

// TestMapIsTheRecordedOne: the program reported the number of free ranges of its slabs, and the largest. The map agrees
// after the call that made the program report.
func TestMapIsTheRecordedOne(t *testing.T) {
	reports := 0
	for file, reader := range labtest.Recordings(t, "testdata") {
		o := recorded(reader.Header())
		if o.Policy != "slab" {
			continue
		}
		s := NewSlabMapper(Configuration{o.Policy, o.Settings}, o.Capacity)
		var want wire.GaugeFields
		const patience = 2
		waits := 0 // records, 0: the map agreed
		labtest.EachRecord(t, reader, func(r *wire.Record) {
			s.PlayRecord(r)
			if r.Kind == wire.KindGauge {
				want, waits = r.AsGauge().Fields(), 1
				reports++
			}
			if waits == 0 || !ConcernsPolicy(&r.Event) && r.Kind != wire.KindGauge {
				return
			}
			free, holes, largest := uint64(0), uint64(0), uint64(0)
			m := s.CurrentHeapMap()
			for i := range m.Slabs {
				free += m.Slabs[i].FreeBytes()
				holes += uint64(m.Slabs[i].Holes)
				largest = max(largest, m.Slabs[i].Largest)
			}
			waits++
			switch {
			case free == want.Free && holes == want.Ranges && largest == want.Largest:
				waits = 0
			case waits > patience+1:
				t.Errorf("%s, %d: the map has %d bytes in %d ranges up to %d, the program %d in %d up to %d", file, r.Time,
					free, holes, largest, want.Free, want.Ranges, want.Largest)
				waits = 0
			}
		})
	}
	if reports < 10 {
		t.Errorf("%d reports, too few to mean anything", reports)
	}
}

// TestMapFollowsThePolicy: there is a map while the policy carves, and it shows since when it is complete.
func TestMapFollowsThePolicy(t *testing.T) {
	s := NewSlabMapper(Configuration{Policy: "futhark"}, 0)
	p := labtest.NewTape()
	p.AddServedCreate(1, 1, wire.OutcomeMiss, wire.MissCold)
	steps := []struct {
		policy string
		there  bool
	}{{"", false}, {"policy=slab", true}, {"policy=pow2", false}, {"policy=buddy", true}}
	for i, step := range steps {
		if step.policy != "" {
			p.Records = append(p.Records, wire.Record{Process: 1, Event: wire.Event{Kind: wire.KindLimit, Time: uint64(1000 * (i + 10))}, Payload: []byte(step.policy)})
		}
		for j := range p.Records {
			s.PlayRecord(&p.Records[j])
		}
		p.Records = nil
		if m := s.CurrentHeapMap(); (m != nil) != step.there || m != nil && m.Since != uint64(1000*(i+10)) {
			t.Errorf("%q: %+v", step.policy, m)
		}
	}
}

// TestTheMapIsBounded: the map keeps the most scattered slabs.
func TestTheMapIsBounded(t *testing.T) {
	for file, reader := range labtest.Recordings(t, "testdata") {
		o := recorded(reader.Header())
		s := NewSlabMapper(Configuration{o.Policy, o.Settings}, o.Capacity)
		labtest.EachRecord(t, reader, func(r *wire.Record) {
			s.PlayRecord(r)
			m := s.CurrentHeapMap()
			if m == nil {
				return
			}
			if len(m.Slabs) > stats.MappedSlabsMax || m.Total < uint64(len(m.Slabs)) {
				t.Fatalf("%s: %d slabs of %d", file, len(m.Slabs), m.Total)
			}
			for i := 1; i < len(m.Slabs); i++ {
				if m.Slabs[i].ScatteredBytes() > m.Slabs[i-1].ScatteredBytes() {
					t.Fatalf("%s: slab %d is worse than the one before", file, i)
				}
			}
		})
	}
}
