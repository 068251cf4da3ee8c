package stats

import (
	"fmt"
	"slices"
)

// Snapshot builds an immutable picture of the present state. The cost is proportional to the number of tags, the free lists that
// have changed, the processes and the length of the history. It does not depend on the number of events.
func (m *Model) Snapshot() *Snapshot {
	m.endCarriedOver()
	m.sites.journal.raiseSummedPeaks()
	m.sites.dropFolded()
	m.findIdleBlocks(m.heap.Now())
	free := m.processes.freeSpread()
	s := &Snapshot{
		Time:          m.heap.Now(),
		Started:       m.clock.started,
		Finished:      m.finished,
		Program:       m.options.Program,
		Labels:        m.options.Labels,
		Arguments:     m.options.Arguments,
		Policy:        m.options.Policy,
		Change:        m.policies.changeForSnapshot(),
		Auto:          m.autoForSnapshot(),
		Limits:        slices.Clone(m.limits.list),
		Device:        m.processes.device.Device,
		Totals:        m.totals.makeTotals(free),
		IdleSince:     m.mostlyIdleSince(free, m.heap.Now()),
		LongUnused:    m.findLongUnused(m.heap.Now()),
		Window:        m.totals.run.window.ratesOfFullSlots(),
		History:       m.totals.run.history.listSamples(),
		Minute:        m.totals.minute.listSamples(),
		Tags:          m.sites.listTags(),
		Buckets:       m.shares.listBySize(),
		Kinds:         m.shares.listByKind(),
		Classes:       m.shares.listByClass(),
		Threads:       m.shares.listByThread(),
		Devices:       m.shares.listByDevice(),
		Kernels:       m.kernels.listKernels(),
		Marks:         slices.Clone(m.marks.list),
		Misses:        m.misses.listMisses(),
		Findings:      m.findings.listInOrder(m.sites.untagged, m.processes.areSeveral()),
		OtherFindings: m.findings.others,
		PostMortems:   m.postMortems.listPostMortems(m.processes.areSeveral()),
		FailedCalls:   m.failedCalls.listCalls(m.sites.untagged, m.processes.areSeveral()),
		OtherFailed:   m.failedCalls.others,
		Recording:     m.recording,
		Machine:       m.machine.listFigures(),
		Transfers:     m.transfers.makeTransfers(m.processes.hasHostMemory()),
		TransfersOnly: m.options.TransfersOnly,
		Events:        m.events,
		Lost:          m.lost,
		LostUses:      m.lostUses,
		Disordered:    m.disordered,
		SpillFailed:   m.notices.spillFailed,
		Eager:         m.notices.eager,
		WholeBlocks:   m.notices.wholeBlocks,
		Hosted:        m.notices.hosted,
		Unknown:       m.heap.Unknown,
		Unpooled:      m.notices.unpooled,
		Unseen:        m.notices.unseen,
		Asked:         m.asked,
	}
	m.noteReachedBounds(s)
	s.Objects, s.Pairs = m.pairs.listPairs()
	s.Measured = m.measured.Results()
	if m.ghosts != nil {
		s.Ghosts = m.ghosts()
	}
	if m.heapMap != nil {
		s.Heap = m.heapMap()
	}
	if t, ok := m.processes.slabRow(free); ok {
		s.Tags = append(s.Tags, t)
	}
	s.Processes = m.rowsOfProcesses()
	s.Spill = m.spill.makeSpill(s.EndTime(), m.processes.list)
	return s
}

// rowsOfProcesses returns the processes; those that were folded are one row after the first.
func (m *Model) rowsOfProcesses() []Process {
	list := make([]Process, 0, len(m.processes.list)+1)
	for i, p := range m.processes.list {
		if i == 1 && m.processes.folded.Folded > 0 {
			list = append(list, m.processes.folded)
		}
		list = append(list, m.rowOfProcess(p))
	}
	return list
}

// noteReachedBounds says which bounds on the size of the model were reached.
func (m *Model) noteReachedBounds(s *Snapshot) {
	add := func(format string, args ...any) { s.Exceeded = append(s.Exceeded, fmt.Sprintf(format, args...)) }
	if m.heap.Crowded {
		s.LeftOut = "processes"
		add("processes beyond %d at once are left out: figures are too low", processesMax)
	}
	if s.Beyond = m.heap.Beyond; s.Beyond > 0 {
		s.LeftOut = fmt.Sprintf("%d creates", s.Beyond)
		add("%s beyond %d buffers and blocks at once are left out: figures are too low", s.LeftOut, m.options.EntriesMax)
	}
	if m.options.Nameless != nil {
		s.Nameless = m.options.Nameless()
	}
	if m.sites.exceeded || m.objects.exceeded {
		add("call sites beyond %d are shown as one", sitesMax)
	}
}

// Fragmentation returns the present external fragmentation. The cost is proportional to the number of processes.
func (m *Model) Fragmentation() float64 {
	return m.totals.run.sampleOfGauges(m.processes.freeSpread()).Fragmentation
}

// CallSiteCount returns the number of call sites. A site counts once for each of its processes.
func (m *Model) CallSiteCount() int { return m.sites.count }

// PublishSnapshot builds a snapshot, which Published returns from then on.
func (m *Model) PublishSnapshot() *Snapshot {
	s := m.Snapshot()
	m.published.Store(s)
	return s
}

// PublishedSnapshot returns the snapshot that was published last, nil before the first. Any goroutine may call it.
func (m *Model) PublishedSnapshot() *Snapshot { return m.published.Load() }
