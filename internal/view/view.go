// Package view holds the types that the dashboard displays and that other packages produce. It has no logic of its own.
package view

import (
	"math"

	"codeberg.org/gpumemtop/gpumemtop/internal/stats"
)

// LastMoment asks for the end of a recording, wherever that is.
const LastMoment = math.MaxUint64

// Moment is the state of a recording at one time. Times are CLOCK_MONOTONIC ns of the recording.
type Moment struct {
	// Shown is the state. Its Time may differ from the time that was asked for; Note then says why. nil: nothing has
	// been read yet.
	Shown *stats.Snapshot
	// Rough means that Shown comes from summaries. Of its totals only hits, misses, creates, releases and the peak in
	// use are those of its Time; the bytes in use, cached and cooling are of the fullest moment in the stretch that
	// ends there. Tags, limits, marks and the rest are those of the time Known.
	Rough bool
	Known uint64
	// Latest is the state at the last record that has been read. History are samples of the whole run, which need not
	// be evenly spaced.
	Latest  *stats.Snapshot
	History []stats.Sample
	// From and Until are the start and the end of the recording, as far as they are known. The instants
	// From + n × Step can be shown without waiting.
	From, Until, Step uint64
	Read              float64 // share of the file that has been read, 0…1
	Done              bool    // all of it has been read
	Note              string  // why Shown is not of the time that was asked for
	Damage            string  // what part of the file cannot be read
}

// Curve is the hit rate as a function of the limit of cached bytes, for all processes together. Each process has a cache
// of that limit. A published Curve does not change.
type Curve struct {
	Why      string       // why there is no curve yet; empty: there is one
	Whole    bool         // it covers a whole recording, played at its Exact points
	Policy   string       // the simulated policy: that of the program or, where it has no pool, the default one
	Limits   bool         // the policy limits what it caches; without a limit there is no curve
	Points   []CurvePoint // ascending, from limit 0, through all of Exact; between two points the lower one holds
	Exact    []CurvePoint // ascending; simulated at that limit, not estimated
	Error    float64      // mean error of the estimated points, 0…1; meaningless while Exact is empty
	Knee     CurvePoint   // the least limit within two points of the highest hit rate
	Enough   CurvePoint   // the first point with 99 % of the highest hit rate
	Requests uint64       // the latest requests, which the curve covers; an estimate where they are sampled
	Missed   uint64       // records that came too fast; the curve began again after the last of them
	LeftOut  bool         // it lacks processes, because there was no memory for them
}

// IsKnown reports whether Error is known: some points are exact.
func (c *Curve) IsKnown() bool { return len(c.Exact) > 0 }

// CurvePoint is the outcome at one limit.
type CurvePoint struct {
	Limit        uint64  // bytes in each process
	HitRate      float64 // hits / requests, 0…1
	PeakReserved uint64  // largest sum of bytes that all processes had from the driver; 0 where not simulated
}

// Unlimited is a limit above every one that makes a difference.
const Unlimited = 1 << 50

// IsUnlimited reports whether the point is without a limit.
func (p CurvePoint) IsUnlimited() bool { return p.Limit >= Unlimited }

// OutputLine is one line that the program printed, without its line end. It may hold any bytes.
type OutputLine struct {
	Text   string
	Stderr bool
	Open   bool // it has no end yet: a prompt, or a bar that shows progress
}
