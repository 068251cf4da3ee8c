package replay

import (
	"strconv"

	"codeberg.org/gpumemtop/gpumemtop/allocator"
	"codeberg.org/gpumemtop/gpumemtop/internal/wire"
)

// simulatedProcess is one simulated process with a policy of its own.
type simulatedProcess struct {
	simulation       *simulation
	number           uint32
	policy           *allocator.Arms
	reserved         uint64                   // bytes reserved from the driver
	inUse            uint64                   // bytes granted to the application
	requested        uint64                   // bytes that the application requested for them
	slabSize         uint64                   // bytes of the newest slab
	racing           []racingBlock            // blocks that cool until the next wait or finish
	followsRecording bool                     // the recording has all calls on its policy: they are repeated, whatever the capacity
	openDecisions    map[uint32]*openDecision // by slot

	learning *layoutLearning // nil: the policy takes no layouts, or takes the recorded ones
	draft    allocator.Draft // a recorded layout that is still being read

	fullest   allocator.Stats // the figures when the most was free, at the moments before contexts ended
	evictions []allocator.Eviction
}

// racingBlock is a block that was released while commands used it.
type racingBlock struct {
	block  allocator.Block
	number uint64 // of its request
}

// simulatedBuffer is a buffer of the application in the simulation.
type simulatedBuffer struct {
	process   *simulatedProcess
	block     allocator.Block
	granted   uint64 // bytes of the block
	requested uint64
	number    uint64 // of the request, for learning
	state     bufferState
	slab      bool // the buffer is a sub-allocation
}

// bufferState is the state of a buffer's memory.
type bufferState uint8

const (
	empty  bufferState = iota
	inUse              // by the application
	direct             // in use, but allocated without the policy
	cooling
)

// serveRequest asks the policy and does as the shim does. If a slab does not fit, nothing is evicted for it, and the request
// gets a block of its own. If the driver has no memory for a block, evictions make room. If that is not enough, the
// request is served without rounding and without the policy.
func (p *simulatedProcess) serveRequest(req *allocator.Request, buffer *simulatedBuffer, slot uint32) bool {
	var decision allocator.Decision
	p.decideRequest(req, &decision)
	if decision.SlabSize != 0 && decision.Slab != 0 {
		p.createSlabOrDecideAgain(req, &decision)
	}
	if !decision.Hit && decision.Slab == 0 && !p.takeMemoryOrEvict(decision.Size) {
		p.policy.Abort(decision)
		return decision.Size != req.Size && p.serveWithoutPolicy(req, buffer)
	}
	p.commitBlock(req, &decision, buffer, slot)
	return true
}

// commitBlock gives a buffer the block that was decided.
func (p *simulatedProcess) commitBlock(req *allocator.Request, decision *allocator.Decision, buffer *simulatedBuffer, slot uint32) {
	p.policy.Commit(*decision)
	p.countServed(req, decision, slot)
	buffer.process, buffer.block, buffer.granted, buffer.requested = p, decision.Block, decision.Size, req.Size
	buffer.state, buffer.slab = inUse, decision.Slab != 0
	if p.learning != nil {
		p.learnFromRequest(req, buffer)
	}
}

// serveWithoutPolicy allocates exactly the requested bytes, without the policy.
func (p *simulatedProcess) serveWithoutPolicy(req *allocator.Request, buffer *simulatedBuffer) bool {
	if !p.takeMemoryOrEvict(req.Size) {
		return false
	}
	s := p.simulation
	s.result.Direct++
	s.work.Creates.CountCall(req.Size)
	s.work.Touches.CountCall(req.Size)
	*buffer = simulatedBuffer{process: p, state: direct, granted: req.Size, requested: req.Size}
	return true
}

// releaseToDriver returns a buffer to the driver that the policy does not know.
func (p *simulatedProcess) releaseToDriver(buffer *simulatedBuffer) {
	s := p.simulation
	s.subtractFromInUse(buffer)
	buffer.state = empty
	if buffer.slab {
		return
	}
	p.reserved -= buffer.granted
	s.reserved -= buffer.granted
	s.work.Releases.CountCall(buffer.granted)
}

// createSlabOrDecideAgain creates the slab of a decision, or decides again without a slab.
func (p *simulatedProcess) createSlabOrDecideAgain(req *allocator.Request, decision *allocator.Decision) {
	if p.hasRoomFor(decision.SlabSize) {
		p.createSlab(decision)
		return
	}
	p.policy.Abort(*decision)
	req.Align = 0
	p.decideRequest(req, decision)
}

// createSlab creates the slab of a decision.
func (p *simulatedProcess) createSlab(decision *allocator.Decision) {
	p.takeMemory(decision.SlabSize)
	p.simulation.work.Creates.CountCall(decision.SlabSize)
	p.slabSize = decision.SlabSize
	p.policy.SlabCreated(*decision)
}

// countServed counts a served request and its driver calls.
func (p *simulatedProcess) countServed(req *allocator.Request, decision *allocator.Decision, slot uint32) {
	s := p.simulation
	s.steady.AddRequest(decision.Hit)
	switch {
	case decision.Slab != 0:
		s.work.Parts.CountCall(req.Size)
		if decision.Fresh { // nearly always in the newest slab
			s.work.Touches.CountCallForPart(p.slabSize, req.Size)
		}
	case !decision.Hit:
		s.work.Creates.CountCall(decision.Size)
		s.work.Touches.CountCallForPart(decision.Size, req.Size)
	}
	if decision.Hit {
		s.saved.Creates.CountCall(decision.Size)
		s.saved.Releases.CountCall(decision.Size)
	}
	if s.comparer != nil {
		s.comparer.compareServedDecision(slot, decision)
	}
}

// decideRequest asks the policy, and returns the blocks that it evicts to the driver.
func (p *simulatedProcess) decideRequest(req *allocator.Request, decision *allocator.Decision) {
	p.evictions = p.policy.DecideInto(decision, req, p.evictions[:0])
	if len(p.evictions) > 0 {
		p.returnEvictedBlocks()
	}
}

// hasRoomFor reports whether the driver has that much memory.
func (p *simulatedProcess) hasRoomFor(size uint64) bool {
	capacity := p.simulation.options.Capacity
	return capacity == 0 || p.followsRecording || size <= capacity && p.reserved <= capacity-size
}

// takeMemory takes memory from the driver, which has it.
func (p *simulatedProcess) takeMemory(size uint64) {
	p.reserved += size
	p.simulation.reserved += size
	p.simulation.result.DriverCreates++
}

// takeMemoryOrEvict takes memory from the driver, after evictions if necessary, and reports whether that succeeded.
func (p *simulatedProcess) takeMemoryOrEvict(size uint64) bool {
	if !p.evictUntilRoom(size) {
		return false
	}
	p.takeMemory(size)
	return true
}

// evictUntilRoom lets the policy evict blocks until the driver has that much memory. It evicts nothing for a size that can
// never fit.
func (p *simulatedProcess) evictUntilRoom(size uint64) bool {
	for !p.hasRoomFor(size) {
		capacity := p.simulation.options.Capacity
		if size > capacity {
			return false
		}
		p.evictions = p.policy.Drain(p.reserved-(capacity-size), p.evictions[:0])
		if len(p.evictions) == 0 {
			return false
		}
		p.returnEvictedBlocks()
	}
	return true
}

// retryFailedRequest repeats a request that failed in the recording: the evictions that the policy makes for it take place. A
// block that it finds here is freed at once, because the recording does not show what the program would have done with
// it.
func (p *simulatedProcess) retryFailedRequest(req *allocator.Request) {
	if p.simulation.options.Capacity == 0 {
		return // without a capacity nothing fails, and nothing is evicted
	}
	var decision allocator.Decision
	p.decideRequest(req, &decision)
	found := decision.Hit
	if decision.SlabSize != 0 && decision.Slab != 0 {
		if found = p.hasRoomFor(decision.SlabSize); !found {
			p.policy.Abort(decision)
			req.Align = 0
			p.decideRequest(req, &decision)
			found = decision.Hit
		}
	}
	found = found || p.evictUntilRoom(decision.Size)
	p.policy.Abort(decision)
	if found || decision.Size != req.Size && p.evictUntilRoom(req.Size) {
		p.simulation.result.Rescued++
	}
}

// returnEvictedBlocks returns evicted blocks to the driver.
func (p *simulatedProcess) returnEvictedBlocks() {
	if len(p.evictions) == 0 {
		return
	}
	s := p.simulation
	for i := range p.evictions {
		e := &p.evictions[i]
		p.reserved -= e.Size
		s.reserved -= e.Size
		s.result.Evictions++
		s.work.Releases.CountCall(e.Size)
		if s.comparer != nil {
			s.comparer.compareEviction(p, e.Block, e.Size, e.Reason)
		}
	}
	p.evictions = p.evictions[:0]
}

// freeBuffer frees a buffer's block.
func (p *simulatedProcess) freeBuffer(buffer *simulatedBuffer, busy bool, time int64) {
	p.simulation.subtractFromInUse(buffer)
	p.evictions = p.policy.Free(buffer.block, busy, time, p.evictions[:0])
	p.returnEvictedBlocks()
	if p.learning != nil && !busy {
		p.learning.NoteRequestFreed(buffer.number)
	}
}

func (p *simulatedProcess) endBlockCooling(block allocator.Block, number uint64, time int64) {
	p.evictions = p.policy.CoolingEnded(block, time, p.evictions[:0])
	p.returnEvictedBlocks()
	if p.learning != nil {
		p.learning.NoteRequestFreed(number)
	}
}

// endUnrecordedCoolings ends the cooling of the blocks whose end is not recorded.
func (p *simulatedProcess) endUnrecordedCoolings(time int64) {
	for _, block := range p.racing {
		p.endBlockCooling(block.block, block.number, time)
	}
	p.racing = p.racing[:0]
}

// removeBlock takes a block out of the pool. A sub-allocation keeps its range: the slab belongs to the policy.
func (p *simulatedProcess) removeBlock(buffer *simulatedBuffer) {
	s := p.simulation
	s.subtractFromInUse(buffer)
	p.policy.Forget(buffer.block)
	if buffer.slab {
		return
	}
	p.reserved -= buffer.granted
	s.reserved -= buffer.granted
	s.work.Releases.CountCall(buffer.granted)
	if s.comparer != nil {
		s.comparer.compareEviction(p, buffer.block, buffer.granted, wire.EvictState)
	}
}

// dropClass ends a class.
func (p *simulatedProcess) dropClass(class allocator.Class) {
	p.evictions = p.policy.DropClass(class, p.evictions[:0])
	p.returnEvictedBlocks()
}

// applyPoolChange applies a recorded change of a limit, the pool or the policy.
func (p *simulatedProcess) applyPoolChange(c *change, time int64) {
	s := p.simulation
	if c.name == wire.PolicySetting {
		p.applyPolicyChange(c.value, time)
		return
	}
	if c.name == wire.PlanSetting {
		p.readLayoutPiece(c.value)
		return
	}
	if c.name == wire.ArmsSetting || c.name == wire.ArmSetting {
		p.applyExperiment(c, time)
		return
	}
	s.result.Changes++
	var err error
	if c.name == wire.RelieveSetting {
		relief, _ := wire.ParseReliefValue(c.value)
		p.evictions = p.policy.EvictForOthers(relief, time, p.evictions[:0])
	} else if c.name == wire.PeriodSetting {
		period, _ := strconv.ParseInt(c.value, 10, 64)
		p.policy.SetIterationTime(period)
	} else if c.name == "" {
		p.evictions = p.policy.Trim(c.keep, p.evictions[:0])
	} else if s.isLimitFixed(c.name) {
		s.result.LeftOut++
		return
	} else {
		p.evictions, err = p.policy.SetLimit(c.name, c.value, time, p.evictions[:0])
	}
	p.returnEvictedBlocks()
	if err != nil { // this policy has no such limit, or its other limits contradict it
		s.result.LeftOut++
	}
}

// statsWhenMostFree returns the policy's figures of the present moment, or earlier ones if more was free then.
func (p *simulatedProcess) statsWhenMostFree() allocator.Stats {
	if s := p.policy.Stats(); s.BytesCached >= p.fullest.BytesCached {
		return s
	}
	return p.fullest
}
