// Package spill says what --spill would move for a program that was recorded, and how little memory is enough with it. It
// simulates one device for each process, as --device-memory has them.
package spill

import (
	"codeberg.org/gpumemtop/gpumemtop/internal/callsite"
	"codeberg.org/gpumemtop/gpumemtop/internal/heap"
	"codeberg.org/gpumemtop/gpumemtop/internal/recording"
	"codeberg.org/gpumemtop/gpumemtop/internal/wire"
)

// kind is what happens in a trace.
type kind uint8

const (
	use    kind = iota // a command uses an object
	run                // it has named all of them
	born               // an object that cannot go gets memory
	gone               // an object's memory goes
	pinned             // it is mapped from here on
	loose              // and no more
)

type step struct {
	object int32
	kind   kind
	writes bool
}

// object is memory of its own; sub-buffers and images of a buffer are it, too.
type object struct {
	size   uint64
	tag    uint32
	reads  bool // the device may only read it
	fixed  bool // images, SVM and memory of the host stay
	copied bool // the host had its contents first
}

// trace is what one process did.
type trace struct {
	names       *callsite.ProcessNames
	objects     []object
	steps       []step
	inUse, peak uint64
	live        map[uint64]int32
	last        command
}

// command is what tells the uses of one command from those of the next.
type command struct {
	thread   uint32
	op       wire.Command
	argument uint32
	time     uint64
	queue    uint64
	kernel   uint64
}

// continues reports whether a use is one more of the same command: a kernel's come by their arguments.
func (c *command) continues(next *command) bool {
	if c.thread != next.thread || c.time != next.time || c.queue != next.queue || c.op != next.op || c.kernel != next.kernel {
		return false
	}
	return c.op != wire.CommandKernel || next.argument == 0 || next.argument > c.argument
}

// fold makes traces of a recording.
type fold struct {
	heap.Base
	names        *callsite.Names
	processes    map[uint32]*trace
	first, final uint64
	rates        [2]rate // to the device and back
}

// rate is the best of what calls have moved.
type rate struct {
	bytes   uint64
	perByte float64 // ns
}

// rateLeast is the size from which a call says something about a link.
const rateLeast = 64 << 10

func (r *rate) add(bytes uint64, ns uint32) {
	if bytes == 0 || ns == 0 {
		return
	}
	perByte := float64(ns) / float64(bytes)
	small := bytes < rateLeast && bytes < r.bytes
	if r.bytes == 0 || r.bytes < rateLeast && bytes > r.bytes || !small && perByte < r.perByte {
		r.bytes, r.perByte = bytes, perByte
	}
}

// read makes the traces. Errors are those of the source. Memory grows with the uses.
func read(src recording.Source) (*fold, error) {
	f := &fold{names: callsite.NewNames(), processes: map[uint32]*trace{}}
	h := heap.New(heap.Options{EndProcesses: true}, f)
	for r, err := range recording.Records(src) {
		if err != nil {
			return nil, err
		}
		if f.first == 0 {
			f.first = r.Time
		}
		f.final = max(f.final, r.Time)
		f.names.Add(r)
		if r.Kind == wire.KindUse {
			f.use(r)
		}
		h.Apply(r)
	}
	for _, t := range f.processes {
		t.end()
	}
	return f, nil
}

func (f *fold) process(number uint32) *trace {
	t := f.processes[number]
	if t == nil {
		t = &trace{names: f.names.Process(number), live: map[uint64]int32{}}
		f.processes[number] = t
	}
	return t
}

// end closes the last command.
func (t *trace) end() {
	if n := len(t.steps); n > 0 && t.steps[n-1].kind == use {
		t.steps = append(t.steps, step{kind: run})
	}
}

func (t *trace) add(s step) {
	t.end()
	t.steps = append(t.steps, s)
}

// use takes one use of a command.
func (f *fold) use(r *wire.Record) {
	u, t := r.AsUse(), f.process(r.Process)
	switch u.Command() {
	case wire.CommandWrite:
		f.rates[0].add(u.Bytes(), u.Duration())
	case wire.CommandRead:
		f.rates[1].add(u.Bytes(), u.Duration())
	default:
	}
	at, known := t.live[u.Object()]
	if !known {
		return
	}
	now := command{thread: r.Thread, op: u.Command(), argument: u.ArgumentNumber(), time: r.Time, queue: u.Queue(), kernel: u.Kernel()}
	if !t.last.continues(&now) {
		t.end()
	}
	t.last = now
	writes := u.Writes() || !u.Reads()
	if u.Command() == wire.CommandKernel { // it may cast a const away
		writes = !t.objects[at].reads
	}
	t.steps = append(t.steps, step{object: at, kind: use, writes: writes})
	switch u.Command() {
	case wire.CommandMap:
		t.add(step{object: at, kind: pinned})
	case wire.CommandUnmap:
		t.add(step{object: at, kind: loose})
	default:
	}
}

// Allocated implements heap.Observer.
func (f *fold) Allocated(p *heap.Process, o *heap.Object, _ *heap.Block) {
	t := f.process(p.Number)
	if parent, known := t.live[o.Parent]; known && o.Parent != 0 {
		t.live[o.ID] = parent
		return
	}
	if !o.Owns {
		return
	}
	at := int32(len(t.objects))
	t.live[o.ID] = at
	fixed := o.Memory != wire.MemoryBuffer || o.Access&wire.UseHostPtr != 0
	t.objects = append(t.objects, object{
		size: o.Size, tag: o.Tag, fixed: fixed, copied: o.Access&wire.CopyHostPtr != 0, reads: o.Access&readOnly != 0,
	})
	if fixed {
		t.add(step{object: at, kind: born})
	}
	t.inUse += o.Size
	t.peak = max(t.peak, t.inUse)
}

// readOnly is CL_MEM_READ_ONLY.
const readOnly = 1 << 2

// Freed implements heap.Observer.
func (f *fold) Freed(p *heap.Process, o *heap.Object, _ heap.How) {
	t := f.process(p.Number)
	at, known := t.live[o.ID]
	delete(t.live, o.ID)
	if known && o.Owns && o.Parent == 0 {
		t.add(step{object: at, kind: gone})
		t.inUse -= o.Size
	}
}
