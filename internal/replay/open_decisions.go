package replay

import (
	"codeberg.org/gpumemtop/gpumemtop/allocator"
	"codeberg.org/gpumemtop/gpumemtop/internal/wire"
)

// openDecision is a decision that takes several steps, between which the policy decides for other threads.
type openDecision struct {
	request   allocator.Request
	decision  allocator.Decision
	hasSlab   bool
	committed bool // the block existed, so the decision was committed at once
}

// beginDecision decides on a request. Slab and buffer exist from the moments that the recording gives.
func (p *simulatedProcess) beginDecision(req *allocator.Request, step *op) {
	if p.openDecisions == nil {
		p.openDecisions = map[uint32]*openDecision{}
	}
	o := &openDecision{request: *req}
	p.decideRequest(req, &o.decision)
	if o.committed = step.code == opTry && o.decision.Hit && o.decision.Slab == 0; o.committed {
		p.policy.Commit(o.decision)
	}
	p.openDecisions[step.slot] = o
}

// continueDecision takes the next step of an open decision.
func (s *simulation) continueDecision(step *op) {
	p := s.findProcess(s.script.classes[step.class].process)
	if p == nil || p.openDecisions[step.slot] == nil {
		return // the simulated policy is not the recorded one
	}
	o := p.openDecisions[step.slot]
	switch {
	case step.code == opGrown && o.decision.Slab != 0 && o.decision.SlabSize == 0: // the range was in use until it was returned
		p.policy.Commit(o.decision)
		o.committed = true
		return
	case step.code == opGrown:
		o.createSlab(p)
		return
	case step.code == opCommit:
		o.commitDecision(p, step.slot)
	case step.code == opAbort && !o.committed:
		p.policy.Abort(o.decision)
	case o.committed:
		p.evictions = p.policy.Free(o.decision.Block, false, step.time, p.evictions[:0])
		p.returnEvictedBlocks()
	}
	delete(p.openDecisions, step.slot)
}

// createSlab creates the decision's slab, unless it exists.
func (o *openDecision) createSlab(p *simulatedProcess) {
	if o.decision.SlabSize != 0 && !o.hasSlab {
		p.createSlab(&o.decision)
		o.hasSlab = true
	}
}

// commitDecision gives the buffer its block. The driver always has memory for that, because the recorded driver had.
func (o *openDecision) commitDecision(p *simulatedProcess, slot uint32) {
	s := p.simulation
	o.createSlab(p)
	if !o.decision.Hit && o.decision.Slab == 0 {
		p.takeMemory(o.decision.Size)
	}
	for len(s.buffers) <= int(slot) {
		s.buffers = append(s.buffers, simulatedBuffer{})
	}
	p.commitBlock(&o.request, &o.decision, &s.buffers[slot], slot)
	s.addToInUse(&s.buffers[slot])
}

// expireOrDrain evicts blocks that are too old, or makes room where the recorded policy was asked to.
func (p *simulatedProcess) expireOrDrain(step *op) {
	switch {
	case step.code == opExpire:
		p.evictions, _ = p.policy.Expire(step.time, p.evictions[:0])
	case p.followsRecording:
		p.evictions = p.policy.Drain(step.size, p.evictions[:0])
	}
	p.returnEvictedBlocks()
}

// applyPolicyChange changes the policy, if the replay is as recorded. text is a name followed by limits, for example
// "slab,max_part=1MiB".
func (p *simulatedProcess) applyPolicyChange(text string, time int64) {
	if !p.simulation.options.AsRecorded {
		return
	}
	next, err := newRecordedPool(text)
	if err != nil { // the recording's version had other policies or limits
		p.simulation.result.Switches++
		return
	}
	p.evictions = p.policy.SwitchPolicy(next, time, p.evictions[:0])
	p.returnEvictedBlocks()
}

// newRecordedPool returns a pool for a recorded policy with its limits.
func newRecordedPool(text string) (*allocator.Pool, error) {
	name, limits := wire.ParsePolicyValue(text)
	settings, err := allocator.ParseSettings(limits)
	if err != nil {
		return nil, err
	}
	return allocator.New(name, settings)
}
