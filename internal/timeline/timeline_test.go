package timeline

import (
	"errors"
	"io"
	"math"
	"os"
	"path/filepath"
	"runtime"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"pgregory.net/rapid"

	"codeberg.org/gpumemtop/gpumemtop/internal/recording"
	"codeberg.org/gpumemtop/gpumemtop/internal/recording/extract"
	"codeberg.org/gpumemtop/gpumemtop/internal/stats"
	"codeberg.org/gpumemtop/gpumemtop/internal/testkit/labtest"
	"codeberg.org/gpumemtop/gpumemtop/internal/testkit/racetest"
	"codeberg.org/gpumemtop/gpumemtop/internal/view"
	"codeberg.org/gpumemtop/gpumemtop/internal/wire"
)

const started = 1_000_000_000_000

// handClock is a clock that the test moves.
type handClock struct {
	mu  sync.Mutex
	now time.Time
}

func (c *handClock) Now() time.Time {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.now
}

func (c *handClock) pass(d time.Duration) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.now = c.now.Add(d)
}

func modelOptions(h recording.Header) stats.Options {
	return stats.Options{Program: h.Program, Policy: h.Policy, Started: h.ClockNS}
}

// record writes a recording of records, with a footer when it is whole.
func record(t rapid.TB, path string, records []wire.Record, ended uint64, whole bool) {
	labtest.Write(t, path, recording.Header{Program: "app", Policy: "none", ClockNS: started}, records, recording.Footer{EndedNS: ended})
	if whole {
		return
	}
	info, err := os.Stat(path)
	if err != nil {
		t.Fatal(err)
	}
	if err := os.Truncate(path, info.Size()-1); err != nil {
		t.Fatal(err)
	}
}

// lives are n buffers, one made each step ns, each released two steps later.
func lives(n int, step uint64) []wire.Record {
	var list []wire.Record
	for i := range uint64(n) {
		at := started + (i+1)*step
		list = append(list, wire.Record{Process: 1, Event: wire.Event{
			Time: at, Kind: wire.KindCreate, Outcome: wire.OutcomeMiss, Object: i + 1, Size: 100 + i, Granted: 128 + i, Link: i + 1, Tag: uint32(i % 5),
		}})
		if i >= 2 {
			list = append(list, wire.Record{Process: 1, Event: wire.Event{Time: at, Kind: wire.KindRelease, Outcome: wire.OutcomeCached, Object: i - 1}})
		}
	}
	return list
}

func open(t testing.TB, path string, o Options) *Viewer {
	t.Helper()
	o.Model = modelOptions
	reader, err := recording.Open(path)
	if err != nil {
		t.Fatal(err)
	}
	v := NewViewer(reader, path, o)
	t.Cleanup(v.Close)
	return v
}

// await asks for a time until done returns true.
func await(t testing.TB, v *Viewer, at uint64, done func(*view.Moment) bool) view.Moment {
	t.Helper()
	for deadline := time.Now().Add(time.Minute); ; runtime.Gosched() {
		m := v.MomentAt(at)
		if done(&m) {
			return m
		}
		if time.Now().After(deadline) {
			t.Fatalf("nothing came of it: %+v", m)
		}
	}
}

func allRead(m *view.Moment) bool { return m.Done }

// until folds a recording up to a time, as a report of that part does.
func until(t interface {
	Fatal(...any)
}, path string, at uint64) *stats.Snapshot {
	reader, err := recording.Open(path)
	if err != nil {
		t.Fatal(err)
	}
	defer reader.Close() //nolint:errcheck // only read
	source := extract.CutRange(reader, extract.Options{Until: at})
	m := stats.New(modelOptions(reader.Header()))
	var r wire.Record
	for {
		err := source.Next(&r)
		if errors.Is(err, io.EOF) {
			break
		}
		if err != nil {
			t.Fatal(err)
		}
		m.Apply(&r)
	}
	m.AdvanceTime(at)
	return m.Snapshot()
}

func TestEveryMomentIsThatOfTheFold(t *testing.T) {
	path := filepath.Join(t.TempDir(), "x.gmt")
	const end = started + 3_000_000_000
	record(t, path, lives(2000, 1_000_000), end, true)
	v := open(t, path, Options{})
	m := await(t, v, math.MaxUint64, allRead)
	if m.From != started || m.Until != end || m.Read != 1 || m.Shown.Time != end || m.Note != "" {
		t.Errorf("at the end: %+v", m)
	}
	if n := (m.Until - m.From) / m.Step; n < keptMost/2 || n > keptMost {
		t.Errorf("%d instants", n)
	}
	for at := m.From; at <= m.Until; at += 7 * m.Step {
		got := v.MomentAt(at)
		if got.Note != "" || got.Shown.Time != at {
			t.Fatalf("instant %d shows %d: %s", at, got.Shown.Time, got.Note)
		}
		if diff := cmp.Diff(until(t, path, at).Totals, got.Shown.Totals); diff != "" {
			t.Fatalf("at %d:\n%s", at-started, diff)
		}
	}
}

func TestARestingCursorIsWorkedOutExactly(t *testing.T) {
	path := filepath.Join(t.TempDir(), "x.gmt")
	record(t, path, lives(2000, 1_000_000), started+3e9, true)
	clock := &handClock{now: time.Unix(1, 0)}
	v := open(t, path, Options{Now: clock.Now})
	m := await(t, v, 0, allRead)
	v.noteFoldingRate(1_000_000, 1) // events in a second
	at := m.From + 100*m.Step + 12345
	for range 100 {
		m = v.MomentAt(at)
		if m.Note == "" || m.Shown.Time != at-12345 {
			t.Fatalf("%d shows %d: %q", at, m.Shown.Time, m.Note)
		}
	}
	if m = v.MomentAt(at + m.Step - 20000); m.Shown.Time <= at {
		t.Error("the instant before is shown, the one behind is nearer")
	}
	v.MomentAt(at)
	clock.pass(rest)
	m = await(t, v, at, func(m *view.Moment) bool { return m.Note == "" })
	if diff := cmp.Diff(until(t, path, at), m.Shown); diff != "" {
		t.Errorf("exactly:\n%s", diff)
	}
	// Where that takes long the nearest is shown, with the reason.
	v.noteFoldingRate(1, 1)
	v.MomentAt(at + 1)
	clock.pass(time.Minute)
	if m = v.MomentAt(at + 1); !strings.HasPrefix(m.Note, "the nearest kept instant is shown: the exact one takes ") {
		t.Errorf("note %q", m.Note)
	}
	if len(v.wants) != 0 {
		t.Error("it is worked out all the same")
	}
}

// How fast events are folded is not known of a recording of a few of them.
func TestShortRecordingsAreExact(t *testing.T) {
	path := filepath.Join(t.TempDir(), "x.gmt")
	record(t, path, lives(10, 100_000_000), started+2e9, true)
	clock := &handClock{now: time.Unix(1, 0)}
	v := open(t, path, Options{Now: func() time.Time { clock.pass(time.Millisecond); return clock.Now() }})
	at := await(t, v, 0, allRead).From + 777_777_777
	m := await(t, v, at, func(m *view.Moment) bool { return m.Note == "" || strings.Contains(m.Note, "takes") })
	if diff := cmp.Diff(until(t, path, at), m.Shown); diff != "" {
		t.Errorf("%s, exactly:\n%s", m.Note, diff)
	}
}

// A name that came late is no sign that all before it has come: a picture of a time between has what follows the name and was before.
func TestLateRecordsEndNoInstant(t *testing.T) {
	path := filepath.Join(t.TempDir(), "x.gmt")
	list := lives(2, 100_000_000)
	late := wire.SiteFields{Time: started + 1e9, Tag: 1}.Record([]byte("make\tapp.c\t2\tapp+0x1"))
	late.Process = 1
	record(t, path, []wire.Record{list[0], late, list[1]}, started+2e9, true)
	v := open(t, path, Options{})
	at := await(t, v, 0, allRead).From + 100*v.MomentAt(0).Step // between the last create and the name
	if m := await(t, v, at, func(m *view.Moment) bool { return m.Note == "" }); m.Shown.Totals.Creates != 2 {
		t.Errorf("%d creates %d ns after the start, want 2", m.Shown.Totals.Creates, at-started)
	}
}

// Until the events are read the summaries answer, and say so.
func TestSummariesAnswerFirst(t *testing.T) {
	path := filepath.Join(t.TempDir(), "x.gmt")
	record(t, path, lives(10, 1_000_000_000), started+20e9, true)
	blocks := []recording.Block{
		{LastNS: started + 5e9, Summary: recording.Summary{InUse: 50, Cached: 5, Hits: 3, Misses: 1, Creates: 4, Releases: 2}},
		{LastNS: started + 15e9, Summary: recording.Summary{InUse: 70, Cached: 7, Cooling: 1, Hits: 30, Misses: 10, Creates: 40, Releases: 20}},
	}
	v := &Viewer{options: Options{Model: modelOptions, Now: time.Now}, header: recording.Header{ClockNS: started, Program: "app"}, size: 1}
	v.rough = newRough(v.header, Options{Model: modelOptions, Blocks: blocks})
	v.until = v.rough.coveredUntil()
	v.kept = newKept(started, v.until)
	for at, want := range map[uint64]stats.Totals{
		started + 1e9:  {},
		started + 14e9: {InUse: 50, PeakInUse: 50, PeakInUseTime: started + 5e9, Cached: 5, Hits: 3, Misses: 1, Creates: 4, Releases: 2},
		math.MaxUint64: {InUse: 70, PeakInUse: 70, PeakInUseTime: started + 15e9, Cached: 7, Cooling: 1, Hits: 33, Misses: 11, Creates: 44, Releases: 22},
	} {
		m := v.MomentAt(at)
		if diff := cmp.Diff(want, m.Shown.Totals); diff != "" || !m.Rough || m.Done || len(m.History) != 2 || m.Shown.Program != "app" {
			t.Errorf("at %d: %+v\n%s", at, m, diff)
		}
	}
	v.kept.keepNext(&stats.Snapshot{Time: started, Tags: []stats.Tag{{Name: "a"}}})
	if m := v.MomentAt(started + 14e9); !m.Rough || m.Known != started || len(m.Shown.Tags) != 1 || m.Shown.Totals.Hits != 3 || m.Note == "" {
		t.Errorf("with a picture of the start: %+v", m)
	}
	if m := v.MomentAt(started); m.Rough || m.Note != "" {
		t.Errorf("the start has been read: %+v", m)
	}
}

func TestTornAndEmptyRecordings(t *testing.T) {
	dir := t.TempDir()
	torn, empty := filepath.Join(dir, "torn.gmt"), filepath.Join(dir, "empty.gmt")
	record(t, torn, lives(2000, 1_000_000), started+3e9, false)
	record(t, empty, nil, started, true)
	m := await(t, open(t, torn, Options{}), math.MaxUint64, allRead)
	if m.Damage == "" || m.Shown.Totals.Creates != 2000 {
		t.Errorf("torn: %+v", m)
	}
	v := open(t, empty, Options{})
	m = await(t, v, math.MaxUint64, allRead)
	if m.Damage != "" || m.From != m.Until || m.Shown == nil {
		t.Errorf("empty: %+v", m)
	}
	v.MomentAt(0)
}

// Memory is bounded by the pictures that are kept, however long the recording is and whatever its times are.
func TestWhatIsKeptIsBounded(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		from, until := rapid.Uint64Max(1<<40).Draw(t, "from"), rapid.Uint64().Draw(t, "until")
		k := newKept(from, until)
		tags := rapid.SampledFrom([]int{0, 10, 3000}).Draw(t, "tags")
		s := &stats.Snapshot{Tags: make([]stats.Tag, tags)}
		for range rapid.IntRange(1, 1200).Draw(t, "pictures") {
			at := k.timeOfNext()
			if at == math.MaxUint64 {
				break
			}
			picture := *s
			picture.Time = at
			k.keepNext(&picture)
			if n := len(k.list); n > keptMost || n > keptFew && k.rows > keptRows {
				t.Fatalf("%d pictures with %d rows", n, k.rows)
			}
		}
		for i, p := range k.list {
			if p.Time != k.from+uint64(i)*k.step {
				t.Fatalf("picture %d is of %d, steps of %d from %d", i, p.Time, k.step, k.from)
			}
		}
	})
}

func TestAbsurdTimesEnd(t *testing.T) {
	racetest.Slow(t)
	path := filepath.Join(t.TempDir(), "x.gmt")
	list := lives(3, 1000)
	list = append(list, wire.Record{Process: 1, Event: wire.Event{Time: math.MaxUint64, Kind: wire.KindSync}})
	record(t, path, list, 0, true)
	m := await(t, open(t, path, Options{}), math.MaxUint64, allRead)
	if m.Shown.Events != uint64(len(list)) {
		t.Errorf("%d events", m.Shown.Events)
	}
}

// TestCloseDoesNotWait closes a viewer whose folding stands still.
func TestCloseDoesNotWait(t *testing.T) {
	path := filepath.Join(t.TempDir(), "a.gmt")
	record(t, path, lives(10, 1000), started+20_000, true)
	goOn := make(chan struct{})
	v := open(t, path, Options{Now: func() time.Time { <-goOn; return time.Time{} }})
	v.Close()
	close(goOn)
}
