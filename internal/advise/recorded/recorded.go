// Package recorded makes the programs that internal/advise/merging looks at from recordings: one for each process, its
// creates, releases, commands and waits as steps. What a recording does not tell is taken for the worst and said. It
// reads no clock.
package recorded

import (
	"maps"
	"slices"

	"codeberg.org/gpumemtop/gpumemtop/internal/advise/merging"
	"codeberg.org/gpumemtop/gpumemtop/internal/callsite"
	"codeberg.org/gpumemtop/gpumemtop/internal/recording"
	"codeberg.org/gpumemtop/gpumemtop/internal/wire"
)

// MostSteps is how many steps are kept of all processes of a recording by default. A step takes
// some 250 bytes until the advice is there.
const MostSteps = 4 << 20

// Options say how a recording is read.
type Options struct {
	Steps int // to keep, of all processes together; 0: MostSteps
}

// Run is what one process did.
type Run struct {
	Program *merging.Program
	Process uint32 // its number in the recording
	PID     int    // 0 when unknown
	Name    string // of the program, as it was started; empty when unknown
	// Callers are, for each call site, where the function of it was called, where that was called, and so on, as far as
	// known.
	Callers map[uint32][]string
	// Lacks says what the recording does not tell, or what was left out, a sentence each.
	Lacks []string
}

// Read reads a recording from its front and returns the processes in which memory was created, by their numbers. What
// is in a program's steps is in the order of the records, except for ends of waits, which come when they were: a wait
// that another thread's calls overlap proves nothing to these. An error is that of the source.
func Read(src recording.Source, o Options) ([]Run, error) {
	names, err := callsite.ReadNames(src)
	if err != nil {
		return nil, err
	}
	b := &builder{left: o.Steps, processes: map[uint32]*process{}}
	if b.left <= 0 {
		b.left = MostSteps
	}
	most := b.left
	for r, err := range recording.Records(src) {
		if err != nil {
			return nil, err
		}
		b.take(r)
	}
	return b.runs(names, src, most), nil
}

// runs ends the programs.
func (b *builder) runs(names *callsite.Names, src recording.Source, most int) []Run {
	damage := recording.DamageOf(src)
	var runs []Run
	for _, number := range slices.Sorted(maps.Keys(b.processes)) {
		p := b.processes[number]
		if len(p.program.Buffers) == 0 {
			continue
		}
		p.finish(recording.GoesOn(src))
		p.program.Partial = b.lost > 0 || damage != "" || p.unknownCommands > 0
		run := Run{
			Program: &p.program, Process: number, PID: names.Process(number).PID, Name: names.Process(number).Program,
			Callers: p.name(names.Process(number)), Lacks: p.lacks(b.lost, most),
		}
		if damage != "" {
			run.Lacks = append([]string{"what is damaged may speak against all advice, so none is safe: " + damage}, run.Lacks...)
		}
		runs = append(runs, run)
	}
	return runs
}

// builder makes the programs of a recording.
type builder struct {
	processes map[uint32]*process
	left      int    // steps that may still be kept
	lost      uint64 // events
}

// take takes a record. It takes anything: what makes no sense is ignored.
func (b *builder) take(r *wire.Record) {
	if r.Kind == wire.KindLost {
		b.lost += r.AsLost().Events()
		return
	}
	p := b.processes[r.Process]
	if p == nil {
		p = newProcess(b)
		b.processes[r.Process] = p
	}
	p.settle(r)
	switch r.Kind {
	case wire.KindDevice:
		p.program.Align = max(p.program.Align, uint64(r.AsDevice().Align()))
	case wire.KindQueue:
		p.queue(r)
	case wire.KindCreate:
		p.create(r)
	case wire.KindRelease:
		p.release(r)
	case wire.KindUse:
		p.use(r)
	case wire.KindAwait:
		p.await(r)
	case wire.KindSync:
		p.sync(r)
	case wire.KindExit:
		p.exited = true
	default: // concerns no memory
	}
}

// name takes over what call sites are called, and returns their callers.
func (p *process) name(names *callsite.ProcessNames) map[uint32][]string {
	p.program.Names = map[uint32]string{}
	callers := map[uint32][]string{}
	add := func(site uint32) {
		if _, known := p.program.Names[site]; known {
			return
		}
		s := names.Site(site)
		p.program.Names[site] = s.Name
		for i := range s.Frames[min(1, len(s.Frames)):] {
			callers[site] = append(callers[site], s.Frames[i+1].Name())
		}
	}
	for i := range p.program.Buffers {
		add(p.program.Buffers[i].Site)
	}
	for i := range p.program.Steps {
		if s := &p.program.Steps[i]; s.Kind == merging.KindCopy {
			add(s.Site)
		}
	}
	p.program.Names[0] = "an unknown call site"
	return callers
}
