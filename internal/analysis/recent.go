package analysis

import (
	"fmt"
	"slices"

	"codeberg.org/gpumemtop/gpumemtop/internal/heap"
	"codeberg.org/gpumemtop/gpumemtop/internal/stats"
	"codeberg.org/gpumemtop/gpumemtop/internal/units"
	"codeberg.org/gpumemtop/gpumemtop/internal/wire"
)

// Thresholds of memory that a program keeps without using it again.
const (
	spentTimes = 10         // it was unused ten times as long as it had been used, or longer,
	spentLeast = 10_000_000 // and for at least this, ns
	spentMany  = 32         // buffers
	spentShare = 0.75       // of what is in use at the peak
	onceShare  = 0.5        // of these buffers have a size that no other create asks for
	sizesMax   = 1 << 16    // different sizes are counted
	latelyLate = 2          // iterations after a phase that still count: what failed ended it
)

// highest finds, in the first pass, the record after which the most is in use. It counts as run.raisePeaks does.
type highest struct {
	record uint64 // number of the record
	time   uint64
	seen   uint64 // records
	most   int64
	quiet  bool // the last record was carried over
}

// applyAndRaisePeak applies a record.
func (t *highest) applyAndRaisePeak(s *survey, r *wire.Record) {
	happened := s.happenedInPart(r)
	if happened && t.quiet {
		t.quiet = false
		t.raisePeak(s)
	}
	t.quiet = t.quiet || !happened && r.CarriedOver()
	s.heap.Apply(r)
	t.seen++
	if !t.quiet {
		t.raisePeak(s)
	}
}

func (t *highest) raisePeak(s *survey) {
	if s.heap.InUse > t.most {
		t.most, t.record, t.time = s.heap.InUse, t.seen, s.heap.Now()
	}
}

// recent is how recently the memory at the peak had been used.
type recent struct {
	seen    uint64
	inUse   int64
	process uint32 // that has the most of it
	all     stats.Recency
}

// captureMemoryAtPeak takes a picture at the peak.
func (c *recent) captureMemoryAtPeak(x *run) {
	if c.seen++; c.seen != x.survey.highest.record || !x.lag.seen {
		return
	}
	c.inUse = x.total.InUse
	most := int64(0)
	for _, p := range x.heap.Processes() {
		c.all.AddProcess(p, x.heap.Now())
		if p.InUse > most {
			most, c.process = p.InUse, p.Number
		}
	}
}

// fillInUsedLately says how much of the memory at the peak, and where calls failed, had been used in the iteration before.
func (x *run) fillInUsedLately(a *Analysis) {
	if c := &x.recent; x.lag.seen && nonNegative(c.inUse) == a.Peak.InUse {
		ns, iteration := x.recentSpanAt(a.Phases, c.process, a.Peak.Time)
		a.Peak.Lately = c.all.UsedInLast(ns, a.Peak.InUse, iteration)
	}
	for i := range x.snapshot.PostMortems {
		p := &x.snapshot.PostMortems[i]
		if ns, iteration := x.recentSpanAt(a.Phases, p.Process, x.relativeTime(p.Time)); iteration && p.UsesKnown {
			p.Lately = p.Recency.UsedInLast(ns, p.InUse, true)
		}
	}
}

// recentSpanAt returns the length of an iteration of a process at a time, or, where it has none, of what counts as lately.
func (x *run) recentSpanAt(phases []Phase, process uint32, time uint64) (ns uint64, iteration bool) {
	for i := range phases {
		p := &phases[i]
		if p.Process == process && p.Iterations > 0 && p.Period > 0 && p.IsMedianTypical() && time >= p.Start+p.Period && time <= p.End+latelyLate*p.Period {
			return p.Period, true
		}
	}
	at := slices.IndexFunc(x.snapshot.Processes, func(p stats.Process) bool { return p.Number == process })
	if at < 0 {
		return 0, false
	}
	return stats.LatelyAtAge(differenceOrZero(x.relativeTime(x.snapshot.Processes[at].Started), time)), false
}

// sizes counts the creates of each size.
type sizes map[uint64]uint64

func (s *sizes) addCreate(c wire.CreateView) {
	if c.CarriedOver() || c.Outcome() == wire.OutcomeFailed || !heap.HasMemory(c) {
		return
	}
	if *s == nil {
		*s = sizes{}
	}
	if _, known := (*s)[c.Requested()]; known || len(*s) < sizesMax {
		(*s)[c.Requested()]++
	}
}

// spent is memory at the peak that the program had used for a short time, and did not use again.
type spent struct {
	stats.Part
	once uint64 // of the buffers, whose size no other create asked for
}

// noteObjectFreed looks at an object whose memory ends.
func (s *spent) noteObjectFreed(x *run, p *heap.Process, o *heap.Object) {
	peak := x.survey.highest.time
	since, known := p.ObjectIdleSince(o)
	if !known || !o.Owns || o.CarriedOver || since > peak || x.endTimeOf(o) < peak {
		return
	}
	if idle := peak - since; idle < spentLeast || idle < spentTimes*(since-min(o.Started, since)) {
		return
	}
	s.Buffers++
	s.Bytes += o.Granted
	if x.survey.sizes[o.Size] == 1 {
		s.once++
	}
}

// findUselessOwnPool finds programs whose own pool hardly ever finds a buffer again.
func findUselessOwnPool(e *Evidence) (Diagnosis, bool) {
	s, peak := &e.Whole.spent, &e.Whole.Peak
	if s.Buffers < spentMany || !e.isSizeWorthwhile(float64(s.Bytes)) || float64(s.Bytes) < max(spentShare*float64(peak.InUse),
		bytesLeast) || float64(s.once) < onceShare*float64(s.Buffers) {
		return Diagnosis{}, false
	}
	part, all := units.FormatApart(s.Bytes, peak.InUse)
	d := Diagnosis{
		Severity: Advice, Title: "buffers are kept that are not used again", Share: shareOfWhole(s.Bytes, peak.InUse),
		Text: fmt.Sprintf("%s of the %s in use at the peak are %s that were used for a short time before, and never after it; %d of them have a size "+
			"that no other create asks for: a pool in the program that looks for exact sizes does not find them again; round sizes up, or release",
			part, all, units.Count(s.Buffers, "buffer"), s.once),
	}
	if len(peak.Tags) > 0 {
		d.Tag = peak.Tags[0].Name
	}
	return d, true
}
