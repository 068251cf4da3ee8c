package stats

import (
	"fmt"
	"math"
	"slices"

	"codeberg.org/gpumemtop/gpumemtop/internal/heap"
)

// FoldedNumber is the Number of the row for the processes that made room for others; no process has it.
const FoldedNumber = math.MaxUint32

// Folded implements heap.Observer: the figures of processes that make room go into one row.
func (m observer) Folded(list []*heap.Process) {
	wholes := map[*whole]struct{}{}
	for _, hp := range list {
		p := m.processes[hp.Place]
		p.shown.Machine = nil
		m.folded.fold(&p.shown)
		m.unified = m.unified || p.unified()
		m.foldRows(p, wholes)
		m.foldSpill(p)
		p.folded, p.books, p.tags, p.rows, p.scopes = true, nil, nil, nil, nil
	}
	for w := range wholes {
		m.foldParts(w)
	}
	m.processes = slices.DeleteFunc(m.processes, func(p *process) bool { return p.folded })
	m.dropFolded()
	m.holdings.fold()
	m.transfers.compact()
}

// fold adds a process to a row.
func (r *Process) fold(p *Process) {
	t, add := r.Totals, &p.Totals
	if r.Folded == 0 {
		*r = Process{Number: FoldedNumber, Started: p.Started, State: Exited, Status: -1, Policy: p.Policy, Killed: true}
	}
	for i, n := range add.counts() {
		*t.counts()[i] += *n
	}
	for i, n := range add.peaks() {
		if *n > *t.peaks()[i] {
			*t.peaks()[i] = *n
			if n == &add.PeakInUse {
				t.PeakInUseTime = add.PeakInUseTime
			}
		}
	}
	for _, f := range add.FailedWith {
		if f.Count > 0 {
			t.failedWith(f.Status, f.Count)
		}
	}
	t.Squares += add.Squares
	t.SavedKnown = t.SavedKnown || add.SavedKnown
	r.Totals = t
	r.Folded++
	r.Program = fmt.Sprintf("%d ended processes", r.Folded)
	r.Started, r.Ended = min(r.Started, p.Started), max(r.Ended, p.Ended)
	r.Killed = r.Killed && (add.LiveBuffers == 0 || p.aborted())
}

// counts are the figures that add up over processes.
func (t *Totals) counts() []*uint64 {
	list := append(make([]*uint64, 0, 96),
		&t.Hits, &t.Misses, &t.SteadyHits, &t.SteadyRequests, &t.Creates, &t.Releases, &t.Failures, &t.Unpooled, &t.DriverCreates,
		&t.DriverReleases, &t.DriverNS, &t.HitNS, &t.PoolNS, &t.SavedNS, &t.BytesRequested, &t.BytesAllocated, &t.Requested, &t.InUse,
		&t.Cached, &t.Cooling, &t.LiveBuffers, &t.CachedBlocks, &t.Slabs, &t.SlabBytes, &t.SlabFree, &t.HazardsAvoided, &t.Uses,
		&t.Syncs, &t.Plans.Installed,
	)
	for _, all := range [][]uint64{t.MissReasons[:], t.Evictions[:], t.Plans.Routes[:]} {
		for i := range all {
			list = append(list, &all[i])
		}
	}
	return list
}

// peaks are the figures of which the row has the most of any process. Percentiles of several do not follow from theirs, and
// a plan is that of one.
func (t *Totals) peaks() []*uint64 {
	return []*uint64{
		&t.PeakInUse, &t.PeakReserved, &t.PeakRequested, &t.PeakCached, &t.PeakCooling, &t.PeakSlabs, &t.LargestCached,
	}
}

// foldRows gives up the parts of a process, and adds their wholes, which have its figures, to a set.
func (m *Model) foldRows(p *process, wholes map[*whole]struct{}) {
	m.parts -= len(p.tags)
	for _, w := range p.rows {
		if w.owner = nil; w.into == nil {
			m.parts++
			wholes[w.whole] = struct{}{}
		}
	}
}

// foldParts takes parts that were given up out of a whole. The last one stays: it counts for the whole.
func (m *Model) foldParts(w *whole) {
	first, before := w.parts[0], len(w.parts)
	w.parts = slices.DeleteFunc(w.parts, func(part *row) bool { return part.owner == nil })
	if len(w.parts) == 0 {
		w.parts = append(w.parts, first)
	}
	m.parts -= before - len(w.parts)
}

// foldSpill keeps what moved at the call sites of a process.
func (m *Model) foldSpill(p *process) {
	for tag, moves := range p.spill.sites {
		name := m.row(p, tag).shownName()
		all := m.spill.folded[name]
		all[0].plus(&moves[0])
		all[1].plus(&moves[1])
		if m.spill.folded == nil {
			m.spill.folded = map[string][2]Moves{}
		}
		m.spill.folded[name] = all
	}
}

// fold joins the entries of folded processes for the same call site and type.
func (all *holdings) fold() {
	type site struct {
		whole *whole
		kind  ObjectType
	}
	places := make([]int, len(all.list)) // where each goes
	folded := map[site]int{}
	kept := all.list[:0]
	for i := range all.list {
		h := all.list[i]
		places[i] = len(kept)
		if h.owner == nil || h.owner.folded {
			h.left, h.owner = h.leaked(), nil
			s := site{h.row.final().whole, h.kind}
			if at, known := folded[s]; known {
				kept[at].join(&h)
				continue
			}
			folded[s] = len(kept)
		}
		kept = append(kept, h)
	}
	for key, at := range all.places {
		if all.places[key] = places[at]; kept[places[at]].owner == nil {
			delete(all.places, key)
		}
	}
	clear(all.list[len(kept):])
	all.list = kept
}

// join adds an entry of folded processes to another one.
func (h *holding) join(more *holding) {
	h.created += more.created
	h.released += more.released
	h.before += more.before
	h.untracked += more.untracked
	h.left += more.left
	for i := range h.marked {
		h.marked[i] += more.marked[i]
		h.ago[i] += more.ago[i]
	}
}
