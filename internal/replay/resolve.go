package replay

import (
	"math"
	"strconv"

	"codeberg.org/gpumemtop/gpumemtop/allocator"
	"codeberg.org/gpumemtop/gpumemtop/internal/wire"
)

// resolver turns records into steps of a script. The steps do not depend on a policy.
type resolver struct {
	script    script
	processes map[uint32]*recordedProcess
	free      []uint32 // unused slots
	costs     driverCosts

	latest  uint32           // number of current
	current *recordedProcess // the process of the latest record
}

func newResolver() *resolver { return &resolver{processes: map[uint32]*recordedProcess{}} }

// appendStepsOf appends the steps of a record to ops.
func (r *resolver) appendStepsOf(record *wire.Record, ops []op) []op {
	if record.Kind == wire.KindLost {
		r.script.facts.lost += record.AsLost().Events()
		return r.stopUsingDecisionNumbers(ops)
	}
	e := &record.Event
	if !ConcernsPolicy(e) { // callers may leave such records out
		return ops
	}
	p := r.processOf(record.Process)
	if n := len(p.order.pending); n > 0 && n%overdueEvery == 0 {
		ops = r.emitOverdueCoolings(p, toPolicyTime(e.Time), ops)
	}
	if t := p.order.threads[record.Thread]; t != nil && len(t.deferred) > 0 && e.Kind != wire.KindOrder {
		ops = r.emitDeferredCoolings(p, t, ops)
	}
	switch e.Kind {
	case wire.KindDevice:
		p.noteDevice(e.AsDevice())
	case wire.KindContext:
		return r.resolveContext(p, e.AsContext(), ops)
	case wire.KindCreate:
		return r.resolveCreate(p, record, ops)
	case wire.KindRelease:
		return r.resolveRelease(p, record, ops)
	case wire.KindCooled:
		return r.resolveCooled(p, record, ops)
	case wire.KindEvict:
		return r.resolveEvict(p, e.AsEvict(), ops)
	case wire.KindLimit:
		return r.resolveLimit(p, record, ops)
	case wire.KindSlab:
		r.resolveSlab(p, record)
	case wire.KindOrder:
		return r.resolveOrder(p, record, ops)
	case wire.KindExit:
		ops = r.emitPendingStepsOfProcess(p, ops)
		if record.Thread == 0 { // with a thread, the record says only that exit handlers run
			return r.resolveEndedProcess(record, p, ops)
		}
		return ops
	case wire.KindSync:
		return r.emitInOrder(&p.order, 0, ops, op{code: opWait, time: toPolicyTime(e.Time), slot: p.number})
	}
	return ops
}

// toPolicyTime converts a time to the type that policies use.
func toPolicyTime(time uint64) int64 { return int64(min(time, math.MaxInt64)) }

// resolveContext handles CONTEXT: when the application's last reference or queue is gone, the context's classes end.
// They stay known for buffers that still live, until another context has the same number.
func (r *resolver) resolveContext(p *recordedProcess, e wire.ContextView, ops []op) []op {
	scope := uint16(e.Context())
	p.lastKey = 0
	switch e.Life() {
	case wire.LifeCreate:
		p.contexts[scope] = e.Device()
		p.forgetContext(scope)
	case wire.LifeEnd:
		if p.order.next != 0 && !p.order.unnumbered {
			break // ORDER records end the classes one by one
		}
		ops = append(ops, op{code: opEnd, time: toPolicyTime(e.Time()), slot: p.number})
		for _, key := range p.keys {
			if key.ContextNumber() == scope {
				ops = append(ops, op{code: opDrop, time: toPolicyTime(e.Time()), class: p.classes[key]})
			}
		}
	default: // the context continues to live
	}
	return ops
}

// classOf returns the index of a request's class in script.classes.
func (r *resolver) classOf(p *recordedProcess, key wire.Class) uint32 {
	if key == p.lastKey && key != 0 {
		return p.lastClass
	}
	d, known := p.devices[p.contexts[key.ContextNumber()]]
	if !known {
		d = p.first
	}
	request := allocator.Request{
		Max: d.largest, Heap: d.memory, Align: d.align, Pinned: key.MemoryFlags()&wire.AllocHostPtr != 0,
		Exact: key.MemoryFlags()&wire.CopyHostPtr != 0 || key.Shape() > 0,
	}
	if request.Exact || key.Shape() != 0 { // the driver copies whole blocks; images, SVM and USM are never sub-allocations
		request.Align = 0
	}
	i, there := p.classes[key]
	if there {
		request.Class = r.script.classes[i].request.Class
	} else {
		p.lastNewClass++
		request.Class = p.lastNewClass
		p.keys = append(p.keys, key)
	}
	if !there || r.script.classes[i].request != request { // a later record described the device
		i = uint32(len(r.script.classes))
		r.script.classes = append(r.script.classes, class{process: p.number, constant: d.constant, request: request})
		p.classes[key] = i
	}
	p.lastKey, p.lastClass = key, i
	return i
}

// resolveCreate handles CREATE.
func (r *resolver) resolveCreate(p *recordedProcess, record *wire.Record, ops []op) []op {
	f, e := &r.script.facts, record.AsCreate()
	r.costs.addCreate(e)
	t := p.order.threads[record.Thread]
	if e.WasPooled() && !e.CarriedOver() {
		t = p.order.threadIfOrdered(record.Thread)
	}
	ops, marks := r.emitGivenUpDecisions(p, t, e, ops)
	switch e.Outcome() {
	case wire.OutcomeHit:
		f.hits += oneIfJudged(e)
	case wire.OutcomeMiss:
		f.misses += oneIfJudged(e)
	case wire.OutcomeFailed:
		if !failedForLackOfMemory(e) {
			return ops
		}
		step := op{
			code: opFail, time: toPolicyTime(e.Start()), size: max(e.Requested(), 1), class: r.classOf(p, e.Class()), tag: allocator.Tag(e.Tag()), mark: marks,
		}
		if t != nil {
			step.mark |= numbered
		}
		return r.emitInOrder(&p.order, 0, ops, step)
	default:
		if e.CarriedOver() {
			f.carriedOver++
		} else {
			f.unpooled++
		}
		return ops
	}
	f.requests++
	slot := r.newSlot()
	p.objects[e.Object()] = slot
	class := r.classOf(p, e.Class())
	if marks&needsBlock != 0 || r.script.classes[class].request.Align == 0 {
		f.needsBlock++
	}
	return r.emitRequest(p, t, e, ops, op{
		code: opCreate, time: toPolicyTime(e.Start()), size: max(e.Requested(), 1), slot: slot, class: class, tag: allocator.Tag(e.Tag()), mark: marks,
	})
}

// oneIfJudged counts a request that the present configuration served.
func oneIfJudged(e wire.CreateView) uint64 {
	if e.Arm() {
		return 0
	}
	return 1
}

// resolveSlab handles SLAB.
func (r *resolver) resolveSlab(p *recordedProcess, record *wire.Record) {
	e := record.AsSlab()
	if e.Status() != 0 || e.CarriedOver() {
		return
	}
	addTimedCall(&r.costs.creates, e.Bytes(), e.Cost())
	if t := p.order.threads[record.Thread]; t != nil {
		t.slabNext = true
	}
}

// failedForLackOfMemory reports whether a policy was asked for a create that failed for lack of memory. For creates that copy
// contents it is unknown whether the policy was asked.
func failedForLackOfMemory(e wire.CreateView) bool {
	const objectAllocation, outOfResources, outOfHostMemory = -4, -5, -6 // CL_MEM_OBJECT_ALLOCATION_FAILURE and so on
	short := e.Status() == objectAllocation || e.Status() == outOfResources || e.Status() == outOfHostMemory
	return short && e.Memory() == wire.MemoryBuffer && e.Access()&(wire.UseHostPtr|wire.CopyHostPtr) == 0 && e.Requested() > 0
}

// newSlot returns an unused slot.
func (r *resolver) newSlot() uint32 {
	if last := len(r.free) - 1; last >= 0 {
		slot := r.free[last]
		r.free = r.free[:last]
		return slot
	}
	r.script.slots++
	return r.script.slots - 1
}

// resolveRelease handles RELEASE of the last reference.
func (r *resolver) resolveRelease(p *recordedProcess, record *wire.Record, ops []op) []op {
	e := record.AsRelease()
	r.costs.addRelease(e)
	number, outcome := uint64(0), e.Outcome()
	if outcome == wire.OutcomeCached || outcome == wire.OutcomeCooling || outcome == wire.OutcomeRefused {
		if t := p.order.threadIfOrdered(record.Thread); t != nil {
			number = t.nextDecisionNumber()
		}
	}
	slot, known := p.objects[e.Object()]
	if !known || e.References() > 0 || outcome == wire.OutcomePinned {
		return r.emitInOrder(&p.order, number, ops)
	}
	delete(p.objects, e.Object())
	races := e.WouldRace()
	step := op{time: toPolicyTime(e.Time()), slot: slot}
	switch {
	case outcome == wire.OutcomeCooling:
		step.code = opCool
		p.cooling[e.Block()] = slot
	case outcome == wire.OutcomeRefused && !e.SubAllocation():
		p.refused[e.Block()] = refusedRelease{slot, step.time, races, number}
		if number != 0 {
			return ops // EVICT says why, and emits the step
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
	return r.emitInOrder(&p.order, number, ops, step)
}

// resolveCooled handles COOLED of a recorded block.
func (r *resolver) resolveCooled(p *recordedProcess, record *wire.Record, ops []op) []op {
	e := record.AsCooled()
	step := op{code: opNone, time: toPolicyTime(e.Time())} // unless the block is known
	if slot, known := p.cooling[e.Block()]; known {
		delete(p.cooling, e.Block())
		step.code, step.slot = opCooled, slot
	}
	if t := p.order.threadOrNew(record.Thread); t != nil {
		t.deferred = append(t.deferred, step)
		return ops
	}
	if step.code != opCooled {
		return ops
	}
	return r.emitInOrder(&p.order, 0, ops, step)
}

// resolveEvict handles EVICT, which says why a release was refused. A block that the program left unfit for reuse is
// unfit in the simulation, too. A block that the recorded policy did not want is offered to the simulated policy.
func (r *resolver) resolveEvict(p *recordedProcess, e wire.EvictView, ops []op) []op {
	addTimedCall(&r.costs.releases, e.Bytes(), e.Cost())
	if slot, known := p.cooling[e.Block()]; known {
		delete(p.cooling, e.Block())
		ops = r.emitInOrder(&p.order, 0, ops, op{code: opLose, time: toPolicyTime(e.Time()), slot: slot})
	}
	d, known := p.refused[e.Block()]
	if !known {
		return ops
	}
	delete(p.refused, e.Block())
	step := op{code: opFree, time: d.time, slot: d.slot}
	switch {
	case e.Reason() == wire.EvictState:
		step.code = opForget
	case d.races:
		step.code = opFreeEarly
	}
	return r.emitInOrder(&p.order, d.number, ops, step)
}

// resolveLimit handles LIMIT: a changed limit, as NAME=VALUE, or the bytes that the pool was trimmed to.
func (r *resolver) resolveLimit(p *recordedProcess, record *wire.Record, ops []op) []op {
	if record.AsLimit().Status() != 0 {
		return ops // the change failed
	}
	number := uint64(0)
	if t := p.order.threadIfOrdered(record.Thread); t != nil {
		number = t.nextDecisionNumber()
	}
	var c change
	name, value := wire.ParseLimit(record.Payload)
	if value != nil {
		c = change{name: string(name), value: string(value)}
	} else {
		keep, err := strconv.ParseUint(string(name), 10, 64)
		if err != nil {
			return r.emitInOrder(&p.order, number, ops)
		}
		c.keep = keep
	}
	if c.name == wire.PolicySetting {
		r.script.facts.switches++
	}
	r.script.changes = append(r.script.changes, c)
	return r.emitInOrder(&p.order, number, ops, op{code: opChange, time: toPolicyTime(record.Time), slot: p.number, class: uint32(len(r.script.changes) - 1)})
}
