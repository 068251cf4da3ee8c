package stats

import (
	"fmt"
	"math"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"codeberg.org/gpumemtop/gpumemtop/internal/heap"
	"codeberg.org/gpumemtop/gpumemtop/internal/wire"
)

func TestProcessesAndTheirEnds(t *testing.T) {
	s := newStream(Options{})
	s.feed(wire.Event{Kind: wire.KindProcess, Object: 4711, Link: 4700}, []byte("/bin/blur\x00-n\x005\x00")...)
	s.miss(1, 1, 64, 64, 1)
	s.NoteProcessEnded(1, End{Status: 0, Signal: 11}, s.time+1)
	snapshot := s.Snapshot()
	want := Process{
		Number: 1, PID: 4711, Parent: 4700, Program: "/bin/blur", App: "blur", Arguments: []string{"-n", "5"},
		State: Signaled, Status: 11, Started: streamStart + 1000, Ended: s.time + 1, Totals: snapshot.Totals,
	}
	if diff := cmp.Diff(want, snapshot.Processes[0]); diff != "" {
		t.Errorf("process (-want +got):\n%s", diff)
	}
	if snapshot.Program != "/bin/blur" || len(snapshot.Arguments) != 2 {
		t.Errorf("the session is named %q %q", snapshot.Program, snapshot.Arguments)
	}
	// The last process to end leaves its gauges until another one runs.
	checkGauges(t, snapshot, 64, 0, 0)
	s.process = 2
	s.miss(1, 1, 32, 32, 1)
	snapshot = s.Snapshot()
	checkGauges(t, snapshot, 32, 0, 0)
	if first := snapshot.Processes[0].Totals; first.InUse != 64 || first.LiveBuffers != 1 {
		t.Errorf("the first process's own totals changed: %+v", first)
	}
	if snapshot.Totals.LiveBuffers != 1 || snapshot.Totals.PeakInUse != 64 {
		t.Errorf("totals are %+v", snapshot.Totals)
	}
}

func TestExitHandlersMayStillRelease(t *testing.T) {
	s := newStream(Options{})
	s.process = 2
	s.miss(1, 1, 32, 32, 0)
	s.process = 1
	s.miss(1, 1, 64, 64, 0)
	s.feed(wire.Event{Kind: wire.KindExit})
	s.release(1, wire.OutcomeCached)
	snapshot := s.Snapshot()
	checkGauges(t, snapshot, 32, 64, 0)
	if got := snapshot.Processes[1]; got.State != Exited || got.Status != 0 || got.Totals.LargestCached != 64 {
		t.Errorf("process is %+v", got)
	}
	s.AdvanceTime(s.time + heap.Grace)
	s.AdvanceTime(s.time + 2*heap.Grace)
	snapshot = s.Snapshot()
	checkGauges(t, snapshot, 32, 0, 0)
	if got := snapshot.Processes[1].Totals; got.Cached != 64 || got.LargestCached != 64 {
		t.Errorf("the ended process's own totals changed: %+v", got)
	}
	s.NoteProcessEnded(1, End{Status: 3, Signal: 0}, s.time)
	if got := s.Snapshot().Processes[1]; got.State != Exited || got.Status != 3 {
		t.Errorf("process is %+v", got)
	}
}

func TestExitFromARecording(t *testing.T) {
	s := newStream(Options{})
	s.miss(1, 1, 64, 64, 0)
	s.Apply(&wire.Record{Event: wire.Event{Kind: wire.KindExit, Time: s.time, Status: 2}, Process: 1})
	snapshot := s.Snapshot()
	if got := snapshot.Processes[0]; got.State != Exited || got.Status != 2 {
		t.Errorf("process is %+v", got)
	}
	if len(snapshot.Marks) != 1 || snapshot.Marks[0].Text != "process 1 exited with status 2" {
		t.Errorf("marks are %+v", snapshot.Marks)
	}
}

// TestExitTwice: the session's word is marked beside the process's own where it knows the status.
func TestExitTwice(t *testing.T) {
	for status, marks := range map[int16]int{-1: 1, 0: 2} {
		s := newStream(Options{})
		s.miss(1, 1, 64, 64, 0)
		s.Apply(&wire.Record{Event: wire.Event{Kind: wire.KindExit, Time: s.time, Status: -1}, Process: 1, Thread: 7})
		s.Apply(&wire.Record{Event: wire.Event{Kind: wire.KindExit, Time: s.time, Status: status}, Process: 1})
		if got := s.Snapshot().Marks; len(got) != marks {
			t.Errorf("status %d: marks are %+v", status, got)
		}
	}
}

func TestTooManyProcesses(t *testing.T) {
	s := newStream(Options{})
	for n := range uint32(processesMax + 10) {
		s.process = n
		s.feed(wire.Event{Kind: wire.KindSync})
	}
	snapshot := s.Snapshot()
	if snapshot.LeftOut != "processes" {
		t.Errorf("%q are left out", snapshot.LeftOut)
	}
	if len(snapshot.Processes) != processesMax || snapshot.Unknown != 10 || len(snapshot.Exceeded) != 1 || !strings.Contains(snapshot.Exceeded[0], "left out") {
		t.Errorf("%d processes, %d unknown events, %q", len(snapshot.Processes), snapshot.Unknown, snapshot.Exceeded)
	}
}

// TestTooManyBuffers: the snapshot counts what does not fit, and says that figures are too low.
func TestTooManyBuffers(t *testing.T) {
	s := newStream(Options{EntriesMax: 5, Nameless: func() uint64 { return 7 }})
	for n := range uint64(8) {
		s.miss(n+1, n+1, 64, 64, 1)
	}
	snapshot := s.Snapshot()
	want := []string{snapshot.LeftOut + " beyond 5 buffers and blocks at once are left out: figures are too low"}
	if !strings.HasSuffix(snapshot.LeftOut, " creates") || !slices.Equal(snapshot.Exceeded, want) || snapshot.Totals.LiveBuffers >= 8 {
		t.Errorf("%q, %q, %d buffers", snapshot.LeftOut, snapshot.Exceeded, snapshot.Totals.LiveBuffers)
	}
	if fmt.Sprint(snapshot.Beyond, " creates") != snapshot.LeftOut || snapshot.Nameless != 7 {
		t.Errorf("%d creates and %d files are left out, want %s", snapshot.Beyond, snapshot.Nameless, snapshot.LeftOut)
	}
}

func TestTooManyCallSites(t *testing.T) {
	s := newStream(Options{})
	for n := range uint32(sitesMax + 10) {
		s.miss(uint64(n+1), uint64(n+1), 64, 64, n+1)
	}
	snapshot := s.Snapshot()
	if len(snapshot.Tags) > sitesMax+1 || snapshot.Totals.InUse != 64*(sitesMax+10) || len(snapshot.Exceeded) != 1 {
		t.Errorf("%d rows, %d in use, %q", len(snapshot.Tags), snapshot.Totals.InUse, snapshot.Exceeded)
	}
}

func TestDeviceOfTheFirstContext(t *testing.T) {
	device := func(s *stream, number uint64, name string) {
		s.feed(wire.Event{Kind: wire.KindDevice, Object: number, Granted: 16 << 30, Link: 4 << 30}, []byte(name+"\x00v1\x00")...)
	}
	context := func(s *stream, number uint64) { s.feed(wire.Event{Kind: wire.KindContext, Object: 1, Link: number}) }
	for name, feed := range map[string]func(*stream){
		"described before": func(s *stream) { device(s, 1, "one"); device(s, 2, "two"); context(s, 2); context(s, 1) },
		"described after":  func(s *stream) { context(s, 2); device(s, 1, "one"); device(s, 2, "two"); device(s, 3, "three") },
		"no context":       func(s *stream) { device(s, 2, "two"); device(s, 1, "one") },
	} {
		t.Run(name, func(t *testing.T) {
			s := newStream(Options{})
			feed(s)
			want := Device{Name: "two", Driver: "v1", Global: 16 << 30, Largest: 4 << 30}
			if got := s.Snapshot().Device; got != want {
				t.Errorf("device is %+v, want %+v", got, want)
			}
		})
	}
}

func TestLimits(t *testing.T) {
	s := newStream(Options{Limits: []Limit{{Name: "max_cached_bytes", Value: 100, Max: 1000}, {Name: "min_block", Value: 1}}})
	check := func(step string, want Limit) {
		t.Helper()
		got := s.Snapshot().Limits[0]
		if (got.AskedAt > 0) != (got.Sequence > 0) || got.AnsweredAt > 0 && got.AnsweredAt < got.AskedAt {
			t.Errorf("%s: number %d, asked at %d, answered at %d", step, got.Sequence, got.AskedAt, got.AnsweredAt)
		}
		if got.IsPending() != (got.Wanted != got.Value) {
			t.Errorf("%s: pending %v", step, got.IsPending())
		}
		got.AskedAt, got.AnsweredAt = 0, 0
		if diff := cmp.Diff(want, got); diff != "" {
			t.Errorf("%s (-want +got):\n%s", step, diff)
		}
	}
	answer := func(sequence uint64, status int16, text string) {
		s.feed(wire.Event{Kind: wire.KindLimit, Object: sequence, Status: status}, []byte(text)...)
	}
	limit := Limit{Name: "max_cached_bytes", Value: 100, Max: 1000, Wanted: 100}
	check("at the start", limit)
	s.NoteLimitWanted("max_cached_bytes", "200", 1)
	s.NoteLimitWanted("max_cached_bytes", "300", 2)
	s.NoteLimitWanted("no_such_limit", "1", 3)
	s.NoteLimitWanted("max_cached_bytes", "plenty", 4)
	limit.Wanted, limit.Sequence = 300, 2
	check("two changes on their way", limit)
	if r := s.Snapshot().Limits[0].Request; r.IsUnanswered(r.AskedAt+AnswerTime) || !r.IsUnanswered(r.AskedAt+AnswerTime+1) {
		t.Errorf("%+v is unanswered too early, or never", r)
	}
	answer(1, 0, "max_cached_bytes=200")
	limit.Value, limit.Text = 200, "200"
	check("the first acknowledged", limit)
	answer(2, -1, "max_cached_bytes: above\x1b 250")
	limit.Wanted, limit.Refused = 200, "max_cached_bytes: above  250"
	check("the second refused", limit)
	if r := s.Snapshot().Limits[0].Request; r.IsUnanswered(math.MaxUint64) {
		t.Errorf("%+v was answered", r)
	}
	for _, bad := range []string{"", "max_cached_bytes", "max_cached_bytes=", "max_cached_bytes=NaN", "other=5", "=5"} {
		answer(9, 0, bad)
	}
	check("nonsense", limit)
	answer(9, 0, "max_cached_bytes=150")
	limit.Value, limit.Text, limit.Wanted, limit.Refused = 150, "150", 150, ""
	check("changed by another session", limit)
	if got := len(s.Snapshot().Marks); got != 9 {
		t.Errorf("%d marks, want one per LIMIT event", got)
	}
}

func TestCachedMost(t *testing.T) {
	bytes := Limit{Name: "max_cached_bytes", Value: 4 << 30}
	share := func(v float64) Limit { return Limit{Name: "max_cached_fraction", Value: v} }
	for _, test := range []struct {
		limits []Limit
		device uint64
		want   uint64
		known  bool
	}{
		{nil, 8 << 30, math.MaxUint64, false},
		{[]Limit{bytes, share(1)}, 1 << 30, 1 << 30, true}, // no more than there is
		{[]Limit{bytes, share(0.25)}, 8 << 30, 2 << 30, true},
		{[]Limit{bytes, share(0.75)}, 8 << 30, 4 << 30, true},
		{[]Limit{share(0), bytes}, 8 << 30, 0, true},
		{[]Limit{bytes, share(0.25)}, 0, 4 << 30, true}, // a share of unknown memory
		{[]Limit{{Name: "max_cached_bytes", Value: math.MaxUint64}}, 0, math.MaxUint64, true},
	} {
		s := Snapshot{Limits: test.limits, Device: Device{Global: test.device}}
		if got, known := s.MaxCachedBytes(); got != test.want || known != test.known {
			t.Errorf("%+v of %d: %d, %v; want %d", test.limits, test.device, got, known, test.want)
		}
	}
}

func TestMarks(t *testing.T) {
	s := newStream(Options{})
	s.feed(wire.Event{Kind: wire.KindDiag, Op: uint8(wire.DiagPanic)}, []byte("core\tfailed")...)
	for range 200 {
		s.feed(wire.Event{Kind: wire.KindLost, Size: 5, Granted: 2})
	}
	snapshot := s.Snapshot()
	want := []Mark{
		{Time: streamStart + 1000, Kind: wire.KindDiag, Text: "panic: core failed"},
		{Time: streamStart + 2000, Kind: wire.KindLost, Text: "1000 events lost"},
	}
	if diff := cmp.Diff(want, snapshot.Marks); diff != "" {
		t.Errorf("marks (-want +got):\n%s", diff)
	}
	if snapshot.Lost != 1000 || snapshot.LostUses != 400 {
		t.Errorf("lost %d, of these uses %d", snapshot.Lost, snapshot.LostUses)
	}
	for range 2 * MarksMax {
		s.feed(wire.Event{Kind: wire.KindDiag})
	}
	if got := s.Snapshot().Marks; len(got) != MarksMax || got[0].Time >= got[1].Time {
		t.Errorf("%d marks", len(got))
	}
}

func TestPublish(t *testing.T) {
	m := New(Options{Program: "p", Policy: "futhark"})
	if m.PublishedSnapshot() != nil {
		t.Error("something was published before the first time")
	}
	m.SetRecording("x.gmt", 12)
	s := m.PublishSnapshot()
	if m.PublishedSnapshot() != s || s.Policy != "futhark" || s.Program != "p" || s.Recording != (Recording{"x.gmt", 12}) {
		t.Errorf("published %+v", s)
	}
}

func TestStartIsTheFirstEventWhenUnknown(t *testing.T) {
	m := New(Options{})
	m.Apply(&wire.Record{Event: wire.Event{Kind: wire.KindSync, Time: 5_000_000_000}, Process: 1})
	m.AdvanceTime(7_000_000_000)
	s := m.Snapshot()
	if s.Started != 5_000_000_000 || s.Time != 7_000_000_000 || len(s.History) != 20 {
		t.Errorf("started %d, time %d, %d samples", s.Started, s.Time, len(s.History))
	}
}

func TestLimitsOfWordsAndSizes(t *testing.T) {
	s := newStream(Options{Limits: []Limit{
		{Name: "drain_order", Kind: LimitChoice, Text: "all", Value: 2, Choices: []string{"slot", "largest-first", "all"}},
		{Name: "bucket_sizes", Kind: LimitSizes, Text: "1024:4096", Value: 2},
	}})
	s.NoteLimitWanted("drain_order", "largest-first", 1)
	if l := s.Snapshot().Limits[0]; !l.IsPending() || l.Wanted != 1 || l.TextForTarget(l.Wanted) != "largest-first" || l.Text != "all" {
		t.Errorf("on its way: %+v", l)
	}
	for _, text := range []string{"drain_order=upwards", "drain_order=", "drain_order=1", "bucket_sizes=1024:x", "bucket_sizes="} {
		s.feed(wire.Event{Kind: wire.KindLimit, Object: 1}, []byte(text)...)
	}
	if l := s.Snapshot().Limits; !l[0].IsPending() || l[0].Value != 2 || l[1].Text != "1024:4096" {
		t.Errorf("nonsense was taken: %+v", l)
	}
	s.feed(wire.Event{Kind: wire.KindLimit, Object: 1}, []byte("drain_order=largest-first\x00")...)
	s.feed(wire.Event{Kind: wire.KindLimit, Object: 2}, []byte("bucket_sizes=1:2:3")...)
	l := s.Snapshot().Limits
	if l[0].IsPending() || l[0].Value != 1 || l[0].Text != "largest-first" || l[1].Text != "1:2:3" || l[1].Value != 3 || l[1].TextForTarget(5) != "1:2:3" {
		t.Errorf("acknowledged: %+v", l)
	}
}

// TestRunEndsWithItsLastProcess: a run ends with the program or its last process, also where processes were folded, and goes on while one runs.
func TestRunEndsWithItsLastProcess(t *testing.T) {
	running, first, second := Process{State: Running}, Process{State: Exited, Ended: 30}, Process{State: Signaled, Ended: 40}
	folded := Process{State: Exited, Ended: 50, Folded: 9}
	for _, test := range []struct {
		finished  uint64
		processes []Process
		want      uint64
	}{
		{0, nil, 100},
		{20, nil, 20},
		{0, []Process{first, second}, 40},
		{20, []Process{second, first}, 40},
		{60, []Process{first, second}, 60}, // a shell ended later than what it started
		{0, []Process{first, folded, second}, 50},
		{20, []Process{first, running}, 100},
	} {
		s := Snapshot{Started: 10, Time: 100, Finished: test.finished, Processes: test.processes}
		if s.EndTime() != test.want || s.WallNS() != test.want-10 {
			t.Errorf("%+v: ended at %d after %d", test, s.EndTime(), s.WallNS())
		}
	}
	if early := (&Snapshot{Started: 10, Time: 5}).WallNS(); early != 0 {
		t.Errorf("a run that ends before its start takes %d", early)
	}
	m := New(Options{Started: 1})
	m.NoteEndOfRun(7)
	m.NoteEndOfRun(9)
	m.AdvanceTime(1000)
	if got := m.Snapshot().EndTime(); got != 7 {
		t.Errorf("finished at 7, ended at %d", got)
	}
}

// A signal that comes while exit handlers run aborts the process, live and recorded; exit with the status of a signal does not.
func TestSignalsInExitHandlers(t *testing.T) {
	for own, want := range map[int16]bool{0: true, 137: false} {
		for _, live := range []bool{false, true} {
			s := newStream(Options{})
			s.feed(wire.Event{Kind: wire.KindProcess, Object: 4711}, []byte("/bin/blur\x00")...)
			s.miss(1, 1, 64, 64, 1)
			s.Apply(&wire.Record{Process: 1, Thread: 7, Event: wire.ExitFields{Time: s.time, Status: own}.Event()})
			if end := (End{Status: int(own)}); live {
				if want {
					end = End{Signal: 9}
				}
				s.NoteProcessEnded(1, end, s.time+1)
			}
			s.Apply(&wire.Record{Process: 1, Event: wire.ExitFields{Time: s.time + 1, Status: 137}.Event()})
			if got := s.Snapshot(); got.Processes[0].WasAborted() != want || len(got.PostMortems) > 0 != want {
				t.Errorf("exit(%d), live %v: %+v, %d post-mortems", own, live, got.Processes[0], len(got.PostMortems))
			}
		}
	}
}
