package analysis

import (
	"fmt"

	"codeberg.org/gpumemtop/gpumemtop/internal/units"
	"codeberg.org/gpumemtop/gpumemtop/internal/wire"
)

// Thresholds of what a process needs for each buffer, beside the buffer.
const (
	overheadMany  = 10_000  // buffers more
	overheadLeast = 8 << 20 // bytes that the process grew by meanwhile
	overheadTimes = 4       // times what the buffers were asked for
)

// overhead is what a process grew by while its live buffers became many.
type overhead struct {
	process          uint32
	buffers          uint64 // more than before at the sample
	most             uint64 // more than before at any time: the sample may be taken later than its time
	requested, grown uint64 // bytes, likewise
}

// overhead compares the sample with the most live buffers with the latest sample before it that has less than a tenth of them more than
// the first.
func (s *series) overhead() (o overhead, found bool) {
	most := 0
	for i := range s.points {
		if s.points[i].live > s.points[most].live {
			most = i
		}
	}
	rise := func(p *point) int64 { return p.live - s.begin.live }
	before := &s.begin
	for i := range s.points[:most] {
		if p := &s.points[i]; rise(p) < rise(&s.points[most])/10 {
			before = p
		}
	}
	end := &s.points[most]
	o = overhead{
		s.process.number, nonNegative(end.live - before.live), nonNegative(max(end.live, s.process.most) - before.live), nonNegative(end.requested - before.requested),
		differenceOrZero(before.bytes, end.bytes),
	}
	return o, o.buffers >= overheadMany && o.grown >= overheadLeast && o.grown >= overheadTimes*o.requested
}

// largestOverhead returns that of the process that grew the most.
func (m *machineSeries) largestOverhead() (most overhead) {
	for _, s := range m.list {
		if s.source != wire.MachineRSS {
			continue
		}
		if o, found := s.overhead(); found && o.grown > most.grown {
			most = o
		}
	}
	return most
}

// findSmallBuffers finds buffers so small that what is kept of them needs more memory than they do.
func findSmallBuffers(e *Evidence) (Diagnosis, bool) {
	o := &e.Whole.overhead
	if o.buffers == 0 {
		return Diagnosis{}, false
	}
	keepers := "the driver, the program and gpumemtop's library keep"
	if e.Attached {
		keepers = "the driver and the program keep"
	}
	d := Diagnosis{
		Severity: Advice, Title: "many small buffers need more memory than they hold",
		Text: fmt.Sprintf("while live buffers, of %s on average, rose by %d, the process's anonymous memory grew by at least %s, %s for each, which "+
			"%s: sub-allocate from larger buffers", units.FormatLong(o.requested/o.buffers), o.most, units.FormatLong(o.grown),
			units.FormatLong(o.grown/o.most), keepers),
		Share: shareOfWhole(o.grown, o.grown+e.Run.Totals.PeakInUse),
	}
	if tags := e.Whole.Peak.Tags; len(tags) > 0 {
		d.Tag = tags[0].Name
	}
	if who := e.inProcessText(o.process); who != "" {
		d.Text, d.placed = d.Text+","+who, true
	}
	return d, true
}
