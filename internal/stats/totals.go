package stats

import (
	"slices"

	"codeberg.org/gpumemtop/gpumemtop/internal/heap"
	"codeberg.org/gpumemtop/gpumemtop/internal/recording"
	"codeberg.org/gpumemtop/gpumemtop/internal/wire"
)

// totals counts what happens in the whole run and in each process, with peaks. An event goes into the accounts of its process:
// its own and that of the run. The first process shares the account of the run until the two differ: as long as there is only
// one process, an event is counted once.
type totals struct {
	heap  *heap.Heap
	clock *clock

	run     account
	opened  bool     // some process has had an account
	sharer  *process // that shares the account of the run; nil: no process does
	minute  minute
	since   since
	touches touches
	release release  // the present record, if it is one
	spent   workings // of processes that have left: nothing shows them

	// Records that were carried over describe memory that was there at once, but come one after the other, and a free block comes as a
	// create with its release. So peaks wait until the last such record.
	quiet   bool       // the present record was carried over
	carried []*process // that such records have changed
}

func newTotals(h *heap.Heap, c *clock) totals {
	t := totals{heap: h, clock: c}
	t.run.Gauges, t.run.Population, t.run.workings = &h.Gauges, &h.Population, &workings{}
	return t
}

// openAccounts gives a new process its accounts.
func (t *totals) openAccounts(p *process) {
	if !t.opened {
		t.opened, t.sharer = true, p
		p.accounts = []*account{&t.run}
		return
	}
	t.copySharedAccount(t.sharer)
	own := &account{Gauges: &p.heap.Gauges, Population: &p.heap.Population, workings: &workings{}}
	own.window.advanceToSlot(t.clock.slot)
	own.history.born, own.history.most = t.clock.slot, processHistoryMax
	p.accounts = []*account{own, &t.run}
}

// copySharedAccount gives a process that shares the account of the run a copy, before an event counts in only one of the two.
func (t *totals) copySharedAccount(p *process) {
	if p == nil || p != t.sharer {
		return
	}
	t.sharer = nil
	own := t.run
	own.Gauges, own.Population = &p.heap.Gauges, &p.heap.Population
	own.workings = pointerToCopy(own.workings)
	own.history.detachCopy(processHistoryMax)
	p.accounts = []*account{&own, &t.run}
}

// countEvent counts a record that was not carried over.
func (t *totals) countEvent(p *process) {
	for _, a := range p.accounts {
		a.window.currentSlot().Events++
	}
}

// countCreated counts an object that the heap has got.
func (t *totals) countCreated(p *process, o *heap.Object) {
	if o.CarriedOver {
		return
	}
	for _, a := range p.accounts {
		a.countCreated(o)
	}
}

// raiseHeldPeaks notes new peaks after a create. Nothing else raises what is in use.
func (t *totals) raiseHeldPeaks(p *process, o *heap.Object) {
	t.raisePeaks(p)
	if !o.CarriedOver {
		t.minute.most.raiseGauges(&t.run)
		for _, a := range p.accounts {
			a.history.pending.raiseGauges(a)
		}
	}
	t.since.most.raiseGauges(&t.run)
	p.since.most.raiseGauges(p.ownAccount())
}

// countFailed counts a create that failed.
func (t *totals) countFailed(p *process, c wire.CreateView) {
	for _, a := range p.accounts {
		a.countFailedCreate(wire.CreateStatus(c), c.Duration())
	}
}

// countUse counts a USE.
func (t *totals) countUse(p *process, u wire.UseView) {
	t.touches.noteUse(p.heap, u, &t.run.costs.releases)
	for _, a := range p.accounts {
		a.counters.Uses++
	}
}

// countSync counts a SYNC.
func (t *totals) countSync(p *process) {
	for _, a := range p.accounts {
		a.counters.Syncs++
	}
}

// countEvict counts a block that goes back to the driver. A sub-allocation goes back into its slab: the driver gets nothing.
func (t *totals) countEvict(p *process, e wire.EvictView) {
	b := p.heap.Block(e.Block())
	if e.SubAllocation() || b != nil && b.SubAllocation {
		return
	}
	for _, a := range p.accounts {
		if b == nil || b.State != heap.Slab { // what hits spare the driver is no slab
			a.costs.releases.addCall(e.Bytes(), e.Cost())
		}
		a.countEvictedBlock(e)
	}
}

// countSlab counts a slab that the driver created. What it costs is no measure of what hits save: without a pool, the driver would make
// blocks of other sizes, in other numbers.
func (t *totals) countSlab(p *process, s wire.SlabView) {
	if s.Status() != 0 || t.quiet {
		return
	}
	for _, a := range p.accounts {
		a.countDriverAllocation(s.Bytes(), s.Cost())
		a.window.currentSlot().DriverCreates++
		a.addDriverTime(s.Cost())
	}
}

// release keeps fields of the present RELEASE: the heap does not report them.
type release struct {
	hazard bool   // the block was held back because it could have been reused too early
	driver bool   // the driver releases the memory, if the object has any
	back   bool   // likewise, or at once afterwards: the pool refuses the memory
	cost   uint32 // ns of the release in the driver
	pool   uint32 // ns of a release into the pool

	exposed wire.Exposed
}

func releaseOfView(v wire.ReleaseView) release {
	r := release{cost: v.Cost(), exposed: v.Exposed()}
	switch v.Outcome() {
	case wire.OutcomeCooling:
		r.hazard, r.pool = v.WouldRace(), v.Duration()
	case wire.OutcomeCached:
		r.pool = v.Duration()
	case wire.OutcomeRefused:
		r.back = true
	default:
		r.driver = !v.SubAllocation()
		r.back = r.driver
	}
	return r
}

// countReleased counts a release by the program.
func (t *totals) countReleased(p *process, o *heap.Object, how heap.How) {
	if how != heap.Released || t.quiet {
		return
	}
	for _, a := range p.accounts {
		a.window.currentSlot().Releases++
		a.counters.Releases++
		a.costs.parked.addCall(o.Granted, t.release.pool)
		if t.release.hazard {
			a.counters.HazardsAvoided++
		}
		if t.release.exposed != wire.ExposedNo {
			a.counters.countExposed(t.release.exposed)
		}
	}
}

// countFreed counts the release in the driver, if the memory of an object ends with one.
func (t *totals) countFreed(p *process, o *heap.Object, how heap.How) {
	if how != heap.Released || t.quiet || !t.release.driver {
		return
	}
	for _, a := range p.accounts {
		if o.Block != 0 {
			a.costs.releases.addCall(o.Granted, t.release.cost)
		}
		a.countDriverRelease(t.release.cost)
	}
}

// raisePeaks notes new peaks.
func (t *totals) raisePeaks(p *process) {
	if t.quiet {
		return
	}
	for _, a := range p.accounts {
		a.raisePeaks(t.heap.Now())
	}
}

// beginCarriedOver begins to change a process without its peaks.
func (t *totals) beginCarriedOver(p *process) {
	t.quiet = true
	if !p.quiet {
		p.quiet = true
		t.carried = append(t.carried, p)
	}
}

// endCarriedOver ends a run of records that were carried over. Peaks begin with the present gauges.
func (t *totals) endCarriedOver() {
	t.quiet = false
	t.minute.most.raiseGauges(&t.run)
	for _, p := range t.carried {
		p.quiet = false
		for _, a := range p.accounts {
			a.raisePeaks(t.heap.Now())
			a.history.pending.raiseGauges(a)
		}
	}
	t.carried = t.carried[:0]
}

// beginSlot begins a slot. gauges are the values at the end of the last slot.
func (t *totals) beginSlot(gauges Sample) {
	t.run.history.closeSamples(t.clock.started, t.clock.slot, gauges)
	t.minute.closeSlots(t.clock.started, t.clock.slot, gauges, t.run.window.currentSlot())
	t.run.beginSlot(t.clock.slot)
}

// beginProcessSlot begins a slot for a process that has an account of its own.
func (t *totals) beginProcessSlot(p *process) {
	if p == t.sharer {
		return
	}
	a := p.ownAccount()
	a.beginSlot(t.clock.slot)
	if !p.heap.Left { // otherwise its history has ended
		s := a.sampleOfGauges(p.free.freeSpread())
		s.Machine = p.machine.reportedBytes()
		a.history.closeSamples(t.clock.started, t.clock.slot, s)
	}
}

// makeTotals returns the totals of the run for a snapshot. free says how free memory is divided.
func (t *totals) makeTotals(free spread) Totals {
	shown := t.run.makeTotals(free)
	shown.SavedTouches = t.touches.estimateSaved(&t.run.costs.hits)
	return shown
}

// detachCopy makes a copied history independent of its original, and bounds its samples.
func (h *history) detachCopy(most uint64) {
	h.samples, h.most = slices.Clone(h.samples), most
	for uint64(len(h.samples)) > most {
		h.halveSamples()
	}
}

// SummarizeSinceLastCall returns what happened in all processes since the last call, or since the first event. It costs O(1).
func (m *Model) SummarizeSinceLastCall() recording.Summary {
	return m.totals.since.endIntervalAndSummarize(&m.totals.run, m.lost)
}

// SummarizeProcessSinceLastCall returns what happened in one process since the last call for it, false when the model does not know
// the process. It costs O(1).
func (m *Model) SummarizeProcessSinceLastCall(number uint32) (recording.Summary, bool) {
	p := m.processes.findProcess(number)
	if p == nil {
		return recording.Summary{}, false
	}
	return p.since.endIntervalAndSummarize(p.ownAccount(), p.lost), true
}
