package live

import (
	"reflect"
	"testing"

	"codeberg.org/gpumemtop/gpumemtop/internal/replay"
	"codeberg.org/gpumemtop/gpumemtop/internal/testkit/labtest"
	"codeberg.org/gpumemtop/gpumemtop/internal/wire"
)

// TestMapEqualsThatOfAReplay: the map equals that of a replay, record by record.
func TestMapEqualsThatOfAReplay(t *testing.T) {
	mapped := 0
	for file, reader := range labtest.Recordings(t, "../../replay/testdata") {
		c := replay.Configuration{Policy: reader.Header().Policy}
		m, want := NewMapper(c, 0), replay.NewSlabMapper(c, 0)
		tap := Start(m)
		labtest.EachRecord(t, reader, func(r *wire.Record) {
			tap.TakeRecord(r)
			want.PlayRecord(r)
		})
		tap.Close()
		got, w := m.LatestMap(), want.CurrentHeapMap()
		if w == nil {
			if got != nil {
				t.Errorf("%s: %+v, want none", file, got)
			}
			continue
		}
		mapped++
		if got == nil || !reflect.DeepEqual(got.Slabs, w.Slabs) || got.Total != w.Total || got.Since != 0 || got.Ended != "" {
			t.Errorf("%s: %+v, want %+v", file, got, w)
		}
	}
	if mapped == 0 {
		t.Error("no recording has slabs")
	}
}

// TestMapperGoesWhenItIsBehind: the mapper keeps its last map and gives the reason. After a new batch the map says
// since when it is complete.
func TestMapperGoesWhenItIsBehind(t *testing.T) {
	m := NewMapper(replay.Configuration{Policy: "slab"}, 0)
	m.Begin(replay.NewBatch(), 0)
	m.Publish(&Load{})
	if m.LatestMap() == nil || m.LatestMap().Since != 0 {
		t.Fatalf("%+v", m.LatestMap())
	}
	m.Play(&Part{Time: 7})
	m.Begin(replay.NewBatch(), 100)
	m.Publish(&Load{Final: true})
	if m.LatestMap().Since != 7 {
		t.Errorf("%+v, want that it lacks what was there at 7", m.LatestMap())
	}
	for i := range partsBehindMax + 1 {
		if goes := m.Play(&Part{Behind: true}); goes != (i < partsBehindMax) {
			t.Fatalf("part %d: %v", i, goes)
		}
	}
	if m.LatestMap().Ended != "could not keep up" {
		t.Errorf("%+v", m.LatestMap())
	}
}
