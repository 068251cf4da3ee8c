package replay

// Split cuts a tape into two of as many events each. The second begins with what the program has then: whatever plays
// it is asked for that first. What a recording tells besides of all of it, such as hits and lost events, neither has.
func (t *Loaded) Split() (first, second *Loaded) {
	first, second = t.withoutEvents(), t.withoutEvents()
	var before []op
	left := t.events / 2
	for _, ops := range t.chunks {
		n := min(left, len(ops))
		left -= n
		before = append(before, ops[:n]...)
		if n < len(ops) && second.events == 0 {
			second.add(stillLive(before, t.script.slots))
		}
		second.add(ops[n:])
	}
	first.add(before)
	first.count()
	second.count()
	return first, second
}

// withoutEvents returns a tape of the same classes and devices without events.
func (t *Loaded) withoutEvents() *Loaded {
	s := t.script
	s.facts = facts{processes: s.facts.processes}
	return &Loaded{script: s, device: t.device}
}

// stillLive returns the creates of what was not released.
func stillLive(ops []op, slots uint32) []op {
	created := make([]int, slots) // place behind the create of what a slot has; 0: nothing
	for i := range ops {
		switch ops[i].code {
		case opCreate, opPlan:
			created[ops[i].slot] = i + 1
		case opFree, opFreeEarly, opCool, opForget, opGone:
			created[ops[i].slot] = 0
		default:
		}
	}
	var still []op
	for i := range ops {
		if ops[i].code.creates() && created[ops[i].slot] == i+1 {
			still = append(still, ops[i])
		}
	}
	return still
}

// count counts the requests.
func (t *Loaded) count() {
	for _, ops := range t.chunks {
		for i := range ops {
			if ops[i].code.creates() {
				t.script.facts.requests++
			}
		}
	}
}
