// Package learn turns the requests of a program into a plan of its memory: it finds the period in which they repeat, and
// places the buffers of one period in arenas. It reads no clock.
package learn

import (
	"codeberg.org/gpumemtop/gpumemtop/allocator"
	"codeberg.org/gpumemtop/gpumemtop/internal/period"
)

const (
	window     = 8192 // requests that are remembered
	leastSteps = 32   // requests that must have repeated before a plan is made, twice as many after every few plans
	fewPlans   = 4    // that are these
	plansMax   = 64   // that one process gets: a program that needs more has no period
	retryFirst = 4    // periods after a plan until lives are looked at again, then twice as many each time
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
	align  uint64 // bytes; 0: it has no place in an arena
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
		number: number, key: key, size: r.Size, align: r.Align, class: r.Class, tag: r.Tag,
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

// Plan returns a plan when there is a new one: the last three periods were the same, and not what the present plan is
// made for. The first request of the period is the one that comes next, or comes soon.
func (l *Learner) Plan() (*Plan, bool) {
	if l.count < l.tries || l.plans == plansMax {
		return nil, false
	}
	length := l.finder.Steady(leastSteps << (l.plans / fewPlans))
	if length == 0 || 4*length > window {
		return nil, false
	}
	l.tries = l.count + length
	p := l.problem(length)
	if p != nil && p.alternates && 6*length <= window {
		p = l.problem(2 * length)
	}
	if p == nil {
		return nil, false
	}
	for _, old := range l.present {
		if old.covers(p) {
			l.tries = l.count + length*old.wait
			old.wait *= 2
			return nil, false
		}
	}
	l.plans++
	latest := &planned{problem: p, plan: p.solve(), wait: retryFirst}
	before := l.present
	l.present = []*planned{latest}
	if n := len(before); latest.plan != nil && n > 0 {
		if both := latest.plan.with(before[0].plan); both != nil {
			l.present = append(l.present, before[0])
			return both, true
		}
	}
	return latest.plan, latest.plan != nil
}

// planned is a period with its plan, nil where nothing has a place.
type planned struct {
	*problem
	plan *Plan
	wait uint64 // periods until lives are looked at again
}

// covers reports whether a plan is for the same requests and for lives at least as long.
func (old *planned) covers(p *problem) bool {
	if len(old.buffers) != len(p.buffers) {
		return false
	}
	for i := range p.buffers {
		was, is := &old.buffers[i], &p.buffers[i]
		if was.key != is.key || is.life > was.life {
			if i == 0 && was.key != is.key {
				return old.turned(p)
			}
			return false
		}
	}
	return true
}

// turned reports whether the periods are the same except for where they begin.
func (old *planned) turned(p *problem) bool {
	n := len(p.buffers)
	for shift := 1; shift < n; shift++ {
		same := true
		for i := 0; i < n && same; i++ {
			was, is := &old.buffers[(i+shift)%n], &p.buffers[i]
			same = was.key == is.key && is.life <= was.life
		}
		if same {
			return true
		}
	}
	return false
}
