package analysis

import (
	"codeberg.org/gpumemtop/gpumemtop/internal/heap"
	"codeberg.org/gpumemtop/gpumemtop/internal/stats"
	"codeberg.org/gpumemtop/gpumemtop/internal/wire"
)

// run is the state of the second pass.
type run struct {
	heap.Base
	options   *Options
	survey    *survey
	started   uint64
	model     *stats.Model
	heap      *heap.Heap
	record    *wire.Record // the present one
	processes map[uint32]*process
	latest    *process     // of the last record
	total     *heap.Gauges // of all processes
	raised    heap.Gauges  // when peaks were looked for last
	most      heap.Gauges  // when most was reserved
	quiet     bool         // the last record was carried over: no peak yet
	cut       bool         // the run goes on behind the part
	marks     uint64       // how often objects were counted, see noteLiveObjects

	books books
	rows  map[string]*row
	peak  peak
	line  *timeline

	sizes, lifetimes bins
	lag              lags
	recent           recent
	spent            spent
	vain             vain
	misses           misses
	simplest         simplest
	own              own
	machine          machineSeries
	moves            moves
	creates, copies  costs // of blocks and slabs; of blocks with the program's bytes in them
	frees            costs
	copyNS           uint64 // of creates that copy and that no pool serves
	before           uint64 // buffers from before attach
	inUse            integral
	clock            uint64 // the latest time of a record

	snapshot *stats.Snapshot
}

// process is what the analysis keeps of a process.
type process struct {
	number   uint32
	life     *heap.Process // nil before its first record
	streams  map[uint32]*stream
	stream   *stream // of the last create
	slab     uint32  // ns that the driver took for a slab without a sub-allocation yet
	pool     poolCaps
	last     uint64 // time of a record
	reserved int64  // the most since the machine was asked last
	most     int64  // live buffers
}

func newRun(o *Options, s *survey) *run {
	x := &run{options: o, survey: s, started: o.Header.ClockNS, processes: map[uint32]*process{}, rows: map[string]*row{}}
	if x.started == 0 {
		x.started = s.earliest
	}
	x.model = stats.New(stats.Options{
		Program: o.Header.Program, Arguments: o.Header.Arguments, Policy: o.Header.Policy, App: o.Header.App, Labels: o.Header.Labels,
		Limits: stats.PolicyLimits(o.Header.Policy, o.Header.Limits), LimitsOf: stats.DefaultLimits, Auto: o.Header.Auto, Started: x.started, NoTrends: true,
		DeviceMemory: o.Header.DeviceMemory, Apart: o.Header.HaveSeparateDevices, NodeOf: o.Header.HostIfSeveral,
		Observers: []heap.Observer{x},
	})
	x.heap, x.moves.names, x.moves.named = x.model.Heap(), s.names, map[namedSite]uint32{}
	x.total = &x.heap.Gauges
	x.line = newTimeline(s, o, x.started)
	x.clock = s.first
	return x
}

// relativeTime makes a time relative to the start.
func (x *run) relativeTime(ns uint64) uint64 { return differenceOrZero(x.started, ns) }

func (x *run) processOf(number uint32) *process {
	p := x.latest
	if p == nil || p.number != number {
		if p = x.processes[number]; p == nil {
			p = &process{number: number, streams: map[uint32]*stream{}}
			x.processes[number] = p
		}
		x.latest = p
	}
	if p.life == nil {
		p.life = x.heap.FindProcess(number)
	}
	return p
}

func (x *run) handleRecord(r *wire.Record) {
	x.record = r
	x.advanceTo(r)
	x.noteLiveObjects(r)
	if r.Kind == wire.KindEvict {
		x.noteEvictedByLimit(r.Process, r.AsEvict())
	}
	if x.survey.happenedInPart(r) {
		x.moves.handleRecordBeforeHeap(x.heap.FindProcess(r.Process), r)
	}
	x.model.Apply(r)
	x.inUse.setValue(x.total.InUse, x.relativeTime(r.Time))
	if r.Kind == wire.KindLost {
		return
	}
	p := x.processOf(r.Process)
	p.last = max(p.last, r.Time)
	x.own.noteRecord(r, x.survey.begun+x.callSpan()/2)
	x.raisePeaksIfChanged()
	x.recent.captureMemoryAtPeak(x)
	switch r.Kind {
	case wire.KindUse:
		x.lag.seen = true
	case wire.KindSlab:
		if s := r.AsSlab(); s.Status() == 0 && !s.CarriedOver() {
			x.creates.addCall(s.Bytes(), s.Cost())
			p.slab = s.Cost()
		}
	case wire.KindEvict:
		e := r.AsEvict()
		x.frees.addCall(e.Bytes(), e.Cost())
	case wire.KindMachine:
		x.machine.addRecord(p, r.AsMachine(), x.relativeTime(r.Time))
	default:
	}
	if p.life != nil {
		p.reserved, p.most = max(p.reserved, p.life.ReservedBytes()), max(p.most, p.life.Live)
		p.pool.raiseMostPooled(p.life)
	}
}

// integral is of a gauge over time. Records may come after later ones of other threads: each change counts at the time of its own.
type integral struct {
	now int64
	sum float64 // of changes × time
}

func (i *integral) setValue(now int64, time uint64) {
	i.sum += float64(now-i.now) * float64(time) / 1e9
	i.now = now
}

// valueUntil returns the integral up to a time.
func (i *integral) valueUntil(time uint64) float64 {
	return max(float64(i.now)*float64(time)/1e9-i.sum, 0)
}

// advanceTo moves time to a record.
func (x *run) advanceTo(r *wire.Record) {
	if x.survey.happenedInPart(r) {
		if x.quiet {
			x.quiet = false
			x.raisePeaks()
		}
		x.line.advanceTo(r.Time, x.total, x.model)
		if r.Time > x.clock {
			x.clock = r.Time
		}
		if x.line.Step > 0 && r.Kind == wire.KindCreate {
			switch r.AsCreate().PresentOutcome() {
			case wire.OutcomeHit:
				x.line.Hits[x.line.at]++
			case wire.OutcomeMiss:
				x.line.Misses[x.line.at]++
			}
		}
		return
	}
	x.quiet = x.quiet || r.CarriedOver()
}

// raisePeaksIfChanged looks for new peaks when the gauges have changed.
func (x *run) raisePeaksIfChanged() {
	if *x.total == x.raised {
		return
	}
	x.raised = *x.total
	if !x.quiet {
		x.raisePeaks()
	}
}

// spreadMost is up to how many processes the fragmentation of free memory is looked at at each new peak: that costs time for each of them.
const spreadMost = 16

func (x *run) raisePeaks() {
	t := x.total
	if x.peak.raisePeak(x.heap.Now(), t.InUse, t.InUse+t.Cached+t.Cooling+t.Room) {
		x.peak.fragmentation = -1
		if len(x.processes) <= spreadMost {
			x.peak.fragmentation = x.model.Fragmentation()
		}
	}
	if now, most := reservedBytes(t), reservedBytes(&x.most); now > most || now == most && t.InUse > x.most.InUse {
		x.most = *t
	}
	x.line.samplePoint(t)
}

// ObjectAllocated implements heap.Observer.
func (x *run) ObjectAllocated(p *heap.Process, o *heap.Object, _ *heap.Block) {
	s := x.books.siteOf(p.Number, o.Tag)
	w := x.rowOf(s)
	x.peak.saveSiteBeforeChange(s)
	s.buffers++
	var own int64
	if o.Owns {
		own = int64(o.Granted)
		s.inUse += own
		s.requested += int64(o.Size)
		x.addToSiteSeries(w, own)
	}
	x.moves.countHostCopies(p, o, 1)
	if o.CarriedOver {
		if w.isBeforeAttach() {
			x.before++
		}
		return
	}
	s.creates++
	s.total += o.Size
	w.creates++
	x.sizes.addValue(o.Size, o.Size)
	x.simplest.countCreate(p, o)
	at := x.processOf(p.Number)
	o.Note = x.threadStream(at, o.Thread).countCreate(x.heap.Now(), level{p.InUse, p.Live}, own, x.model.HeldObjectCounts(p.Number))
	switch {
	case o.Outcome == wire.OutcomeMiss:
		if !o.Alternative {
			x.misses.addMiss(at, o)
		}
		if !o.SubAllocation { // else the SLAB before it was the driver's create
			x.countCost(o)
		}
	case o.Outcome == wire.OutcomeDriver && o.Owns:
		x.countCost(o)
	}
}

// countCost counts the cost of a create. Creates that copy are apart: they often take many times longer.
func (x *run) countCost(o *heap.Object) {
	if o.Access&wire.CopyHostPtr != 0 {
		x.copies.addCall(o.Granted, o.Cost)
		if o.Outcome == wire.OutcomeDriver {
			x.copyNS += uint64(o.Cost)
		}
		return
	}
	x.creates.addCall(o.Granted, o.Cost)
}

// addToSiteSeries changes the series of a call site.
func (x *run) addToSiteSeries(w *row, bytes int64) {
	if w.series >= 0 {
		x.line.tags[w.series] += bytes
	}
}

// MemoryFreed implements heap.Observer.
func (x *run) MemoryFreed(p *heap.Process, o *heap.Object, how heap.How) {
	s := x.books.siteOf(p.Number, o.Tag)
	w := x.rowOf(s)
	x.peak.saveSiteBeforeChange(s)
	s.buffers--
	x.moves.countHostCopies(p, o, -1)
	if o.Owns {
		s.inUse -= int64(o.Granted)
		s.requested -= int64(o.Size)
		x.addToSiteSeries(w, -int64(o.Granted))
	}
	x.spent.noteObjectFreed(x, p, o)
	switch {
	case how == heap.Leaked, how == heap.Held, how == heap.Cut && !x.cut: // or its process outlived the program
		s.countLeftBehind(o)
	case how == heap.Cut:
	case x.record != nil && x.record.CarriedOver(): // it never lived in this part, or goes on as something larger
		if o.CarriedOver && w.isBeforeAttach() {
			x.before-- // the next create describes it better
		}
	case how == heap.Released:
		x.simplest.countRelease(p, o)
		x.countReleased(x.processOf(p.Number), s, o)
		if cost := x.releaseCost(o); cost > 0 {
			x.frees.addCall(o.Granted, uint32(cost))
		}
	}
}

// releaseCost returns how long the driver took to release an object that went back to it at once.
func (x *run) releaseCost(o *heap.Object) uint64 {
	if x.record == nil || x.record.Kind != wire.KindRelease {
		return 0
	}
	e := x.record.AsRelease()
	if e.Object() != o.ID || !o.Owns || e.SubAllocation() {
		return 0
	}
	switch e.Outcome() {
	case wire.OutcomeCached, wire.OutcomeCooling, wire.OutcomeRefused, wire.OutcomePinned:
		return 0 // an EVICT follows
	}
	return uint64(e.Cost())
}

// BlockPooled implements heap.Observer.
func (x *run) BlockPooled(p *heap.Process, b *heap.Block) { x.changePooledOfSite(p, b, 1) }

// BlockUnpooled implements heap.Observer.
func (x *run) BlockUnpooled(p *heap.Process, b *heap.Block, how heap.How) {
	x.changePooledOfSite(p, b, -1)
	x.vain.noteBlockLeftPool(x, b, how)
}

// changePooledOfSite changes what the pool holds of a call site. Free memory in slabs belongs to none.
func (x *run) changePooledOfSite(p *heap.Process, b *heap.Block, sign int64) {
	if b.State == heap.Slab {
		return
	}
	if w := x.rowOf(x.books.siteOf(p.Number, b.Tag)); w.pooled >= 0 {
		x.line.free[w.pooled] += sign * int64(b.Size)
	}
}

// makeAnalysis makes the Analysis.
func (x *run) makeAnalysis() *Analysis {
	x.advanceToEnd()
	x.snapshot = x.model.PublishSnapshot()
	a := &Analysis{
		Run: Run{
			Header: x.options.Header, Footer: x.options.Footer, Whole: x.options.Whole, Started: x.started,
			Since: x.options.Since, Until: x.options.Until, Process: x.options.Process, Before: x.before,
			Events: x.survey.events,
		},
		Peak: x.peakBySite(), CreateCost: x.creates.fitCurve(), CopyCost: x.copies.fitCurve(), ReleaseCost: x.frees.fitCurve(),
		Sizes: x.sizes.nonEmptyBins(), Phases: x.listPhases(),
	}
	if x.options.Tag != nil {
		a.Run.Tag = x.options.Tag.String()
	}
	x.record = nil
	for _, p := range x.heap.Processes() {
		x.heap.EndObjects(p, p.HowMemoryEnds(x.cut))
	}
	x.dropKilledLeaks()
	a.Lifetimes, a.Lag, a.Temporaries, a.Leaks = x.lifetimes.nonEmptyBins(), x.sumLag(), x.listTemporaries(), x.listLeaks()
	a.Misses, a.Timeline, a.Flame = x.misses.listMissReasons(x), x.line.Timeline, x.callTree()
	a.Growth, a.Timeline.Machine = x.machineGrowth(a.Phases), x.machine.listSeries(&a.Timeline, x.started)
	a.Transfers = x.transferFindings(a)
	x.fillInUsedLately(a)
	a.Diagnoses = x.evidence(a).applyRules(func(_ int, d Diagnosis, found bool) (Diagnosis, bool) {
		return d, found && (d.Tag == "" || x.options.wantsSite(d.Tag))
	})
	a.Snapshot = x.selectedSnapshot()
	return a
}

// advanceToEnd moves time to the end of the part.
func (x *run) advanceToEnd() {
	if x.quiet {
		x.raisePeaks()
	}
	if x.options.Whole && (x.options.Until == 0 || !x.cut) && (x.options.Process == "" || !x.hasAnyProcessEnded()) {
		x.model.AdvanceTime(x.options.Footer.EndedNS)
		x.model.NoteEndOfRun(x.options.Footer.EndedNS)
	}
	if x.line.Step > 0 {
		x.line.setEndOfPoint(x.total, x.model.Fragmentation(), x.model.IdleBytes(x.heap.Now()))
	}
}

// selectedSnapshot returns the snapshot with the selected tags. Its totals are of the whole run.
func (x *run) selectedSnapshot() *stats.Snapshot {
	if x.options.Tag == nil {
		return x.snapshot
	}
	s := *x.snapshot
	s.Tags = []stats.Tag{}
	for i := range x.snapshot.Tags {
		if x.options.wantsSite(x.snapshot.Tags[i].Name) {
			s.Tags = append(s.Tags, x.snapshot.Tags[i])
		}
	}
	return &s
}
