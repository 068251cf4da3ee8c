package ui

import (
	"slices"

	"codeberg.org/gpumemtop/gpumemtop/internal/stats"
)

// lane is a line under the memory on the same axis.
type lane struct {
	name  string
	style style
	value func(s *stats.Sample, step uint64) float64 // of a sample that covers step ns
}

var (
	missLane   = lane{"miss", warnStyle, func(s *stats.Sample, _ uint64) float64 { return float64(s.Misses) }}
	driverLane = lane{"drv%", trendStyle, func(s *stats.Sample, step uint64) float64 { return float64(s.DriverNS) / float64(max(step, 1)) }}
)

// machineLane is a curve of what the machine reports of processes: on devices or, if it does not say, as RSS.
func machineLane(s *stats.Snapshot) *lane {
	l := &lane{"RSS", trendStyle, func(s *stats.Sample, _ uint64) float64 { return float64(s.Machine) }}
	if _, known := stats.OnDevice(s.Machine); known {
		l.name = "mach"
	}
	return l
}

// drawLane draws the most of each span of time.
func (t *timeline) drawLane(r region, l *lane) {
	step := uint64(0)
	if n := len(t.samples); n > 1 {
		step = (t.samples[n-1].Time - t.samples[0].Time) / uint64(n-1)
	}
	values := make([]float64, r.w)
	t.eachColumn(r.w, func(c int, samples []stats.Sample) {
		for i := range samples {
			values[c] = max(values[c], l.value(&samples[i], step))
		}
	})
	if l == &driverLane { // of the whole time, not of its largest part
		r.scaled(values, 1, l.style)
		return
	}
	r.sparkline(values, l.style)
}

// lanes returns the lines that there is room for below a chart of memory: first the events, then the driver and misses, and
// what the machine reports.
func (p memoryPane) lanes(h int, s *stats.Snapshot, t *timeline) (lanes []*lane, events bool) {
	if h >= 10 && slices.ContainsFunc(t.samples, func(s stats.Sample) bool { return s.Machine > 0 }) {
		lanes, events = p.lanes(9, s, t)
		return append([]*lane{machineLane(s)}, lanes...), events
	}
	switch {
	case h >= 9 && p.d.mode.pool:
		return []*lane{&missLane, &driverLane}, true
	case h >= 8 && p.d.mode.pool:
		return []*lane{&missLane}, true
	case h >= 8:
		return []*lane{&driverLane}, true
	}
	return nil, h >= 6
}
