package analysis

import (
	"cmp"
	"fmt"
	"slices"

	"codeberg.org/gpumemtop/gpumemtop/internal/stats"
	"codeberg.org/gpumemtop/gpumemtop/internal/units"
	"codeberg.org/gpumemtop/gpumemtop/internal/wire"
)

// About says what a point concerns, which is where a screen can lead to.
type About uint8

// What points concern.
const (
	AboutRun     About = iota // the run, or its Tag
	AboutFailure              // a call that failed for lack of memory
	AboutGhost                // another policy
)

// Point is a diagnosis of a run that goes on.
type Point struct {
	Diagnosis
	About About
}

// What the judgement of a run that goes on looks at.
const (
	lateNS      = 10_000_000_000 // what is called late is this old at most, or twice that
	growSeconds = 10             // of the trends
	growRises   = 5              // of these seconds must hold more than the one before
	growLate    = 2              // of them in the later half
	growShare   = 0.01           // of what is in use
	wholeShare  = 0.995          // of the growth: the rest is rounding
	soonSeconds = 30 * 24 * 3600
	steadyNS    = 2_000_000_000 // memory must be wasteful or fragmented for so long, or again and again,
	apartNS     = 5_000_000_000 // with no more than this in between, which is also how long it is then shown
)

// Live judges a run that goes on from its snapshots: what stands out in the last 10 to 20 s, with the report's rules and
// thresholds and only limits that the present policy has. It is not safe for concurrent use.
type Live struct {
	Points []Point // of the last update, the most important first
	Still  bool    // a snapshot is a moment of a recording: what it says of memory need not last

	waste, pieces steady

	before, next rows      // at the beginning of the time and of the next one
	all          [2]asked  // the same of all rows
	driver       [2]uint64 // ns in driver calls, likewise
	since        [2]uint64 // when these were
	latest       *stats.Snapshot
	grows        bool
}

// asked counts what was requested of the pool.
type asked struct {
	hits, misses uint64
	reasons      [reasons]uint64
}

// rows are what call sites had asked for, by number. Of 100,000 most have asked for little: of these the reasons are left
// out.
type rows struct {
	many map[uint32]asked
	few  map[uint32]few
}

type few struct{ hits, misses uint8 }

func (r *asked) rate() float64 { return float64(r.hits) / float64(max(r.hits+r.misses, 1)) }

// low reports whether the hit rate is, of enough requests.
func (r *asked) low() bool { return r.hits+r.misses >= requestsLeast && r.rate() < hitRateLow }

// reason returns the most frequent reason for misses.
func (r *asked) reason() wire.Miss {
	return wire.Miss(slices.Index(r.reasons[:], slices.Max(r.reasons[:])))
}

// after returns what was counted after an earlier time.
func after(hits, misses uint64, counts *[reasons]uint64, before asked) asked {
	r := asked{hits: relative(before.hits, hits), misses: relative(before.misses, misses)}
	for i := range counts {
		r.reasons[i] = relative(before.reasons[i], counts[i])
	}
	return r
}

// Update judges a snapshot; run is how long the program has run, ns. It costs time in proportion to the call sites: call it
// once a second.
func (l *Live) Update(s *stats.Snapshot, run uint64) {
	l.turn(s)
	l.latest = s
	x := &moment{Live: l, s: s, run: run, ended: over(s)}
	l.Points = x.judge()
}

// turn begins a new stretch of time. Of a run that is not seen from its start, or that goes back, nothing is known before.
func (l *Live) turn(s *stats.Snapshot) {
	switch late := l.latest == nil || s.Time < l.latest.Time || s.Time-l.latest.Time > 2*lateNS; {
	case late && relative(s.Started, s.Time) > lateNS:
		l.Restart(s)
	case late:
		*l = Live{Still: l.Still, since: [2]uint64{s.Started, s.Started}} // all that happened is late
	case s.Time-l.since[1] >= lateNS:
		l.before, l.next = l.next, countRows(s)
		l.all, l.driver, l.since = [2]asked{l.all[1], totals(s)}, [2]uint64{l.driver[1], s.Totals.DriverNS}, [2]uint64{l.since[1], s.Time}
	}
}

// Restart forgets what happened before a snapshot, as when a change has cured or caused it.
func (l *Live) Restart(s *stats.Snapshot) {
	l.before = countRows(s)
	l.next, l.latest = l.before, s
	l.all, l.driver = [2]asked{totals(s), totals(s)}, [2]uint64{s.Totals.DriverNS, s.Totals.DriverNS}
	l.since = [2]uint64{s.Time, s.Time}
}

// steady is a diagnosis of a moment, shown once it lasts: between two requests, memory may look wasteful or fragmented
// in a program where it is neither.
type steady struct {
	Diagnosis
	first, last uint64 // when it was found
}

// judge takes what was found now, and returns what to show.
func (y *steady) judge(d Diagnosis, found bool, now uint64) (Diagnosis, bool) {
	gone := y.Title == "" || now < y.last || now-y.last > apartNS
	if found {
		if gone {
			y.first = now
		}
		y.Diagnosis, y.last, gone = d, now, false
	}
	return y.Diagnosis, !gone && y.last-y.first >= steadyNS
}

// Suspicious reports whether a point concerns a row, or its hit rate was low of late though memory does not grow.
func (l *Live) Suspicious(t *stats.Tag) bool {
	if slices.ContainsFunc(l.Points, func(p Point) bool { return p.Tag == t.Name && p.Severity != Note }) {
		return true
	}
	r := l.of(t)
	return r.low() && !l.follows(&r)
}

// follows reports whether misses follow from growth: a buffer that is never released cannot serve again.
func (l *Live) follows(r *asked) bool { return l.grows && r.reason() == wire.MissCold }

// of returns what a row asked for of late.
func (l *Live) of(t *stats.Tag) asked {
	before, many := l.before.many[t.ID]
	if !many {
		f := l.before.few[t.ID]
		before.hits, before.misses = uint64(f.hits), uint64(f.misses)
	}
	return after(t.Hits, t.Misses, &t.MissReasons, before)
}

func countRows(s *stats.Snapshot) rows {
	r := rows{map[uint32]asked{}, map[uint32]few{}}
	for i := range s.Tags {
		switch t := &s.Tags[i]; {
		case t.Hits+t.Misses >= requestsLeast:
			r.many[t.ID] = asked{t.Hits, t.Misses, t.MissReasons}
		case t.Hits+t.Misses > 0:
			r.few[t.ID] = few{uint8(t.Hits), uint8(t.Misses)}
		}
	}
	return r
}

func totals(s *stats.Snapshot) asked {
	return asked{s.Totals.Hits, s.Totals.Misses, s.Totals.MissReasons}
}

// over reports whether all processes of a snapshot have ended.
func over(s *stats.Snapshot) bool {
	return len(s.Processes) > 0 && !slices.ContainsFunc(s.Processes, func(p stats.Process) bool { return p.State == stats.Running })
}

// sortPoints puts the most important first.
func sortPoints(points []Point) {
	slices.SortStableFunc(points, func(a, b Point) int {
		return cmp.Or(cmp.Compare(severityRank[a.Severity], severityRank[b.Severity]), cmp.Compare(b.Share, a.Share))
	})
}

var severityRank = map[Severity]int{Problem: 0, Advice: 1, Note: 2}

// growth is how memory rose in the last seconds.
type growth struct {
	perSecond float64 // bytes
	tag       string  // that rose most
	own       float64 // of which it has this
}

// grown returns how the sum of the trends has risen, false if it did not rise steadily.
func grown(s *stats.Snapshot) (g growth, found bool) {
	if relative(s.Started, s.Time) < growSeconds*1e9 {
		return growth{}, false
	}
	var sums [growSeconds]uint64
	most := uint64(0)
	for i := range s.Tags {
		t := &s.Tags[i]
		var points [growSeconds]uint64
		t.Trend.Last(points[:])
		for k, v := range points {
			sums[k] += v
		}
		if rise := relative(points[0], points[growSeconds-1]); rise > most {
			most, g.tag = rise, t.Name
		}
	}
	rises, late := 0, 0
	for k := range growSeconds - 1 {
		switch {
		case sums[k+1] < sums[k]:
			return growth{}, false
		case sums[k+1] > sums[k]:
			rises++
			late += 2 * k / growSeconds
		}
	}
	rise, last := relative(sums[0], sums[growSeconds-1]), sums[growSeconds-1]
	g.perSecond, g.own = float64(rise)/(growSeconds-1), float64(most)/(growSeconds-1)
	return g, rises >= growRises && late >= growLate && rise >= bytesLeast && float64(rise) >= growShare*float64(last)
}

func (g *growth) text(s *stats.Snapshot) string {
	text := fmt.Sprintf("%s of it at %s", units.Percent(g.own/g.perSecond, 1), g.tag)
	if g.own >= wholeShare*g.perSecond {
		text = "all of it at " + g.tag
	}
	if device := s.Device.Global; device > s.Totals.InUse && g.perSecond > 0 {
		if left := float64(device-s.Totals.InUse) / g.perSecond; left < soonSeconds {
			text += "; the device is full in " + units.DurationLong(1e9*left)
		}
	}
	return text
}
