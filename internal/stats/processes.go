package stats

import (
	"cmp"
	"fmt"
	"slices"

	"codeberg.org/gpumemtop/gpumemtop/allocator"
	"codeberg.org/gpumemtop/gpumemtop/internal/callsite"
	"codeberg.org/gpumemtop/gpumemtop/internal/heap"
	"codeberg.org/gpumemtop/gpumemtop/internal/wire"
)

// Bounds on the memory that a target can make the model take.
const (
	processesMax = 4096    // with rows of their own, see heap.Options
	leftMax      = 1000    // of these that have left: they take 10 KB each, and Go's collector lets memory double
	entriesMax   = 4 << 20 // buffers and blocks at once, of all processes: see Snapshot.Exceeded
	sitesMax     = 100_000 // call sites of all processes; the shim has at most a third of that
	argumentsMax = 1024    // per process
)

// processes keeps the processes that made calls, by their places in the heap. A process keeps its figures once its memory has left
// the heap. When there are too many, the oldest of these are folded into one row, which has their sums.
type processes struct {
	heap   *heap.Heap
	totals *totals
	seed   uint64
	policy string // that every process starts with

	nodeOf       func(process uint32) string // nil: all processes are on one host
	deviceMemory uint64                      // bytes that each process was made to have; 0: those of its device

	list    []*process
	folded  Process // the row of those that made room
	unified bool    // one of the folded processes had a device whose memory is the host's
	device  shownDevice
}

// process is one target process, with the state that each observer keeps for it.
type process struct {
	shown   Process // the row in snapshots; its totals are as old as the last snapshot
	changed bool    // since then
	ended   bool    // its exit handlers ran, or it is gone
	gone    bool    // it has surely ended
	folded  bool    // into processes.folded
	images  bool    // it made one
	lost    uint64  // events
	heard   uint64  // time of its own latest record: it lived then
	heap    *heap.Process

	accounts []*account // that an event goes into, its own first: see totals
	since    since
	quiet    bool // it is in totals.carried

	tags   map[uint32]*processSite
	sites  []*processSite
	second uint64 // of the session, when the sites were shown last

	provisional int // sites that may get another name: see callSites.nameTag

	free      freeMemory
	devices   devices
	draft     allocator.Draft // of a plan that comes in pieces
	kernels   callsite.Kernels
	placed    placedKernels
	holds     [ObjectTypes]int64 // objects of each type
	shortage  shortage
	machine   machine
	spill     processSpill
	waits     waits
	devicesOf queueDevices
	queued    bool // its latest command did not block

	kept struct { // the figures before its memory left the heap
		sites  []siteFigures
		spread spread
	}
}

// ignoresFurtherReports reports whether further reports about the process are ignored.
func (p *process) ignoresFurtherReports() bool { return p.gone || p.heap.Left }

// ownAccount returns the account of the process alone.
func (p *process) ownAccount() *account { return p.accounts[0] }

// processNumbered returns the process with a number. It adds it when no record mentioned it; nil when there are too many.
func (ps *processes) processNumbered(number uint32) *process {
	hp := ps.heap.Process(number)
	switch {
	case hp == nil:
		return nil
	case hp.Place == len(ps.list):
		ps.addProcess(hp)
	}
	return ps.list[hp.Place]
}

// findProcess returns the process with a number, nil when no record mentioned it.
func (ps *processes) findProcess(number uint32) *process {
	if hp := ps.heap.FindProcess(number); hp != nil {
		return ps.processOfHeap(hp)
	}
	return nil
}

// processOfHeap returns what the model keeps of a process in the heap.
func (ps *processes) processOfHeap(hp *heap.Process) *process { return ps.list[hp.Place] }

func (ps *processes) addProcess(hp *heap.Process) {
	p := &process{tags: map[uint32]*processSite{}, heap: hp, free: newFreeMemory(hp, ps.seed)}
	p.shown = Process{Number: hp.Number, Policy: ps.policy, Status: -1, Started: ps.heap.Now()}
	if ps.nodeOf != nil {
		p.shown.Node = ps.nodeOf(hp.Number)
	}
	ps.totals.openAccounts(p)
	ps.list = append(ps.list, p)
}

// hasHostMemory reports whether the memory of some device is the host's.
func (ps *processes) hasHostMemory() bool {
	return ps.unified || slices.ContainsFunc(ps.list, func(p *process) bool { return p.devices.hasUnifiedMemory() })
}

// countDevicesOf returns Process.Devices.
func (ps *processes) countDevicesOf(p *process) int {
	if ps.deviceMemory > 0 {
		return 1
	}
	return p.devices.countDevices()
}

// deviceMemoryOf returns Process.DeviceMemory. For a process that described no device it is the memory of the device that is shown.
func (ps *processes) deviceMemoryOf(p *process) uint64 {
	switch d := p.devices.deviceOfFirstContext(); {
	case ps.deviceMemory > 0:
		return ps.deviceMemory
	case d != nil:
		return d.Global
	}
	return ps.device.Global
}

// TitleAmongSeveral tells a process from others among several: "rank 2 (pid 4711)", where there are several hosts with its host; empty: unknown.
func (p *Process) TitleAmongSeveral() string {
	name := fmt.Sprintf("pid %d", p.PID)
	switch {
	case p.PID == 0:
		return ""
	case p.Node != "":
		name += " on " + p.Node
	}
	if p.Rank != nil {
		return fmt.Sprintf("rank %d (%s)", *p.Rank, name)
	}
	return name
}

// areSeveral reports whether there was more than one process.
func (ps *processes) areSeveral() bool { return len(ps.list) > 1 || ps.folded.Folded > 0 }

// handleProcess handles PROCESS.
func (p *process) handleProcess(r *wire.Record, now uint64, app string) {
	program, arguments := wire.ParseProcess(r.Payload)
	p.shown.PID, p.shown.Parent = int(r.AsProcess().PID()), int(r.AsProcess().Parent())
	if n := r.AsProcess().RankNumber(); n > 0 {
		rank := n - 1
		p.shown.Rank = &rank
	}
	p.shown.Started = now
	p.shown.Program, p.shown.Arguments = callsite.CleanText(program), nil
	for word := range arguments {
		if len(p.shown.Arguments) == argumentsMax {
			break
		}
		p.shown.Arguments = append(p.shown.Arguments, callsite.CleanText(word))
	}
	p.shown.App = cmp.Or(app, callsite.CleanFunctionName([]byte(wire.ProgramNameOf(p.shown.Program, p.shown.Arguments))))
}

// handleProcessPlace handles the DIAG of a process's place.
func (p *process) handleProcessPlace(r *wire.Record) {
	p.shown.Place = wire.ParsePlace(r.Payload)
	p.shown.App = cmp.Or(p.shown.Place.App, p.shown.App)
}

// handleExit handles EXIT. From the process itself it means that exit handlers run, and buffers may still be released. From the session, which has no thread there, it means that the process is gone.
func (m *Model) handleExit(p *process, r *wire.Record) {
	if p.gone {
		return
	}
	status := int(r.AsExit().Status())
	p.gone = r.Thread == 0
	e := heap.Exit{Status: p.shown.Status, Orderly: p.shown.Orderly}
	e.NoteExit(r)
	p.shown.Orderly = e.Orderly
	known := p.ended
	p.noteHowEnded(Exited, status, r.Time)
	if p.gone {
		m.postMortems.noteKilled(p, r.AsExit().OOMKillsNumber())
	}
	if !known || status >= 0 { // the session may know no more than the process reported itself
		shown := p.shown
		if !p.gone {
			shown.Status = -1 // its exit handlers still run
		}
		m.marks.addMark(m.heap.Now(), wire.KindExit, processEndText(&shown))
	}
}

// noteHowEnded notes how a process ended. A later report replaces an earlier one, unless its status is unknown.
func (p *process) noteHowEnded(state State, status int, time uint64) {
	p.changed, time, p.shown.RanOut = true, max(time, p.shown.Started), p.heap.RanOut
	if !p.ended {
		p.ended = true
		p.shown.State, p.shown.Ended = state, time
	}
	if status >= 0 {
		p.shown.State, p.shown.Status, p.shown.Ended = state, status, time
	}
}

// processHistoryMax bounds the samples in the history of one process: there may be thousands of processes.
const processHistoryMax = 150

// rowOfProcess returns the row of a process. It lists the tags again if an event came, or if a second has passed, which changes their
// trends.
func (m *Model) rowOfProcess(p *process) Process {
	p.shown.Machine, p.shown.DeviceMemory, p.shown.Devices = p.machine.listFigures(), m.processes.deviceMemoryOf(p),
		m.processes.countDevicesOf(p)
	if d := p.devices.deviceOfFirstContext(); d != nil {
		p.shown.Device = d.Name
	}
	if p.changed && !p.heap.Left {
		p.shown.Totals = p.ownAccount().makeTotals(p.free.freeSpread())
	}
	if len(m.processes.list) > 1 {
		if p.changed || p.shown.Tags == nil || !p.ended && p.second != m.clock.second {
			p.shown.Tags, p.second = m.sites.listTagsOf(p), m.clock.second
			if t, ok := p.free.slabRow(); ok {
				p.shown.Tags = append(p.shown.Tags, t)
			}
		}
		p.shown.Window, p.shown.History = p.ownAccount().window.ratesOfFullSlots(), p.ownAccount().history.listSamples()
	}
	p.changed = false
	return p.shown
}
