// Package stats folds events into the state that screens, summaries and reports show. One goroutine feeds it; it
// publishes immutable snapshots that any goroutine may read. It reads no clock: time is in the events.
package stats

import (
	"fmt"
	"math"
	"slices"

	"codeberg.org/gpumemtop/gpumemtop/internal/heap"
	"codeberg.org/gpumemtop/gpumemtop/internal/measure"
	"codeberg.org/gpumemtop/gpumemtop/internal/wire"
)

// Snapshot is everything to show at one moment. A published snapshot and what it refers to are immutable.
// Sizes are bytes, times CLOCK_MONOTONIC ns, rates 0…1. The words are those of docs/METRICS.md.
type Snapshot struct {
	// NoPlan says why the program got no plan although its policy takes plans; empty: unknown.
	NoPlan    string
	Time      uint64 // of the latest event or tick
	Started   uint64 // of the session
	Finished  uint64 // when the program ended, or watching; 0: it goes on, or that is not known. See Ended
	Program   string
	Arguments []string
	Labels    map[string]string // that the user chose
	Policy    string            // the present one
	Change    PolicyChange
	Auto      *Auto // nil: the policy is only changed by hand
	Limits    []Limit
	Device    Device
	// Processes are in the order of their first call. If there are thousands, those that ended longest ago are one row after the
	// first: its counters and gauges are sums, its peaks the largest of one process, its percentiles 0.
	Processes     []Process
	Totals        Totals
	IdleSince     uint64       // since when more than half of the peak in use is idle, or longer; 0: less is
	LongUnused    LongUnused   // as far as commands are known
	Window        Rates        // over the last second
	Minute        []Sample     // the last minute, one for each 100 ms, oldest first
	History       []Sample     // evenly spaced, oldest first, at most HistoryMax
	Tags          []Tag        // unordered
	Buckets       []Bucket     // size ranges that had objects, the smallest first
	Kinds         []Kind       // kinds of memory that had objects
	Classes       []Class      // in the order of their first create, at most ClassesMax; then the others together
	Threads       []Named      // likewise
	Devices       []Named      // likewise
	Kernels       []Named      // by name, at most KernelsMax, then the others together. Memory that several used counts for each; empty without uses
	Marks         []Mark       // what happened, oldest first, at most MarksMax
	Misses        []Miss       // the latest, the last one first, at most MissesMax
	Findings      []Finding    // mistakes of the program, in the order of their first time, at most FindingsMax
	OtherFindings uint64       // mistakes that came when that list was full
	PostMortems   []PostMortem // of calls that failed for lack of memory, oldest first, at most PostMortemsMax
	FailedCalls   []FailedCall // in the order of their first, at most FailedCallsMax
	OtherFailed   uint64       // failures of calls beyond that list
	Transfers     Transfers    // the commands that moved memory
	TransfersOnly bool         // other commands are no events: what is released in flight is not known
	Recording     Recording    // Path is empty when nothing is recorded
	Ghosts        *Ghosts      // nil: there are none
	Heap          *HeapMap     // of slabs; nil: there is none
	Events        uint64       // folded so far
	Lost          uint64       // events that did not fit a ring
	LostUses      uint64       // of these, uses
	Disordered    uint64       // creates and releases that came 1 ms or more too late: what was in use at once is an estimate
	Eager         string       // what --eager does on this driver besides its purpose; empty: nothing
	SpillFailed   string       // what --spill could not do first; empty: nothing
	Spill         *Spill       // what --spill did; nil before it took memory from the device
	WholeBlocks   string       // why nothing was cut from slabs, in some process; empty: nothing spoke against it
	Hosted        Part         // creates that got the host's memory, as the device's lacked what the pool wasted
	Unknown       uint64       // events about objects that were never seen created
	Unpooled      Unpooled     // processes without a pool though they should have one
	Unseen        []string     // libraries, or their functions, that programs may call past gpumemtop
	Asked         []string     // which devices programs asked for before a context, in words; known after the end of a session
	Exceeded      []string     // what a program did more of than gpumemtop keeps, in words
	LeftOut       string       // what of it no figure counts, which are too low then; empty: nothing
	Beyond        uint64       // creates and slabs among it
	Nameless      uint64       // files whose names and lines have no room, or not all of them

	Measured measure.Results // by experiments in the program; nil: nothing

	Machine []MachineFigure // of all processes together, by source and device
	Objects []ObjectCount   // by type, of those that were created
	Pairs   []ObjectCount   // likewise, of what one call opens and another closes: mappings, references
}

// WhyNothingCarved returns why the policy cannot cut slabs as it should; empty: nothing speaks against it, or it has none.
func (s *Snapshot) WhyNothingCarved() string {
	if !s.CarvesSlabs() {
		return ""
	}
	return s.WholeBlocks
}

// TagBeforeAttach returns the tag of what was there before programs were watched, nil when nothing of it was seen.
func (s *Snapshot) TagBeforeAttach() *Tag {
	i := slices.IndexFunc(s.Tags, func(t Tag) bool { return t.Name == wire.BeforeAttach })
	if i < 0 {
		return nil
	}
	return &s.Tags[i]
}

// ProcessCount returns how many processes made OpenCL calls.
func (s *Snapshot) ProcessCount() int {
	n := len(s.Processes)
	for i := range s.Processes {
		if folded := s.Processes[i].Folded; folded > 0 {
			n += int(folded) - 1
		}
	}
	return n
}

// EndTime returns when the run ended: with the program or its last process, whichever came later; now while a process runs.
func (s *Snapshot) EndTime() uint64 {
	last := s.Finished
	for i := range s.Processes {
		if s.Processes[i].State == Running {
			return s.Time
		}
		last = max(last, s.Processes[i].Ended)
	}
	if last == 0 {
		return s.Time
	}
	return last
}

// MostDevicesOfProcess returns on how many devices a process surely is, at most: on several, what each of them holds is unknown.
func (s *Snapshot) MostDevicesOfProcess() (most int) {
	for i := range s.Processes {
		most = max(most, s.Processes[i].Devices)
	}
	return most
}

// WallNS returns how long the run took, or takes so far, in ns.
func (s *Snapshot) WallNS() uint64 {
	end := s.EndTime()
	return end - min(s.Started, end)
}

// WasAllHeldByKilled reports whether all that is in use was held by processes that are not known to leak.
func (s *Snapshot) WasAllHeldByKilled() bool {
	held := false
	for i := range s.Processes {
		p := &s.Processes[i]
		if p.Totals.LiveBuffers == 0 {
			continue
		}
		if !s.IsNotKnownToLeak(p) {
			return false
		}
		held = true
	}
	return held
}

// IsNotKnownToLeak reports whether nothing shows that a process leaks its memory in use: a signal killed it, it aborted, it
// gave up when memory was short, or it outlived the program. Imported recordings have neither process ids nor ends of processes.
func (s *Snapshot) IsNotKnownToLeak(p *Process) bool {
	return p.WasAborted() || s.Finished > 0 && p.State == Running && p.PID != 0
}

// MemoryLeftBehind returns what processes left behind, by call site. Where some leaked, it leaves out what others may release.
// The call sites of processes that share a row are unknown: they have one without a name.
func (s *Snapshot) MemoryLeftBehind() (left []Tag) {
	held, places := s.WasAllHeldByKilled(), map[string]int{}
	for i := range s.Processes {
		p := &s.Processes[i]
		tags := p.Tags
		switch {
		case p.Totals.LiveBuffers == 0 || s.IsNotKnownToLeak(p) && !held:
			continue
		case len(s.Processes) == 1:
			tags = s.Tags
		case p.Folded > 0:
			tags = []Tag{{Live: p.Totals.LiveBuffers, InUse: p.Totals.InUse}}
		}
		for j := range tags {
			at, known := places[tags[j].Name]
			switch {
			case tags[j].Live == 0:
			case !known:
				places[tags[j].Name] = len(left)
				left = append(left, tags[j])
			default:
				left[at].Live += tags[j].Live
				left[at].InUse += tags[j].InUse
			}
		}
	}
	return left
}

// AbortedText says what ended the program, or those of its processes that did not release what they held.
func (s *Snapshot) AbortedText() string {
	by, ended, goesOn, holders := "a signal", " ended the program", "", s.WasAllHeldByKilled()
	if len(s.Processes) > 1 { // others may have gone on
		ended = " ended their process"
	}
	if holders && !slices.ContainsFunc(s.Processes, func(p Process) bool { return p.Totals.LiveBuffers > 0 && p.WasAborted() }) {
		return "the program ended, and their process goes on"
	}
	for i := range s.Processes {
		switch p := &s.Processes[i]; {
		case p.Folded > 0 || holders && p.Totals.LiveBuffers == 0: // others may hold kernels and the like
		case holders && p.State == Running:
			goesOn = ", or the program ended"
		case p.hasFailedForMemory():
			by = "a failed call"
		case by == "a signal" && p.State == Exited && !p.Orderly && p.Status < 0:
			by, ended = "a signal or _exit", " ended their process" // a child of the program, whose own status is known
		}
	}
	return by + ended + goesOn
}

// Bounds of the lists in a snapshot.
const (
	HistoryMax = 600
	MarksMax   = 64
	MinuteMax  = 600
)

// Unpooled counts times that a process's pool was off, and says why it was the first time.
type Unpooled struct {
	Times uint64
	Why   string
}

// Device is the first device that the program made a context for.
type Device struct {
	Name, Driver string
	Global       uint64 // bytes of global memory, 0 when unknown
	Largest      uint64 // bytes of one allocation at most, 0 when unknown
	Devices      int    // of the context: Global is the least of them, Largest the most; 0: unknown
}

// State of a process.
type State uint8

// The states of a process.
const (
	Running State = iota
	Exited
	Signaled
)

// Process is one process that made OpenCL calls.
type Process struct {
	Number    uint32 // in the session, from 1
	PID       int
	Parent    int
	Rank      *uint64 // in its job; nil: unknown
	Node      string  // its host; empty: that of all others
	Program   string
	App       string // name of the program: that which the user chose, else that of its file or script
	Place     wire.Place
	Arguments []string
	State     State
	Status    int    // exit status, or signal number when Signaled; -1 when unknown
	Orderly   bool   // its exit handlers ran to their end: it was not killed, nor left by _exit
	Policy    string // that it obeys
	Started   uint64
	Ended     uint64 // 0 while it runs
	Folded    uint64 // how many this row is, 0: it is one process. See Processes
	Killed    bool   // of such a row: those that held buffers were aborted
	RanOut    bool   // a call of it failed for lack of memory
	Totals    Totals
	Machine   []MachineFigure // by source and device

	// DeviceMemory is how many bytes of device memory it has: those that it was made to have, or else those of the device of its
	// first context; 0: unknown. Of a row of several, it is that of the one with PeakReserved.
	DeviceMemory uint64
	Devices      int    // that its contexts are surely on; 1: it was made to have memory of its own
	Device       string // name of the first

	// What Snapshot has for all processes together, of this one; empty where it is the only one. A tag has the ID that
	// it has there. The history begins with the process and has at most 150 samples.
	Window  Rates
	History []Sample
	Tags    []Tag
}

// hasFailedForMemory reports whether the process said by its exit status that it had failed, when memory had been short.
func (p *Process) hasFailedForMemory() bool {
	return p.RanOut && p.State == Exited && p.Status > 0 && p.SignalNumber() == 0
}

// SignalNumber returns the signal that ended the process, 0 if none did.
func (p *Process) SignalNumber() int {
	switch p.State {
	case Signaled:
		return p.Status
	case Exited:
		return p.exit().SignalNumber()
	}
	return 0
}

// exit returns how the process ended.
func (p *Process) exit() *heap.Exit {
	return &heap.Exit{Status: p.Status, Orderly: p.Orderly, RanOut: p.RanOut}
}

// BadEndText says how a process ended that did not end well; empty: it did, it is not known, or the row is several.
func (p *Process) BadEndText() string {
	switch signal := p.SignalNumber(); {
	case p.Folded > 0:
		return ""
	case signal > 0:
		return fmt.Sprintf("signal %d ended the process", signal)
	case p.State == Exited && p.Status > 0:
		return fmt.Sprintf("the process exited with status %d", p.Status)
	}
	return ""
}

// WasAborted reports whether the process was aborted, see heap.Exit.
func (p *Process) WasAborted() bool {
	if p.Folded > 0 {
		return p.Killed
	}
	return p.State == Signaled || p.State == Exited && p.exit().WasAborted()
}

// Rates are counts in a window of time.
type Rates struct {
	NS                                 uint64 // length of the window
	Hits, Misses, Creates, Releases    uint64
	Events, DriverCreates, DriverNanos uint64
	Reasons                            MissCounts
}

// MissCounts are misses by reason; a count stays at its largest.
type MissCounts [wire.MissPolicy + 1]uint16

// addMisses adds n misses for a reason.
func (c *MissCounts) addMisses(reason int, n uint16) { c[reason] += min(n, math.MaxUint16-c[reason]) }

func (c *MissCounts) addCounts(o *MissCounts) {
	for i, n := range o {
		c.addMisses(i, n)
	}
}

// Sample is one point of the history: gauges at the moment within it when most was in use, counts within it. A program
// that holds its buffers for a millisecond per step would show nothing at the moments that a clock picks.
type Sample struct {
	Time                   uint64
	InUse, Cached, Cooling uint64
	Hits, Misses, Creates  uint64
	Reasons                MissCounts // of the misses; none in the summaries of a recording
	Fragmentation          float64
	DriverNS               uint64 // in calls of the driver, of all threads; 0 in the summaries of a recording
	Machine                uint64 // what the machine reports on devices, or else as anonymous memory; 0: nothing, and in the summaries of a recording
}

// Tag is one call site, folded: sites that show the same line are one row.
type Tag struct {
	ID          uint32 // of the first tag folded into it
	Name        string // "file.c:88 function", "module+0x1234", or "tag 7" before it is known
	Stack       []string
	Module      string // of the frame that names it, without its folder; of an interpreted frame: the file
	Wrapper     string // the function that creates memory here, if it has several callers
	Live        uint64 // buffers
	InUse       uint64
	Requested   uint64
	Cached      uint64
	Idle        uint64 // of Cached, as in Totals
	Cooling     uint64
	CachedCount uint64 // blocks free
	Hits        uint64
	Misses      uint64
	MissReasons [wire.MissPolicy + 1]uint64
	Creates     uint64
	Exposed     uint64 // as in Totals
	Window      uint64 // creates in the last second
	PeakInUse   uint64
	InFlight    Early
	Held        uint64 // the most in use in the last full second and since
	Trend       Trend  // of what is in use
	Free        []FreeClass
	Slabs       bool // no site, but what is free in slabs: Free lists slabs, free or not, and CachedCount free ranges
}

// HitRate returns hits / (hits + misses).
func (t *Tag) HitRate() float64 { return ratioOf(t.Hits, t.Hits+t.Misses) }

// Waste returns (granted - requested) / granted of what is in use.
func (t *Tag) Waste() float64 {
	if t.InUse < t.Requested {
		return 0
	}
	return ratioOf(t.InUse-t.Requested, t.InUse)
}

// FreeClass is one row of a tag's free list: its free blocks of one size.
type FreeClass struct {
	Size    uint64 // bytes of each block
	Blocks  uint64
	Cooling uint64 // of these, still cooling
	Oldest  uint64 // time that the oldest was freed
}

// Mark is something worth a line on the time axis.
type Mark struct {
	Time uint64
	Kind wire.Kind // Limit, Diag, Lost, Exit
	Text string
}

// Recording is the file being written.
type Recording struct {
	Path  string
	Bytes uint64
}
