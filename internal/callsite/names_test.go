package callsite

import (
	"fmt"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"codeberg.org/gpumemtop/gpumemtop/internal/recording"
	"codeberg.org/gpumemtop/gpumemtop/internal/wire"
)

// TestNamesFromDefinitions: they are the same as those from all records, and reading starts at the first afterwards.
func TestNamesFromDefinitions(t *testing.T) {
	path := filepath.Join(t.TempDir(), "x.gmt")
	w, err := recording.Create(path, recording.Header{}, false)
	if err != nil {
		t.Fatal(err)
	}
	put := func(e wire.Event, payload string) {
		r := wire.Record{Process: 1 + e.Tag%3, Event: e, Payload: []byte(payload)}
		r.Size = uint64(len(payload))
		if err := w.Append(&r); err != nil {
			t.Fatal(err)
		}
	}
	for i := range uint32(200) {
		put(wire.Event{Kind: wire.KindProcess, Tag: i, Object: uint64(i)}, fmt.Sprintf("blur\x00%d\x00", i))
		put(wire.Event{Kind: wire.KindDevice, Tag: i, Object: uint64(i), Granted: 1 << 30}, "card\x00driver")
		put(wire.Event{Kind: wire.KindKernel, Tag: i, Object: uint64(i)}, fmt.Sprintf("kernel %d", i))
		put(wire.Event{Kind: wire.KindTag, Tag: i, Op: uint8(wire.TagsSize), Link: uint64(i)}, "")
		put(wire.Event{Kind: wire.KindCreate, Tag: i, Object: uint64(i)}, "")
		if i%2 == 0 {
			put(wire.Event{Kind: wire.KindSite, Tag: i}, fmt.Sprintf("f%d\tblur.c\t%d\tblur+0x10\n", i, i))
		}
		if i%7 == 0 {
			if err := w.Flush(); err != nil {
				t.Fatal(err)
			}
		}
	}
	if err := w.Close(recording.Footer{}); err != nil {
		t.Fatal(err)
	}
	r, err := recording.Open(path)
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = r.Close() }()
	want, err := ReadNames(struct{ recording.Source }{r}) // which has no Definitions
	if err != nil {
		t.Fatal(err)
	}
	var first wire.Record
	for range 5 {
		if err := r.Next(&first); err != nil {
			t.Fatal(err)
		}
	}
	got, err := ReadNames(r)
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(want.processes, got.processes, cmp.AllowUnexported(ProcessNames{}, Kernels{})); diff != "" || len(got.processes) != 3 {
		t.Errorf("from all records, and from definitions:\n%s", diff)
	}
	if err := r.Next(&first); err != nil || first.Kind != wire.KindProcess || first.Tag != 0 {
		t.Errorf("reading goes on at %v of %d, %v", first.Kind, first.Tag, err)
	}
	if name := got.Process(1).Site(6).Name; name != "blur.c:6 f6" {
		t.Errorf("site %q", name)
	}
}

func TestKernelNamesAreBounded(t *testing.T) {
	var k Kernels
	long := strings.Repeat("ü", 256)
	for n := uint64(1); n <= 3*kernelsMax; n++ {
		k.AddKernel(n, []byte(long))
	}
	if len(k.names) != kernelsMax || k.Name(1) != "" {
		t.Errorf("%d names", len(k.names))
	}
	if got := k.Name(3 * kernelsMax); got != long[:256] {
		t.Errorf("the latest is called %q", got)
	}
}
