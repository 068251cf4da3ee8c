package analysis

import (
	"cmp"
	"fmt"
	"slices"

	"codeberg.org/gpumemtop/gpumemtop/internal/units"
	"codeberg.org/gpumemtop/gpumemtop/internal/wire"
)

// Growth is memory that a process got beside its buffers, as the machine reports it, and that grew steadily.
type Growth struct {
	Process    uint32 // number in the session
	Source     wire.Machine
	Bytes      uint64 // more at the end, beyond what the buffers grew by
	Buffers    uint64 // what these grew by
	Iterations uint64 // meanwhile; 0: the program has none
	Each       int64  // bytes per iteration
	Length     uint64 // ns
	All        uint64 // bytes that the machine reports at the end
}

// Thresholds of growth. What a driver and a program do at first, such as compiling kernels, filling caches of their own and
// of the C library, takes tens of MiB, but it ends: growth counts where it goes on to the end.
const (
	growthPoints     = 4096           // kept of a series
	growthInstants   = 8              // looked at in each quarter of a window
	growthLeast      = 8 << 20        // bytes: the pool's own tables and the noise of a heap stay below
	growthPart       = 32             // of all that the machine reports
	growthEach       = 8              // iterations at least
	growthWindow     = 3_000_000_000  // ns: a dozen samples
	growthLongWindow = 10_000_000_000 // where there are no iterations
)

// series is what the machine reports of one process from one source, in steps.
type series struct {
	process *process
	source  wire.Machine
	devices map[uint64]uint64
	begin   point
	points  []point
	every   int // samples for each point, once there are many
	skipped int
}

type point struct {
	time     uint64 // after the start
	bytes    uint64
	reserved int64 // the most since the point before

	live, requested int64 // buffers, and what they were asked for
}

// machineSeries are the series of all processes.
type machineSeries struct{ list []*series }

// machineSeriesMax bounds the number of series: the processes after that many get none.
const machineSeriesMax = 256

// addRecord takes a MACHINE record of a process.
func (m *machineSeries) addRecord(p *process, v wire.MachineView, time uint64) {
	if v.Unread() != 0 || v.Source() > wire.MachineNVML || p.life == nil { // others may be in the control group; files have code in them
		return
	}
	at := slices.IndexFunc(m.list, func(s *series) bool { return s.process == p && s.source == v.Source() })
	if at < 0 {
		if len(m.list) == machineSeriesMax {
			return
		}
		at = len(m.list)
		m.list = append(m.list, &series{process: p, source: v.Source(), devices: map[uint64]uint64{}, every: 1})
	}
	m.list[at].addReportedBytes(v, time)
}

func (s *series) addReportedBytes(v wire.MachineView, time uint64) {
	s.devices[v.Device()] = v.Resident()
	now := point{time: time, reserved: max(s.process.reserved, s.process.life.ReservedBytes())}
	now.live, now.requested = s.process.life.Live, s.process.life.Requested
	for _, bytes := range s.devices {
		now.bytes += bytes
	}
	if s.skipped++; s.skipped < s.every {
		return
	}
	s.skipped, s.process.reserved = 0, 0
	if len(s.points) == growthPoints {
		for i := range growthPoints / 2 {
			joined := s.points[2*i+1]
			joined.reserved = max(joined.reserved, s.points[2*i].reserved)
			s.points[i] = joined
		}
		s.points = s.points[:growthPoints/2]
		s.every *= 2
	}
	if s.points = append(s.points, now); len(s.points) == 1 {
		s.begin = now
	}
}

// pointAt returns the point that holds at a time, the first one before there is any.
func (s *series) pointAt(time uint64) *point {
	i, found := slices.BinarySearchFunc(s.points, time, func(p point, t uint64) int { return cmp.Compare(p.time, t) })
	if !found {
		i = max(i-1, 0)
	}
	return &s.points[i]
}

// listSeries returns what each source reports over time, where it changes.
func (m *machineSeries) listSeries(l *Timeline, started uint64) (list []MachineSeries) {
	for source := wire.MachineRSS; source <= wire.MachineNVML; source++ {
		values, changes := make([]uint64, len(l.InUse)), false
		for _, s := range m.list {
			if s.source != source {
				continue
			}
			changes = changes || len(s.points) > 1
			for i := range values {
				if end := l.Start + uint64(i+1)*l.Step; end > s.begin.time && end <= differenceOrZero(started, s.process.last)+l.Step {
					values[i] += s.pointAt(end).bytes
				}
			}
		}
		if changes {
			list = append(list, MachineSeries{source.String(), values})
		}
	}
	return list
}

// quarter is one of the four parts of a window.
type quarter struct {
	low, middle, high uint64 // bytes
	reserved          int64  // the most
}

func (s *series) summarizeQuarter(start, length uint64) quarter {
	var values []uint64
	q := quarter{}
	for i := range uint64(growthInstants) {
		p := s.pointAt(start + (2*i+1)*length/(2*growthInstants))
		values = append(values, p.bytes)
		q.reserved = max(q.reserved, p.reserved)
	}
	slices.Sort(values)
	q.low, q.middle, q.high = values[0], values[growthInstants/2], values[growthInstants-1]
	return q
}

// growthFromQuarters returns how much the figure grew from the first quarter of a window to the last, beyond the buffers; false
// unless it did so steadily, and not because buffers were touched the first time.
func (s *series) growthFromQuarters(start, end uint64) (g Growth, grew bool) {
	var quarters [4]quarter
	length := (end - start) / 4
	for i := range quarters {
		quarters[i] = s.summarizeQuarter(start+uint64(i)*length, length)
	}
	first, last := &quarters[0], &quarters[3]
	grown := min(int64(last.low)-int64(first.low), int64(last.middle)-int64(first.middle), int64(last.high)-int64(first.high))
	buffers := max(0, last.reserved-first.reserved)
	grown -= buffers
	if grown < growthLeast || uint64(grown) < last.middle/growthPart {
		return Growth{}, false
	}
	for i := range 3 {
		if step := int64(quarters[i+1].middle) - int64(quarters[i].middle); step < (grown+buffers)/12 {
			return Growth{}, false
		}
	}
	// What buffers may explain, were all touched since the first sample: those that were there then count as touched.
	explained := max(0, last.reserved-max(s.begin.reserved, 0))
	if int64(last.low)-int64(s.begin.bytes)-explained < grown*9/10 {
		return Growth{}, false
	}
	return Growth{
		Process: s.process.number, Source: s.source, Bytes: uint64(grown), Buffers: uint64(buffers), Length: 3 * length, All: last.middle,
	}, true
}

// firstBufferTime returns when there were buffers for the first time; 0: never. Until then a program compiles, say.
func (s *series) firstBufferTime() uint64 {
	if i := slices.IndexFunc(s.points, func(p point) bool { return p.reserved > 0 }); i >= 0 {
		return s.points[i].time
	}
	return 0
}

// machineGrowth returns the growth of all processes: in their longest phase or, without a long one, in the later half of the run.
func (x *run) machineGrowth(phases []Phase) (list []Growth) {
	for _, s := range x.machine.list {
		end := x.relativeTime(s.process.last)
		start, least := max((s.begin.time+end)/2, s.firstBufferTime()), uint64(growthLongWindow)
		best, stalled := Phase{}, false // one iteration took more than the others together: it compiled a kernel, say
		for i := range phases {
			p := &phases[i]
			warm := p.Start + (p.End-p.Start)/4
			if p.Process == s.process.number && !p.IsMedianTypical() {
				stalled = stalled || p.Iterations > 0
				continue
			}
			if p.Process == s.process.number && p.Iterations >= growthEach && p.End-warm >= growthWindow && p.End-p.Start > best.End-best.Start {
				best, start, end, least = *p, warm, p.End, growthWindow
			}
		}
		if end < start+least || (stalled && best.Iterations == 0) {
			continue
		}
		g, grew := s.growthFromQuarters(start, end)
		if !grew {
			continue
		}
		if best.Iterations > 0 {
			g.Iterations = max(1, best.Iterations*g.Length/(best.End-best.Start))
			g.Each = int64(g.Bytes / g.Iterations)
		}
		list = append(list, g)
	}
	slices.SortStableFunc(list, func(a, b Growth) int { return cmp.Compare(b.Bytes, a.Bytes) })
	return list
}

// findGrowthBesideBuffers finds memory that grows beside the buffers.
func findGrowthBesideBuffers(e *Evidence) (Diagnosis, bool) {
	a := e.Whole
	if len(a.Growth) == 0 {
		return Diagnosis{}, false
	}
	g := &a.Growth[0]
	if g.Source == wire.MachineRSS && a.Peak.Reserved == 0 { // there are no buffers that it could grow beside: it compiles, say
		return Diagnosis{}, false
	}
	buffers := "while its buffers are flat"
	if g.Buffers >= bytesLeast {
		buffers = "beyond the " + units.FormatLong(g.Buffers) + " of its buffers"
	}
	title, what, who := "the driver's own memory grows", "what the process has on the device", "it is the driver's own"
	if g.Source == wire.MachineRSS {
		title, what, who = "the process grows beside its buffers", "anonymous memory", "the driver, a library or the program itself keeps it"
	}
	each := fmt.Sprintf("in %s", units.Duration(g.Length))
	if g.Iterations > 0 {
		each = fmt.Sprintf("in %s, %s each", units.Count(g.Iterations, "iteration"), units.FormatLong(uint64(g.Each)))
	}
	d := Diagnosis{
		Severity: Advice, Title: title, Share: shareOfWhole(g.Bytes, g.All),
		Text: fmt.Sprintf("%s grew by %s %s, %s: %s", what, units.FormatLong(g.Bytes), each, buffers, who),
	}
	if who := e.inProcessText(g.Process); who != "" {
		d.Text, d.placed = d.Text+","+who, true
	}
	e.downgradeIfEventsLost(&d, "creates", "memory may grow beside the buffers")
	return d, true
}
