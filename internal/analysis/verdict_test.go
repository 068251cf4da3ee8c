package analysis

import (
	"fmt"
	"strings"
	"testing"

	"codeberg.org/gpumemtop/gpumemtop/internal/stats"
	"codeberg.org/gpumemtop/gpumemtop/internal/wire"
)

// quiet is a snapshot of a run in which nothing is wrong.
func quiet(seconds uint64) *stats.Snapshot {
	s := missed(lively(seconds), 100*seconds, 1, wire.MissCold)
	s.Totals.Creates, s.Totals.Releases = 100*seconds, 99*seconds
	return s
}

func TestVerdicts(t *testing.T) {
	var l Live
	says := func(when string, want Verdict, sentence string) {
		t.Helper()
		if got, judged := l.Verdict(); got != want || len(l.Points) == 0 && judged != sentence {
			t.Errorf("%s: %v, %q, %+v", when, got, judged, l.Points)
		}
	}
	const watching, fine = "watching… (judged in 10 s)", "fine: no mistake, no growth of late; other policies are not compared"
	says("before the first snapshot", Watching, "no allocation to judge")
	l.Update(lively(30))
	says("before the first create", Watching, "no allocation to judge")
	for seconds := uint64(31); seconds < 41; seconds++ {
		l.Update(quiet(seconds))
		says("in the first 10 s", Watching, fmt.Sprintf("watching… (judged in %d s)", 41-seconds))
	}
	l.Update(quiet(41))
	says("after 10 s", Fine, fine)
	s := quiet(42)
	s.Limits[0].Value = 8
	l.Update(s)
	says("after a change", Watching, watching)
	l.Restart(s)
	says("at once after that", Watching, watching)
	s = quiet(52)
	s.Limits[0].Value = 8
	l.Update(s)
	says("when it is judged again", Watching, watching)
	s = quiet(62)
	s.Limits[0].Value = 8
	l.Update(s)
	says("10 s after a change", Fine, fine)
	s.Ghosts = &stats.Ghosts{Rows: []stats.Ghost{
		{Name: "pow2", Requests: 100, DriverNS: 1e6}, {Name: "futhark", Present: true, Requests: 100, DriverNS: 1e6},
	}}
	l.Update(s)
	says("with ghosts", Fine, "fine: no mistake, no growth of late; no simulated policy is clearly better")
	s.Ghosts.Rows[1].Since = 1
	l.Update(s)
	says("with a ghost that began late", Fine, fine)
	for i := range s.Ghosts.Rows {
		s.Ghosts.Rows[i].RecentRequests = 20
	}
	l.Update(s)
	says("with a ghost that has requests", Fine, "fine: no mistake, no growth of late; no simulated policy serves clearly more")
	s.Totals.Exposed, s.Totals.ExposedNewZero, s.Tags[0].Exposed = 3, 3, 3
	l.Update(s)
	if v, judged := l.Verdict(); v != Fine || !strings.HasPrefix(judged, "fine: ") || titled(&l, "kernels may read what a block's earlier owner left") == nil {
		t.Errorf("with exposed contents: %v %q %+v", v, judged, l.Points)
	}
	s.Lost = 1
	l.Update(s)
	says("with lost events", Watching, "")
	s.Lost, s.Hosted = 0, stats.Part{Buffers: 1, Bytes: 1}
	l.Update(s)
	says("with advice", Improvable, "")
	s.OtherFindings = 1
	l.Update(s)
	says("with a mistake", Wrong, "")
}

// TestShortRunsAreJudgedAtTheirEnd: by what they did.
func TestShortRunsAreJudgedAtTheirEnd(t *testing.T) {
	end := func(change func(*stats.Snapshot)) (*Live, Verdict, string) {
		s := quiet(3)
		s.Processes[0].State = stats.Exited
		change(s)
		l := &Live{}
		l.Update(s)
		v, judged := l.Verdict()
		return l, v, judged
	}
	if _, v, judged := end(func(*stats.Snapshot) {}); v != Fine || judged != "fine: no mistake, all memory released; other policies are not compared" {
		t.Errorf("%v %q", v, judged)
	}
	if _, v, judged := end(func(s *stats.Snapshot) { s.Totals.Creates = 0 }); v != Watching || judged != "no allocation to judge" {
		t.Errorf("%v %q", v, judged)
	}
	leaks := func(s *stats.Snapshot) {
		s.Totals.LiveBuffers, s.Processes[0].Totals.LiveBuffers, s.Tags[0].Live, s.Tags[0].InUse = 1, 1, 1, 64
	}
	if l, v, _ := end(leaks); v != Wrong {
		t.Errorf("%v %+v", v, l.Points)
	}
	misses := func(s *stats.Snapshot) {
		missed(s, 0, 300, wire.MissPolicy)
		s.Policy, s.Ghosts = "pinned", pinnedGhosts(0, 0)
	}
	if l, v, _ := end(misses); v != Improvable || l.Points[0].Title != "pinned served none of the requests" ||
		l.Points[0].Text != "futhark would have served 99.0 %, simulated beside the run" {
		t.Errorf("%v %+v", v, l.Points)
	}
	if l, _, _ := end(func(s *stats.Snapshot) { misses(s); s.Ghosts.Rows[1].Since = 1 }); titled(l, "pinned served") != nil {
		t.Errorf("the policy was changed meanwhile: %+v", l.Points)
	}
}

// TestRecordingsAreJudgedUpToATime: what was before is known.
func TestRecordingsAreJudgedUpToATime(t *testing.T) {
	l := Live{Still: true}
	l.Update(quiet(9))
	if v, _ := l.Verdict(); v != Watching {
		t.Errorf("after 9 s: %v", v)
	}
	l.Update(quiet(30))
	if v, judged := l.Verdict(); v != Fine || !strings.HasPrefix(judged, "fine up to this time: no mistake, no growth; ") {
		t.Errorf("after 30 s: %v %q", v, judged)
	}
}

// TestFastGrowthIsJudgedAtOnce: when it would fill the device in two minutes, and does not fall again and again.
func TestFastGrowthIsJudgedAtOnce(t *testing.T) {
	growing := func(points ...uint64) *stats.Snapshot {
		s := lively(uint64(len(points)))
		for i := range points {
			points[i] *= mib
		}
		s.Tags[0].Trend = stats.TrendOf(points)
		last := points[len(points)-1]
		s.Totals = stats.Totals{InUse: last, Requested: last, PeakInUse: last, PeakInUseTime: s.Time, Creates: 100, Releases: 50}
		return s
	}
	for name, test := range map[string]struct {
		s    *stats.Snapshot
		want Severity
	}{
		"10 MiB/s of 1 GiB":     {growing(10, 20, 30, 40), Problem},
		"after two minutes":     {growing(7, 14, 21, 28), ""},
		"three seconds":         {growing(10, 20, 30), ""},
		"one of them stands":    {growing(10, 20, 20, 40), ""},
		"it had more before":    {func() *stats.Snapshot { s := growing(10, 20, 30, 40); s.Totals.PeakInUseTime -= 3 * second; return s }(), ""},
		"nothing released":      {func() *stats.Snapshot { s := growing(10, 20, 30, 40); s.Totals.Releases = 0; return s }(), Advice},
		"memory is not known":   {func() *stats.Snapshot { s := growing(10, 20, 30, 40); s.Processes[0].DeviceMemory = 0; return s }(), ""},
		"once it rests":         {growing(10, 20, 30, 40, 40, 60), Problem},
		"it rests twice":        {growing(10, 20, 30, 40, 40, 40), ""},
		"later it grows slowly": {growing(10, 20, 30, 40, 40, 40, 41, 42, 43, 44, 45, 46, 47), Problem},
		"later it starts":       {growing(10, 10, 10, 10, 10, 10, 10, 10, 10, 10, 20, 30, 40), Problem},
	} {
		l := Live{}
		l.Update(test.s)
		d := titled(&l, "memory grows")
		if d == nil && test.want != "" || d != nil && d.Severity != test.want {
			t.Errorf("%s: %+v", name, l.Points)
		}
		if test.want == Advice && d != nil && !strings.HasSuffix(d.Text, "; nothing was released yet") {
			t.Errorf("%s: %+v", name, d)
		}
	}
}

// pinnedGhosts are the ghosts of a run under pinned that serves so much of what is requested, with futhark in the lead.
func pinnedGhosts(serves, since uint64) *stats.Ghosts {
	return &stats.Ghosts{Rows: []stats.Ghost{
		{Name: "futhark", Policy: "futhark", Requests: 300, Hits: 297, RecentRequests: 200, RecentHits: 200, DriverNS: 1e5},
		{Name: "pinned", Policy: "pinned", Present: true, Since: since, Requests: 300, Hits: serves, RecentRequests: 200, RecentHits: serves, DriverNS: 1e6},
	}}
}

// TestPolicyMisses: a policy that does not serve what another would is found, whatever the driver takes.
func TestPolicyMisses(t *testing.T) {
	judge := func(hits, misses uint64, change func(*stats.Snapshot)) *Live {
		s := missed(lively(5), hits, misses, wire.MissPolicy)
		s.Policy, s.Totals.DriverNS, s.Ghosts = "pinned", 1000, pinnedGhosts(hits, 4*second)
		change(s)
		l := &Live{}
		l.Update(s)
		return l
	}
	nothing := func(*stats.Snapshot) {}
	l := judge(0, 200, nothing)
	if d := titled(l, "pinned serves none of these requests"); d == nil || d.Text != "futhark would serve all in the last 10 s, simulated beside the run" ||
		d.About != AboutGhost || d.Severity != Advice {
		t.Errorf("%+v", l.Points)
	}
	if l := judge(178, 22, nothing); titled(l, "pinned serves 89.0 % of these requests") == nil {
		t.Errorf("a tenth more is served: %+v", l.Points)
	}
	assumed := func(s *stats.Snapshot) {
		for i := range s.Ghosts.Rows {
			s.Ghosts.Rows[i].Assumed, s.Ghosts.Rows[i].PeakReserved = true, 100*uint64(3-i)
		}
	}
	if l := judge(0, 200, assumed); titled(l, "pinned serves none of these requests") == nil {
		t.Errorf("driver calls are not measured: %+v", l.Points)
	}
	for name, l := range map[string]*Live{
		"it holds too much":      judge(0, 200, func(s *stats.Snapshot) { assumed(s); s.Ghosts.Rows[1].PeakReserved = 149 }),
		"less than a tenth":      judge(181, 19, nothing),
		"too few requests":       judge(0, 19, nothing),
		"the simulation differs": judge(0, 200, func(s *stats.Snapshot) { s.Ghosts.Rows[1].RecentHits = 190 }),
		"it is in the lead":      judge(0, 200, func(s *stats.Snapshot) { s.Ghosts.Rows[0].Present = true }),
		"no pool was wanted":     judge(0, 200, func(s *stats.Snapshot) { s.Policy = "none" }),
		"no ghosts":              judge(0, 200, func(s *stats.Snapshot) { s.Ghosts = nil }),
		"a limit is named": judge(0, 200, func(s *stats.Snapshot) {
			s.Policy, s.Limits = "futhark", []stats.Limit{{Name: stats.MaxCachedBytes, Kind: stats.LimitBytes, Value: 1 << 20, Max: 1 << 40}}
			s.Totals.MissReasons[wire.MissLimit] = 200
		}),
	} {
		if titled(l, " of these requests") != nil {
			t.Errorf("%s: %+v", name, l.Points)
		}
	}
}

// TestChangesThatMakeItWorse: what is known of a change, and what comes near.
func TestChangesThatMakeItWorse(t *testing.T) {
	for _, test := range []struct {
		before, after Effect
		worse         bool
	}{
		{Effect{Hits: 100, Requests: 100}, Effect{Hits: 0, Requests: 100}, true},
		{Effect{Hits: 100, Requests: 100}, Effect{Hits: 95, Requests: 100}, true},
		{Effect{Hits: 100, Requests: 100}, Effect{Hits: 96, Requests: 100}, false},
		{Effect{Hits: 0, Requests: 100}, Effect{Hits: 100, Requests: 100}, false},
		{Effect{Hits: 100, Requests: 100}, Effect{Hits: 0, Requests: 19}, false},
		{Effect{Hits: 19, Requests: 19}, Effect{Hits: 0, Requests: 100}, false},
	} {
		var l Live
		l.SetLatestChange(&Change{Label: "policy futhark → pinned", Before: test.before, After: test.after})
		l.Update(lively(5))
		d := titled(&l, "worse since policy futhark → pinned")
		if (d != nil) != test.worse || d != nil && (d.Severity != Advice || d.About != AboutChange) {
			t.Errorf("%+v: %+v", test, l.Points)
		}
	}
}

// TestNothingIsNotLeaked: handles whose memory is not known are no leak.
func TestNothingIsNotLeaked(t *testing.T) {
	for bytes, leaked := range map[uint64]bool{0: false, 1: true} {
		s := quiet(5)
		s.Processes[0] = stats.Process{Number: 1, State: stats.Exited, Totals: stats.Totals{LiveBuffers: 1024, InUse: bytes}}
		s.Totals.LiveBuffers, s.Tags[0].Live, s.Tags[0].InUse, s.Lost = 1024, 1024, bytes, 9
		var l Live
		if l.Update(s); (titled(&l, "1024 buffers perhaps never released") != nil) != leaked {
			t.Errorf("%d bytes: %+v", bytes, l.Points)
		}
	}
}

// TestPoolThatServesNothing: it is found however little the driver takes, where a pool that keeps what is released would serve.
func TestPoolThatServesNothing(t *testing.T) {
	const title = "the pool serves few requests"
	for name, test := range map[string]struct {
		hits uint64
		size func(n uint64) uint64
		keep bool
		want bool
	}{
		"the same size":   {0, func(uint64) uint64 { return mib }, false, true},
		"two sizes":       {0, func(n uint64) uint64 { return mib - n%2 }, false, true},
		"always another":  {0, func(n uint64) uint64 { return mib + n }, false, false},
		"never released":  {0, func(uint64) uint64 { return mib }, true, false},
		"many are served": {12, func(uint64) uint64 { return mib }, false, false},
	} {
		s := newTape()
		for n := range uint64(40) {
			outcome := wire.OutcomeMiss
			if n >= 40-test.hits {
				outcome = wire.OutcomeHit
			}
			object := s.create(outcome, 1, test.size(n), mib, 1+n)
			if outcome == wire.OutcomeMiss {
				s.last().Reason, s.last().Cost = uint8(wire.MissPolicy), 100
			}
			if !test.keep {
				s.release(object, wire.OutcomeDriver)
			}
		}
		a := s.analyse(t, func(o *Options) { o.Header.Policy = "pinned" })
		d := diagnosis(a, title)
		if (d != nil) != test.want {
			t.Errorf("%s: %+v", name, a.Diagnoses)
		}
		if d != nil && !strings.Contains(d.Text, "; a pool that keeps all that is released would serve up to 9") {
			t.Errorf("%s: %s", name, d.Text)
		}
	}
}
