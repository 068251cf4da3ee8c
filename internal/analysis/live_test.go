package analysis

import (
	"strconv"
	"strings"
	"testing"

	"codeberg.org/gpumemtop/gpumemtop/internal/stats"
	"codeberg.org/gpumemtop/gpumemtop/internal/wire"
)

const second = 1_000_000_000

// lively is a snapshot of a run some seconds after its start, with one call site.
func lively(seconds uint64) *stats.Snapshot {
	return &stats.Snapshot{
		Started: 5 * second, Time: (5 + seconds) * second, Policy: "futhark", Device: stats.Device{Global: 1 << 30},
		Limits:    []stats.Limit{{Name: "max_waste_ratio", Value: 2, Min: 1, Max: 16}},
		Processes: []stats.Process{{Number: 1, DeviceMemory: 1 << 30}},
		Tags:      []stats.Tag{{ID: 1, Name: "a.c:1 f"}},
	}
}

// missed gives the snapshot hits and misses of one reason.
func missed(s *stats.Snapshot, hits, misses uint64, reason wire.Miss) *stats.Snapshot {
	for _, c := range []struct {
		hits, misses *uint64
		reasons      *[reasons]uint64
	}{
		{&s.Tags[0].Hits, &s.Tags[0].Misses, &s.Tags[0].MissReasons}, {&s.Totals.Hits, &s.Totals.Misses, &s.Totals.MissReasons},
	} {
		*c.hits, *c.misses, c.reasons[reason] = hits, misses, misses
	}
	s.Totals.DriverNS = misses * second / 50
	return s
}

// titled returns the point whose title has a text, nil if there is none.
func titled(l *Live, text string) *Diagnosis {
	for i := range l.Points {
		if strings.Contains(l.Points[i].Title, text) {
			return &l.Points[i]
		}
	}
	return nil
}

// TestLiveMissesAreRecent: what was cured 20 s ago is no fault.
func TestLiveMissesAreRecent(t *testing.T) {
	l := Live{Replay: gaining}
	judge := func(seconds, hits, misses uint64) *Diagnosis {
		l.Update(missed(lively(seconds), hits, misses, wire.MissTooWasteful))
		return titled(&l, "a.c:1 f hits")
	}
	if p := judge(5, 0, 100); p == nil || p.Title != "a.c:1 f hits 0.0 %" || p.Knob.Limit != "max_waste_ratio" || p.Knob.Value != "2.5" ||
		p.Text != "100 misses of late, mostly too wasteful; replayed with max_waste_ratio=2.5: 10.0 MiB reserved at most instead of 20.0 MiB, 100.0 % hits instead of 0.0 %" || p.Tag != "a.c:1 f" {
		t.Errorf("after 5 s: %+v", l.Points)
	}
	if !l.IsRowSuspicious(&l.latest.Tags[0]) {
		t.Error("the row is not marked")
	}
	judge(10, 100, 100)
	if p := judge(20, 500, 100); p != nil {
		t.Errorf("10 s after the last miss: %+v", p)
	}
	if p := judge(31, 600, 100); p != nil || len(l.Points) > 0 {
		t.Errorf("after 31 s: %+v", l.Points)
	}
	if p := judge(39, 700, 400); p == nil || p.Title != "a.c:1 f hits 40.0 %" {
		t.Errorf("it misses again: %+v", l.Points)
	}
	l.Restart(l.latest)
	if p := judge(40, 800, 400); p != nil {
		t.Errorf("after a change: %+v", l.Points)
	}
}

// TestLiveNamesLimitsOfThePolicy: others cannot be set.
func TestLiveNamesLimitsOfThePolicy(t *testing.T) {
	steal := stats.Limit{Name: "steal_other_tag", Kind: stats.LimitSwitch, Text: "off", Choices: []string{"off", "on"}}
	cached := stats.Limit{Name: stats.MaxCachedBytes, Kind: stats.LimitBytes, Value: 1 << 29, Max: 1 << 60}
	for _, test := range []struct {
		limits    []stats.Limit
		reason    wire.Miss
		knob, why string
	}{
		{[]stats.Limit{steal}, wire.MissTooWasteful, "steal_other_tag", "replayed with steal_other_tag=on: 10.0 MiB reserved at most instead of 20.0 MiB, 100.0 % hits instead of 0.0 %"},
		{[]stats.Limit{cached}, wire.MissLimit, stats.MaxCachedBytes, "replayed with max_cached_bytes=1073741824: 10.0 MiB reserved at most instead of 20.0 MiB, 100.0 % hits instead of 0.0 %"},
		{[]stats.Limit{{Name: "max_per_tag", Value: 8, Max: 100}}, wire.MissTagCap, "max_per_tag", "replayed with max_per_tag=16: 10.0 MiB reserved at most instead of 20.0 MiB, 100.0 % hits instead of 0.0 %"},
		{nil, wire.MissTooWasteful, "", advice[wire.MissTooWasteful]},
		{nil, wire.MissLimit, "", advice[wire.MissLimit]},
	} {
		s := missed(lively(5), 0, 100, test.reason)
		s.Limits = test.limits
		l := Live{Replay: gaining}
		l.Update(s)
		if p := titled(&l, "hits"); p == nil || p.Knob.Limit != test.knob || !strings.HasSuffix(p.Text, test.why) {
			t.Errorf("%s: %+v", test.reason, l.Points)
		}
		if bites := titled(&l, "bites"); bites != nil {
			t.Errorf("%s: the same limit again: %+v", test.reason, bites)
		}
	}
}

// TestLiveNamesTheKnee: where the curve is known, it says which limit is enough, if that is more than the present one.
func TestLiveNamesTheKnee(t *testing.T) {
	const why = "max_cached_bytes=48.0 MiB is the knee of the curve (c), the least limit within two points of its best hit rate"
	fraction := stats.Limit{Name: "max_cached_fraction", Kind: stats.LimitNumber, Value: 0.5, Max: 1}
	for _, test := range []struct {
		knee  *Knee
		more  []stats.Limit
		value string
	}{
		{&Knee{Policy: "futhark", Limit: 48 << 20}, nil, strconv.Itoa(48 << 20)},
		{&Knee{Policy: "slab", Limit: 48 << 20}, nil, strconv.Itoa(2 << 20)},                        // of another policy
		{&Knee{Policy: "futhark", Limit: 1 << 20}, nil, strconv.Itoa(2 << 20)},                      // it is reached
		{&Knee{Policy: "futhark", Limit: 48 << 20}, []stats.Limit{fraction}, strconv.Itoa(2 << 20)}, // another limit bites first
		{nil, nil, strconv.Itoa(2 << 20)},
	} {
		s := missed(lively(5), 0, 100, wire.MissLimit)
		s.Policy, s.Device.Global = "futhark", 64<<20
		s.Limits = append([]stats.Limit{{Name: stats.MaxCachedBytes, Kind: stats.LimitBytes, Value: 1 << 20, Max: 1 << 60}}, test.more...)
		l := Live{Replay: gaining}
		l.SetKnee(test.knee)
		l.Update(s)
		p := titled(&l, "hits")
		if p == nil || p.Knob.Value != test.value || strings.Contains(p.Text, why) != (test.value == strconv.Itoa(48<<20)) {
			t.Errorf("%+v: %+v", test.knee, l.Points)
		}
	}
}

// growingBy returns a snapshot whose call site rises each second.
func growingBy(bytes uint64) *stats.Snapshot {
	s := lively(20)
	trend := make([]uint64, 20)
	for i := range trend {
		trend[i] = uint64(i) * bytes
	}
	s.Tags[0].Trend = stats.TrendOf(trend)
	s.Totals.InUse, s.Totals.Requested = 19*bytes, 19*bytes
	s.Tags = append(s.Tags, stats.Tag{ID: 2, Name: "b.c:2 g", Trend: stats.TrendOf([]uint64{7, 7, 7})})
	return s
}

func TestLiveGrowth(t *testing.T) {
	l := Live{Replay: gaining}
	s := growingBy(10 << 20)
	l.Update(s)
	p := titled(&l, "memory grows")
	if p == nil || p.Title != "memory grows 10.0 MiB/s" || p.Text != "at this rate the device is full in 83.4 s; all of it at a.c:1 f" || p.Severity != Problem {
		t.Fatalf("%+v", l.Points)
	}
	missed(s, 0, 100, wire.MissCold)
	l.Update(s)
	if titled(&l, "hits") != nil || l.IsRowSuspicious(&s.Tags[1]) || !l.IsRowSuspicious(&s.Tags[0]) {
		t.Error("cold misses of what is never released are a point of their own")
	}
	s.Lost = 3
	l.Update(s)
	if p := titled(&l, "memory may grow"); p == nil || p.Severity != Note || titled(&l, "memory grows") != nil {
		t.Errorf("with lost events: %+v", l.Points)
	}
	for name, change := range map[string]func(*stats.Snapshot){
		"a fall": func(s *stats.Snapshot) {
			points := s.Tags[0].Trend.Points()
			points[15] = 0
			s.Tags[0].Trend = stats.TrendOf(points)
		},
		"a plateau": func(s *stats.Snapshot) {
			s.Tags[0].Trend = stats.TrendOf(append(s.Tags[0].Trend.Points(), 300<<20, 300<<20, 300<<20, 300<<20, 300<<20))
		},
		"a young run":  func(s *stats.Snapshot) { s.Started = s.Time - 9*second },
		"little of it": func(s *stats.Snapshot) { *s = *growingBy(1000) },
	} {
		s := growingBy(10 << 20)
		change(s)
		l.Update(s)
		if len(l.Points) > 0 {
			t.Errorf("%s: %+v", name, l.Points)
		}
	}
}

// TestLiveGrowthOfSlowIterations: what an iteration of several seconds takes is no growth, beside a leak.
func TestLiveGrowthOfSlowIterations(t *testing.T) {
	l, s := Live{Replay: gaining}, growingBy(1<<20)
	s.Tags[1].Trend = stats.TrendOf([]uint64{0, 0, 4 << 20, 4 << 20, 4 << 20})
	l.Update(s)
	if p := titled(&l, "memory grows"); p == nil || p.Title != "memory grows 1.00 MiB/s" || !strings.HasSuffix(p.Text, "; all of it at a.c:1 f") {
		t.Errorf("%+v", l.Points)
	}
}

// TestLiveEnd: leaks are known at the end, and what could be better no longer counts.
func TestLiveEnd(t *testing.T) {
	for _, test := range []struct {
		status   int
		lost     uint64
		title    string
		severity Severity
	}{
		{0, 0, "3 buffers never released", Problem}, {0, 9, "3 buffers perhaps never released", Note},
		{134, 0, "3 buffers held when a signal ended the program", Note}, {134, 9, "3 buffers perhaps held when a signal ended the program", Note},
	} {
		s := growingBy(10 << 20)
		s.Lost = test.lost
		s.Processes[0] = stats.Process{Number: 1, State: stats.Exited, Status: test.status, Totals: stats.Totals{LiveBuffers: 3, InUse: 190 << 20}}
		s.Totals.LiveBuffers, s.Tags[0].Live, s.Tags[0].InUse = 3, 3, 190<<20
		l := Live{Replay: gaining}
		l.Update(s)
		p := titled(&l, test.title)
		if p == nil || p.Title != test.title || p.Severity != test.severity || !strings.HasPrefix(p.Text, "190.0 MiB in all; 190.0 MiB of it from a.c:1 f") || titled(&l, "grow") != nil {
			t.Errorf("%+v: %+v", test, l.Points)
		}
	}
}

func TestLiveMistakesAndFailures(t *testing.T) {
	s := lively(5)
	s.Findings = []stats.Finding{
		{Kind: wire.DiagStaleArgument, Tag: "b.c:2 g"}, {Kind: wire.DiagDoubleRelease, Function: "clReleaseMemObject", Tag: "a.c:1 f", Count: 2},
	}
	s.OtherFindings = 4
	s.PostMortems = []stats.PostMortem{{Call: "create of a buffer", Size: 1 << 20, Status: -4, Tag: "a.c:1 f", Verdict: stats.VerdictFull}}
	l := Live{Replay: gaining}
	l.Update(s)
	var titles []string
	for _, p := range l.Points {
		titles = append(titles, string(p.Severity)+" "+p.Title)
	}
	want := "problem create of a buffer of 1.00 MiB at a.c:1 f failed (-4)|problem double release|problem more mistakes|advice stale argument (not certain)"
	if got := strings.Join(titles, "|"); got != want {
		t.Errorf("got  %s\nwant %s", got, want)
	}
}

// TestLiveMomentsMustLast: a program that requests in rounds is not called fragmented and sound by turns.
func TestLiveMomentsMustLast(t *testing.T) {
	l := Live{Replay: gaining}
	said := func(seconds uint64, fragmented bool) bool {
		s := missed(lively(seconds), 100*seconds, seconds, wire.MissTooSmall)
		if s.Totals.InUse, s.Totals.Requested = 100<<20, 100<<20; fragmented {
			s.Totals.Cached, s.Totals.LargestCached = 100<<20, 10<<20
		}
		l.Update(s)
		return titled(&l, "free memory is fragmented now") != nil
	}
	for seconds := range uint64(20) {
		if said(seconds, seconds < 15) {
			t.Fatalf("after %d s, while the pool fills: %+v", seconds, l.Points)
		}
	}
	for _, test := range []struct {
		seconds          uint64
		fragmented, said bool
	}{
		{1, true, false}, {2, false, false}, // a moment
		{8, true, false}, {9, true, false}, {10, true, true}, // it lasts
		{11, false, true}, {13, true, true}, {18, false, true}, // again and again
		{19, false, false}, {20, true, false}, // it has ended
	} {
		const full = 20 // s, until when the pool may still fill
		if got := said(full+test.seconds, test.fragmented); got != test.said {
			t.Errorf("after %d s: said %v: %+v", full+test.seconds, got, l.Points)
		}
	}
}

func TestLiveMemory(t *testing.T) {
	s := lively(5)
	s.Totals.InUse, s.Totals.Requested = 950<<20, 500<<20
	s.Processes[0].Totals = s.Totals
	l := Live{Still: true, Replay: gaining}
	l.Update(s)
	if titled(&l, "device memory is nearly full") == nil || titled(&l, "blocks are much larger than requested") == nil {
		t.Errorf("%+v", l.Points)
	}
	s.Spill = &stats.Spill{PeakResident: 900 << 20}
	l.Update(s)
	if titled(&l, "device memory is nearly full") != nil {
		t.Errorf("--spill fills the device: %+v", l.Points)
	}
	s.Spill.Stalls = stats.Moves{Times: 9, NS: second / 11} // of 5 s
	l.Update(s)
	if titled(&l, "calls wait") != nil {
		t.Errorf("moves take less than 2 %% of the time: %+v", l.Points)
	}
	s.Spill.Stalls.NS = second / 9
	l.Update(s)
	if d := titled(&l, "calls wait for spilled buffers"); d == nil || d.Text != "111.11ms, 2.2 % of the run, while buffers moved" || d.Severity != Advice {
		t.Errorf("%+v", l.Points)
	}
	s.Spill = &stats.Spill{Thrashing: true, WorkingSet: 2 << 30, PeakResident: 900 << 20, Sites: []stats.SpillSite{{Tag: "a.c:1"}}}
	l.Update(s)
	if d := titled(&l, "--spill moves the same buffers again and again"); d == nil || !strings.Contains(d.Text, "takes 2.00 GiB") || !strings.Contains(d.Brief, "--spill needs 2.00 GiB, and has ") || d.Tag != "a.c:1" {
		t.Errorf("%+v", l.Points)
	}
	s = missed(lively(5), 100, 1, wire.MissTooSmall)
	s.Totals.InUse, s.Totals.Requested, s.Totals.Cached, s.Totals.LargestCached = 100<<20, 100<<20, 100<<20, 10<<20
	l.Update(s)
	if titled(&l, "free memory is fragmented now") == nil {
		t.Errorf("%+v", l.Points)
	}
	s.Limits = []stats.Limit{{Name: "max_per_tag", Value: 8, Max: 100}}
	missed(s, 900, 40, wire.MissTagCap)
	l.Update(s)
	if p := titled(&l, "max_per_tag bites"); p == nil || p.Knob.Value != "16" {
		t.Errorf("%+v", l.Points)
	}
	s.Ghosts = &stats.Ghosts{Rows: []stats.Ghost{
		{Name: "slab", Requests: 10, DriverNS: 1e6}, {Name: "futhark", Present: true, Requests: 10, DriverNS: 1e9},
	}}
	l.Update(s)
	if p := titled(&l, "slab would do better"); p == nil || p.About != AboutGhost || p.Text != "99.9 % less time in the driver, simulated beside the run" {
		t.Errorf("%+v", l.Points)
	}
}

// TestEachProcessHasItsDevice: several processes together may reserve more than a card has, each on its own.
func TestEachProcessHasItsDevice(t *testing.T) {
	for name, test := range map[string]struct {
		asked uint64 // --device-memory
		fill  uint64 // of the last process
		full  bool
	}{
		"cards of their own": {fill: 30}, "one is full": {fill: 95, full: true},
		"--device-memory": {asked: 50 * mib, fill: 30}, "one fills --device-memory": {asked: 50 * mib, fill: 46, full: true},
	} {
		s := newTape()
		for rank := range uint32(4) {
			fill := uint64(30)
			if s.process = rank + 1; rank == 3 {
				fill = test.fill
			}
			s.device(100 * mib)
			s.driver(1, fill*mib)
		}
		const title = "device memory is nearly full"
		m := stats.New(stats.Options{Started: origin, DeviceMemory: test.asked})
		for i := range s.Records {
			m.Apply(&s.Records[i])
		}
		l := Live{Replay: gaining}
		l.Update(m.Snapshot())
		if point := titled(&l, title); (point != nil) != test.full {
			t.Errorf("%s: live %+v", name, l.Points)
		}
		a := s.analyse(t, func(o *Options) { o.Header.DeviceMemory = test.asked })
		if d := diagnosis(a, title); (d != nil) != test.full {
			t.Errorf("%s: recorded %+v", name, a.Diagnoses)
		}
	}
}

// TestMemoryBesideBuffersEnds: what a driver has given back is no finding.
func TestMemoryBesideBuffersEnds(t *testing.T) {
	s := quiet(60)
	s.Policy, s.Transfers.Unified, s.Totals.BytesAllocated, s.Totals.PeakReserved = "none", true, 1<<40, 1<<28
	s.Machine = []stats.MachineFigure{{Source: wire.MachineRSS, First: 1, Since: 1, Bytes: 1 << 30, Peak: 1 << 30}}
	l := Live{}
	l.Update(s)
	if v, _ := l.Verdict(); v != Improvable || titled(&l, "memory grew beside the buffers") == nil ||
		titled(&l, "memory grew beside the buffers").Share > 0.75 {
		t.Errorf("%v %+v", v, l.Points)
	}
	s.Machine[0].Bytes = 1 << 20
	if l.Update(s); len(l.Points) > 0 {
		t.Errorf("%+v", l.Points)
	}
	s.Machine[0].Bytes, s.Spill = 1<<30, &stats.Spill{}
	if l.Update(s); titled(&l, "memory grew beside the buffers") != nil {
		t.Errorf("with --spill: %+v", l.Points)
	}
}

// lasting judges a run of a minute and returns what its list then has of a title, nil if nothing.
func lasting(change func(*stats.Snapshot), title string) *Diagnosis {
	l := Live{}
	for seconds := uint64(57); seconds <= 60; seconds++ {
		s := quiet(seconds)
		change(s)
		l.Update(s)
	}
	return titled(&l, title)
}

func TestBlockingReadsLive(t *testing.T) {
	const title = "blocking read inside the loop"
	for name, c := range map[string]struct {
		change func(s *stats.Snapshot, site *stats.TransferSite)
		want   bool
	}{
		"a tenth of the time": {func(*stats.Snapshot, *stats.TransferSite) {}, true},
		"less":                {func(_ *stats.Snapshot, site *stats.TransferSite) { site.NS = 5 * second }, false},
		"seven waits":         {func(_ *stats.Snapshot, site *stats.TransferSite) { site.Waits = roundsLeast - 1 }, false},
		"writes":              {func(_ *stats.Snapshot, site *stats.TransferSite) { site.Command = wire.CommandWrite }, false},
		"sites of creates":    {func(s *stats.Snapshot, _ *stats.TransferSite) { s.Transfers.OwnSites = false }, false},
		"the run is over":     {func(s *stats.Snapshot, _ *stats.TransferSite) { s.Processes[0].State = stats.Exited }, false},
	} {
		d := lasting(func(s *stats.Snapshot) {
			site := stats.TransferSite{Name: "a.c:1 a", Command: wire.CommandRead, Flow: stats.Flow{
				Calls: 20, Blocking: 10, TimedBytes: 5 << 20, NS: 6 * second, Waits: roundsLeast,
			}}
			s.Transfers.OwnSites = true
			c.change(s, &site)
			s.Transfers.Sites = []stats.TransferSite{{Name: "b.c:1 b", Command: wire.CommandRead}, site}
		}, title)
		if (d != nil) != c.want || c.want && (d.Tag != "a.c:1 a" || !strings.HasPrefix(d.Text, "10 calls, 5.00 MiB in all, 6s")) {
			t.Errorf("%s: %+v", name, d)
		}
	}
}

func TestLongUnusedLive(t *testing.T) {
	for name, c := range map[string]struct {
		bytes uint64
		state stats.State
		want  bool
	}{
		"much":            {64 << 20, stats.Running, true},
		"little":          {4 << 20, stats.Running, false}, // less than a tenth of what is in use
		"the run is over": {64 << 20, stats.Exited, false},
	} {
		d := lasting(func(s *stats.Snapshot) {
			s.Processes[0].State = c.state
			s.Totals.InUse, s.Totals.Requested, s.Totals.PeakInUse = 100<<20, 100<<20, 100<<20
			s.LongUnused = stats.LongUnused{Site: "a.c:1 a", Bytes: c.bytes, Buffers: 2, NS: 23 * second}
		}, "memory is held without use")
		if (d != nil) != c.want || c.want && !strings.HasPrefix(d.Text, "no command has used 2 buffers of a.c:1 a, 64.0 MiB in all, for 23s") {
			t.Errorf("%s: %+v", name, d)
		}
	}
}

// TestContentsReturnLive: where commands are events, the list says what moves between devices and back.
func TestContentsReturnLive(t *testing.T) {
	for again, want := range map[uint64]bool{movesLeast: true, movesLeast - 1: false} {
		s := quiet(60)
		f := stats.Flow{Calls: 5, Bytes: 5 << 20, Again: again}
		s.Transfers.Directions[stats.Between] = f
		s.Transfers.Sites = []stats.TransferSite{{Name: "a.c:1 a", Between: true, Flow: f}}
		l := Live{}
		l.Update(s)
		if d := titled(&l, string(Returned)); (d != nil) != want || want && d.Tag != "a.c:1 a" {
			t.Errorf("%d times: %+v", again, l.Points)
		}
	}
}
