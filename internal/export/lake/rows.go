// Package lake makes a few rows of each recording, for questions about many recordings. docs/EXPORTS.md explains the tables. It
// reads no clock.
package lake

import (
	"slices"

	"codeberg.org/gpumemtop/gpumemtop/internal/figures"
	"codeberg.org/gpumemtop/gpumemtop/internal/recording"
	"codeberg.org/gpumemtop/gpumemtop/internal/wire"
)

// Schema is the version of the tables. Columns may be added within a version.
const Schema = 2

// Run is one process of a recording. Sizes are bytes; unknown values are null or empty.
type Run struct {
	Run         string            `parquet:"run"` // identifies the process: the recording's id and its number
	Schema      int32             `parquet:"schema"`
	Recording   string            `parquet:"recording"`
	Number      int32             `parquet:"number"`
	Host        string            `parquet:"host,dict"`
	PID         int64             `parquet:"pid"`
	User        string            `parquet:"user,dict"`
	Step        string            `parquet:"step,dict"`
	Rank        string            `parquet:"rank,dict"`
	Revision    string            `parquet:"revision,dict"`
	Build       string            `parquet:"build,dict"` // id of the program's file
	Program     string            `parquet:"program,dict"`
	Arguments   []string          `parquet:"arguments,list"`
	Policy      string            `parquet:"policy,dict"`
	Limits      map[string]string `parquet:"limits"`
	Labels      map[string]string `parquet:"labels"`
	Device      string            `parquet:"device,dict"`
	Driver      string            `parquet:"driver,dict"`
	DeviceBytes int64             `parquet:"device_bytes"`
	Started     int64             `parquet:"started,timestamp(microsecond:utc)"`
	Seconds     float64           `parquet:"seconds"`
	Status      *int64            `parquet:"exit_status,optional"`
	App         string            `parquet:"app,dict"`
	Job         string            `parquet:"job,dict"`
	Date        string            `parquet:"date,dict"` // of the start, UTC
	Path        string            `parquet:"path"`      // of the recording, as it was added
	Events      int64             `parquet:"events"`    // of the recording
	Ending      string            `parquet:"ending,dict"`
	RunStatus   *int64            `parquet:"run_status,optional"` // exit status of the program that gpumemtop started, as a shell shows it
	Size        string            `parquet:"size,dict"`           // ranks
	Boot        string            `parquet:"boot,dict"`
	Born        string            `parquet:"born"`
	DeviceID    string            `parquet:"device_id,dict"`
	Pod         string            `parquet:"pod,dict"`
	Container   string            `parquet:"container,dict"`
	NearPeak    int64             `parquet:"near_peak_ns"` // time with more than nine tenths of the peak in use
	Figures     []int64           `parquet:"-"`            // values of RunFigures, which have a column each
}

// How a recording ends.
const (
	Whole = "whole"
	Cut   = "cut"  // the program goes on after it
	Torn  = "torn" // it breaks off: gpumemtop was killed
	Log   = "log"  // there is none, only a flight log, which has no events
)

// File is the file that a recording lies in.
type File struct {
	Path   string // absolute
	Events uint64 // of a recording that is not merged; 0: those that were read
	Footer recording.Footer
	Whole  bool // it has a footer
}

// EndingText says how the recording ends.
func (f *File) EndingText() string {
	switch {
	case !f.Whole:
		return Torn
	case f.Footer.Cut:
		return Cut
	}
	return Whole
}

// SetFileOfRows notes in rows which file they come from.
func (f *File) SetFileOfRows(rows []*Rows) {
	for _, r := range rows {
		r.Run.Path, r.Run.Ending = f.Path, f.EndingText()
		if f.Events > 0 {
			r.Run.Events = int64(f.Events)
		}
		if status := int64(f.Footer.Status); f.Whole && (status >= 0 || f.Footer.Signal > 0) {
			if f.Footer.Signal > 0 {
				status = 128 + int64(f.Footer.Signal)
			}
			r.Run.RunStatus = &status
		}
	}
}

// RunFigures are the figures that runs have as columns, with the names that figures.Figure.Lake gives.
var RunFigures = slices.DeleteFunc(slices.Clone(figures.AllFigures()), func(f *figures.Figure) bool { return f.Lake == "" })

// ValueOfFigure returns one of RunFigures.
func (r *Run) ValueOfFigure(f *figures.Figure) int64 { return r.Figures[slices.Index(RunFigures, f)] }

// SetFlightFigures sets the figures that a flight log has. The others are 0.
func (r *Run) SetFlightFigures(c *wire.FlightCounts) {
	r.Figures = make([]int64, len(RunFigures))
	set := func(f *figures.Figure, n uint64) { r.Figures[slices.Index(RunFigures, f)] = int64(n) }
	set(figures.Creates, c.Creates)
	set(figures.Failures, c.Failed)
	set(figures.PeakInUse, c.Peak)
	set(figures.PeakReserved, c.Peak) // there is no pool
	set(figures.InUse, c.Inuse)
	if r.Status != nil && *r.Status <= 128 { // otherwise a signal ended the process
		set(figures.Leaked, c.Inuse)
	}
}

// Site sums up what a call site created. Byte-seconds are granted sizes times the time that they were held.
type Site struct {
	Run       string   `parquet:"run,dict"`
	Site      string   `parquet:"site,dict"`
	Stack     []string `parquet:"stack,list" parquet-element:",dict"`
	Creates   int64    `parquet:"creates"`
	Hits      int64    `parquet:"hits"`
	Misses    int64    `parquet:"misses"`
	Requested int64    `parquet:"requested"`
	Granted   int64    `parquet:"granted"`
	PeakInUse int64    `parquet:"peak_in_use"`
	Leaks     int64    `parquet:"leaks"`
	Leaked    int64    `parquet:"leaked"`
	DriverNS  int64    `parquet:"driver_ns"`
	Held      float64  `parquet:"held_byte_seconds"`
	Idle      float64  `parquet:"idle_byte_seconds"` // before the first use and after the end of the last, as far as these are known
}

// Sample is what a process held at the end of a step of time. A process has at most samplesMax samples.
type Sample struct {
	Run       string `parquet:"run,dict"`
	TimeNS    int64  `parquet:"time_ns,delta"` // since the start
	StepNS    int64  `parquet:"step_ns"`
	InUse     int64  `parquet:"in_use"`
	PeakInUse int64  `parquet:"peak_in_use"` // within the step
	Cached    int64  `parquet:"cached"`
	Cooling   int64  `parquet:"cooling"`
}

// Miss is why the driver had to create buffers of a call site.
type Miss struct {
	Run      string `parquet:"run,dict"`
	Site     string `parquet:"site,dict"`
	Reason   string `parquet:"reason,dict"`
	Count    int64  `parquet:"count"`
	Bytes    int64  `parquet:"bytes"`
	DriverNS int64  `parquet:"driver_ns"`
}

// Finding has the columns of a stats.Finding.
type Finding struct {
	Run      string `parquet:"run,dict"`
	Kind     string `parquet:"kind,dict"`
	Function string `parquet:"function,dict"`
	Site     string `parquet:"site,dict"`
	Kernel   string `parquet:"kernel,dict"`
	Count    int64  `parquet:"count"`
	Bytes    int64  `parquet:"bytes"` // of the memory at the first occurrence
}

// Transfer is what commands moved at a call site.
type Transfer struct {
	Run        string `parquet:"run,dict"`
	Site       string `parquet:"site,dict"` // of the call, or, if unknown, of the memory
	Direction  string `parquet:"direction,dict"`
	Count      int64  `parquet:"count"`
	Bytes      int64  `parquet:"bytes"`
	BlockedNS  int64  `parquet:"blocked_ns"`  // in calls that block
	ProfiledNS int64  `parquet:"profiled_ns"` // as the device measured
	Pageable   int64  `parquet:"pageable"`    // bytes whose host side was not memory of the driver
}

// Rows are the rows of one process.
type Rows struct {
	Run       Run
	Sites     []Site
	Samples   []Sample
	Misses    []Miss
	Findings  []Finding
	Transfers []Transfer
}
