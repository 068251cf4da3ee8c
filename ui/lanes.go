package ui

import (
	"slices"

	"codeberg.org/gpumemtop/gpumemtop/internal/stats"
	"codeberg.org/gpumemtop/gpumemtop/internal/wire"
)

// lane is a chart of one row under the memory chart, over the same time.
type lane struct {
	name  string
	style style
	value func(s *stats.Sample, step uint64) float64 // of a sample that covers step ns
	top   float64                                    // what fills the line; 0: its largest value
}

var (
	missLane   = lane{name: "miss", style: warnStyle, value: func(s *stats.Sample, _ uint64) float64 { return float64(s.Misses) }}
	driverLane = lane{name: "drv%", style: trendStyle, top: 1, value: func(s *stats.Sample, step uint64) float64 {
		return float64(s.DriverNS) / float64(max(step, 1))
	}}
)

// laneOfMachine is a curve of what the machine reports of processes: on devices or, if it does not say, as anonymous memory.
func laneOfMachine(s *stats.Snapshot) *lane {
	l := &lane{name: "anon", style: trendStyle, value: func(s *stats.Sample, _ uint64) float64 { return float64(s.Machine) }}
	if _, known := stats.BytesOnDevice(s.Machine); known {
		l.name = "mach"
	}
	return l
}

// reasonNames are the reasons for misses, short enough for the labels of lanes.
var reasonNames = [...]string{"miss", "cold", "small", "ratio", "class", "cools", "limit", "cap", "drain", "policy"}

// lanesOfMissReasons returns a lane for each reason for misses in the time of the chart, at most n, the most frequent first. All have
// the same scale. Where there is no room for two, or no reason is known, one lane has all misses.
func lanesOfMissReasons(t *timeline, n int) []*lane {
	var sums [wire.MissPolicy + 1]uint64
	most := uint64(0)
	for i := range t.samples {
		for reason, count := range t.samples[i].Reasons {
			sums[reason] += uint64(count)
			most = max(most, uint64(count))
		}
	}
	ranked := rankMisses(&sums)
	if n < 2 || len(ranked) == 0 {
		return []*lane{&missLane}
	}
	var lanes []*lane
	for _, reason := range ranked[:min(n, len(ranked))] {
		style := warnStyle
		if wire.Miss(reason) == wire.MissCold {
			style = trendStyle // no policy avoids it
		}
		lanes = append(lanes, &lane{
			name: reasonNames[reason], style: style, top: float64(most),
			value: func(s *stats.Sample, _ uint64) float64 { return float64(s.Reasons[reason]) },
		})
	}
	return lanes
}

// stepLength is the time that a sample covers, 0 if it is not known.
func (t *timeline) stepLength() uint64 {
	n := len(t.samples)
	if n < 2 {
		return 0
	}
	return (t.samples[n-1].Time - t.samples[0].Time) / uint64(n-1)
}

// drawLane draws the largest value of each column's time.
func (t *timeline) drawLane(r region, l *lane) {
	step := t.stepLength()
	values := make([]float64, r.w)
	t.eachColumnWithSamples(r.w, func(c int, samples []stats.Sample) {
		for i := range samples {
			values[c] = max(values[c], l.value(&samples[i], step))
		}
	})
	if l.top > 0 {
		r.drawScaled(values, l.top, l.style)
		return
	}
	r.drawSparkline(values, l.style)
}

// lanesUnderMemory returns the lanes under a memory pane of h rows. Events get a row first, then come misses, the driver and the
// machine's figures.
func (p memoryPane) lanesUnderMemory(h int, s *stats.Snapshot, t *timeline) (lanes []*lane, events bool) {
	if h >= 10 && slices.ContainsFunc(t.samples, func(s stats.Sample) bool { return s.Machine > 0 }) {
		lanes, h = append(lanes, laneOfMachine(s)), h-1
	}
	switch {
	case h >= 9 && p.d.mode.pool:
		return append(append(lanes, lanesOfMissReasons(t, min(h-7, 4))...), &driverLane), true
	case h >= 8 && p.d.mode.pool:
		return lanesOfMissReasons(t, 2), true
	case h >= 8:
		return append(lanes, &driverLane), true
	}
	return nil, h >= 6
}
