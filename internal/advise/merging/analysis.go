package merging

import (
	"slices"
	"sort"
)

// Analysis holds the facts about one program. One goroutine makes it; afterwards any may read it.
type Analysis struct {
	Program *Program
	// Lives has one entry per buffer. The entries of sub-buffers are empty: their uses count for their roots.
	Lives []Life

	roots         []position // position of each buffer in its root
	hasParts      []bool     // by buffer: it is a root with sub-buffers
	touchStarts   []int32    // by buffer: index of its first touch; one more at the end
	allTouches    []touch    // by root, in the order of the steps
	queues        []int64    // by root: the one queue of all commands that use it; noUser or severalUsers otherwise
	threads       []int64    // by root: the one thread that uses it; noUser or severalUsers otherwise
	latestDone    []int32    // by touch: the latest completion of the root's touches up to this one
	events        eventOrder // order of steps on different queues
	lastHostReads []int32    // by step: the last step before it that informed the host; None if there is none
}

// position is where a buffer's first byte lies in its root: the buffer that owns the memory.
type position struct {
	root   int32
	offset uint64
}

// touch is one use of a root's bytes [lo, hi). Mapped bytes are touched until they are unmapped.
type touch struct {
	lo, hi      uint64
	step, until int32
	reads       bool
	writes      bool
	certain     bool // exactly these bytes, by a command that does nothing else
}

// Analyse follows the buffers of a program. The error reports a contradiction in the program. It takes O(n) memory and
// O(n log n) time in steps and uses.
func Analyse(p *Program) (*Analysis, error) {
	if err := p.checkProgram(); err != nil {
		return nil, err
	}
	a := &Analysis{Program: p}
	a.events = newEventOrder(p)
	a.resolveSubBuffers()
	a.findTouches()
	if !p.usesBuffers() {
		a.noteCreators()
	}
	a.extendMapsToUnmap()
	a.findHostReads()
	a.findLives()
	return a, nil
}

func (a *Analysis) resolveSubBuffers() {
	p := a.Program
	a.roots = make([]position, len(p.Buffers))
	a.hasParts = make([]bool, len(p.Buffers))
	for i := range p.Buffers {
		b := &p.Buffers[i]
		a.roots[i] = position{root: int32(i)}
		if b.Parent != None { // parents come before their sub-buffers
			up := a.roots[b.Parent]
			a.roots[i] = position{root: up.root, offset: up.offset + b.Offset}
			a.hasParts[up.root] = true
		}
	}
}

// findTouches sorts the uses by root: it counts them first, then fills them in order.
func (a *Analysis) findTouches() {
	p := a.Program
	a.touchStarts = make([]int32, len(p.Buffers)+1)
	for i := range p.Steps {
		for _, u := range p.Steps[i].Uses {
			a.touchStarts[a.roots[u.Buffer].root+1]++
		}
	}
	for i := range p.Buffers {
		a.touchStarts[i+1] += a.touchStarts[i]
	}
	next := slices.Clone(a.touchStarts)
	a.allTouches = make([]touch, a.touchStarts[len(p.Buffers)])
	a.latestDone = make([]int32, len(a.allTouches))
	a.queues = slices.Repeat([]int64{noUser}, len(p.Buffers))
	a.threads = slices.Clone(a.queues)
	for i := range p.Steps {
		for _, u := range p.Steps[i].Uses {
			root := a.roots[u.Buffer].root
			index := next[root]
			next[root]++
			a.allTouches[index] = a.touchOfUse(i, u)
			a.latestDone[index] = int32(a.stepKnownCompleted(i))
			if index > a.touchStarts[root] {
				a.latestDone[index] = max(a.latestDone[index], a.latestDone[index-1])
			}
			a.noteUser(int(root), i)
		}
	}
}

// Values in the place of a queue's or thread's number.
const (
	noUser       = -1
	severalUsers = -2
)

// commonUser combines the users of two buffers: noUser gives way to the other, two different users become severalUsers.
func commonUser(x, y int64) int64 {
	switch {
	case x == y || y == noUser:
		return x
	case x == noUser:
		return y
	default:
		return severalUsers
	}
}

// noteUser notes the queue and the thread of a command that uses a root.
func (a *Analysis) noteUser(root, step int) {
	s := &a.Program.Steps[step]
	if s.Kind == KindCreate {
		return
	}
	a.queues[root] = commonUser(a.queues[root], int64(s.Queue))
	a.threads[root] = commonUser(a.threads[root], s.callingThread())
}

// callingThread returns the thread that made the call.
func (s *Step) callingThread() int64 {
	if s.Thread == 0 {
		return noUser
	}
	return int64(s.Thread)
}

// usedBySeveralThreads reports whether several threads use the given roots. The run shows in which order they did, but
// not what makes one thread wait for another, so the order may be chance.
func (a *Analysis) usedBySeveralThreads(roots ...int) bool {
	all := int64(noUser)
	for _, root := range roots {
		all = commonUser(all, a.threads[root])
	}
	return all == severalUsers
}

// noteCreators notes the creating thread of each buffer as its user, because the uses were not recorded.
func (a *Analysis) noteCreators() {
	for i := range a.Program.Buffers {
		if made := a.Program.Buffers[i].Created; made < len(a.Program.Steps) {
			a.threads[i] = a.Program.Steps[made].callingThread()
		}
	}
}

// touchOfUse translates a use into bytes of its root.
func (a *Analysis) touchOfUse(step int, u Use) touch {
	s := &a.Program.Steps[step]
	size := a.Program.Buffers[u.Buffer].Size
	t := touch{step: int32(step), until: int32(step), reads: u.Reads || !u.Writes, writes: u.Writes || !u.Reads, hi: size}
	switch u.Extent {
	case Range:
		t.lo, t.hi = u.Offset, u.Offset+u.Bytes
		t.certain = s.Kind == KindWrite || s.Kind == KindFill || s.Kind == KindCopy || s.Kind == KindCreate || s.Kind == KindRead
	case Scattered:
		t.lo = min(u.Offset, size)
	case Whole, Unknown:
	}
	offset := a.roots[u.Buffer].offset
	t.lo, t.hi = t.lo+offset, t.hi+offset
	return t
}

// extendMapsToUnmap makes maps last until they are unmapped. It is unknown which map an unmap ends, so all open maps of a root
// last until there were as many unmaps. A map without an unmap lasts forever.
func (a *Analysis) extendMapsToUnmap() {
	p := a.Program
	for b := range p.Buffers {
		touches := a.touchesOf(b)
		var open []int
		closed := 0
		for i := range touches {
			switch p.Steps[touches[i].step].Kind {
			case KindMap:
				open = append(open, i)
			case KindUnmap:
				closed++
			default:
			}
			if len(open) > 0 && closed >= len(open) {
				for _, m := range open {
					touches[m].until = touches[i].step
				}
				open = open[:0]
			}
			if len(open) == 0 {
				closed = 0
			}
		}
		for _, m := range open {
			touches[m].until = int32(len(p.Steps))
		}
	}
}

func (a *Analysis) findHostReads() {
	p := a.Program
	a.lastHostReads = make([]int32, len(p.Steps)+1)
	last := int32(None)
	for i := range p.Steps {
		a.lastHostReads[i] = last
		if p.Steps[i].informsHost() {
			last = int32(i)
		}
	}
	a.lastHostReads[len(p.Steps)] = last
}

// informsHost reports whether the host learns from a step what a command computed.
func (s *Step) informsHost() bool {
	switch s.Kind {
	case KindRead, KindHostRead, KindNative:
		return true
	case KindMap:
		return slices.ContainsFunc(s.Uses, func(u Use) bool { return u.Reads || !u.Writes })
	default:
		return false
	}
}

// lastHostRead returns the last step in [from, to) that informed the host, None if there is none.
func (a *Analysis) lastHostRead(from, to int) int {
	if r := int(a.lastHostReads[to]); r >= from {
		return r
	}
	return None
}

// touchesOf returns the touches of a root, in the order of the steps. Sub-buffers have none.
func (a *Analysis) touchesOf(root int) []touch {
	return a.allTouches[a.touchStarts[root]:a.touchStarts[root+1]]
}

// firstTouchFrom returns the index of the first touch of a root at a step or later.
func (a *Analysis) firstTouchFrom(root, step int) int {
	touches := a.touchesOf(root)
	return sort.Search(len(touches), func(i int) bool { return int(touches[i].step) >= step })
}

// stepKnownCompleted returns the step at which a step is known to have completed, the end of the run if that is unknown.
func (a *Analysis) stepKnownCompleted(step int) int {
	if d := a.Program.Steps[step].Done; d != None {
		return d
	}
	return len(a.Program.Steps)
}

// endsBefore reports whether a step has certainly ended when a later one begins. A create is on no queue.
func (a *Analysis) endsBefore(first, then int) bool {
	x, y := &a.Program.Steps[first], &a.Program.Steps[then]
	return x.Queue == y.Queue && x.Kind != KindCreate && y.Kind != KindCreate || a.stepKnownCompleted(first) <= then ||
		a.events.endsBefore(a.Program, first, then)
}

// isRoot reports whether a buffer has memory of its own.
func (a *Analysis) isRoot(buffer int) bool { return a.Program.Buffers[buffer].Parent == None }

// progress says that a queue has completed a step, and all steps before it on the same queue.
type progress struct {
	queue uint32
	step  int32
}

// progressMax bounds the number of queues whose progress is known at a step. Forgetting some only makes the analysis
// more cautious.
const progressMax = 16

// eventOrder knows for each step how far the other queues have certainly come when the step begins, from the events
// that the step and earlier steps on its queue wait for. It is empty if no step waits for events.
type eventOrder struct {
	progressOf []int32      // by step: index in lists
	lists      [][]progress // shared by many steps; the first is empty
}

func newEventOrder(p *Program) eventOrder {
	if !slices.ContainsFunc(p.Steps, func(s Step) bool { return len(s.After) > 0 }) {
		return eventOrder{}
	}
	o := eventOrder{progressOf: make([]int32, len(p.Steps)), lists: [][]progress{nil}}
	last := map[uint32]int32{}
	for i := range p.Steps {
		s := &p.Steps[i]
		if s.Kind == KindCreate {
			continue
		}
		if len(s.After) > 0 {
			marks := slices.Clone(o.lists[last[s.Queue]])
			for _, x := range s.After {
				for _, m := range o.lists[o.progressOf[x]] {
					marks = raiseProgress(marks, m)
				}
				marks = raiseProgress(marks, progress{p.Steps[x].Queue, int32(x)})
			}
			o.lists = append(o.lists, marks)
			last[s.Queue] = int32(len(o.lists) - 1)
		}
		o.progressOf[i] = last[s.Queue]
	}
	return o
}

// raiseProgress adds a queue's progress to a list. It replaces the progress of the same queue, or the oldest one if the list
// is full.
func raiseProgress(marks []progress, m progress) []progress {
	oldest := 0
	for i := range marks {
		if marks[i].queue == m.queue {
			marks[i].step = max(marks[i].step, m.step)
			return marks
		}
		if marks[i].step < marks[oldest].step {
			oldest = i
		}
	}
	if len(marks) < progressMax {
		return append(marks, m)
	}
	if marks[oldest].step < m.step {
		marks[oldest] = m
	}
	return marks
}

// endsBefore reports whether a step on one queue has certainly ended when a step on another begins.
func (o *eventOrder) endsBefore(p *Program, first, then int) bool {
	if o.progressOf == nil {
		return false
	}
	return slices.ContainsFunc(o.lists[o.progressOf[then]], func(m progress) bool {
		return m.queue == p.Steps[first].Queue && int(m.step) >= first && p.Steps[first].Kind != KindCreate
	})
}
