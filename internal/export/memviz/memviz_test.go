package memviz

import (
	"bytes"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"pgregory.net/rapid"

	"codeberg.org/gpumemtop/gpumemtop/internal/heap"
	"codeberg.org/gpumemtop/gpumemtop/internal/recording"
	"codeberg.org/gpumemtop/gpumemtop/internal/testkit/exportrun"
	"codeberg.org/gpumemtop/gpumemtop/internal/testkit/randomrun"
	"codeberg.org/gpumemtop/gpumemtop/internal/wire"
)

func write(t rapid.TB, src recording.Source, o Options) ([]byte, Report) {
	t.Helper()
	o.Header = recording.Header{ClockNS: exportrun.Origin, Created: time.Unix(1_700_000_000, 0), Program: "/bin/a\xffpp\n", Policy: "futhark"}
	var b bytes.Buffer
	report, err := WriteSnapshot(&b, src, o)
	if err != nil {
		t.Fatal(err)
	}
	return b.Bytes(), report
}

func read(t rapid.TB, data []byte) dictOf {
	t.Helper()
	v, err := unpickle(data)
	if err != nil {
		t.Fatal(err)
	}
	return v.(dictOf)
}

// traces are the lists of events.
func traces(s dictOf) [][]dictOf {
	var lists [][]dictOf
	for _, item := range s["device_traces"].(*listOf).items {
		lists = append(lists, dictOf{"list": item}.dicts("list"))
	}
	return lists
}

// gauges are what the model says of both processes, without their ends.
func gauges(records []wire.Record) (inUse, requested, reserved, cooling uint64) {
	s := exportrun.SnapshotOf(records)
	for i := range s.Processes {
		t := &s.Processes[i].Totals
		inUse, requested = inUse+t.InUse, requested+t.Requested
		reserved, cooling = reserved+t.InUse+t.Cached+t.Cooling, cooling+t.Cooling
	}
	return inUse, requested, reserved, cooling
}

// TestSnapshotOfAnyRunKeepsTheRules holds the snapshot of any run to the rules, and its figures to the model's at every event.
func TestSnapshotOfAnyRunKeepsTheRules(t *testing.T) {
	rapid.Check(t, func(rt *rapid.T) {
		records := exportrun.DrawRun(rt)
		data, report := write(rt, exportrun.NewTape(records), Options{})
		s := read(rt, data)
		var events, failed uint64
		total := newViewer(true)
		for i, list := range traces(s) {
			v := newViewer(true)
			for n, e := range list {
				if err := v.step(e); err != nil {
					rt.Fatalf("device %d, event %d, %v: %v", i, n, e, err)
				}
			}
			sum, err := checkSegments(s, i)
			if err != nil {
				rt.Fatal(err)
			}
			if sum.inUse != v.inUse || sum.reserved+sum.evicted != v.reserved {
				rt.Fatalf("device %d: segments say %+v, the trace %d in use, %d reserved", i, sum, v.inUse, v.reserved)
			}
			events += uint64(len(list)) - 1
			failed += uint64(v.ooms)
			total.inUse += v.inUse
		}
		sum, err := checkSegments(s, -1)
		if err != nil {
			rt.Fatal(err)
		}
		inUse, requested, reserved, cooling := gauges(records)
		if sum.inUse != inUse || sum.requested != requested || sum.reserved != reserved || sum.pending != cooling {
			rt.Errorf("segments say %+v, the model %d in use, %d requested, %d reserved, %d cooling", sum, inUse, requested, reserved, cooling)
		}
		for _, r := range records {
			if r.Kind == wire.KindCreate && r.Outcome == wire.OutcomeFailed {
				failed--
			}
		}
		if failed != 0 || report.Events != events || report.Dropped != 0 {
			rt.Errorf("%d failures too many, %d events, reported %+v", failed, events, report)
		}
	})
}

// TestInUseAtEveryStep cuts a run after each of its records: what the trace says is in use must be right each time.
func TestInUseAtEveryStep(t *testing.T) {
	rapid.Check(t, func(rt *rapid.T) {
		records := exportrun.DrawRun(rt)
		records = records[:rapid.IntRange(0, len(records)).Draw(rt, "until")]
		data, _ := write(rt, exportrun.NewTape(records), Options{})
		var got uint64
		for _, list := range traces(read(rt, data)) {
			v := newViewer(true)
			for _, e := range list {
				if err := v.step(e); err != nil {
					rt.Fatal(err)
				}
			}
			got += v.inUse
		}
		if want, _, _, _ := gauges(records); got != want {
			rt.Errorf("after %d records %d in use, want %d", len(records), got, want)
		}
	})
}

// TestRandomPart takes a part, and keeps few events: what ends may have begun before, nothing else changes.
func TestRandomPart(t *testing.T) {
	rapid.Check(t, func(rt *rapid.T) {
		records := exportrun.DrawRun(rt)
		most := rapid.Uint64Range(1, 50).Draw(rt, "most")
		src, _ := exportrun.DrawEndPart(rt, records)
		data, report := write(rt, src, Options{MaxEvents: most})
		s := read(rt, data)
		var kept uint64
		for i, list := range traces(s) {
			v := newViewer(false)
			for n, e := range list {
				if err := v.step(e); err != nil {
					rt.Fatalf("device %d, event %d, %v: %v", i, n, e, err)
				}
			}
			if uint64(len(list)) > most+1 || list[len(list)-1].text("action") != "snapshot" {
				rt.Fatalf("%d events, of at most %d and a snapshot", len(list), most)
			}
			kept += uint64(len(list)) - 1
		}
		if report.Events-report.Dropped != kept {
			rt.Errorf("%d events kept, reported %+v", kept, report)
		}
		if _, err := checkSegments(s, -1); err != nil {
			rt.Fatal(err)
		}
		data, _ = write(rt, src, Options{})
		allocs, creates := 0, 0
		for _, list := range traces(read(rt, data)) {
			for _, e := range list {
				if e.text("action") == "alloc" {
					allocs++
				}
			}
		}
		if err := src.Rewind(); err != nil {
			rt.Fatal(err)
		}
		for r := (wire.Record{}); src.Next(&r) == nil; {
			if r.Kind == wire.KindCreate && r.Outcome != wire.OutcomeFailed && r.Flags&wire.FlagCarried == 0 && heap.HasMemory(r.AsCreate()) {
				creates++
			}
		}
		if allocs != creates {
			rt.Errorf("%d allocs for %d creates within the part", allocs, creates)
		}
	})
}

// short is a run with everything once.
func short() []wire.Record {
	var list []wire.Record
	add := func(us uint64, kind wire.Kind, e wire.Event, payload string) {
		e.Time, e.Kind, e.Scope = exportrun.Origin+us*1000, kind, 1
		list = append(list, wire.Record{Process: 1, Thread: 1, Event: e, Payload: []byte(payload)})
	}
	add(0, wire.KindProcess, wire.Event{Object: 41}, "/bin/app\x00")
	add(0, wire.KindDevice, wire.Event{Object: 1, Granted: 10_000}, "card\x00driver")
	add(0, wire.KindContext, wire.Event{Object: 1, Link: 1}, "")
	add(0, wire.KindSite, wire.Event{Tag: 1}, exportrun.Names[0])
	add(0, wire.KindSite, wire.Event{Tag: 2}, exportrun.Names[2])
	add(1, wire.KindCreate, wire.Event{Object: 1, Link: 1, Size: 900, Granted: 1000, Tag: 1, Outcome: wire.OutcomeMiss}, "")
	add(2, wire.KindRelease, wire.Event{Object: 1, Link: 1, Outcome: wire.OutcomeCooling}, "")
	add(3, wire.KindCooled, wire.Event{Link: 1, Granted: 1000}, "")
	add(4, wire.KindSlab, wire.Event{Link: 2, Granted: 4000}, "")
	add(5, wire.KindCreate, wire.Event{Object: 3, Link: 3, Size: 100, Granted: 128, Tag: 2, Outcome: wire.OutcomeMiss, Flags: wire.FlagSubAlloc}, "")
	add(6, wire.KindCreate, wire.Event{Size: 9000, Tag: 1, Outcome: wire.OutcomeFailed, Status: -4}, "")
	add(7, wire.KindEvict, wire.Event{Link: 1, Granted: 1000}, "")
	return list
}

func TestShort(t *testing.T) {
	data, _ := write(t, &randomrun.Tape{Records: short()}, Options{})
	s := read(t, data)
	var got []string
	for _, e := range traces(s)[0] {
		line := e.text("action")
		for _, f := range e.dicts("frames") {
			line += " " + f.text("name") + "@" + f.text("filename")
		}
		got = append(got, line)
	}
	const create, strip = " create@/src/a.c main@/src/a.c", " strip\"ped,.so+0x1234@ f [31m� @/src/a b.c"
	want := []string{
		"segment_alloc" + create, "alloc" + create, "free_requested" + create, "free_completed" + create,
		"segment_alloc (untagged)@", "alloc" + strip, "oom" + create, "segment_free", "snapshot",
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Error(diff)
	}
	oom := traces(s)[0][6]
	if oom.number("device_free") != 5000 || oom.number("size") != 9000 || oom.number("time_us") != 1_700_000_000_000_006 {
		t.Errorf("oom %v, want 5000 of 10000 free", oom)
	}
	data, _ = write(t, &randomrun.Tape{Records: short()}, Options{Tag: regexp.MustCompile("strip")})
	actions := ""
	for _, e := range traces(read(t, data))[0] {
		actions += e.text("action") + " "
	}
	if want := "segment_alloc segment_alloc alloc segment_free snapshot "; actions != want {
		t.Errorf("of strip: %s, want %s", actions, want)
	}
}

// TestBrokenOff ends between a release and the eviction that follows: the viewer goes back from the segments to what was
// before, so what its trace let go must be there.
func TestBrokenOff(t *testing.T) {
	list := short()[:6]
	r := list[5]
	r.Kind, r.Granted, r.Outcome = wire.KindRelease, 0, wire.OutcomeRefused
	data, _ := write(t, &randomrun.Tape{Records: append(list, r)}, Options{})
	sum, err := checkSegments(read(t, data), 0)
	if err != nil || sum.pending != 1000 || sum.inUse != 0 {
		t.Errorf("%+v, %v; want 1000 pending", sum, err)
	}
}

// TestPythonReadsASnapshot lets the real reader of pickles load a snapshot.
func TestPythonReadsASnapshot(t *testing.T) {
	file := filepath.Join(t.TempDir(), "x.pickle")
	records := append(short(), exportrun.ChurnRecords(3000)...)
	data, report := write(t, exportrun.NewTape(records), Options{})
	if err := os.WriteFile(file, data, 0o600); err != nil {
		t.Fatal(err)
	}
	out, err := exec.CommandContext(t.Context(), "python3", "testdata/check.py", file).CombinedOutput()
	if err != nil {
		t.Fatalf("python3 (package python3): %v\n%s", err, out)
	}
	inUse, _, reserved, _ := gauges(records)
	if want := fmt.Sprintf("1 devices, %d events, %d in use, %d reserved\n", report.Events+1, inUse, reserved); string(out) != want {
		t.Errorf("python says %q, want %q", out, want)
	}
}

// FuzzWrite gives it nonsense: the result can be read, and has no number that is too large.
func FuzzWrite(f *testing.F) {
	exportrun.FuzzExport(f, func(t *testing.T, src recording.Source, most uint64) {
		pickled, _ := write(t, src, Options{MaxEvents: most})
		if _, err := unpickle(pickled); err != nil {
			t.Fatal(err)
		}
	})
}

func BenchmarkWrite(b *testing.B) {
	exportrun.BenchExport(b, func(w io.Writer, src recording.Source) error {
		_, err := WriteSnapshot(w, src, Options{})
		return err
	})
}
