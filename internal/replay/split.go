package replay

// SplitInHalves cuts a recording into two halves of equally many events. The second half begins with creates of the buffers
// that live then. Neither half has figures about the whole recording, such as hits and lost events.
func (l *Loaded) SplitInHalves() (first, second *Loaded) {
	first, second = l.withoutEvents(), l.withoutEvents()
	var before []op
	left := l.events / 2
	for _, ops := range l.chunks {
		n := min(left, len(ops))
		left -= n
		before = append(before, ops[:n]...)
		if n < len(ops) && second.events == 0 {
			second.appendSteps(createsOfLive(before, l.script.slots))
		}
		second.appendSteps(ops[n:])
	}
	first.appendSteps(before)
	first.countRequests()
	second.countRequests()
	return first, second
}

// withoutEvents returns a recording with the same classes and devices and no events.
func (l *Loaded) withoutEvents() *Loaded {
	s := l.script
	s.facts = facts{processes: s.facts.processes}
	return &Loaded{script: s, device: l.device}
}

// createsOfLive returns the creates of buffers that were not released.
func createsOfLive(ops []op, slots uint32) []op {
	created := make([]int, slots) // 1 + index of the create of a slot's buffer; 0: no buffer
	for i := range ops {
		switch ops[i].code {
		case opCreate, opDecide:
			created[ops[i].slot] = i + 1
		case opFree, opFreeEarly, opCool, opForget, opGone:
			created[ops[i].slot] = 0
		default:
		}
	}
	var still []op
	for i := range ops {
		if ops[i].code.givesBuffer() && created[ops[i].slot] == i+1 {
			still = append(still, ops[i])
		}
	}
	return still
}

// countRequests counts the requests.
func (l *Loaded) countRequests() {
	for _, ops := range l.chunks {
		for i := range ops {
			if ops[i].code.givesBuffer() {
				l.script.facts.requests++
			}
		}
	}
}
