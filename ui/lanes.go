package ui

import "codeberg.org/gpumemtop/gpumemtop/internal/stats"

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

// lanes returns the lines that there is room for below a chart of memory: first the events, then the driver and misses.
func (p memoryPane) lanes(h int) (lanes []*lane, events bool) {
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
