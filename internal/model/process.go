package model

import (
	"bytes"

	"codeberg.org/gpumemtop/gpumemtop/internal/wire"
)

// Bounds on what a target can make the model keep.
const (
	processesMax = 4096 // further processes are only counted, in Unknown
	devicesMax   = 16   // per process
	argumentsMax = 1024 // per process
)

// grace is how long after a process began to exit its memory is taken off the gauges when nobody says that it is
// gone: exit handlers may still release buffers.
const grace = 1_000_000_000

// process is one target process.
type process struct {
	shown   Process // what a snapshot shows; its totals are those at the last snapshot
	changed bool    // since then
	ended   bool    // its exit handlers ran, or it is gone
	gone    bool    // it surely does nothing any more
	removed bool    // its memory is off the common gauges

	ledger  ledger
	objects table // number to place in Model.objects
	blocks  table // number to place in Model.blocks
	tags    map[uint32]*row
	sizes   sizes   // of cached blocks
	squares squares // of cached blocks
	slabs   sizes
	carved  map[uint32]int // slabs by class
	told    told           // of the free ranges in slabs
	left    *Tag           // what its slabs had when they were taken off the gauges, nil: nothing

	devices []device
	kernels Kernels

	rows    []*row // parts of the wholes
	second  uint64 // of the session, when they were shown last
	window  window
	history history
	since   since
	lost    uint64 // events
	born    uint64 // the slot that the history begins with
}

type device struct {
	number uint64
	Device
}

// process returns the process with a number, which it makes on first mention; nil when there are too many.
func (m *Model) process(number uint32) *process {
	if m.latest != nil && m.latest.shown.Number == number {
		return m.latest
	}
	p := m.numbers[number]
	if p == nil {
		if len(m.processes) == processesMax {
			return nil
		}
		p = m.newProcess(number)
	}
	m.latest = p
	return p
}

func (m *Model) newProcess(number uint32) *process {
	p := &process{tags: map[uint32]*row{}, carved: map[uint32]int{}}
	p.shown = Process{Number: number, Policy: m.policies.first, Status: -1, Started: m.now}
	p.window.slot, p.born, p.history.most = m.window.slot, m.window.slot, processHistoryMax
	p.objects.seed, p.blocks.seed, p.sizes.index.seed, p.slabs.index.seed = m.seed, m.seed, m.seed, m.seed
	m.numbers[number] = p
	m.processes = append(m.processes, p)
	m.settle()
	return p
}

// introduce handles PROCESS.
func (m *Model) introduce(p *process, r *wire.Record) {
	p.shown.PID, p.shown.Parent = int(r.Object), int(r.Link)
	p.shown.Started = m.now
	p.shown.Program, p.shown.Arguments = "", nil
	for word := range bytes.SplitSeq(bytes.TrimSuffix(r.Payload, []byte{0}), []byte{0}) {
		switch {
		case p.shown.Program == "":
			p.shown.Program = Clean(word)
		case len(p.shown.Arguments) < argumentsMax:
			p.shown.Arguments = append(p.shown.Arguments, Clean(word))
		}
	}
	if m.options.Program == "" {
		m.options.Program, m.options.Arguments = p.shown.Program, p.shown.Arguments
	}
}

// exit handles EXIT. From the process itself it means that exit handlers run: the status is not known yet, and
// buffers may still be released. From the session, which has no thread there, it means that the process is gone.
func (m *Model) exit(p *process, r *wire.Record) {
	if p.gone {
		return
	}
	status := -1
	if r.Thread == 0 {
		status, p.gone = int(r.Status), true
	} else {
		p.shown.Orderly = true
	}
	known := p.ended
	m.finish(p, Exited, status, m.now)
	if !known || status >= 0 { // the session may know no more than the process said itself
		m.marks.add(m.now, wire.KindExit, exitText(&p.shown))
	}
	m.settle()
}

// finish notes how a process ended; the last word holds, but an unknown status changes nothing that is known.
func (m *Model) finish(p *process, state State, status int, time uint64) {
	p.changed = true
	if !p.ended {
		p.ended = true
		p.shown.State, p.shown.Ended = state, time
		m.leaving++
	}
	if status >= 0 {
		p.shown.State, p.shown.Status, p.shown.Ended = state, status, time
	}
}

// settle takes the memory of processes that are gone off the common gauges, as soon as another one runs: the last
// to end leave theirs, so that the final screen shows what was left.
func (m *Model) settle() {
	if m.leaving == 0 || !m.anyRunning() {
		return
	}
	for _, p := range m.processes {
		if p.ended && !p.removed && (p.gone || m.now-p.shown.Ended >= grace) {
			m.remove(p)
		}
	}
}

func (m *Model) anyRunning() bool {
	for _, p := range m.processes {
		if !p.ended {
			return true
		}
	}
	return false
}

// remove ends all objects and blocks of a process. Its own totals stay as they were.
func (m *Model) remove(p *process) {
	kept, rows, spread := p.ledger, m.keepRows(p), p.spread()
	if t, ok := p.slabTag(); ok {
		p.left = &t
	}
	var places []int32
	var numbers []uint64
	p.objects.all(func(number uint64, place int32) {
		numbers, places = append(numbers, number), append(places, place)
	})
	for i, place := range places {
		m.end(p, numbers[i], place)
	}
	places = places[:0]
	p.blocks.all(func(_ uint64, place int32) { places = append(places, place) })
	for _, place := range places {
		m.forget(p, place)
	}
	p.ledger = kept
	restoreRows(p, rows)
	p.objects.clear()
	p.blocks.clear()
	p.sizes, p.slabs = sizes{index: table{seed: m.seed}}, sizes{index: table{seed: m.seed}}
	p.kernels = Kernels{}
	p.shown.Totals = p.ledger.totals()
	spread.addTo(&p.shown.Totals)
	p.changed, p.removed = true, true
	m.leaving--
	if m.options.Removed != nil {
		m.options.Removed(p.shown.Number)
	}
}

func (p *process) totals() Totals {
	t := p.ledger.totals()
	s := p.spread()
	s.addTo(&t)
	return t
}

// device handles DEVICE: the first one is shown until a context says which one the program uses.
func (m *Model) device(p *process, r *wire.Record) {
	name, driver, _ := bytes.Cut(bytes.TrimRight(r.Payload, "\x00"), []byte{0})
	d := device{number: r.Object, Device: Device{
		Name: Clean(name), Driver: Clean(driver), Global: r.Granted, LargestAlloc: r.Link,
	}}
	if len(p.devices) < devicesMax {
		p.devices = append(p.devices, d)
	}
	if m.chosen == deviceUnknown || m.chosen == deviceAwaited && m.awaited == (awaited{p, d.number}) {
		m.showDevice(d)
	}
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
func (m *Model) context(p *process, e *wire.Event) {
	if wire.Life(e.Op) != wire.LifeCreate || m.chosen == deviceAwaited || m.chosen == deviceChosen {
		return
	}
	m.chosen, m.awaited = deviceAwaited, awaited{p, e.Link}
	for _, d := range p.devices {
		if d.number == e.Link {
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
