package minimalloc_test

import (
	"bytes"
	"encoding/csv"
	"io"
	"regexp"
	"strconv"
	"strings"
	"testing"

	"pgregory.net/rapid"

	"codeberg.org/gpumemtop/gpumemtop/internal/export/minimalloc"
	"codeberg.org/gpumemtop/gpumemtop/internal/heap"
	"codeberg.org/gpumemtop/gpumemtop/internal/recording"
	"codeberg.org/gpumemtop/gpumemtop/internal/stats"
	"codeberg.org/gpumemtop/gpumemtop/internal/testkit/exportrun"
	"codeberg.org/gpumemtop/gpumemtop/internal/testkit/randomrun"
	"codeberg.org/gpumemtop/gpumemtop/internal/wire"
)

// instance is what a solver reads.
type instance struct {
	buffers int
	changes map[uint64]int64 // bytes more from a rank on
	last    uint64           // upper
}

// peak returns the most that is needed at a time.
func (i *instance) peak() uint64 {
	var now, peak int64
	for rank := range i.last + 1 {
		now += i.changes[rank]
		peak = max(peak, now)
	}
	return uint64(peak)
}

// read reads an instance as strictly as MiniMalloc does.
func read(t rapid.TB, r io.Reader) instance {
	t.Helper()
	rows, err := csv.NewReader(r).ReadAll()
	if err != nil {
		t.Fatal(err)
	}
	if strings.Join(rows[0], ",") != "id,lower,upper,size" {
		t.Fatal("header", rows[0])
	}
	in := instance{changes: map[uint64]int64{}}
	seen := map[string]bool{}
	for _, row := range rows[1:] {
		var n [3]uint64
		for i := range n {
			if n[i], err = strconv.ParseUint(row[i+1], 10, 63); err != nil {
				t.Fatal(row, err)
			}
		}
		if seen[row[0]] || n[0] >= n[1] {
			t.Fatal("comes twice, or is needed never:", row)
		}
		seen[row[0]] = true
		in.buffers++
		in.changes[n[0]] += int64(n[2])
		in.changes[n[1]] -= int64(n[2])
		in.last = max(in.last, n[1])
	}
	return in
}

func write(t rapid.TB, src recording.Source, o minimalloc.Options) string {
	t.Helper()
	var b bytes.Buffer
	if err := minimalloc.Write(&b, src, o); err != nil {
		t.Fatal(err)
	}
	return b.String()
}

// TestInstanceOfAnyRunHasItsPeak recomputes the peak of any run from its instance alone.
func TestInstanceOfAnyRunHasItsPeak(t *testing.T) {
	rapid.Check(t, func(rt *rapid.T) {
		records := exportrun.DrawRun(rt)
		creates := 0
		for i := range records {
			if r := &records[i]; r.Kind == wire.KindCreate && r.Outcome != wire.OutcomeFailed && heap.HasMemory(r.AsCreate()) {
				creates++
			}
		}
		got := read(rt, strings.NewReader(write(rt, exportrun.NewTape(records), minimalloc.Options{})))
		if want := exportrun.SnapshotOf(records).Totals.PeakInUse; got.peak() != want || got.buffers != creates {
			rt.Errorf("peak %d of %d buffers, want %d of %d", got.peak(), got.buffers, want, creates)
		}
	})
}

// TestRandomPart takes the end of a run: what was there before counts from 0 on.
func TestRandomPart(t *testing.T) {
	rapid.Check(t, func(rt *rapid.T) {
		records := exportrun.DrawRun(rt)
		src, since := exportrun.DrawEndPart(rt, records)
		m := stats.New(stats.Options{})
		var most uint64
		for r := (wire.Record{}); src.Next(&r) == nil; {
			ends := r.Kind == wire.KindRelease || r.Kind == wire.KindExit
			if ends && r.Flags&wire.FlagCarried == 0 { // carried releases are of what was in the pool
				most = max(most, m.PublishSnapshot().Totals.InUse)
			}
			m.Apply(&r)
		}
		most = max(most, m.PublishSnapshot().Totals.InUse)
		got := read(rt, strings.NewReader(write(rt, src, minimalloc.Options{})))
		if got.peak() != most {
			rt.Errorf("from %d on peak %d, want %d", since, got.peak(), most)
		}
	})
}

func TestStory(t *testing.T) {
	var list []wire.Record
	add := func(kind wire.Kind, e wire.Event) {
		e.Kind = kind
		list = append(list, wire.Record{Process: 3, Event: e})
	}
	add(wire.KindCreate, wire.Event{Object: 1, Size: 5, Granted: 8, Flags: wire.FlagCarried})
	add(wire.KindCreate, wire.Event{Object: 6, Flags: wire.FlagCarried}) // of unknown size: MiniMalloc could not place it
	add(wire.KindCreate, wire.Event{Object: 7, Link: 7, Size: 5, Granted: 8, Outcome: wire.OutcomeHit, Flags: wire.FlagCarried})
	add(wire.KindRelease, wire.Event{Object: 7, Link: 7, Outcome: wire.OutcomeCached, Flags: wire.FlagCarried})
	add(wire.KindRelease, wire.Event{Object: 1})
	add(wire.KindCreate, wire.Event{Object: 2, Size: 5, Granted: 6, Tag: 4})
	add(wire.KindCreate, wire.Event{Object: 3, Size: 5, Granted: 7, Tag: 5})
	add(wire.KindRelease, wire.Event{Object: 2})
	if got, want := write(t, exportrun.NewTape(list), minimalloc.Options{}), `id,lower,upper,size
p3b1,0,1,8
p3b2,2,4,6
p3b3,3,5,7
`; got != want {
		t.Errorf("have\n%swant\n%s", got, want)
	}
	if got, want := write(t, exportrun.NewTape(list), minimalloc.Options{Tag: regexp.MustCompile("4$")}), `id,lower,upper,size
p3b2,0,1,6
`; got != want {
		t.Errorf("of tag 4 have\n%swant\n%s", got, want)
	}
	if got, want := write(t, &randomrun.Tape{Records: list[:1]}, minimalloc.Options{}), `id,lower,upper,size
p3b1,0,1,8
`; got != want {
		t.Errorf("of what was there have\n%swant\n%s", got, want)
	}
}

// TestRead makes sure that what checks instances is right about one that was worked out by hand.
func TestRead(t *testing.T) {
	in := read(t, strings.NewReader("id,lower,upper,size\na,0,4,5\nb,4,9,7\nc,3,5,2\n"))
	if in.buffers != 3 || in.peak() != 9 {
		t.Errorf("%d buffers, peak %d; want 3, 9", in.buffers, in.peak())
	}
}

// FuzzWrite gives it nonsense: every line is still one.
func FuzzWrite(f *testing.F) {
	line := regexp.MustCompile(`^p\d+b\d+,\d+,\d+,\d+$`)
	exportrun.FuzzExport(f, func(t *testing.T, src recording.Source, _ uint64) {
		for _, text := range strings.Split(strings.TrimSuffix(write(t, src, minimalloc.Options{}), "\n"), "\n")[1:] {
			if !line.MatchString(text) {
				t.Fatal(text)
			}
		}
	})
}

func BenchmarkWrite(b *testing.B) {
	exportrun.BenchExport(b, func(w io.Writer, src recording.Source) error { return minimalloc.Write(w, src, minimalloc.Options{}) })
}
