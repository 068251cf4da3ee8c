package calls

import (
	"encoding/binary"
	"math"

	"codeberg.org/gpumemtop/gpumemtop/internal/wire"
)

// Bounds on what a process can make its book keep. What comes beyond is not followed.
const (
	memoriesMax  = 1 << 20
	objectsMax   = 1 << 16 // contexts, queues, kernels and samplers, each
	indicesMax   = 1024    // arguments of one kernel
	argumentsMax = 1 << 20 // of all kernels together
	accessesMax  = 64      // memory that one command uses, as in the shim
)

// Book follows the objects of one process. Calls come in the order of their times; one goroutine uses it. A call costs
// the same however many there were. Numbers of objects count from 1, each kind for itself, and are never used again.
type Book struct {
	tags   Tagger
	put    func(*wire.Record)
	record wire.Record // that put is given

	function string // whose call is looked at
	command  command

	contexts  map[uint64]*context
	queues    map[uint64]*queue
	kernels   map[uint64]*kernel
	samplers  map[uint64]*object
	memories  map[uint64]*memory // by handle, shared memory by its address
	arguments int                // of all kernels
	latest    *kernel            // which had an argument set last, and its handle
	handle    uint64
	free      *memory // entries to be used again, through their parents

	numbers struct{ context, queue, kernel, memory uint64 }
	graves  *[graves]grave // nil: nothing has ended
	losses  uint32         // how often calls were lost
	settled uint64         // since when nothing can be under way that began unseen; 0: unknown yet
}

// underWay is how long a call may take that was under way when the watch began: that memory is created by it is not
// seen, and its handle may be one that was seen to end.
const underWay = 10_000_000_000 // ns

// NewBook returns the book of a process of which nothing was seen. put is given the records that its calls make, with
// Process left 0; a record and its payload are valid during the call of put.
func NewBook(tags Tagger, put func(*wire.Record)) *Book {
	return &Book{
		tags: tags, put: put,
		contexts: map[uint64]*context{}, queues: map[uint64]*queue{}, kernels: map[uint64]*kernel{},
		samplers: map[uint64]*object{}, memories: map[uint64]*memory{},
	}
}

// Call takes what the eBPF program told of the process. It takes anything: what makes no sense is ignored. Of a call that
// is told at its entry it sets Entered to that.
func (b *Book) Call(s *wire.Sample) {
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
	if b.settled == 0 {
		b.settled = s.Entered + underWay
	}
	b.function = f.Name
	f.call(b, s)
}

// Whole says that nothing of the process was missed so far: its first call of all is yet to come. Without, memory that
// ends in the first ten seconds may live on, and what names it then is no mistake of the program. It is too late once a
// call was told.
func (b *Book) Whole() {
	if b.settled == 0 {
		b.settled = 1
	}
}

// Lost says that calls of the process were lost since the last one: what the book has not seen since it last saw an
// object begin or end, or memory mapped, proves nothing any more, and no mistake of the program is concluded from it.
func (b *Book) Lost() {
	b.losses++
	b.graves = nil
}

// write gives out a record of a call.
func (b *Book) write(s *wire.Sample, e wire.Event) { b.tell(s, e, nil) }

func (b *Book) tell(s *wire.Sample, e wire.Event, payload []byte) {
	e.Time = s.Time
	if e.Kind.HasPayload() {
		e.Size = uint64(len(payload))
	}
	b.record = wire.Record{Event: e, Thread: s.Tid, Payload: payload}
	b.put(&b.record)
}

// birth is when and how an object came to be known.
type birth struct {
	entered, time uint64
	thread        uint32
	function      uint16
}

func birthOf(s *wire.Sample) birth { return birth{s.Entered, s.Time, s.Tid, s.Function} }

// within reports whether the object came from inside another call that returned it, too: a function that is made of
// another one, whose call was told first.
func (o birth) within(s *wire.Sample) bool {
	return o.function != s.Function && o.during(s)
}

// during reports whether the object was first seen while a call ran, by its own thread.
func (o birth) during(s *wire.Sample) bool {
	return o.thread == s.Tid && s.Entered <= o.entered && o.time <= s.Time
}

// duration is what a call took, ns.
func duration(s *wire.Sample) uint32 {
	return uint32(min(s.Time-min(s.Entered, s.Time), math.MaxUint32))
}

// status cuts a cl_int down to what an event has room for, as the shim does.
func status(code int32) int16 {
	return int16(max(min(code, math.MaxInt16), math.MinInt16))
}

// word returns a number of eight bytes of a copy.
func word(copied []byte, i int) uint64 { return binary.LittleEndian.Uint64(copied[8*i:]) }

// handles returns how many handles of a list were copied.
func handles(copied []byte, count uint32) int {
	return int(min(uint64(count), uint64(len(copied)/handleBytes)))
}

// plus adds without running over.
func plus(a, b uint64) uint64 {
	if a > math.MaxUint64-b {
		return math.MaxUint64
	}
	return a + b
}

// times multiplies without running over.
func times(a, b uint64) uint64 {
	if b != 0 && a > math.MaxUint64/b {
		return math.MaxUint64
	}
	return a * b
}
