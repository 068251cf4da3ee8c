// Package learn learns a layout of a program's memory from its requests: it finds the period in which they repeat, and
// places the buffers of one period in arenas. It reads no clock.
package learn

import (
	"slices"

	"codeberg.org/gpumemtop/gpumemtop/allocator"
	"codeberg.org/gpumemtop/gpumemtop/internal/period"
)

const (
	window              = 8192 // requests that are remembered
	repeatsMin          = 32   // requests that must have repeated before a layout is made; twice as many after every layoutsPerStep layouts
	layoutsPerStep      = 4    // layouts after which repeatsMin doubles
	layoutsMax          = 64   // layouts for one process: a program that needs more has no steady period
	repeatsMax          = 4    // periods in a row that are placed as one
	repeatedRequestsMax = 256  // requests in these periods
	recheckFirst        = 4    // periods after a layout until lives are compared again; the number doubles each time
)

// Learner follows the requests of one process, in the order of its policy's decisions. A request takes O(1). Layout
// sometimes takes long.
type Learner struct {
	finder   period.Finder
	requests []request // the latest, at their number modulo the window
	count    uint64
	laidOut  []*knownPeriod // the periods of the latest layout: the latest phase, and the phase before it if both fit
	nextTry  uint64         // count from which on a layout may be made
	layouts  int
}

// request is a request that was served.
type request struct {
	number uint64
	key    uint64
	size   uint64
	align  uint64 // bytes; 0: no sub-allocation can serve it
	most   uint64 // bytes of the largest block that may serve it, 0: any
	freed  uint64 // number of requests when its memory was free again; 0: it is not free
	class  allocator.Class
	tag    allocator.Tag
}

// AddRequest notes a request, and returns its number for Freed.
func (l *Learner) AddRequest(r *allocator.Request) (number uint64) {
	if l.requests == nil {
		l.requests = make([]request, window)
	}
	key := period.KeyOfCreate(uint32(r.Tag), r.Size, uint32(r.Class))
	l.finder.AddCreate(key)
	number = l.count
	l.requests[number%window] = request{
		number: number, key: key, size: r.Size, align: r.Align, most: r.MaxBlockBytes(), class: r.Class, tag: r.Tag,
	}
	l.count++
	return number
}

// NoteRequestFreed notes that the memory of a request is free again: the program has released it, and its commands have completed.
func (l *Learner) NoteRequestFreed(number uint64) {
	if r := &l.requests[number%window]; r.number == number {
		r.freed = l.count
	}
}

// requestNumbered returns a remembered request.
func (l *Learner) requestNumbered(number uint64) *request { return &l.requests[number%window] }

// LayoutIfNew returns a layout when there is a new one: when the latest three periods are equal and the present layout was
// not made for them. The first request of the period comes next, or comes soon.
func (l *Learner) LayoutIfNew() (*Layout, bool) {
	if l.count < l.nextTry || l.layouts == layoutsMax {
		return nil, false
	}
	length := l.finder.SteadyPeriod(repeatsMin << (l.layouts / layoutsPerStep))
	if length == 0 || 4*length > window {
		return nil, false
	}
	l.nextTry = l.count + length
	buffers, alternates := l.latestPeriod(length)
	if alternates && 6*length <= window {
		buffers, _ = l.latestPeriod(2 * length)
	}
	if buffers == nil {
		return nil, false
	}
	for _, known := range l.laidOut {
		if known.coversRequestsOf(buffers) {
			l.nextTry = l.count + length*known.wait
			known.wait *= 2
			return nil, false
		}
	}
	l.layouts++
	return l.makeLayoutOfPhases(buffers)
}

// makeLayoutOfPhases makes a layout for a period, and for the previous phase as well if both fit. So both stay in place when
// two phases alternate.
func (l *Learner) makeLayoutOfPhases(buffers []Buffer) (*Layout, bool) {
	earlier := l.laidOut
	layout := makeLayoutOfPeriods(buffers)
	l.laidOut = []*knownPeriod{{buffers: buffers, repeated: buffers, wait: recheckFirst}}
	if layout == nil {
		return nil, false
	}
	l.laidOut[0].repeated = layout.Phases[0]
	if len(earlier) > 0 {
		if both := MakeLayout([][]Buffer{layout.Phases[0], earlier[0].repeated}); both != nil {
			l.laidOut = append(l.laidOut, earlier[0])
			return both, true
		}
	}
	return layout, true
}

// makeLayoutOfPeriods makes a layout for a period, or for several in a row if that takes less memory: buffers that outlive a
// period get different offsets in the next, and more of them fit into each other's ranges.
func makeLayoutOfPeriods(buffers []Buffer) *Layout {
	best := MakeLayout([][]Buffer{buffers})
	for times := 2; best != nil && times <= repeatsMax && times*len(buffers) <= repeatedRequestsMax && best.Size > best.Bound; times++ {
		row := slices.Repeat(buffers, times)
		if other := MakeLayout([][]Buffer{row}); other != nil && other.Size < best.Size {
			best = other
		}
	}
	return best
}

// knownPeriod is a period that has a layout, or for which there is none.
type knownPeriod struct {
	buffers  []Buffer
	repeated []Buffer // buffers, once or several times in a row, as they have places
	wait     uint64   // periods until lives are compared again
}

// coversRequestsOf reports whether the known period has the same requests, with lives at least as long, wherever the period
// begins.
func (k *knownPeriod) coversRequestsOf(buffers []Buffer) bool {
	n := len(buffers)
	if len(k.buffers) != n {
		return false
	}
	for shift := range n {
		same := true
		for i := 0; i < n && same; i++ {
			known, buffer := &k.buffers[(i+shift)%n], &buffers[i]
			same = known.Tag == buffer.Tag && known.Class == buffer.Class && known.Size == buffer.Size && known.livesAtLeastAsLong(buffer)
		}
		if same {
			return true
		}
	}
	return false
}

// livesAtLeastAsLong reports whether a life is at least as long as another; 0 is longer than any.
func (b *Buffer) livesAtLeastAsLong(other *Buffer) bool {
	return b.Life == 0 || other.Life != 0 && other.Life <= b.Life
}
