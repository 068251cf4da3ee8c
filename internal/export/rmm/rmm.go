// Package rmm writes the creates and releases of a recording as the log of RMM's logging resource adaptor, which RMM's
// replay benchmark plays through other pools. The format is that of rapidsai/rmm,
// cpp/src/mr/detail/logging_resource_adaptor_impl.cpp: a line is "thread,HH:MM:SS.microseconds,action,pointer,size,
// stream"; its reader is cpp/benchmarks/utilities/log_parser.hpp.
package rmm

import (
	"bufio"
	"fmt"
	"io"
	"regexp"
	"strconv"
	"time"

	"codeberg.org/gpumemtop/gpumemtop/internal/export/common"
	"codeberg.org/gpumemtop/gpumemtop/internal/heap"
	"codeberg.org/gpumemtop/gpumemtop/internal/recording"
	"codeberg.org/gpumemtop/gpumemtop/internal/wire"
)

// Header is the first line.
const Header = "Thread,Time,Action,Pointer,Size,Stream"

// Options say what a log has.
type Options struct {
	Header recording.Header
	Tag    *regexp.Regexp // call sites whose buffers are in it; nil: all
}

// WriteLog writes a log of the objects that own memory, with requested sizes. Objects from before the source are allocated in
// the first lines. The memory of a process that has ended is freed if another process continues. It goes through the source
// twice. Memory grows with what is alive at a time and with the number of call sites.
func WriteLog(w io.Writer, src recording.Source, o Options) error {
	choice, err := common.ReadNamesAndChooseSites(src, o.Tag)
	if err != nil {
		return err
	}
	x := &writer{choice: choice, w: bufio.NewWriterSize(w, 64<<10), header: o.Header, layout: common.NewLayout()}
	x.heap = heap.New(heap.Options{EndProcesses: true}, x)
	x.writeLine(Header)
	for r, err := range recording.Records(src) {
		if err != nil {
			return err
		}
		x.takeRecord(r)
	}
	x.writeEarlierObjects()
	if err := x.w.Flush(); err != nil {
		return fmt.Errorf("write a log of RMM: %w", err)
	}
	return nil
}

// writer follows a run.
type writer struct {
	heap.Base
	w      *bufio.Writer
	b      []byte
	header recording.Header
	layout *common.Layout
	choice *common.Choice
	heap   *heap.Heap
	begun  bool // objects from before the source are written
	thread uint32
}

func (x *writer) takeRecord(r *wire.Record) {
	x.thread = r.Thread
	switch r.Kind {
	case wire.KindCreate, wire.KindRelease, wire.KindSlab, wire.KindExit:
		if !r.CarriedOver() {
			x.writeEarlierObjects()
		}
	default:
	}
	x.heap.AdvanceTime(r.Time) // also for records that the session wrote late
	e := r.AsCreate()
	if r.Kind == wire.KindCreate && e.Outcome() == wire.OutcomeFailed && heap.HasMemory(e) && x.choice.IncludesSite(r.Process, e.Tag()) {
		x.writeAction("allocate failure", nil, e.Requested())
	}
	x.heap.Apply(r)
}

// writeEarlierObjects writes the objects from before the source, once.
func (x *writer) writeEarlierObjects() {
	if x.begun {
		return
	}
	x.begun = true
	thread := x.thread
	for _, p := range x.heap.Processes() {
		for _, o := range p.Objects() {
			x.thread = o.Thread
			x.writeAllocation(p, o)
		}
	}
	x.thread = thread
}

// ObjectAllocated implements heap.Observer.
func (x *writer) ObjectAllocated(p *heap.Process, o *heap.Object, _ *heap.Block) {
	if !o.Owns {
		return
	}
	r := x.layout.RangeOfObject(p, o)
	if r != nil && (r.IsSlab() || r.Size != o.Granted) { // the end of the former range's object is not in the recording
		x.layout.FreeRange(r)
		r = nil
	}
	if r == nil {
		x.layout.PlaceObject(p, o, o.Block != 0 && o.SubAllocation)
	}
	if x.begun {
		x.writeAllocation(p, o)
	}
}

func (x *writer) writeAllocation(p *heap.Process, o *heap.Object) {
	if o.Owns && x.choice.IncludesSite(p.Number, o.Tag) {
		x.writeAction("allocate", x.layout.RangeOfObject(p, o), o.Size)
	}
}

// MemoryFreed implements heap.Observer.
func (x *writer) MemoryFreed(p *heap.Process, o *heap.Object, _ heap.How) {
	r := x.layout.RangeOfObject(p, o)
	if !o.Owns || r == nil {
		return
	}
	if x.begun && x.choice.IncludesSite(p.Number, o.Tag) {
		x.writeAction("free", r, o.Size)
	}
	if o.Block == 0 {
		x.layout.FreeRange(r)
	}
}

// BlockPooled implements heap.Observer.
func (x *writer) BlockPooled(p *heap.Process, b *heap.Block) {
	if b.State == heap.Slab {
		x.layout.PlaceSlab(p, b)
	}
}

// BlockGone implements heap.Observer.
func (x *writer) BlockGone(p *heap.Process, b *heap.Block) {
	if r := x.layout.RangeOfBlock(p, b.ID); r != nil {
		x.layout.FreeRange(r)
	}
}

func (x *writer) writeLine(text string) {
	_, _ = x.w.WriteString(text) // a bufio.Writer keeps its first error for Flush
	_ = x.w.WriteByte('\n')
}

// writeAction writes a line. All streams are the default one: the replay benchmark accepts no other.
func (x *writer) writeAction(action string, at *common.Range, size uint64) {
	b := strconv.AppendUint(x.b[:0], uint64(x.thread), 10)
	b = append(b, ',')
	b = x.header.Created.Add(time.Duration(max(x.heap.Now(), x.header.ClockNS)-x.header.ClockNS)).AppendFormat(b, "15:04:05.000000")
	b = append(b, ',')
	b = append(b, action...)
	if at == nil {
		b = append(b, ",(nil),"...)
	} else {
		b = append(b, ",0x"...)
		b = strconv.AppendUint(b, at.Addr, 16)
		b = append(b, ',')
	}
	b = strconv.AppendUint(b, size, 10)
	b = append(b, ",0\n"...)
	_, _ = x.w.Write(b)
	x.b = b
}
