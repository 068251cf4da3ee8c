package recorded

import (
	"codeberg.org/gpumemtop/gpumemtop/internal/advise/merging"
	"codeberg.org/gpumemtop/gpumemtop/internal/heap"
	"codeberg.org/gpumemtop/gpumemtop/internal/wire"
)

// Bits of cl_mem_flags (OpenCL 3.0, CL/cl.h).
const (
	memReadWrite = 1 << 0
	memWriteOnly = 1 << 1
	memReadOnly  = 1 << 2
)

// process makes the program of one process.
type process struct {
	all     *builder
	program merging.Program
	objects map[uint64]*object
	queues  map[uint64]*queue
	threads map[uint32]*thread
	ordered map[uint32]*queue // those with an order, by their numbers
	waiting []*thread         // in the order in which their waits began
	numbers uint32            // of queues, given out so far
	exited  bool
	gaps
}

// object is a memory object that may still be used.
type object struct {
	buffer        int
	exact         bool // offsets in it are known
	open          int  // maps that were not undone
	reads, writes bool // what those do
}

// queue is one whose create was seen.
type queue struct {
	number  uint32
	inOrder bool
	running []int // steps that are not known to have completed, in their order
	unread  bool  // the host may learn something when they have
	after   []int // what the next command comes behind, because a marker before it waited for that
}

// thread is what a thread does.
type thread struct {
	number   uint32 // from 1
	commands bool   // it enqueued any
	last     command
	wait     *wait
	awaits   awaits
}

// command is the last one that a thread enqueued: more uses of it may follow.
type command struct {
	step     int // None when there is none
	time     uint64
	queue    uint64
	op       wire.Command
	argument uint32 // 1 + its index; 0 when it is not recorded
	kernel   uint64
}

// wait is one that a thread is in.
type wait struct {
	record wire.Record
	end    uint64
	mine   int    // the command that it is for, None when there is none
	awaits awaits // what it is for, where that is recorded
}

func newProcess(b *builder) *process {
	return &process{
		all: b, objects: map[uint64]*object{}, queues: map[uint64]*queue{}, threads: map[uint32]*thread{},
		ordered: map[uint32]*queue{},
	}
}

// thread returns a thread, which it makes on first mention.
func (p *process) thread(number uint32) *thread {
	t := p.threads[number]
	if t == nil {
		t = &thread{number: uint32(len(p.threads) + 1), last: command{step: merging.None}}
		p.threads[number] = t
	}
	return t
}

// add adds a step, None where no more are kept.
func (p *process) add(s *merging.Step) int {
	if p.all.left == 0 {
		p.dropped++
		return merging.None
	}
	p.all.left--
	p.program.Steps = append(p.program.Steps, *s)
	return len(p.program.Steps) - 1
}

// full reports whether steps were dropped: what comes behind them is dropped too.
func (p *process) full() bool { return p.all.left == 0 || p.dropped > 0 }

func (p *process) queue(r *wire.Record) {
	e := r.AsQueue()
	if e.Life() != wire.LifeCreate {
		return
	}
	p.numbers++
	q := &queue{number: p.numbers, inOrder: !e.OutOfOrder()}
	p.queues[e.Queue()] = q
	if q.inOrder {
		p.ordered[q.number] = q
	}
}

func (p *process) create(r *wire.Record) {
	e := r.AsCreate()
	if e.Outcome() == wire.OutcomeFailed {
		return
	}
	if p.full() {
		p.dropped++
		return
	}
	b := merging.Buffer{
		Size: e.Requested(), Site: e.Tag(), Class: class(e), Parent: merging.None, Released: merging.None,
		Pinned: pin(e),
	}
	o := &object{buffer: len(p.program.Buffers), exact: true}
	step := merging.Step{Kind: merging.KindCreate, Time: r.Time, Thread: p.thread(r.Thread).number}
	if !heap.HasMemory(e) {
		p.part(e, &b, o)
	} else if e.Access()&(wire.CopyHostPtr|wire.UseHostPtr) != 0 || b.Pinned == merging.Earlier {
		step.Uses = []merging.Use{{Buffer: o.buffer, Bytes: b.Size, Extent: merging.Range, Writes: true}}
	}
	b.Created = len(p.program.Steps)
	step.Done = b.Created
	p.add(&step)
	p.program.Buffers = append(p.program.Buffers, b)
	p.objects[e.Object()] = o
}

// part fills in a buffer that has no memory of its own. Where it is not known where it begins in its parent, which
// earlier versions did not record, any of the parent's bytes may be its, unless it is as large.
func (p *process) part(e wire.CreateView, b *merging.Buffer, o *object) {
	parent := p.objects[e.Parent()]
	if parent == nil {
		b.Size, b.Pinned, o.exact = 0, merging.Imported, false // memory of another API, which counts nowhere
		return
	}
	b.Parent = parent.buffer
	whole := p.program.Buffers[parent.buffer].Size
	origin, known := e.Origin()
	fits := origin <= whole && b.Size <= whole-origin
	o.exact = parent.exact && e.Memory() == wire.MemorySubBuffer && fits && (known || b.Size == whole)
	if o.exact {
		b.Offset = origin
	} else {
		b.Size = whole
		p.parts++
	}
}

// class says which buffers can share a block: those of one context with the same flags, apart from how they get their
// first contents.
func class(e wire.CreateView) uint32 {
	access := e.Access() &^ wire.CopyHostPtr
	if access&(memReadWrite|memWriteOnly|memReadOnly) == 0 {
		access |= memReadWrite // what no flag means
	}
	return uint32(e.Scope())<<16 | uint32(access)
}

func pin(e wire.CreateView) merging.Pin {
	switch kind := e.Memory(); {
	case e.CarriedOver():
		return merging.Earlier
	case kind == wire.MemoryImage:
		return merging.Image
	case kind == wire.MemoryExternal:
		return merging.Imported
	case kind >= wire.MemorySVM && kind <= wire.MemoryUSMShared:
		return merging.SVM
	case kind != wire.MemoryBuffer && kind != wire.MemorySubBuffer:
		return merging.Other
	case e.Access()&wire.UseHostPtr != 0:
		return merging.HostPtr
	}
	return merging.Free
}

// release takes the application's last reference. A second one means that what kept the memory alive has gone, too.
func (p *process) release(r *wire.Record) {
	e := r.AsRelease()
	o := p.objects[e.Object()]
	if o == nil || e.References() > 0 {
		return
	}
	if e.Outcome() != wire.OutcomePinned {
		delete(p.objects, e.Object())
	}
	if p.program.Buffers[o.buffer].Released != merging.None {
		return
	}
	step := len(p.program.Steps)
	if p.full() {
		p.dropped++
		return
	}
	p.add(&merging.Step{Kind: merging.KindRelease, Time: r.Time, Done: step})
	p.program.Buffers[o.buffer].Released = step
}

// finish ends a program. What lives on where the recording does not may be used at any time: a last step uses it.
func (p *process) finish(goesOn bool) {
	for _, t := range p.waiting {
		p.endWait(t)
	}
	p.endless = p.dropped == 0 && goesOn && !p.exited
	if !p.endless && p.dropped == 0 {
		return
	}
	step := merging.Step{Kind: merging.KindOther, Queue: p.onlyQueue(), Done: merging.None}
	if n := len(p.program.Steps); n > 0 {
		step.Time = p.program.Steps[n-1].Time
	}
	for i := range p.program.Buffers {
		if b := &p.program.Buffers[i]; b.Released == merging.None {
			step.Uses = append(step.Uses, merging.Use{Buffer: i, Extent: merging.Unknown})
		}
	}
	if len(step.Uses) > 0 {
		p.program.Steps = append(p.program.Steps, step)
	}
}

// onlyQueue returns the number of the queue that all commands are on, or one that no command has.
func (p *process) onlyQueue() uint32 {
	only := uint32(0)
	for i := range p.program.Steps {
		switch q := p.program.Steps[i].Queue; {
		case q == 0 || q == only:
		case only == 0:
			only = q
		default:
			return p.numbers + 1
		}
	}
	return only
}
