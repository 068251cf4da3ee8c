package memviz

import (
	"cmp"
	"fmt"
	"io"
	"maps"
	"slices"

	"codeberg.org/gpumemtop/gpumemtop/internal/callsite"
	"codeberg.org/gpumemtop/gpumemtop/internal/export/common"
	"codeberg.org/gpumemtop/gpumemtop/internal/heap"
	"codeberg.org/gpumemtop/gpumemtop/internal/units"
)

// States of a block, in PyTorch's words.
const (
	active   = "active_allocated"
	pending  = "active_pending_free"
	inactive = "inactive"
)

// block is a piece of a segment.
type block struct {
	addr, size, requested uint64
	state                 string
	site                  siteKey
}

// segment is memory that the driver has given.
type segment struct {
	addr, size uint64
	list       int
	kind       string
	blocks     []block // by address; bytes that no block covers are free
}

type siteKey struct{ process, tag uint32 }

// out writes a snapshot.
type out struct {
	*pickler
	x      *writer
	stacks map[siteKey]uint32 // places in the memo
}

// writePickle writes everything.
func (x *writer) writePickle(w io.Writer, report Report) error {
	p := &out{pickler: newPickler(w), x: x, stacks: map[siteKey]uint32{}}
	p.writeDict(func() {
		p.writeText("segments")
		p.writeList(func(item func()) {
			for _, s := range x.sortedSegments() {
				item()
				p.writeSegment(s)
			}
		})
		p.writeText("device_traces")
		p.writeList(func(item func()) {
			for _, l := range x.traces {
				item()
				p.writeEventList(l)
			}
		})
		p.writeText("gpumemtop")
		p.writeReportFacts(report)
	})
	return p.stopAndFlush()
}

// writeReportFacts writes facts for which the format has no place. The viewer ignores them.
func (p *out) writeReportFacts(report Report) {
	p.writeDict(func() {
		p.writeTextItem("program", units.Clean(p.x.options.Header.Program))
		p.writeTextItem("policy", units.Clean(p.x.options.Header.Policy))
		p.writeNumberItem("events", report.Events)
		p.writeNumberItem("events_dropped", report.Dropped)
		p.writeText("devices")
		p.writeList(func(item func()) {
			for _, l := range p.x.traces {
				item()
				p.writeText(p.deviceName(l))
			}
		})
	})
}

func (p *out) deviceName(l *list) string {
	n := p.x.names.Process(l.process)
	name := fmt.Sprintf("process %d %s", n.PID, n.Program)
	if l.device < len(n.Devices) {
		name += ", " + n.Devices[l.device].Name
	}
	return name
}

func (p *out) writeEventList(l *list) {
	p.writeList(func(item func()) {
		for _, part := range [...][]event{l.events[l.next:], l.events[:l.next]} {
			for i := range part {
				item()
				p.writeEvent(l, &part[i])
			}
		}
		item()
		p.writeEvent(l, &event{action: snapshot, time: p.x.heap.Now()})
	})
}

func (p *out) writeEvent(l *list, e *event) {
	p.writeDict(func() {
		p.writeTextItem("action", actions[e.action])
		p.writeNumberItem("addr", e.addr)
		if e.action == oom {
			p.writeNumberItem("device_free", e.addr)
		}
		p.writeNumberItem("size", e.size)
		p.writeNumberItem("stream", 0)
		p.writeNumberItem("time_us", p.microsSince1970(e.time))
		if e.outside {
			p.writeTextItem("segment_type", outsideSlabs)
		}
		p.writeText("frames")
		p.writeFrames(siteKey{l.process, e.tag}, e.action != snapshot && e.action != segmentFree)
	})
}

// microsSince1970 returns a time in µs since 1970.
func (p *out) microsSince1970(ns uint64) uint64 {
	h := &p.x.options.Header
	return uint64(max(h.Created.UnixMicro(), 0)) + (max(ns, h.ClockNS)-h.ClockNS)/1000
}

// writeFrames writes a call stack, as a reference except for the first time.
func (p *out) writeFrames(key siteKey, known bool) {
	if !known {
		key = siteKey{}
	}
	if place, ok := p.stacks[key]; ok {
		p.writeReference(place)
		return
	}
	var frames []callsite.Frame
	if known {
		site := p.x.names.Process(key.process).Site(key.tag)
		if frames = site.Frames; len(frames) == 0 {
			frames = []callsite.Frame{{Function: site.Name}}
		}
	}
	p.writeList(func(item func()) {
		for i := range frames {
			item()
			p.writeDict(func() {
				p.writeTextItem("name", common.FrameName(&frames[i]))
				p.writeTextItem("filename", frames[i].File)
				p.writeNumberItem("line", uint64(max(frames[i].Line, 0)))
			})
		}
	})
	p.stacks[key] = p.memoizeLast()
}

func (p *out) writeSegment(s *segment) {
	var allocated, requested, held uint64
	for i := range s.blocks {
		switch b := &s.blocks[i]; b.state {
		case active:
			allocated, requested, held = allocated+b.size, requested+b.requested, held+b.size
		case pending:
			held += b.size
		}
	}
	p.writeDict(func() {
		p.writeNumberItem("device", uint64(s.list))
		p.writeNumberItem("address", s.addr)
		p.writeNumberItem("total_size", s.size)
		p.writeNumberItem("allocated_size", allocated)
		p.writeNumberItem("active_size", held)
		p.writeNumberItem("requested_size", requested)
		p.writeNumberItem("stream", 0)
		p.writeTextItem("segment_type", s.kind)
		p.writeText("blocks")
		p.writePieces(s)
	})
}

// writePieces writes the pieces of a segment without gaps.
func (p *out) writePieces(s *segment) {
	process := p.x.traces[s.list].process
	p.writeList(func(item func()) {
		at := s.addr
		for i := range s.blocks {
			b := &s.blocks[i]
			if b.addr > at {
				item()
				p.writeBlock(&block{addr: at, size: b.addr - at, state: inactive})
			}
			item()
			b.site.process = process
			p.writeBlock(b)
			at = b.addr + b.size
		}
		if end := s.addr + s.size; end > at {
			item()
			p.writeBlock(&block{addr: at, size: end - at, state: inactive})
		}
	})
}

func (p *out) writeBlock(b *block) {
	p.writeDict(func() {
		p.writeNumberItem("address", b.addr)
		p.writeNumberItem("size", b.size)
		p.writeNumberItem("requested_size", b.requested)
		p.writeTextItem("state", b.state)
		p.writeText("frames")
		p.writeFrames(b.site, b.state == active)
	})
}

// Kinds of segment beside PyTorch's own.
const (
	large        = "large"
	outsideSlabs = "outside slabs" // a part that found no place in our layout's slabs; its real slab shows as a segment, too
	evictedSlab  = "evicted slab"  // which lingers because parts are in it
)

// sortedSegments returns the memory that the driver has given, by address.
func (x *writer) sortedSegments() []*segment {
	found := map[*common.Range]*segment{}
	of := func(r *common.Range) *segment {
		s := found[r]
		if s == nil {
			s = &segment{addr: r.Addr, size: r.Size, list: r.List, kind: large}
			if r.Outside {
				s.kind = outsideSlabs
			}
			if r.Lingering {
				s.kind = evictedSlab
			}
			found[r] = s
		}
		return s
	}
	for _, p := range x.heap.Processes() {
		for _, b := range p.Blocks() {
			x.addToSegment(of, x.layout.RangeOfBlock(p, b.ID), x.stateOfBlock(p, b))
		}
		for _, o := range p.Objects() {
			if o.Owns && o.Block == 0 {
				x.addToSegment(of, x.layout.RangeOfObject(p, o), x.stateOfObject(p, o))
			}
		}
	}
	segments := slices.SortedFunc(maps.Values(found), func(a, b *segment) int { return cmp.Compare(a.addr, b.addr) })
	for _, s := range segments {
		slices.SortFunc(s.blocks, func(a, b block) int { return cmp.Compare(a.addr, b.addr) })
	}
	return segments
}

// addToSegment adds a block to the segment where it lies. A slab itself is no block.
func (x *writer) addToSegment(of func(*common.Range) *segment, r *common.Range, b block) {
	switch {
	case r == nil:
		return
	case r.IsSlab():
		of(r)
		return
	}
	home := r
	if r.Slab != nil {
		home = r.Slab
	}
	b.addr, b.size = r.Addr, r.Size
	if r.Pending {
		b.state, b.requested = pending, r.Size
	}
	b.requested = min(b.requested, b.size)
	s := of(home)
	s.blocks = append(s.blocks, b)
}

// stateOfBlock returns a block with its state; gather changes that if its release is pending.
func (x *writer) stateOfBlock(p *heap.Process, b *heap.Block) block {
	if b.State == heap.InUse {
		if o := p.Object(b.Owner); o != nil && o.Owns && o.Block == b.ID {
			return x.stateOfObject(p, o)
		}
	}
	return block{state: inactive}
}

func (x *writer) stateOfObject(p *heap.Process, o *heap.Object) block {
	if !x.choice.IncludesSite(p.Number, o.Tag) {
		return block{state: inactive}
	}
	return block{state: active, requested: o.Size, site: siteKey{tag: o.Tag}}
}
