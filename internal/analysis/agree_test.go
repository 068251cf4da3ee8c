package analysis

import (
	"maps"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	"pgregory.net/rapid"

	"codeberg.org/gpumemtop/gpumemtop/internal/recording"
	"codeberg.org/gpumemtop/gpumemtop/internal/stats"
	"codeberg.org/gpumemtop/gpumemtop/internal/testkit/randomrun"
	"codeberg.org/gpumemtop/gpumemtop/internal/testkit/records"
	"codeberg.org/gpumemtop/gpumemtop/internal/wire"
)

// onlyRecorded are the titles that only a report has of a run that is over, each with the reason.
var onlyRecorded = map[string]string{
	`^\d+ mistakes? of the program`:                           "the list has a line for each mistake",
	`^memory (grows|may grow) with every iteration$`:          "a snapshot knows no iterations",
	`^(the driver's own memory|the process) grows `:           "a snapshot has what the machine reports now, not over time",
	`^memory may grow beside the buffers$`:                    "likewise",
	`^every iteration (keeps|may keep) memory$`:               "a snapshot knows no iterations, and not when memory was used last",
	` (are never released|(may )?grow in number( over .*)?)$`: "a snapshot does not know what was live at half of the run",
	`^OpenCL objects may be left$`:                            "it is a note on the end alone",
	`^most (buffers|memory objects) are never used$`:          "a snapshot does not know which buffers commands used",
	`^the pool serves few requests$`:                          "a snapshot does not know what the driver took for misses alone",
	`^every iteration goes to the driver$`:                    "a snapshot knows no iterations",
	`^creates that copy take the time, `:                      "a snapshot does not know what creates of one kind took",
	`^buffers could be created once, before the loop$`:        "a snapshot does not know how long buffers lived",
	`^memory is released long after its last use$`:            "a snapshot does not know when a buffer was used last",
	`^the pool keeps memory that nothing asks for$`:           "nor whether a request came later",
	`^blocks are much larger than requested$`:                 "the peak is past; it was judged then: see TestThePeakIsJudgedAlike",
	`^free memory is fragmented at the peak$`:                 "the peak is past",
	`^the pool reserves much more than is in use$`:            "a snapshot does not know what was in use when most was reserved",
	`^the program (splits buffers itself|keeps its buffers)$`: "a snapshot has no sub-buffers by buffer, nor counts of the later half",
	`^one function creates memory for several places$`:        "a snapshot has one name for each call site",
	`^call stacks end inside libraries$`:                      "a snapshot does not know how many frames stacks have at most",
	`^sub-buffers may be refused on other devices$`:           "a snapshot knows no origins",
	`^drivers may copy the program's own memory$`:             "nor addresses",
	`^(same bytes written|read back what|read of what)`:       "a snapshot does not know which bytes moved",
	`^(copy on unified|COPY_HOST_PTR keeps|cold readback)`:    "likewise",
	`^(many small transfers|blocking read inside the loop)`:   "a snapshot does not know what came between transfers",
}

// recordedTitles are the titles of a report, without those that only a report has.
func recordedTitles(a *Analysis) (titles []string) {
	for i := range a.Diagnoses {
		title := a.Diagnoses[i].Title
		if a.Diagnoses[i].About != AboutFailure && !slices.ContainsFunc(slices.Collect(maps.Keys(onlyRecorded)), func(p string) bool { return regexp.MustCompile(p).MatchString(title) }) {
			titles = append(titles, string(a.Diagnoses[i].Severity)+" "+title)
		}
	}
	slices.Sort(titles)
	return titles
}

// liveTitles are the titles of the list, without mistakes and failures: a report has sections for these.
func liveTitles(l *Live) (titles []string) {
	known := map[string]bool{}
	for _, d := range mistakeFindings(&Evidence{Run: l.latest, Attached: l.Attached}) {
		known[d.Title] = true
	}
	for i := range l.Points {
		if d := &l.Points[i]; d.About != AboutFailure && !known[d.Title] {
			titles = append(titles, string(d.Severity)+" "+d.Title)
		}
	}
	slices.Sort(titles)
	return titles
}

// ended appends the exits that are missing.
func ended(list []wire.Record) []wire.Record {
	open := map[uint32]bool{}
	last := uint64(0)
	for i := range list {
		last = max(last, list[i].Time)
		if r := &list[i]; r.Kind == wire.KindExit && r.Thread == 0 {
			open[r.Process] = false
		} else if _, known := open[r.Process]; !known && r.Kind != wire.KindLost {
			open[r.Process] = true
		}
	}
	for _, process := range slices.Sorted(maps.Keys(open)) {
		if open[process] {
			list = append(list, wire.Record{Event: wire.Event{Kind: wire.KindExit, Time: last}, Process: process})
		}
	}
	return list
}

// modelOf is the model that a dashboard of the recording has.
func modelOf(h *recording.Header) *stats.Model {
	return stats.New(stats.Options{
		Policy: h.Policy, Limits: stats.PolicyLimits(h.Policy, h.Limits), LimitsOf: stats.DefaultLimits, Started: h.ClockNS, DeviceMemory: h.DeviceMemory,
	})
}

// agree compares the judgements of a run after its end, and returns the titles that both have.
func agree(t rapid.TB, name string, h *recording.Header, list []wire.Record) (titles []string) {
	t.Helper()
	list = ended(list)
	a, err := Analyse(&records.Tape{Records: list}, Options{Header: *h, Whole: true})
	if err != nil {
		t.Fatal(err)
	}
	m, live := modelOf(h), Live{Attached: h.Attached}
	due := a.Run.Started
	for i := range list {
		if r := &list[i]; r.Time >= due && due < a.Run.Started+100*second {
			m.AdvanceTime(due)
			live.Update(m.Snapshot())
			due = r.Time + second
		}
		m.Apply(&list[i])
	}
	live.Update(m.Snapshot())
	want, got := recordedTitles(a), liveTitles(&live)
	if !slices.Equal(want, got) {
		t.Errorf("%s:\nreport %q\nlive   %q", name, want, got)
	}
	count := slices.ContainsFunc(a.Diagnoses, func(d Diagnosis) bool { return strings.Contains(d.Title, " of the program") })
	if each := len(mistakeFindings(&Evidence{Run: live.latest})) > 0; count != each {
		t.Errorf("%s: mistakes in the report: %v, in the list: %v", name, count, each)
	}
	return want
}

// TestTheEndIsJudgedAlike: after a run its dashboard says what the report of its recording says, as far as a snapshot can know.
func TestTheEndIsJudgedAlike(t *testing.T) {
	t.Run("random", rapid.MakeCheck(func(t *rapid.T) {
		h := recording.Header{
			ClockNS: randomrun.Start, Policy: rapid.SampledFrom([]string{"futhark", "slab", "none"}).Draw(t, "policy"),
			DeviceMemory: rapid.SampledFrom([]uint64{0, 1 << 20, 3 << 20, 10 << 20}).Draw(t, "device memory"), Attached: rapid.Bool().Draw(t, "attached"),
		}
		agree(t, "random", &h, randomrun.DrawRun(t, randomrun.Options{
			Processes: rapid.IntRange(1, 3).Draw(t, "processes"), Steps: rapid.IntRange(0, 300).Draw(t, "steps"),
			Exits: rapid.SampledFrom([]randomrun.Exits{randomrun.Anytime, randomrun.AtEnd, randomrun.Never}).Draw(t, "exits"),
		}))
	}))
	t.Run("rules", func(t *testing.T) {
		said := map[string]bool{}
		for _, c := range diagnoses {
			for name, write := range map[string]func(*tape){c.title: c.fires, "not " + c.title: c.not} {
				s := newTape()
				write(s)
				for _, title := range agree(t, name, &recording.Header{Policy: c.policy, ClockNS: origin}, s.Records) {
					said[title] = true
				}
			}
		}
		for _, title := range []string{
			"advice device memory is nearly full", "advice buffers are in the host's memory", "problem 10 buffers never released",
			"note 5 events lost (2 of them uses)",
		} {
			if !said[title] {
				t.Errorf("no run has %q: %v", title, slices.Sorted(maps.Keys(said)))
			}
		}
	})
	t.Run("recordings", func(t *testing.T) {
		files, err := filepath.Glob("../*/testdata/*.gmt")
		if err != nil || len(files) < 20 {
			t.Fatalf("%d recordings, %v", len(files), err)
		}
		for _, name := range files {
			r, err := recording.Open(name)
			if err != nil {
				t.Fatal(err)
			}
			h := r.Header()
			agree(t, name, &h, records.ReadAll(t, r))
			if err := r.Close(); err != nil {
				t.Error(err)
			}
		}
	})
}

// TestThePeakIsJudgedAlike: while a run goes on its dashboard says at the peak what the report says of the peak, and at some moment
// that a device is nearly full if the report says that it was.
func TestThePeakIsJudgedAlike(t *testing.T) {
	const waste, full = "blocks are much larger than requested", "device memory is nearly full"
	said := map[string]int{}
	rapid.Check(t, func(t *rapid.T) {
		h := recording.Header{
			ClockNS: randomrun.Start, Policy: rapid.SampledFrom([]string{"pow2", "futhark"}).Draw(t, "policy"),
			DeviceMemory: rapid.SampledFrom([]uint64{1 << 20, 3 << 20, 10 << 20}).Draw(t, "device memory"),
		}
		list := randomrun.DrawRun(t, randomrun.Options{Steps: rapid.IntRange(0, 150).Draw(t, "steps"), Exits: randomrun.AtEnd, NoSlabs: true})
		wasteful := rapid.Uint64Range(0, 2).Draw(t, "waste")
		for i := range list {
			if list[i].Kind == wire.KindCreate && wasteful > 0 {
				list[i].Size /= 1 + wasteful
			}
		}
		a, err := Analyse(&records.Tape{Records: list}, Options{Header: h, Whole: true})
		if err != nil {
			t.Fatal(err)
		}
		m, live := modelOf(&h), Live{Still: true}
		most, atPeak, ever := uint64(0), false, false
		for i := range list {
			m.Apply(&list[i])
			s := m.Snapshot()
			live.Update(s)
			ever = ever || titled(&live, full) != nil && !allEnded(s)
			if s.Totals.InUse > most {
				most, atPeak = s.Totals.InUse, titled(&live, waste) != nil
			}
		}
		if want := diagnosis(a, full) != nil; want != ever {
			t.Errorf("%s: report %v, live %v", full, want, ever)
		}
		if want := diagnosis(a, waste) != nil; want != atPeak {
			t.Errorf("%s: report %v, live %v", waste, want, atPeak)
		}
		if ever {
			said[full]++
		}
		if atPeak {
			said[waste]++
		}
	})
	if said[waste] == 0 || said[full] == 0 {
		t.Errorf("never said: %v", said)
	}
}
