package spill

import (
	"math/rand/v2"
	"strings"
	"testing"

	"codeberg.org/gpumemtop/gpumemtop/internal/testkit/records"
	"codeberg.org/gpumemtop/gpumemtop/internal/wire"
)

// cycle uses objects of 100 bytes one after the other, repeatedly, one in each command, and writes them.
func cycle(objects, visits int) *trace {
	t := &trace{}
	for range objects {
		t.objects = append(t.objects, object{size: 100})
	}
	for i := range visits {
		t.steps = append(t.steps, step{object: int32(i % objects), kind: stepUse, writes: true}, step{kind: stepRun})
	}
	return t
}

// What is visited in turn never is there with the oldest leaving first; the best keeps most of it.
func TestCycleFavoursTheBest(t *testing.T) {
	tr := cycle(4, 40)
	moves, best, fits := tr.simulateBothOrders(300)
	if !fits || moves != (Moves{Out: 100 * 37, In: 100 * 36}) {
		t.Errorf("oldest first: %+v, fits %v", moves, fits)
	}
	// Each eviction of the best one is of what was just used, and every third visit finds what left.
	if best.In != 1200 || best.Out != 1300 {
		t.Errorf("best: %+v", best)
	}
	if moves, _, fits = tr.simulateBothOrders(400); !fits || moves != (Moves{}) {
		t.Errorf("with room for all: %+v", moves)
	}
	if _, _, fits = tr.simulateBothOrders(99); fits {
		t.Error("fits into 99 bytes")
	}
}

// Knowing the future is never worse, and more memory never moves more: both hold for objects of one size.
func TestBestIsBest(t *testing.T) {
	random := rand.New(rand.NewPCG(1, 2))
	for range 300 {
		tr := cycle(2+random.IntN(8), 0)
		for range 100 {
			first := random.IntN(len(tr.objects))
			for i := range 1 + random.IntN(2) {
				at := int32((first + i) % len(tr.objects))
				tr.steps = append(tr.steps, step{object: at, kind: stepUse, writes: true})
			}
			tr.endLastCommand()
		}
		least, _ := tr.leastMemoryNeeded()
		var last Moves
		for memory := least; memory <= 1000; memory += 100 {
			moves, best, fits := tr.simulateBothOrders(memory)
			if !fits || best.In > moves.In || memory > least && moves.In > last.In {
				t.Fatalf("%d bytes: %+v, best %+v, with less %+v, fits %v", memory, moves, best, last, fits)
			}
			last = moves
		}
		if _, _, fits := tr.simulateBothOrders(least - 1); fits {
			t.Fatalf("less than the least, %d, is enough", least)
		}
	}
}

// A kernel's arguments are one command; images, mapped buffers and memory of the host stay; a part is its buffer.
func TestRun(t *testing.T) {
	create := func(id, size uint64, flags uint16, memory wire.Memory, parent uint64) wire.Event {
		return wire.CreateFields{
			Memory: memory, Outcome: wire.OutcomeDriver, Access: flags, Object: id, Requested: size, Granted: size, Parent: parent, Tag: 1,
		}.Event()
	}
	kernel := func(id uint64, argument uint32) wire.Event {
		return wire.UseFields{Command: wire.CommandKernel, Object: id, Kernel: 9, ArgumentNumber: argument, Queue: 8}.Event()
	}
	use := func(command wire.Command, id, bytes uint64, ns uint32) wire.Event {
		return wire.UseFields{Command: command, Object: id, Bytes: bytes, Duration: ns, Queue: 8, Reads: true}.Event()
	}
	tape, time := &records.Tape{}, uint64(1)
	add := func(events ...wire.Event) { // at one time
		time += 1000
		for _, e := range events {
			e.Time = time
			tape.Records = append(tape.Records, wire.Record{Event: e, Process: 1, Thread: 1})
		}
	}
	add(create(1, 1000, 0, wire.MemoryBuffer, 0), create(2, 1000, 0, wire.MemoryBuffer, 0), create(3, 1000, 0, wire.MemoryBuffer, 0),
		create(4, 300, wire.UseHostPtr, wire.MemoryBuffer, 0), create(5, 200, 0, wire.MemoryImage, 0),
		create(6, 500, 0, wire.MemorySubBuffer, 1))
	add(use(wire.CommandWrite, 1, 1<<20, 1<<20))
	add(use(wire.CommandRead, 1, 1<<20, 1<<21))
	add(kernel(1, 1), kernel(2, 2))
	add(kernel(2, 1), kernel(6, 3))
	add(use(wire.CommandMap, 3, 0, 0))
	add(kernel(1, 1))
	add(use(wire.CommandUnmap, 3, 0, 0))
	add(kernel(1, 1), kernel(2, 2))
	r, err := SimulateSpill(tape, 0)
	if err != nil {
		t.Fatal(err)
	}
	if r.Peak != 3500 || r.Least != 2500 || !r.Measured || r.ToDevice != 1e9 || r.ToHost != 5e8 {
		t.Errorf("%+v", r)
	}
	if e := r.Estimates; len(e) != 3 || !e[0].Fits || !e[1].Fits || e[2].Fits || e[0].Out == 0 || e[0].Best.Out > e[0].Out {
		t.Errorf("%+v", e)
	}
	if text := r.Text(0); !strings.Contains(text, "too little") || !strings.Contains(text, "the best that the recording shows") {
		t.Error(text)
	}
	// A read of 1 KiB shows what a call takes, not what 8 MiB would.
	last := &tape.Records[7].Event
	time = last.Time
	*last = use(wire.CommandRead, 1, 1<<10, 1<<21)
	last.Time = time
	if r, err = SimulateSpill(tape, 0); err != nil || r.Measured || r.Estimates[0].MovesNS > 0 || !strings.Contains(r.Text(0), "unknown") {
		t.Errorf("%v: %+v", err, r)
	}
}

// A blocking read that waits for a kernel shows no speed; one after a wait does, and so does the device's clock.
func TestSpeedIsOfTransfersAlone(t *testing.T) {
	const ms = 1_000_000
	event := func(time, thread uint64, e wire.Event) wire.Record {
		e.Time = time * ms
		return wire.Record{Event: e, Process: 1, Thread: uint32(thread)}
	}
	create := wire.CreateFields{Outcome: wire.OutcomeDriver, Object: 1, Requested: 1 << 20, Granted: 1 << 20}.Event()
	queue := func(number uint64) wire.Event { return wire.QueueFields{Life: wire.LifeCreate, Queue: number}.Event() }
	kernel := func(queue uint64) wire.Event {
		return wire.UseFields{Command: wire.CommandKernel, Object: 1, Kernel: 9, ArgumentNumber: 1, Queue: queue}.Event()
	}
	wait := func(how wire.Sync, queue uint64, ns uint32) wire.Event {
		return wire.SyncFields{Sync: how, Queue: queue, Duration: ns}.Event()
	}
	move := func(c wire.Command, ns uint32) wire.Event {
		return wire.UseFields{Command: c, Object: 1, Bytes: 1e6, Duration: ns, Queue: 8, Reads: true}.Event()
	}
	begin := []wire.Record{event(1, 1, create), event(1, 1, queue(8)), event(1, 1, queue(9)), event(2, 1, move(wire.CommandWrite, ms))}
	read, blocks := event(100, 1, move(wire.CommandRead, 2*ms)), event(100, 1, wait(wire.SyncBlocking, 8, 2*ms))
	for name, c := range map[string]struct {
		records []wire.Record
		want    float64 // back, in bytes per second; 0: unknown
	}{
		"nothing runs":               {[]wire.Record{read}, 5e8},
		"a kernel":                   {[]wire.Record{event(10, 1, kernel(8)), blocks, read}, 0},
		"of another thread":          {[]wire.Record{event(10, 2, kernel(8)), blocks, read}, 0},
		"of another queue":           {[]wire.Record{event(10, 1, kernel(9)), blocks, read}, 0},
		"a kernel, and clFinish":     {[]wire.Record{event(10, 1, kernel(8)), event(11, 1, wait(wire.SyncFinish, 8, 5)), blocks, read}, 5e8},
		"clFinish of another queue":  {[]wire.Record{event(10, 1, kernel(8)), event(11, 1, wait(wire.SyncFinish, 9, 5)), blocks, read}, 0},
		"a long clFinish":            {[]wire.Record{event(10, 1, kernel(8)), event(11, 1, wait(wire.SyncFinish, 8, 1<<32-1)), blocks, read}, 5e8},
		"a long read":                {[]wire.Record{event(100, 1, move(wire.CommandRead, 1<<32-1))}, 0},
		"the second read":            {[]wire.Record{event(10, 1, kernel(8)), event(50, 1, wait(wire.SyncBlocking, 8, ms)), event(50, 1, move(wire.CommandRead, ms)), read}, 5e8},
		"by the device's clock":      {[]wire.Record{event(10, 1, kernel(8)), event(99, 1, wire.TransferFields{Profiled: wire.CommandRead, Moved: 1e6, Took: ms}.Event())}, 1e9},
		"of what is not a transfer":  {[]wire.Record{event(99, 1, wire.TransferFields{Profiled: wire.CommandFill, Moved: 1e6, Took: ms}.Event())}, 0},
		"of a small one by its time": {[]wire.Record{event(99, 1, wire.TransferFields{Profiled: wire.CommandRead, Moved: 1e3, Took: ms}.Event())}, 0},
	} {
		tape := &records.Tape{Records: append(begin[:len(begin):len(begin)], c.records...)}
		r, err := SimulateSpill(tape, 0)
		if err != nil || r.ToHost != c.want || r.Measured != (c.want > 0) || r.Measured == strings.Contains(r.Text(0), "state one with --bandwidth") {
			t.Errorf("%s: %v back, want %v (%v)\n%s", name, r.ToHost, c.want, err, r.Text(0))
		}
	}
}
