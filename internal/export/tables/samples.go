package tables

import (
	"codeberg.org/gpumemtop/gpumemtop/internal/heap"
	"codeberg.org/gpumemtop/gpumemtop/internal/stats"
)

// sampler is the present step of time of a process.
type sampler struct {
	begun        bool
	end          uint64 // of the step: the first time after it
	now          heap.Gauges
	peak         int64
	moved        [2]int64                      // bytes to device and to host within the step
	hits, misses uint64                        // until now
	reported     struct{ hits, misses uint64 } // in earlier samples
}

// noteHeldMemory takes what a process holds after a record. Carried records build up its memory step by step, and only the
// state after the last of them is real.
func (s *sampler) noteHeldMemory(l *heap.Process, carried bool) {
	s.now, s.hits, s.misses = l.Gauges, l.Hits, l.Misses
	if carried {
		return
	}
	s.peak = max(s.peak, s.now.InUse)
}

// makeSamplesUntil makes the samples of all steps that are over.
func (w *walk) makeSamplesUntil(p *process, now uint64) {
	s, run := &p.times, w.run
	now = max(now, run.first, run.options.Since)
	if s.begun && now < s.end {
		return
	}
	start, step := max(run.first, run.options.Since), run.step
	end := start + (now-start)/step*step + step
	if !s.begun {
		s.begun, s.end = true, end
		return
	}
	for s.end < end && w.err == nil {
		w.makeSampleRow(p)
		s.end += step
		s.peak = s.now.InUse
	}
}

// makeSampleRow makes the row of the step that is over.
func (w *walk) makeSampleRow(p *process) {
	s := &p.times
	s.peak = max(s.peak, s.now.InUse)
	p.peak = max(p.peak, s.peak)
	if w.sink.Sample == nil || w.err != nil {
		return
	}
	since := w.run.sinceStart(s.end)
	w.sample = Sample{
		Recording: p.Recording, Number: int32(p.Original), Time: w.run.sinceEpoch(since), TimeNS: since,
		Step: clampToSigned(w.run.step), InUse: s.now.InUse, Requested: s.now.Requested, PeakInUse: s.peak,
		Cached: clampToSigned(s.now.FreeBytes()), Cooling: s.now.Cooling, SlabFree: s.now.Room,
		Hits: clampToSigned(s.hits - s.reported.hits), Misses: clampToSigned(s.misses - s.reported.misses),
		ToDevice: s.moved[stats.ToDevice], ToHost: s.moved[stats.ToHost],
	}
	s.moved = [2]int64{}
	s.reported.hits, s.reported.misses = s.hits, s.misses
	w.noteError(w.sink.Sample(p.Number, &w.sample))
}

// makeLastSample makes the row of the last step.
func (w *walk) makeLastSample(p *process) {
	if p.times.begun {
		w.makeSampleRow(p)
	}
}
