package replay

import (
	"codeberg.org/gpumemtop/gpumemtop/allocator"
	"codeberg.org/gpumemtop/gpumemtop/internal/cost"
	"codeberg.org/gpumemtop/gpumemtop/internal/stats"
)

// simulation plays a script through one configuration, with a policy for each process.
type simulation struct {
	options   Options
	script    *script
	processes []*simulatedProcess
	buffers   []simulatedBuffer
	result    Result // as far as it is counted here
	steady    stats.Steady
	comparer  *comparer // nil: no comparison

	inUse, requested, reserved uint64 // bytes of all processes, now
	running                    int    // processes that have a policy
	leftBehind                 uint64 // bytes reserved by processes that ended last, until another one runs
	work                       cost.Work
	saved                      cost.Work // creates of the blocks of hits, and their releases
}

// newSimulation checks the options. The error reports an invalid policy or setting.
func newSimulation(o Options, script *script) (*simulation, error) {
	policy, err := allocator.New(o.Policy, o.Settings)
	if err != nil {
		return nil, err
	}
	s := &simulation{options: o, script: script, buffers: make([]simulatedBuffer, script.slots), processes: make([]*simulatedProcess, script.facts.processes)}
	s.result.Policy, s.result.Limits, s.result.Capacity = o.Policy, policy.Limits(), o.Capacity
	s.work = cost.NewWork(&o.Device)
	s.saved = cost.NewWork(&o.Device)
	return s, nil
}

// playSteps plays steps in order.
func (s *simulation) playSteps(ops []op) error {
	for i := range ops {
		step := &ops[i]
		switch step.code {
		case opCreate, opFail, opDecide, opTry:
			if err := s.createBuffer(step); err != nil {
				return err
			}
		case opWait:
			if p := s.findProcess(step.slot); p != nil && len(p.racing) > 0 {
				p.endUnrecordedCoolings(step.time)
			}
		case opEnd:
			if p := s.findProcess(step.slot); p != nil {
				p.fullest = p.statsWhenMostFree()
			}
		case opDrop:
			c := &s.script.classes[step.class]
			if p := s.findProcess(c.process); p != nil {
				p.dropClass(c.request.Class)
			}
		case opChange:
			p, err := s.findOrStartProcess(step.slot)
			if err != nil {
				return err
			}
			p.applyPoolChange(&s.script.changes[step.class], step.time)
		case opGone:
			s.forgetBuffer(step.slot)
		case opExit:
			s.endProcess(step.slot)
		case opExpire, opDrain:
			if p := s.findProcess(step.slot); p != nil {
				p.expireOrDrain(step)
			}
		case opNone:
		case opGrown, opCommit, opAbort, opReturn:
			s.continueDecision(step)
		default:
			s.releaseBuffer(step)
		}
	}
	return nil
}

// findProcess returns a process, nil if no policy was asked for it yet.
func (s *simulation) findProcess(number uint32) *simulatedProcess {
	if int(number) < len(s.processes) {
		return s.processes[number]
	}
	return nil
}

// findOrStartProcess returns a process. A new process gets a policy of its own.
func (s *simulation) findOrStartProcess(number uint32) (*simulatedProcess, error) {
	if p := s.findProcess(number); p != nil {
		return p, nil
	}
	policy, err := allocator.New(s.options.Policy, s.options.Settings)
	if err != nil {
		return nil, err
	}
	for len(s.processes) <= int(number) {
		s.processes = append(s.processes, nil)
	}
	p := &simulatedProcess{simulation: s, number: number, policy: allocator.NewArms(policy)}
	if s.options.Policy == LayoutPolicy && !s.options.AsRecorded {
		p.learning = &layoutLearning{}
		p.installGivenLayout()
	}
	s.processes[number] = p
	s.running++
	s.subtractEndedProcesses()
	return p, nil
}

// forgetBuffer forgets a buffer whose process has ended.
func (s *simulation) forgetBuffer(slot uint32) {
	if int(slot) < len(s.buffers) {
		s.buffers[slot] = simulatedBuffer{}
	}
}

// endProcess ends a process. Its figures still count.
func (s *simulation) endProcess(number uint32) {
	p := s.findProcess(number)
	if p == nil {
		return
	}
	s.result.addProcessFigures(p)
	s.processes[number] = nil
	s.running--
	s.inUse -= p.inUse
	s.requested -= p.requested
	s.leftBehind += p.reserved
	s.subtractEndedProcesses()
}

// subtractEndedProcesses subtracts the memory of ended processes as soon as another one runs. So the memory that the last
// processes left is still shown at the end.
func (s *simulation) subtractEndedProcesses() {
	if s.running > 0 {
		s.reserved, s.leftBehind = s.reserved-s.leftBehind, 0
	}
}

// createBuffer serves a request.
func (s *simulation) createBuffer(step *op) error {
	c := &s.script.classes[step.class]
	p, err := s.findOrStartProcess(c.process)
	if err != nil {
		return err
	}
	req := c.request
	req.Size, req.Tag, req.Time, req.Round = step.size, step.tag, step.time, c.maxRoundedSize(step.size)
	p.followsRecording = s.options.AsRecorded && step.mark&numbered != 0
	req.Again = p.followsRecording && step.mark&retried != 0
	if step.mark&needsBlock != 0 || req.Again {
		req.Align = 0
	}
	switch {
	case step.code == opCreate, step.code == opDecide && !p.followsRecording:
		s.serveRequest(p, &req, step.slot)
	case step.code == opFail && !p.followsRecording:
		p.retryFailedRequest(&req)
	case step.code == opDecide || step.code == opTry && p.followsRecording:
		p.beginDecision(&req, step)
	}
	return nil
}

// serveRequest serves a request, and stores its buffer in the slot.
func (s *simulation) serveRequest(p *simulatedProcess, req *allocator.Request, slot uint32) {
	for len(s.buffers) <= int(slot) {
		s.buffers = append(s.buffers, simulatedBuffer{})
	}
	buffer := &s.buffers[slot]
	if !p.serveRequest(req, buffer, slot) {
		*buffer = simulatedBuffer{}
		s.result.Failures++
		return
	}
	s.addToInUse(buffer)
}

// addToInUse adds a buffer to the bytes in use.
func (s *simulation) addToInUse(buffer *simulatedBuffer) {
	s.inUse += buffer.granted
	s.requested += buffer.requested
	buffer.process.inUse += buffer.granted
	buffer.process.requested += buffer.requested
	if s.inUse > s.result.PeakInUse {
		s.result.PeakInUse, s.result.WantedAtPeak = s.inUse, s.requested
	}
	s.result.PeakReserved = max(s.result.PeakReserved, s.reserved)
}

// releaseBuffer frees a buffer, or begins its cooling.
func (s *simulation) releaseBuffer(step *op) {
	if int(step.slot) >= len(s.buffers) { // the recording contradicts itself
		return
	}
	buffer := &s.buffers[step.slot]
	p := buffer.process
	switch buffer.state {
	case inUse:
	case direct:
		p.releaseToDriver(buffer)
		return
	case cooling:
		p.endCooling(step, buffer)
		return
	default:
		return
	}
	if step.mark&unseen != 0 && s.options.AsRecorded {
		p.releaseToDriver(buffer)
		return
	}
	switch step.code {
	case opFree:
		p.freeBuffer(buffer, false, step.time)
	case opFreeEarly:
		p.freeBuffer(buffer, true, step.time)
		p.racing = append(p.racing, racingBlock{buffer.block, buffer.number})
	case opCool:
		p.freeBuffer(buffer, true, step.time)
		buffer.state = cooling
		return
	case opForget:
		p.removeBlock(buffer)
	default: // opRefuse: a later step frees the buffer
		return
	}
	buffer.state = empty
}

// endCooling ends the cooling of a block, or lets it cool until the next wait.
func (p *simulatedProcess) endCooling(step *op, buffer *simulatedBuffer) {
	if step.code == opCooled {
		p.endBlockCooling(buffer.block, buffer.number, step.time)
	} else {
		p.racing = append(p.racing, racingBlock{buffer.block, buffer.number})
	}
	buffer.state = empty
}

// subtractFromInUse subtracts a buffer from the bytes in use.
func (s *simulation) subtractFromInUse(buffer *simulatedBuffer) {
	s.inUse -= buffer.granted
	s.requested -= buffer.requested
	buffer.process.inUse -= buffer.granted
	buffer.process.requested -= buffer.requested
}

// isLimitFixed reports whether a limit stays as the options set it.
func (s *simulation) isLimitFixed(name string) bool {
	if !s.options.HoldSettings {
		return false
	}
	for _, s := range s.options.Settings {
		if s.Name == name {
			return true
		}
	}
	return false
}

// resultSoFar returns the result so far.
func (s *simulation) resultSoFar() Result {
	out := s.result
	f := &s.script.facts
	out.Processes, out.Requests, out.Whole, out.Unpooled, out.Before, out.Lost = int(f.processes), f.requests, f.needsBlock, f.unpooled, f.carriedOver, f.lost
	if !s.options.AsRecorded {
		out.Switches = f.switches
	}
	out.Recorded.Hits, out.Recorded.Misses = f.hits, f.misses
	for _, p := range s.processes {
		if p != nil {
			out.addProcessFigures(p)
		}
	}
	out.SteadyHits, out.SteadyRequests = s.steady.HitsOfLaterHalf()
	d := &s.options.Device
	out.Device = *d
	out.CreateNS, out.TouchNS = s.work.Creates.TotalNS(&d.Create), s.work.Touches.TotalNS(&d.Touch)
	out.ReleaseNS, out.PartNS = s.work.Releases.TotalNS(&d.Release), s.work.Parts.TotalNS(&d.Part)
	out.DriverNS = out.CreateNS + out.TouchNS + out.ReleaseNS + out.PartNS
	out.SavedNS = max(0, s.saved.TotalNS(d)-out.PartNS)
	return out
}

// addProcessFigures adds the figures of one process.
func (out *Result) addProcessFigures(p *simulatedProcess) {
	s := p.policy.Stats()
	out.Arena.addProcessFigures(p, &s)
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
	fullest := p.statsWhenMostFree()
	out.Free += fullest.BytesCached
	out.Largest = max(out.Largest, fullest.Largest)
	out.Squares += fullest.Squares
	out.Slabs += fullest.Slabs
}
