package recording

import (
	"bytes"
	"errors"
	"path/filepath"
	"slices"
	"testing"

	"codeberg.org/gpumemtop/gpumemtop/internal/wire"
)

// failing is a source that fails after its records.
type failing struct {
	Source
	err error
}

func (f failing) Next(r *wire.Record) error {
	if err := f.Source.Next(r); err != nil {
		return f.err
	}
	return nil
}

// named returns records, every tenth with a payload.
func named(n int) []wire.Record {
	list := sample(n)
	for i := 0; i < n; i += 10 {
		list[i].Event = wire.Event{Kind: wire.KindTag, Time: list[i].Time, Size: uint64(i % 300)}
		list[i].Payload = bytes.Repeat([]byte{byte(i)}, i%300)
	}
	return list
}

// TestReadingAhead: an iteration has the records of Next, their payloads stay while a batch is used, and the error comes last. The
// source can be used again afterwards, also after an iteration that ended early.
func TestReadingAhead(t *testing.T) {
	path := filepath.Join(t.TempDir(), "a.gmt")
	write(t, path, named(5*batchRecords+7), 1000)
	r := opened(t, path)
	want := readAll(t, r)
	broken := errors.New("broken")
	for range 2 {
		var got []wire.Record
		for batch, err := range RecordBatches(failing{r, broken}) {
			if err != nil {
				if !errors.Is(err, broken) || len(got) != len(want) {
					t.Fatalf("%v after %d records", err, len(got))
				}
				break
			}
			for i := range batch {
				got = append(got, batch[i])
				got[len(got)-1].Payload = bytes.Clone(batch[i].Payload)
			}
		}
		equal := func(a, b wire.Record) bool {
			return a.Event == b.Event && a.Process == b.Process && a.Thread == b.Thread && bytes.Equal(a.Payload, b.Payload)
		}
		if !slices.EqualFunc(got, want, equal) {
			t.Fatalf("%d records differ from the %d of Next", len(got), len(want))
		}
		for record, err := range Records(r) {
			if err != nil || record.Kind == wire.KindTag {
				break
			}
		}
	}
	if err := r.Rewind(); err != nil || len(readAll(t, r)) != len(want) {
		t.Error("the source cannot be read again", err)
	}
}
