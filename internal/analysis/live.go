package analysis

import (
	"cmp"
	"slices"

	"codeberg.org/gpumemtop/gpumemtop/internal/stats"
	"codeberg.org/gpumemtop/gpumemtop/internal/wire"
)

// What the judgement of a run that goes on looks at.
const (
	lateNS      = 10_000_000_000 // what is called late is this old at most, or twice that
	growSeconds = 10             // of the trends
	growRises   = 5              // of these seconds must hold more than the one before
	growLate    = 2              // of them in the later half
	growShare   = 0.01           // of what is in use
	earlyPoints = 4              // seconds are enough if each holds more than the second before
	earlyRoom   = 120            // where growth would fill a device within that many seconds,
	earlyPeakNS = 2_000_000_000  // and the peak is this old at most: else memory rises and falls
	steadyNS    = 2_000_000_000  // memory must be wasteful or fragmented for so long, or again and again,
	apartNS     = 5_000_000_000  // with no more than this in between, which is also how long it is then shown
)

// Live judges a run by its snapshots: while it goes on, what stands out in the last 10 to 20 s, with only limits that the present policy
// has; after its end, what a report would say of what snapshots know. It is not safe for concurrent use.
type Live struct {
	Points   []Diagnosis // of the last update, the most important first
	Still    bool        // a snapshot is a moment of a recording: what it says of memory need not last
	Attached bool        // as Evidence has it
	Replay   Replay      // likewise; nil: nothing is replayed
	knee     *Knee       // likewise
	change   *Change     // likewise

	moments map[int]*steady // by rule

	begun        uint64      // when there was first something to judge, after the latest change; 0: there was nothing yet
	before, next rows        // at the beginning of the time and of the next one
	all          [2]Requests // the same of all rows
	driver       [2]uint64   // ns in driver calls, likewise
	since        [2]uint64   // when these were
	latest       *stats.Snapshot
	rise         *Rise
}

// Replay returns what replays of trials of the run so far did beside the configuration that a snapshot shows, as far as that is known
// (nil: nothing yet), and begins others. It does not wait.
type Replay func(s *stats.Snapshot, list []Trial) *Replays

// rows are what call sites had asked for, by number. Of 100,000 most have asked for little: of these the reasons are left
// out.
type rows struct {
	many map[uint32]Requests
	few  map[uint32]few
}

type few struct{ hits, misses uint8 }

// requestsSince returns what was counted after an earlier time.
func requestsSince(hits, misses uint64, counts *[reasons]uint64, before Requests) Requests {
	r := Requests{Hits: differenceOrZero(before.Hits, hits), Misses: differenceOrZero(before.Misses, misses)}
	for i := range counts {
		r.Reasons[i] = differenceOrZero(before.Reasons[i], counts[i])
	}
	return r
}

// Update judges a snapshot and returns what stands out, the most important first. It costs time in proportion to the call sites: call
// it once a second.
func (l *Live) Update(s *stats.Snapshot) []Diagnosis {
	l.beginStretch(s)
	l.latest = s
	if l.begun == 0 && s.Totals.Creates > 0 {
		l.begun = s.Time
	}
	e := l.evidence(s)
	l.rise = e.Rise
	l.Points = e.applyRules(l.holdUntilLasting)
	replays := &Replays{}
	if list := trialsOfFindings(l.Points, s.Policy); len(list) > 0 && l.Replay != nil && showsWhatRunsDo(s) {
		replays = cmp.Or(l.Replay(s, list), replays)
	}
	for i := range l.Points {
		l.Points[i].applyReplays(s.Policy, replays)
	}
	return l.Points
}

// SetKnee says where the hit-rate curve has its knee; nil: that is not known.
func (l *Live) SetKnee(k *Knee) { l.knee = k }

// evidence is what the snapshot and those before it show of the run.
func (l *Live) evidence(s *stats.Snapshot) *Evidence {
	e := EvidenceOfSnapshot(s)
	e.Attached, e.Change = l.Attached, l.change
	if k := l.knee; k != nil && k.Policy == s.Policy {
		e.Knee = k
	}
	if e.State == GoesOn {
		e.Rise, e.Late = memoryRise(s), l.stretchTotals(s)
	}
	return e
}

// stretchTotals is what happened since the beginning of the time.
func (l *Live) stretchTotals(s *stats.Snapshot) *Late {
	t := &s.Totals
	late := &Late{
		Length: differenceOrZero(l.since[0], s.Time), DriverNS: differenceOrZero(l.driver[0], t.DriverNS), Requests: requestsSince(t.Hits,
			t.Misses, &t.MissReasons, l.all[0]),
		Filling: !l.Still && l.since[0] <= s.Started,
	}
	for i := range s.Tags {
		if r := l.RecentRequestsOfRow(&s.Tags[i]); r.isHitRateLow() && r.Misses > late.AtSite.Misses {
			late.Site, late.AtSite = s.Tags[i].Name, r
		}
	}
	return late
}

// beginStretch begins a new stretch of time. Of a run that is not seen from its start, or that goes back, nothing is known before.
func (l *Live) beginStretch(s *stats.Snapshot) {
	switch late := l.latest == nil || s.Time < l.latest.Time || s.Time-l.latest.Time > 2*lateNS; {
	case late && differenceOrZero(s.Started, s.Time) > lateNS, !late && configurationChanged(l.latest, s):
		l.Restart(s)
	case late:
		*l = Live{Still: l.Still, Attached: l.Attached, Replay: l.Replay, knee: l.knee, change: l.change, since: [2]uint64{s.Started, s.Started}} // all that happened is late
	case s.Time-l.since[1] >= lateNS:
		l.before, l.next = l.next, requestsByRow(s)
		l.all, l.driver, l.since = [2]Requests{l.all[1], requestsOfSnapshot(s)}, [2]uint64{l.driver[1], s.Totals.DriverNS}, [2]uint64{l.since[1], s.Time}
	}
}

// configurationChanged reports whether the policy or a limit is another one than it was.
func configurationChanged(was, is *stats.Snapshot) bool {
	return was.Policy != is.Policy || !slices.EqualFunc(was.Limits, is.Limits, func(a, b stats.Limit) bool {
		return a.Name == b.Name && a.Value == b.Value
	})
}

// Restart forgets what happened before a snapshot, as when a change has cured or caused it; nil: it forgets all.
func (l *Live) Restart(s *stats.Snapshot) {
	if s == nil {
		*l = Live{Still: l.Still, Attached: l.Attached, Replay: l.Replay}
		return
	}
	l.begun = 0
	l.before = requestsByRow(s)
	l.next, l.latest = l.before, s
	l.all, l.driver = [2]Requests{requestsOfSnapshot(s), requestsOfSnapshot(s)}, [2]uint64{s.Totals.DriverNS, s.Totals.DriverNS}
	l.since = [2]uint64{s.Time, s.Time}
}

// steady is a diagnosis of a moment, shown once it lasts: between two requests, memory may look wasteful or fragmented
// in a program where it is neither.
type steady struct {
	Diagnosis
	first, last uint64 // when it was found
}

// findingToShow takes what was found now, and returns what to show.
func (y *steady) findingToShow(d Diagnosis, found bool, now uint64) (Diagnosis, bool) {
	gone := y.Title == "" || now < y.last || now-y.last > apartNS
	if found {
		if gone {
			y.first = now
		}
		y.Diagnosis, y.last, gone = d, now, false
	}
	return y.Diagnosis, !gone && y.last-y.first >= steadyNS
}

// holdUntilLasting holds back what a rule finds of a moment until it lasts.
func (l *Live) holdUntilLasting(rule int, d Diagnosis, found bool) (Diagnosis, bool) {
	if l.Still || rules[rule].needs != ofMoment {
		return d, found
	}
	if l.moments == nil {
		l.moments = map[int]*steady{}
	}
	if l.moments[rule] == nil {
		l.moments[rule] = &steady{}
	}
	return l.moments[rule].findingToShow(d, found, l.latest.Time)
}

// IsRowSuspicious reports whether a point concerns a row, or its hit rate was low of late though memory does not grow.
func (l *Live) IsRowSuspicious(t *stats.Tag) bool {
	if slices.ContainsFunc(l.Points, func(d Diagnosis) bool { return d.Tag == t.Name && d.Severity != Note }) {
		return true
	}
	r := l.RecentRequestsOfRow(t)
	return r.isHitRateLow() && (l.rise == nil || r.mainMissReason() != wire.MissCold)
}

// SetLatestChange gives the judgement the user's latest change; nil: there is none, or it is not known what came of it.
func (l *Live) SetLatestChange(c *Change) { l.change = c }

// RecentRequestsOfRow returns what a row asked for of late.
func (l *Live) RecentRequestsOfRow(t *stats.Tag) Requests {
	before, many := l.before.many[t.ID]
	if !many {
		f := l.before.few[t.ID]
		before.Hits, before.Misses = uint64(f.hits), uint64(f.misses)
	}
	return requestsSince(t.Hits, t.Misses, &t.MissReasons, before)
}

func requestsByRow(s *stats.Snapshot) rows {
	r := rows{map[uint32]Requests{}, map[uint32]few{}}
	for i := range s.Tags {
		switch t := &s.Tags[i]; {
		case t.Hits+t.Misses >= requestsLeast:
			r.many[t.ID] = Requests{t.Hits, t.Misses, t.MissReasons}
		case t.Hits+t.Misses > 0:
			r.few[t.ID] = few{uint8(t.Hits), uint8(t.Misses)}
		}
	}
	return r
}

func requestsOfSnapshot(s *stats.Snapshot) Requests {
	return Requests{s.Totals.Hits, s.Totals.Misses, s.Totals.MissReasons}
}

// allEnded reports whether all processes of a snapshot have ended.
func allEnded(s *stats.Snapshot) bool {
	return len(s.Processes) > 0 && !slices.ContainsFunc(s.Processes, func(p stats.Process) bool { return p.State == stats.Running })
}

// LeaksOfEndedProcesses is what the processes of a snapshot, which have all ended, left behind, by call site.
func LeaksOfEndedProcesses(s *stats.Snapshot) []Leak {
	var list []Leak
	for _, t := range s.MemoryLeftBehind() {
		list = append(list, Leak{Name: t.Name, Stack: t.Stack, Buffers: t.Live, Bytes: t.InUse})
	}
	slices.SortFunc(list, func(a, b Leak) int { return cmp.Compare(a.Name, b.Name) })
	sortLeaks(list)
	return list
}

// memoryRise returns how the sum of the trends rises. It is nil unless they rise steadily, or so fast that a device is full soon.
func memoryRise(s *stats.Snapshot) *Rise {
	sums, age := inUseBySecond(s.Tags), differenceOrZero(s.Started, s.Time)
	if age >= growSeconds*1e9 && risesOften(sums) {
		if r := recentRise(s, sums); r != nil {
			return r
		}
	}
	if differenceOrZero(s.Totals.PeakInUseTime, s.Time) > earlyPeakNS {
		return nil
	}
	for seconds := growSeconds; seconds >= earlyPoints; seconds-- {
		late := sums[growSeconds-seconds:]
		if age < uint64(seconds)*1e9 || !risesAlways(late) {
			continue
		}
		if r := recentRise(s, late); r != nil && 0 <= r.Room && r.Room <= earlyRoom {
			r.Fills = s.Totals.Releases == 0
			return r
		}
	}
	return nil
}

// inUseBySecond is what call sites together had in use in each of the last seconds.
func inUseBySecond(tags []stats.Tag) []uint64 {
	sums, points := make([]uint64, growSeconds), make([]uint64, growSeconds)
	for i := range tags {
		tags[i].Trend.FillWithLastPoints(points)
		for k, v := range points {
			sums[k] += v
		}
	}
	return sums
}

// recentRise is the rise in the last seconds; nil: it is too little to tell.
func recentRise(s *stats.Snapshot, sums []uint64) *Rise {
	seconds := len(sums)
	rise, most, site := growth(s.Tags, seconds)
	if rise < bytesLeast || float64(rise) < growShare*float64(sums[seconds-1]) {
		return nil
	}
	return &Rise{
		Bytes: float64(rise) / float64(seconds-1), Site: site, Part: float64(most) / float64(rise), Room: secondsUntilFull(s, seconds),
		Share: 1,
	}
}

// growth returns by how much call sites grew in the last seconds, and the site that grew the most. A site that changed in one
// second alone does not count: an iteration of several seconds takes its buffers one after the other.
func growth(tags []stats.Tag, seconds int) (sum, most int64, site string) {
	points := make([]uint64, seconds)
	for i := range tags {
		tags[i].Trend.FillWithLastPoints(points)
		rise := int64(points[seconds-1] - points[0])
		if changes := len(slices.Compact(points)) - 1; rise > 0 && changes == 1 {
			continue
		}
		if sum += rise; rise > most {
			most, site = rise, tags[i].Name
		}
	}
	return sum, most, site
}

// risesOften reports whether memory rises often and never falls, in the later half, too.
func risesOften(sums []uint64) bool {
	rises, late := countRises(sums)
	return rises >= growRises && late >= growLate
}

// risesAlways reports whether memory is held all the time, and rises in each second but perhaps one of many.
func risesAlways(sums []uint64) bool {
	rises, _ := countRises(sums)
	return sums[0] > 0 && rises >= max(earlyPoints-1, len(sums)-2)
}

// countRises counts the seconds in which memory rises, and those of the later half; none if it falls in any.
func countRises(sums []uint64) (rises, late int) {
	for k := range len(sums) - 1 {
		switch {
		case sums[k+1] < sums[k]:
			return 0, 0
		case sums[k+1] > sums[k]:
			rises++
			late += 2 * k / len(sums)
		}
	}
	return rises, late
}

// secondsUntilFull is when the first process fills its device, if all grow on as in the last seconds; -1: unknown.
func secondsUntilFull(s *stats.Snapshot, seconds int) float64 {
	soonest := -1.0
	for i := range s.Processes {
		p := &s.Processes[i]
		t, tags := &p.Totals, p.Tags
		if len(s.Processes) == 1 {
			t, tags = &s.Totals, s.Tags
		}
		rise, _, _ := growth(tags, seconds)
		if p.State != stats.Running || rise <= 0 || p.DeviceMemory <= t.InUse || p.Devices > 1 {
			continue
		}
		if left := float64(p.DeviceMemory-t.InUse) / (float64(rise) / float64(seconds-1)); soonest < 0 || left < soonest {
			soonest = left
		}
	}
	return soonest
}
