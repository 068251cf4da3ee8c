package analysis

import (
	"cmp"
	"fmt"
	"math"
	"math/bits"
	"slices"
	"strconv"

	"codeberg.org/gpumemtop/gpumemtop/internal/heap"
	"codeberg.org/gpumemtop/gpumemtop/internal/stats"
	"codeberg.org/gpumemtop/gpumemtop/internal/units"
	"codeberg.org/gpumemtop/gpumemtop/internal/wire"
)

const reasons = int(wire.MissPolicy) + 1

// wastefulMax bounds the misses for which all free blocks are searched.
const wastefulMax = 64

// misses counts misses by reason, and what would have avoided them.
type misses struct {
	count, bytes, lost [reasons]uint64
	ratios             []float64 // of the smallest block that was too wasteful to its request
	cachedMost         uint64    // most bytes that a process would have cached without max_cached_bytes
	capMost            uint64    // most blocks of one call site, or size, evicted by a cap and requested again
}

// poolCaps tracks what limits evicted from a process's pool.
type poolCaps struct {
	away   int64             // bytes that max_cached_bytes evicted and that were not missed since
	most   int64             // cached and away together
	capped map[uint64]uint64 // blocks that a cap evicted and that were not missed since, by capKeys
}

// raiseMostPooled records how much the pool would hold.
func (c *poolCaps) raiseMostPooled(p *heap.Process) {
	c.most = max(c.most, p.Cached+p.Cooling+p.Room+c.away)
}

// capKeys are the keys of a call site and of a size: a cap concerns one or the other.
func capKeys(tag uint32, size uint64) [2]uint64 { return [2]uint64{uint64(tag) << 1, size<<1 | 1} }

// noteEvictedByLimit notes what a limit took out of the pool, while the block is still known: it has the call site.
func (x *run) noteEvictedByLimit(process uint32, e wire.EvictView) {
	tag := e.Tag()
	if p := x.heap.FindProcess(process); p != nil {
		if b := p.Block(e.Block()); b != nil {
			tag = b.Tag
		}
	}
	switch c := &x.processOf(process).pool; e.Reason() {
	case wire.EvictLimit:
		c.away += int64(e.Bytes())
	case wire.EvictTagCap:
		if c.capped == nil {
			c.capped = map[uint64]uint64{}
		}
		for _, key := range capKeys(tag, e.Bytes()) {
			c.capped[key]++
		}
	default: // not by a limit
	}
}

func (m *misses) addMiss(p *process, o *heap.Object) {
	reason := min(int(o.Reason), reasons)
	if reason == reasons {
		reason = 0 // from a later version
	}
	m.count[reason]++
	m.bytes[reason] += o.Size
	if o.SubAllocation { // it needed the slab before it, whose cost its own contains
		m.lost[reason] += uint64(p.slab)
		p.slab = 0
	} else {
		m.lost[reason] += uint64(o.Cost)
	}
	switch wire.Miss(reason) {
	case wire.MissLimit:
		m.cachedMost = max(m.cachedMost, nonNegative(p.pool.most))
		p.pool.away = max(0, p.pool.away-int64(o.Granted))
	case wire.MissTagCap:
		m.countBlocksBeyondCap(p, o)
	case wire.MissTooWasteful:
		m.findWastefulBlock(p, o)
	default:
	}
}

// countBlocksBeyondCap counts how many blocks more a cap would have had to allow.
func (m *misses) countBlocksBeyondCap(p *process, o *heap.Object) {
	for _, key := range capKeys(o.Tag, o.Granted) {
		if n := p.pool.capped[key]; n > 0 {
			m.capMost = max(m.capMost, n)
			p.pool.capped[key]--
		}
	}
	m.capMost = max(m.capMost, 1)
}

// findWastefulBlock finds the smallest free block of the class that is large enough.
func (m *misses) findWastefulBlock(p *process, o *heap.Object) {
	if len(m.ratios) == wastefulMax || o.Size == 0 {
		return
	}
	least := uint64(math.MaxUint64)
	for _, b := range p.life.Blocks() {
		if b.State == heap.Cached && !b.SubAllocation && b.Scope == o.Scope && b.Access == o.Access && b.Shape == o.Shape && b.Size >= o.Size {
			least = min(least, b.Size)
		}
	}
	if least != math.MaxUint64 {
		m.ratios = append(m.ratios, float64(least)/float64(o.Size))
	}
}

// listMissReasons returns the reasons that occurred.
func (m *misses) listMissReasons(x *run) []Miss {
	var list []Miss
	for reason := range reasons {
		if m.count[reason] > 0 {
			list = append(list, Miss{
				Reason: Reason(wire.Miss(reason).String()), Count: m.count[reason], Bytes: m.bytes[reason], LostNS: m.lost[reason],
				Knob: m.knobForMissReason(wire.Miss(reason), x.snapshot),
			})
		}
	}
	slices.SortStableFunc(list, func(a, b Miss) int {
		return cmp.Or(cmp.Compare(b.LostNS, a.LostNS), cmp.Compare(b.Count, a.Count))
	})
	return list
}

// limitNamed returns a limit of the policy, nil if there is none of that name.
func limitNamed(s *stats.Snapshot, name string) *stats.Limit {
	for i := range s.Limits {
		if s.Limits[i].Name == name {
			return &s.Limits[i]
		}
	}
	return nil
}

// advice says what helps if no limit does.
var advice = map[wire.Miss]string{
	wire.MissNone:     "the recording does not say why",
	wire.MissCold:     "no block of that kind was free: none had been released before, or all were in use again",
	wire.MissTooSmall: "all free blocks were smaller: creating the largest buffers first may need fewer blocks",
	wire.MissOtherClass: "a fitting block was free, but with other flags or in another context: only buffers of one context and " +
		"with the same flags share blocks",
	wire.MissCooling: "a fitting block was released, but queued commands still used it: a wait for them before the create would " +
		"have freed it",
	wire.MissDrained: "fitting blocks were given back because the device was out of memory: use less at a time, or a larger " +
		"device",
	wire.MissPolicy:      "the policy does not cache them",
	wire.MissTooWasteful: "free blocks were larger than the policy lets such a request take",
	wire.MissLimit:       "a limit evicted fitting blocks",
	wire.MissTagCap:      "a cap evicted fitting blocks",
}

// coldWithSlabs says what cold means where there were slabs: requests that are too large for their policy get none of their free ranges.
const coldWithSlabs = "no slab of that kind had room; for a request too large for slabs, no block of that kind was free"

// knobForMissReason returns the limit that would have helped, of those that the policy has.
func (m *misses) knobForMissReason(reason wire.Miss, s *stats.Snapshot) Knob {
	if s.Spill != nil {
		return Knob{Why: "--spill works without a pool"}
	}
	knob, found := Knob{}, false
	switch reason {
	case wire.MissLimit:
		knob, found = m.evictingLimitKnob(s)
	case wire.MissTagCap:
		knob, found = m.capKnob(s)
	case wire.MissTooWasteful:
		knob, found = m.wasteKnob(s)
	default: // no limit helps
	}
	switch n := &s.Totals.Evictions; {
	case found:
		return knob
	case reason == wire.MissDrained && n[wire.EvictTimed] > 0 && n[wire.EvictDrain]+n[wire.EvictTrim]+n[wire.EvictRelief] == 0:
		return Knob{Why: "fitting blocks went so that the driver's releases were timed, at most eight of each size"}
	case reason == wire.MissCold && s.Totals.PeakSlabs > 0:
		return Knob{Why: coldWithSlabs}
	}
	return Knob{Why: advice[reason]}
}

// released are the limits that give back what the program no longer seems to need, and what switches them off.
var released = map[wire.Evict]Knob{
	wire.EvictAge:        {Limit: "max_age", Value: "0", Why: "fitting blocks were evicted for their age"},
	wire.EvictProportion: {Limit: "proportion", Value: "0", Why: "fitting blocks were evicted, as the pool held too much beside what was in use"},
	wire.EvictOutgrown:   {Limit: "outgrown", Value: "off", Why: "fitting blocks were evicted when their call site asked for larger ones"},
}

// mostly is how many times more blocks than others a limit must have evicted to be named.
const mostly = 10

// limitThatEvictsMost returns the limit that evicted nearly all of the blocks, and how many the others did; none: no single one
// did. Which of them a miss is due to is not recorded.
func limitThatEvictsMost(s *stats.Snapshot) (most wire.Evict, others uint64) {
	n := &s.Totals.Evictions
	most = wire.EvictLimit
	sum := n[most]
	for why := range released {
		sum += n[why]
		if n[why] > n[most] {
			most = why
		}
	}
	if others = sum - n[most]; others*mostly > n[most] {
		most = wire.EvictNone
	}
	return most, others
}

// evictingLimitKnob changes the limit that evicted blocks.
func (m *misses) evictingLimitKnob(s *stats.Snapshot) (Knob, bool) {
	switch most, _ := limitThatEvictsMost(s); most {
	case wire.EvictNone:
		return Knob{}, false
	case wire.EvictLimit:
		return m.cachedBytesKnob(s)
	default:
		knob := released[most]
		return knob, limitNamed(s, knob.Limit) != nil
	}
}

// cachedBytesKnob raises the limit of cached bytes to the power of two above what would have been cached.
func (m *misses) cachedBytesKnob(s *stats.Snapshot) (Knob, bool) {
	l := limitNamed(s, "max_cached_bytes")
	if l == nil {
		return Knob{}, false
	}
	why := fmt.Sprintf("at most %s would have been cached", units.FormatLong(m.cachedMost))
	if f := limitNamed(s, "max_cached_fraction"); f != nil && s.Device.Global > 0 && f.Value*float64(s.Device.Global) < l.Value {
		share := math.Ceil(100*float64(m.cachedMost)/float64(s.Device.Global)) / 100
		if share > f.Value && share <= f.Max {
			return Knob{Limit: f.Name, Value: strconv.FormatFloat(share, 'f', -1, 64), Why: why}, true
		}
	}
	above := max(m.cachedMost, uint64(l.Value)+1)
	value := uint64(1) << min(bits.Len64(above-1), 63)
	return Knob{Limit: l.Name, Value: strconv.FormatUint(value, 10), Why: why}, float64(value) <= l.Max
}

// capKnob raises the cap that is in force.
func (m *misses) capKnob(s *stats.Snapshot) (Knob, bool) {
	for _, c := range []struct{ name, of string }{{"max_per_tag", "one call site"}, {"max_per_bucket", "one size"}} {
		if l := limitNamed(s, c.name); l != nil && l.Value > 0 {
			value := uint64(l.Value) + m.capMost
			return Knob{
				Limit: l.Name, Value: strconv.FormatUint(value, 10),
				Why: fmt.Sprintf("up to %d more blocks of %s were released and requested again", m.capMost, c.of),
			}, float64(value) <= l.Max
		}
	}
	return Knob{}, false
}

// wasteKnob lets larger blocks serve: by the ratio that half of the examined misses needed.
func (m *misses) wasteKnob(s *stats.Snapshot) (Knob, bool) {
	if l := limitNamed(s, "steal_other_tag"); l != nil && l.Text == "off" {
		return Knob{Limit: l.Name, Value: "on", Why: "free blocks of other call sites were large enough"}, true
	}
	if l := limitNamed(s, "max_waste_ratio"); l != nil && len(m.ratios) > 0 {
		slices.Sort(m.ratios)
		ratio := m.ratios[(len(m.ratios)-1)/2]
		value := max(math.Floor(10*ratio)/10+0.1, l.Value+0.1)
		return Knob{
			Limit: l.Name, Value: strconv.FormatFloat(value, 'f', 1, 64),
			Why: fmt.Sprintf("for half of these requests a block of at most %.2f times their size was free", ratio),
		}, value <= l.Max
	}
	if l := limitNamed(s, "mantissa_bits"); l != nil && l.Value > l.Min {
		return Knob{
			Limit: l.Name, Value: strconv.FormatFloat(l.Value-1, 'f', -1, 64), Why: "fewer bits let more sizes share a block",
		}, true
	}
	return Knob{}, false
}
