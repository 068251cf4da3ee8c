// Package analysis computes what a recording shows: which call sites held the memory at the peak, what leaked, what lived
// for one iteration only, what misses cost and which limit would have avoided them, and what the driver's calls cost. It
// reads no clock. Package report writes what it finds.
package analysis

import (
	"reflect"
	"time"

	"codeberg.org/gpumemtop/gpumemtop/internal/recording"
	"codeberg.org/gpumemtop/gpumemtop/internal/stats"
	"codeberg.org/gpumemtop/gpumemtop/internal/units"
)

// Analysis is everything that a report shows. Sizes are bytes, rates 0…1, times ns after Run.Started; durations are ns,
// too. docs/METRICS.md defines the words. An Analysis from New has no nil lists and does not change.
type Analysis struct {
	Run      Run
	Snapshot *stats.Snapshot // at the end of the part: totals, tags that were asked for, processes, mistakes, marks

	Peak        Peak
	Leaks       []Leak            // the most bytes first
	Temporaries []Temporary       // by tag, the most bytes first
	Misses      []Miss            // by reason, the most time lost first
	Timeline    Timeline          // memory, hit rate and free list over time
	Sizes       []Bin             // buffers created, by size asked for
	Lifetimes   []Bin             // of buffers that were released, by duration
	Lag         Lag               // from last use to release
	CreateCost  CostCurve         // of driver creates that copy nothing
	CopyCost    CostCurve         // of those that copy the program's bytes (CL_MEM_COPY_HOST_PTR)
	ReleaseCost CostCurve         // of driver releases
	Phases      []Phase           // in the order of their start
	Transfers   []TransferFinding // that could go or be faster, the largest share first
	Diagnoses   []Diagnosis       // the most important first
	Growth      []Growth          // memory beside the buffers, the most first
	Flame       *Frame            // call tree; nil when no stack is known
	Damage      string            // what part of the recording could not be read
}

// Run describes what was recorded, and which part of it was analysed.
type Run struct {
	Header       recording.Header
	Footer       recording.Footer
	Whole        bool          // there is a footer: the recording ended in order
	Started      uint64        // CLOCK_MONOTONIC ns: what times are relative to
	Since, Until time.Duration // the part that was asked for; Until 0: to the end
	Process      string        // that was asked for, empty: all
	Tag          string        // pattern that was asked for, empty: all
	Before       uint64        // buffers from before attach: their sizes are known only as far as they were used
	Events       uint64        // records that lie in the part, without what was carried over
}

// Peak is the first moment when the most was in use.
type Peak struct {
	Time      uint64    `json:"time_ns"`
	InUse     uint64    `json:"in_use"`
	Requested uint64    `json:"requested"`
	Reserved  uint64    `json:"reserved"` // at that moment
	Buffers   uint64    `json:"buffers"`
	Tags      []PeakTag `json:"per_tag"` // who held it, the most bytes first

	Lately stats.Lately `json:"lately"`

	Fragmentation float64 `json:"-"` // external; below 0: unknown
}

// PeakTag is what one call site held at the peak.
type PeakTag struct {
	Name      string   `json:"tag"`
	Stack     []string `json:"stack"` // innermost first
	InUse     uint64   `json:"in_use"`
	Requested uint64   `json:"requested"`
	Buffers   uint64   `json:"buffers"`
}

// Leak is what one call site never released.
type Leak struct {
	Name    string   `json:"tag"`
	Stack   []string `json:"stack"` // innermost first
	Buffers uint64   `json:"buffers"`
	Bytes   uint64   `json:"bytes"`     // granted
	Oldest  uint64   `json:"oldest_ns"` // when the first of them was created
	// Retained are those that the program retained, and released too few times for that.
	Retained uint64 `json:"retained"`
}

// Temporary is a call site most of whose buffers were temporary: each was released before its thread reached the same
// place in the next iteration or, if the thread has no iterations, within a hundredth of the run.
type Temporary struct {
	Name     string `json:"tag"`
	Buffers  uint64 `json:"buffers"`     // that were temporary
	Creates  uint64 `json:"creates"`     // of all buffers of the site
	Bytes    uint64 `json:"bytes"`       // sum of the temporary ones' sizes
	LifeP50  uint64 `json:"life_p50_ns"` // duration
	DriverNS uint64 `json:"driver_ns"`   // spent on creating and releasing them
}

// Miss is one reason for misses.
type Miss struct {
	Reason Reason `json:"reason"`
	Count  uint64 `json:"misses"`
	Bytes  uint64 `json:"bytes"`
	LostNS uint64 `json:"driver_ns"` // that the driver took for their creates
	Knob   Knob   `json:"knob"`      // the limit that would have helped
}

// Reason says in words why a request was a miss: the name of a wire.Miss.
type Reason string

// MarshalText makes a key of the words: "too_small".
func (r Reason) MarshalText() ([]byte, error) { return []byte(units.JSONKey(string(r))), nil }

// Knob is a limit to change. Limit is empty if no limit helps.
type Knob struct {
	Limit string `json:"limit"` // name, as --set takes it
	Value string `json:"value"` // to try
	Why   string `json:"why"`   // one sentence

	simulated bool // beside the run: no replay is needed
}

// Timeline is evenly spaced: point i stands for the time from Start + i×Step on. It has at most PointsMax points.
type Timeline struct {
	Start         uint64    `json:"start_ns"`
	Step          uint64    `json:"step_ns"`
	InUse         []uint64  `json:"in_use"` // the most within the step
	Cached        []uint64  `json:"cached"` // at that moment, and so is the next
	Cooling       []uint64  `json:"cooling"`
	Idle          []uint64  `json:"idle"` // of what is cached, at the end of the step
	Hits          []uint64  `json:"hits"` // within the step, and so is the next
	Misses        []uint64  `json:"misses"`
	Fragmentation []float64 `json:"external_fragmentation"` // at the end of the step, and so is the next
	Waste         []float64 `json:"waste"`
	Tags          []Series  `json:"in_use_per_tag"` // the largest SeriesMax by peak; the last may be "others"
	Free          []Series  `json:"free_per_tag"`   // free in the pool by tag, likewise

	Machine []MachineSeries `json:"machine,omitempty"` // sources whose figures have changed

	MostCached, MostCooling []uint64 `json:"-"` // within the step, each at its own moment
}

// MachineSeries is what the machine reports from one source, of all processes together, at the end of each step.
type MachineSeries struct {
	Source string   `json:"source"`
	Values []uint64 `json:"values"`
}

// Bounds of what an analysis keeps.
const (
	PointsMax = 600
	SeriesMax = 12
)

// Series is one tag's share of a timeline.
type Series struct {
	Name   string   `json:"tag"`
	Values []uint64 `json:"values"` // bytes at the moment within the step when most was in use by all
}

// Bin is one bar of a histogram whose bars are powers of two wide.
type Bin struct {
	From  uint64 `json:"from"` // the first value that belongs to it
	To    uint64 `json:"to"`   // the last one
	Count uint64 `json:"count"`
	Bytes uint64 `json:"bytes"` // sum of sizes of what was counted
}

// Lag is how long memory was held, at least, after its last use: from when the program knew that the last command had ended. The counts
// are 0 if uses were not recorded.
type Lag struct {
	Known       uint64   `json:"known"`   // released buffers that commands had used, where the end of the last command is known
	Unsure      uint64   `json:"unknown"` // the same, where that end is not known
	Unused      uint64   `json:"unused"`  // released buffers that no command ever used
	P50         uint64   `json:"p50_ns"`
	P99         uint64   `json:"p99_ns"`
	ByteSeconds float64  `json:"byte_seconds"`
	Tags        []LagTag `json:"per_tag"` // the most byte seconds first
}

// LagTag is the lag of one call site.
type LagTag struct {
	Name        string  `json:"tag"`
	Known       uint64  `json:"known"`
	P50         uint64  `json:"p50_ns"`
	P99         uint64  `json:"p99_ns"`
	ByteSeconds float64 `json:"byte_seconds"`
}

// CostCurve is the least-squares line a + b·size through measured driver calls. With fewer than two sizes B is 0.
type CostCurve struct {
	Calls  uint64      `json:"calls"`
	A      float64     `json:"base_ns"`
	B      float64     `json:"per_byte_ns"`
	R2     float64     `json:"r2"` // share of the variance that the line explains
	P50    uint64      `json:"p50_ns"`
	P99    uint64      `json:"p99_ns"`
	Points []CostPoint `json:"points"`

	Times stats.Histogram `json:"-"` // ns of all calls
}

// CostPoint is the calls of one power of two. A single call may decide their mean, but not their quartiles.
type CostPoint struct {
	Size   uint64  `json:"mean_size"`
	NS     float64 `json:"mean_ns"`
	Calls  uint64  `json:"calls"`
	StdDev float64 `json:"standard_deviation_ns"`
	P25    uint64  `json:"p25_ns"`
	P50    uint64  `json:"p50_ns"`
	P75    uint64  `json:"p75_ns"`
}

// Phase is a stretch of the run in which one thread repeats a sequence of creates, or the time between two of those.
// Stretches of several threads may overlap in time.
type Phase struct {
	Process    uint32         `json:"process"` // number in the session
	Thread     uint32         `json:"thread"`
	Start      uint64         `json:"start_ns"`
	End        uint64         `json:"end_ns"`
	Iterations uint64         `json:"iterations"` // 0: nothing repeats
	Period     uint64         `json:"period_ns"`  // duration of one iteration, the median
	Creates    uint64         `json:"creates_per_iteration"`
	Growth     int64          `json:"growth_per_iteration"`      // bytes that the process had in use more after an iteration than before it, the median
	PeakInUse  uint64         `json:"peak_in_use"`               // of the process, as seen at these creates
	Mean       int64          `json:"mean_growth_per_iteration"` // from the beginning of the first to that of the last
	Objects    []ObjectGrowth `json:"object_growth"`             // of the process; empty: no type grows
	Left       uint64         `json:"-"`                         // bytes more at the beginning of the last iteration than at that of the first
	Kept       int64          `json:"-"`                         // buffers more, likewise
	AllGrew    bool           `json:"-"`                         // each iteration left more in use
	Straight   bool           `json:"-"`                         // memory in use rises about evenly all the time
	FellBack   bool           `json:"-"`                         // as little was in use in the later half of its iterations as at first
	Releases   bool           `json:"-"`                         // one of its buffers at least was released
	Recycles   bool           `json:"-"`                         // before the last create of the phase
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
	Severity Severity `json:"severity"`
	Title    string   `json:"title"`
	Text     string   `json:"text"` // why, with figures
	Tag      string   `json:"tag"`  // call site that it is about, empty: the whole run
	Knob     Knob     `json:"knob"`
	Share    float64  `json:"share"` // of the run's time, or of the memory in question, that it is about; 0: unknown
	About    About    `json:"-"`
	placed   bool     // the text names the process, where there are several
	Brief    string   `json:"-"` // the title for a line with several, with what matters most of the text; empty: Title and Tag are that
	trials
}

// About says what a diagnosis concerns, which is where a screen can lead to.
type About uint8

// What diagnoses concern.
const (
	AboutRun      About = iota // the run, or its Tag
	AboutFailure               // a call that failed for lack of memory
	AboutGhost                 // another policy
	AboutChange                // the latest change, which can be undone
	AboutContents              // what kernels may read: most runs have nothing to fear, and are fine with it
)

// Frame is a node of the call tree: bytes and buffers of everything created below it. The root has no name.
type Frame struct {
	Name     string   `json:"name"`
	Peak     uint64   `json:"peak"`  // bytes in use at the peak
	Total    uint64   `json:"total"` // bytes ever asked for
	Creates  uint64   `json:"creates"`
	Leaked   uint64   `json:"leaked"`
	Children []*Frame `json:"children"` // the most Peak first, then the most Total
}

// replaceNilLists replaces nil lists by empty ones, here and in all that v holds of this package, so that JSON has no null.
func replaceNilLists(v reflect.Value) {
	switch v.Kind() {
	case reflect.Pointer:
		if !v.IsNil() {
			replaceNilLists(v.Elem())
		}
	case reflect.Struct:
		if v.Type().PkgPath() == reflect.TypeFor[Analysis]().PkgPath() {
			for i := range v.NumField() {
				replaceNilLists(v.Field(i))
			}
		}
	case reflect.Slice:
		if v.IsNil() {
			v.Set(reflect.MakeSlice(v.Type(), 0, 0))
		}
		if kind := v.Type().Elem().Kind(); kind == reflect.Struct || kind == reflect.Pointer {
			for i := range v.Len() {
				replaceNilLists(v.Index(i))
			}
		}
	}
}
