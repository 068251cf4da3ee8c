package analysis

import (
	"slices"

	"codeberg.org/gpumemtop/gpumemtop/internal/stats"
	"codeberg.org/gpumemtop/gpumemtop/internal/units"
)

// duration is how long the run took, or the part of it that was analysed, ns. Shares of the run are of that, and the times of a report
// begin there as well, not at the first call.
func (x *run) duration() uint64 {
	o := x.options
	begin, end := x.started+uint64(o.Since), x.survey.last
	switch {
	case o.Until > 0:
		end = x.started + uint64(o.Until)
	case o.Whole:
		end = max(end, o.Footer.EndedNS)
	}
	return differenceOrZero(begin, end)
}

// callSpan is the time between the program's first call and its last, ns: halves of a run are halves of that.
func (x *run) callSpan() uint64 { return x.survey.over - x.survey.begun }

// evidence is what the recording shows of the run.
func (x *run) evidence(a *Analysis) *Evidence {
	e := a.Evidence()
	e.Run, e.Length, e.Rise = x.snapshot, x.duration(), x.growthOfWorstPhase(a)
	e.Whole.Keeps, e.Whole.CopiesNS, e.Whole.Idle, e.Whole.Hidden = x.phaseKeepingMost(a), x.copyNS, x.idleMemory(), x.functionHidingCallers(a)
	e.Whole.Simplest = x.simplest.hitRate(a.Peak.InUse)
	e.Whole.Ended = x.sitesEndingInLibraries(a)
	e.Whole.own, e.Whole.origins, e.Whole.spent = x.own, x.survey.parts, x.spent
	e.Whole.overhead, e.Whole.vain, e.Whole.lag = x.machine.largestOverhead(), x.vain, x.lag
	e.Whole.most = x.most
	if !x.options.Whole && !x.hasAnyProcessEnded() { // what is in use may be released later
		e.State = BrokenOff
	}
	if o := &x.survey.parts; o.count > 0 {
		e.Whole.origin = x.survey.names.Process(o.process).Site(o.tag).Name
	}
	if h := &x.survey.hosted; h.bytes > 0 {
		e.Whole.hosted, e.Whole.host = *h, x.survey.names.Process(h.process).Site(h.tag).Name
	}
	return e
}

func (x *run) hasAnyProcessEnded() bool {
	for _, p := range x.processes {
		if p.life != nil && p.life.Ended {
			return true
		}
	}
	return false
}

// fragmentationAtPeak returns the external fragmentation at the peak, of many processes at the end of the timeline's step.
func (a *Analysis) fragmentationAtPeak() float64 {
	l := &a.Timeline
	if a.Peak.Fragmentation >= 0 || len(l.Fragmentation) == 0 {
		return max(a.Peak.Fragmentation, 0)
	}
	return l.Fragmentation[min((a.Peak.Time-min(l.Start, a.Peak.Time))/l.Step, uint64(len(l.Fragmentation)-1))]
}

// growthOfWorstPhase is the growth of the phase that grows the most.
func (x *run) growthOfWorstPhase(a *Analysis) *Rise {
	p := x.growingPhase(a)
	if p == nil {
		return nil
	}
	r := &Rise{
		Bytes: float64(p.leftPerIteration()), Iterations: p.Iterations, Left: p.Left, Kept: p.Kept, Even: p.GrowsEvenly(), Room: -1, Share: shareOfWhole(p.totalGrowth(), a.Peak.InUse),
	}
	if len(a.Leaks) > 0 {
		r.Site = a.Leaks[0].Name
	}
	q := processOf(x.snapshot, p.Process)
	if q == nil {
		return r
	}
	r.Process = q.Number
	if len(x.snapshot.Processes) > 1 {
		r.Site = fullestSite(q)
	}
	if q.DeviceMemory > q.Totals.PeakInUse && q.Devices <= 1 {
		r.Room = float64(q.DeviceMemory-q.Totals.PeakInUse) / r.Bytes
	}
	return r
}

// growingPhase returns the phase that grows the most in all, nil if none grows. A phase whose memory is released later does not grow: it
// fills something.
func (x *run) growingPhase(a *Analysis) (most *Phase) {
	grown := uint64(0)
	for i := range a.Phases {
		p := &a.Phases[i]
		if p.iterationSlope() <= 0 || x.isStartUpPhase(p) {
			continue
		}
		t := x.totalsOfPhaseProcess(p)
		if all := p.totalGrowth(); all > grown && t.InUse >= all/2 {
			grown, most = all, p
		}
	}
	return most
}

// isStartUpPhase reports whether a phase is more likely the start of a program than a loop that forgets: it creates and releases nothing,
// and is followed by uses of memory, or by the failure of the program.
func (x *run) isStartUpPhase(p *Phase) bool {
	if p.Releases {
		return false
	}
	if q := processOf(x.snapshot, p.Process); q != nil && (q.State == stats.Signaled || q.State == stats.Exited && q.Status > 0) {
		return true
	}
	return x.relativeTime(x.survey.uses[p.Process]) > p.End+keptPatience*p.Period
}

// phaseKeepingMost returns the phase whose iterations keep the most memory until the program has stopped using all of its
// memory, nil if no phase does. A phase that fills something is different: uses follow it, or it is short and releases nothing
// meanwhile.
func (x *run) phaseKeepingMost(a *Analysis) (most *Phase) {
	kept := uint64(0)
	for i := range a.Phases {
		p := &a.Phases[i]
		lastUse := x.relativeTime(max(x.survey.uses[p.Process], x.survey.ends[p.Process]))
		if p.iterationSlope() <= 0 || lastUse == 0 || lastUse > p.End+keptPatience*p.Period {
			continue
		}
		if !p.Recycles && p.Iterations < keptMany {
			continue
		}
		if all := p.totalGrowth(); all > kept && all >= x.totalsOfPhaseProcess(p).PeakInUse/2 {
			kept, most = all, p
		}
	}
	return most
}

// idleMemory is the memory that others could have had. At the end of a run none is wanted.
func (x *run) idleMemory() Idle {
	var top *row
	for _, w := range x.sortedRows() {
		if w.lagTaken > 0 && (top == nil || w.lagTaken > top.lagTaken) {
			top = w
		}
	}
	if top == nil {
		return Idle{}
	}
	seconds, held := units.SecondsBetween(0, max(x.duration(), 1)), x.inUse.valueUntil(x.relativeTime(x.clock))
	return Idle{
		Site: top.name, Buffers: top.lag.Total, Median: top.lag.Percentile(0.5), Bytes: x.lag.taken / seconds, InUse: held / seconds,
		Share: min(x.lag.taken/max(held, 1), 1),
	}
}

// functionHidingCallers finds the function that creates the most for several callers: of all creates, of the peak, of what
// leaked or of the refused creates, or at which memory ran out.
func (x *run) functionHidingCallers(a *Analysis) (top Hidden) {
	for _, w := range x.survey.names.FunctionsWithSeveralCallers() {
		var part float64
		if row := x.rows[w.Name]; row != nil {
			part = shareOfWhole(row.creates, x.snapshot.Totals.Creates)
		}
		if at := slices.IndexFunc(a.Peak.Tags, func(t PeakTag) bool { return t.Name == w.Name }); at >= 0 {
			part = max(part, shareOfWhole(a.Peak.Tags[at].InUse, a.Peak.InUse))
		}
		var all, here uint64
		for i := range a.Leaks {
			if all += a.Leaks[i].Bytes; a.Leaks[i].Name == w.Name {
				here += a.Leaks[i].Bytes
			}
		}
		part = max(part, shareOfWhole(here, all), x.refusedShareOfSite(w.Name))
		if slices.ContainsFunc(x.snapshot.PostMortems, func(p stats.PostMortem) bool { return p.Tag == w.Name }) {
			part = 1
		}
		if part > top.Share {
			top = Hidden{Site: w.Name, Function: w.Function, Callers: w.Callers, Share: part}
		}
	}
	return top
}

// refusedShareOfSite returns the part of the refused creates that a call site made.
func (x *run) refusedShareOfSite(name string) float64 {
	var all, here uint64
	for _, f := range x.snapshot.RefusedCalls() {
		switch {
		case !f.Create:
			continue
		case f.Tag == name:
			here += f.Count
		}
		all += f.Count
	}
	return shareOfWhole(here, all)
}

// sitesEndingInLibraries sums up the call sites whose stacks end inside libraries.
func (x *run) sitesEndingInLibraries(a *Analysis) Ended {
	depth, sites := x.survey.names.SitesEndingInLibraries()
	e := Ended{Depth: depth}
	var creates, most, held uint64
	for _, name := range sites {
		row := x.rows[name]
		if row == nil {
			continue
		}
		creates += row.creates
		if row.creates > most {
			e.Site, most = name, row.creates
		}
	}
	for i := range a.Peak.Tags {
		if slices.Contains(sites, a.Peak.Tags[i].Name) {
			held += a.Peak.Tags[i].InUse
		}
	}
	e.Share, e.Of = shareOfWhole(creates, x.snapshot.Totals.Creates), "the creates"
	if part := shareOfWhole(held, a.Peak.InUse); part > e.Share {
		e.Share, e.Of = part, "the bytes at the peak"
	}
	return e
}
