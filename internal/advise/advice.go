// Package advise reads recordings, asks internal/advise/merging which of their memory blocks could be one, and writes
// the result as text or WriteJSON.
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

// Recording is a recording to read.
type Recording struct {
	Name   string // for people
	Source recording.Source
	// Header shows which recordings are copies or parts of the same one. Without a time a recording is on its own.
	Header recording.Header
}

// Options select what is advised.
type Options struct {
	merging.Options
	Steps int // steps to read of each recording; 0: MostSteps
}

// Result is the advice for the programs of some recordings.
type Result struct {
	Options  Options
	Programs []Program
	Empty    []string // recordings without creates of memory, or unreadable ones
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

// Reader reads one recording after the other. A recording may be closed after it was added. One goroutine uses a
// Reader.
type Reader struct {
	options  Options
	number   int                // sessions so far
	sessions map[string]session // by key of a run
	programs []Program
	empty    []string
}

// New returns a reader without recordings.
func New(o Options) *Reader { return &Reader{options: o, sessions: map[string]session{}} }

// AddRecording reads a recording from its start. Runs of the same program are analysed together. The error is that of the
// source.
func (r *Reader) AddRecording(recording Recording) error {
	runs, err := recorded.ReadRuns(recording.Source, recorded.Options{Steps: r.options.Steps})
	if err != nil {
		return fmt.Errorf("%s: %w", recording.Name, err)
	}
	if len(runs) == 0 {
		r.empty = append(r.empty, recording.Name)
	}
	session, again := r.findOrAddSession(&recording, runs)
	for _, run := range runs {
		if recording.Header.Attached { // its times include those of probes
			run.Copying = nil
		}
		run.Program.Recording = session.number
		name := units.ProgramName(run.Name)
		index := slices.IndexFunc(r.programs, func(p Program) bool { return p.Name == name })
		if index < 0 {
			index = len(r.programs)
			r.programs = append(r.programs, Program{Name: name})
		}
		p := &r.programs[index]
		if again {
			run.Lacks = append(run.Lacks, "it was recorded together with what is in "+session.name+": both count as one recording")
		}
		p.Runs = append(p.Runs, Run{Recording: recording.Name, Run: run})
	}
	return nil
}

// AdviseOnRuns analyses all runs that were read. The error reports a run that contradicts itself.
func (r *Reader) AdviseOnRuns() (*Result, error) {
	for i := range r.programs {
		p := &r.programs[i]
		addCallersToSiteNames(p.Runs)
		var programs []*merging.Program
		for j := range p.Runs {
			programs = append(programs, p.Runs[j].Program)
		}
		report, err := merging.AdviseOnRuns(programs, r.options.Options)
		if err != nil {
			return nil, fmt.Errorf("%s: %w", p.Name, err)
		}
		p.Advice = merging.Reconcile(append(p.adviseOnCopyHostPtr(), report.Advice...))
		for j := range p.Runs {
			p.Runs[j].Found = report.Runs[j]
		}
	}
	return &Result{Options: r.options, Programs: r.programs, Empty: r.empty}, nil
}

// callersMax is how far up the stack callers are searched for differences.
const callersMax = 8

// addCallersToSiteNames adds the first caller that differs to the name of a call site that is reached in several ways. Otherwise
// a function that creates all buffers of a program would be a single site. All runs of a program are named together, so
// that names are the same in each.
func addCallersToSiteNames(runs []Run) {
	for depth := range callersMax {
		callers := map[string]string{}
		differs := map[string]bool{}
		eachSiteWithCaller(runs, depth, func(_ *Run, _ uint32, name, caller string) {
			if other, seen := callers[name]; seen && other != caller {
				differs[name] = true
			}
			callers[name] = caller
		})
		eachSiteWithCaller(runs, depth, func(r *Run, site uint32, name, caller string) {
			if differs[name] {
				if caller != "" {
					r.Program.Names[site] = name + " via " + caller
				}
				delete(r.Callers, site) // one caller is enough
			}
		})
	}
}

// eachSiteWithCaller calls visit for the call sites of all runs whose callers are known, with their caller at a depth; the caller
// is empty beyond the last.
func eachSiteWithCaller(runs []Run, depth int, visit func(r *Run, site uint32, name, caller string)) {
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

// session is the source of a recording: parts and copies of one recording show the same runs.
type session struct {
	number int    // from 1
	name   string // of the session's first recording
}

// findOrAddSession returns the session of a recording, and whether an earlier recording has the same session.
func (r *Reader) findOrAddSession(recording *Recording, runs []recorded.Run) (found session, again bool) {
	var keys []string
	for i := range runs {
		keys = append(keys, recording.identifyingKeys(&runs[i])...)
	}
	i := slices.IndexFunc(keys, func(key string) bool { return r.sessions[key].number > 0 })
	if again = i >= 0; again {
		found = r.sessions[keys[i]]
	} else {
		r.number++
		found = session{r.number, recording.Name}
	}
	for _, key := range keys {
		if r.sessions[key].number == 0 {
			r.sessions[key] = found
		}
	}
	return found, again
}

// identifyingKeys returns strings that identify a run of a recording: by its process, its host, and when the recording began; a
// merged recording has these for each of its sources. A part begins later than the whole recording, but the difference
// between the part's two clocks is the same, to the nanosecond.
func (r *Recording) identifyingKeys(run *recorded.Run) []string {
	h := &r.Header
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
