// Package memviz writes the memory of a recording as a snapshot of PyTorch's caching allocator, for the viewer at
// https://pytorch.org/memory_viz: a pickle of the segments and blocks at the end, and of the events before. Its
// structure follows torch/cuda/_memory_viz.py and torch/utils/viz/MemoryViz.js.
package memviz

import (
	"fmt"
	"io"
	"regexp"

	"codeberg.org/gpumemtop/gpumemtop/internal/callsite"
	"codeberg.org/gpumemtop/gpumemtop/internal/export/common"
	"codeberg.org/gpumemtop/gpumemtop/internal/heap"
	"codeberg.org/gpumemtop/gpumemtop/internal/recording"
	"codeberg.org/gpumemtop/gpumemtop/internal/wire"
)

// DefaultMaxEvents is how many events each device keeps by default. The viewer draws 15 000 buffers, each with up to four
// events.
const DefaultMaxEvents = 60_000

// Options say what a snapshot has.
type Options struct {
	Header    recording.Header
	MaxEvents uint64         // the last ones of each device of each process; 0: DefaultMaxEvents. Each takes 40 bytes of memory
	Tag       *regexp.Regexp // call sites whose buffers show; nil: all. Of other call sites only segments show
}

// Report says what was written.
type Report struct {
	Events  uint64 // all that happened
	Dropped uint64 // those that were too old to be kept
}

// WriteSnapshot writes the snapshot. It goes through the source twice. Memory grows with what is alive at a time, with the call
// sites, and with the events up to MaxEvents.
func WriteSnapshot(w io.Writer, src recording.Source, o Options) (Report, error) {
	if o.MaxEvents == 0 {
		o.MaxEvents = DefaultMaxEvents
	}
	names, err := callsite.ReadNames(src)
	if err != nil {
		return Report{}, err
	}
	x := &writer{
		options: o, names: names, choice: common.ChooseSites(names, o.Tag), layout: common.NewLayout(), lists: map[listKey]int{},
	}
	x.heap = heap.New(heap.Options{}, x)
	for r, err := range recording.Records(src) {
		if err != nil {
			return Report{}, err
		}
		x.takeRecord(r)
	}
	return x.writeGathered(w)
}

// writer follows a run.
type writer struct {
	heap.Base
	options Options
	names   *callsite.Names
	choice  *common.Choice
	layout  *common.Layout
	heap    *heap.Heap
	quiet   bool // the present record was carried over
	lists   map[listKey]int
	traces  []*list
}

// listKey is what the viewer calls a device.
type listKey struct {
	process uint32
	device  int
}

// action is what an event reports.
type action uint8

const (
	alloc action = iota
	freeRequested
	freeCompleted
	segmentAlloc
	segmentFree
	oom
	snapshot
)

var actions = [...]string{"alloc", "free_requested", "free_completed", "segment_alloc", "segment_free", "oom", "snapshot"}

type event struct {
	time, addr, size uint64 // addr: in an oom event, the bytes that the device has free
	tag              uint32
	action           action
	outside          bool
}

// list has the latest events of a device.
type list struct {
	listKey
	events   []event
	next     int // index in events of the oldest, once they are full
	seen     uint64
	reserved uint64 // bytes in segments
}

func (x *writer) indexOfDeviceList(process uint32, scope uint16) int {
	key := listKey{process, x.names.Process(process).DeviceIndex(scope)}
	i, ok := x.lists[key]
	if !ok {
		i = len(x.traces)
		x.lists[key] = i
		x.traces = append(x.traces, &list{listKey: key})
	}
	return i
}

func (x *writer) addEvent(at int, e event) {
	if x.quiet {
		return
	}
	l := x.traces[at]
	e.time = x.heap.Now()
	l.seen++
	if uint64(len(l.events)) < x.options.MaxEvents {
		l.events = append(l.events, e)
		return
	}
	l.events[l.next] = e
	l.next = (l.next + 1) % len(l.events)
}

func (x *writer) takeRecord(r *wire.Record) {
	x.quiet = r.CarriedOver()
	if e := r.AsCreate(); r.Kind == wire.KindCreate && e.Outcome() == wire.OutcomeFailed && x.choice.IncludesSite(r.Process, e.Tag()) {
		x.addFailedCreate(r.Process, e)
	}
	x.heap.Apply(r)
}

// addFailedCreate adds the event of a create that failed.
func (x *writer) addFailedCreate(process uint32, e wire.CreateView) {
	x.heap.AdvanceTime(e.Time())
	at := x.indexOfDeviceList(process, e.Scope())
	l := x.traces[at]
	var free uint64
	if devices := x.names.Process(process).Devices; l.device < len(devices) {
		free = devices[l.device].Global - min(devices[l.device].Global, l.reserved)
	}
	x.addEvent(at, event{action: oom, size: e.Requested(), tag: e.Tag(), addr: free})
}

// ObjectAllocated implements heap.Observer.
func (x *writer) ObjectAllocated(p *heap.Process, o *heap.Object, _ *heap.Block) {
	if !o.Owns {
		return
	}
	r := x.layout.RangeOfObject(p, o)
	if r != nil && (r.IsSlab() || r.Size != o.Granted) { // the end of the former range's object is not in the recording
		x.freeRange(r)
		r = nil
	}
	if r == nil {
		r = x.layout.PlaceObject(p, o, o.Block != 0 && o.SubAllocation)
		r.List = x.indexOfDeviceList(p.Number, o.Scope)
		if r.Slab == nil {
			x.addSegmentEvent(r, segmentAlloc, o.Tag)
		}
	}
	x.addFreeCompletedEvent(r)
	if x.choice.IncludesSite(p.Number, o.Tag) {
		x.addEvent(r.List, event{action: alloc, addr: r.Addr, size: r.Size, tag: o.Tag})
	}
}

// MemoryFreed implements heap.Observer.
func (x *writer) MemoryFreed(p *heap.Process, o *heap.Object, _ heap.How) {
	r := x.layout.RangeOfObject(p, o)
	if !o.Owns || r == nil {
		return
	}
	if x.choice.IncludesSite(p.Number, o.Tag) {
		x.addEvent(r.List, event{action: freeRequested, addr: r.Addr, size: r.Size, tag: o.Tag})
		r.Pending, r.Tag = true, o.Tag
	}
	if o.Block == 0 {
		x.addFreeCompletedEvent(r)
		x.freeRange(r)
	}
}

// BlockPooled implements heap.Observer.
func (x *writer) BlockPooled(p *heap.Process, b *heap.Block) {
	switch b.State {
	case heap.Slab:
		r := x.layout.PlaceSlab(p, b)
		r.List = x.indexOfDeviceList(p.Number, b.Scope)
		x.addSegmentEvent(r, segmentAlloc, 0)
	case heap.Cached:
		x.addFreeCompletedEvent(x.layout.RangeOfBlock(p, b.ID))
	default: // its release completes when the block has cooled
	}
}

// BlockCooled implements heap.Observer.
func (x *writer) BlockCooled(p *heap.Process, b *heap.Block) {
	x.addFreeCompletedEvent(x.layout.RangeOfBlock(p, b.ID))
}

// BlockGone implements heap.Observer.
func (x *writer) BlockGone(p *heap.Process, b *heap.Block) {
	if r := x.layout.RangeOfBlock(p, b.ID); r != nil {
		x.addFreeCompletedEvent(r)
		x.freeRange(r)
	}
}

// addFreeCompletedEvent adds, once, the event that released memory is free.
func (x *writer) addFreeCompletedEvent(r *common.Range) {
	if r != nil && r.Pending {
		r.Pending = false
		x.addEvent(r.List, event{action: freeCompleted, addr: r.Addr, size: r.Size, tag: r.Tag})
	}
}

func (x *writer) freeRange(r *common.Range) {
	if gone := x.layout.FreeRange(r); gone != nil {
		x.addSegmentEvent(gone, segmentFree, 0)
	}
}

// addSegmentEvent adds the event that the driver gave memory, or got it back.
func (x *writer) addSegmentEvent(r *common.Range, what action, tag uint32) {
	l := x.traces[r.List]
	if what == segmentAlloc {
		l.reserved += r.Size
	} else {
		l.reserved -= r.Size
	}
	x.addEvent(r.List, event{action: what, addr: r.Addr, size: r.Size, tag: tag, outside: r.Outside})
}

// writeGathered writes what was gathered.
func (x *writer) writeGathered(w io.Writer) (Report, error) {
	var report Report
	for _, l := range x.traces {
		report.Events += l.seen
		report.Dropped += l.seen - uint64(len(l.events))
	}
	if err := x.writePickle(w, report); err != nil {
		return Report{}, fmt.Errorf("write a snapshot: %w", err)
	}
	return report, nil
}
