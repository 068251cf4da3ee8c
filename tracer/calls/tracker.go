package calls

import (
	"encoding/binary"
	"math"

	"codeberg.org/gpumemtop/gpumemtop/internal/wire"
)

// Bounds on what a tracker keeps of one process. It ignores what comes beyond.
const (
	memoriesMax  = 1 << 20
	objectsMax   = 1 << 16 // contexts, queues, kernels, samplers and programs, each
	indicesMax   = 1024    // arguments of one kernel
	argumentsMax = 1 << 20 // of all kernels together
	accessesMax  = 64      // that one command uses, as in the shim
)

// Tracker follows the objects of one process. Calls must come in the order of their times; it is for one goroutine. Each
// call takes constant time. Objects are numbered from 1, each kind for itself, and numbers are never reused.
type Tracker struct {
	writer   writer
	ledger   ledger
	memories memories
	contexts contexts
	queues   queues
	events   events
	programs programs
	kernels  kernels
	samplers samplers
	creates  creates
	command  command
	pointers pointers
}

// callMax bounds how long a call lasts that was running when we attached, ns. Such a call may create memory unseen, under
// a handle that we have seen freed.
const callMax = 10_000_000_000

// NewTracker returns a tracker for a process whose calls were not seen yet. It passes records to put with Process 0; a record
// and its payload are valid during the call of put.
func NewTracker(tags Tagger, put func(*wire.Record)) *Tracker {
	t := &Tracker{writer: writer{tags: tags, put: put}}
	w, l, ms, cs := &t.writer, &t.ledger, &t.memories, &t.contexts
	t.ledger = ledger{writer: w, sites: map[countsKey]*counts{}}
	t.memories = memories{writer: w, byHandle: map[uint64]*memory{}}
	t.contexts = contexts{writer: w, ledger: l, memories: ms, byHandle: map[uint64]*context{}}
	t.queues = queues{writer: w, ledger: l, memories: ms, contexts: cs, byHandle: map[uint64]*queue{}}
	t.events = events{ledger: l, byHandle: map[uint64]event{}}
	t.programs = programs{ledger: l, byHandle: map[uint64]*object{}}
	t.kernels = kernels{writer: w, ledger: l, memories: ms, byHandle: map[uint64]*kernel{}}
	t.samplers = samplers{ledger: l, memories: ms, byHandle: map[uint64]*object{}}
	t.creates = creates{writer: w, memories: ms, contexts: cs}
	t.command = command{writer: w, memories: ms, contexts: cs, queues: &t.queues, kernels: &t.kernels, samplers: &t.samplers}
	t.pointers = pointers{memories: ms, contexts: cs, queues: &t.queues, creates: &t.creates, command: &t.command}
	return t
}

// HandleCall handles a sample of the process. It ignores what makes no sense. If the call was reported at its entry, Call sets
// s.Entered to s.Time.
func (t *Tracker) HandleCall(s *wire.Sample) {
	if s.Sight != wire.SightCall || int(s.Function) >= len(Functions) {
		return
	}
	f := &Functions[s.Function]
	if f.call == nil {
		return
	}
	if f.Shape.Flags&wire.ShapeReturn == 0 {
		s.Entered = s.Time
	}
	if t.memories.settledAt == 0 {
		t.memories.settledAt = s.Entered + callMax
	}
	t.writer.function = f.Name
	f.call(t, s)
	if s.Event != 0 {
		t.events.countReturnedEvent(s)
	}
	if s.Time >= t.ledger.due {
		t.ledger.writeChangedCounts(s)
	}
}

// NoteSeenFromStart says that no call of the process was missed. It must come before Call. Otherwise memory that is freed in
// the first ten seconds may live on, and its later use is not reported as a mistake.
func (t *Tracker) NoteSeenFromStart() {
	if t.memories.settledAt == 0 {
		t.memories.settledAt = 1
	}
}

// NoteCallsLost says that calls of the process were lost. From then on the tracker reports no mistakes that rely on what it saw
// earlier: references, mappings and freed handles.
func (t *Tracker) NoteCallsLost() {
	t.memories.losses++
	t.memories.freedHandles = nil
}

// WriteRestAt writes what has not been written yet, at a time: the process ends.
func (t *Tracker) WriteRestAt(time uint64) {
	t.ledger.writeChangedCounts(&wire.Sample{Call: wire.Call{Time: time}})
}

// callDuration is how long a call took, in ns.
func callDuration(s *wire.Sample) uint32 {
	return uint32(min(s.Time-min(s.Entered, s.Time), math.MaxUint32))
}

// clampStatus cuts a cl_int to the size of an event's field, as the shim does.
func clampStatus(code int32) int16 {
	return int16(max(min(code, math.MaxInt16), math.MinInt16))
}

// numberAt returns the i-th number of eight bytes of a copy.
func numberAt(copied []byte, i int) uint64 { return binary.LittleEndian.Uint64(copied[8*i:]) }

// countCopiedHandles returns how many handles of a list were copied.
func countCopiedHandles(copied []byte, count uint32) int {
	return int(min(uint64(count), uint64(len(copied)/handleBytes)))
}

// addSaturating returns a + b, at most the largest number.
func addSaturating(a, b uint64) uint64 {
	if a > math.MaxUint64-b {
		return math.MaxUint64
	}
	return a + b
}

// mulSaturating returns a × b, at most the largest number.
func mulSaturating(a, b uint64) uint64 {
	if b != 0 && a > math.MaxUint64/b {
		return math.MaxUint64
	}
	return a * b
}
