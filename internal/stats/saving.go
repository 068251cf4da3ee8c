package stats

import (
	"math"
	"math/bits"
	"slices"
)

// SavedCalls estimate the time that hits saved in driver calls, ns.
type SavedCalls struct {
	NS       uint64 // less what the same calls took in the pool; 0: not known
	Pool     uint64 // what hits and their releases took in the pool
	Releases bool   // releases are counted, as enough of them reached the driver; otherwise NS is of creates only
	Device   string // whose probe gave the driver's times; empty: this run did
}

// savingLeast is which part of the run's time an estimated saving must be to be said: less is lost in what else varies from run to run.
const savingLeast = 0.01

// WorthwhileSavings reports which estimates of what hits saved are worth a sentence: of driver calls, and of first touches. What follows
// from a probe is always said, because the user asked for it.
func (s *Snapshot) WorthwhileSavings() (calls, touches bool) {
	least := savingLeast * float64(s.WallNS())
	c, t := &s.Totals.Saved, &s.Totals.SavedTouches
	return c.NS > 0 && (c.Device != "" || float64(c.NS) >= least), t.Hits > 0 && (t.Device != "" || t.NS > 0 && float64(t.NS) >= least)
}

// costs measures how long driver and pool take for what hits spare the driver.
type costs struct {
	creates, releases timings    // by the driver
	served, parked    timings    // by the pool: hits, and releases into the pool
	hits              [65]uint64 // by size class
	threads           threads
}

// threads are the threads that have created blocks.
type threads struct {
	last, first uint32
	others      map[uint32]struct{}
}

// threadsMax bounds the threads. Creates of further threads are not counted.
const threadsMax = 1024

// addCreate takes the ns of a create. It ignores the first create of each thread except for the first thread: such a create may be
// slow, because the caches are cold, the thread has no memory of the C library yet, and it may have waited for the first thread.
func (c *costs) addCreate(thread uint32, size uint64, ns uint32) {
	if c.threads.hasCreatedBefore(thread) {
		c.creates.addCall(size, ns)
	}
}

// hasCreatedBefore reports whether the thread has created blocks before, or is the first thread.
func (t *threads) hasCreatedBefore(thread uint32) bool {
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

func (c *costs) countHit(size uint64, duration uint32) {
	c.hits[bits.Len64(size)]++
	c.served.addCall(size, duration)
}

// estimateSaved returns the estimate: by medians, so that a single slow call never decides. It is known only if the saving stays when
// each driver call takes the lower quartile, and the pool the upper.
func (c *costs) estimateSaved() (out SavedCalls) {
	if c.hits == [65]uint64{} {
		return out
	}
	_, out.Pool = c.estimateTimes(median, true)
	releases := c.releases.isKnown()
	if driver, pool := c.estimateTimes(quartile, releases); !c.creates.isKnown() || driver <= pool {
		return out
	}
	driver, pool := c.estimateTimes(median, releases)
	out.NS, out.Releases = driver-min(driver, pool), releases
	return out
}

// estimateTimes returns what the driver would have taken for the hits and what the pool took, with releases if they are counted: part
// from below of what was timed in each class, and from above. A release by the driver counts as a create at most: one that returns
// memory that the C library kept is slower than usual ones.
func (c *costs) estimateTimes(part uint64, releases bool) (driver, pool uint64) {
	create, _ := c.creates.usualNSByClass(part, enoughTimed)
	release, _ := c.releases.usualNSByClass(part, enoughTimed)
	_, serve := c.served.usualNSByClass(part, enoughServed)
	_, park := c.parked.usualNSByClass(part, enoughServed)
	for class, hits := range c.hits {
		if hits == 0 {
			continue
		}
		most := figureOfNearestClass(&create, class)
		driver += hits * uint64(most)
		pool += hits * uint64(figureOfNearestClass(&serve, class))
		if releases {
			driver += hits * uint64(min(most, figureOfNearestClass(&release, class)))
			pool += hits * uint64(figureOfNearestClass(&park, class))
		}
	}
	return driver, pool
}

// classToTime returns the size class, not among those in without, that has the most hits and too few timed releases by the driver; 0:
// none.
func (c *costs) classToTime(without *[65]bool) (class int) {
	for i := 1; i < len(c.hits); i++ {
		if c.hits[i] > c.hits[class] && !without[i] && c.releases[i].timedCalls() < enoughTimed {
			class = i
		}
	}
	return class
}

// ReleaseClassToTime returns the size class, the number of bits of its sizes, of a process whose releases by the driver should be timed, other
// than those in without: with them, the time that the pool saves is better known. 0: there is none.
func (m *Model) ReleaseClassToTime(process uint32, without *[65]bool) (class int) {
	if p := m.processes.findProcess(process); p != nil && !p.folded {
		return p.ownAccount().costs.classToTime(without)
	}
	return 0
}

// IsMeasuring reports whether an experiment goes on in a process.
func (m *Model) IsMeasuring() bool { return m.measured.IsFollowing() }

// timings are the times that one kind of driver call took, by size class (the power of two above the size). A class without calls
// is nil: there may be thousands of processes, with a few sizes each.
type timings [65]*timing

// timing keeps figures of one size class. The latest leave out slow first calls, those of all calls a slow end, such as that of calls
// that the pool makes again while the program is busy.
type timing struct {
	latest, all [kept]uint32 // of the latest calls; of calls drawn from all, each as likely
	count       uint64       // of all calls so far
}

// kept is how many figures of each kind a size class keeps.
const kept = 8

// enoughTimed is how many calls of a size class are needed to know usual calls from slow first ones: under a pool there are few others,
// and what these take, with cold caches, was ten times what calls take in a loop.
const enoughTimed = 8

// enoughServed is the same for calls that the pool serves.
const enoughServed = 2

// addCall takes a call in ns; 0 means that it was not measured.
func (t *timings) addCall(size uint64, ns uint32) {
	if ns == 0 {
		return
	}
	c := t[bits.Len64(size)]
	if c == nil {
		c = &timing{}
		t[bits.Len64(size)] = c
	}
	c.latest[c.count%kept] = ns
	place := c.count
	if c.count >= kept {
		place, _ = bits.Mul64(c.count*0x9E3779B97F4A7C15, c.count+1) // the same draw in each run
	}
	if place < kept {
		c.all[place] = ns
	}
	c.count++
}

// isKnown reports whether any class has enough figures.
func (t *timings) isKnown() bool {
	return slices.ContainsFunc(t[:], func(c *timing) bool { return c.timedCalls() >= enoughTimed })
}

// timedCalls returns how many calls of a class were timed. The class may be nil.
func (c *timing) timedCalls() uint64 {
	if c == nil {
		return 0
	}
	return c.count
}

// usualNSByClass returns the ns of a usual call by class, from below and from above: see timing.boundsOfMiddle. Below is no more than that of any
// larger class. Classes with fewer calls than least have 0.
func (t *timings) usualNSByClass(part, least uint64) (low, high [65]uint32) {
	lowest := ^uint32(0)
	for class := len(t) - 1; class >= 0; class-- {
		if t[class].timedCalls() >= least {
			low[class], high[class] = t[class].boundsOfMiddle(part)
			lowest = min(lowest, low[class])
			low[class] = lowest
		}
	}
	return low, high
}

// figureOfNearestClass returns the figure of the nearest class that has one, the smaller of two equally near; 0: none has.
func figureOfNearestClass(known *[65]uint32, class int) uint32 {
	for distance := range len(known) {
		for _, near := range [2]int{class - distance, class + distance} {
			if near >= 0 && near < len(known) && known[near] > 0 {
				return known[near]
			}
		}
	}
	return 0
}

// The parts of the kept figures that within leaves out on each side.
const (
	median   = 2
	quartile = 4
)

// boundsOfMiddle returns the figures that a part of the kept ones, half or a quarter, lies below and above: of the latest and of all calls,
// the lower below and the higher above. There must be at least one.
func (c *timing) boundsOfMiddle(part uint64) (low, high uint32) {
	n := min(c.count, kept)
	outside := (n - 1) / part
	low = math.MaxUint32
	for _, sorted := range [2][kept]uint32{c.latest, c.all} {
		slices.Sort(sorted[:n])
		low, high = min(low, sorted[outside]), max(high, sorted[n-1-outside])
	}
	return low, high
}
