package analysis

import (
	"cmp"
	"math"
	"slices"

	"codeberg.org/gpumemtop/gpumemtop/internal/heap"
	"codeberg.org/gpumemtop/gpumemtop/internal/period"
	"codeberg.org/gpumemtop/gpumemtop/internal/stats"
)

// phasesMax bounds the list of phases.
const phasesMax = 32

// In a straight rise each of straightParts rises by a third of the mean at least, and three times the mean at most.
const (
	straightLeast = 16 // iterations
	straightParts = 8
	straightTimes = 3 // times the mean
	evenShare     = 0.05
)

// stream counts one thread's creates in the second pass.
type stream struct {
	process, thread uint32
	creates         uint64
	laps            []*laps // in order
	at              int     // of laps: the present one, or the next
}

// laps are the iterations of one stretch.
type laps struct {
	period.Stretch
	began, ended  uint64 // times of the first and the last create
	mark          uint64 // time of the last beginning of an iteration
	times         sampler
	growth        sampler
	grew          uint64  // iterations that left more in use
	levels        sampler // in use at the beginnings of iterations
	first, latest level
	peak          int64
	releases      bool                     // a buffer that it created
	recycles      bool                     // before its last create
	held, holds   [stats.ObjectTypes]int64 // objects of the process at the first and the last beginning of an iteration
}

// level is what a process has at the beginning of an iteration.
type level struct{ inUse, buffers int64 }

// threadStream returns the stream of a thread of a process.
func (x *run) threadStream(p *process, thread uint32) *stream {
	if p.stream != nil && p.stream.thread == thread {
		return p.stream
	}
	s := p.streams[thread]
	if s == nil {
		s = &stream{process: p.number, thread: thread}
		for _, found := range x.survey.stretches[streamNumber(p.number, thread)] {
			s.laps = append(s.laps, &laps{Stretch: found})
		}
		p.streams[thread] = s
	}
	p.stream = s
	return s
}

// countCreate counts a create. with is what the process has with it, own its own memory, holds its objects.
func (s *stream) countCreate(now uint64, with level, own int64, holds *[stats.ObjectTypes]int64) (number uint64) {
	number = s.creates
	s.creates++
	if s.at < len(s.laps) && number >= s.laps[s.at].End {
		s.at++
	}
	if s.at < len(s.laps) && number >= s.laps[s.at].First {
		s.laps[s.at].countCreate(number, now, with, own, holds)
	}
	return number
}

func (l *laps) countCreate(number, now uint64, with level, own int64, holds *[stats.ObjectTypes]int64) {
	l.peak = max(l.peak, with.inUse)
	l.ended = now
	if (number-l.First)%l.Period != 0 {
		return
	}
	l.holds = *holds
	before := level{with.inUse - own, with.buffers - 1}
	l.levels.addValue(before.inUse)
	if number == l.First {
		l.began, l.held, l.first = now, *holds, before
	} else {
		l.times.addValue(int64(now - l.mark))
		l.growth.addValue(before.inUse - l.latest.inUse)
		if before.inUse > l.latest.inUse {
			l.grew++
		}
	}
	l.mark, l.latest = now, before
}

// risesSteadily reports whether what is in use rises all the time, each eighth of it by about as much.
func (l *laps) risesSteadily() bool {
	v := l.levels.values
	if len(v) < straightLeast {
		return false
	}
	parts := int64(straightParts)
	all := v[len(v)-1] - v[0]
	for i := range parts {
		step := v[(i+1)*int64(len(v)-1)/parts] - v[i*int64(len(v)-1)/parts]
		if step*parts*straightTimes < all || step*parts > all*straightTimes {
			return false
		}
	}
	return all > 0
}

// hasFallenBack reports whether about as little was in use in the later half as at first: what iterations left was released meanwhile, perhaps
// within an iteration.
func (l *laps) hasFallenBack() bool {
	v := l.levels.values
	return len(v) > 1 && slices.Min(v[len(v)/2:]) <= v[0]+max(slices.Max(v)-v[0], 0)/straightParts
}

// iterationSlope returns by how much an iteration lets memory grow; 0: it does not. One iteration may release what another has created:
// where memory rises all the time, the mean tells.
func (p *Phase) iterationSlope() float64 {
	switch {
	case p.Iterations < growthIterations || p.FellBack:
		return 0
	case p.Straight && p.Mean > 0:
		return float64(p.Mean)
	}
	return float64(max(p.MedianGrowth(), 0))
}

// MedianGrowth returns by how much memory in use grows with an iteration: the median, and no more than the mean, as what goes again is no
// growth.
func (p *Phase) MedianGrowth() int64 {
	switch {
	case p.Growth > 0 && p.FellBack:
		return 0
	case p.Growth > 0:
		return max(min(p.Growth, p.Mean), 0)
	}
	return p.Growth
}

// leftPerIteration returns what an iteration leaves, where they do not leave the same the mean.
func (p *Phase) leftPerIteration() uint64 {
	if p.GrowsEvenly() {
		return nonNegative(p.Growth)
	}
	return nonNegative(p.Mean)
}

// totalGrowth returns what all iterations left.
func (p *Phase) totalGrowth() uint64 { return uint64(p.iterationSlope() * float64(p.Iterations)) }

// IsMedianTypical reports whether the median is about what an iteration takes. Else most only queue commands, and others wait for these.
func (p *Phase) IsMedianTypical() bool { return p.Period*p.Iterations >= (p.End-p.Start)/2 }

// GrowsEvenly reports whether each iteration leaves more, and about as much.
func (p *Phase) GrowsEvenly() bool {
	return p.Growth > 0 && p.AllGrew && math.Abs(float64(p.Growth-p.Mean)) <= evenShare*float64(p.Growth)
}

// IsPeakFromGrowth reports whether half of the memory at the peak was what iterations left.
func (a *Analysis) IsPeakFromGrowth() bool {
	return slices.ContainsFunc(a.Phases, func(p Phase) bool { return p.iterationSlope() > 0 && p.totalGrowth() >= a.Peak.InUse/2 })
}

// livedOneIteration reports whether a buffer that ends now lived within one iteration: since its create, its thread has not reached
// the same place in the next one. So it does not matter where an iteration begins. known is false if the thread has no
// iterations.
func (s *stream) livedOneIteration(number uint64) (within, known bool) {
	for _, l := range s.laps {
		if number >= l.First && number < l.End {
			return s.creates-1-number < l.Period, true
		}
	}
	return false, len(s.laps) > 0
}

// noteReleased says that a buffer was released, by the number of its create.
func (s *stream) noteReleased(number uint64) {
	for _, l := range s.laps {
		if number >= l.First && number < l.End {
			l.releases = true
			l.recycles = l.recycles || s.creates < l.End
		}
	}
}

// isTemporary reports whether a buffer that ends now lived within one iteration of the thread that created it or, if that
// thread has none, for less than a hundredth of the run.
func (x *run) isTemporary(p *process, o *heap.Object, lived uint64) bool {
	if within, known := x.threadStream(p, o.Thread).livedOneIteration(o.Note); known {
		return within
	}
	return lived < (x.survey.last-x.survey.first)/100
}

// listPhases lists the stretches of all threads, and the gaps between those of the thread that creates the most.
func (x *run) listPhases() []Phase {
	var all []*stream
	for _, p := range x.processes {
		for _, s := range p.streams {
			if s.creates > 0 {
				all = append(all, s)
			}
		}
	}
	slices.SortFunc(all, func(a, b *stream) int {
		return cmp.Or(cmp.Compare(min(1, len(b.laps)), min(1, len(a.laps))), cmp.Compare(b.creates, a.creates),
			cmp.Compare(a.process, b.process), cmp.Compare(a.thread, b.thread))
	})
	var list []Phase
	for i, s := range all {
		for _, l := range s.laps {
			list = append(list, x.newPhase(s, l))
		}
		if i == 0 && len(x.processes) == 1 { // what was in use meanwhile is known of all processes together
			list = append(list, x.gapPhases(s, list)...)
		}
		if len(list) >= phasesMax {
			break
		}
	}
	list = list[:min(len(list), phasesMax)]
	slices.SortStableFunc(list, func(a, b Phase) int { return cmp.Compare(a.Start, b.Start) })
	return list
}

func (x *run) newPhase(s *stream, l *laps) Phase {
	lasts := uint64(max(l.times.median(), 0))
	iterations := (l.End - l.First - l.Extra + l.Period/2) / l.Period
	mean := int64(0)
	if laps := int64(l.times.count); laps > 0 {
		mean = (l.latest.inUse - l.first.inUse) / laps
	}
	return Phase{
		Process: s.process, Thread: s.thread, Start: x.relativeTime(l.began),
		End: min(max(x.relativeTime(l.mark)+lasts, x.relativeTime(l.ended)), x.relativeTime(max(x.survey.last, l.ended))), Iterations: iterations,
		Period: lasts, Creates: l.Period, PeakInUse: nonNegative(l.peak), Growth: l.growth.median(), Mean: mean,
		Left: nonNegative(l.latest.inUse - l.first.inUse), Kept: l.latest.buffers - l.first.buffers, Straight: l.risesSteadily(), FellBack: l.hasFallenBack(),
		Objects: l.objectGrowth(iterations), Releases: l.releases, Recycles: l.recycles,
		AllGrew: l.grew == l.times.count,
	}
}

// gapLeast: a gap between phases is listed if it is longer than this part of the run.
const gapLeast = 1000

// gapPhases returns the times before, between and after phases, which follow each other.
func (x *run) gapPhases(s *stream, phases []Phase) []Phase {
	var list []Phase
	from := x.relativeTime(x.survey.first)
	end := x.relativeTime(x.survey.last)
	for _, p := range append(slices.Clone(phases), Phase{Start: end, End: end}) {
		if p.Start > from+(x.survey.last-x.survey.first)/gapLeast {
			list = append(list, Phase{
				Process: s.process, Thread: s.thread, Start: from, End: p.Start, PeakInUse: x.line.mostBetween(from, p.Start),
			})
		}
		from = max(from, p.End)
	}
	return list
}

// mostBetween returns the most in use between two times, to within a step.
func (l *timeline) mostBetween(from, to uint64) uint64 {
	var most uint64
	for i, v := range l.InUse {
		if at := l.Start + uint64(i)*l.Step; at+l.Step > from && at < to {
			most = max(most, v)
		}
	}
	return most
}
