package replay

import (
	"strings"

	"codeberg.org/gpumemtop/gpumemtop/allocator"
)

// open is a plan between whose decisions the policy makes others, for other threads.
type open struct {
	request allocator.Request
	plan    allocator.Decision
	grown   bool
	done    bool // a block that was there is in use at once
}

// begin plans for a request. Slab and buffer exist from the moment that the recording gives.
func (p *process) begin(req *allocator.Request, step *op) {
	if p.open == nil {
		p.open = map[uint32]*open{}
	}
	o := &open{request: *req}
	p.plan(req, &o.plan)
	if o.done = step.code == opTry && o.plan.Hit && o.plan.Slab == 0; o.done {
		p.policy.Commit(o.plan)
	}
	p.open[step.slot] = o
}

// carryOut does what became of a plan.
func (r *player) carryOut(step *op) {
	p := r.known(r.script.classes[step.class].process)
	if p == nil || p.open[step.slot] == nil {
		return // of a policy that is not the recorded one
	}
	o := p.open[step.slot]
	switch {
	case step.code == opGrown && o.plan.Slab != 0 && o.plan.SlabSize == 0: // it was in use until it went back
		p.policy.Commit(o.plan)
		o.done = true
		return
	case step.code == opGrown:
		o.grow(p)
		return
	case step.code == opCommit:
		o.commit(p, step.slot)
	case step.code == opAbort && !o.done:
		p.policy.Abort(o.plan)
	case o.done:
		p.evictions = p.policy.Free(o.plan.Block, false, step.time, p.evictions[:0])
		p.give()
	}
	delete(p.open, step.slot)
}

// grow makes the plan's slab, unless it is there.
func (o *open) grow(p *process) {
	if o.plan.SlabSize != 0 && !o.grown {
		p.grown(&o.plan)
		o.grown = true
	}
}

// commit gives the buffer what was planned for it, for which the driver always has memory.
func (o *open) commit(p *process, slot uint32) {
	r := p.player
	o.grow(p)
	if !o.plan.Hit && o.plan.Slab == 0 {
		p.take(o.plan.Size)
	}
	for len(r.slots) <= int(slot) {
		r.slots = append(r.slots, held{})
	}
	p.commit(&o.request, &o.plan, &r.slots[slot], slot)
	r.enter(&r.slots[slot])
}

// relieve gives up what is too old, or makes room as the recorded policy was asked to.
func (p *process) relieve(step *op) {
	switch {
	case step.code == opExpire:
		p.evictions, _ = p.policy.Expire(step.time, p.evictions[:0])
	case p.follows:
		p.evictions = p.policy.Drain(step.size, p.evictions[:0])
	}
	p.give()
}

// switchPolicy changes the policy to one of a name, with limits behind it, as in "slab,max_part=1MiB", where the replay
// is as recorded.
func (p *process) switchPolicy(to string, time int64) {
	if !p.player.options.AsRecorded {
		return
	}
	name, limits, _ := strings.Cut(to, ",")
	settings, err := allocator.ParseSettings(limits)
	var next *allocator.Pool
	if err == nil {
		next, err = allocator.New(name, settings)
	}
	if err != nil { // the recording is of a version with other policies or limits
		p.player.result.Switches++
		return
	}
	p.evictions = p.policy.Switch(next, time, p.evictions[:0])
	p.give()
}
