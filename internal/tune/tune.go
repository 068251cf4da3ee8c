// Package tune searches for the policy and the limits that suit recordings, by playing these through one configuration
// after the other, as package replay does. It reads no clock and does no I/O; contexts say when to end.
package tune

import (
	"context"
	"errors"
	"fmt"
	"runtime"

	"codeberg.org/gpumemtop/gpumemtop/allocator"
	"codeberg.org/gpumemtop/gpumemtop/internal/cost"
	"codeberg.org/gpumemtop/gpumemtop/internal/replay"
)

// Usual is how many configurations are tried by default.
const Usual = 200

// Options say what to search for.
type Options struct {
	Device    cost.Device           // driver costs
	Fit       bool                  // use the driver costs in each recording instead of Device
	Most      int                   // configurations to try; 0: Usual
	MaxMemory uint64                // bytes that may be reserved at one time; 0: any number
	Present   *replay.Configuration // the configuration in use, which is kept if no other is better; nil: unknown
	Workers   int                   // goroutines; 0: one for each core
	Progress  func(done, all int)   // called with how many configurations were tried, by any goroutine, one at a time; may be nil
}

// Score is the result of a configuration. For several recordings it has sums, and the highest peak.
type Score struct {
	DriverNS      float64 // time of driver calls
	AssumedNS     float64 // the part of it that follows from an assumed cost
	PeakReserved  uint64  // bytes
	Hits          uint64
	Requests      uint64 // hits and misses
	DriverCreates uint64
	Unpooled      uint64 // creates that no pool serves: PeakReserved is without their memory
}

// HitRate returns hits / requests, 0 without a request.
func (s *Score) HitRate() float64 {
	if s.Requests == 0 {
		return 0
	}
	return float64(s.Hits) / float64(s.Requests)
}

// IsAssumed reports whether the driver time follows from an assumed cost. Such a score is shown, but neither ranked nor
// recommended.
func (s *Score) IsAssumed() bool { return s.AssumedNS > 0 }

// Point is a configuration that was tried.
type Point struct {
	Configuration replay.Configuration
	Score
	On []Score // by recording
}

// Ending is why a search ended.
type Ending uint8

// The endings.
const (
	Enough    Ending = iota // the requested number of configurations was tried
	Exhausted               // no configuration is left to try
	Cut                     // the context ended
)

// Result is the result of a search.
type Result struct {
	Points      []Point // all configurations that were tried, in order
	Front       []Point // the points that no other point beats in both time and memory; the fastest first; without assumed ones
	Assumed     []Point // assumed points that would be in the front
	Recommended *Point  // nil if no point keeps to MaxMemory
	Reason      Reason  // of the recommendation
	None        Point   // no pool
	Present     *Point  // Options.Present
	Bound       replay.Bound
	Ending      Ending
	PartNS      float64 // assumed cost of a sub-allocation, the most in any recording; 0 if it is known
	RanNS       uint64  // how long the recorded runs were, together

	testbed testbed
	options Options
}

// ErrNoCost says that neither a recording nor an option gives the costs of driver calls. One create does not show them.
var ErrNoCost = errors.New("no two creates were timed in the recording: what the driver takes is not known")

// ErrNoRequest says that no recording has a poolable request.
var ErrNoRequest = errors.New("nothing was asked for that a pool could serve")

// ErrNothing says that the search ended before any configuration was tried.
var ErrNothing = errors.New("the time was over before one configuration was tried")

// Search tries configurations until there are enough, none is left, or the context ends; then the result has those that
// were tried. The same recordings give the same result, unless the context ends. The limits of a configuration hold
// from the beginning to the end; other limits change as they were changed in the recordings.
//
// Errors are ErrNoRequest, ErrNoCost, ErrNothing, and one that reports an invalid Options.Present.
func Search(ctx context.Context, tapes []*replay.Loaded, o Options) (*Result, error) {
	s, err := newSearch(tapes, o)
	if err != nil {
		return nil, err
	}
	s.tryDefaults(ctx)
	s.tryAmounts(ctx)
	s.tryNeighbours(ctx, s.options.Most/8)
	s.tryWithOneLimitLess(ctx)
	s.tryNeighbours(ctx, 0)
	return s.newResult(ctx)
}

func newSearch(tapes []*replay.Loaded, o Options) (*search, error) {
	if o.Most <= 0 {
		o.Most = Usual
	}
	if o.Workers <= 0 {
		o.Workers = runtime.GOMAXPROCS(0)
	}
	s := &search{testbed: testbed{tapes: tapes, workers: o.Workers}, options: o, seen: map[string]int{}, untriedNeighbours: map[string][]replay.Configuration{}}
	if o.Present != nil {
		if _, err := allocator.New(o.Present.Policy, o.Present.Settings); err != nil {
			return nil, fmt.Errorf("the present configuration: %w", err)
		}
		present := normalize(*o.Present)
		s.options.Present = &present
	}
	return s, s.findDriverCosts()
}

// findDriverCosts finds the driver costs of each recording.
func (s *search) findDriverCosts() error {
	known := false
	for _, tape := range s.tapes {
		d := s.options.Device
		if s.options.Fit {
			d = tape.DriverCosts()
		}
		known = known || d.Create != cost.Line{}
		if d.AssumePartCost(); d.PartAssumed {
			s.partNS = max(s.partNS, d.Part.A)
		}
		s.devices = append(s.devices, d)
		bound := tape.LowerBound(d)
		s.bound.Whole += bound.Whole
		s.bound.Carved += bound.Carved
		s.bound.Peak = max(s.bound.Peak, bound.Peak)
	}
	switch {
	case s.bound.Peak == 0:
		return ErrNoRequest
	case !known:
		return ErrNoCost
	}
	return nil
}

// BoundOf returns the lower bound, in ns, for policies like that of a configuration: for policies that carve slabs, or
// for those that give each buffer a block of its own.
func (r *Result) BoundOf(c *replay.Configuration) float64 {
	if allocator.UsesSlabs(c.Policy) {
		return r.Bound.Carved
	}
	return r.Bound.Whole
}

// RegretOf returns how much longer than the bound a configuration takes, in ns, and as a share of the largest possible
// saving: 0 if it reaches the bound, 1 if it saves nothing.
func (r *Result) RegretOf(p *Point) (ns, share float64) {
	ns = max(0, p.DriverNS-r.BoundOf(&p.Configuration))
	if most := r.None.DriverNS - r.BoundOf(&p.Configuration); most > 0 {
		share = min(1, ns/most)
	}
	return ns, share
}
