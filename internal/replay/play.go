package replay

import (
	"codeberg.org/gpumemtop/gpumemtop/allocator"
	"codeberg.org/gpumemtop/gpumemtop/internal/cost"
	"codeberg.org/gpumemtop/gpumemtop/internal/stats"
)

// player plays a script through a policy for each of its processes.
type player struct {
	options   Options
	script    *script
	processes []*process
	slots     []held
	result    Result // as far as it is counted here
	steady    stats.Steady
	comparer  *comparer // nil: no comparison

	inUse, wanted, reserved uint64 // of all processes, now
	running                 int    // processes that have a policy
	left                    uint64 // bytes reserved by the last that were gone, until another one runs
	work                    cost.Work
	saved                   cost.Tally
}

// newPlayer checks the options. An error says what is wrong with the policy or a setting.
func newPlayer(o Options, s *script) (*player, error) {
	policy, err := allocator.New(o.Policy, o.Settings)
	if err != nil {
		return nil, err
	}
	r := &player{options: o, script: s, slots: make([]held, s.slots), processes: make([]*process, s.facts.processes)}
	r.result.Policy, r.result.Limits, r.result.Capacity = o.Policy, policy.Limits(), o.Capacity
	r.work = cost.For(&o.Device)
	r.saved = r.work.Creates
	return r, nil
}

// play does what ops say, in order.
func (r *player) play(ops []op) error {
	for i := range ops {
		step := &ops[i]
		switch step.code {
		case opCreate, opFail, opPlan, opTry:
			if err := r.create(step); err != nil {
				return err
			}
		case opWait:
			if p := r.known(step.slot); p != nil && len(p.raced) > 0 {
				p.coolAll(step.time)
			}
		case opEnd:
			if p := r.known(step.slot); p != nil {
				p.fullest = p.note()
			}
		case opDrop:
			c := &r.script.classes[step.class]
			if p := r.known(c.process); p != nil {
				p.drop(c.request.Class)
			}
		case opChange:
			p, err := r.process(step.slot)
			if err != nil {
				return err
			}
			p.change(&r.script.changes[step.class], step.time)
		case opGone:
			r.gone(step.slot)
		case opExit:
			r.exit(step.slot)
		case opExpire, opDrain:
			if p := r.known(step.slot); p != nil {
				p.relieve(step)
			}
		case opNone:
		case opGrown, opCommit, opAbort, opReturn:
			r.carryOut(step)
		default:
			r.release(step)
		}
	}
	return nil
}

// known returns a process, nil when no policy was asked anything for it yet.
func (r *player) known(number uint32) *process {
	if int(number) < len(r.processes) {
		return r.processes[number]
	}
	return nil
}

// process returns a process, with a policy that may be new.
func (r *player) process(number uint32) (*process, error) {
	if p := r.known(number); p != nil {
		return p, nil
	}
	policy, err := allocator.New(r.options.Policy, r.options.Settings)
	if err != nil {
		return nil, err
	}
	for len(r.processes) <= int(number) {
		r.processes = append(r.processes, nil)
	}
	p := &process{player: r, number: number, policy: policy}
	if r.options.Policy == Learns && !r.options.AsRecorded {
		p.learning = &learning{}
		p.given()
	}
	r.processes[number] = p
	r.running++
	r.settle()
	return p, nil
}

// gone forgets a buffer whose process is gone.
func (r *player) gone(slot uint32) {
	if int(slot) < len(r.slots) {
		r.slots[slot] = held{}
	}
}

// exit ends a process that is gone. What it did still counts.
func (r *player) exit(number uint32) {
	p := r.known(number)
	if p == nil {
		return
	}
	r.result.add(p)
	r.processes[number] = nil
	r.running--
	r.inUse -= p.inUse
	r.wanted -= p.wanted
	r.left += p.reserved
	r.settle()
}

// settle takes the memory of processes that are gone off what all have, as soon as another one runs: the last to end
// leave theirs, so that what was left shows.
func (r *player) settle() {
	if r.running > 0 {
		r.reserved, r.left = r.reserved-r.left, 0
	}
}

// create serves a request.
func (r *player) create(step *op) error {
	c := &r.script.classes[step.class]
	p, err := r.process(c.process)
	if err != nil {
		return err
	}
	req := c.request
	req.Size, req.Tag, req.Time, req.Round = step.size, step.tag, step.time, c.round(step.size)
	p.follows = r.options.AsRecorded && step.mark&numbered != 0
	if step.mark&whole != 0 || p.follows && step.mark&retried != 0 {
		req.Align = 0
	}
	switch {
	case step.code == opCreate, step.code == opPlan && !p.follows:
		r.serve(p, &req, step.slot)
	case step.code == opFail && !p.follows:
		p.attempt(&req)
	case step.code == opPlan || step.code == opTry && p.follows:
		p.begin(&req, step)
	}
	return nil
}

// serve gives a request the slot.
func (r *player) serve(p *process, req *allocator.Request, slot uint32) {
	for len(r.slots) <= int(slot) {
		r.slots = append(r.slots, held{})
	}
	h := &r.slots[slot]
	if !p.serve(req, h, slot) {
		*h = held{}
		r.result.Failures++
		return
	}
	r.enter(h)
}

// enter counts what a buffer has in use.
func (r *player) enter(h *held) {
	r.inUse += h.size
	r.wanted += h.wanted
	h.process.inUse += h.size
	h.process.wanted += h.wanted
	if r.inUse > r.result.PeakInUse {
		r.result.PeakInUse, r.result.WantedAtPeak = r.inUse, r.wanted
	}
	r.result.PeakReserved = max(r.result.PeakReserved, r.reserved)
}

// release does what becomes of a buffer.
func (r *player) release(step *op) {
	if int(step.slot) >= len(r.slots) { // of an unknown request, in a recording that contradicts itself
		return
	}
	h := &r.slots[step.slot]
	p := h.process
	switch h.state {
	case inUse:
	case direct:
		p.release(h)
		return
	case cools:
		p.endCooling(step, h)
		return
	default:
		return
	}
	if step.mark&unseen != 0 && r.options.AsRecorded {
		p.release(h)
		return
	}
	switch step.code {
	case opFree:
		p.free(h, false, step.time)
	case opFreeEarly:
		p.free(h, true, step.time)
		p.raced = append(p.raced, racing{h.block, h.number})
	case opCool:
		p.free(h, true, step.time)
		h.state = cools
		return
	case opForget:
		p.forget(h)
	default: // opRefuse: what is to be done comes
		return
	}
	h.state = empty
}

// endCooling does what becomes of a block that cools.
func (p *process) endCooling(step *op, h *held) {
	if step.code == opCooled {
		p.cool(h.block, h.number, step.time)
	} else {
		p.raced = append(p.raced, racing{h.block, h.number})
	}
	h.state = empty
}

// leave takes what a buffer has off what is in use.
func (r *player) leave(h *held) {
	r.inUse -= h.size
	r.wanted -= h.wanted
	h.process.inUse -= h.size
	h.process.wanted -= h.wanted
}

// holds reports whether a limit stays as the options set it.
func (r *player) holds(name string) bool {
	if !r.options.HoldSettings {
		return false
	}
	for _, s := range r.options.Settings {
		if s.Name == name {
			return true
		}
	}
	return false
}

// sum returns the result so far. device is what the driver took in the recording.
func (r *player) sum() Result {
	out := r.result
	f := &r.script.facts
	out.Processes, out.Requests, out.Whole, out.Unpooled, out.Before, out.Lost = int(f.processes), f.requests, f.whole, f.unpooled, f.before, f.lost
	if !r.options.AsRecorded {
		out.Switches = f.switches
	}
	out.Recorded.Hits, out.Recorded.Misses = f.hits, f.misses
	for _, p := range r.processes {
		if p != nil {
			out.add(p)
		}
	}
	out.SteadyHits, out.SteadyRequests = r.steady.Later()
	d := &r.options.Device
	out.Device = *d
	out.CreateNS, out.TouchNS = r.work.Creates.NS(&d.Create), r.work.Touches.NS(&d.Touch)
	out.ReleaseNS, out.PartNS = r.work.Releases.NS(&d.Release), r.work.Parts.NS(&d.Part)
	out.DriverNS = out.CreateNS + out.TouchNS + out.ReleaseNS + out.PartNS
	out.SavedNS = r.saved.NS(&d.Create)
	return out
}

// add adds the figures of one process.
func (out *Result) add(p *process) {
	s := p.policy.Stats()
	out.Arena.add(p, &s)
	out.Hits += s.Hits
	out.Misses += s.Misses
	for i, n := range s.MissReasons {
		out.MissReasons[i] += n
	}
	out.BytesRequested += s.BytesRequested
	out.BytesAllocated += s.BytesAllocated
	out.InUse += s.BytesInUse
	out.Wanted += s.BytesWanted
	out.Cached += s.BytesCached
	out.Cooling += s.BytesCooling
	fullest := p.note()
	out.Free += fullest.BytesCached
	out.Largest = max(out.Largest, fullest.Largest)
	out.Squares += fullest.Squares
	out.Slabs += fullest.Slabs
}
