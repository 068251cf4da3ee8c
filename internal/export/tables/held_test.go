package tables_test

import (
	"testing"

	"codeberg.org/gpumemtop/gpumemtop/internal/export/tables"
	"codeberg.org/gpumemtop/gpumemtop/internal/testkit/randomrun"
	"codeberg.org/gpumemtop/gpumemtop/internal/wire"
)

func TestHeld(t *testing.T) {
	site := wire.Record{Event: wire.Event{Time: randomrun.Start, Kind: wire.KindSite, Tag: 1}, Process: 1, Payload: []byte("run\t/a.c\t3\tapp+0x1\n")}
	counts := wire.ObjectFields{Time: randomrun.Start + 9, Held: wire.HeldEvent, Tag: 1, Created: 5, Released: 3, Most: 4}
	src := &randomrun.Tape{Records: []wire.Record{site, {Event: counts.Event(), Process: 1}}}
	run, err := tables.SurveySource(src, options())
	if err != nil {
		t.Fatal(err)
	}
	var rows []tables.Held
	err = run.MakeRows(src, nil, tables.Sink{Held: func(_ uint32, r *tables.Held) error { rows = append(rows, *r); return nil }})
	if err != nil || len(rows) != 1 {
		t.Fatalf("%+v, %v", rows, err)
	}
	if r := rows[0]; r.Type != "event" || r.Site != "a.c:3 run" || r.Created != 5 || r.Released != 3 || r.Live != 2 || r.Most != 4 {
		t.Errorf("%+v", r)
	}
}
