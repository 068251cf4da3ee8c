package stats

import (
	"cmp"
	"slices"
	"syscall"

	"codeberg.org/gpumemtop/gpumemtop/internal/heap"
	"codeberg.org/gpumemtop/gpumemtop/internal/wire"
)

// postMortems takes a picture of memory when a call fails for lack of it, or when SIGKILL ends a process that holds memory. A
// failure that the last picture shows already is only counted there.
type postMortems struct {
	heap      *heap.Heap
	processes *processes
	apart     func(a, b uint32) bool // never nil; see Options.Apart
	sites     *callSites
	spill     *spill
	shares    *shares
	marks     *marks
	list      []*postMortem
}

type postMortem struct {
	PostMortem
	name    string       // of its process among several
	site    *processSite // of Tag, nil: none
	at      *processSite // of At, likewise
	holders []holder
}

type holder struct {
	Holder
	site   *processSite
	recent uint64 // bytes created in the later half of the process's life
}

// shortage keeps what a post-mortem of a process says about the creates and the evictions before it.
type shortage struct {
	largest uint64    // the largest create that ever worked
	drained Part      // that the pool gave back since the driver last created anything
	failed  *failedAt // the latest call that failed and makes no memory; nil: none did
}

// failedAt is where and when a call failed.
type failedAt struct {
	function string
	status   int32
	thread   uint32
	time     uint64
	site     *processSite
}

// placeWithin is in how many ns a command that lacked memory is recorded after its failure, whose record has the call site.
const placeWithin = 1_000_000

// siteOfCommand returns the call site of a command that lacked memory; nil: unknown.
func (s *shortage) siteOfCommand(r *wire.Record, f *Finding) *processSite {
	last := s.failed
	if last != nil && last.thread == r.Thread && last.function == f.Function && last.status == f.Status && r.Time-min(last.time, r.Time) < placeWithin {
		return last.site
	}
	return nil
}

// noteCreated notes a create that worked.
func (s *shortage) noteCreated(o *heap.Object) {
	if !o.Owns || o.CarriedOver {
		return
	}
	s.largest = max(s.largest, o.Size)
	if o.Outcome != wire.OutcomeHit {
		s.drained = Part{}
	}
}

// noteDrained notes a block that went back to the driver because a call failed.
func (s *shortage) noteDrained(e wire.EvictView) {
	if e.Reason() == wire.EvictDrain {
		s.drained.addBuffer(e.Bytes())
	}
}

// noteFailedCreate notes a failed create, if memory was short.
func (pms *postMortems) noteFailedCreate(p *process, c wire.CreateView) {
	d := p.devices.shownDeviceOf(c.Scope())
	if !heap.FailedForLackOrSize(c, d.Largest) {
		return
	}
	pms.addPostMortem(p, PostMortem{Call: "create of " + kindWithArticle(c.Memory()), Status: wire.Status(wire.CreateStatus(c)),
		Size: c.Requested(), Device: d}, c.Tag(), nil)
}

func kindWithArticle(kind wire.Memory) string {
	switch kind {
	case wire.MemoryBuffer, wire.MemorySubBuffer, wire.MemoryPipe:
		return "a " + kind.WordsForCreated()
	case wire.MemoryImage:
		return "an " + kind.WordsForCreated()
	}
	return kind.WordsForCreated() + " memory"
}

// noteFailedCommand notes a failed command.
func (pms *postMortems) noteFailedCommand(p *process, r *wire.Record) {
	f := FindingOfDiag(r, &p.kernels)
	device := p.devices.shownDeviceOf(r.AsDiag().Scope())
	d := PostMortem{Call: f.Function, Command: true, Kernel: f.Kernel, Status: wire.Status(f.Status), Device: device, Given: f.Size}
	if o := p.heap.Object(r.AsDiag().Object()); o != nil {
		d.First = p.ownAccount().counters.Uses > 0 && o.Outcome != wire.OutcomeHit && p.heap.IsUntouched(o)
	}
	pms.addPostMortem(p, d, r.AsDiag().Tag(), p.shortage.siteOfCommand(r, &f))
}

// addPostMortem takes a picture, unless the last one shows the same failure.
func (pms *postMortems) addPostMortem(p *process, d PostMortem, tag uint32, at *processSite) {
	if n := len(pms.list); n > 0 {
		if last := pms.list[n-1]; n == PostMortemsMax || last.isOfSameFailure(p, &d) {
			last.Repeats++
			return
		}
	}
	pm := &postMortem{PostMortem: d, at: at}
	if tag != 0 {
		pm.site = pms.sites.siteOfTag(p, tag)
	}
	pms.fillInMemory(p, pm)
	pm.judgeVerdict()
	pms.marks.addMark(pm.Time, wire.KindDiag, d.Call+" failed with "+wire.StatusNameAndNumber(int32(d.Status)))
	pms.list = append(pms.list, pm)
}

// killedStatus is the exit status that a recording has for SIGKILL, as in shells.
const killedStatus = 128 + int(syscall.SIGKILL)

// noteKilled takes a picture of a process that held memory when SIGKILL ended it: the kernel does so when memory is short.
func (pms *postMortems) noteKilled(p *process, kills uint64) {
	seen := p.shown.State == Signaled && p.shown.Status == int(syscall.SIGKILL)
	if !seen && (p.shown.Orderly || p.shown.Status != killedStatus) || p.heap.Live <= 0 {
		return
	}
	pm := &postMortem{PostMortem: PostMortem{
		Time: max(p.heard, p.heap.LastCommandEnd()), // a session may notice the end much later
		Call: "SIGKILL", Command: true, Verdict: VerdictKilled, OOMKillsNumber: kills, Device: p.devices.shownDeviceOf(0),
	}}
	pms.fillInMemory(p, pm)
	if len(pms.list) == PostMortemsMax {
		pms.list = pms.list[:PostMortemsMax-1]
	}
	pms.list = append(pms.list, pm)
}

// isOfSameFailure reports whether a picture is still right: the same failure, with about the same in use.
func (m *postMortem) isOfSameFailure(p *process, d *PostMortem) bool {
	now := heap.NonNegative(p.heap.InUse)
	most, least := max(now, m.InUse), min(now, m.InUse)
	return m.Process == p.shown.Number && m.Status == d.Status && m.Command == d.Command && most-least <= most/4
}

// fillInMemory fills in the present state of memory.
func (pms *postMortems) fillInMemory(p *process, pm *postMortem) {
	pm.Time, pm.Process, pm.PID, pm.Rank = cmp.Or(pm.Time, pms.heap.Now()), p.shown.Number, p.shown.PID, p.shown.Rank
	pm.name, pm.Devices = p.shown.TitleAmongSeveral(), pms.processes.countDevicesOf(p)
	pm.Age = pm.Time - min(p.shown.Started, pm.Time)
	g := p.heap.Gauges
	pm.InUse, pm.Requested = heap.NonNegative(g.InUse), heap.NonNegative(g.Requested)
	pm.Cached, pm.Cooling, pm.SlabFree = heap.NonNegative(g.Cached), heap.NonNegative(g.Cooling), heap.NonNegative(g.Room)
	pm.Buffers, pm.Noun = heap.NonNegative(p.heap.Live), NounForMemory(pms.shares.listByKind(), true)
	pm.Others = pms.bytesOfOtherProcesses(p)
	if pm.Spilling = pms.spill.PeakResident > 0; pm.Spilling {
		pm.Resident, pm.Spilled = p.spill.resident, p.spill.spilled
	}
	pm.LargestCreated, pm.GivenBack, p.shortage.drained = p.shortage.largest, p.shortage.drained, Part{}
	pm.UsesKnown = p.ownAccount().counters.Uses > 0
	pms.findHoldingSites(p, pm)
}

// bytesOfOtherProcesses returns what other processes have on the device of a process.
func (pms *postMortems) bytesOfOtherProcesses(p *process) (sum uint64) {
	for _, q := range pms.processes.list {
		if q != p && !q.heap.Left && !pms.apart(p.shown.Number, q.shown.Number) && !p.devices.areSurelyDifferent(&q.devices) {
			reserved := heap.NonNegative(q.heap.ReservedBytes())
			sum += reserved - min(q.spill.spilled, reserved)
		}
	}
	return sum
}

// findHoldingSites finds which call sites hold the memory.
func (pms *postMortems) findHoldingSites(p *process, pm *postMortem) {
	places := map[*processSite]int{}
	for _, o := range p.heap.Objects() {
		if !o.Owns {
			continue
		}
		s := pms.sites.creatorOf(o)
		at, known := places[s]
		if !known {
			at = len(pm.holders)
			places[s] = at
			pm.holders = append(pm.holders, holder{site: s, Holder: Holder{Newest: pm.Age}})
		}
		h := &pm.holders[at]
		age := pm.Time - min(o.Started, pm.Time)
		h.addBuffer(o.Granted)
		switch {
		case movesWithSpill(o):
			pm.Movable += o.Granted
		case pm.Spilling:
			pm.Resident += o.Granted
		}
		h.Oldest, h.Newest = max(h.Oldest, age), min(h.Newest, age)
		if age <= pm.Age/2 {
			h.recent += o.Granted
		}
		if p.heap.IsUntouched(o) {
			if o.Outcome != wire.OutcomeHit && !o.SubAllocation { // commands may have used memory that had another owner
				pm.Untouched.addBuffer(o.Granted)
			}
		} else if since, known := p.heap.ObjectIdleSince(o); known && pm.Time-min(since, pm.Time) >= pm.IdleNS() {
			pm.Idle.addBuffer(o.Granted)
		}
	}
	if pm.UsesKnown {
		pm.Recency.AddProcess(p.heap, pm.Time)
		pm.Lately = pm.Recency.UsedInLast(LatelyAtAge(pm.Age), pm.InUse, false)
	} else {
		pm.Untouched, pm.Idle = Part{}, Part{}
	}
	slices.SortStableFunc(pm.holders, func(a, b holder) int { return cmp.Compare(b.Bytes, a.Bytes) })
	pm.MoreHolders = max(0, len(pm.holders)-holdersKept)
	pm.holders = slices.Clone(pm.holders[:len(pm.holders)-pm.MoreHolders])
}

// movesWithSpill reports whether --spill moves such an object: others stay on the device, and no SPILL counts them.
func movesWithSpill(o *heap.Object) bool {
	return o.Memory == wire.MemoryBuffer && o.Access&wire.UseHostPtr == 0
}

// listPostMortems returns the post-mortems with the names that are known now.
func (pms *postMortems) listPostMortems(several bool) []PostMortem {
	var list []PostMortem
	for _, pm := range pms.list {
		shown := pm.withKnownNames(pms.sites.untagged)
		if several || pm.Rank != nil { // each rank of a job may have a session of its own
			shown.Who = pm.name
		}
		list = append(list, shown)
	}
	return list
}

func (m *postMortem) withKnownNames(untagged *site) PostMortem {
	shown := m.PostMortem
	if m.site != nil && m.site.finalSite().site != untagged {
		shown.Tag, shown.Wrapper = m.site.finalSite().site.siteTitle(), m.site.finalSite().site.wrapper
	}
	if m.at != nil && m.at.finalSite().site != untagged {
		shown.At = m.at.finalSite().site.siteTitle()
	}
	shown.Named = m.site == nil || m.site.finalSite().site.name != ""
	var merged []holder
	places := map[*site]int{}
	for _, h := range m.holders {
		s := h.site.finalSite().site
		shown.Named = shown.Named && s.name != ""
		at, known := places[s]
		if !known {
			places[s] = len(merged)
			h.Tag = s.siteTitle()
			merged = append(merged, h)
			continue
		}
		to := &merged[at]
		to.Buffers += h.Buffers
		to.Bytes += h.Bytes
		to.recent += h.recent
		to.Oldest, to.Newest = max(to.Oldest, h.Oldest), min(to.Newest, h.Newest)
	}
	slices.SortStableFunc(merged, func(a, b holder) int { return cmp.Or(cmp.Compare(b.Bytes, a.Bytes), cmp.Compare(a.Tag, b.Tag)) })
	shown.Holders = []Holder{}
	for i := range merged {
		if h := &merged[i]; h.recent > shown.GrewBytes && h.Buffers > 1 {
			shown.Grew, shown.GrewBytes = h.Tag, h.recent
		}
		if i < HoldersMax {
			shown.Holders = append(shown.Holders, merged[i].Holder)
		}
	}
	shown.MoreHolders += max(0, len(merged)-HoldersMax)
	return shown
}
