package memviz

import (
	"fmt"
	"slices"
)

// span is memory from an address on.
type span struct {
	addr, size uint64
	outside    bool
}

// viewer follows a trace as PyTorch's viewer does, and holds it to the rules.
type viewer struct {
	whole    bool // the trace has everything: nothing ends that did not begin
	segments map[uint64]span
	blocks   map[uint64]span // allocated, or let go and not free yet
	freed    map[uint64]bool // of blocks: let go
	inUse    uint64
	reserved uint64 // of segments that the driver knows
	ooms     int
	time     uint64
}

func newViewer(whole bool) *viewer {
	return &viewer{whole: whole, segments: map[uint64]span{}, blocks: map[uint64]span{}, freed: map[uint64]bool{}}
}

func (v *viewer) step(e dictOf) error {
	s := span{e.number("addr"), e.number("size"), e["segment_type"] == outsideSlabs}
	if e.number("stream") != 0 || e.number("time_us") < v.time {
		return fmt.Errorf("stream %d, time %d after %d", e.number("stream"), e.number("time_us"), v.time)
	}
	v.time = e.number("time_us")
	for _, f := range e.dicts("frames") {
		_, _, _ = f.text("name"), f.text("filename"), f.number("line")
	}
	switch action := e.text("action"); action {
	case "segment_alloc":
		if !s.outside {
			v.reserved += s.size
		}
		return begin(v.segments, s)
	case "segment_free":
		return v.endSegment(s)
	case "alloc":
		v.inUse += s.size
		if v.whole && !within(v.segments, s) {
			return fmt.Errorf("%v lies in no segment", s)
		}
		return begin(v.blocks, s)
	case "free_requested":
		if err := v.find(v.blocks, s); err != nil || v.freed[s.addr] {
			return fmt.Errorf("let go twice or %w", err)
		}
		v.freed[s.addr] = true
		v.inUse -= s.size
	case "free_completed":
		if err := v.find(v.blocks, s); err != nil || v.whole && !v.freed[s.addr] {
			return fmt.Errorf("not let go or %w", err)
		}
		delete(v.blocks, s.addr)
		delete(v.freed, s.addr)
	case "oom":
		v.ooms++
		_ = e.number("device_free")
	case "snapshot":
	default:
		return fmt.Errorf("unknown action %q", action)
	}
	return nil
}

func (v *viewer) endSegment(s span) error {
	for _, b := range v.blocks {
		if b.addr < s.addr+s.size && s.addr < b.addr+b.size {
			return fmt.Errorf("%v ends with %v in it", s, b)
		}
	}
	if !v.segments[s.addr].outside {
		v.reserved -= s.size
	}
	err := v.find(v.segments, s)
	delete(v.segments, s.addr)
	return err
}

func (v *viewer) find(spans map[uint64]span, s span) error {
	if known, ok := spans[s.addr]; !ok && v.whole || ok && known.size != s.size {
		return fmt.Errorf("%v is not there, but %v", s, known)
	}
	return nil
}

// begin adds a span that must be clear of all others.
func begin(spans map[uint64]span, s span) error {
	for _, other := range spans {
		if s.addr < other.addr+other.size && other.addr < s.addr+s.size {
			return fmt.Errorf("%v overlaps %v", s, other)
		}
	}
	spans[s.addr] = s
	return nil
}

func within(spans map[uint64]span, s span) bool {
	for _, other := range spans {
		if s.addr >= other.addr && s.addr+s.size <= other.addr+other.size {
			return true
		}
	}
	return false
}

// layout are the segments of a snapshot in sums.
type layout struct{ reserved, outside, evicted, inUse, requested, pending uint64 }

// checkSegments holds the segments to the rules of PyTorch's reader: blocks fill them, and their sums are right.
func checkSegments(s dictOf, device int) (layout, error) {
	var sum layout
	var end uint64
	segments := s.dicts("segments")
	if !slices.IsSortedFunc(segments, func(a, b dictOf) int { return int(a.number("address")) - int(b.number("address")) }) {
		return sum, fmt.Errorf("segments are not in order")
	}
	for _, seg := range segments {
		if seg.number("address") < end {
			return sum, fmt.Errorf("segments overlap at %d", end)
		}
		end = seg.number("address") + seg.number("total_size")
		if device >= 0 && seg.number("device") != uint64(device) {
			continue
		}
		switch seg.text("segment_type") {
		case "large":
			sum.reserved += seg.number("total_size")
		case outsideSlabs:
			sum.outside += seg.number("total_size")
		case evictedSlab:
			sum.evicted += seg.number("total_size")
		}
		if err := sum.blocks(seg); err != nil {
			return sum, err
		}
	}
	return sum, nil
}

func (sum *layout) blocks(seg dictOf) error {
	at := seg.number("address")
	var allocated, active uint64
	for _, b := range seg.dicts("blocks") {
		size := b.number("size")
		if b.number("address") != at || b.number("requested_size") > size {
			return fmt.Errorf("block %v of %v does not begin at %d", b, seg, at)
		}
		at += size
		switch b.text("state") {
		case "active_allocated":
			allocated, active = allocated+size, active+size
			sum.inUse += size
			sum.requested += b.number("requested_size")
		case "active_pending_free":
			active += size
			sum.pending += size
		case "inactive":
		default:
			return fmt.Errorf("unknown state in %v", b)
		}
	}
	if at != seg.number("address")+seg.number("total_size") || allocated != seg.number("allocated_size") || active != seg.number("active_size") {
		return fmt.Errorf("blocks end at %d, %d allocated, %d active in %v", at, allocated, active, seg)
	}
	return nil
}
