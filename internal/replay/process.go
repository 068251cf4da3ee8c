package replay

import (
	"codeberg.org/gpumemtop/gpumemtop/allocator"
	"codeberg.org/gpumemtop/gpumemtop/internal/wire"
)

// process is one process of a recording with a policy of its own.
type process struct {
	player   *player
	number   uint32
	policy   *allocator.Pool
	reserved uint64           // bytes that it has from the driver
	inUse    uint64           // bytes of the application's blocks
	wanted   uint64           // bytes that were asked for of these
	slabSize uint64           // bytes of the newest slab
	raced    []racing         // cooling until the next wait or finish
	follows  bool             // the recording has all that its policy was asked: nothing else is done, whatever the capacity
	open     map[uint32]*open // plans that are carried out bit by bit, by slot

	learning *learning       // nil: the policy takes no plans, or those that were recorded
	draft    allocator.Draft // of a recorded one

	fullest   allocator.Stats // when most was free, of the moments before contexts ended
	evictions []allocator.Eviction
}

// racing is a block that was released while commands used it.
type racing struct {
	block  allocator.Block
	number uint64 // of its request
}

// held is what a buffer of the application has in the replay; without size nothing.
type held struct {
	process *process
	block   allocator.Block
	size    uint64 // of the block
	wanted  uint64
	number  uint64 // of the request, for the learning
	state   state
	slab    bool // a part of one
}

// state of a buffer's memory.
type state uint8

const (
	empty  state = iota
	inUse        // by the application
	direct       // the same, of the driver's own: the policy knows nothing of it
	cools
)

// serve asks the policy and does what it says, as the shim does: for a slab that does not fit nothing is given up, but
// the request gets a block of its own; where the driver has no more for that, what the policy gives up makes room, then
// the request is met as it came.
func (p *process) serve(req *allocator.Request, h *held, slot uint32) bool {
	var plan allocator.Decision
	p.plan(req, &plan)
	if plan.SlabSize != 0 && plan.Slab != 0 {
		p.grow(req, &plan)
	}
	if !plan.Hit && plan.Slab == 0 && !p.allocate(plan.Size) {
		p.policy.Abort(plan)
		return plan.Size != req.Size && p.direct(req, h)
	}
	p.commit(req, &plan, h, slot)
	return true
}

// commit gives a buffer what was planned for it.
func (p *process) commit(req *allocator.Request, plan *allocator.Decision, h *held, slot uint32) {
	p.policy.Commit(*plan)
	p.count(req, plan, slot)
	h.process, h.block, h.size, h.wanted = p, plan.Block, plan.Size, req.Size
	h.state, h.slab = inUse, plan.Slab != 0
	if p.learning != nil {
		p.learn(req, h)
	}
}

// direct meets a request as it came, without the policy.
func (p *process) direct(req *allocator.Request, h *held) bool {
	if !p.allocate(req.Size) {
		return false
	}
	r := p.player
	r.result.Direct++
	r.work.Creates.Add(req.Size)
	r.work.Touches.Add(req.Size)
	*h = held{process: p, state: direct, size: req.Size, wanted: req.Size}
	return true
}

// release gives a buffer back to the driver that the policy does not hear of.
func (p *process) release(h *held) {
	r := p.player
	r.leave(h)
	h.state = empty
	if h.slab {
		return
	}
	p.reserved -= h.size
	r.reserved -= h.size
	r.work.Releases.Add(h.size)
}

// grow makes the slab of a plan, or plans anew without one.
func (p *process) grow(req *allocator.Request, plan *allocator.Decision) {
	if p.fits(plan.SlabSize) {
		p.grown(plan)
		return
	}
	p.policy.Abort(*plan)
	req.Align = 0
	p.plan(req, plan)
}

// grown makes the slab of a plan.
func (p *process) grown(plan *allocator.Decision) {
	p.take(plan.SlabSize)
	p.player.work.Creates.Add(plan.SlabSize)
	p.slabSize = plan.SlabSize
	p.policy.Grown(*plan)
}

// count notes how a request was served.
func (p *process) count(req *allocator.Request, plan *allocator.Decision, slot uint32) {
	r := p.player
	r.steady.Add(plan.Hit)
	switch {
	case plan.Slab != 0:
		r.work.Parts.Add(req.Size)
		if plan.Fresh { // hardly ever in another slab than the newest
			r.work.Touches.AddIn(p.slabSize, req.Size)
		}
	case !plan.Hit:
		r.work.Creates.Add(plan.Size)
		r.work.Touches.AddIn(plan.Size, req.Size)
	}
	if plan.Hit {
		r.saved.Add(plan.Size)
	}
	if r.comparer != nil {
		r.comparer.served(slot, plan)
	}
}

// plan asks the policy, and gives back what left the pool for that.
func (p *process) plan(req *allocator.Request, plan *allocator.Decision) {
	p.evictions = p.policy.DecideInto(plan, req, p.evictions[:0])
	if len(p.evictions) > 0 {
		p.give()
	}
}

// fits reports whether the driver has so much.
func (p *process) fits(size uint64) bool {
	capacity := p.player.options.Capacity
	return capacity == 0 || p.follows || size <= capacity && p.reserved <= capacity-size
}

// take takes memory from the driver, which has it.
func (p *process) take(size uint64) {
	p.reserved += size
	p.player.reserved += size
	p.player.result.DriverCreates++
}

// allocate takes memory from the driver, if there is any.
func (p *process) allocate(size uint64) bool {
	if !p.makeRoom(size) {
		return false
	}
	p.take(size)
	return true
}

// makeRoom lets the policy give memory back, for as long as it has some, until the driver has so much. For what can
// never fit nothing is given back.
func (p *process) makeRoom(size uint64) bool {
	for !p.fits(size) {
		capacity := p.player.options.Capacity
		if size > capacity {
			return false
		}
		p.evictions = p.policy.Drain(p.reserved-(capacity-size), p.evictions[:0])
		if len(p.evictions) == 0 {
			return false
		}
		p.give()
	}
	return true
}

// attempt makes a request that found no memory in the recording: what the policy gives up for it is gone. What it finds
// here goes back at once, because the recording does not show what the program would have done with it.
func (p *process) attempt(req *allocator.Request) {
	if p.player.options.Capacity == 0 {
		return // without a bound nothing fails, and nothing is given up
	}
	var plan allocator.Decision
	p.plan(req, &plan)
	found := plan.Hit
	if plan.SlabSize != 0 && plan.Slab != 0 {
		if found = p.fits(plan.SlabSize); !found {
			p.policy.Abort(plan)
			req.Align = 0
			p.plan(req, &plan)
			found = plan.Hit
		}
	}
	found = found || p.makeRoom(plan.Size)
	p.policy.Abort(plan)
	if found || plan.Size != req.Size && p.makeRoom(req.Size) {
		p.player.result.Rescued++
	}
}

// give returns to the driver what left the pool.
func (p *process) give() {
	if len(p.evictions) == 0 {
		return
	}
	r := p.player
	for i := range p.evictions {
		e := &p.evictions[i]
		p.reserved -= e.Size
		r.reserved -= e.Size
		r.result.Evictions++
		r.work.Releases.Add(e.Size)
		if r.comparer != nil {
			r.comparer.evicted(p, e.Block, e.Size, e.Reason)
		}
	}
	p.evictions = p.evictions[:0]
}

// free gives a buffer's block back to the policy.
func (p *process) free(h *held, busy bool, time int64) {
	p.player.leave(h)
	p.evictions = p.policy.Free(h.block, busy, time, p.evictions[:0])
	p.give()
	if p.learning != nil && !busy {
		p.learning.Ended(h.number)
	}
}

func (p *process) cool(block allocator.Block, number uint64, time int64) {
	p.evictions = p.policy.Cooled(block, time, p.evictions[:0])
	p.give()
	if p.learning != nil {
		p.learning.Ended(number)
	}
}

// coolAll ends the cooling of blocks for which no record will.
func (p *process) coolAll(time int64) {
	for _, r := range p.raced {
		p.cool(r.block, r.number, time)
	}
	p.raced = p.raced[:0]
}

// forget takes a block out of the policy's books. A part stays where it is: its slab is the policy's.
func (p *process) forget(h *held) {
	r := p.player
	r.leave(h)
	p.policy.Forget(h.block)
	if h.slab {
		return
	}
	p.reserved -= h.size
	r.reserved -= h.size
	r.work.Releases.Add(h.size)
	if r.comparer != nil {
		r.comparer.evicted(p, h.block, h.size, wire.EvictState)
	}
}

// drop ends a class.
func (p *process) drop(class allocator.Class) {
	p.evictions = p.policy.DropClass(class, p.evictions[:0])
	p.give()
}

// change does what was done to the limits, the pool or the policy of the program that was recorded.
func (p *process) change(c *change, time int64) {
	r := p.player
	if c.name == wire.PolicySetting {
		p.switchPolicy(c.value, time)
		return
	}
	if c.name == wire.PlanSetting {
		p.readPlan(c.value)
		return
	}
	r.result.Changes++
	var err error
	if c.name == "" {
		p.evictions = p.policy.Trim(c.keep, p.evictions[:0])
	} else if r.holds(c.name) {
		r.result.LeftOut++
		return
	} else {
		p.evictions, err = p.policy.SetLimit(c.name, c.value, time, p.evictions[:0])
	}
	p.give()
	if err != nil { // this policy has no such limit, or others that contradict
		r.result.LeftOut++
	}
}

// note returns what the policy says now, when nothing is about to be freed any more, or what it said when more was
// free.
func (p *process) note() allocator.Stats {
	if s := p.policy.Stats(); s.BytesCached >= p.fullest.BytesCached {
		return s
	}
	return p.fullest
}
