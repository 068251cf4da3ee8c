package main

import (
	"fmt"
	"io"
	"math/rand/v2"
	"time"

	"codeberg.org/gpumemtop/gpumemtop/internal/merging"
	"codeberg.org/gpumemtop/gpumemtop/internal/merging/advice"
	"codeberg.org/gpumemtop/gpumemtop/internal/wire"
)

// advise shows how fast recordings are looked through for memory that could be merged: the time for a step must not grow
// with their number.
func (b *bench) advise() error {
	b.row("rounds", "records", "steps", "s", "thousand steps/s")
	for _, rounds := range []int{1000, 4000, 16000, 64000} {
		var rates, times []float64
		records, steps := 0, 0
		for range b.runs {
			tape := newRounded(rounds)
			taken, n, err := advised(tape)
			if err != nil {
				return err
			}
			records, steps = tape.records, n
			times, rates = append(times, taken), append(rates, float64(steps)/taken)
		}
		b.row(rounds, records, steps, fixed(middle(times), 2), fixed(middle(rates)/1e3, 0))
	}
	b.flush()
	fmt.Println("\nEach round creates four buffers, runs ten kernels, puts one buffer together of two others, reads, and releases all.\n" +
		"Seconds are those of the processor, reading included.")
	return nil
}

// advised looks through a recording of one process and returns the seconds that it took, and how many steps it has.
func advised(tape *rounded) (seconds float64, steps int, err error) {
	start, err := processorTime()
	if err != nil {
		return 0, 0, err
	}
	reader := advice.New(advice.Options{Options: merging.Options{Form: merging.Completion, Max: true}})
	if err := reader.Add(advice.Recording{Name: "made up", Source: tape}); err != nil {
		return 0, 0, err
	}
	result, err := reader.Advise()
	if err != nil {
		return 0, 0, err
	}
	now, err := processorTime()
	return (now - start).Seconds(), len(result.Programs[0].Runs[0].Program.Steps), err
}

// rounded is a source of records that are made up, a round at a time.
type rounded struct {
	rounds, round, records int
	random                 *rand.Rand
	ready                  []wire.Record
	time, object           uint64
}

func newRounded(rounds int) *rounded {
	return &rounded{rounds: rounds, random: rand.New(rand.NewPCG(1, 2))}
}

// Next implements trace.Source.
func (t *rounded) Next(r *wire.Record) error {
	if len(t.ready) == 0 {
		if t.round == t.rounds {
			return io.EOF
		}
		t.prepare()
		t.round++
	}
	*r, t.ready = t.ready[0], t.ready[1:]
	t.records++
	return nil
}

// Rewind implements trace.Source.
func (t *rounded) Rewind() error {
	*t = *newRounded(t.rounds)
	return nil
}

// prepare makes the records of a round.
func (t *rounded) prepare() {
	t.ready = t.ready[:0]
	if t.round == 0 {
		t.add(wire.Event{Kind: wire.KindDevice, Object: 1, Tag: 128})
		t.add(wire.Event{Kind: wire.KindQueue, Object: 1})
	}
	size, first := uint64(4096*(1+t.random.IntN(8))), t.object+1
	for i, bytes := range []uint64{2 * size, size, size, 256} { // made of the next two; those; a sum
		t.object++
		t.add(wire.Event{Kind: wire.KindCreate, Object: t.object, Size: bytes, Granted: bytes, Tag: uint32(i + 1), Access: 1, Scope: 1})
	}
	for i := range uint64(10) {
		t.kernel(first+1+i%2, first+1+(i+1)%2)
	}
	for i := range uint64(2) {
		t.both(use(wire.CommandCopy, first+1+i, wire.FlagReads, wire.Event{Size: size, Tag: 9}),
			use(wire.CommandCopy, first, wire.FlagWrites, wire.Event{Size: size, Granted: i * size, Tag: 9}))
	}
	t.kernel(first, first+3)
	t.both(wire.Event{Kind: wire.KindSync, Op: uint8(wire.SyncBlocking), Link: 1},
		use(wire.CommandRead, first+3, wire.FlagReads, wire.Event{Size: 256}))
	for object := first; object <= t.object; object++ {
		t.add(wire.Event{Kind: wire.KindRelease, Object: object})
	}
}

func (t *rounded) add(e wire.Event) {
	t.time += uint64(time.Microsecond)
	e.Time = t.time
	t.ready = append(t.ready, wire.Record{Event: e, Process: 1, Thread: 1})
}

// both adds two records of one command.
func (t *rounded) both(x, y wire.Event) {
	t.add(x)
	t.add(y)
	t.ready[len(t.ready)-1].Time = t.ready[len(t.ready)-2].Time
}

func (t *rounded) kernel(source, target uint64) {
	t.both(use(wire.CommandKernel, source, wire.FlagReads, wire.Event{Duration: 1}),
		use(wire.CommandKernel, target, 0, wire.Event{Duration: 2}))
}

func use(op wire.Command, object uint64, flags uint8, e wire.Event) wire.Event {
	e.Kind, e.Op, e.Object, e.Flags, e.Link = wire.KindUse, uint8(op), object, flags, 1
	return e
}
