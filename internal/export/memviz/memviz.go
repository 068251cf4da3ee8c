// Package memviz writes the memory of a recording as a snapshot of PyTorch's caching allocator, for the viewer at
// https://pytorch.org/memory_viz: a pickle of the segments and blocks at the end, and of what happened before. Its
// structure is that of torch/cuda/_memory_viz.py and torch/utils/viz/MemoryViz.js.
package memviz

import (
	"fmt"
	"io"
	"regexp"

	"codeberg.org/gpumemtop/gpumemtop/internal/export/lives"
	"codeberg.org/gpumemtop/gpumemtop/internal/life"
	"codeberg.org/gpumemtop/gpumemtop/internal/trace"
	"codeberg.org/gpumemtop/gpumemtop/internal/wire"
)

// DefaultMaxEvents is how many events each device keeps unless told otherwise. The viewer draws 15 000 buffers; each
// has up to four events.
const DefaultMaxEvents = 60_000

// Options say what a snapshot has.
type Options struct {
	Header    trace.Header
	MaxEvents uint64         // of each device of each process, the last ones; 0: DefaultMaxEvents. 40 bytes of memory each
	Tag       *regexp.Regexp // call sites whose buffers show; nil: all. Of others only the segments do
}

// Report says what was written.
type Report struct {
	Events  uint64 // that happened
	Dropped uint64 // of these, were too old to be kept
}

// Write writes the snapshot. It goes through the source twice. Memory grows with what is alive at a time, with the call
// sites, and with the events up to MaxEvents.
func Write(w io.Writer, src trace.Source, o Options) (Report, error) {
	if o.MaxEvents == 0 {
		o.MaxEvents = DefaultMaxEvents
	}
	names, err := life.ReadNames(src)
	if err != nil {
		return Report{}, err
	}
	x := &writer{
		options: o, names: names, choice: lives.NewChoice(names, o.Tag), layout: lives.NewLayout(), lists: map[listKey]int{},
	}
	x.fold = life.New(x)
	if err := lives.Each(src, x.step); err != nil {
		return Report{}, err
	}
	return x.finish(w)
}

// writer follows a run.
type writer struct {
	options Options
	names   *life.Names
	choice  *lives.Choice
	layout  *lives.Layout
	fold    *life.Fold
	quiet   bool // the record tells what was there before the part
	lists   map[listKey]int
	traces  []*list
}

// listKey is what the viewer calls a device.
type listKey struct {
	process uint32
	device  int
}

// action is what an event tells.
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
	time, addr, size uint64 // addr of an oom: bytes that the device has free
	tag              uint32
	action           action
	outside          bool
}

// list are the latest events of a device.
type list struct {
	listKey
	events   []event
	next     int // in events, when it is full
	seen     uint64
	reserved uint64 // bytes in segments
}

func (x *writer) list(process uint32, scope uint16) int {
	key := listKey{process, x.names.Process(process).Device(scope)}
	i, ok := x.lists[key]
	if !ok {
		i = len(x.traces)
		x.lists[key] = i
		x.traces = append(x.traces, &list{listKey: key})
	}
	return i
}

func (x *writer) add(at int, e event) {
	if x.quiet {
		return
	}
	l := x.traces[at]
	e.time = x.fold.Now
	l.seen++
	if uint64(len(l.events)) < x.options.MaxEvents {
		l.events = append(l.events, e)
		return
	}
	l.events[l.next] = e
	l.next = (l.next + 1) % len(l.events)
}

func (x *writer) step(r *wire.Record) error {
	x.quiet = false
	switch r.Kind {
	case wire.KindCreate, wire.KindRelease, wire.KindSlab:
		x.quiet = r.Flags&wire.FlagCarried != 0
	default:
	}
	if r.Kind == wire.KindCreate && r.Outcome == wire.OutcomeFailed && x.choice.Has(r.Process, r.Tag) {
		x.fail(r)
	}
	var cooling *life.Block
	if r.Kind == wire.KindCooled {
		if b := x.fold.Process(r.Process).Block(r.Link); b != nil && b.State == life.Cooling && !b.Part {
			cooling = b
		}
	}
	p := x.fold.Step(r)
	if cooling != nil {
		x.complete(x.layout.Block(p, cooling.Number))
	}
	return nil
}

// fail tells of a create that failed.
func (x *writer) fail(r *wire.Record) {
	x.fold.Now = max(x.fold.Now, r.Time)
	at := x.list(r.Process, r.Scope)
	l := x.traces[at]
	var free uint64
	if devices := x.names.Process(r.Process).Devices; l.device < len(devices) {
		free = devices[l.device].Global - min(devices[l.device].Global, l.reserved)
	}
	x.add(at, event{action: oom, size: r.Size, tag: r.Tag, addr: free})
}

// Begin implements life.Watcher.
func (x *writer) Begin(p *life.Process, o *life.Object) {
	if !o.Owns {
		return
	}
	r := x.layout.Object(p, o)
	if r != nil && (r.IsSlab() || r.Size != o.Granted) { // its end is not in the recording
		x.give(r)
		r = nil
	}
	if r == nil {
		r = x.layout.Place(p, o, o.Block != 0 && o.Flags&wire.FlagPart != 0)
		r.List = x.list(p.Number, o.Scope)
		if r.Slab == nil {
			x.segment(r, segmentAlloc, o.Tag)
		}
	}
	x.complete(r)
	if x.choice.Has(p.Number, o.Tag) {
		x.add(r.List, event{action: alloc, addr: r.Addr, size: r.Size, tag: o.Tag})
	}
}

// End implements life.Watcher.
func (x *writer) End(p *life.Process, o *life.Object, _ life.How) {
	r := x.layout.Object(p, o)
	if !o.Owns || r == nil {
		return
	}
	if x.choice.Has(p.Number, o.Tag) {
		x.add(r.List, event{action: freeRequested, addr: r.Addr, size: r.Size, tag: o.Tag})
		r.Pending, r.Tag = true, o.Tag
	}
	if o.Block == 0 {
		x.complete(r)
		x.give(r)
	}
}

// Pool implements life.Watcher.
func (x *writer) Pool(p *life.Process, b *life.Block) {
	switch b.State {
	case life.Slab:
		r := x.layout.Slab(p, b)
		r.List = x.list(p.Number, b.Scope)
		x.segment(r, segmentAlloc, 0)
	case life.Cached:
		x.complete(x.layout.Block(p, b.Number))
	default: // it completes when it has cooled
	}
}

// Unpool implements life.Watcher. What begins or ends next completes what cools.
func (x *writer) Unpool(*life.Process, *life.Block, life.How) {}

// Gone implements life.BlockWatcher.
func (x *writer) Gone(p *life.Process, b *life.Block) {
	if r := x.layout.Block(p, b.Number); r != nil {
		x.complete(r)
		x.give(r)
	}
}

// complete tells that memory that was let go is free, once.
func (x *writer) complete(r *lives.Range) {
	if r != nil && r.Pending {
		r.Pending = false
		x.add(r.List, event{action: freeCompleted, addr: r.Addr, size: r.Size, tag: r.Tag})
	}
}

func (x *writer) give(r *lives.Range) {
	if gone := x.layout.Give(r); gone != nil {
		x.segment(gone, segmentFree, 0)
	}
}

// segment tells of memory that the driver gave, or got back.
func (x *writer) segment(r *lives.Range, what action, tag uint32) {
	l := x.traces[r.List]
	if what == segmentAlloc {
		l.reserved += r.Size
	} else {
		l.reserved -= r.Size
	}
	x.add(r.List, event{action: what, addr: r.Addr, size: r.Size, tag: tag, outside: r.Outside})
}

// finish writes what was gathered.
func (x *writer) finish(w io.Writer) (Report, error) {
	var report Report
	for _, l := range x.traces {
		report.Events += l.seen
		report.Dropped += l.seen - uint64(len(l.events))
	}
	if err := x.pickle(w, report); err != nil {
		return Report{}, fmt.Errorf("write a snapshot: %w", err)
	}
	return report, nil
}
