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

// process builds the program of one process.
type process struct {
	builder *builder
	program merging.Program
	objects map[uint64]*object
	queues  map[uint64]*queue
	threads map[uint32]*thread
	ordered map[uint32]*queue // in-order queues, by their numbers
	waiting []*thread         // in the order in which their waits began
	numbers uint32            // queue numbers given out so far
	exited  bool
	copying map[uint32]*Copying
	making  map[uint32]uint64 // see Run.Making

	first, last uint64 // times of records
	gaps
}

// object is a memory object that may still be used.
type object struct {
	buffer              int
	exact               bool // offsets in it are known
	openMaps            int  // maps that were not unmapped
	mapsRead, mapsWrite bool // what the open maps do
	copied              bool // its create counts in process.copying
}

// queue is a queue whose create was recorded.
type queue struct {
	number        uint32
	inOrder       bool
	running       []int // steps that are not known to have completed, in order
	unreadResults bool  // the host may learn something when they have completed
	after         []int // steps that precede the next command, because a marker waited for them
}

// thread is the state of a thread.
type thread struct {
	number   uint32 // from 1
	commands bool   // it enqueued some
	last     command
	wait     *wait
	awaits   awaits
}

// command is the last command that a thread enqueued. More uses of it may follow.
type command struct {
	step     int // None: no command
	time     uint64
	queue    uint64
	op       wire.Command
	argument uint32 // 1 + index of the argument; 0 if it is not recorded
	kernel   uint64
}

// wait is a wait that a thread is in.
type wait struct {
	record  wire.Record
	end     uint64
	command int    // the command that it waits for, None if there is none
	awaits  awaits // what it waits for, if that is recorded
}

func newProcess(b *builder) *process {
	return &process{
		builder: b, objects: map[uint64]*object{}, queues: map[uint64]*queue{}, threads: map[uint32]*thread{},
		ordered: map[uint32]*queue{}, copying: map[uint32]*Copying{}, making: map[uint32]uint64{},
	}
}

// threadOf returns a thread, which may be new.
func (p *process) threadOf(number uint32) *thread {
	t := p.threads[number]
	if t == nil {
		t = &thread{number: uint32(len(p.threads) + 1), last: command{step: merging.None}}
		p.threads[number] = t
	}
	return t
}

// addStep adds a step, and returns None if no more are kept.
func (p *process) addStep(s *merging.Step) int {
	if p.builder.stepsLeft == 0 {
		p.dropped++
		return merging.None
	}
	p.builder.stepsLeft--
	p.program.Steps = append(p.program.Steps, *s)
	return len(p.program.Steps) - 1
}

// hasDroppedSteps reports whether steps were dropped. All later ones are dropped, too.
func (p *process) hasDroppedSteps() bool { return p.builder.stepsLeft == 0 || p.dropped > 0 }

func (p *process) addQueue(r *wire.Record) {
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

func (p *process) addCreate(r *wire.Record) {
	e := r.AsCreate()
	if e.Outcome() == wire.OutcomeFailed {
		return
	}
	if p.hasDroppedSteps() {
		p.dropped++
		return
	}
	b := merging.Buffer{
		Size: e.Requested(), Site: e.Tag(), Class: classOfBuffer(e), Parent: merging.None, Released: merging.None,
		Pinned: pinOfCreate(e),
	}
	o := &object{buffer: len(p.program.Buffers), exact: true}
	step := merging.Step{Kind: merging.KindCreate, Time: r.Time, Thread: p.threadOf(r.Thread).number}
	if !heap.HasMemory(e) {
		p.completeSharingBuffer(e, &b, o)
	} else if e.Access()&(wire.CopyHostPtr|wire.UseHostPtr) != 0 || b.Pinned == merging.Earlier {
		step.Uses = []merging.Use{{Buffer: o.buffer, Bytes: b.Size, Extent: merging.Range, Writes: true}}
	}
	if o.copied = e.Memory() == wire.MemoryBuffer && e.Access()&wire.CopyHostPtr != 0 && !e.CarriedOver(); o.copied {
		if p.copying[b.Site] == nil {
			p.copying[b.Site] = &Copying{}
		}
		p.copying[b.Site].countCreate(b.Size, e.Cost())
	}
	p.making[b.Site] += 2 * uint64(max(e.Duration(), e.Cost()))
	if e.Outcome() != wire.OutcomeHit {
		p.making[b.Site] += b.Size / freshBytes
	}
	b.Created = len(p.program.Steps)
	step.Done = b.Created
	p.addStep(&step)
	p.program.Buffers = append(p.program.Buffers, b)
	p.objects[e.Object()] = o
}

// freshBytes is how many bytes of new memory the first writes to it reach in a nanosecond, at least.
const freshBytes = 2

// completeSharingBuffer completes a buffer that has no memory of its own. If its offset in the parent is unknown, because earlier
// versions did not record it, it may have any bytes of the parent, unless it is equally large.
func (p *process) completeSharingBuffer(e wire.CreateView, b *merging.Buffer, o *object) {
	parent := p.objects[e.Parent()]
	if parent == nil {
		b.Size, b.Pinned, o.exact = 0, merging.Imported, false // memory of another API, which does not count
		return
	}
	b.Parent = parent.buffer
	whole := p.program.Buffers[parent.buffer].Size
	origin, known := e.OffsetInParent()
	fits := origin <= whole && b.Size <= whole-origin
	o.exact = parent.exact && e.Memory() == wire.MemorySubBuffer && fits && (known || b.Size == whole)
	if o.exact {
		b.Offset = origin
	} else {
		b.Size = whole
		p.parts++
	}
}

// classOfBuffer returns the class of a buffer: its context and its flags, except how it gets its first contents.
func classOfBuffer(e wire.CreateView) uint32 {
	access := e.Access() &^ wire.CopyHostPtr
	if access&(memReadWrite|memWriteOnly|memReadOnly) == 0 {
		access |= memReadWrite // the default
	}
	return uint32(e.Scope())<<16 | uint32(access)
}

func pinOfCreate(e wire.CreateView) merging.Pin {
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

// addRelease handles the application's last release. A second one means that the last sub-object has been released,
// too.
func (p *process) addRelease(r *wire.Record) {
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
	if p.hasDroppedSteps() {
		p.dropped++
		return
	}
	p.addStep(&merging.Step{Kind: merging.KindRelease, Time: r.Time, Done: step})
	p.program.Buffers[o.buffer].Released = step
	if o.copied {
		p.copying[p.program.Buffers[o.buffer].Site].live--
	}
}

// endProgram ends a program. If the recording ends before the process, or steps were dropped, a last step uses all buffers
// that still live.
func (p *process) endProgram(continues bool) {
	for _, t := range p.waiting {
		p.endWait(t)
	}
	p.endless = p.dropped == 0 && continues && !p.exited
	if !p.endless && p.dropped == 0 {
		return
	}
	step := merging.Step{Kind: merging.KindOther, Queue: p.onlyQueueNumber(), Done: merging.None}
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

// onlyQueueNumber returns the number of the queue that all commands are on, or a number that no queue has.
func (p *process) onlyQueueNumber() uint32 {
	single := uint32(0)
	for i := range p.program.Steps {
		switch q := p.program.Steps[i].Queue; {
		case q == 0 || q == single:
		case single == 0:
			single = q
		default:
			return p.numbers + 1
		}
	}
	return single
}
