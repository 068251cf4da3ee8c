package advise

import (
	"fmt"
	"io"
	"math/rand/v2"
	"testing"
	"time"

	"codeberg.org/gpumemtop/gpumemtop/internal/advise/merging"
	"codeberg.org/gpumemtop/gpumemtop/internal/wire"
)

// BenchmarkAdvise reads recordings and looks for memory that could be merged. Each round of the recorded program creates
// four buffers, runs ten kernels, fills one buffer from two others, reads, and releases all. The time per step must not
// grow with the number of rounds.
func BenchmarkAdvise(b *testing.B) {
	for _, rounds := range []int{1000, 4000, 16000, 64000} {
		b.Run(fmt.Sprintf("rounds=%d", rounds), func(b *testing.B) {
			records, steps := 0, 0
			for b.Loop() {
				tape := newRounded(rounds)
				reader := New(Options{Options: merging.Options{Form: merging.Completion, Max: true}})
				if err := reader.AddRecording(Recording{Name: "generated", Source: tape}); err != nil {
					b.Fatal(err)
				}
				result, err := reader.AdviseOnRuns()
				if err != nil {
					b.Fatal(err)
				}
				records, steps = tape.records, len(result.Programs[0].Runs[0].Program.Steps)
			}
			b.ReportMetric(float64(records), "records")
			b.ReportMetric(float64(steps*b.N)/b.Elapsed().Seconds()/1e3, "ksteps/s")
		})
	}
}

// rounded generates records, one round at a time.
type rounded struct {
	rounds, round, records int
	random                 *rand.Rand
	ready                  []wire.Record
	time, object           uint64
}

func newRounded(rounds int) *rounded {
	return &rounded{rounds: rounds, random: rand.New(rand.NewPCG(1, 2))}
}

// Next implements recording.Source.
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

// Rewind implements recording.Source.
func (t *rounded) Rewind() error {
	*t = *newRounded(t.rounds)
	return nil
}

// prepare generates the records of one round.
func (t *rounded) prepare() {
	t.ready = t.ready[:0]
	if t.round == 0 {
		t.add(wire.Event{Kind: wire.KindDevice, Object: 1, Tag: 128})
		t.add(wire.Event{Kind: wire.KindQueue, Object: 1})
	}
	size, first := uint64(4096*(1+t.random.IntN(8))), t.object+1
	for i, bytes := range []uint64{2 * size, size, size, 256} { // filled from the next two; these two; a sum
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
