package stats

import (
	"math/bits"
	"slices"
)

// costs measures how long the driver takes to create and release blocks, and counts the calls that the pool saved it.
type costs struct {
	creates, releases timings
	hits              [65]uint64 // by size class
	own               uint64     // ns that the program spent in the pool instead: in hits, and in releases into the pool
	threads           threads
}

// threads are the threads that have created blocks.
type threads struct {
	last, first uint32
	others      map[uint32]struct{}
}

// threadsMax bounds the threads. Creates of further threads are not counted.
const threadsMax = 1024

// create takes the ns of a create. It ignores the first create of each thread except for the first thread: such a create may be
// slow, because the caches are cold, the thread has no memory of the C library yet, and it may have waited for the first thread.
func (c *costs) create(thread uint32, size uint64, ns uint32) {
	if c.threads.met(thread) {
		c.creates.add(size, ns)
	}
}

// met reports whether the thread has created blocks before, or is the first thread.
func (t *threads) met(thread uint32) bool {
	if t.first == 0 {
		t.first = thread
	}
	if thread == t.first || thread == t.last {
		return true
	}
	if _, met := t.others[thread]; met {
		t.last = thread
		return true
	}
	if t.others == nil {
		t.others = map[uint32]struct{}{}
	}
	if len(t.others) < threadsMax {
		t.others[thread] = struct{}{}
	}
	return false
}

func (c *costs) hit(size uint64, duration uint32) {
	c.hits[bits.Len64(size)]++
	c.own += uint64(duration)
}

// saved returns the ns that hits saved in the driver's creates and releases, less the pool's own time, and at least 0. It is at
// most hits × the slowest timed create and release. A single slow call never decides: if only first calls were timed, the
// saving is unknown.
func (c *costs) saved() (ns uint64, known bool) {
	if !c.creates.known() {
		return 0, false
	}
	create, release := c.creates.typical(), c.releases.typical()
	var total float64
	for class, hits := range c.hits {
		// The last releases of a run may return all that the C library kept until then: usual releases are faster.
		total += float64(hits) * (float64(create[class]) + float64(min(create[class], release[class])))
	}
	return uint64(max(0, total-float64(c.own))), true
}

// timings are the times that one kind of driver call took, by size class (the power of two above the size). A class without calls
// is nil: there may be thousands of processes, with a few sizes each.
type timings [65]*timing

// timing keeps the latest figures of one size class.
type timing struct {
	ns    [8]uint32
	count uint64 // of all calls so far
}

// enoughTimed is how many calls of a size class are needed to know a usual call from a slow first one.
const enoughTimed = 2

// add takes a call in ns; 0 means that it was not measured.
func (t *timings) add(size uint64, ns uint32) {
	if ns == 0 {
		return
	}
	c := t[bits.Len64(size)]
	if c == nil {
		c = &timing{}
		t[bits.Len64(size)] = c
	}
	c.ns[c.count%uint64(len(c.ns))] = ns
	c.count++
}

// known reports whether any class has enough figures.
func (t *timings) known() bool {
	return slices.ContainsFunc(t[:], (*timing).enough)
}

// calls returns how many calls of a class were timed. The class may be nil.
func (c *timing) calls() uint64 {
	if c == nil {
		return 0
	}
	return c.count
}

func (c *timing) enough() bool { return c.calls() >= enoughTimed }

// typical returns the ns of a usual call by class: the lower median of the latest calls, but no more than that of any larger
// class. A class with too few calls takes the figure of the nearest class with enough, the smaller of two equally near. If no
// class has enough, all are 0.
func (t *timings) typical() (ns [65]uint32) {
	var own [65]uint32
	least := ^uint32(0)
	for class := len(t) - 1; class >= 0; class-- {
		if t[class].enough() {
			low, _ := t[class].medians()
			least = min(least, low)
			own[class] = least
		}
	}
	for class := range ns {
		ns[class] = nearest(&own, class)
	}
	return ns
}

func nearest(known *[65]uint32, class int) uint32 {
	for distance := range len(known) {
		for _, near := range [2]int{class - distance, class + distance} {
			if near >= 0 && near < len(known) && known[near] > 0 {
				return known[near]
			}
		}
	}
	return 0
}

// medians returns the lower and the upper median of the latest figures. There must be at least one.
func (c *timing) medians() (low, high uint32) {
	latest := c.ns
	n := min(c.count, uint64(len(latest)))
	slices.Sort(latest[:n])
	return latest[(n-1)/2], latest[n/2]
}
