package replay

import (
	"math"
	"strconv"

	"codeberg.org/gpumemtop/gpumemtop/allocator"
	"codeberg.org/gpumemtop/gpumemtop/internal/wire"
)

// resolver turns records into a script. What it finds does not depend on a policy.
type resolver struct {
	script    script
	processes map[uint32]*recordedProcess
	free      []uint32 // slots
	prices    prices

	latest  uint32 // process, with its origin
	current *recordedProcess
}

func newResolver() *resolver { return &resolver{processes: map[uint32]*recordedProcess{}} }

// take appends what a record says to ops.
func (r *resolver) take(record *wire.Record, ops []op) []op {
	if record.Kind == wire.KindLost {
		r.script.facts.lost += record.AsLost().Events()
		return r.eventsLost(ops)
	}
	e := &record.Event
	if !Matters(e) { // such a record must make no difference: others leave it out
		return ops
	}
	o := r.from(record.Process)
	if n := len(o.order.pending); n > 0 && n%overdueEvery == 0 {
		ops = r.emitOverdue(o, moment(e.Time), ops)
	}
	if t := o.order.threads[record.Thread]; t != nil && len(t.deferred) > 0 && e.Kind != wire.KindOrder {
		ops = r.emitDeferred(o, t, ops)
	}
	switch e.Kind {
	case wire.KindDevice:
		o.device(e.AsDevice())
	case wire.KindContext:
		return r.context(o, e.AsContext(), ops)
	case wire.KindCreate:
		return r.create(o, record, ops)
	case wire.KindRelease:
		return r.release(o, record, ops)
	case wire.KindCooled:
		return r.cooled(o, record, ops)
	case wire.KindEvict:
		return r.evicted(o, e.AsEvict(), ops)
	case wire.KindLimit:
		return r.limit(o, record, ops)
	case wire.KindSlab:
		r.slab(o, record)
	case wire.KindOrder:
		return r.order(o, record, ops)
	case wire.KindExit:
		ops = r.end(o, ops)
		if record.Thread == 0 { // the process's own says only that its exit handlers run
			return r.processGone(record, o, ops)
		}
		return ops
	case wire.KindSync:
		return r.emit(&o.order, 0, ops, op{code: opWait, time: moment(e.Time), slot: o.number})
	}
	return ops
}

// moment is a time as policies have it.
func moment(time uint64) int64 { return int64(min(time, math.MaxInt64)) }

// context handles CONTEXT: with the application's last reference or queue its classes end. They stay known, for buffers that it
// still has, until another context has its number.
func (r *resolver) context(o *recordedProcess, e wire.ContextView, ops []op) []op {
	scope := uint16(e.Context())
	o.key = 0
	switch e.Life() {
	case wire.LifeCreate:
		o.contexts[scope] = e.Device()
		o.forget(scope)
	case wire.LifeEnd:
		if o.order.next != 0 && !o.order.unnumbered {
			break // ORDER records ended it, class by class
		}
		ops = append(ops, op{code: opEnd, time: moment(e.Time()), slot: o.number})
		for _, key := range o.keys {
			if key.Scope() == scope {
				ops = append(ops, op{code: opDrop, time: moment(e.Time()), class: o.classes[key]})
			}
		}
	default: // it lives on
	}
	return ops
}

// classOf returns the class of a request, in script.classes.
func (r *resolver) classOf(o *recordedProcess, key wire.Class) uint32 {
	if key == o.key && key != 0 {
		return o.class
	}
	d, known := o.devices[o.contexts[key.Scope()]]
	if !known {
		d = o.first
	}
	request := allocator.Request{
		Max: d.largest, Heap: d.memory, Align: d.align, Pinned: key.Access()&wire.AllocHostPtr != 0,
		Exact: key.Access()&wire.CopyHostPtr != 0 || key.Shape() > 0,
	}
	if request.Exact || key.Shape() != 0 { // the driver copies as much as it creates; images, SVM and USM are no parts of slabs
		request.Align = 0
	}
	i, there := o.classes[key]
	if there {
		request.Class = r.script.classes[i].request.Class
	} else {
		o.made++
		request.Class = o.made
		o.keys = append(o.keys, key)
	}
	if !there || r.script.classes[i].request != request { // the device was described since
		i = uint32(len(r.script.classes))
		r.script.classes = append(r.script.classes, class{process: o.number, constant: d.constant, request: request})
		o.classes[key] = i
	}
	o.key, o.class = key, i
	return i
}

// create handles CREATE.
func (r *resolver) create(o *recordedProcess, record *wire.Record, ops []op) []op {
	f, e := &r.script.facts, record.AsCreate()
	r.prices.create(e)
	t := o.order.threads[record.Thread]
	if e.Pooled() && !e.CarriedOver() {
		t = o.order.of(record.Thread)
	}
	ops, marks := r.emitAttempts(o, t, e, ops)
	switch e.Outcome() {
	case wire.OutcomeHit:
		f.hits++
	case wire.OutcomeMiss:
		f.misses++
	case wire.OutcomeFailed:
		if !lacksMemory(e) {
			return ops
		}
		step := op{
			code: opFail, time: moment(e.Start()), size: max(e.Requested(), 1), class: r.classOf(o, e.Class()), tag: allocator.Tag(e.Tag()), mark: marks,
		}
		if t != nil {
			step.mark |= numbered
		}
		return r.emit(&o.order, 0, ops, step)
	default:
		if e.CarriedOver() {
			f.before++
		} else {
			f.unpooled++
		}
		return ops
	}
	f.requests++
	slot := r.slot()
	o.objects[e.Object()] = slot
	class := r.classOf(o, e.Class())
	if marks&whole != 0 || r.script.classes[class].request.Align == 0 {
		f.whole++
	}
	return r.request(o, t, e, ops, op{
		code: opCreate, time: moment(e.Start()), size: max(e.Requested(), 1), slot: slot, class: class, tag: allocator.Tag(e.Tag()), mark: marks,
	})
}

// slab handles SLAB.
func (r *resolver) slab(o *recordedProcess, record *wire.Record) {
	e := record.AsSlab()
	if e.Status() != 0 || e.CarriedOver() {
		return
	}
	measured(&r.prices.creates, e.Bytes(), e.Cost())
	if t := o.order.threads[record.Thread]; t != nil {
		t.grown = true
	}
}

// lacksMemory reports whether a create failed that a policy was asked for, because there was no memory. Of one with
// contents to copy it is unknown whether the policy was asked.
func lacksMemory(e wire.CreateView) bool {
	const objectAllocation, outOfResources, outOfHostMemory = -4, -5, -6 // CL_MEM_OBJECT_ALLOCATION_FAILURE and so on
	short := e.Status() == objectAllocation || e.Status() == outOfResources || e.Status() == outOfHostMemory
	return short && e.Memory() == wire.MemoryBuffer && e.Access()&(wire.UseHostPtr|wire.CopyHostPtr) == 0 && e.Requested() > 0
}

// slot returns one that is empty.
func (r *resolver) slot() uint32 {
	if last := len(r.free) - 1; last >= 0 {
		slot := r.free[last]
		r.free = r.free[:last]
		return slot
	}
	r.script.slots++
	return r.script.slots - 1
}

// release handles RELEASE of the last reference.
func (r *resolver) release(o *recordedProcess, record *wire.Record, ops []op) []op {
	e := record.AsRelease()
	r.prices.release(e)
	number, outcome := uint64(0), e.Outcome()
	if outcome == wire.OutcomeCached || outcome == wire.OutcomeCooling || outcome == wire.OutcomeRefused {
		if t := o.order.of(record.Thread); t != nil {
			number = t.next()
		}
	}
	slot, known := o.objects[e.Object()]
	if !known || e.References() > 0 || outcome == wire.OutcomePinned {
		return r.emit(&o.order, number, ops)
	}
	delete(o.objects, e.Object())
	races := e.WouldRace()
	step := op{time: moment(e.Time()), slot: slot}
	switch {
	case outcome == wire.OutcomeCooling:
		step.code = opCool
		o.cooling[e.Block()] = slot
	case outcome == wire.OutcomeRefused && !e.SubAllocation():
		o.refused[e.Block()] = refusedRelease{slot, step.time, races, number}
		if number != 0 {
			return ops // its turn comes when it is known why
		}
		step.code = opRefuse
	case outcome == wire.OutcomeCached || !races:
		step.code = opFree
	default:
		step.code = opFreeEarly
	}
	if outcome == wire.OutcomeDriver && e.Block() != 0 {
		step.mark = unseen
	}
	return r.emit(&o.order, number, ops, step)
}

// cooled handles COOLED of a block of the recording.
func (r *resolver) cooled(o *recordedProcess, record *wire.Record, ops []op) []op {
	e := record.AsCooled()
	step := op{code: opNone, time: moment(e.Time())} // of an unknown block
	if slot, known := o.cooling[e.Block()]; known {
		delete(o.cooling, e.Block())
		step.code, step.slot = opCooled, slot
	}
	if t := o.order.newcomer(record.Thread); t != nil {
		t.deferred = append(t.deferred, step)
		return ops
	}
	if step.code != opCooled {
		return ops
	}
	return r.emit(&o.order, 0, ops, step)
}

// evicted handles EVICT: it says why a release was refused. A block that the program left unfit for reuse is unfit
// here, too; what the recorded policy did not want is for this one to judge.
func (r *resolver) evicted(o *recordedProcess, e wire.EvictView, ops []op) []op {
	measured(&r.prices.releases, e.Bytes(), e.Cost())
	if slot, known := o.cooling[e.Block()]; known {
		delete(o.cooling, e.Block())
		ops = r.emit(&o.order, 0, ops, op{code: opLose, time: moment(e.Time()), slot: slot})
	}
	d, known := o.refused[e.Block()]
	if !known {
		return ops
	}
	delete(o.refused, e.Block())
	step := op{code: opFree, time: d.time, slot: d.slot}
	switch {
	case e.Reason() == wire.EvictState:
		step.code = opForget
	case d.races:
		step.code = opFreeEarly
	}
	return r.emit(&o.order, d.number, ops, step)
}

// limit handles LIMIT: a limit that was changed, as NAME=VALUE, or the bytes that the pool was trimmed to.
func (r *resolver) limit(o *recordedProcess, record *wire.Record, ops []op) []op {
	if record.AsLimit().Status() != 0 {
		return ops // it was not changed
	}
	number := uint64(0)
	if t := o.order.of(record.Thread); t != nil {
		number = t.next()
	}
	var c change
	name, value := wire.ParseLimit(record.Payload)
	if value != nil {
		c = change{name: string(name), value: string(value)}
	} else {
		keep, err := strconv.ParseUint(string(name), 10, 64)
		if err != nil {
			return r.emit(&o.order, number, ops)
		}
		c.keep = keep
	}
	if c.name == wire.PolicySetting {
		r.script.facts.switches++
	}
	r.script.changes = append(r.script.changes, c)
	return r.emit(&o.order, number, ops, op{code: opChange, time: moment(record.Time), slot: o.number, class: uint32(len(r.script.changes) - 1)})
}
