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
	tags   Tagger
	put    func(*wire.Record)
	record wire.Record // passed to put

	function string // that the current call is of
	command  command

	contexts  map[uint64]*context
	queues    map[uint64]*queue
	kernels   map[uint64]*kernel
	samplers  map[uint64]*object
	programs  map[uint64]*object
	sleeping  [sleepingMax]*context // the latest
	sleeps    int
	ledger    ledger
	memories  map[uint64]*memory // by handle, shared memory by its address
	arguments int                // of all kernels
	latest    *kernel            // whose argument was set last, and its handle
	handle    uint64
	free      *memory // list of entries to reuse, linked by parent

	numbers      struct{ context, queue, kernel, memory uint64 }
	freedHandles *[freedMax]freedHandle // by slot; nil: none
	losses       uint32                 // how often calls were lost
	settledAt    uint64                 // no call that began unseen is still running after this time, ns; 0: unknown
}

// callMax bounds how long a call lasts that was running when we attached, ns. Such a call may create memory unseen, under
// a handle that we have seen freed.
const callMax = 10_000_000_000

// NewTracker returns a tracker for a process of which no call was seen. It passes records to put with Process 0; a record
// and its payload are valid during the call of put.
func NewTracker(tags Tagger, put func(*wire.Record)) *Tracker {
	return &Tracker{
		tags: tags, put: put,
		contexts: map[uint64]*context{}, queues: map[uint64]*queue{}, kernels: map[uint64]*kernel{},
		samplers: map[uint64]*object{}, programs: map[uint64]*object{}, memories: map[uint64]*memory{},
	}
}

// Call handles a sample of the process. It ignores what makes no sense. If the call was reported at its entry, Call sets
// s.Entered to s.Time.
func (t *Tracker) Call(s *wire.Sample) {
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
	if t.settledAt == 0 {
		t.settledAt = s.Entered + callMax
	}
	t.function = f.Name
	f.call(t, s)
	if s.Event != 0 {
		t.newEvent(s)
	}
	if s.Time >= t.ledger.due {
		t.ledger.write(t, s)
	}
}

// SeenFromStart says that no call of the process was missed. It must come before Call. Otherwise memory that is freed in
// the first ten seconds may live on, and its later use is not reported as a mistake.
func (t *Tracker) SeenFromStart() {
	if t.settledAt == 0 {
		t.settledAt = 1
	}
}

// Lost says that calls of the process were lost. From then on the tracker reports no mistakes that rely on what it saw
// earlier: references, mappings and freed handles.
func (t *Tracker) Lost() {
	t.losses++
	t.freedHandles = nil
}

// write passes on an event of a call.
func (t *Tracker) write(s *wire.Sample, e wire.Event) { t.writeRecord(s, wire.Record{Event: e}) }

// writeRecord passes on a record of a call.
func (t *Tracker) writeRecord(s *wire.Sample, r wire.Record) {
	t.record = r
	t.record.Time, t.record.Thread = s.Time, s.Tid
	t.put(&t.record)
}

// firstCall is the call by which we came to know an object.
type firstCall struct {
	entered, time uint64
	thread        uint32
	function      uint16
}

func firstCallOf(s *wire.Sample) firstCall { return firstCall{s.Entered, s.Time, s.Tid, s.Function} }

// within reports whether a call inside s, of another function, has returned the object already.
func (o firstCall) within(s *wire.Sample) bool {
	return o.function != s.Function && o.during(s)
}

// during reports whether the thread of s saw the object first while s ran.
func (o firstCall) during(s *wire.Sample) bool {
	return o.thread == s.Tid && s.Entered <= o.entered && o.time <= s.Time
}

// duration is how long a call took, in ns.
func duration(s *wire.Sample) uint32 {
	return uint32(min(s.Time-min(s.Entered, s.Time), math.MaxUint32))
}

// status cuts a cl_int to the size of an event's field, as the shim does.
func status(code int32) int16 {
	return int16(max(min(code, math.MaxInt16), math.MinInt16))
}

// word returns the i-th number of eight bytes of a copy.
func word(copied []byte, i int) uint64 { return binary.LittleEndian.Uint64(copied[8*i:]) }

// handles returns how many handles of a list were copied.
func handles(copied []byte, count uint32) int {
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
