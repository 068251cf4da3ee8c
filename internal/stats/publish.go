package stats

import (
	"cmp"
	"fmt"
	"slices"

	"codeberg.org/gpumemtop/gpumemtop/internal/heap"
)

// Snapshot builds an immutable picture of the present state. It costs time in proportion to tags, their free
// lists as far as they changed, processes, and the length of the history, whatever the number of events.
func (m *Model) Snapshot() *Snapshot {
	m.carriedAll()
	m.journal.settle()
	m.dropFolded()
	now := moment{m.second, m.window.slot}
	s := &Snapshot{
		Time:          m.heap.Now(),
		Started:       m.options.Started,
		Program:       m.options.Program,
		Labels:        m.options.Labels,
		Arguments:     m.options.Arguments,
		Policy:        m.options.Policy,
		Change:        m.policies.show(),
		Limits:        slices.Clone(m.limits.list),
		Device:        m.shownDevice,
		Processes:     make([]Process, 0, len(m.processes)+1),
		Totals:        m.ledger.totals(),
		Window:        m.window.last(),
		History:       m.history.list(),
		Minute:        m.minute.list(),
		Tags:          m.tags(),
		Buckets:       m.shares.bySize(now),
		Kinds:         m.shares.byKind(now),
		Classes:       m.shares.byClass(now),
		Threads:       m.shares.byThread(now),
		Devices:       m.shares.byDevice(now),
		Kernels:       m.kernels.show(now),
		Objects:       m.shownObjects(),
		Marks:         slices.Clone(m.marks.list),
		Misses:        m.misses.show(),
		Findings:      m.findings.show(m.untagged),
		OtherFindings: m.findings.others,
		PostMortems:   m.shownPostMortems(),
		Recording:     m.recording,
		Machine:       m.machine.list(),
		Transfers:     m.shownTransfers(),
		Events:        m.events,
		Lost:          m.lost,
		LostUses:      m.lostUses,
		SpillFailed:   m.spillFailed,
		Spill:         m.shownSpill(),
		WholeBlocks:   m.wholeBlocks,
		Hosted:        m.hosted,
		Unknown:       m.heap.Unknown,
		Unpooled:      m.unpooled,
		Exceeded:      m.bounds(),
	}
	s.Auto = m.steered()
	if m.ghosts != nil {
		s.Ghosts = m.ghosts()
	}
	if m.heapMap != nil {
		s.Heap = m.heapMap()
	}
	spread := m.spread()
	spread.addTo(&s.Totals)
	s.Totals.SavedTouches = m.touches.saved(&m.ledger.costs.hits)
	if t, ok := m.slabTag(); ok {
		s.Tags = append(s.Tags, t)
	}
	for i, p := range m.processes {
		if i == 1 && m.folded.Folded > 0 {
			s.Processes = append(s.Processes, m.folded)
		}
		s.Processes = append(s.Processes, m.view(p))
	}
	return s
}

// bounds says which ones were reached.
func (m *Model) bounds() (texts []string) {
	if n := m.heap.Beyond; n > 0 {
		texts = append(texts, fmt.Sprintf("%d creates beyond %d buffers and blocks at once are left out", n, entriesMax))
	}
	if m.heap.Crowded {
		texts = append(texts, fmt.Sprintf("processes beyond %d at once are left out: figures are too low", processesMax))
	}
	if m.exceeded {
		texts = append(texts, fmt.Sprintf("call sites beyond %d are shown as one", partsMax))
	}
	return texts
}

// dropFolded forgets the rows that were folded into others.
func (m *Model) dropFolded() {
	m.wholes = slices.DeleteFunc(m.wholes, func(w *whole) bool { return w.folded })
}

// tags returns the rows of all processes as they are now.
func (m *Model) tags() []Tag {
	tags := make([]Tag, 0, len(m.wholes))
	for _, w := range m.wholes {
		if !w.unseen {
			tags = append(tags, m.show(w, &w.figures, w.parts))
		}
	}
	return tags
}

// tagsOf returns the rows of a process as they are now.
func (m *Model) tagsOf(p *process) []Tag {
	p.rows = slices.DeleteFunc(p.rows, func(w *row) bool { return w.into != nil })
	tags := make([]Tag, 0, len(p.rows))
	for i, w := range p.rows {
		if !w.unseen {
			tags = append(tags, m.show(w.whole, w.figures, p.rows[i:i+1]))
		}
	}
	return tags
}

// Fragmentation returns the external fragmentation as it is now. It costs time in proportion to processes.
func (m *Model) Fragmentation() float64 { return m.sample().Fragmentation }

// CallSites returns how many there are, each counted once for each process and name.
func (m *Model) CallSites() int { return m.parts }

// Publish builds a snapshot and makes it the one that Published returns.
func (m *Model) Publish() *Snapshot {
	s := m.Snapshot()
	m.published.Store(s)
	return s
}

// Published returns the snapshot that was published last, nil before the first. Any goroutine may call it.
func (m *Model) Published() *Snapshot { return m.published.Load() }

// show returns what figures of a row are now: all of them, or those of one part. The lists in it are shared between
// snapshots as long as they do not change.
func (m *Model) show(w *whole, f *figures, parts []*row) Tag {
	m.refresh(f, parts)
	return Tag{
		ID: w.id, Name: w.title(), Stack: w.stack, Module: w.module,
		Live: heap.Amount(f.live), InUse: heap.Amount(f.inUse), Requested: heap.Amount(f.requested),
		Cached: heap.Amount(f.cached), Cooling: heap.Amount(f.cooling), CachedCount: heap.Amount(f.blocks),
		Hits: f.hits, Misses: f.misses.all, MissReasons: f.misses.list(),
		Creates: f.creates, Window: f.pace.last(m.window.slot), PeakInUse: f.peak, Held: f.trend.held(),
		Trend: f.trend.shown(), Free: f.free,
	}
}

// refresh brings the lists that figures show up to date.
func (m *Model) refresh(f *figures, parts []*row) {
	f.trend.advance(m.second, heap.Amount(f.inUse))
	if f.free == nil {
		f.free = m.freeClasses(parts)
	}
}

// freeClasses lists the free blocks of parts by size, smallest first.
func (m *Model) freeClasses(parts []*row) []FreeClass {
	list := []FreeClass{}
	for _, part := range parts {
		part.classes.All(func(size uint64, place int32) {
			c := m.classes.At(place)
			list = append(list, FreeClass{
				Size: size, Blocks: c.count, Cooling: c.cooling, Oldest: m.heap.BlockAt(c.first).Freed,
			})
		})
	}
	sortClasses(list)
	return joinClasses(list)
}

func sortClasses(list []FreeClass) {
	slices.SortFunc(list, func(a, b FreeClass) int { return cmp.Compare(a.Size, b.Size) })
}

// joinClasses makes one class of neighbours of the same size: those of several processes.
func joinClasses(list []FreeClass) []FreeClass {
	joined := list[:0]
	for _, c := range list {
		last := len(joined) - 1
		if last < 0 || joined[last].Size != c.Size {
			joined = append(joined, c)
			continue
		}
		joined[last].Blocks += c.Blocks
		joined[last].Cooling += c.Cooling
		joined[last].Oldest = min(joined[last].Oldest, c.Oldest)
	}
	return joined
}
