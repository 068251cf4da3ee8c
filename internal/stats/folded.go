package stats

import (
	"fmt"
	"math"
	"slices"
)

// FoldedNumber is the Number of the row for the processes that made room for others; no process has it.
const FoldedNumber = math.MaxUint32

// foldProcess adds a process to the row of the folded ones.
func (ps *processes) foldProcess(p *process) {
	p.shown.Machine = nil
	ps.folded.addFolded(&p.shown)
	ps.unified = ps.unified || p.devices.hasUnifiedMemory()
	p.folded, p.accounts, p.devices = true, nil, devices{}
}

// dropFolded forgets the processes that were folded.
func (ps *processes) dropFolded() {
	ps.list = slices.DeleteFunc(ps.list, func(p *process) bool { return p.folded })
}

// addFolded adds a process to a row.
func (r *Process) addFolded(p *Process) {
	t, add := r.Totals, &p.Totals
	if r.Folded == 0 {
		*r = Process{Number: FoldedNumber, Started: p.Started, State: Exited, Status: -1, Policy: p.Policy, Killed: true}
	}
	for i, n := range add.summedFields() {
		*t.summedFields()[i] += *n
	}
	for i, n := range add.maximumFields() {
		if *n > *t.maximumFields()[i] {
			*t.maximumFields()[i] = *n
			switch n {
			case &add.PeakInUse:
				t.PeakInUseTime = add.PeakInUseTime
			case &add.PeakReserved:
				r.DeviceMemory = p.DeviceMemory
			}
		}
	}
	for _, f := range add.FailedWith {
		if f.Count > 0 {
			t.countStatus(f.Status, f.Count)
		}
	}
	t.Squares += add.Squares
	t.Saved.Releases = t.Saved.Releases || add.Saved.Releases
	r.Totals = t
	r.Folded++
	r.Program = fmt.Sprintf("%d ended processes", r.Folded)
	r.Started, r.Ended = min(r.Started, p.Started), max(r.Ended, p.Ended)
	r.Killed = r.Killed && (add.LiveBuffers == 0 || p.WasAborted())
}

// summedFields are the figures that add up over processes.
func (t *Totals) summedFields() []*uint64 {
	list := append(make([]*uint64, 0, 96),
		&t.Hits, &t.SubBufferHits, &t.Misses, &t.SteadyHits, &t.SteadyRequests, &t.Creates, &t.Releases, &t.Failures, &t.Alternative, &t.Unpooled, &t.DriverCreates,
		&t.DriverReleases, &t.DriverNS, &t.HitNS, &t.PoolNS, &t.Saved.NS, &t.Saved.Pool, &t.BytesRequested, &t.BytesAllocated, &t.Requested, &t.InUse,
		&t.Cached, &t.Idle, &t.Cooling, &t.LiveBuffers, &t.CachedBlocks, &t.Slabs, &t.SlabBytes, &t.SlabFree, &t.HazardsAvoided, &t.Uses,
		&t.Syncs, &t.InFlight.Now, &t.InFlight.Releases, &t.InFlight.Bytes, &t.BetweenDevices, &t.Plans.Installed, &t.Exposed, &t.ExposedNewZero, &t.Cleared,
		&t.Relieved,
	)
	for _, all := range [][]uint64{t.MissReasons[:], t.Evictions[:], t.Plans.Routes[:]} {
		for i := range all {
			list = append(list, &all[i])
		}
	}
	return list
}

// maximumFields returns the figures that fold by their maximum over processes. Neither percentiles nor plans are folded: percentiles of
// several processes do not follow from those of each, and a plan belongs to one process.
func (t *Totals) maximumFields() []*uint64 {
	return []*uint64{
		&t.PeakInUse, &t.PeakReserved, &t.PeakRequested, &t.PeakCached, &t.PeakIdle, &t.PeakCooling, &t.PeakSlabs, &t.LargestCached, &t.InFlight.Peak,
	}
}

// joinFoldedEntries joins the entries of folded processes that have the same call site and type.
func (all *holdings) joinFoldedEntries() {
	type key struct {
		site *site
		kind ObjectType
	}
	places := make([]int, len(all.list)) // in the new list
	folded := map[key]int{}
	kept := all.list[:0]
	for i := range all.list {
		h := all.list[i]
		places[i] = len(kept)
		if h.owner == nil || h.owner.folded {
			h.left, h.owner = h.leakedCount(), nil
			k := key{h.site.finalSite().site, h.kind}
			if at, known := folded[k]; known {
				kept[at].joinEntry(&h)
				continue
			}
			folded[k] = len(kept)
		}
		kept = append(kept, h)
	}
	for k, at := range all.places {
		if all.places[k] = places[at]; kept[places[at]].owner == nil {
			delete(all.places, k)
		}
	}
	clear(all.list[len(kept):])
	all.list = kept
}

// joinEntry adds an entry of folded processes to another one.
func (h *holding) joinEntry(more *holding) {
	if h.pairing != nil {
		h.pairing.addPairing(more.pairing)
	}
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
