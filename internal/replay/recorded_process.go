package replay

import (
	"maps"
	"slices"

	"codeberg.org/gpumemtop/gpumemtop/allocator"
	"codeberg.org/gpumemtop/gpumemtop/internal/wire"
)

// recordedProcess is one process of a recording.
type recordedProcess struct {
	number   uint32 // its place
	devices  map[uint64]device
	first    device                // the first that was described
	contexts map[uint16]uint64     // number modulo 65536 to first device
	classes  map[wire.Class]uint32 // to script.classes
	keys     []wire.Class          // of classes, in the order of their first requests
	made     allocator.Class       // the latest
	key      wire.Class            // of the latest request, with its class
	class    uint32

	order   sequencer
	objects map[uint64]uint32         // number in the recording to slot
	cooling map[uint64]uint32         // by the number that the recording's block had
	refused map[uint64]refusedRelease // the same: a later record says why they went to the driver
}

// refusedRelease is a buffer that was released.
type refusedRelease struct {
	slot   uint32
	time   int64
	races  bool   // commands still used it
	number uint64 // of the decision
}

// device is what a recording says about one.
type device struct{ memory, largest, constant, align uint64 }

// from returns a process.
func (r *resolver) from(number uint32) *recordedProcess {
	if r.current != nil && r.latest == number {
		return r.current
	}
	o := r.processes[number]
	if o == nil {
		o = &recordedProcess{
			number: r.script.facts.processes, devices: map[uint64]device{}, contexts: map[uint16]uint64{}, classes: map[wire.Class]uint32{},
			objects: map[uint64]uint32{}, cooling: map[uint64]uint32{}, refused: map[uint64]refusedRelease{},
		}
		r.script.facts.processes++
		r.script.origins = append(r.script.origins, number)
		r.processes[number] = o
	}
	r.latest, r.current = number, o
	return o
}

// processGone ends a process. Its policies and what is known of it take memory, and there may be many, one after the other.
func (r *resolver) processGone(record *wire.Record, o *recordedProcess, ops []op) []op {
	time := moment(record.Time)
	slots := slices.AppendSeq(slices.Collect(maps.Values(o.objects)), maps.Values(o.cooling))
	for _, d := range o.refused {
		slots = append(slots, d.slot)
	}
	slices.Sort(slots)
	for _, slot := range slots {
		ops = r.appendOps(ops, []op{{code: opGone, time: time, slot: slot}})
	}
	delete(r.processes, record.Process)
	r.current = nil
	return append(ops, op{code: opExit, time: time, slot: o.number})
}

func (o *recordedProcess) device(e wire.DeviceView) {
	d := device{memory: e.Memory(), largest: e.LargestAlloc(), constant: e.Constant(), align: uint64(e.Align())}
	if len(o.devices) == 0 {
		o.first = d
	}
	o.devices[e.Device()] = d
	o.key = 0
}

// forget takes the classes of a context out of the books, whose number another one has now.
func (o *recordedProcess) forget(scope uint16) {
	o.keys = slices.DeleteFunc(o.keys, func(key wire.Class) bool {
		gone := key.Scope() == scope
		if gone {
			delete(o.classes, key)
		}
		return gone
	})
}
