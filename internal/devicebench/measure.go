// Package devicebench finds out what buffers cost on this machine's OpenCL devices: to create, to touch for the first time,
// to use again and to release, by size. Drivers run in child processes of this program (RunChild), so that a driver that crashes
// or hangs takes nothing else with it; the parent (Run) gathers what they tell, fits lines and judges.
//
// A driver may crash, hang, or leak threads and memory. A child reports each figure at once, is killed first when memory
// runs out, runs without preemption and garbage collection, and inherits no file capabilities. First touch is a
// difference of small numbers: each kind of command first goes to a small buffer to wake PoCL's threads, and sizes come
// in random order so that drift does not look like a cost. Lines minimise relative error; a second line must improve the
// sum 1.5 times.
package devicebench

import "codeberg.org/gpumemtop/gpumemtop/internal/cost"

// Fit is the line through measured costs, or two where one does not do.
type Fit struct {
	cost.Line
	R2 float64 `json:"r2"`
	// Error is by how much, of the measured cost, the worst point is off its line; differences that are lost in the
	// noise of what they were taken from are counted as that noise.
	Error float64 `json:"max_relative_error"`
}

// Point is what was measured with one size: medians, ns. Steady costs come from creates right after a release of the
// same size, as in a program that creates and releases in a loop; fresh ones from memory that the process never had.
type Point struct {
	Size    uint64  `json:"size"`
	Create  float64 `json:"create_ns"`
	Touch   float64 `json:"touch_ns"` // writing all of it for the first time, less Reuse
	Reuse   float64 `json:"reuse_ns"` // writing all of it again
	Release float64 `json:"release_ns"`
	N       int     `json:"n"` // repetitions

	// FirstUse is what the first blocking write of four bytes costs more than the second, AfterUse what Touch is after it.
	FirstUse float64 `json:"first_use_ns"`
	AfterUse float64 `json:"touch_after_use_ns"`
	Fresh    *Fresh  `json:"fresh,omitempty"` // nil for sizes too large to be held several times
}

// Fresh are the costs of new memory, ns.
type Fresh struct {
	Create   float64 `json:"create_ns"`
	Touch    float64 `json:"touch_ns"`
	FirstUse float64 `json:"first_use_ns"`
	AfterUse float64 `json:"touch_after_use_ns"`
	N        int     `json:"n"`
}

// New are the lines of new memory: what a program pays that keeps what it has, as with a pool.
type New struct {
	Create Fit `json:"create"`
	Touch  Fit `json:"touch"`
}

// Facts are what the driver says of a device. Sizes are bytes.
type Facts struct {
	Device       string `json:"device"`
	Driver       string `json:"driver"`
	Version      string `json:"version"`
	Platform     string `json:"platform"`
	ComputeUnits uint32 `json:"compute_units"`
	GlobalMemory uint64 `json:"global_mem_bytes"`
	MaxAlloc     uint64 `json:"max_alloc_bytes"`
	LocalMemory  uint64 `json:"local_mem_bytes"`
	CacheLine    uint32 `json:"cache_line_bytes"`
	BaseAlign    uint32 `json:"base_align_bytes"`
	Unified      bool   `json:"host_unified_memory"`
	MaxConstant  uint64 `json:"max_constant_bytes"`
	Images       bool   `json:"images"`
	ImageWidth   uint64 `json:"image_width"` // pixels, of 2D images at most, and so is the next
	ImageHeight  uint64 `json:"image_height"`
}

// Device is what was found out about one.
type Device struct {
	// Number counts the devices of all platforms from 0 on, as --device does.
	Number int `json:"number"`
	Facts
	Create     Fit     `json:"create"`
	Touch      Fit     `json:"touch"`
	Reuse      Fit     `json:"reuse"`
	Release    Fit     `json:"release"`
	New        *New    `json:"new,omitempty"` // nil when none was measured
	SubCreate  float64 `json:"subbuffer_create_ns"`
	SubRelease float64 `json:"subbuffer_release_ns"`
	Verdict
	Points []Point  `json:"points"`          // ascending
	Notes  []string `json:"notes,omitempty"` // what was left out, and why
	// Error says that the driver failed, and how; Points are what was measured before. "" when it did not.
	Error string `json:"error,omitempty"`
}

// Result is everything that was found out.
type Result struct {
	Devices []Device `json:"devices"`
	// Interrupted says that it ended before its time.
	Interrupted bool `json:"interrupted,omitempty"`
}

// HasMeasured reports whether there is anything about any device.
func (r *Result) HasMeasured() bool {
	for i := range r.Devices {
		if len(r.Devices[i].Points) > 0 {
			return true
		}
	}
	return false
}

// SizeMin is the smallest size that is measured, bytes: a page.
const SizeMin = 4 << 10

// sizesToTest returns the powers of two from 4 KiB to the largest that a device shall have: a quarter of its largest
// allocation, but no more than most; 0: no other bound. The smallest is always there.
func sizesToTest(maxAlloc, most uint64) []uint64 {
	last := maxAlloc / 4
	if most > 0 {
		last = min(last, most)
	}
	list := []uint64{SizeMin}
	for size := uint64(SizeMin) * 2; size <= last && size > 0; size *= 2 {
		list = append(list, size)
	}
	return list
}
