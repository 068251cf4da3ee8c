// Package heaprun draws runs for tests: what a correct target and session would record.
package heaprun

import (
	"math"
	"slices"

	"pgregory.net/rapid"

	"codeberg.org/gpumemtop/gpumemtop/internal/testkit/records"
	"codeberg.org/gpumemtop/gpumemtop/internal/wire"
)

// Start is the CLOCK_MONOTONIC time of the first record, in ns.
const Start = 1_000_000_000

// Tape is a source of records in memory.
type Tape = records.Tape

// Run draws a run of two processes.
func Run(t *rapid.T) []wire.Record {
	w := &world{t: t, now: Start}
	for i := range w.processes {
		w.processes[i] = &process{number: uint32(i + 1)}
		w.add(w.processes[i], wire.KindProcess, "app\x00-v", func(r *wire.Record) { r.Object, r.Link = uint64(100+i), 1 })
	}
	for range rapid.IntRange(0, 80).Draw(t, "steps") {
		steps[rapid.IntRange(0, len(steps)-1).Draw(t, "step")](w, w.processes[w.below(len(w.processes))])
	}
	return w.records
}

// steps are what may happen next; what happens more often stands here more often.
var steps = []func(*world, *process){
	(*world).create, (*world).create, (*world).release, (*world).release, (*world).settle, (*world).settle, (*world).part,
	(*world).part, (*world).endPart, (*world).endPart, (*world).evictSlab, (*world).other,
}

type world struct {
	t         *rapid.T
	now       uint64
	processes [2]*process
	records   []wire.Record
}

type process struct {
	number  uint32
	numbers uint64 // of objects and blocks
	held    []held
	free    []block
	early   []block // cooled, but in use until their late release
	slabs   []*slab
	parts   []part
}

type held struct {
	number uint64
	block  block // number 0: not pooled
	pinned bool
	sub    bool
}

type block struct {
	number, size uint64
	class        uint16
	cooling      bool
}

type slab struct {
	number, free uint64
	class        uint16
}

type part struct {
	object, number, size uint64
	slab                 *slab
	cooling              bool
}

const slabSize = 1 << 20

func (w *world) below(n int) int { return rapid.IntRange(0, n-1).Draw(w.t, "n") }

func (w *world) add(p *process, kind wire.Kind, payload string, set func(*wire.Record)) {
	w.now += rapid.Uint64Range(0, 3000).Draw(w.t, "gap")
	r := wire.Record{Process: p.number, Thread: uint32(rapid.IntRange(100, 102).Draw(w.t, "thread"))}
	r.Time, r.Kind, r.Duration, r.Cost = w.now, kind, uint32(w.below(5000)), uint32(w.below(500))
	set(&r)
	if kind.HasPayload() {
		r.Size, r.Payload = uint64(len(payload)), []byte(payload)
	}
	w.records = append(w.records, r)
}

func (p *process) fresh() uint64 { p.numbers++; return p.numbers }

func (w *world) create(p *process) {
	h := held{number: p.fresh()}
	size := rapid.Uint64Range(1, 1<<20).Draw(w.t, "size")
	class, outcome, reason := uint16(w.below(3)), wire.OutcomeDriver, uint8(0)
	granted := size
	switch choice := w.below(6); {
	case choice == 0: // not poolable
	case choice == 1:
		h.sub = true
	case choice == 2:
		outcome = wire.OutcomeFailed
	case choice < 5 && len(p.free) > 0:
		i := w.below(len(p.free))
		h.block, outcome = p.free[i], wire.OutcomeHit
		p.free = slices.Delete(p.free, i, i+1)
		granted, size, class = h.block.size, min(size, h.block.size), h.block.class
	default:
		granted += uint64(w.below(100))
		h.block = block{number: p.fresh(), size: granted, class: class}
		outcome, reason = wire.OutcomeMiss, uint8(1+w.below(9))
	}
	h.block.cooling = false
	w.add(p, wire.KindCreate, "", func(r *wire.Record) {
		r.Object, r.Link, r.Outcome, r.Reason, r.Tag = h.number, h.block.number, outcome, reason, uint32(w.below(4))
		r.Size, r.Granted, r.Scope, r.Access = size, granted, class, 1
		if h.sub {
			r.Op = uint8(wire.MemorySubBuffer)
		}
	})
	if outcome != wire.OutcomeFailed {
		p.held = append(p.held, h)
	}
}

func (w *world) release(p *process) {
	if len(p.held) == 0 {
		return
	}
	i := w.below(len(p.held))
	h := &p.held[i]
	e := wire.Event{Object: h.number, Link: h.block.number, Flags: uint8(w.below(2)) * wire.FlagWouldRace}
	gone := false
	switch choice := w.below(6); {
	case choice == 0 && !h.pinned:
		e.Granted = 1
	case choice == 1 && !h.sub:
		e.Outcome, h.pinned = wire.OutcomePinned, true
	case h.block.number == 0:
		gone = true
	default:
		gone = true
		e.Outcome = rapid.SampledFrom([]wire.Outcome{wire.OutcomeCached, wire.OutcomeCooling, wire.OutcomeRefused}).Draw(w.t, "outcome")
	}
	if e.Outcome == wire.OutcomeCooling && w.below(4) == 0 { // its COOLED overtakes it
		w.add(p, wire.KindCooled, "", func(r *wire.Record) { r.Link, r.Granted = h.block.number, h.block.size })
		p.early = append(p.early, h.block)
	}
	w.add(p, wire.KindRelease, "", func(r *wire.Record) {
		r.Object, r.Link, r.Flags, r.Granted, r.Outcome = e.Object, e.Link, e.Flags, e.Granted, e.Outcome
	})
	if !gone {
		return
	}
	b := h.block
	p.held = slices.Delete(p.held, i, i+1)
	switch e.Outcome {
	case wire.OutcomeRefused:
		w.evict(p, b.number, b.size)
	case wire.OutcomeCached, wire.OutcomeCooling:
		b.cooling = e.Outcome == wire.OutcomeCooling && !slices.Contains(p.early, b)
		p.early = nil
		p.free = append(p.free, b)
	default:
	}
}

func (w *world) evict(p *process, number, size uint64) {
	w.add(p, wire.KindEvict, "", func(r *wire.Record) { r.Link, r.Granted, r.Reason = number, size, uint8(1+w.below(9)) })
}

// settle lets something happen to a free block.
func (w *world) settle(p *process) {
	if len(p.free) == 0 {
		return
	}
	i := w.below(len(p.free))
	b := &p.free[i]
	if b.cooling {
		b.cooling = false
		w.add(p, wire.KindCooled, "", func(r *wire.Record) { r.Link, r.Granted = b.number, b.size })
		return
	}
	w.evict(p, b.number, b.size)
	p.free = slices.Delete(p.free, i, i+1)
}

func (w *world) part(p *process) {
	made := part{object: p.fresh(), number: p.fresh(), size: rapid.Uint64Range(1, 1<<18).Draw(w.t, "part")}
	outcome := wire.OutcomeHit
	for _, s := range p.slabs {
		if s.free >= made.size {
			made.slab = s
		}
	}
	if made.slab == nil {
		made.slab, outcome = &slab{p.fresh(), slabSize, uint16(w.below(2))}, wire.OutcomeMiss
		p.slabs = append(p.slabs, made.slab)
		w.add(p, wire.KindSlab, "", func(r *wire.Record) { r.Link, r.Granted, r.Scope = made.slab.number, slabSize, made.slab.class })
	}
	made.slab.free -= made.size
	p.parts = append(p.parts, made)
	w.add(p, wire.KindCreate, "", func(r *wire.Record) {
		r.Object, r.Link, r.Outcome, r.Flags, r.Scope = made.object, made.number, outcome, wire.FlagSubAlloc, made.slab.class
		r.Granted, r.Size, r.Tag = made.size, made.size, uint32(w.below(4))
	})
}

// endPart releases a part, or cools one that was released.
func (w *world) endPart(p *process) {
	if len(p.parts) == 0 {
		return
	}
	i := w.below(len(p.parts))
	ends := &p.parts[i]
	if ends.cooling {
		w.add(p, wire.KindCooled, "", func(r *wire.Record) { r.Link, r.Granted, r.Flags = ends.number, ends.size, wire.FlagSubAlloc })
	} else {
		outcome := rapid.SampledFrom([]wire.Outcome{wire.OutcomeCached, wire.OutcomeCooling}).Draw(w.t, "outcome")
		w.add(p, wire.KindRelease, "", func(r *wire.Record) {
			r.Object, r.Link, r.Outcome, r.Flags = ends.object, ends.number, outcome, wire.FlagSubAlloc
		})
		if ends.cooling = outcome == wire.OutcomeCooling; ends.cooling {
			return
		}
	}
	ends.slab.free += ends.size
	p.parts = slices.Delete(p.parts, i, i+1)
}

func (w *world) evictSlab(p *process) {
	for i, s := range p.slabs {
		if s.free == slabSize {
			w.evict(p, s.number, slabSize)
			p.slabs = slices.Delete(p.slabs, i, i+1)
			return
		}
	}
}

// other does what concerns no memory.
func (w *world) other(p *process) {
	tag := uint32(1 + w.below(3))
	switch w.below(8) {
	case 0:
		w.add(p, wire.KindTag, "0123456789abcdef", func(r *wire.Record) { r.Tag, r.Op = tag, uint8(wire.TagsStack) })
	case 1:
		w.add(p, wire.KindSite, "main\tmain.c\t7\tapp+0x10\n", func(r *wire.Record) { r.Tag, r.Object = tag, p.fresh() })
	case 2:
		w.add(p, wire.KindLimit, "max_cached_bytes=4096", func(r *wire.Record) { r.Object = 3 })
	case 3:
		w.add(p, wire.KindLost, "", func(r *wire.Record) { r.Size, r.Granted = 7, 2 })
	case 4:
		w.add(p, wire.KindGauge, "", func(r *wire.Record) { r.Granted, r.Size, r.Object, r.Link = 512, 256, 3, math.Float64bits(9) })
	case 5:
		w.add(p, wire.KindKernel, "scale", func(r *wire.Record) { r.Object = 2 })
	case 6:
		w.add(p, wire.KindUse, "", func(r *wire.Record) { r.Object, r.Op = p.numbers, uint8(wire.CommandKernel) })
	default:
		w.add(p, wire.KindDiag, "clReleaseMemObject", func(r *wire.Record) { r.Op = uint8(wire.DiagDoubleRelease) })
	}
}
