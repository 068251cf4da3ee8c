// Package tune searches for the policy and the limits that suit recordings. It replays the recordings under one
// configuration after the other, as exactly as package replay does. It reads no clock and does no I/O: contexts say when to end.
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

// Options say what to look for.
type Options struct {
	Device    cost.Device           // what the driver takes
	Fit       bool                  // it takes what it took in each recording; Device does not count
	Most      int                   // configurations to try; 0: Usual
	MaxMemory uint64                // bytes that may be reserved at a time; 0: any
	Present   *replay.Configuration // what is in use now, which should not change for nothing; nil: unknown
	Workers   int                   // goroutines; 0: one for each core
	Progress  func(done, all int)   // called with how many configurations were tried, by any goroutine, one at a time; may be nil
}

// Score is what a configuration did. For several recordings: sums, and the highest peak.
type Score struct {
	DriverNS      float64 // that the driver took
	PeakReserved  uint64  // bytes
	Hits          uint64
	Requests      uint64 // hits and misses
	DriverCreates uint64
}

// HitRate returns hits / requests, 0 without a request.
func (s *Score) HitRate() float64 {
	if s.Requests == 0 {
		return 0
	}
	return float64(s.Hits) / float64(s.Requests)
}

// Point is a configuration that was tried.
type Point struct {
	Configuration replay.Configuration
	Score
	On []Score // each recording
}

// Ending says why a search ended.
type Ending uint8

// The endings.
const (
	Enough    Ending = iota // as many configurations were tried as were asked for
	Exhausted               // there is nothing left that could be tried
	Cut                     // the context ended
)

// Result is what a search found.
type Result struct {
	Points      []Point // all that was tried, in order
	Front       []Point // of which none is better in time and in memory; the fastest first
	Recommended *Point  // nil where nothing keeps to MaxMemory
	Reason      Reason  // why that one
	None        Point   // no pool
	Present     *Point  // Options.Present
	Bound       replay.Bound
	Ending      Ending
	PartNS      float64 // what a part of a slab is assumed to take, the most in any recording; 0 where it is known

	field   field
	options Options
}

// ErrNoCost says that neither a recording nor an option gives the cost of driver calls.
var ErrNoCost = errors.New("no create was timed in the recording: what the driver takes is not known")

// ErrNoRequest says that no recording has a request that a pool could serve.
var ErrNoRequest = errors.New("nothing was asked for that a pool could serve")

// ErrNothing says that a search ended before anything was tried.
var ErrNothing = errors.New("the time was over before one configuration was tried")

// Search tries configurations until there are enough of them, nothing is left, or the context ends: then the result is
// of what was tried by then. The same tapes give the same result, unless the context ends. The limits of a
// configuration hold from the beginning to the end; others change as they were changed in the recordings.
//
// Errors are ErrNoRequest, ErrNoCost, ErrNothing, and one that says what is wrong with Options.Present.
func Search(ctx context.Context, tapes []*replay.Loaded, o Options) (*Result, error) {
	s, err := newSearch(tapes, o)
	if err != nil {
		return nil, err
	}
	s.defaults(ctx)
	s.amounts(ctx)
	s.refine(ctx, s.options.Most/8)
	s.simplify(ctx)
	s.refine(ctx, 0)
	return s.result(ctx)
}

func newSearch(tapes []*replay.Loaded, o Options) (*search, error) {
	if o.Most <= 0 {
		o.Most = Usual
	}
	if o.Workers <= 0 {
		o.Workers = runtime.GOMAXPROCS(0)
	}
	s := &search{field: field{tapes: tapes, workers: o.Workers}, options: o, seen: map[string]int{}, left: map[string][]replay.Configuration{}}
	if o.Present != nil {
		if _, err := allocator.New(o.Present.Policy, o.Present.Settings); err != nil {
			return nil, fmt.Errorf("the present configuration: %w", err)
		}
		present := canonical(*o.Present)
		s.options.Present = &present
	}
	return s, s.price()
}

// price finds what the driver of each recording takes.
func (s *search) price() error {
	known := false
	for _, tape := range s.tapes {
		d := s.options.Device
		if s.options.Fit {
			d = tape.Device()
		}
		known = known || d.Create != cost.Line{}
		if d.AssumePart(); d.PartAssumed {
			s.partNS = max(s.partNS, d.Part.A)
		}
		s.devices = append(s.devices, d)
		bound := tape.Bound(d)
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

// BoundOf returns the ns that no policy can be below of which each is like that of a configuration: one that carves
// buffers out of slabs, or one by which each has a block of its own.
func (r *Result) BoundOf(c *replay.Configuration) float64 {
	if allocator.Carves(c.Policy) {
		return r.Bound.Carved
	}
	return r.Bound.Whole
}

// Regret returns what a configuration takes longer than the bound, in ns, and as a share of what could be saved at
// most: 0 where it is as good as can be, 1 where it saves nothing.
func (r *Result) Regret(p *Point) (ns, share float64) {
	ns = max(0, p.DriverNS-r.BoundOf(&p.Configuration))
	if most := r.None.DriverNS - r.BoundOf(&p.Configuration); most > 0 {
		share = min(1, ns/most)
	}
	return ns, share
}
