package stats

import (
	"slices"

	"codeberg.org/gpumemtop/gpumemtop/allocator"
	"codeberg.org/gpumemtop/gpumemtop/allocator/carve"
	"codeberg.org/gpumemtop/gpumemtop/internal/callsite"
	"codeberg.org/gpumemtop/gpumemtop/internal/heap"
	"codeberg.org/gpumemtop/gpumemtop/internal/heap/table"
	"codeberg.org/gpumemtop/gpumemtop/internal/wire"
)

// Bounds on what a target can make the model keep.
const (
	processesMax = 4096    // with rows of their own, see heap.Options
	leftMax      = 1000    // of these that have left: 10 KB each, and Go's collector lets memory double
	entriesMax   = 4 << 20 // buffers and blocks at once, of all processes: see Snapshot.Exceeded
	partsMax     = 100_000 // call sites of all processes; the shim has at most a third of that
	devicesMax   = 16      // per process
	argumentsMax = 1024    // per process
)

// process is one target process.
type process struct {
	shown   Process // what a snapshot shows; its totals are those at the last snapshot
	changed bool    // since then
	ended   bool    // its exit handlers ran, or it is gone
	gone    bool    // it surely does nothing any more
	quiet   bool    // it is in Model.carried
	folded  bool    // into Model.folded

	holds    [ObjectTypes]int64 // objects of each type
	heap     *heap.Process
	books    []*books        // that an event goes into, its own first: see books
	draft    allocator.Draft // of a plan that comes in pieces
	tags     map[uint32]*row
	sizes    table.Sizes // of cached blocks
	cached   carve.Tally // cached blocks: sizes that no memory has may take the sum of their squares around
	slabs    table.Sizes
	reported ranges   // of the free ranges in slabs
	left     *Tag     // what its slabs had when its memory left the heap, nil: nothing
	kept     struct { // what it is shown with once its memory has left the heap
		rows   []figures
		spread spread
	}

	devices []device
	scopes  map[uint16]uint64 // the device of each context, by the context's number
	latest  placedScope
	placed  placedKernels
	largest uint64 // create that ever worked
	drained Part   // that the pool gave back since the driver last created anything
	kernels callsite.Kernels

	rows    []*row // parts of the wholes
	second  uint64 // of the session, when they were shown last
	since   since
	lost    uint64 // events
	machine machine
	spill   processSpill
}

// placedScope is the context that a create was in last, with the place of its device in the shares.
type placedScope struct {
	known bool
	scope uint16
	place uint8
}

type device struct {
	number  uint64
	unified bool // its memory is the host's
	Device
}

// process returns the process with a number. It adds it when no record mentioned it; nil when there are too many.
func (m *Model) process(number uint32) *process {
	hp := m.heap.Process(number)
	switch {
	case hp == nil:
		return nil
	case hp.Place == len(m.processes):
		m.newProcess(hp)
	}
	return m.processes[hp.Place]
}

// lookup returns the process with a number, nil when no record mentioned it.
func (m *Model) lookup(number uint32) *process {
	if hp := m.heap.Lookup(number); hp != nil {
		return m.processes[hp.Place]
	}
	return nil
}

func (m *Model) newProcess(hp *heap.Process) {
	p := &process{tags: map[uint32]*row{}, heap: hp}
	p.shown = Process{Number: hp.Number, Policy: m.policies.first, Status: -1, Started: m.heap.Now()}
	m.openBooks(p)
	p.sizes.Reset(m.seed)
	p.slabs.Reset(m.seed)
	m.processes = append(m.processes, p)
}

// introduce handles PROCESS.
func (m *Model) introduce(p *process, r *wire.Record) {
	program, arguments := wire.ParseProcess(r.Payload)
	p.shown.PID, p.shown.Parent = int(r.AsProcess().PID()), int(r.AsProcess().Parent())
	p.shown.Started = m.heap.Now()
	p.shown.Program, p.shown.Arguments = callsite.Clean(program), nil
	for word := range arguments {
		if len(p.shown.Arguments) == argumentsMax {
			break
		}
		p.shown.Arguments = append(p.shown.Arguments, callsite.Clean(word))
	}
	if m.options.Program == "" {
		m.options.Program, m.options.Arguments = p.shown.Program, p.shown.Arguments
	}
}

// exit handles EXIT. From the process itself it means that exit handlers run: the status is unknown, and buffers may
// still be released. From the session, which has no thread there, it means that the process is gone.
func (m *Model) exit(p *process, r *wire.Record) {
	if p.gone {
		return
	}
	status := -1
	if r.Thread == 0 {
		status, p.gone = int(r.AsExit().Status()), true
	} else {
		p.shown.Orderly = true
	}
	known := p.ended
	m.finish(p, Exited, status, m.heap.Now())
	if p.gone {
		m.killed(p, r.AsExit().OOMKillsNumber())
	}
	if !known || status >= 0 { // the session may know no more than the process said itself
		m.marks.add(m.heap.Now(), wire.KindExit, exitText(&p.shown))
	}
}

// finish notes how a process ended; the last word holds, but an unknown status changes nothing that is known.
func (m *Model) finish(p *process, state State, status int, time uint64) {
	p.changed = true
	if !p.ended {
		p.ended = true
		p.shown.State, p.shown.Ended = state, time
	}
	if status >= 0 {
		p.shown.State, p.shown.Status, p.shown.Ended = state, status, time
	}
}

// Leaving implements heap.Observer: what the process is shown with stays.
func (m observer) Leaving(hp *heap.Process) {
	p := m.processes[hp.Place]
	m.part(p)
	p.kept.rows, p.kept.spread = m.keepRows(p), p.spread()
	if t, ok := p.slabTag(); ok {
		p.left = &t
	}
}

// Left implements heap.Observer.
func (m observer) Left(hp *heap.Process) {
	m.leave(hp)
	m.endSpill(hp)
	p := m.processes[hp.Place]
	restoreRows(p, p.kept.rows)
	p.kept.rows = nil
	p.sizes.Reset(m.seed)
	p.slabs.Reset(m.seed)
	p.kernels, p.placed = callsite.Kernels{}, placedKernels{}
	p.shown.Totals = p.own().ledger.totals()
	p.kept.spread.addTo(&p.shown.Totals)
	p.own().ledger.workings = &m.spent // what still comes shows nowhere
	p.changed = true
}

func (p *process) totals() Totals {
	t := p.own().ledger.totals()
	s := p.spread()
	s.addTo(&t)
	return t
}

// device handles DEVICE: the first one is shown until a context says which one the program uses.
func (m *Model) device(p *process, r *wire.Record) {
	e := r.AsDevice()
	name, driver := wire.ParseDevice(r.Payload)
	d := device{number: e.Device(), unified: e.Unified(), Device: Device{
		Name: callsite.Clean(name), Driver: callsite.Clean(driver), Global: e.Memory(), Largest: e.LargestAlloc(),
	}}
	if len(p.devices) < devicesMax {
		p.devices = append(p.devices, d)
		p.latest = placedScope{}
	}
	if m.chosen == deviceUnknown || m.chosen == deviceAwaited && m.awaited == (awaited{p, d.number}) {
		m.showDevice(d)
	}
}

// deviceOf returns the device of a context of a process, or another one of it where that is not known.
func (m *Model) deviceOf(p *process, scope uint16) Device {
	if d := p.deviceAt(scope); d != nil {
		return d.Device
	}
	return Device{}
}

// deviceAt is deviceOf; nil: none is known.
func (p *process) deviceAt(scope uint16) *device {
	number, known := p.scopes[scope]
	for i := range p.devices {
		if d := &p.devices[i]; known && d.number == number {
			return d
		}
	}
	if len(p.devices) > 0 {
		return &p.devices[0]
	}
	return nil
}

// unified reports whether memory of some device is the host's.
func (p *process) unified() bool {
	return slices.ContainsFunc(p.devices, func(d device) bool { return d.unified })
}

func (m *Model) showDevice(d device) {
	m.shownDevice = d.Device
	if m.chosen == deviceAwaited {
		m.chosen = deviceChosen
		return
	}
	m.chosen = deviceGuessed
}

// context handles CONTEXT: the first one made decides which device is shown.
func (m *Model) context(p *process, c wire.ContextView) {
	if c.Life() != wire.LifeCreate {
		return
	}
	if p.scopes == nil {
		p.scopes = map[uint16]uint64{}
	}
	p.scopes[c.Scope()] = c.Device()
	p.latest = placedScope{}
	if m.chosen == deviceAwaited || m.chosen == deviceChosen {
		return
	}
	m.chosen, m.awaited = deviceAwaited, awaited{p, c.Device()}
	for _, d := range p.devices {
		if d.number == c.Device() {
			m.showDevice(d)
			return
		}
	}
}

// choice says how far the device to show is known.
type choice uint8

const (
	deviceUnknown choice = iota
	deviceGuessed        // the first one that was described
	deviceAwaited        // a context was made for one that is not described yet
	deviceChosen
)

type awaited struct {
	process *process
	number  uint64
}

// processHistoryMax is how many samples the history of one process has at most: there may be thousands.
const processHistoryMax = 150

// view returns the process as it is shown now. Its tags are built anew when an event came, or when their trends went
// on by a second.
func (m *Model) view(p *process) Process {
	p.shown.Machine = p.machine.list()
	if p.changed && !p.heap.Left {
		p.shown.Totals = p.totals()
	}
	if len(m.processes) > 1 {
		if p.changed || p.shown.Tags == nil || !p.ended && p.second != m.second {
			p.shown.Tags, p.second = m.tagsOf(p), m.second
			if t, ok := p.slabTag(); ok {
				p.shown.Tags = append(p.shown.Tags, t)
			}
		}
		p.shown.Window, p.shown.History = p.own().window.last(), p.own().history.list()
	}
	p.changed = false
	return p.shown
}

// turnProcesses closes the slots that have ended, of processes that may still do something.
func (m *Model) turnProcesses(slot uint64) {
	for _, p := range m.processes {
		if p == m.sharer {
			continue
		}
		b := p.own()
		b.turn(slot)
		if !p.heap.Left {
			s := b.ledger.sample(p.spread())
			s.Machine = p.machine.reported()
			b.history.advance(m.options.Started, slot, s)
		}
	}
}

// sample reads the gauges.
func (l *ledger) sample(s spread) Sample {
	t := Totals{Cached: l.Free(), LargestCached: s.largest}
	return Sample{
		InUse: heap.Amount(l.InUse), Cached: t.Cached, Cooling: heap.Amount(l.Cooling), Fragmentation: t.ExternalFragmentation(),
	}
}

// keepRows copies what a process has of each tag, as it is to be shown when its memory is off the common gauges.
func (m *Model) keepRows(p *process) []figures {
	kept := make([]figures, len(p.rows))
	for i, w := range p.rows {
		m.split(w.whole) // which loses what the process holds
		m.refresh(w.figures, p.rows[i:i+1])
		kept[i] = *w.figures
		kept[i].trend.apart()
	}
	return kept
}

func restoreRows(p *process, kept []figures) {
	for i, w := range p.rows {
		k := &kept[i]
		w.live, w.inUse, w.requested = k.live, k.inUse, k.requested
		w.cached, w.cooling, w.blocks = k.cached, k.cooling, k.blocks
		w.trend, w.free = k.trend, k.free
		w.classes.Shrink()
	}
}
