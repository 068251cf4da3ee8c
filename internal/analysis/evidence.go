package analysis

import (
	"slices"

	"codeberg.org/gpumemtop/gpumemtop/internal/heap"
	"codeberg.org/gpumemtop/gpumemtop/internal/stats"
	"codeberg.org/gpumemtop/gpumemtop/internal/units"
	"codeberg.org/gpumemtop/gpumemtop/internal/wire"
)

// Evidence is what is known of a run: what rules judge, and what package figures reads. Two sources give evidence: the snapshots of a
// run, one after the other (Live), and a recording (New). A part that the source does not know is nil, and rules that need that part
// say nothing.
type Evidence struct {
	Run      *stats.Snapshot // counters, gauges, peaks, processes with their device memory, mistakes and failures
	State    State
	Length   uint64 // of what was watched, ns
	Attached bool   // where events are lost, calls of the program are missing

	Memory *Memory // now, or at the peak; nil after the end of a run whose peak was not looked at
	Rise   *Rise   // nil: memory does not grow steadily
	Late   *Late   // what happened of late; nil in a recording, and after the end
	Knee   *Knee   // of the present policy's curve; nil: not known
	Change *Change // the user's latest, where what came of it is known; nil: there is none
	Leaks  []Leak  // what processes that ended left behind, the most bytes first
	Whole  *Whole  // what only a recording shows; nil: the source is a snapshot
}

// EvidenceOfSnapshot returns what one snapshot shows of a run by itself.
func EvidenceOfSnapshot(s *stats.Snapshot) *Evidence {
	e := &Evidence{Run: s, Length: s.WallNS()}
	if allEnded(s) {
		e.State, e.Leaks = Over, LeaksOfEndedProcesses(s)
		return e
	}
	t := &s.Totals
	e.Memory = &Memory{When: now, InUse: t.InUse, Requested: t.Requested, Reserved: t.ReservedBytes(),
		Fragmentation: t.ExternalFragmentation()}
	return e
}

// Evidence returns what the analysis shows of the run.
func (a *Analysis) Evidence() *Evidence {
	return &Evidence{
		Run: a.Snapshot, State: Over, Attached: a.Run.Header.Attached, Leaks: a.Leaks, Whole: &Whole{Analysis: a},
		Memory: &Memory{
			When: "at the peak", InUse: a.Peak.InUse, Requested: a.Peak.Requested, Reserved: a.Peak.Reserved, Fragmentation: a.fragmentationAtPeak(),
		},
	}
}

// State says how much of a run the evidence covers.
type State uint8

// The states of a run.
const (
	GoesOn    State = iota // what is in use may be released later
	Over                   // nothing will be released
	BrokenOff              // the recording ends before the run does
)

// Memory is the memory of a run at one moment.
type Memory struct {
	When                       string // for sentences: now, or "at the peak"
	InUse, Requested, Reserved uint64
	Fragmentation              float64 // external
}

// now is when rules judge a run that goes on.
const now = "now"

// Rise is steady growth of the memory in use.
type Rise struct {
	Bytes      float64 // in each iteration, or in each second
	Left       uint64  // by these, bytes
	Kept       int64   // buffers more, likewise
	Even       bool    // each iteration leaves about as much
	Iterations uint64  // that grew so far; 0: the program has none, or they are not known
	Process    uint32  // that grows, number in the session; 0: all together
	Site       string  // that has most of it; empty: unknown
	Part       float64 // what Site has of it; 0: unknown
	Room       float64 // how many more iterations or seconds fill a device; negative: unknown
	Share      float64 // as in Diagnosis
	Fills      bool    // it was judged after a few seconds in which the program released nothing
}

// Knee is the least limit of cached bytes of each process within two points of the best hit rate on the curve.
type Knee struct {
	Policy string // that the curve simulates
	Limit  uint64
}

// Late is what happened in the last 10 to 20 s.
type Late struct {
	Length   uint64 // ns
	DriverNS uint64 // in calls of the driver
	Requests
	Filling bool     // the run is so young that the pool may still fill
	Site    string   // with a low hit rate, the one that missed most; empty: there is none
	AtSite  Requests // of Site
}

// Change is a change of a limit or of the policy that the user made, with what was so before and what is so since.
type Change struct {
	Label         string // what changed: "max_waste_ratio 2 → 2.5"
	Before, After Effect
}

// Effect is what a pool did in a stretch of time.
type Effect struct {
	Hits, Requests uint64
	Cached         uint64  // at its end
	Calls          float64 // of the driver, per second
}

// HitRate returns hits / requests, 0 without requests.
func (e *Effect) HitRate() float64 { return float64(e.Hits) / float64(max(e.Requests, 1)) }

// IsKnown reports whether there were enough requests before and since to say what came of the change.
func (c *Change) IsKnown() bool { return min(c.Before.Requests, c.After.Requests) >= requestsLeast }

// IsWorse reports whether clearly less is served since the change.
func (c *Change) IsWorse() bool {
	return c.IsKnown() && c.Before.HitRate()-c.After.HitRate() >= worseLeast
}

// Requests counts what was requested of the pool.
type Requests struct {
	Hits, Misses uint64
	Reasons      [reasons]uint64 // of the misses
}

func newRequests(hits, all uint64) Requests {
	return Requests{Hits: hits, Misses: differenceOrZero(hits, all)}
}

func (r *Requests) total() uint64 { return r.Hits + r.Misses }

func (r *Requests) hitRate() float64 { return float64(r.Hits) / float64(max(r.total(), 1)) }

// servedPartText says which part was served.
func (r *Requests) servedPartText() string {
	switch r.Hits {
	case 0:
		return "none"
	case r.total():
		return "all"
	}
	return units.Percent(r.hitRate(), r.total())
}

// isHitRateLow reports whether the hit rate is, of enough requests.
func (r *Requests) isHitRateLow() bool { return r.total() >= requestsLeast && r.hitRate() < hitRateLow }

// mainMissReason returns the most frequent reason for misses.
func (r *Requests) mainMissReason() wire.Miss {
	return wire.Miss(slices.Index(r.Reasons[:], slices.Max(r.Reasons[:])))
}

// Whole is what only a recording shows: it has all events, and is read twice.
type Whole struct {
	*Analysis
	Keeps    *Phase // whose iterations keep the most memory until the end; nil: none does
	CopiesNS uint64 // that the driver took for creates that copy and that no pool serves
	Idle     Idle
	Hidden   Hidden
	Simplest float64 // hit rate of a pool that keeps all that is released, at most; 0: it would hold too much
	Ended    Ended

	own      own
	overhead overhead
	vain     vain
	lag      lags
	most     heap.Gauges // when most was reserved
	spent    spent
	origins  origins
	origin   string // call site of the least aligned sub-buffer
	hosted   hosts
	host     string // call site of the largest of these
}

// Idle is memory that was surely held after its last use had ended, while others could have had it.
type Idle struct {
	Site         string  // that held the most so; empty: none
	Buffers      uint64  // of it, when whose last use ended is known
	Median       uint64  // of these, ns
	Bytes, InUse float64 // on average over the run
	Share        float64 // of all byte seconds in use
}

// Ended is what call sites create whose stacks end inside libraries.
type Ended struct {
	Depth int     // frames of these stacks
	Site  string  // that creates the most; empty: none does
	Share float64 // of all creates, or of the bytes at the peak
	Of    string  // which of these
}

// Hidden is the function that creates the most memory for several callers.
type Hidden struct {
	Site, Function string // empty: there is none
	Callers        int
	Share          float64 // of all creates, of the peak, or of what leaked; all, if memory ran out there
}

// downgradeIfEventsLost makes a problem a note with another title if events are lost: what would refute it may be among them.
func (e *Evidence) downgradeIfEventsLost(d *Diagnosis, what, title string) {
	if e.Run.Lost > 0 {
		d.Severity, d.Title = Note, title
		d.Text += "; some of the lost events may be " + what
	}
}

// fullestProcess returns the process that reserves the largest part of its device's memory, and its bytes reserved and in use, now or at
// most. It returns nil where the device memory of no process is known.
func (e *Evidence) fullestProcess() (fullest *stats.Process, reserved, inUse uint64) {
	most := 0.0
	for i := range e.Run.Processes {
		p := &e.Run.Processes[i]
		r, u := p.Totals.PeakReserved, p.Totals.PeakInUse
		if e.State == GoesOn {
			r, u = p.Totals.ReservedBytes(), p.Totals.InUse
		}
		if p.DeviceMemory == 0 || e.State == GoesOn && p.State != stats.Running {
			continue
		}
		if part := float64(r) / float64(p.DeviceMemory); part > most {
			fullest, reserved, inUse, most = p, r, u, part
		}
	}
	return fullest, reserved, inUse
}

// isSizeWorthwhile reports whether so much memory is worth a change: beside the peak, and beside the device where its memory is
// known.
func (e *Evidence) isSizeWorthwhile(bytes float64) bool {
	whole := e.Run.Totals.PeakInUse
	for i := range e.Run.Processes {
		whole = max(whole, e.Run.Processes[i].DeviceMemory)
	}
	return bytes >= matterShare*float64(whole)
}

// callTimeText writes the time of calls. That of several threads may be longer than the time that passed.
func (e *Evidence) callTimeText(ns uint64, several bool) string {
	if several || ns > e.Length {
		return units.Duration(ns) + " of all threads together"
	}
	return units.Duration(ns)
}

// partOfRunText says which part of the run that is, where it is one.
func (e *Evidence) partOfRunText(ns uint64) string {
	if ns > e.Length {
		return ""
	}
	return ", " + units.Percent(float64(ns)/float64(e.Length), e.Length) + " of the run"
}

// shareOfWhole returns a part of a whole, at most 1.
func shareOfWhole(part, whole uint64) float64 { return min(float64(part)/float64(max(whole, 1)), 1) }
