package stats

import (
	"slices"

	"codeberg.org/gpumemtop/gpumemtop/internal/heap"
	"codeberg.org/gpumemtop/gpumemtop/internal/recording"
)

// All windows count time in slots of 100 ms since the start of the session.
const (
	slotNS      = 100_000_000
	windowSlots = 10 // full slots in the window of one second
	ringSlots   = windowSlots + 1
)

// ring keeps what was counted in the last second: ten full slots and the one that is being filled.
type ring[T any] struct {
	slots [ringSlots]T
	at    uint32 // slot % ringSlots: a division for each event takes long
	slot  uint64 // that is being filled
}

func (r *ring[T]) advanceToSlot(slot uint64) {
	if slot == r.slot {
		return
	}
	if slot > r.slot+ringSlots {
		r.slot = slot - ringSlots
	}
	for ; r.slot < slot; r.slot++ {
		var zero T
		r.slots[(r.slot+1)%ringSlots] = zero
	}
	r.at = uint32(r.slot % ringSlots)
}

func (r *ring[T]) currentSlot() *T { return &r.slots[r.at] }

// window counts what happened in the last second.
type window struct{ ring[Rates] }

// ratesOfFullSlots sums the full slots. NS is less than a second in the first second of the run.
func (w *window) ratesOfFullSlots() Rates {
	var sum Rates
	for i := range uint64(ringSlots) {
		if i == w.slot%ringSlots {
			continue
		}
		s := &w.slots[i]
		sum.Hits += s.Hits
		sum.Misses += s.Misses
		sum.Creates += s.Creates
		sum.Releases += s.Releases
		sum.Events += s.Events
		sum.DriverCreates += s.DriverCreates
		sum.DriverNanos += s.DriverNanos
		sum.Reasons.addCounts(&s.Reasons)
	}
	sum.NS = min(w.slot, windowSlots) * slotNS
	return sum
}

// pace is a window of one counter.
type pace struct{ ring[uint32] }

func (p *pace) countAt(slot uint64) {
	p.advanceToSlot(slot)
	*p.currentSlot()++
}

func (p *pace) countInFullSlots(slot uint64) uint64 {
	p.advanceToSlot(slot)
	var sum uint64
	for i, count := range p.slots {
		if uint64(i) != slot%ringSlots {
			sum += uint64(count)
		}
	}
	return sum
}

// addCountsOf adds another pace's counts.
func (p *pace) addCountsOf(o *pace) {
	slot := max(p.slot, o.slot)
	p.advanceToSlot(slot)
	o.advanceToSlot(slot)
	for i := range p.slots {
		p.slots[i] += o.slots[i]
	}
}

// recent keeps the most that a gauge had in the last second.
type recent struct{ ring[uint64] }

// beginSlot begins a slot. The gauge has had value since the last change.
func (r *recent) beginSlot(slot, value uint64) {
	first := max(r.slot+1, slot-min(slot, windowSlots))
	r.advanceToSlot(slot)
	for s := first; s <= slot; s++ {
		r.slots[s%ringSlots] = value
	}
}

func (r *recent) raiseCurrent(value uint64) { *r.currentSlot() = max(*r.currentSlot(), value) }

func (r *recent) highestOfSlots() uint64 { return slices.Max(r.slots[:]) }

// history keeps evenly spaced samples of a run. It starts with one sample per slot. Whenever it has too many samples, it
// merges pairs and doubles the spacing. A sample in the list never changes, so snapshots share the list.
type history struct {
	most    uint64 // samples; 0: HistoryMax
	samples []Sample
	spacing uint64 // slots per sample
	born    uint64 // the first slot
	pending Sample // counts and the most in use since the last sample
}

// closeSamples closes the samples that end at or before slot. gauges are the present values.
func (h *history) closeSamples(started, slot uint64, gauges Sample) {
	started, slot = started+h.born*slotNS, slot-h.born
	if h.spacing == 0 {
		h.spacing = 1
		if h.most == 0 {
			h.most = HistoryMax
		}
	}
	for slot/h.spacing > h.most {
		h.halveSamples()
	}
	for n := uint64(len(h.samples)); n < slot/h.spacing; n++ {
		s := gauges
		s.Time = started + (n+1)*h.spacing*slotNS
		s.mergeNextSample(&h.pending)
		h.samples = append(h.samples, s)
		h.pending = Sample{}
	}
}

// halveSamples merges pairs. An odd last sample begins a pair that is not complete.
func (h *history) halveSamples() {
	n := len(h.samples)
	if n%2 == 1 {
		h.pending.mergeNextSample(&h.samples[n-1])
	}
	halved := make([]Sample, n/2)
	for i := range halved {
		halved[i] = h.samples[2*i+1]
		halved[i].mergeNextSample(&h.samples[2*i])
	}
	h.samples = halved
	h.spacing *= 2
}

// listSamples returns the samples so far, which are immutable.
func (h *history) listSamples() []Sample { return h.samples[:len(h.samples):len(h.samples)] }

// raiseGauges takes the gauges if more is in use than ever since the last sample.
func (s *Sample) raiseGauges(a *account) {
	if heap.NonNegative(a.InUse) > s.InUse {
		s.InUse, s.Cached, s.Cooling = heap.NonNegative(a.InUse), a.FreeBytes(), heap.NonNegative(a.Cooling)
	}
}

// mergeNextSample joins another sample: its counts, and its gauges if more was in use then.
func (s *Sample) mergeNextSample(o *Sample) {
	s.Hits += o.Hits
	s.Misses += o.Misses
	s.Creates += o.Creates
	s.DriverNS += o.DriverNS
	s.Reasons.addCounts(&o.Reasons)
	s.Machine = max(s.Machine, o.Machine)
	if o.InUse > s.InUse {
		s.InUse, s.Cached, s.Cooling = o.InUse, o.Cached, o.Cooling
	}
}

// since is the state at the beginning of an interval.
type since struct {
	most   Sample            // gauges when most was in use since then
	before recording.Summary // the counts then
}

// endIntervalAndSummarize ends an interval and begins the next with the present gauges. Only creates raise what is in use, so the most is in use
// at the beginning or right after a create.
func (s *since) endIntervalAndSummarize(a *account, lost uint64) recording.Summary {
	s.most.raiseGauges(a) // records that come late or in the wrong order may raise it, too
	c := &a.counters
	now := recording.Summary{
		InUse: s.most.InUse, Cached: s.most.Cached, Cooling: s.most.Cooling,
		Hits: c.Hits, Misses: c.Misses, Creates: c.Creates, Releases: c.Releases, Lost: lost,
	}
	i, b := now, &s.before
	i.Hits -= b.Hits
	i.Misses -= b.Misses
	i.Creates -= b.Creates
	i.Releases -= b.Releases
	i.Lost -= b.Lost
	s.before, s.most = now, Sample{InUse: heap.NonNegative(a.InUse), Cached: a.FreeBytes(), Cooling: heap.NonNegative(a.Cooling)}
	return i
}
