package randomrun

import (
	"fmt"
	"slices"

	"codeberg.org/gpumemtop/gpumemtop/internal/wire"
)

// steps are the events that may happen next, slabSteps those with slabs. More frequent ones are listed more often.
var (
	steps = []func(*world, *process){
		(*world).addCreate, (*world).addCreate, (*world).addCreate, (*world).addRelease, (*world).addRelease, (*world).addRelease,
		(*world).changeFreeBlock, (*world).changeFreeBlock, (*world).addUse, (*world).addOtherEvent,
	}
	slabSteps = []func(*world, *process){
		(*world).createSubAlloc, (*world).createSubAlloc, (*world).releaseOrCoolSubAlloc, (*world).releaseOrCoolSubAlloc, (*world).evictSlab,
	}
)

type world struct {
	Options
	choices
	now       uint64
	processes []*process
	records   []wire.Record
}

type process struct {
	number  uint32
	numbers uint64 // of objects and blocks
	ended   bool
	held    []held
	free    []block
	early   []block // cooled, but in use until their late release
	slabs   []*slab
	parts   []part
}

type held struct {
	created wire.Event
	block   block // number 0: not pooled
	pinned  bool
}

type block struct {
	number, size uint64
	class        uint16
	cooling      bool
}

func (w *world) drawBelow(n int) int { return int(w.Uint64N(uint64(n))) }

// drawSize returns a size from 1 to most.
func (w *world) drawSize(most uint64) uint64 { return 1 + w.Uint64N(most) }

// drawContext returns the number of a context.
func (w *world) drawContext() uint16 { return uint16(1 + w.drawBelow(2)) }

// drawTag returns a call site's number, or 0.
func (w *world) drawTag() uint32 { return uint32(w.drawBelow(max(len(w.Names), 3) + 1)) }

func (p *process) nextNumber() uint64 { p.numbers++; return p.numbers }

func (w *world) addEvent(p *process, e wire.Event) *wire.Record {
	w.now += w.Uint64N(w.Gap + 1)
	if w.Apart {
		w.now++
	}
	e.Time = w.now
	w.records = append(w.records, wire.Record{Event: e, Process: p.number, Thread: 100*p.number + uint32(w.drawBelow(2))})
	return &w.records[len(w.records)-1]
}

func (w *world) addTextEvent(p *process, e wire.Event, payload string) *wire.Record {
	e.Size = uint64(len(payload))
	r := w.addEvent(p, e)
	r.Payload = []byte(payload)
	return r
}

// addCall adds a call's record with a duration, part of it in the driver.
func (w *world) addCall(p *process, e wire.Event) {
	e.Duration, e.Cost = uint32(w.drawBelow(5000)), uint32(w.drawBelow(500))
	w.addEvent(p, e)
}

func (w *world) addProcessRecords(p *process) {
	w.addTextEvent(p, wire.Event{Kind: wire.KindProcess, Object: 999 + uint64(p.number), Link: 1},
		fmt.Sprintf("/opt/a,\"p\"\n\x00--rank\x00%d\xff\x00", p.number))
	for device := range uint64(2) {
		w.addTextEvent(p, wire.Event{Kind: wire.KindDevice, Object: device + 1, Granted: 8 << 30}, fmt.Sprintf("de,vi\nce%d\x003.1", device))
		w.addEvent(p, wire.Event{Kind: wire.KindContext, Object: device + 1, Link: device + 1})
	}
	w.addTextEvent(p, wire.Event{Kind: wire.KindModule, Object: 1}, "/bin/app\x00c0ffee")
	for i, name := range w.Names {
		if name != "" {
			w.addTextEvent(p, wire.Event{Kind: wire.KindSite, Tag: uint32(i + 1)}, name).Thread = 0
		}
	}
}

func (w *world) addCreate(p *process) {
	e := wire.Event{Kind: wire.KindCreate, Object: p.nextNumber(), Tag: w.drawTag(), Scope: w.drawContext(), Access: 1, Size: w.drawSize(1 << 20)}
	e.Granted = e.Size
	var b block
	switch choice := w.drawBelow(12); {
	case choice == 0:
		e.Op = uint8(wire.MemorySVM)
	case choice == 1: // not poolable
	case choice < 4:
		e.Op = uint8(wire.MemorySubBuffer)
		if len(p.held) > 0 {
			e.Link = p.held[0].created.Object
		}
	case choice == 4:
		e.Outcome, e.Object, e.Status = wire.OutcomeFailed, 0, -4
	case choice < 10 && len(p.free) > 0:
		i := w.drawBelow(len(p.free))
		b = p.free[i]
		p.free = slices.Delete(p.free, i, i+1)
		e.Outcome, e.Link, e.Size, e.Granted, e.Scope = wire.OutcomeHit, b.number, min(e.Size, b.size), b.size, b.class
	default:
		e.Granted += w.Uint64N(100)
		b = block{number: p.nextNumber(), size: e.Granted, class: e.Scope}
		e.Outcome, e.Link, e.Reason = wire.OutcomeMiss, b.number, uint8(1+w.drawBelow(9))
	}
	b.cooling = false
	w.addCall(p, e)
	if e.Outcome != wire.OutcomeFailed {
		p.held = append(p.held, held{created: e, block: b})
	}
}

func (w *world) addRelease(p *process) {
	if len(p.held) == 0 {
		return
	}
	i := w.drawBelow(len(p.held))
	h := &p.held[i]
	e := wire.Event{Kind: wire.KindRelease, Object: h.created.Object, Link: h.created.Link, Flags: uint8(w.drawBelow(2)) * wire.FlagWouldRace}
	gone := false
	switch choice := w.drawBelow(6); {
	case choice == 0 && !h.pinned && !w.NoReferences:
		e.Granted = 1
	case choice == 1 && h.created.Op == 0 && !w.NoReferences:
		e.Outcome, h.pinned = wire.OutcomePinned, true
	case h.block.number == 0:
		gone = true
	default:
		gone = true
		e.Outcome = []wire.Outcome{wire.OutcomeCached, wire.OutcomeCooling, wire.OutcomeRefused}[w.drawBelow(3)]
	}
	if e.Outcome == wire.OutcomeCooling && !w.NoOvertaking && w.drawBelow(4) == 0 { // its COOLED comes before it
		w.addCooled(p, &h.block)
		p.early = append(p.early, h.block)
	}
	w.addCall(p, e)
	if !gone {
		return
	}
	b := h.block
	p.held = slices.Delete(p.held, i, i+1)
	switch e.Outcome {
	case wire.OutcomeRefused:
		w.addEvict(p, b.number, b.size)
	case wire.OutcomeCached, wire.OutcomeCooling:
		b.cooling = e.Outcome == wire.OutcomeCooling && !slices.Contains(p.early, b)
		p.early = nil
		p.free = append(p.free, b)
	default:
	}
}

func (w *world) addCooled(p *process, b *block) {
	w.addEvent(p, wire.Event{Kind: wire.KindCooled, Link: b.number, Granted: b.size})
}

func (w *world) addEvict(p *process, number, size uint64) {
	w.addCall(p, wire.Event{Kind: wire.KindEvict, Link: number, Granted: size, Reason: uint8(1 + w.drawBelow(9))})
}

// changeFreeBlock lets something happen to a free block.
func (w *world) changeFreeBlock(p *process) {
	if len(p.free) == 0 {
		return
	}
	i := w.drawBelow(len(p.free))
	b := &p.free[i]
	if b.cooling {
		b.cooling = false
		w.addCooled(p, b)
		return
	}
	w.addEvict(p, b.number, b.size)
	p.free = slices.Delete(p.free, i, i+1)
}

func (w *world) addUse(p *process) {
	if len(p.held) == 0 {
		return
	}
	created := &p.held[w.drawBelow(len(p.held))].created
	e := wire.Event{Kind: wire.KindUse, Op: uint8(wire.CommandKernel), Object: created.Object, Link: 1}
	if created.Object%2 == 0 {
		e.Op, e.Flags, e.Tag, e.Granted, e.Size = uint8(wire.CommandCopy), wire.FlagReads, created.Tag, created.Object, created.Size/2
	} else {
		e.Granted, e.Duration = 1, 1+uint32(created.Object%3)
	}
	w.addEvent(p, e)
}

// addOtherEvent adds an event that concerns no memory, or ends the process.
func (w *world) addOtherEvent(p *process) {
	tag := uint32(1 + w.drawBelow(3))
	switch w.drawBelow(8) {
	case 0:
		w.addTextEvent(p, wire.Event{Kind: wire.KindTag, Tag: tag, Op: uint8(wire.TagsStack)}, "0123456789abcdef")
	case 1:
		if len(w.Names) == 0 {
			w.addTextEvent(p, wire.Event{Kind: wire.KindSite, Tag: tag, Object: p.nextNumber()}, "main\tmain.c\t7\tapp+0x10\n")
		}
	case 2:
		w.addTextEvent(p, wire.Event{Kind: wire.KindLimit, Object: 3}, "max_cached_bytes=4096")
	case 3:
		w.addEvent(p, wire.Event{Kind: wire.KindLost, Size: 7, Granted: 2})
	case 4:
		w.addCall(p, wire.Event{Kind: wire.KindSync, Op: uint8(wire.SyncFinish)})
	case 5:
		w.addTextEvent(p, wire.Event{Kind: wire.KindKernel, Object: 2}, "scale")
	case 6:
		if w.Exits == Anytime && w.drawBelow(3) == 0 {
			w.addExit(p, 0)
		}
	default:
		w.addTextEvent(p, wire.Event{Kind: wire.KindDiag, Op: uint8(wire.DiagDoubleRelease)}, "clReleaseMemObject")
	}
}

func (w *world) addExit(p *process, status int16) {
	w.addEvent(p, wire.Event{Kind: wire.KindExit, Status: status}).Thread = 0
	p.ended = true
}
