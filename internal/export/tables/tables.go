// Package tables makes rows of recordings: one per record, per life of a buffer, per stay in the pool, per moment, per
// process and per call site. The columns are defined here for all formats that are tables; docs/EXPORTS.md explains
// them to users. It reads no clock.
package tables

import "codeberg.org/gpumemtop/gpumemtop/internal/recording"

// Event is one record. Numbers are those of the record; fields that its kind does not have are 0 or empty.
type Event struct {
	Recording string `parquet:"recording,dict"`
	Number    int32  `parquet:"number"`
	Time      int64  `parquet:"time,timestamp(nanosecond:utc),delta"`
	TimeNS    int64  `parquet:"time_ns,delta"`
	Kind      string `parquet:"kind,dict"`
	Op        string `parquet:"op,dict,optional"`
	Outcome   string `parquet:"outcome,dict,optional"`
	Reason    string `parquet:"reason,dict,optional"`
	Flags     string `parquet:"flags,dict,optional"`
	Carried   bool   `parquet:"carried"`
	Thread    int64  `parquet:"thread,dict"`
	Context   int32  `parquet:"context,dict"`
	Access    int32  `parquet:"access,dict"`
	Status    int32  `parquet:"status,dict"`
	Tag       int64  `parquet:"tag,dict"`
	Site      string `parquet:"site,dict,optional"`
	Object    int64  `parquet:"object,delta"`
	Link      int64  `parquet:"link,delta"`
	Size      int64  `parquet:"size,delta"`
	Granted   int64  `parquet:"granted,delta"`
	Offset    *int64 `parquet:"offset,optional"`   // of a use, or of a sub-buffer in its parent
	Argument  *int64 `parquet:"argument,optional"` // of a use by a kernel
	Scattered bool   `parquet:"scattered"`
	Duration  int64  `parquet:"duration_ns"`
	Cost      int64  `parquet:"cost_ns"`
	Text      string `parquet:"text,optional"`
}

// Buffer is the life of one memory object.
type Buffer struct {
	Recording   string   `parquet:"recording,dict"`
	Number      int32    `parquet:"number"`
	Object      int64    `parquet:"object,delta"`
	Memory      string   `parquet:"memory,dict"`
	Owns        bool     `parquet:"owns"`
	Tag         int64    `parquet:"tag,dict"`
	Site        string   `parquet:"site,dict"`
	Stack       []string `parquet:"stack,list" parquet-element:",dict"`
	Thread      int64    `parquet:"thread,dict"`
	Context     int32    `parquet:"context,dict"`
	Access      int32    `parquet:"access,dict"`
	Flags       string   `parquet:"flags,dict,optional"`
	Carried     bool     `parquet:"carried"`
	Size        int64    `parquet:"size,delta"`
	Granted     int64    `parquet:"granted,delta"`
	Block       int64    `parquet:"block,delta"`
	Parent      int64    `parquet:"parent,delta"`
	Outcome     string   `parquet:"outcome,dict"`
	Reason      string   `parquet:"reason,dict,optional"`
	Created     int64    `parquet:"created,timestamp(nanosecond:utc),delta"`
	CreatedNS   int64    `parquet:"created_ns,delta"`
	Released    *int64   `parquet:"released,timestamp(nanosecond:utc)"`
	ReleasedNS  *int64   `parquet:"released_ns,optional"`
	Lifetime    *int64   `parquet:"lifetime_ns,optional"`
	FirstUse    *int64   `parquet:"first_use_ns,optional"`
	LastUse     *int64   `parquet:"last_use_ns,optional"`
	IdleSince   *int64   `parquet:"idle_since_ns,optional"` // when the last command on it ended; nil: unknown
	Uses        int64    `parquet:"uses"`
	Duration    int64    `parquet:"duration_ns"`
	Cost        int64    `parquet:"cost_ns"`
	ReleaseCost int64    `parquet:"release_cost_ns"`
	Ending      string   `parquet:"ending,dict"`
	Leaked      bool     `parquet:"leaked"`
	EndedNS     int64    `parquet:"-"` // when it was released, or its process ended
}

// Stay is one stay of a block in the pool, or the life of a slab.
type Stay struct {
	Recording string `parquet:"recording,dict"`
	Number    int32  `parquet:"number"`
	Block     int64  `parquet:"block,delta"`
	State     string `parquet:"state,dict"`
	Part      bool   `parquet:"part"`
	Tag       int64  `parquet:"tag,dict"`
	Site      string `parquet:"site,dict"`
	Thread    int64  `parquet:"thread,dict"`
	Context   int32  `parquet:"context,dict"`
	Access    int32  `parquet:"access,dict"`
	Owner     int64  `parquet:"owner,delta"`
	Size      int64  `parquet:"size,delta"`
	Began     int64  `parquet:"began,timestamp(nanosecond:utc),delta"`
	BeganNS   int64  `parquet:"began_ns,delta"`
	Ended     *int64 `parquet:"ended,timestamp(nanosecond:utc)"`
	EndedNS   *int64 `parquet:"ended_ns,optional"`
	Stayed    *int64 `parquet:"stay_ns,optional"`
	Ending    string `parquet:"ending,dict"`
	Reason    string `parquet:"reason,dict,optional"`
}

// Sample is what a process held at the end of a step of time, and what happened within it.
type Sample struct {
	Recording string `parquet:"recording,dict"`
	Number    int32  `parquet:"number"`
	Time      int64  `parquet:"time,timestamp(nanosecond:utc),delta"`
	TimeNS    int64  `parquet:"time_ns,delta"`
	Step      int64  `parquet:"step_ns"`
	InUse     int64  `parquet:"in_use"`
	Requested int64  `parquet:"requested"`
	PeakInUse int64  `parquet:"peak_in_use"`
	Cached    int64  `parquet:"cached"`
	Cooling   int64  `parquet:"cooling"`
	SlabFree  int64  `parquet:"slab_free"`
	Hits      int64  `parquet:"hits"`
	Misses    int64  `parquet:"misses"`
	ToDevice  int64  `parquet:"to_device"` // bytes, within the step
	ToHost    int64  `parquet:"to_host"`
}

// Transfer is a command that moves memory, copies included. If the device timed a command that did not block, the command has
// a second row when it has completed, with only the columns of command, direction, site and profiling.
type Transfer struct {
	Recording     string `parquet:"recording,dict"`
	Number        int32  `parquet:"number"`
	Time          int64  `parquet:"time,timestamp(nanosecond:utc),delta"`
	TimeNS        int64  `parquet:"time_ns,delta"`
	Command       string `parquet:"command,dict"`
	Direction     string `parquet:"direction,dict"`
	Thread        int64  `parquet:"thread,dict"`
	Context       int32  `parquet:"context,dict"`
	Queue         int64  `parquet:"queue,delta"`
	Object        int64  `parquet:"object,delta"`
	Site          string `parquet:"site,dict,optional"` // of the call
	MemorySite    string `parquet:"memory_site,dict,optional"`
	Bytes         int64  `parquet:"bytes,delta"`
	Offset        *int64 `parquet:"offset,optional"`
	Duration      *int64 `parquet:"duration_ns,optional"`      // of a call that blocks
	Host          string `parquet:"host_memory,dict,optional"` // pinned or pageable
	Pages         *int64 `parquet:"pages,optional"`
	Cold          *int64 `parquet:"cold_pages,optional"`
	Hash          *int64 `parquet:"hash,optional"`
	Hashed        *int64 `parquet:"hashed,optional"`
	Profiled      *int64 `parquet:"profiled_ns,optional"`
	ProfiledBytes *int64 `parquet:"profiled_bytes,optional"`
}

// Held is what a call site held of one type of objects at one time: contexts, queues, programs, kernels, events and so on.
type Held struct {
	Recording string `parquet:"recording,dict"`
	Number    int32  `parquet:"number"`
	Time      int64  `parquet:"time,timestamp(nanosecond:utc),delta"`
	TimeNS    int64  `parquet:"time_ns,delta"`
	Type      string `parquet:"type,dict"`
	Tag       int64  `parquet:"tag,dict"`
	Site      string `parquet:"site,dict,optional"`
	Created   int64  `parquet:"created,delta"` // since the start of the process, like the released ones
	Released  int64  `parquet:"released,delta"`
	Live      int64  `parquet:"live,delta"`
	Most      int64  `parquet:"most,delta"` // most that were live since the row before
	Carried   bool   `parquet:"carried"`
}

// Process is one process of a recording.
type Process struct {
	Recording    string            `parquet:"recording,dict"`
	Number       int32             `parquet:"number"`
	PID          int64             `parquet:"pid"`
	Parent       int64             `parquet:"parent"`
	Hostname     string            `parquet:"hostname"`
	Program      string            `parquet:"program"`
	Arguments    []string          `parquet:"arguments,list"`
	Policy       string            `parquet:"policy"`
	Limits       map[string]string `parquet:"limits"`
	Labels       map[string]string `parquet:"labels"` // that the user chose
	Tags         string            `parquet:"tags"`
	Scrub        string            `parquet:"scrub,optional"`
	DeviceMemory int64             `parquet:"device_memory"`
	Device       string            `parquet:"device,optional"`
	Driver       string            `parquet:"driver,optional"`
	DeviceBytes  int64             `parquet:"device_bytes"`
	Started      int64             `parquet:"started,timestamp(nanosecond:utc)"`
	StartedNS    int64             `parquet:"started_ns"`
	Last         int64             `parquet:"last,timestamp(nanosecond:utc)"`
	LastNS       int64             `parquet:"last_ns"`
	Exited       bool              `parquet:"exited"`
	Status       *int64            `parquet:"exit_status,optional"`
	Records      int64             `parquet:"records"`
	Hits         int64             `parquet:"hits"`
	Misses       int64             `parquet:"misses"`
	PeakInUse    int64             `parquet:"peak_in_use"`
	InUse        int64             `parquet:"in_use"`
	LostEvents   int64             `parquet:"lost_events"`

	// The following are for lakes only.
	App      string             `parquet:"-"`
	Identity recording.Identity `parquet:"-"`
	DeviceID string             `parquet:"-"`
	NearPeak int64              `parquet:"-"` // ns with more than nine tenths of the peak in use
}

// Tag is one call site of a process.
type Tag struct {
	Recording string   `parquet:"recording,dict"`
	Number    int32    `parquet:"number"`
	Tag       int64    `parquet:"tag"`
	Site      string   `parquet:"site"`
	Stack     []string `parquet:"stack,list"`
}

// Sink takes rows, in the order in which their subjects ended. Rows of fields that are nil are not made. A row is valid only
// during the call, but the targets of its pointers and slices stay valid. After an error no more rows come.
type Sink struct {
	Event    func(process uint32, row *Event) error
	Buffer   func(process uint32, row *Buffer) error
	Stay     func(process uint32, row *Stay) error
	Sample   func(process uint32, row *Sample) error
	Transfer func(process uint32, row *Transfer) error
	Held     func(process uint32, row *Held) error
	Process  func(process uint32, row *Process) error
	Tag      func(process uint32, row *Tag) error
}
