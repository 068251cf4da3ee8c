package rmm_test

import (
	"bytes"
	"fmt"
	"io"
	"regexp"
	"strconv"
	"strings"
	"testing"
	"time"

	"pgregory.net/rapid"

	"codeberg.org/gpumemtop/gpumemtop/internal/export/rmm"
	"codeberg.org/gpumemtop/gpumemtop/internal/heap"
	"codeberg.org/gpumemtop/gpumemtop/internal/recording"
	"codeberg.org/gpumemtop/gpumemtop/internal/stats"
	"codeberg.org/gpumemtop/gpumemtop/internal/testkit/exportrun"
	"codeberg.org/gpumemtop/gpumemtop/internal/testkit/records"
	"codeberg.org/gpumemtop/gpumemtop/internal/wire"
)

// line is how the real logger writes (spdlog's pattern "%t,%H:%M:%S.%f,%v" before "action,%p,%zu,stream").
var line = regexp.MustCompile(`^(\d+),([01]\d|2[0-3]):[0-5]\d:[0-5]\d\.\d{6},(allocate|free|allocate failure),(0x[0-9a-f]+|\(nil\)),(\d+),0$`)

// log is what a reader knows of a log at its end.
type log struct {
	live              map[uint64]uint64 // sizes by address
	inUse, peak       uint64
	allocates, failed int
}

// read reads a log, as strictly as RMM's replay must have it: what is freed was allocated, with the same size, and what
// is allocated overlaps nothing that is.
func read(t rapid.TB, text string) log {
	t.Helper()
	l := log{live: map[uint64]uint64{}}
	lines := strings.Split(strings.TrimSuffix(text, "\n"), "\n")
	if lines[0] != "Thread,Time,Action,Pointer,Size,Stream" {
		t.Fatal("header", lines[0])
	}
	for _, text := range lines[1:] {
		m := line.FindStringSubmatch(text)
		if m == nil {
			t.Fatal("no line of RMM:", text)
		}
		addr, _ := strconv.ParseUint(strings.TrimPrefix(m[4], "0x"), 16, 64)
		size, _ := strconv.ParseUint(m[5], 10, 64)
		switch m[3] {
		case "allocate":
			l.allocates++
			for other, length := range l.live {
				if other < addr+size && addr < other+length || other == addr {
					t.Fatal(text, "overlaps", other, length)
				}
			}
			l.live[addr] = size
			l.inUse += size
			l.peak = max(l.peak, l.inUse)
		case "free":
			if had, ok := l.live[addr]; !ok || had != size {
				t.Fatal(text, "had", had, ok)
			}
			delete(l.live, addr)
			l.inUse -= size
		default:
			l.failed++
			if m[4] != "(nil)" {
				t.Fatal(text)
			}
		}
	}
	return l
}

func write(t rapid.TB, src recording.Source, o rmm.Options) string {
	t.Helper()
	o.Header = recording.Header{ClockNS: exportrun.Origin, Created: time.Date(2026, 5, 4, 23, 59, 59, 999_999_000, time.UTC)}
	var b bytes.Buffer
	if err := rmm.WriteLog(&b, src, o); err != nil {
		t.Fatal(err)
	}
	return b.String()
}

// owned counts the creates of records that own memory, and those that failed.
func owned(records []wire.Record) (creates, failed int) {
	for i := range records {
		switch r := &records[i]; {
		case r.Kind != wire.KindCreate || !heap.HasMemory(r.AsCreate()):
		case r.Outcome == wire.OutcomeFailed:
			failed++
		default:
			creates++
		}
	}
	return creates, failed
}

// TestLogOfAnyRunHasItsFigures recomputes the figures of any run from its log alone.
func TestLogOfAnyRunHasItsFigures(t *testing.T) {
	rapid.Check(t, func(rt *rapid.T) {
		records := exportrun.DrawRun(rt)
		want := exportrun.SnapshotOf(records).Totals
		creates, failed := owned(records)
		got := read(rt, write(rt, exportrun.NewTape(records), rmm.Options{}))
		if got.inUse != want.Requested || got.peak != want.PeakRequested || got.allocates != creates || got.failed != failed {
			rt.Errorf("%d in use, peak %d, %d allocates, %d failed; want %d, %d, %d, %d", got.inUse, got.peak, got.allocates,
				got.failed, want.Requested, want.PeakRequested, creates, failed)
		}
	})
}

// TestRandomPart takes the end of a run: what was there before is allocated first, and no more.
func TestRandomPart(t *testing.T) {
	rapid.Check(t, func(rt *rapid.T) {
		records := exportrun.DrawRun(rt)
		src, _ := exportrun.DrawEndPart(rt, records)
		got := read(rt, write(rt, src, rmm.Options{}))
		m := stats.New(stats.Options{})
		if err := src.Rewind(); err != nil {
			rt.Fatal(err)
		}
		for r := (wire.Record{}); src.Next(&r) == nil; {
			m.Apply(&r)
		}
		if want := m.PublishSnapshot().Totals.Requested; got.inUse != want {
			rt.Errorf("%d in use, want %d", got.inUse, want)
		}
	})
}

func story() []wire.Record {
	var list []wire.Record
	add := func(us uint64, kind wire.Kind, e wire.Event) {
		e.Time, e.Kind = exportrun.Origin+us, kind
		list = append(list, wire.Record{Process: 1, Thread: 77, Event: e})
	}
	add(0, wire.KindCreate, wire.Event{Object: 1, Link: 1, Size: 100, Granted: 128, Outcome: wire.OutcomeMiss, Tag: 1})
	add(1000, wire.KindCreate, wire.Event{Object: 2, Size: 70, Granted: 70, Tag: 2})
	add(2000, wire.KindCreate, wire.Event{Size: 9000, Outcome: wire.OutcomeFailed, Status: -4, Tag: 2})
	add(3000, wire.KindRelease, wire.Event{Object: 1, Link: 1, Outcome: wire.OutcomeCached})
	add(4000, wire.KindCreate, wire.Event{Object: 3, Link: 1, Size: 90, Granted: 128, Outcome: wire.OutcomeHit, Tag: 1})
	return list
}

func TestStory(t *testing.T) {
	const want = `Thread,Time,Action,Pointer,Size,Stream
77,23:59:59.999999,allocate,0x100000000,100,0
77,00:00:00.000000,allocate,0x100000200,70,0
77,00:00:00.000001,allocate failure,(nil),9000,0
77,00:00:00.000002,free,0x100000000,100,0
77,00:00:00.000003,allocate,0x100000000,90,0
`
	if got := write(t, exportrun.NewTape(story()), rmm.Options{}); got != want {
		t.Errorf("have\n%swant\n%s", got, want)
	}
	got := write(t, exportrun.NewTape(story()), rmm.Options{Tag: regexp.MustCompile("tag 2")})
	if strings.Count(got, "\n") != 3 || !strings.Contains(got, ",70,0\n") || !strings.Contains(got, "failure") {
		t.Errorf("of tag 2:\n%s", got)
	}
}

// TestAddressesComeBack lets buffers come and go one after the other, pooled or not: all have one address.
func TestAddressesComeBack(t *testing.T) {
	for _, block := range []uint64{0, 1} {
		var list []wire.Record
		for i := range uint64(100) {
			r := wire.Record{Process: 1}
			r.Kind, r.Object, r.Link, r.Size, r.Granted = wire.KindCreate, i+1, block*(i+1), 5, 8
			r.Outcome = wire.Outcome(block) // driver or hit
			list = append(list, r)
			r.Kind, r.Granted, r.Outcome = wire.KindRelease, 0, wire.OutcomeDriver
			list = append(list, r)
		}
		text := write(t, exportrun.NewTape(list), rmm.Options{})
		if n := strings.Count(text, ",0x100000000,5,"); n != 200 {
			t.Errorf("block %d: %d of 200 lines have the first address", block, n)
		}
	}
}

func TestWriteErrors(t *testing.T) {
	err := rmm.WriteLog(&records.Full{Left: 10}, exportrun.NewTape(story()), rmm.Options{})
	if err == nil || !strings.Contains(fmt.Sprint(err), "write a log of RMM") {
		t.Errorf("error %v on a full disk", err)
	}
}

// FuzzWrite gives it nonsense: every line is still one.
func FuzzWrite(f *testing.F) {
	exportrun.FuzzExport(f, func(t *testing.T, src recording.Source, _ uint64) {
		for _, text := range strings.Split(strings.TrimSuffix(write(t, src, rmm.Options{}), "\n"), "\n")[1:] {
			if !line.MatchString(text) {
				t.Fatal(text)
			}
		}
	})
}

func BenchmarkWrite(b *testing.B) {
	exportrun.BenchExport(b, func(w io.Writer, src recording.Source) error { return rmm.WriteLog(w, src, rmm.Options{}) })
}
