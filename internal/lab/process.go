package lab

import (
	"maps"
	"slices"

	"codeberg.org/gpumemtop/gpumemtop/allocator"
	"codeberg.org/gpumemtop/gpumemtop/internal/wire"
)

// Bits of cl_mem_flags that decide what a policy may do with a request (OpenCL 3.0 §5.2.1).
const (
	allocHostPointer = 1 << 4
	copyHostPointer  = 1 << 5
)

// process is one process of a recording with a policy of its own.
type process struct {
	replay   *replay
	policy   allocator.Policy
	capacity uint64
	time     int64 // of the latest record, never goes back

	devices  map[uint64]device
	first    device            // the first that was described
	contexts map[uint16]uint64 // number modulo 65536 to first device
	classes  map[uint32]allocator.Class

	objects map[uint64]held            // by their numbers in the recording
	cooling map[uint64]allocator.Block // by the number that the recording's block had
	refused map[uint64]held            // the same: why they went to the driver is still to be told
	raced   []allocator.Block          // cooling until the next wait or finish

	fullest allocator.Stats // when most was free, of the moments before contexts ended and the last

	holdings
	was       holdings // when the totals were brought up to date
	evictions []allocator.Eviction
}

// holdings are bytes now.
type holdings struct{ inUse, wanted, reserved uint64 }

// held is what an object of the application has in the replay.
type held struct {
	block  allocator.Block
	size   uint64 // of the block
	wanted uint64
	slab   bool // a part of one
	direct bool // of the driver's own, the policy knows nothing of it
	races  bool // commands still used it when it was released
}

// device is what a recording tells of one.
type device struct{ memory, largest, align uint64 }

func (p *process) device(e *wire.Event) {
	d := device{memory: e.Granted, largest: e.Link, align: uint64(e.Tag)}
	if len(p.devices) == 0 {
		p.first = d
	}
	p.devices[e.Object] = d
}

// context handles CONTEXT: with the application's last reference its classes end.
func (p *process) context(e *wire.Event) {
	scope := uint16(e.Object)
	switch wire.Life(e.Op) {
	case wire.LifeCreate:
		p.contexts[scope] = e.Link
	case wire.LifeEnd:
		p.note()
		for _, key := range slices.Sorted(maps.Keys(p.classes)) {
			if uint16(key>>16) == scope {
				p.evictions = p.policy.DropClass(p.classes[key], p.evictions[:0])
				p.give()
			}
		}
	default: // it lives on
	}
}

// request is what the shim would have asked the policy.
func (p *process) request(e *wire.Event) allocator.Request {
	d, known := p.devices[p.contexts[e.Scope]]
	if !known {
		d = p.first
	}
	req := allocator.Request{
		Size: e.Size, Max: d.largest, Heap: d.memory, Align: d.align, Class: p.class(e), Tag: allocator.Tag(e.Tag), Time: p.time,
		Pinned: e.Access&allocHostPointer != 0,
	}
	if e.Access&copyHostPointer != 0 { // the driver copies as much as it creates
		req.Exact, req.Align = true, 0
	}
	return req
}

func (p *process) class(e *wire.Event) allocator.Class {
	key := uint32(e.Scope)<<16 | uint32(e.Access)
	class := p.classes[key]
	if class == 0 {
		class = allocator.Class(len(p.classes) + 1)
		p.classes[key] = class
	}
	return class
}

// create handles CREATE.
func (p *process) create(e *wire.Event) {
	out := &p.replay.result
	switch e.Outcome {
	case wire.OutcomeHit:
		out.Recorded.Hits++
	case wire.OutcomeMiss:
		out.Recorded.Misses++
	case wire.OutcomeFailed:
		return
	default:
		if e.Flags&wire.FlagCarried != 0 {
			out.Before++
		} else {
			out.Unpooled++
		}
		return
	}
	out.Requests++
	if h, ok := p.serve(p.request(e)); ok {
		p.objects[e.Object] = h
		p.inUse += h.size
		p.wanted += h.wanted
	} else {
		out.Failures++
	}
	p.replay.hold(p)
}

// serve asks the policy and does what it says, as the shim does: for a slab that does not fit nothing is given up, but
// the request gets a block of its own; where the driver has no more for that, what the policy gives up makes room, then
// the request is met as it came.
func (p *process) serve(req allocator.Request) (held, bool) {
	plan := p.plan(req)
	switch {
	case plan.Slab == 0 || plan.SlabSize == 0:
	case p.fits(plan.SlabSize):
		p.take(plan.SlabSize)
		p.policy.Grown(plan)
	default:
		p.policy.Abort(plan)
		req.Align = 0
		plan = p.plan(req)
	}
	if plan.Slab == 0 && !plan.Hit && !p.allocate(plan.Size) {
		p.policy.Abort(plan)
		if plan.Size == req.Size || !p.allocate(req.Size) {
			return held{}, false
		}
		p.replay.result.Direct++
		return held{direct: true, size: req.Size, wanted: req.Size}, true
	}
	p.policy.Commit(plan)
	return held{block: plan.Block, size: plan.Size, wanted: req.Size, slab: plan.Slab != 0}, true
}

func (p *process) plan(req allocator.Request) allocator.Plan {
	var plan allocator.Plan
	plan, p.evictions = p.policy.Plan(req, p.evictions[:0])
	p.give()
	return plan
}

// fits reports whether the driver has so much.
func (p *process) fits(size uint64) bool {
	return p.capacity == 0 || size <= p.capacity && p.reserved <= p.capacity-size
}

// take takes memory from the driver, which has it.
func (p *process) take(size uint64) {
	p.reserved += size
	p.replay.result.DriverCreates++
}

// allocate takes memory from the driver, for as long as the policy has something to give back. For what can never fit
// nothing is given back.
func (p *process) allocate(size uint64) bool {
	for !p.fits(size) {
		if size > p.capacity {
			return false
		}
		p.evictions = p.policy.Drain(p.reserved-(p.capacity-size), p.evictions[:0])
		if len(p.evictions) == 0 {
			return false
		}
		p.give()
	}
	p.take(size)
	return true
}

// give returns to the driver what left the pool.
func (p *process) give() {
	for i := range p.evictions {
		p.reserved -= p.evictions[i].Size
		p.replay.result.Evictions++
	}
	p.evictions = p.evictions[:0]
	p.replay.hold(p)
}

// release handles RELEASE of the last reference.
func (p *process) release(e *wire.Event) {
	h, known := p.objects[e.Object]
	if !known || e.Granted > 0 || e.Outcome == wire.OutcomePinned {
		return
	}
	delete(p.objects, e.Object)
	h.races = e.Flags&wire.FlagWouldRace != 0
	switch {
	case h.direct:
		p.leave(h)
		p.reserved -= h.size
	case e.Outcome == wire.OutcomeCooling:
		p.free(h, true)
		p.cooling[e.Link] = h.block
	case e.Outcome == wire.OutcomeCached:
		p.free(h, false)
	case e.Outcome == wire.OutcomeRefused && e.Flags&wire.FlagPart == 0:
		p.refused[e.Link] = h
		return
	default:
		p.freeAsTold(h)
	}
	p.replay.hold(p)
}

// leave takes what an object has off what is in use.
func (p *process) leave(h held) {
	p.inUse -= h.size
	p.wanted -= h.wanted
}

func (p *process) free(h held, busy bool) {
	p.leave(h)
	p.evictions = p.policy.Free(h.block, busy, p.time, p.evictions[:0])
	p.give()
}

// freeAsTold frees a block of which the recording never says that it has cooled.
func (p *process) freeAsTold(h held) {
	p.free(h, h.races)
	if h.races {
		p.raced = append(p.raced, h.block)
	}
}

// cooled handles COOLED of a block of the recording.
func (p *process) cooled(number uint64) {
	if block, known := p.cooling[number]; known {
		delete(p.cooling, number)
		p.cool(block)
	}
}

func (p *process) cool(block allocator.Block) {
	p.evictions = p.policy.Cooled(block, p.time, p.evictions[:0])
	p.give()
}

// coolAll cools what would not be told to have cooled.
func (p *process) coolAll() {
	for _, block := range p.raced {
		p.cool(block)
	}
	p.raced = p.raced[:0]
}

// evicted handles EVICT: it says why a release was refused. A block that the program left unfit for anybody is unfit
// here, too; what the recorded policy did not want is for this one to judge.
func (p *process) evicted(e *wire.Event) {
	if block, known := p.cooling[e.Link]; known {
		delete(p.cooling, e.Link)
		p.raced = append(p.raced, block)
	}
	h, known := p.refused[e.Link]
	if !known {
		return
	}
	delete(p.refused, e.Link)
	if wire.Evict(e.Reason) != wire.EvictState {
		p.freeAsTold(h)
		return
	}
	p.forget(h)
}

// forget takes a block out of the policy's books. A part stays where it is: its slab is the policy's.
func (p *process) forget(h held) {
	p.leave(h)
	p.policy.Forget(h.block)
	if !h.slab {
		p.reserved -= h.size
	}
	p.replay.hold(p)
}

// note keeps what the policy says when nothing is about to be freed any more.
func (p *process) note() {
	if s := p.policy.Stats(); s.BytesCached >= p.fullest.BytesCached {
		p.fullest = s
	}
}
