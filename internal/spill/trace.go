// Package spill says what --spill would move for a recorded program, and how little memory suffices with it. It
// simulates one device for each process, as --device-memory does.
package spill

import (
	"math"

	"codeberg.org/gpumemtop/gpumemtop/internal/callsite"
	"codeberg.org/gpumemtop/gpumemtop/internal/heap"
	"codeberg.org/gpumemtop/gpumemtop/internal/recording"
	"codeberg.org/gpumemtop/gpumemtop/internal/wire"
)

// kind is the kind of a step.
type kind uint8

const (
	stepUse    kind = iota // a command uses an object
	stepRun                // the uses of the command are complete
	stepCreate             // an object that cannot be spilled gets memory
	stepFree               // an object's memory is freed
	stepMap                // the object is mapped
	stepUnmap              // the object is unmapped
)

type step struct {
	object int32
	kind   kind
	writes bool
}

// object is memory of its own. Sub-buffers, and images on a buffer, count as that object.
type object struct {
	size   uint64
	tag    uint32
	fixed  bool // it cannot be spilled: images, SVM and memory of the host
	copied bool // its first contents came from the host
}

// trace is what one process did.
type trace struct {
	names       *callsite.ProcessNames
	objects     []object
	steps       []step
	inUse, peak uint64
	live        map[uint64]int32
	last        command
	waited      command // that blocked while others may have run
}

// command identifies a command.
type command struct {
	thread   uint32
	op       wire.Command
	argument uint32
	time     uint64
	queue    uint64
	kernel   uint64
}

// isContinuedBy reports whether a use belongs to the same command. The uses of a kernel come in the order of its
// arguments.
func (c *command) isContinuedBy(next *command) bool {
	if c.thread != next.thread || c.time != next.time || c.queue != next.queue || c.op != next.op || c.kernel != next.kernel {
		return false
	}
	return c.op != wire.CommandKernel || next.argument == 0 || next.argument > c.argument
}

// fold makes the traces of a recording.
type fold struct {
	heap.Base
	names        *callsite.Names
	processes    map[uint32]*trace
	first, final uint64
	rates        map[wire.Command]float64 // the best of writes and reads, in bytes per second; 0: unknown
}

// rateBytesMin is the size from which a transfer shows the rate of the link. A smaller one shows what a call takes.
const rateBytesMin = 64 << 10

func (f *fold) raiseTransferRate(c wire.Command, bytes, ns uint64) {
	if bytes >= rateBytesMin && ns > 0 {
		f.rates[c] = max(f.rates[c], float64(bytes)/float64(ns)*1e9)
	}
}

// tracesOfProcesses makes the traces. Errors are those of the source. Memory grows with the uses.
func tracesOfProcesses(src recording.Source) (*fold, error) {
	f := &fold{names: callsite.NewNames(), processes: map[uint32]*trace{}, rates: map[wire.Command]float64{}}
	h := heap.New(heap.Options{EndProcesses: true}, f)
	for r, err := range recording.Records(src) {
		if err != nil {
			return nil, err
		}
		if f.first == 0 {
			f.first = r.Time
		}
		f.final = max(f.final, r.Time)
		f.names.AddRecord(r)
		f.noteTransferRate(h, r)
		if r.Kind == wire.KindUse {
			f.addUse(r)
		}
		h.Apply(r)
	}
	for _, t := range f.processes {
		t.endLastCommand()
	}
	return f, nil
}

func (f *fold) traceOf(number uint32) *trace {
	t := f.processes[number]
	if t == nil {
		t = &trace{names: f.names.Process(number), live: map[uint64]int32{}}
		f.processes[number] = t
	}
	return t
}

// endLastCommand ends the last command.
func (t *trace) endLastCommand() {
	if n := len(t.steps); n > 0 && t.steps[n-1].kind == stepUse {
		t.steps = append(t.steps, step{kind: stepRun})
	}
}

func (t *trace) addStep(s step) {
	t.endLastCommand()
	t.steps = append(t.steps, s)
}

// noteTransferRate adds the speed that a transfer shows: by the device's clock, or where it blocks. What blocks while other
// commands may run has their time, too, and how long the longest calls took is not recorded.
func (f *fold) noteTransferRate(h *heap.Heap, r *wire.Record) {
	switch v, u := r.AsTransfer(), r.AsUse(); {
	case r.Kind == wire.KindTransfer:
		f.raiseTransferRate(v.Profiled(), v.Moved(), v.Took())
	case r.Kind == wire.KindSync && r.AsSync().Sync() == wire.SyncBlocking && h.Process(r.Process).MayCommandsStillRun(r): // its USE follows
		f.traceOf(r.Process).waited = command{thread: r.Thread, time: r.Time}
	case r.Kind == wire.KindUse && u.Bytes() >= rateBytesMin && u.Duration() > 0 && u.Duration() < math.MaxUint32:
		if f.traceOf(r.Process).waited != (command{thread: r.Thread, time: r.Time}) && !h.Process(r.Process).MayCommandsStillRun(r) {
			f.raiseTransferRate(u.Command(), u.Bytes(), uint64(u.Duration()))
		}
	}
}

// addUse adds one use of a command.
func (f *fold) addUse(r *wire.Record) {
	u, t := r.AsUse(), f.traceOf(r.Process)
	object, known := t.live[u.Object()]
	if !known {
		return
	}
	current := command{thread: r.Thread, op: u.Command(), argument: u.ArgumentNumber(), time: r.Time, queue: u.Queue(), kernel: u.Kernel()}
	if !t.last.isContinuedBy(&current) {
		t.endLastCommand()
	}
	t.last = current
	writes := u.Writes() || !u.Reads() || u.Command() == wire.CommandKernel // which may cast a const away
	t.steps = append(t.steps, step{object: object, kind: stepUse, writes: writes})
	switch u.Command() {
	case wire.CommandMap:
		t.addStep(step{object: object, kind: stepMap})
	case wire.CommandUnmap:
		t.addStep(step{object: object, kind: stepUnmap})
	default:
	}
}

// ObjectAllocated implements heap.Observer.
func (f *fold) ObjectAllocated(p *heap.Process, o *heap.Object, _ *heap.Block) {
	t := f.traceOf(p.Number)
	if parent, known := t.live[o.Parent]; known && o.Parent != 0 {
		t.live[o.ID] = parent
		return
	}
	if !o.Owns {
		return
	}
	index := int32(len(t.objects))
	t.live[o.ID] = index
	fixed := o.Memory != wire.MemoryBuffer || o.Access&wire.UseHostPtr != 0
	t.objects = append(t.objects, object{
		size: o.Size, tag: o.Tag, fixed: fixed, copied: o.Access&wire.CopyHostPtr != 0,
	})
	if fixed {
		t.addStep(step{object: index, kind: stepCreate})
	}
	t.inUse += o.Size
	t.peak = max(t.peak, t.inUse)
}

// MemoryFreed implements heap.Observer.
func (f *fold) MemoryFreed(p *heap.Process, o *heap.Object, _ heap.How) {
	t := f.traceOf(p.Number)
	object, known := t.live[o.ID]
	delete(t.live, o.ID)
	if known && o.Owns && o.Parent == 0 {
		t.addStep(step{object: object, kind: stepFree})
		t.inUse -= o.Size
	}
}
