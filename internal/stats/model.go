package stats

import (
	"cmp"
	"fmt"
	"math/rand/v2"
	"slices"
	"sync/atomic"

	"codeberg.org/gpumemtop/gpumemtop/internal/callsite"
	"codeberg.org/gpumemtop/gpumemtop/internal/heap"
	"codeberg.org/gpumemtop/gpumemtop/internal/measure"
	"codeberg.org/gpumemtop/gpumemtop/internal/wire"
)

// Options are what a model knows before the first event.
type Options struct {
	Program   string            // of the session; empty: that of the first process
	Arguments []string          // of Program
	App       string            // name of the program that the user chose; empty: none
	Labels    map[string]string // that the user chose; not written to
	Policy    string            // name of the allocator policy
	Auto      bool              // the session switched to others by itself; see SetAutoSource
	Limits    []Limit           // with their values at the start; others are not followed
	// LimitsOf returns the limits of a policy with their defaults, for a program that switches to it; nil: no limits are shown.
	LimitsOf func(policy string) []Limit
	Started  uint64 // ns, CLOCK_MONOTONIC; 0: the time of the first event
	// DeviceMemory is how many bytes of device memory each process was made to have; 0: what its device has.
	DeviceMemory uint64
	// Apart reports whether two processes, by number, have devices of their own, as on different hosts; nil: as DeviceMemory says.
	Apart func(a, b uint32) bool
	// NodeOf returns the host of a process, by number; nil, or empty: all are on one.
	NodeOf func(process uint32) string
	// TransfersOnly: only transfers are recorded as uses, so it is not known which memory is idle.
	TransfersOnly bool
	// NoTrends: Tag.Trend stays empty, which saves up to 1 KB for each call site.
	NoTrends bool
	// EntriesMax bounds buffers and blocks at once, see heap.Options. 0: as for recordings, whose size bounds them, too.
	EntriesMax int
	// Nameless returns how many files have names and lines that there is no room for; nil: none.
	Nameless func() uint64
	// Observers see each change in the heap, after the model.
	Observers []heap.Observer
}

// Model gives the records of a run to its observers and publishes snapshots of what the observers have counted. One goroutine at a time
// may call its methods; any may call Published.
//
// Apply costs O(1) per event, or O(log n) in the number of distinct cached block sizes, and allocates nothing once the
// model has held as many objects, blocks, sizes and tags as it ever will. Memory is bounded by the
// largest number of live objects and cached blocks so far, the tags, and the processes.
type Model struct {
	options   Options
	published atomic.Pointer[Snapshot]

	heap  *heap.Heap
	clock clock

	// Each of these counts one thing; the comment of its type says what, and what always holds. count and rare give them the
	// records that concern them, and observer gives them the changes in the heap.
	processes   processes
	totals      totals
	sites       callSites
	shares      shares
	kernels     kernelShares
	objects     holdings
	pairs       pairs
	transfers   transfers
	misses      misses
	machine     machine // of all processes together
	spill       spill
	findings    findings
	failedCalls failedCalls
	postMortems postMortems
	marks       marks
	limits      limits
	policies    policies
	notices     notices
	unused      unusedMemory
	measured    measure.Follower

	recording Recording
	ghosts    func() *Ghosts  // nil: there are none
	heapMap   func() *HeapMap // nil: there is none
	auto      func() *Auto    // nil: see Options.Auto

	asked []string // see Snapshot.Asked

	events, lost, lostUses uint64
	disordered             uint64 // see Snapshot
	latest                 uint64 // time of the latest record that shows its time
	finished               uint64 // see Snapshot.Finished
}

// New returns a model that has seen nothing yet.
func New(o Options) *Model {
	o.Arguments = slices.Clone(o.Arguments)
	o.EntriesMax = cmp.Or(o.EntriesMax, entriesMax)
	m := &Model{options: o, limits: newLimits(o.Limits)}
	observers := append([]heap.Observer{observer{m}}, o.Observers...)
	m.heap = heap.New(heap.Options{EndProcesses: true, ProcessesMax: processesMax, LeftMax: leftMax, EntriesMax: o.EntriesMax}, observers...)
	seed := rand.Uint64()
	m.processes = processes{heap: m.heap, totals: &m.totals, seed: seed, policy: o.Policy, deviceMemory: o.DeviceMemory, nodeOf: o.NodeOf}
	m.totals = newTotals(m.heap, &m.clock)
	m.sites = newCallSites(m.heap, &m.clock, seed, o.NoTrends)
	m.shares = newShares(&m.clock, seed)
	m.kernels.clock = &m.clock
	m.objects.sites = &m.sites
	m.pairs.holdings, m.pairs.sides = &m.objects, &m.transfers.sides
	m.transfers.clock, m.transfers.sites = &m.clock, &m.sites
	m.spill.sites = &m.sites
	if o.Apart == nil || o.DeviceMemory > 0 {
		o.Apart = func(_, _ uint32) bool { return o.DeviceMemory > 0 }
	}
	m.postMortems = postMortems{heap: m.heap, processes: &m.processes, apart: o.Apart, sites: &m.sites, spill: &m.spill, shares: &m.shares, marks: &m.marks}
	if o.Started != 0 {
		m.beginClock(o.Started)
	}
	return m
}

// Heap returns the heap that the records so far imply. Only the model may change it.
func (m *Model) Heap() *heap.Heap { return m.heap }

// Apply takes one record. It takes any record: records that make no sense are ignored or counted in Snapshot.Unknown. The record and
// its payload may be reused afterwards.
func (m *Model) Apply(r *wire.Record) {
	carriedOver := r.CarriedOver()
	if !carriedOver && m.totals.quiet {
		m.endCarriedOver()
	}
	if r.IsTimed() || !m.clock.begun {
		m.countIfLate(r)
		m.advanceTimeTo(r.Time)
	}
	m.events++
	if r.Kind == wire.KindLost {
		m.handleLost(r.Process, r.AsLost())
		return
	}
	p := m.processes.processNumbered(r.Process)
	if p == nil {
		m.heap.Unknown++
		return
	}
	p.changed = true
	if r.Thread != 0 && r.IsTimed() && !carriedOver {
		p.heard = max(p.heard, r.Time)
	}
	if r.Kind == wire.KindMachine {
		if !p.ignoresFurtherReports() {
			m.machine.noteMachineRecord(&p.machine, r.AsMachine())
		}
		return
	}
	if carriedOver {
		m.sites.beginCarriedOver()
		m.totals.beginCarriedOver(p)
	} else {
		m.totals.countEvent(p)
	}
	m.dispatchRecord(p, r)
	if m.measured.IsFollowing() || r.Kind == wire.KindLimit || r.Kind == wire.KindDiag {
		m.measured.TakeRecord(r, measure.Held{InUse: p.heap.InUse, Reserved: p.heap.ReservedBytes()})
	}
}

// countIfLate counts creates and releases that come after records of a later time. The session puts events in order, but some
// are written late, and those of a process before the session accepts it come after.
func (m *Model) countIfLate(r *wire.Record) {
	if r.Time+disorderNS < m.latest && (r.Kind == wire.KindCreate || r.Kind == wire.KindRelease) && !r.CarriedOver() {
		m.disordered++
	}
	if r.IsTimed() {
		m.latest = max(m.latest, r.Time)
	}
}

// disorderNS is how much later a record may come.
const disorderNS = 1_000_000

// dispatchRecord gives a record to the observers that it concerns, and to the heap, whose changes the observers count as well.
func (m *Model) dispatchRecord(p *process, r *wire.Record) {
	switch r.Kind {
	case wire.KindCreate:
		if c := r.AsCreate(); c.Outcome() == wire.OutcomeFailed && !c.CarriedOver() {
			m.totals.countFailed(p, c)
			m.postMortems.noteFailedCreate(p, c)
			m.failedCalls.countCreate(m, p, c)
		} else if c.Memory() == wire.MemoryImage && !p.images {
			m.failedCalls.noteHasImages(p)
		}
	case wire.KindTransfer:
		m.transfers.sides.NoteTransfer(r)
		m.transfers.countProfiled(p, r.AsTransfer())
		return
	case wire.KindUse:
		m.transfers.countUse(p, r)
		m.pairs.handlePairedUse(p, r)
		if !m.options.TransfersOnly {
			m.totals.countUse(p, r.AsUse())
			m.kernels.countUse(p, r.AsUse())
			m.totals.subtractHeldInFlight(p, p.waits.handleUse(r.AsUse()))
			if p.devicesOf.many {
				m.totals.countMovedBetweenDevices(p, m.transfers.countMovesBetweenDevices(p, r.AsUse()))
			}
		}
	case wire.KindSync:
		m.totals.countSync(p)
		m.totals.subtractHeldInFlight(p, p.waits.handleSync(r))
	case wire.KindAwait:
		m.totals.subtractHeldInFlight(p, p.waits.handleAwait(r))
	case wire.KindEvict:
		p.shortage.noteDrained(r.AsEvict())
		m.totals.countEvict(p, r.AsEvict())
	case wire.KindSlab:
		m.totals.countSlab(p, r.AsSlab())
	case wire.KindGauge:
		p.free.reported = rangesOfGauge(r.AsGauge())
	case wire.KindRelease:
		if r.AsRelease().References() > 0 {
			m.pairs.noteClosed(p, References, r.AsRelease().Object())
		}
		m.totals.release = releaseOfView(r.AsRelease())
		m.heap.Apply(r)
		m.totals.release = release{}
		return
	case wire.KindObject:
		if !m.objects.handleObjectRecord(p, r.AsObject()) {
			m.heap.Unknown++
		}
	case wire.KindRetain:
		m.pairs.handleRetain(p, r.AsRetain())
	case wire.KindCooled: // the heap knows what it means
	case wire.KindSpill:
		if !p.ignoresFurtherReports() {
			m.spill.handleSpill(p, r.AsSpill())
		}
		return
	default:
		m.dispatchRareRecord(p, r)
	}
	m.heap.Apply(r)
}

// endCarriedOver ends a run of records that were carried over.
func (m *Model) endCarriedOver() {
	if m.totals.quiet {
		m.sites.endCarriedOver()
		m.totals.endCarriedOver()
	}
}

// dispatchRareRecord gives records of the kinds that come a few times per run to the observers.
func (m *Model) dispatchRareRecord(p *process, r *wire.Record) {
	switch r.Kind {
	case wire.KindProcess:
		p.handleProcess(r, max(m.heap.Now(), r.Time), m.options.App)
		if m.options.Program == "" {
			m.options.Program, m.options.Arguments = p.shown.Program, p.shown.Arguments
		}
	case wire.KindTag:
		m.sites.handleTag(p, r)
		m.noteSiteMayBeNamed()
	case wire.KindSite:
		m.sites.nameTag(p, r.DefinedTag(), callsite.TagNameOf(r), r.Payload)
		m.noteSiteMayBeNamed()
	case wire.KindDevice:
		m.processes.device.noteDevice(p, r)
	case wire.KindContext:
		m.processes.device.noteContext(p, r.AsContext())
	case wire.KindLimit:
		m.handleLimit(p, r)
		m.addMarkOfAnswer(r)
	case wire.KindKernel:
		p.kernels.AddKernel(r.AsKernel().Kernel(), r.Payload)
	case wire.KindDiag:
		m.handleDiag(p, r)
	case wire.KindExit:
		m.handleExit(p, r)
	case wire.KindQueue:
		p.devicesOf.noteQueue(r.AsQueue())
		if q := r.AsQueue(); q.Life() == wire.LifeEnd {
			m.totals.subtractHeldInFlight(p, p.waits.noteQueueEnded(q.Queue()))
		}
	default: // nothing shows threads and modules
	}
}

// noteSiteMayBeNamed notes that a call site may have got its name.
func (m *Model) noteSiteMayBeNamed() {
	m.findings.shown, m.failedCalls.shown = nil, nil
}

// handleDiag handles DIAG.
func (m *Model) handleDiag(p *process, r *wire.Record) {
	kind := r.AsDiag().Diag()
	switch {
	case kind.IsFinding():
		m.noteMistake(p, r)
	case kind == wire.DiagOutOfMemory:
		m.postMortems.noteFailedCommand(p, r)
	case kind == wire.DiagPlace:
		p.handleProcessPlace(r)
	case kind == wire.DiagCallFailed:
		m.failedCalls.countCall(m, p, r)
	case m.notices.noteDiag(r):
		m.marks.addMark(m.heap.Now(), r.Kind, markTextOfDiag(r))
	}
}

// handleLost handles LOST.
func (m *Model) handleLost(process uint32, l wire.LostView) {
	m.totals.run.window.currentSlot().Events++
	m.lost += l.Events()
	m.lostUses += l.Uses()
	m.marks.addLostEvents(m.heap.Now(), l.Events())
	if p := m.processes.findProcess(process); p != nil {
		p.lost += l.Events()
		m.totals.subtractHeldInFlight(p, p.waits.noteAllCommandsEnded(m.heap.Now())) // a wait may be among them
	}
}

// End is how a process ended.
type End struct {
	Status         int    // exit status; -1: unknown
	Signal         int    // that ended it; 0: none
	OOMKillsNumber uint64 // 1 + the number of processes of its control group that the kernel ended for lack of memory; 0: unknown
}

// NoteProcessEnded notes that the session saw a process end at a time in ns. A process that made no OpenCL call is ignored.
func (m *Model) NoteProcessEnded(number uint32, end End, time uint64) {
	m.advanceTimeTo(time)
	p := m.processes.findProcess(number)
	if p == nil {
		return
	}
	known := p.ended
	if end.Signal != 0 {
		p.noteHowEnded(Signaled, end.Signal, time)
	} else {
		p.noteHowEnded(Exited, end.Status, time)
	}
	p.gone = true
	m.postMortems.noteKilled(p, end.OOMKillsNumber)
	if !known {
		m.marks.addMark(m.heap.Now(), wire.KindExit, processEndText(&p.shown))
	}
	m.heap.NoteProcessEnded(number)
}

// NoteDevicesAsked notes which devices programs asked for before a context, in words.
func (m *Model) NoteDevicesAsked(answers []string) { m.asked = answers }

// NoteEndOfRun notes when the program ended, or watching, in ns. The first call counts.
func (m *Model) NoteEndOfRun(time uint64) { m.finished = cmp.Or(m.finished, time) }

// NoteLimitWanted notes that a change of a limit was sent to the target under a sequence number, with the value in the form that
// the target takes. The change stays pending until a LIMIT event answers that number or a later one.
func (m *Model) NoteLimitWanted(name, value string, sequence uint64) {
	m.limits.noteChangeSent(name, value, sequence, m.heap.Now())
}

// NotePolicyWanted notes that a change of the policy was sent to the target under a sequence number. The change stays pending until a
// LIMIT event answers that number or a later one.
func (m *Model) NotePolicyWanted(name string, sequence uint64) {
	m.policies.noteChangeSent(name, sequence, m.heap.Now())
}

// MarkObjectCounts notes how many objects there are. Snapshots then say how many more there are. The last two notes are kept.
func (m *Model) MarkObjectCounts() { m.objects.keepCountsForGrowth() }

// HeldObjectCounts returns how many objects of each type a process has now; nil when it is not known.
func (m *Model) HeldObjectCounts(process uint32) *[ObjectTypes]int64 {
	if p := m.processes.findProcess(process); p != nil {
		return &p.holds
	}
	return nil
}

// SetRecording notes which file is being written, and how many bytes so far.
func (m *Model) SetRecording(path string, bytes uint64) {
	m.recording = Recording{Path: path, Bytes: bytes}
}

// notices keeps what DIAG records say about the pool and --spill: the first text of each kind, of wholeBlocks the last.
type notices struct {
	spillFailed string // see Snapshot.SpillFailed
	wholeBlocks string // see Snapshot.WholeBlocks
	eager       string // see Snapshot.Eager
	hosted      Part   // see Snapshot.Hosted
	unpooled    Unpooled
	unseen      []string // see Snapshot.Unseen
}

// unseenMax bounds the libraries that are named.
const unseenMax = 4

// noteDiag takes a DIAG that is no finding. It reports whether the DIAG is worth a mark.
func (n *notices) noteDiag(r *wire.Record) bool {
	switch kind := r.AsDiag().Diag(); kind {
	case wire.DiagWholeBlocks:
		n.wholeBlocks = callsite.CleanText(r.Payload)
	case wire.DiagEager:
		n.eager = cmp.Or(n.eager, callsite.CleanText(r.Payload))
	case wire.DiagSpill:
		n.spillFailed = cmp.Or(n.spillFailed, callsite.CleanText(r.Payload))
	case wire.DiagHosted:
		n.hosted.addBuffer(r.AsDiag().Bytes())
		return n.hosted.Buffers == 1
	case wire.DiagMeasure:
		return !measure.IsAnnouncement(r)
	case wire.DiagSecondLoader:
		if name := callsite.CleanText(r.Payload); len(n.unseen) < unseenMax && !slices.Contains(n.unseen, name) {
			n.unseen = append(slices.Clone(n.unseen), name) // snapshots share it
		}
	case wire.DiagTransparent, wire.DiagPanic:
		if n.unpooled.Times++; n.unpooled.Times == 1 {
			n.unpooled.Why = callsite.CleanText(r.Payload)
		}
	default:
	}
	return true
}

func markTextOfDiag(r *wire.Record) string {
	word := r.AsDiag().Diag().String()
	if len(r.Payload) == 0 {
		return word
	}
	return word + ": " + callsite.CleanText(r.Payload)
}

func processEndText(p *Process) string {
	name := fmt.Sprintf("process %d", p.Number)
	if p.PID != 0 {
		name = fmt.Sprintf("%s (pid %d)", callsite.BaseName(p.Program), p.PID)
	}
	switch {
	case p.State == Signaled:
		return fmt.Sprintf("%s ended by signal %d", name, p.Status)
	case p.Status < 0 && p.Orderly:
		return name + " exits"
	case p.Status < 0:
		return name + " ended"
	}
	return fmt.Sprintf("%s exited with status %d", name, p.Status)
}
