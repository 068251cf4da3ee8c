// Package advise reads recordings, asks internal/advise/merging which memory blocks in them could be one, and writes what it
// finds as text or JSON.
package advise

import (
	"fmt"
	"slices"
	"time"

	"codeberg.org/gpumemtop/gpumemtop/internal/advise/merging"
	"codeberg.org/gpumemtop/gpumemtop/internal/advise/recorded"
	"codeberg.org/gpumemtop/gpumemtop/internal/recording"
	"codeberg.org/gpumemtop/gpumemtop/internal/units"
)

// MostSteps is how many steps of a recording are read by default.
const MostSteps = recorded.MostSteps

// Recording is one to be looked at.
type Recording struct {
	Name   string // as people know it
	Source recording.Source
	// Header tells copies and parts of one recording from recordings of their own. One without a time is of its own.
	Header recording.Header
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

// Add reads a recording from its front. Processes of one program are looked at together. An error is that of the
// source.
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
		name := units.ProgramName(run.Name)
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

// mostCallers is how far up a stack is looked for what tells call sites apart.
const mostCallers = 8

// tellApart names call sites that are one place in the program, but reached in several ways, by that place and the first
// caller that differs: a function that makes all buffers of a program would be one site otherwise. All runs of a program
// are looked at together, so that names are the same in each.
func tellApart(runs []Run) {
	for depth := range mostCallers {
		callers := map[string]string{}
		differ := map[string]bool{}
		each(runs, depth, func(_ *Run, _ uint32, name, caller string) {
			if other, seen := callers[name]; seen && other != caller {
				differ[name] = true
			}
			callers[name] = caller
		})
		each(runs, depth, func(r *Run, site uint32, name, caller string) {
			if differ[name] {
				if caller != "" {
					r.Program.Names[site] = name + " via " + caller
				}
				delete(r.Callers, site) // once is enough
			}
		})
	}
}

// each calls visit for the call sites of all runs whose callers are known, and their callers at a depth, empty beyond the last.
func each(runs []Run, depth int, visit func(r *Run, site uint32, name, caller string)) {
	for i := range runs {
		for site, callers := range runs[i].Callers {
			caller := ""
			if depth < len(callers) {
				caller = callers[depth]
			}
			visit(&runs[i], site, runs[i].Program.Names[site], caller)
		}
	}
}

// session is what recorded: all that was cut out of its recording, or copied from it, shows the same runs.
type session struct {
	number int    // from 1
	name   string // of the first recording of it
}

// sessionOf returns the session of a recording, and whether another recording of it was there before.
func (r *Reader) sessionOf(from *Recording, runs []recorded.Run) (of session, again bool) {
	var keys []string
	for i := range runs {
		keys = append(keys, from.keys(&runs[i])...)
	}
	i := slices.IndexFunc(keys, func(key string) bool { return r.sessions[key].number > 0 })
	if again = i >= 0; again {
		of = r.sessions[keys[i]]
	} else {
		r.number++
		of = session{r.number, from.Name}
	}
	for _, key := range keys {
		if r.sessions[key].number == 0 {
			r.sessions[key] = of
		}
	}
	return of, again
}

// keys returns what tells a run of a recording from others: its process, on which host, and when the recording began, which a
// merged one has of each that it was made of. That of a part is later, but the two clocks are as far from each other as they
// were, to the nanosecond.
func (from *Recording) keys(run *recorded.Run) []string {
	h := &from.Header
	if h.Created.IsZero() {
		return nil
	}
	key := func(host, what string, at time.Time) string {
		return fmt.Sprintf("%s %s %d %s", host, what, run.PID, at.UTC().Format(time.RFC3339Nano))
	}
	for i := range h.Merged {
		if o := &h.Merged[i]; run.Process >= o.First && run.Process <= o.Last {
			return []string{key(o.Host, "created", o.Created)}
		}
	}
	return []string{key(h.Host, "created", h.Created), key(h.Host, "booted", h.Created.Add(-time.Duration(h.ClockNS)))}
}
