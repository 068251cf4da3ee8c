// Package exportrun makes up runs for the tests of exports: what a correct target would record, with names that are hard to
// write, and nonsense.
package exportrun

import (
	"encoding/binary"
	"slices"

	"pgregory.net/rapid"

	"codeberg.org/gpumemtop/gpumemtop/internal/testkit/records"
	"codeberg.org/gpumemtop/gpumemtop/internal/wire"
)

// Origin is CLOCK_MONOTONIC at the start of the runs.
const Origin = 1_000_000_000

// Tape is a source of records in memory.
type Tape = records.Tape

// processes that a run has; tags are numbered from 0 to tags-1, with names from 1 on.
const (
	processes = 3
	tags      = 6
	slabSize  = 1 << 20
)

// Names are payloads of SITE that are hard to write.
var Names = []string{
	"create\t/src/a.c\t7\t/bin/app+0x10\nmain\t/src/a.c\t30\t/bin/app+0x99\n",
	"cl::Buffer::Buffer\t/cl.hpp\t9\t/bin/app+0x5\nblur<\"x\", 'y'>(int)\t/src/b,c.cc\t8\t/bin/app+0x20\n",
	"\t\t\t/lib/strip\"ped,.so+0x1234\nf\x1b[31m\xff\u202e\t/src/a\rb.c\t-3\t/bin/app+0xzz\n",
	"nul\x00inside\tfile\\\t99999999999999999999\t+0x\n",
}

type held struct {
	number, block, size uint64
	part                *slab
	scope               uint16
	tag                 uint32
	sub                 bool
}

type slab struct {
	number, free uint64
	scope        uint16
}

type state struct {
	ended   bool
	objects []held
	free    []held // blocks
	cooling []held
	slabs   []*slab
}

// world draws a run.
type world struct {
	t       *rapid.T
	now     uint64
	numbers uint64
	states  [processes]state
	records []wire.Record
}

// Run draws a run: every object is released at most once, blocks are handed out only when they are free, and parts fit
// their slabs, though not always in one piece.
func Run(t *rapid.T) []wire.Record {
	w := &world{t: t, now: Origin}
	w.introduce()
	for range rapid.IntRange(0, 80).Draw(t, "steps") {
		i := rapid.IntRange(0, processes-1).Draw(t, "process")
		if w.states[i].ended {
			continue
		}
		switch rapid.IntRange(0, 12).Draw(t, "step") {
		case 0, 1, 2, 3:
			w.create(i)
		case 4, 5:
			w.part(i)
		case 6, 7, 8, 9:
			w.release(i)
		case 10:
			w.settle(i)
		case 11:
			w.evictSlab(i)
		default:
			w.rare(i)
		}
	}
	return w.records
}

func (w *world) add(process int, kind wire.Kind, set func(*wire.Record)) {
	w.now += rapid.Uint64Range(0, 3000).Draw(w.t, "gap")
	r := wire.Record{Process: uint32(process + 1), Thread: uint32(100 + process)}
	r.Time, r.Kind = w.now, kind
	set(&r)
	if r.Kind.HasPayload() {
		r.Size = uint64(len(r.Payload))
	}
	w.records = append(w.records, r)
}

func (w *world) introduce() {
	for i := range processes {
		w.add(i, wire.KindProcess, func(r *wire.Record) { r.Object, r.Payload = uint64(4000+i), []byte("/opt/a,\"p\"\n\x00-x\xff\x00") })
		for device := range uint64(2) {
			w.add(i, wire.KindDevice, func(r *wire.Record) {
				r.Object, r.Granted, r.Payload = device+1, 1<<30, []byte("de,vi\nce"+string('A'+rune(device))+"\x00dr")
			})
			w.add(i, wire.KindContext, func(r *wire.Record) { r.Object, r.Link = device+1, device+1 })
		}
		w.add(i, wire.KindModule, func(r *wire.Record) { r.Object, r.Payload = 1, []byte("/bin/app\x00c0ffee") })
		for tag := range uint32(len(Names)) {
			w.add(i, wire.KindSite, func(r *wire.Record) { r.Tag, r.Thread, r.Payload = tag+1, 0, []byte(Names[tag]) })
		}
	}
}

func (w *world) number() uint64 { w.numbers++; return w.numbers }

func (w *world) draw() held {
	return held{
		number: w.number(), size: rapid.Uint64Range(1, slabSize).Draw(w.t, "size"),
		scope: uint16(rapid.IntRange(1, 2).Draw(w.t, "scope")), tag: uint32(rapid.IntRange(0, tags-1).Draw(w.t, "tag")),
	}
}

func (w *world) created(i int, o held, asked uint64, outcome wire.Outcome) {
	w.states[i].objects = append(w.states[i].objects, o)
	w.add(i, wire.KindCreate, func(r *wire.Record) {
		r.Object, r.Link, r.Outcome, r.Tag, r.Scope = o.number, o.block, outcome, o.tag, o.scope
		r.Size, r.Granted = asked, o.size
		if o.part != nil {
			r.Flags = wire.FlagSubAlloc
		}
		if o.sub {
			r.Op = uint8(wire.MemorySubBuffer)
		}
	})
}

func (w *world) create(i int) {
	s, o := &w.states[i], w.draw()
	outcome := wire.OutcomeMiss
	switch kind := rapid.IntRange(0, 4).Draw(w.t, "kind"); {
	case kind == 0:
		outcome = wire.OutcomeDriver
	case kind == 1:
		outcome, o.sub = wire.OutcomeDriver, true
	case kind < 4 && len(s.free) > 0:
		n := rapid.IntRange(0, len(s.free)-1).Draw(w.t, "block")
		b := s.free[n]
		s.free = slices.Delete(s.free, n, n+1)
		outcome, o.block, o.size, o.scope = wire.OutcomeHit, b.block, b.size, b.scope
	default:
		o.block = o.number
	}
	w.created(i, o, o.size-o.size/4, outcome)
}

func (w *world) part(i int) {
	s, o := &w.states[i], w.draw()
	o.size = 1 + o.size/4
	outcome := wire.OutcomeHit
	for _, slab := range s.slabs {
		if slab.free >= o.size && slab.scope == o.scope {
			o.part = slab
		}
	}
	if o.part == nil {
		o.part, outcome = &slab{w.number(), slabSize, o.scope}, wire.OutcomeMiss
		s.slabs = append(s.slabs, o.part)
		w.add(i, wire.KindSlab, func(r *wire.Record) { r.Link, r.Granted, r.Scope = o.part.number, slabSize, o.scope })
	}
	o.part.free -= o.size
	o.block = o.number
	w.created(i, o, o.size, outcome)
}

func (w *world) release(i int) {
	s := &w.states[i]
	if len(s.objects) == 0 {
		return
	}
	n := rapid.IntRange(0, len(s.objects)-1).Draw(w.t, "object")
	o := s.objects[n]
	s.objects = slices.Delete(s.objects, n, n+1)
	outcomes := []wire.Outcome{wire.OutcomeDriver}
	if o.block != 0 {
		outcomes = []wire.Outcome{wire.OutcomeCached, wire.OutcomeCooling, wire.OutcomeRefused}
	}
	if o.part != nil {
		outcomes = outcomes[:2]
	}
	outcome := rapid.SampledFrom(outcomes).Draw(w.t, "outcome")
	w.add(i, wire.KindRelease, func(r *wire.Record) {
		r.Object, r.Link, r.Outcome, r.Scope = o.number, o.block, outcome, o.scope
		if o.part != nil {
			r.Flags = wire.FlagSubAlloc
		}
	})
	switch {
	case outcome == wire.OutcomeRefused:
		w.evict(i, o.block, o.size)
	case outcome == wire.OutcomeCooling:
		s.cooling = append(s.cooling, o)
	case o.part != nil:
		o.part.free += o.size
	case outcome == wire.OutcomeCached:
		s.free = append(s.free, o)
	}
}

func (w *world) evict(i int, block, size uint64) {
	w.add(i, wire.KindEvict, func(r *wire.Record) { r.Link, r.Granted = block, size })
}

// settle lets blocks cool, or go.
func (w *world) settle(i int) {
	s := &w.states[i]
	switch {
	case len(s.cooling) > 0:
		o := s.cooling[0]
		s.cooling = s.cooling[1:]
		w.add(i, wire.KindCooled, func(r *wire.Record) { r.Link, r.Granted = o.block, o.size })
		if o.part != nil {
			o.part.free += o.size
		} else {
			s.free = append(s.free, o)
		}
	case len(s.free) > 0:
		b := s.free[0]
		s.free = s.free[1:]
		w.evict(i, b.block, b.size)
	}
}

func (w *world) evictSlab(i int) {
	s := &w.states[i]
	for n, slab := range s.slabs {
		if slab.free == slabSize {
			s.slabs = slices.Delete(s.slabs, n, n+1)
			w.evict(i, slab.number, slabSize)
			return
		}
	}
}

// rare draws a create that fails, or the end of a process.
func (w *world) rare(i int) {
	if rapid.IntRange(0, 3).Draw(w.t, "rare") > 0 {
		o := w.draw()
		w.add(i, wire.KindCreate, func(r *wire.Record) {
			r.Outcome, r.Size, r.Tag, r.Scope, r.Status = wire.OutcomeFailed, o.size, o.tag, o.scope, -4
		})
		return
	}
	w.states[i].ended = true
	w.add(i, wire.KindExit, func(r *wire.Record) { r.Thread = 0 })
}

// Nonsense makes anything at all from bytes.
func Nonsense(data []byte) []wire.Record {
	var list []wire.Record
	for len(data) >= 40 {
		at := func(i int) uint64 { return binary.LittleEndian.Uint64(data[i:]) }
		r := wire.Record{Process: uint32(data[0] % 4), Thread: uint32(data[1] % 4)}
		r.Kind, r.Op, r.Outcome, r.Reason, r.Flags = wire.Kind(data[2]%24), data[3]%16, wire.Outcome(data[4]%10), data[5], data[6]
		r.Tag, r.Time, r.Duration = uint32(data[7]%8), at(8), uint32(at(16))
		r.Object, r.Link, r.Size, r.Granted = at(16)%8, at(24)%8, at(24), at(32)
		r.Payload = data[8:40]
		list, data = append(list, r), data[40:]
	}
	return list
}

// Churn is a long run that keeps little: pairs of creates and releases of one block, and a leak in every thousand.
func Churn(pairs uint64) []wire.Record {
	list := make([]wire.Record, 0, 2*pairs)
	for i := range pairs {
		r := wire.Record{Process: 1, Thread: 100}
		r.Time, r.Kind, r.Outcome, r.Object, r.Link = Origin+20*i, wire.KindCreate, wire.OutcomeHit, i+1, 1+i%8
		r.Size, r.Granted, r.Tag = 1000, 1024, uint32(i%50)
		if i%1000 == 999 {
			r.Link, r.Outcome = 0, wire.OutcomeDriver
			list = append(list, r)
			continue
		}
		list = append(list, r)
		r.Time, r.Kind, r.Outcome, r.Size, r.Granted = r.Time+10, wire.KindRelease, wire.OutcomeCached, 0, 0
		list = append(list, r)
	}
	return list
}
