// Package randomrun makes random runs as a correct target and session could have recorded them, for tests of what is made
// of records.
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

// Options says what a run looks like. Every process has two devices, with a context each, and numbers of its own; pids are
// 1000 and up.
type Options struct {
	Processes int      // numbered from 1; 0: 2
	Steps     int      // of about one record each; 0: Draw draws up to 80
	Gap       uint64   // from one record to the next at most, in ns; 0: 3000
	Apart     bool     // no two records have the same time
	Names     []string // payloads of SITE for tags 1 and up, at the start of each process, "" without; none: at any time
	Exits     Exits    // when processes exit

	// What some observers do not follow.
	NoSlabs      bool
	NoReferences bool // no release leaves references or pinned memory
	NoOvertaking bool // no COOLED comes before its RELEASE
	SlabsCool    bool // a slab may be evicted with parts that are cooling
}

// Exits says when processes exit.
type Exits int

// The ways to exit.
const (
	Anytime Exits = iota // a few do, at any time
	AtEnd                // all do, each with its number less one as status
	Never
)

// choices is where a run's randomness comes from.
type choices interface{ Uint64N(n uint64) uint64 }

// drawn makes failing runs small.
type drawn struct{ *rapid.T }

func (d drawn) Uint64N(n uint64) uint64 { return rapid.Uint64Range(0, n-1).Draw(d.T, "choice") }

// Draw draws a run.
func Draw(t *rapid.T, o Options) []wire.Record {
	if o.Steps == 0 {
		o.Steps = rapid.IntRange(0, 80).Draw(t, "steps")
	}
	return run(drawn{t}, o)
}

// Make makes the run of a seed.
func Make(seed uint64, o Options) []wire.Record { return run(rand.New(rand.NewPCG(seed, 7)), o) }

// Records makes a run whose blocks come and go one after the other: without slabs, and no two records have the same time.
// Every process has four call sites, and exits at the end.
func Records(seed uint64, processes, steps int) []wire.Record {
	var names []string
	for tag := range 4 {
		names = append(names, fmt.Sprintf("f%d\tapp.c\t%d\tapp+0x1\nmain\tapp.c\t9\tapp+0x2\n", tag+1, 10*(tag+1)))
	}
	return Make(seed, Options{Processes: processes, Steps: steps, Gap: 500_000, Apart: true, Exits: AtEnd, Names: names, NoSlabs: true, NoReferences: true, NoOvertaking: true})
}

func run(from choices, o Options) []wire.Record {
	if o.Processes == 0 {
		o.Processes = 2
	}
	if o.Gap == 0 {
		o.Gap = 3000
	}
	w := &world{Options: o, choices: from, now: Start}
	for i := range o.Processes {
		w.processes = append(w.processes, &process{number: uint32(i + 1)})
		w.introduce(w.processes[i])
	}
	next := steps
	if !o.NoSlabs {
		next = append(slices.Clip(steps), slabSteps...)
	}
	for range o.Steps {
		if p := w.processes[w.below(o.Processes)]; !p.ended {
			next[w.below(len(next))](w, p)
		}
	}
	for i, p := range w.processes {
		if o.Exits == AtEnd {
			w.exit(p, int16(i))
		}
	}
	return w.records
}
