// Package randomrun makes random runs that a correct target and session could have recorded, for tests of readers of records.
package randomrun

import (
	"fmt"
	"math/rand/v2"
	"slices"

	"pgregory.net/rapid"

	"codeberg.org/gpumemtop/gpumemtop/internal/testkit/records"
	"codeberg.org/gpumemtop/gpumemtop/internal/wire"
)

// Tape is a source of records in memory.
type Tape = records.Tape

// Start is when runs start, in ns of CLOCK_MONOTONIC.
const Start = 1_000_000_000

// Options describes a run. Every process has two devices with a context each, and its own numbers; pids begin at 1000.
type Options struct {
	Processes int      // numbered from 1; 0: 2
	Steps     int      // of about one record each; 0: Draw draws up to 80
	Gap       uint64   // from one record to the next at most, in ns; 0: 3000
	Apart     bool     // no two records have the same time
	Names     []string // payloads of SITE for tags 1 and up, at the start of each process, "" without; none: at any time
	Exits     Exits    // when processes exit

	// Exclude what some observers do not follow.
	NoSlabs      bool
	NoReferences bool // each release is the last, and leaves no pinned memory
	NoOvertaking bool // no COOLED comes before its RELEASE
	SlabsCool    bool // a slab may be evicted with parts that are cooling
}

// Exits says when processes exit.
type Exits int

// The ways to exit.
const (
	Anytime Exits = iota // a few do, at any time
	AtEnd                // all do, with their number minus one as status
	Never
)

// choices is the source of a run's randomness.
type choices interface{ Uint64N(n uint64) uint64 }

// drawn takes choices from rapid, which shrinks failing runs.
type drawn struct{ *rapid.T }

func (d drawn) Uint64N(n uint64) uint64 { return rapid.Uint64Range(0, n-1).Draw(d.T, "choice") }

// DrawRun draws a run.
func DrawRun(t *rapid.T, o Options) []wire.Record {
	if o.Steps == 0 {
		o.Steps = rapid.IntRange(0, 80).Draw(t, "steps")
	}
	return generateRun(drawn{t}, o)
}

// MakeRun makes the run of a seed.
func MakeRun(seed uint64, o Options) []wire.Record {
	return generateRun(rand.New(rand.NewPCG(seed, 7)), o)
}

// MakeRunWithoutSlabs makes a run without slabs, in which no two records have the same time. Every process has four call sites,
// and exits at the end.
func MakeRunWithoutSlabs(seed uint64, processes, steps int) []wire.Record {
	var names []string
	for tag := range 4 {
		names = append(names, fmt.Sprintf("f%d\tapp.c\t%d\tapp+0x1\nmain\tapp.c\t9\tapp+0x2\n", tag+1, 10*(tag+1)))
	}
	return MakeRun(seed, Options{Processes: processes, Steps: steps, Gap: 500_000, Apart: true, Exits: AtEnd, Names: names, NoSlabs: true,
		NoReferences: true, NoOvertaking: true})
}

func generateRun(from choices, o Options) []wire.Record {
	if o.Processes == 0 {
		o.Processes = 2
	}
	if o.Gap == 0 {
		o.Gap = 3000
	}
	w := &world{Options: o, choices: from, now: Start}
	for i := range o.Processes {
		w.processes = append(w.processes, &process{number: uint32(i + 1)})
		w.addProcessRecords(w.processes[i])
	}
	next := steps
	if !o.NoSlabs {
		next = append(slices.Clip(steps), slabSteps...)
	}
	for range o.Steps {
		if p := w.processes[w.drawBelow(o.Processes)]; !p.ended {
			next[w.drawBelow(len(next))](w, p)
		}
	}
	for i, p := range w.processes {
		if o.Exits == AtEnd {
			w.addExit(p, int16(i))
		}
	}
	return w.records
}
