// Package randomrun makes runs as a correct target could have recorded them, for tests of what is made of recordings.
package randomrun

import (
	"fmt"
	"math/rand/v2"
	"strconv"

	"codeberg.org/gpumemtop/gpumemtop/internal/testkit/records"
	"codeberg.org/gpumemtop/gpumemtop/internal/wire"
)

// Start is when runs start, in ns of CLOCK_MONOTONIC.
const Start = 5_000_000_000

// Tape is a source of records in memory.
type Tape = records.Tape

// world is what the processes have at a time.
type world struct {
	*rand.Rand
	now       uint64
	objects   uint64
	records   []wire.Record
	processes []process
}

type process struct {
	live []wire.Record // creates
	free []wire.Record // releases, with the block's size in Size
}

// Records makes a run of some processes, numbered from 1, with about as many records as steps. No two records have the
// same time. Pids are 1000 and up; each process has call sites 1 to 4 with stacks, and untagged creates; some buffers are
// left at the end.
func Records(seed uint64, processes, steps int) []wire.Record {
	w := &world{Rand: rand.New(rand.NewPCG(seed, 7)), now: Start, processes: make([]process, processes)}
	for i := range processes {
		w.introduce(uint32(i + 1))
	}
	for range steps {
		number := 1 + w.Uint32N(uint32(processes))
		switch p := &w.processes[number-1]; w.IntN(12) {
		case 0, 1, 2:
			w.create(number, p)
		case 3, 4:
			w.hit(number, p)
		case 5, 6, 7:
			w.release(number, p)
		case 8:
			w.settle(number, p)
		case 9:
			w.add(number, wire.Event{Kind: wire.KindCreate, Outcome: wire.OutcomeFailed, Status: -4, Size: 1 << 40, Tag: 1})
		default:
			w.use(number, p)
		}
	}
	for i := range processes {
		r := w.add(uint32(i+1), wire.Event{Kind: wire.KindExit, Status: int16(i)})
		r.Thread = 0
	}
	return w.records
}

func (w *world) add(number uint32, e wire.Event) *wire.Record {
	w.now += 1 + w.Uint64N(500_000)
	e.Time = w.now
	w.records = append(w.records, wire.Record{Event: e, Process: number, Thread: 100*number + w.Uint32N(2)})
	return &w.records[len(w.records)-1]
}

func (w *world) text(number uint32, e wire.Event, text string) {
	e.Size = uint64(len(text))
	w.add(number, e).Payload = []byte(text)
}

func (w *world) introduce(number uint32) {
	w.text(number, wire.Event{Kind: wire.KindProcess, Object: 999 + uint64(number), Link: 1}, "app\x00--rank\x00"+strconv.Itoa(int(number)))
	w.text(number, wire.Event{Kind: wire.KindDevice, Object: 1, Granted: 8 << 30}, "pocl\x003.1")
	for tag := range uint32(4) {
		w.text(number, wire.Event{Kind: wire.KindSite, Tag: tag + 1}, fmt.Sprintf("f%d\tapp.c\t%d\tapp+0x1\nmain\tapp.c\t9\tapp+0x2\n", tag+1, 10*(tag+1)))
	}
}

func (w *world) create(number uint32, p *process) {
	w.objects++
	size := 1 + w.Uint64N(1<<20)
	e := wire.Event{
		Kind: wire.KindCreate, Outcome: wire.OutcomeMiss, Reason: uint8(1 + w.IntN(9)), Tag: w.Uint32N(5),
		Duration: w.Uint32N(10_000), Cost: w.Uint32N(5000), Scope: 1, Access: 1,
		Object: w.objects, Link: w.objects, Size: size, Granted: size + w.Uint64N(100),
	}
	switch w.IntN(6) {
	case 0:
		e.Outcome, e.Reason, e.Link, e.Op = wire.OutcomeDriver, 0, 0, uint8(wire.MemorySVM)
	case 1:
		if len(p.live) > 0 {
			e.Outcome, e.Reason, e.Link, e.Op = wire.OutcomeDriver, 0, p.live[0].Object, uint8(wire.MemorySubBuffer)
		}
	}
	p.live = append(p.live, *w.add(number, e))
}

func (w *world) hit(number uint32, p *process) {
	if len(p.free) == 0 {
		return
	}
	block := w.take(&p.free)
	w.objects++
	p.live = append(p.live, *w.add(number, wire.Event{
		Kind: wire.KindCreate, Outcome: wire.OutcomeHit, Tag: w.Uint32N(5), Duration: w.Uint32N(1000), Scope: 1, Access: 1,
		Object: w.objects, Link: block.Link, Size: 1 + w.Uint64N(block.Size), Granted: block.Size,
	}))
}

// take takes a random one out of a list.
func (w *world) take(list *[]wire.Record) wire.Record {
	i, last := w.IntN(len(*list)), len(*list)-1
	r := (*list)[i]
	(*list)[i] = (*list)[last]
	*list = (*list)[:last]
	return r
}

func (w *world) release(number uint32, p *process) {
	if len(p.live) == 0 {
		return
	}
	created := w.take(&p.live)
	e := wire.Event{Kind: wire.KindRelease, Object: created.Object, Link: created.Link, Cost: w.Uint32N(100)}
	if created.Outcome != wire.OutcomeDriver {
		e.Outcome = []wire.Outcome{wire.OutcomeCached, wire.OutcomeCooling, wire.OutcomeRefused}[w.IntN(3)]
	}
	r := *w.add(number, e)
	r.Size = created.Granted
	switch e.Outcome {
	case wire.OutcomeRefused:
		w.evict(number, &r)
	case wire.OutcomeCached, wire.OutcomeCooling:
		p.free = append(p.free, r)
	default:
	}
}

// settle lets a cooling block become free, or evicts one.
func (w *world) settle(number uint32, p *process) {
	if len(p.free) == 0 {
		return
	}
	r := w.take(&p.free)
	if r.Outcome != wire.OutcomeCooling {
		w.evict(number, &r)
		return
	}
	r.Outcome = wire.OutcomeCached
	w.add(number, wire.Event{Kind: wire.KindCooled, Link: r.Link, Granted: r.Size})
	p.free = append(p.free, r)
}

func (w *world) evict(number uint32, r *wire.Record) {
	w.add(number, wire.Event{Kind: wire.KindEvict, Link: r.Link, Granted: r.Size, Reason: uint8(1 + w.IntN(9)), Cost: 7})
}

func (w *world) use(number uint32, p *process) {
	if len(p.live) == 0 {
		return
	}
	created := &p.live[w.IntN(len(p.live))]
	e := wire.Event{Kind: wire.KindUse, Op: uint8(wire.CommandKernel), Object: created.Object, Link: 1}
	if created.Object%2 == 0 {
		e.Op, e.Flags, e.Tag, e.Granted, e.Size = uint8(wire.CommandCopy), wire.FlagReads, created.Tag, created.Object, created.Size/2
	} else {
		e.Granted, e.Duration = 1, 1+uint32(created.Object%3)
	}
	w.add(number, e)
}
