// Package analysis works out what a recording says: who held the memory at the peak, what leaked, what lived for one
// iteration only, what misses cost and which limit would have avoided them, what the driver's calls cost. It reads no
// clock; what it finds is written by internal/report.
package analysis

import (
	"time"

	"codeberg.org/gpumemtop/gpumemtop/internal/model"
	"codeberg.org/gpumemtop/gpumemtop/internal/trace"
)

// Analysis is everything that a report says. Sizes are bytes, rates 0…1, times ns after Run.Started unless they are
// called durations, which are ns, too. The words are those of docs/METRICS.md. Nobody changes it once it is made.
type Analysis struct {
	Run      Run
	Snapshot *model.Snapshot // at the end of the part: totals, tags that were asked for, processes, mistakes, marks

	Peak        Peak
	Leaks       []Leak      // the most bytes first
	Temporaries []Temporary // by tag, the most bytes first
	Misses      []Miss      // by reason, the most time lost first
	Timeline    Timeline    // memory, hit rate and free list over time
	Sizes       []Bin       // buffers created, by size asked for
	Lifetimes   []Bin       // of buffers that were released, by duration
	Lag         Lag         // from last use to release
	CreateCost  CostCurve   // of driver creates that copy nothing
	CopyCost    CostCurve   // of those that copy the program's bytes (CL_MEM_COPY_HOST_PTR)
	ReleaseCost CostCurve   // of driver releases
	Phases      []Phase     // in the order of their start
	Diagnoses   []Diagnosis // the most important first
	Flame       *Frame      // call tree; nil when no stack is known
	Damage      string      // what of the recording could not be read
}

// Run says what was recorded, and which part of it this is about.
type Run struct {
	Header       trace.Header
	Footer       trace.Footer
	Whole        bool          // there is a footer: the recording ended in order
	Started      uint64        // CLOCK_MONOTONIC ns: what times are relative to
	Since, Until time.Duration // the part that was asked for; Until 0: to the end
	Process      string        // that was asked for, empty: all
	Tag          string        // pattern that was asked for, empty: all
	Before       uint64        // buffers from before attach: their sizes are known as far as their use told them
	Events       uint64        // records that lie in the part, without what was carried over
}

// Peak is the first moment when the most was in use.
type Peak struct {
	Time      uint64
	InUse     uint64
	Requested uint64
	Reserved  uint64 // at that moment
	Buffers   uint64
	Tags      []PeakTag // who held it, the most bytes first
}

// PeakTag is what one call site held at the peak.
type PeakTag struct {
	Name      string
	Stack     []string // innermost first
	InUse     uint64
	Requested uint64
	Buffers   uint64
}

// Leak is what one call site never released.
type Leak struct {
	Name    string
	Stack   []string
	Buffers uint64
	Bytes   uint64 // granted
	Oldest  uint64 // when the first of them was created
}

// Temporary is a call site most of whose buffers were temporary: each ended before the same place of the next iteration
// was reached; where the thread has no iterations, it lived for less than a hundredth of the run.
type Temporary struct {
	Name     string
	Buffers  uint64 // that were temporary
	Creates  uint64 // of all buffers of the site
	Bytes    uint64 // sum of the temporary ones' sizes
	LifeP50  uint64 // duration
	DriverNS uint64 // spent on creating and releasing them
}

// Miss is one reason for misses.
type Miss struct {
	Reason string // wire.Miss
	Count  uint64
	Bytes  uint64
	LostNS uint64 // that the driver took for their creates
	Knob   Knob   // that would have helped; its Limit is empty when none would
}

// Knob is a limit to change.
type Knob struct {
	Limit string // name, as --set takes it
	Value string // to try
	Why   string // one sentence
}

// Timeline is evenly spaced: point i stands for the time from Start + i×Step on. At most PointsMax points.
type Timeline struct {
	Start, Step   uint64
	InUse         []uint64 // the most within the step; so are the next two at that moment
	Cached        []uint64
	Cooling       []uint64
	Hits, Misses  []uint64  // within the step
	Fragmentation []float64 // external, at the end of the step
	Waste         []float64 // at the end of the step
	Tags          []Series  // in use, the largest SeriesMax by peak; the last may be "others"
	Free          []Series  // free in the pool by tag, likewise
}

// Bounds of what an analysis keeps.
const (
	PointsMax = 600
	SeriesMax = 12
)

// Series is one tag's share of a timeline.
type Series struct {
	Name   string
	Values []uint64 // bytes at the moment within the step when most was in use by all
}

// Bin is one bar of a histogram whose bars are powers of two wide.
type Bin struct {
	From, To uint64 // the first value that belongs to it, and the last
	Count    uint64
	Bytes    uint64 // sum of sizes of what was counted
}

// Lag is how long memory was held after its last use. Known is 0 when uses were not recorded.
type Lag struct {
	Known       uint64 // released buffers that a command had used
	Unused      uint64 // released buffers that no command ever used
	P50, P99    uint64 // duration
	ByteSeconds float64
	Tags        []LagTag // the most byte seconds first
}

// LagTag is the lag of one call site.
type LagTag struct {
	Name        string
	Known       uint64
	P50, P99    uint64
	ByteSeconds float64
}

// CostCurve is the least-squares line a + b·size through measured driver calls. With fewer than two sizes B is 0.
type CostCurve struct {
	Calls    uint64
	A        float64 // ns
	B        float64 // ns per byte
	R2       float64 // share of the variance that the line explains
	P50, P99 uint64  // duration
	Points   []CostPoint
}

// CostPoint is the mean of the calls of one power of two.
type CostPoint struct {
	Size   uint64 // mean
	NS     float64
	Calls  uint64
	StdDev float64 // ns
}

// Phase is a stretch of the run in which one thread repeats a sequence of creates, or between two of those. Stretches
// of several threads may lie side by side.
type Phase struct {
	Process    uint32 // number in the session
	Thread     uint32
	Start, End uint64
	Iterations uint64 // 0: nothing repeats
	Period     uint64 // duration of one iteration, the median
	Creates    uint64 // per iteration
	PeakInUse  uint64 // of the process, as seen at these creates
	Growth     int64  // bytes that the process had in use more after an iteration than before it, the median
}

// Severity of a diagnosis.
type Severity string

// Severities.
const (
	Problem Severity = "problem" // the program is wrong, or loses memory
	Advice  Severity = "advice"  // a setting or a change would make it faster or smaller
	Note    Severity = "note"
)

// Diagnosis is a conclusion with its evidence.
type Diagnosis struct {
	Severity Severity
	Title    string
	Text     string // why, with figures
	Tag      string // call site that it is about, empty: the whole run
	Knob     Knob
}

// Frame is a node of the call tree: bytes and buffers of everything created below it. The root has no name.
type Frame struct {
	Name     string
	Peak     uint64 // bytes in use at the peak
	Total    uint64 // bytes ever asked for
	Creates  uint64
	Leaked   uint64
	Children []*Frame // the most Peak first, then the most Total
}
