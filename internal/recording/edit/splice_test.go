package edit_test

import (
	"cmp"
	"slices"
	"testing"
	"time"

	gocmp "github.com/google/go-cmp/cmp"
	"pgregory.net/rapid"

	"codeberg.org/gpumemtop/gpumemtop/internal/recording"
	"codeberg.org/gpumemtop/gpumemtop/internal/recording/edit"
	"codeberg.org/gpumemtop/gpumemtop/internal/recording/extract"
	"codeberg.org/gpumemtop/gpumemtop/internal/stats"
	"codeberg.org/gpumemtop/gpumemtop/internal/testkit/randomrun"
	"codeberg.org/gpumemtop/gpumemtop/internal/wire"
)

// sample is a recording in memory.
type sample struct {
	randomrun.Tape
	header recording.Header
	footer *recording.Footer
}

func (r *sample) Header() recording.Header { return r.header }
func (r *sample) Damage() string           { return "" }

func (r *sample) Footer() (recording.Footer, bool) {
	if r.footer == nil {
		return recording.Footer{}, false
	}
	return *r.footer, true
}

// IsCut reports whether the run goes on, as recording.Reader does.
func (r *sample) IsCut() bool { return r.footer == nil || r.footer.Cut }

// sink keeps the records that it gets.
type sink []wire.Record

func (s *sink) Append(r *wire.Record) error {
	kept := *r
	kept.Payload = slices.Clone(r.Payload)
	*s = append(*s, kept)
	return nil
}

var origin = time.Date(2026, 5, 4, 3, 2, 1, 0, time.UTC)

func newRecording(records []wire.Record, program, host string, later time.Duration) *sample {
	return &sample{
		Tape:   randomrun.Tape{Records: records},
		header: recording.Header{Program: program, Host: host, Policy: "futhark", Created: origin.Add(later), ClockNS: randomrun.Start},
		footer: &recording.Footer{EndedNS: randomrun.Start + 1_000_000},
	}
}

func merge(t interface{ Fatal(...any) }, list ...*sample) (*sample, []wire.Record) {
	var parts []edit.Part
	for _, r := range list {
		part, err := edit.SurveyRecording(r)
		if err != nil {
			t.Fatal(err)
		}
		parts = append(parts, part)
	}
	plan, err := edit.PlanMerge(parts)
	if err != nil {
		t.Fatal(err)
	}
	var sources []recording.Source
	for i, r := range list {
		if err := r.Rewind(); err != nil {
			t.Fatal(err)
		}
		sources = append(sources, plan.MergedSource(i, r))
	}
	var got sink
	if err := plan.WriteMerged(&got, sources); err != nil {
		t.Fatal(err)
	}
	footer := plan.MergedFooter()
	return &sample{Tape: randomrun.Tape{Records: got}, header: plan.MergedHeader(), footer: &footer}, got
}

func totals(records []wire.Record) stats.Totals {
	m := stats.New(stats.Options{Started: 1})
	for i := range records {
		m.Apply(&records[i])
	}
	return m.Snapshot().Totals
}

// TestMergeAddsUp: nothing is lost or changed but process numbers and times, whatever is merged with what.
func TestMergeAddsUp(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		var list []*sample
		var want stats.Totals
		for i := range rapid.IntRange(1, 4).Draw(t, "recordings") {
			host := rapid.SampledFrom([]string{"a", "b"}).Draw(t, "host")
			later := time.Duration(rapid.Int64Range(-2_000_000, 2_000_000).Draw(t, "later")) * time.Microsecond
			r := newRecording(randomrun.DrawRun(t, randomrun.Options{Exits: randomrun.Never}), "app", host, later)
			list = append(list, r)
			sum := totals(r.Records)
			want.Creates, want.Hits, want.Releases = want.Creates+sum.Creates, want.Hits+sum.Hits, want.Releases+sum.Releases
			want.InUse, want.Cached, want.Cooling = want.InUse+sum.InUse, want.Cached+sum.Cached, want.Cooling+sum.Cooling
			_ = i
		}
		made, got := merge(t, list...)
		sum := totals(got)
		have := stats.Totals{
			Creates: sum.Creates, Hits: sum.Hits, Releases: sum.Releases, InUse: sum.InUse, Cached: sum.Cached, Cooling: sum.Cooling,
		}
		if have != want {
			t.Errorf("together %+v, want %+v", have, want)
		}
		if !slices.IsSortedFunc(got, func(a, b wire.Record) int { return cmp.Compare(a.Time, b.Time) }) {
			t.Error("not in the order of time")
		}
		for i, o := range made.header.Merged {
			checkOrigin(t, list[i], o, got)
		}
		_, again := merge(t, made, newRecording(nil, "none", "c", time.Hour))
		if diff := gocmp.Diff(got, again); diff != "" {
			t.Errorf("merged with nothing (-once +twice):\n%s", diff)
		}
	})
}

// checkOrigin demands that the processes of an origin have the records of that recording.
func checkOrigin(t *rapid.T, r *sample, o recording.Origin, merged []wire.Record) {
	var shift uint64
	i := 0
	for _, m := range merged {
		if m.Process < o.First || m.Process > o.Last {
			continue
		}
		was := r.Records[i]
		if i++; i == 1 {
			shift = m.Time - was.Time
		}
		was.Process, was.Time = was.Process+o.First-1, was.Time+shift
		if !gocmp.Equal(was, m) {
			t.Fatalf("record %d is %+v, want %+v", i, m, was)
		}
	}
	if i != len(r.Records) {
		t.Errorf("%d records of %s, want %d", i, o.Program, len(r.Records))
	}
}

// TestOneBootHasOneClock: one host since one boot has one clock; others are put where the wall clock says.
func TestOneBootHasOneClock(t *testing.T) {
	at := func(times ...uint64) (list []wire.Record) {
		for _, time := range times {
			list = append(list, wire.Record{Process: 1, Event: wire.Event{Kind: wire.KindSync, Time: time}})
		}
		return list
	}
	const s = uint64(time.Second)
	first := newRecording(at(100*s, 103*s), "a", "here", 0)
	first.header.ClockNS = 100 * s
	// The wall clock was set back by a second since; the monotonic one says that it began 2 s later.
	same := newRecording(at(102*s), "a", "here", time.Second)
	same.header.ClockNS = 102 * s
	other := newRecording(at(7*s, 5*s), "b", "there", 1500*time.Millisecond)
	other.header.ClockNS = 7 * s
	other.footer.Status, other.footer.Message = 3, "disk full"
	booted := newRecording(at(2*s), "a", "here", 4*time.Second)
	booted.header.ClockNS = 2 * s
	booted.footer = nil
	made, got := merge(t, other, same, first, booted)
	var times []uint64
	for _, r := range got {
		times = append(times, r.Time/(s/2))
	}
	if want := []uint64{200, 203, 199, 204, 206, 208}; !slices.Equal(times, want) {
		t.Errorf("half seconds %v, want %v", times, want)
	}
	h := made.header
	if h.Program != "2 programs" || h.Host != "2 hosts" || h.ClockNS != 100*s || !h.Created.Equal(origin) || h.Policy != "futhark" {
		t.Errorf("header %+v", h)
	}
	if h.HostOf(1) != "there" || h.HostOf(2) != "here" || h.HostOf(4) != "here" {
		t.Errorf("origins %+v", h.Merged)
	}
	if f := made.footer; f.Status != 3 || !f.Cut || f.Message != "merged of 4 recordings; disk full; 1 had been cut off" {
		t.Errorf("footer %+v", f)
	}
}

// TestCarriedComesTogether: what a trimmed recording carries over says earlier times and comes when that begins.
func TestCarriedComesTogether(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		long, whole := newRecording(randomrun.DrawRun(t, randomrun.Options{}), "a", "a", 0),
			newRecording(randomrun.DrawRun(t, randomrun.Options{}), "b", "a", 0)
		since := randomrun.Start + rapid.Uint64Range(1, 60_000).Draw(t, "since")
		part := extract.Options{Since: since}
		var kept sink
		if _, err := edit.WritePart(&kept, whole, extract.CutRange(whole, part), part, ""); err != nil {
			t.Fatal(err)
		}
		trimmed := &sample{Tape: randomrun.Tape{Records: kept}, header: edit.TrimHeader(whole.header, part), footer: whole.footer}
		_, got := merge(t, long, trimmed)
		reached := false
		for _, r := range got {
			if r.Process > 2 {
				reached = true
			} else if reached && r.Time < since {
				t.Fatalf("process %d at %d comes behind what was carried to %d", r.Process, r.Time, since)
			}
		}
	})
}

func TestBadness(t *testing.T) {
	for _, test := range []struct {
		list [][2]int
		want [2]int
	}{
		{[][2]int{{0, 0}, {-1, 0}}, [2]int{-1, 0}},
		{[][2]int{{0, 0}, {-1, 0}, {1, 0}, {2, 0}}, [2]int{2, 0}},
		{[][2]int{{255, 0}, {-1, 9}, {-1, 6}}, [2]int{-1, 9}},
	} {
		var list []*sample
		for _, end := range test.list {
			r := newRecording(nil, "a", "a", 0)
			r.footer.Status, r.footer.Signal = end[0], end[1]
			list = append(list, r)
		}
		made, _ := merge(t, list...)
		if f := made.footer; f.Cut || f.Status != test.want[0] || f.Signal != test.want[1] {
			t.Errorf("%v end together with %d, %d", test.list, f.Status, f.Signal)
		}
	}
}

func TestTrimFooter(t *testing.T) {
	records := []wire.Record{
		{Event: wire.Event{Kind: wire.KindLost, Time: randomrun.Start + 10, Size: 5}},
		{Event: wire.Event{Kind: wire.KindLost, Time: randomrun.Start + 20, Size: 7}},
	}
	end := randomrun.Start + uint64(1_000_000)
	whole := newRecording(records, "a", "a", 0)
	whole.footer.Status, whole.footer.Message = 4, "as it was"
	torn := newRecording(records, "a", "a", 0)
	torn.footer = nil
	for _, test := range []struct {
		of    *sample
		part  extract.Options
		about string
		want  recording.Footer
	}{
		{whole, extract.Options{}, "", recording.Footer{Lost: 12, Status: 4, EndedNS: end, Message: "as it was"}},
		{whole, extract.Options{Until: end}, "x", recording.Footer{Lost: 12, Status: 4, EndedNS: end, Message: "as it was; trimmed: x"}},
		{whole, extract.Options{Until: randomrun.Start + 15}, "x", recording.Footer{Lost: 5, Status: -1, EndedNS: randomrun.Start + 15, Message: "as it was; trimmed: x", Cut: true}},
		{torn, extract.Options{}, "", recording.Footer{Lost: 12, Status: -1, EndedNS: randomrun.Start + 20, Message: "it had been cut off", Cut: true}},
	} {
		var got sink
		footer, err := edit.WritePart(&got, test.of, extract.CutRange(test.of, test.part), test.part, test.about)
		if diff := gocmp.Diff(test.want, footer); err != nil || diff != "" {
			t.Errorf("%+v: %v\n%s", test.part, err, diff)
		}
	}
}
