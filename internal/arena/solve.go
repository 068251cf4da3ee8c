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
	Capacity uint64 // bytes: the first placement within it will do; 0: as small as can be
	Workers  int    // goroutines that search; 0: as many as run at a time. With one the same seed gives the same placement
	Seed     uint64 // of the orders that are tried by chance
	Steps    int64  // that each search may take in all; 0: any number, until the context ends
	// Progress is called when a better placement or bound was found, by one goroutine at a time.
	Progress func(Progress)
}

// Progress is how far the search has come, in bytes.
type Progress struct{ Height, Bound uint64 }

// Solution is a placement.
type Solution struct {
	Offsets []uint64 // by buffer
	Height  uint64   // bytes of the arena
	// Bound is what no arena is smaller than: the most that is needed at a time, where all sizes but that of the highest
	// buffer are rounded up to what all alignments have in common, or more where an exhaustive search has shown it.
	Bound   uint64
	Optimal bool   // Height is Bound
	Method  string // that found it
	Steps   int64  // of all searches
}

// Solve places buffers. It goes on until the context ends, unless it has found what is wanted or has shown that there is
// nothing better, and returns the best placement so far, at once: a goroutine then ends its step on its own. The first
// placement is always finished. The error is about the buffers.
func Solve(ctx context.Context, buffers []Buffer, o Options) (*Solution, error) {
	if err := checkAll(buffers); err != nil {
		return nil, err
	}
	p, searchable := newProblem(buffers)
	s := &solver{buffers: buffers, p: p, options: o, bound: p.bound, target: p.bound}
	s.offer(asItComes(ctx, buffers), "as it comes, first fit")
	if searchable && !s.over() {
		done := make(chan struct{})
		go func() {
			defer close(done)
			s.improve(ctx)
		}()
		select {
		case <-done:
		case <-ctx.Done():
		}
	}
	return s.solution()
}

// improve looks for a better placement.
func (s *solver) improve(ctx context.Context) {
	s.scales = newScales(s.p, s.buffers)
	s.heuristics(ctx)
	s.search(ctx)
}

// solution is the best so far. Afterwards nothing changes it.
func (s *solver) solution() (*Solution, error) {
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

// solver is what the searches share.
type solver struct {
	buffers []Buffer
	p       *problem
	scales  *scales
	options Options
	low     atomic.Int64 // height, for those who search

	mu      sync.Mutex
	offsets []uint64
	height  int64
	method  string
	bound   int64
	target  int64 // no search will find less
	steps   int64
	// Attempts of each kind, and the steps that thorough ones may have taken.
	quick, thorough int
	thoroughSteps   int64
	err             error
	ended           bool // the solution was given
}

// offer takes a placement that is better than the others.
func (s *solver) offer(offsets []int64, method string) {
	place := make([]uint64, len(offsets))
	for i, offset := range offsets {
		place[i] = uint64(offset)
	}
	height, err := Validate(s.buffers, place)
	s.mu.Lock()
	defer s.mu.Unlock()
	switch {
	case s.ended:
	case err != nil:
		s.err = errors.Join(s.err, errors.New(method+" placed buffers wrongly: "+err.Error()))
	case s.offsets == nil || int64(height) < s.height:
		s.offsets, s.height, s.method = place, int64(height), method
		s.low.Store(s.height)
		s.tell()
	}
}

func (s *solver) tell() {
	if s.options.Progress != nil {
		s.options.Progress(Progress{uint64(s.height), uint64(s.bound)})
	}
}

// over reports whether there is nothing left to look for.
func (s *solver) over() bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.isOver()
}

func (s *solver) isOver() bool {
	capacity := int64(min(s.options.Capacity, sumMax))
	return s.ended || s.err != nil || s.height <= s.bound || s.height <= s.target ||
		capacity > 0 && (s.height <= capacity || s.bound > capacity || s.target > capacity)
}

// heuristics places the buffers in every order in both ways.
func (s *solver) heuristics(ctx context.Context) {
	for _, o := range orders {
		for _, best := range []bool{false, true} {
			if s.over() {
				return
			}
			offsets, ok := s.p.fit(ctx, s.scales.sorted(s.p.order, o.by, 0, nil), best)
			if !ok {
				return
			}
			method := ", first fit"
			if best {
				method = ", best fit"
			}
			s.offer(offsets, o.name+method)
		}
	}
}

// search lets all workers search.
func (s *solver) search(ctx context.Context) {
	workers := s.options.Workers
	if workers <= 0 {
		workers = runtime.GOMAXPROCS(0)
	}
	var group sync.WaitGroup
	for range min(workers, workMax/max(s.p.total, 1)) {
		if s.over() {
			break
		}
		group.Go(func() { s.work(ctx) })
	}
	group.Wait()
}

// work makes one attempt after the other.
func (s *solver) work(ctx context.Context) {
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
		x.prepare(a.sorted(s.scales, s.p.order, random), a.pick)
		x.stop = func() bool { return ctx.Err() != nil || s.low.Load() <= a.capacity }
		r := x.run(a.capacity, a.steps)
		used := max(a.steps-max(x.steps, 0), 1)
		left -= used
		s.report(x, a, r, used)
		x.reset()
	}
}

// report takes what an attempt has found.
func (s *solver) report(x *search, a attempt, r outcome, used int64) {
	if r == solved {
		s.offer(x.offset, a.String())
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
		s.tell()
	}
}
