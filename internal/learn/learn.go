// Package learn turns the requests of a program into a plan of its memory: it finds the iteration in which they repeat, and
// places the buffers of one iteration in arenas. It reads no clock.
package learn

import (
	"slices"

	"codeberg.org/gpumemtop/gpumemtop/allocator"
	"codeberg.org/gpumemtop/gpumemtop/internal/period"
)

const (
	window      = 8192 // requests that are remembered
	leastSteps  = 32   // requests that must have repeated before a plan is made, twice as many after every few plans
	fewPlans    = 4    // that are these
	plansMax    = 64   // that one process gets: a program that needs more has no steady iteration
	repeatMost  = 4    // iterations in a row that are placed as one
	repeatedMax = 256  // requests in these
	retryFirst  = 4    // iterations after a plan until lives are looked at again, then twice as many each time
)

// Learner follows the requests of one process, in the order of its policy's decisions. Each takes O(1); now and then
// Plan takes long.
type Learner struct {
	finder   period.Finder
	requests []request // the latest, at their number modulo the window
	count    uint64
	present  []*planned // what the last plan was made for: the latest phase, and the one before if both have room in it
	tries    uint64     // count from which on a plan may be made
	plans    int
}

// request is one that was served.
type request struct {
	number uint64
	key    uint64
	size   uint64
	align  uint64 // bytes; 0: no part of a slab can serve it
	most   uint64 // bytes of the largest block that may serve it, 0: any
	ended  uint64 // requests that had been made when nothing used the memory any more; 0: it is used
	class  allocator.Class
	tag    allocator.Tag
}

// Request notes a request, and returns its number for Ended.
func (l *Learner) Request(r *allocator.Request) (number uint64) {
	if l.requests == nil {
		l.requests = make([]request, window)
	}
	key := period.Key(uint32(r.Tag)^uint32(r.Class)<<20, r.Size)
	l.finder.Add(key)
	number = l.count
	l.requests[number%window] = request{
		number: number, key: key, size: r.Size, align: r.Align, most: r.Most(), class: r.Class, tag: r.Tag,
	}
	l.count++
	return number
}

// Ended notes that nothing uses the memory of a request any more: the program has released it, and its commands are
// done.
func (l *Learner) Ended(number uint64) {
	if r := &l.requests[number%window]; r.number == number {
		r.ended = l.count
	}
}

// at returns a request that is remembered.
func (l *Learner) at(number uint64) *request { return &l.requests[number%window] }

// Plan returns a plan when there is a new one: the last three iterations were the same, and not what the present plan is
// made for. The first request of the iteration is the one that comes next, or comes soon.
func (l *Learner) Plan() (*Plan, bool) {
	if l.count < l.tries || l.plans == plansMax {
		return nil, false
	}
	length := l.finder.Steady(leastSteps << (l.plans / fewPlans))
	if length == 0 || 4*length > window {
		return nil, false
	}
	l.tries = l.count + length
	buffers, alternates := l.iteration(length)
	if alternates && 6*length <= window {
		buffers, _ = l.iteration(2 * length)
	}
	if buffers == nil {
		return nil, false
	}
	for _, old := range l.present {
		if old.covers(buffers) {
			l.tries = l.count + length*old.wait
			old.wait *= 2
			return nil, false
		}
	}
	l.plans++
	return l.solve(buffers)
}

// solve makes a plan for an iteration, and for the one before it if that can be: where two phases take turns, both stay.
func (l *Learner) solve(buffers []Buffer) (*Plan, bool) {
	before := l.present
	plan := solveRepeated(buffers)
	l.present = []*planned{{buffers: buffers, laid: buffers, wait: retryFirst}}
	if plan == nil {
		return nil, false
	}
	l.present[0].laid = plan.Phases[0]
	if len(before) > 0 {
		if both := Solve([][]Buffer{plan.Phases[0], before[0].laid}); both != nil {
			l.present = append(l.present, before[0])
			return both, true
		}
	}
	return plan, true
}

// solveRepeated makes a plan for an iteration, or for some in a row if that takes less memory: what lives on into the next
// one has other places there, and more of them fit into each other's ranges.
func solveRepeated(buffers []Buffer) *Plan {
	best := Solve([][]Buffer{buffers})
	for times := 2; best != nil && times <= repeatMost && times*len(buffers) <= repeatedMax && best.Size > best.Bound; times++ {
		row := slices.Repeat(buffers, times)
		if other := Solve([][]Buffer{row}); other != nil && other.Size < best.Size {
			best = other
		}
	}
	return best
}

// planned is an iteration that there is a plan for, or can be none.
type planned struct {
	buffers []Buffer
	laid    []Buffer // the same, once or some times in a row, as it has places
	wait    uint64   // iterations until lives are looked at again
}

// covers reports whether a plan is for the same requests and for lives at least as long, wherever the iteration begins.
func (old *planned) covers(buffers []Buffer) bool {
	n := len(buffers)
	if len(old.buffers) != n {
		return false
	}
	for shift := range n {
		same := true
		for i := 0; i < n && same; i++ {
			was, is := &old.buffers[(i+shift)%n], &buffers[i]
			same = was.Tag == is.Tag && was.Class == is.Class && was.Size == is.Size && was.outlives(is)
		}
		if same {
			return true
		}
	}
	return false
}

// outlives reports whether a life is at least as long as another; 0 is longer than any.
func (b *Buffer) outlives(other *Buffer) bool {
	return b.Life == 0 || other.Life != 0 && other.Life <= b.Life
}
