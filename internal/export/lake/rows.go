// Package lake makes few rows of each recording, for questions over very many of them. docs/EXPORTS.md explains the tables. It
// reads no clock.
package lake

import (
	"slices"

	"codeberg.org/gpumemtop/gpumemtop/internal/figures"
)

// Schema is the version of the tables. Columns may be added within a version.
const Schema = 1

// Run is one process of a recording. Sizes are bytes, and what is unknown is null or empty.
type Run struct {
	Run         string            `parquet:"run"` // of recording and number
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
	Figures     []int64           `parquet:"-"` // of RunFigures: each is a column
}

// RunFigures are the figures that runs have as columns, with the names that figures.Figure.Lake gives.
var RunFigures = slices.DeleteFunc(slices.Clone(figures.All()), func(f *figures.Figure) bool { return f.Lake == "" })

// Figure returns one of RunFigures.
func (r *Run) Figure(f *figures.Figure) int64 { return r.Figures[slices.Index(RunFigures, f)] }

// Site is what a call site created. Byte-seconds are sizes times how long they were held.
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
	Idle      float64  `parquet:"idle_byte_seconds"` // before the first use and after the end of the last, as far as that is known
}

// Sample is what a process held at the end of a step, at most samplesMax of them.
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

// Finding is the columns of a stats.Finding.
type Finding struct {
	Run      string `parquet:"run,dict"`
	Kind     string `parquet:"kind,dict"`
	Function string `parquet:"function,dict"`
	Site     string `parquet:"site,dict"`
	Kernel   string `parquet:"kernel,dict"`
	Count    int64  `parquet:"count"`
	Bytes    int64  `parquet:"bytes"` // of the memory, the first time
}

// Transfer is what commands moved at a call site.
type Transfer struct {
	Run        string `parquet:"run,dict"`
	Site       string `parquet:"site,dict"` // of the call, or else of the memory
	Direction  string `parquet:"direction,dict"`
	Count      int64  `parquet:"count"`
	Bytes      int64  `parquet:"bytes"`
	BlockedNS  int64  `parquet:"blocked_ns"`  // in calls that block
	ProfiledNS int64  `parquet:"profiled_ns"` // that the device measured
	Pageable   int64  `parquet:"pageable"`    // bytes whose host side was not memory of the driver
}

// Rows are those of one process.
type Rows struct {
	// App, Job and Date are in the names of folders: the program's name, the job, and the day (UTC) of the start.
	App, Job, Date string

	Run       Run
	Sites     []Site
	Samples   []Sample
	Misses    []Miss
	Findings  []Finding
	Transfers []Transfer
}
