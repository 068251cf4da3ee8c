package tables_test

import (
	"testing"

	"codeberg.org/gpumemtop/gpumemtop/internal/export/tables"
	"codeberg.org/gpumemtop/gpumemtop/internal/testkit/randomrun"
	"codeberg.org/gpumemtop/gpumemtop/internal/wire"
)

func TestTransfers(t *testing.T) {
	var records []wire.Record
	put := func(e wire.Event, payload string) {
		if e.Time == 0 {
			e.Time = randomrun.Start + uint64(len(records))*1000
		}
		r := wire.Record{Event: e, Process: 1, Thread: 11, Payload: []byte(payload)}
		if payload != "" {
			r.Size = uint64(len(payload))
		}
		records = append(records, r)
	}
	put(wire.Event{Kind: wire.KindSite, Tag: 1}, "make\t/a.c\t3\tapp+0x1\n")
	put(wire.Event{Kind: wire.KindSite, Tag: 2}, "send\t/a.c\t9\tapp+0x2\n")
	put(wire.CreateFields{Object: 1, Requested: 100, Granted: 100, Tag: 1}.Event(), "")
	const at = randomrun.Start + 50_000
	put(wire.TransferFields{Time: at, Site: 2, Pinned: true, Pages: 16, Cold: 4, Hashed: 60, Hash: 1 << 63}.Event(), "")
	put(wire.UseFields{Time: at, Command: wire.CommandWrite, Writes: true, Object: 1, Bytes: 60, Offset: 8, Tag: 1, Duration: 700}.Event(), "")
	put(wire.UseFields{Time: at + 1, Command: wire.CommandCopy, Reads: true, Object: 1, Bytes: 20, Tag: 2}.Event(), "")
	put(wire.UseFields{Time: at + 1, Command: wire.CommandCopy, Writes: true, Object: 1, Bytes: 20, Tag: 2}.Event(), "")
	put(wire.UseFields{Time: at + 2, Command: wire.CommandRead, Reads: true, Object: 1, Bytes: 30, Tag: 1, Scattered: true}.Event(), "")
	put(wire.TransferFields{Time: at + 2, Profiled: wire.CommandRead, Site: 2, Moved: 30, Took: 400}.Event(), "")
	put(wire.UseFields{Time: at + 3, Command: wire.CommandKernel, Object: 1, Bytes: 100, Tag: 1}.Event(), "")

	src := &randomrun.Tape{Records: records}
	run, err := tables.SurveySource(src, options())
	if err != nil {
		t.Fatal(err)
	}
	var rows []tables.Transfer
	var toDevice, toHost int64
	err = run.MakeRows(src, nil, tables.Sink{
		Transfer: func(_ uint32, r *tables.Transfer) error { rows = append(rows, *r); return nil },
		Sample: func(_ uint32, r *tables.Sample) error {
			toDevice, toHost = toDevice+r.ToDevice, toHost+r.ToHost
			return nil
		},
	})
	if err != nil || len(rows) != 4 || toDevice != 60 || toHost != 30 {
		t.Fatalf("%+v, %d and %d, %v", rows, toDevice, toHost, err)
	}
	w := &rows[0]
	if w.Command != "write" || w.Direction != "to device" || w.Site != "a.c:9 send" || w.MemorySite != "a.c:3 make" || w.Host != "pinned" ||
		*w.Offset != 8 || *w.Duration != 700 || *w.Pages != 16 || *w.Cold != 4 || *w.Hashed != 60 || *w.Hash >= 0 {
		t.Errorf("%+v", w)
	}
	if c := &rows[1]; c.Direction != "within" || c.Site != "a.c:9 send" || c.Host != "" || c.Duration != nil {
		t.Errorf("%+v", c)
	}
	if r := &rows[3]; r.Command != "read" || r.Direction != "to host" || r.Site != "a.c:9 send" || *r.Profiled != 400 || *r.ProfiledBytes != 30 || r.Bytes != 0 {
		t.Errorf("%+v", r)
	}
	if r := &rows[2]; r.Site != "" || r.MemorySite != "a.c:3 make" || r.Offset != nil || r.Profiled != nil {
		t.Errorf("%+v", r)
	}
}
