package replay

import (
	"maps"
	"slices"

	"codeberg.org/gpumemtop/gpumemtop/allocator"
	"codeberg.org/gpumemtop/gpumemtop/internal/wire"
)

// recordedProcess is one process of a recording.
type recordedProcess struct {
	number       uint32 // its index
	devices      map[uint64]device
	first        device                // the first device that was described
	contexts     map[uint16]uint64     // context number modulo 65536 to its first device
	classes      map[wire.Class]uint32 // to script.classes
	keys         []wire.Class          // the keys of classes, in the order of their first requests
	lastNewClass allocator.Class       // the newest class number
	lastKey      wire.Class            // of the latest request; 0: look it up again
	lastClass    uint32

	order   sequencer
	objects map[uint64]uint32         // object number to slot
	cooling map[uint64]uint32         // recorded block to slot
	refused map[uint64]refusedRelease // by recorded block: a later record says why these went to the driver
}

// refusedRelease is a released buffer whose block the recorded policy refused.
type refusedRelease struct {
	slot   uint32
	time   int64
	races  bool   // commands still used it
	number uint64 // of the decision
}

// device is a recorded device.
type device struct{ memory, largest, constant, align uint64 }

// processOf returns the process with a number, which may be new.
func (r *resolver) processOf(number uint32) *recordedProcess {
	if r.current != nil && r.latest == number {
		return r.current
	}
	p := r.processes[number]
	if p == nil {
		p = &recordedProcess{
			number: r.script.facts.processes, devices: map[uint64]device{}, contexts: map[uint16]uint64{}, classes: map[wire.Class]uint32{},
			objects: map[uint64]uint32{}, cooling: map[uint64]uint32{}, refused: map[uint64]refusedRelease{},
		}
		r.script.facts.processes++
		r.script.processNumbers = append(r.script.processNumbers, number)
		r.processes[number] = p
	}
	r.latest, r.current = number, p
	return p
}

// resolveEndedProcess ends a process and frees its tables: many processes may run one after the other.
func (r *resolver) resolveEndedProcess(record *wire.Record, p *recordedProcess, ops []op) []op {
	time := toPolicyTime(record.Time)
	slots := slices.AppendSeq(slices.Collect(maps.Values(p.objects)), maps.Values(p.cooling))
	for _, d := range p.refused {
		slots = append(slots, d.slot)
	}
	slices.Sort(slots)
	for _, slot := range slots {
		ops = r.appendStepsAndFreeSlots(ops, []op{{code: opGone, time: time, slot: slot}})
	}
	delete(r.processes, record.Process)
	r.current = nil
	return append(ops, op{code: opExit, time: time, slot: p.number})
}

func (p *recordedProcess) noteDevice(e wire.DeviceView) {
	d := device{memory: e.Memory(), largest: e.LargestAlloc(), constant: e.Constant(), align: uint64(e.Align())}
	if len(p.devices) == 0 {
		p.first = d
	}
	p.devices[e.Device()] = d
	p.lastKey = 0
}

// forgetContext forgets the classes of an ended context whose number a new context has.
func (p *recordedProcess) forgetContext(scope uint16) {
	p.keys = slices.DeleteFunc(p.keys, func(key wire.Class) bool {
		ended := key.ContextNumber() == scope
		if ended {
			delete(p.classes, key)
		}
		return ended
	})
}
