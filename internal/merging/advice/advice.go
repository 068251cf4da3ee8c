// Package advice reads recordings, asks internal/merging which memory blocks in them could be one, and writes what it
// finds as text or JSON.
package advice

import (
	"fmt"
	"slices"

	"codeberg.org/gpumemtop/gpumemtop/internal/merging"
	"codeberg.org/gpumemtop/gpumemtop/internal/merging/recorded"
	"codeberg.org/gpumemtop/gpumemtop/internal/plain"
	"codeberg.org/gpumemtop/gpumemtop/internal/trace"
)

// MostSteps is how many steps of a recording are looked at when nobody asks for another number.
const MostSteps = recorded.MostSteps

// Recording is one to be looked at.
type Recording struct {
	Name   string // as people know it
	Source trace.Source
	// Header tells copies and parts of one recording from recordings of their own. One without a time is of its own.
	Header trace.Header
}

// Options say what is asked for.
type Options struct {
	merging.Options
	Steps int // to look at in each recording; 0: MostSteps
}

// Result is what was found in recordings: for each program that was run in them, by its name.
type Result struct {
	Options  Options
	Programs []Program
	Empty    []string // recordings in which no memory was created, or none that can be read
}

// Program is all runs of one program.
type Program struct {
	Name   string
	Runs   []Run
	Advice []merging.Advice // the best verdict first, then the most bytes
}

// Run is one process in one recording.
type Run struct {
	Recording string
	recorded.Run
	Found merging.Run
}

// Reader takes recordings one after the other: each is read when it is given, and need not be open any more then. One
// goroutine uses it.
type Reader struct {
	options  Options
	number   int                // of recordings so far
	sessions map[string]session // of these
	programs []Program
	empty    []string
}

// New returns a reader that has nothing yet.
func New(o Options) *Reader { return &Reader{options: o, sessions: map[string]session{}} }

// Add reads a recording from its front. Processes of one program are looked at together. An error is that of the source.
func (r *Reader) Add(from Recording) error {
	runs, err := recorded.Read(from.Source, recorded.Options{Steps: r.options.Steps})
	if err != nil {
		return fmt.Errorf("%s: %w", from.Name, err)
	}
	if len(runs) == 0 {
		r.empty = append(r.empty, from.Name)
	}
	of, again := r.sessionOf(&from, runs)
	for _, run := range runs {
		run.Program.Recording = of.number
		name := plain.ProgramName(run.Name)
		at := slices.IndexFunc(r.programs, func(p Program) bool { return p.Name == name })
		if at < 0 {
			at = len(r.programs)
			r.programs = append(r.programs, Program{Name: name})
		}
		p := &r.programs[at]
		if again {
			run.Lacks = append(run.Lacks, "it was recorded together with what is in "+of.name+": both count as one recording")
		}
		p.Runs = append(p.Runs, Run{Recording: from.Name, Run: run})
	}
	return nil
}

// Advise looks at all that was read. An error says that a run contradicts itself.
func (r *Reader) Advise() (*Result, error) {
	for i := range r.programs {
		p := &r.programs[i]
		tellApart(p.Runs)
		var programs []*merging.Program
		for j := range p.Runs {
			programs = append(programs, p.Runs[j].Program)
		}
		report, err := merging.Advise(programs, r.options.Options)
		if err != nil {
			return nil, fmt.Errorf("%s: %w", p.Name, err)
		}
		p.Advice = report.Advice
		for j := range p.Runs {
			p.Runs[j].Found = report.Runs[j]
		}
	}
	return &Result{Options: r.options, Programs: r.programs, Empty: r.empty}, nil
}
