package arena

import (
	"context"
	"errors"
	"math/rand/v2"
	"runtime"
	"sync"
	"sync/atomic"
)

// Options say what is wanted. The zero value asks for the smallest arena.
type Options struct {
	Capacity uint64 // bytes: stop at the first placement within it; 0: the smallest arena
	Workers  int    // goroutines that search; 0: one for each core. With one worker the same seed gives the same placement
	Seed     uint64 // of the random orders
	Steps    int64  // steps of each worker in all; 0: any number, until the context ends
	// Progress is called when a better placement or bound is found, by one goroutine at a time.
	Progress func(Progress)
}

// Progress is the best height and bound so far, in bytes.
type Progress struct{ Height, Bound uint64 }

// Solution is a placement.
type Solution struct {
	Offsets []uint64 // by buffer
	Height  uint64   // bytes of the arena
	// Bound is a lower bound for the arena: the most bytes that are needed at a time, with all sizes except the highest
	// buffer's rounded up to the common divisor of the alignments; or more if an exhaustive search has shown it.
	Bound   uint64
	Optimal bool   // Height is Bound
	Method  string // how it was found
	Steps   int64  // of all searches
}

// PlaceBuffers places buffers. It continues until the context ends, or until it has found what is wanted or has shown that
// nothing better exists. When the context ends it returns the best placement at once; a worker then ends its present
// step in the background. The first placement is always completed. The error reports invalid buffers.
func PlaceBuffers(ctx context.Context, buffers []Buffer, o Options) (*Solution, error) {
	if err := checkBuffers(buffers); err != nil {
		return nil, err
	}
	p, searchable := newProblem(buffers)
	s := &solver{buffers: buffers, p: p, options: o, bound: p.bound, target: p.bound}
	s.keepIfBetter(placeInOrderOfTime(ctx, buffers), "as it comes, first fit")
	if searchable && !s.isFinished() {
		done := make(chan struct{})
		go func() {
			defer close(done)
			s.improvePlacement(ctx)
		}()
		select {
		case <-done:
		case <-ctx.Done():
		}
	}
	return s.bestSolution()
}

// improvePlacement looks for a better placement.
func (s *solver) improvePlacement(ctx context.Context) {
	s.scales = newScales(s.p, s.buffers)
	s.tryHeuristics(ctx)
	s.runWorkers(ctx)
}

// bestSolution returns the best placement. Later results of workers are ignored.
func (s *solver) bestSolution() (*Solution, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.ended = true
	if s.err != nil {
		return nil, s.err
	}
	return &Solution{
		Offsets: s.offsets, Height: uint64(s.height), Bound: uint64(s.bound), Optimal: s.height == s.bound, Method: s.method,
		Steps: s.steps,
	}, nil
}

// solver is the state that all workers share.
type solver struct {
	buffers    []Buffer
	p          *problem
	scales     *scales
	options    Options
	bestHeight atomic.Int64 // height, for the workers

	mu      sync.Mutex
	offsets []uint64
	height  int64
	method  string
	bound   int64
	target  int64 // no search will find less
	steps   int64
	// Number of attempts of each kind, and the steps that the thorough ones were allowed.
	quick, thorough int
	thoroughSteps   int64
	err             error
	ended           bool // the solution was returned
}

// keepIfBetter takes a placement if it is better than the others.
func (s *solver) keepIfBetter(offsets []int64, method string) {
	place := make([]uint64, len(offsets))
	for i, offset := range offsets {
		place[i] = uint64(offset)
	}
	height, err := ValidatePlacement(s.buffers, place)
	s.mu.Lock()
	defer s.mu.Unlock()
	switch {
	case s.ended:
	case err != nil:
		s.err = errors.Join(s.err, errors.New(method+" placed buffers wrongly: "+err.Error()))
	case s.offsets == nil || int64(height) < s.height:
		s.offsets, s.height, s.method = place, int64(height), method
		s.bestHeight.Store(s.height)
		s.reportProgress()
	}
}

func (s *solver) reportProgress() {
	if s.options.Progress != nil {
		s.options.Progress(Progress{uint64(s.height), uint64(s.bound)})
	}
}

// isFinished reports whether nothing is left to search for.
func (s *solver) isFinished() bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.isFinishedLocked()
}

func (s *solver) isFinishedLocked() bool {
	capacity := int64(min(s.options.Capacity, sumMax))
	return s.ended || s.err != nil || s.height <= s.bound || s.height <= s.target ||
		capacity > 0 && (s.height <= capacity || s.bound > capacity || s.target > capacity)
}

// tryHeuristics places the buffers in every order, with first fit and best fit.
func (s *solver) tryHeuristics(ctx context.Context) {
	for _, o := range orders {
		for _, best := range []bool{false, true} {
			if s.isFinished() {
				return
			}
			offsets, ok := s.p.greedyFit(ctx, s.scales.itemsSortedBy(s.p.order, o.by, 0, nil), best)
			if !ok {
				return
			}
			method := ", first fit"
			if best {
				method = ", best fit"
			}
			s.keepIfBetter(offsets, o.name+method)
		}
	}
}

// runWorkers runs the workers.
func (s *solver) runWorkers(ctx context.Context) {
	workers := s.options.Workers
	if workers <= 0 {
		workers = runtime.GOMAXPROCS(0)
	}
	var group sync.WaitGroup
	for range min(workers, workMax/max(s.p.total, 1)) {
		if s.isFinished() {
			break
		}
		group.Go(func() { s.makeAttempts(ctx) })
	}
	group.Wait()
}

// makeAttempts makes one attempt after the other.
func (s *solver) makeAttempts(ctx context.Context) {
	x := newSearch(s.p)
	left := s.options.Steps
	for {
		a, ok := s.nextAttempt()
		if !ok || ctx.Err() != nil || s.options.Steps > 0 && left <= 0 {
			return
		}
		if s.options.Steps > 0 {
			a.steps = min(a.steps, left)
		}
		random := rand.New(rand.NewPCG(s.options.Seed, uint64(a.number)))
		x.setOrderOfRun(a.itemsInOrder(s.scales, s.p.order, random), a.pick)
		x.stop = func() bool { return ctx.Err() != nil || s.bestHeight.Load() <= a.capacity }
		r := x.searchWithin(a.capacity, a.steps)
		used := max(a.steps-max(x.steps, 0), 1)
		left -= used
		s.recordAttempt(x, a, r, used)
		x.undoAll()
	}
}

// recordAttempt records the result of an attempt.
func (s *solver) recordAttempt(x *search, a attempt, r outcome, used int64) {
	if r == solved {
		s.keepIfBetter(x.offset, a.String())
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	s.steps += used
	if r != failed || s.ended {
		return
	}
	s.target = max(s.target, a.capacity+s.p.step)
	if s.p.plain && s.target > s.bound {
		s.bound = s.target
		s.reportProgress()
	}
}
