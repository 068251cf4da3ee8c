// Package recorded builds the programs that internal/advise/merging analyses from recordings: one for each process,
// with its creates, releases, commands and waits as steps. Where a recording does not show something, the package
// assumes the worst and says so. It reads no clock.
package recorded

import (
	"maps"
	"slices"

	"codeberg.org/gpumemtop/gpumemtop/internal/advise/merging"
	"codeberg.org/gpumemtop/gpumemtop/internal/callsite"
	"codeberg.org/gpumemtop/gpumemtop/internal/recording"
	"codeberg.org/gpumemtop/gpumemtop/internal/wire"
)

// MostSteps is how many steps are kept by default, of all processes of a recording. A step takes some 250 bytes while
// the advice is made.
const MostSteps = 4 << 20

// Options say how a recording is read.
type Options struct {
	Steps int // steps to keep, of all processes together; 0: MostSteps
}

// Run is what one process did.
type Run struct {
	Program *merging.Program
	Process uint32 // its number in the recording
	PID     int    // 0 if unknown
	Name    string // of the program, as it was started; empty if unknown
	// Callers are, by call site, the callers of its function, the innermost first, as far as known.
	Callers map[uint32][]string
	// Copying are, by call site, the creates that copied the program's bytes into memory of their own.
	Copying map[uint32]*Copying
	// Making is, by call site, what its creates took at most, ns: calls, releases that take as long, and first writes to new
	// memory.
	Making map[uint32]uint64
	NS     uint64 // from the first record of the process to the last
	// Lacks describes what the recording does not show, and what was left out, one sentence each.
	Lacks []string
}

// Copying is what creates with CL_MEM_COPY_HOST_PTR did at a call site.
type Copying struct {
	Creates int
	NS      uint64 // ns that the driver took for the creates
	Most    int    // the most of their buffers that lived at one time
	Largest uint64
	Differ  bool // the sizes differ
	live    int
}

// countCreate counts a create.
func (c *Copying) countCreate(size uint64, ns uint32) {
	c.Differ = c.Differ || c.Creates > 0 && size != c.Largest
	c.Creates++
	c.NS += uint64(ns)
	c.live++
	c.Most, c.Largest = max(c.Most, c.live), max(c.Largest, size)
}

// ReadRuns reads a recording from its start and returns the processes that created memory, by their numbers. The steps of a
// program are in the order of the records, except that waits come when they ended: a wait proves nothing to calls of
// other threads that overlap it. The error is that of the source.
func ReadRuns(src recording.Source, o Options) ([]Run, error) {
	names, err := callsite.ReadNames(src)
	if err != nil {
		return nil, err
	}
	b := &builder{stepsLeft: o.Steps, processes: map[uint32]*process{}}
	if b.stepsLeft <= 0 {
		b.stepsLeft = MostSteps
	}
	most := b.stepsLeft
	for r, err := range recording.Records(src) {
		if err != nil {
			return nil, err
		}
		b.addRecord(r)
	}
	return b.endPrograms(names, src, most), nil
}

// endPrograms ends the programs.
func (b *builder) endPrograms(names *callsite.Names, src recording.Source, most int) []Run {
	damage := recording.DamageOf(src)
	var runs []Run
	for _, number := range slices.Sorted(maps.Keys(b.processes)) {
		p := b.processes[number]
		if len(p.program.Buffers) == 0 {
			continue
		}
		p.endProgram(recording.RunGoesOn(src))
		p.program.Partial = b.lost > 0 || damage != "" || p.unknownCommands > 0
		run := Run{
			Program: &p.program, Process: number, PID: names.Process(number).PID, Name: names.Process(number).Program,
			Callers: p.nameSites(names.Process(number)), Copying: p.copying, Making: p.making, NS: p.last - p.first, Lacks: p.missingSentences(b.lost, most),
		}
		if damage != "" {
			run.Lacks = append([]string{"what is damaged may speak against all advice, so none is safe: " + damage}, run.Lacks...)
		}
		runs = append(runs, run)
	}
	return runs
}

// builder builds the programs of a recording.
type builder struct {
	processes map[uint32]*process
	stepsLeft int    // steps that may still be kept
	lost      uint64 // events
}

// addRecord adds a record. Records that make no sense are ignored.
func (b *builder) addRecord(r *wire.Record) {
	if r.Kind == wire.KindLost {
		b.lost += r.AsLost().Events()
		return
	}
	p := b.processes[r.Process]
	if p == nil {
		p = newProcess(b)
		b.processes[r.Process] = p
	}
	if p.first == 0 {
		p.first = r.Time
	}
	p.last = max(p.last, r.Time)
	p.endWaitsBefore(r)
	switch r.Kind {
	case wire.KindDevice:
		p.program.Align = max(p.program.Align, uint64(r.AsDevice().Align()))
	case wire.KindQueue:
		p.addQueue(r)
	case wire.KindCreate:
		p.addCreate(r)
	case wire.KindRelease:
		p.addRelease(r)
	case wire.KindUse:
		p.addUse(r)
	case wire.KindAwait:
		p.addAwaitedCommand(r)
	case wire.KindSync:
		p.beginWait(r)
	case wire.KindExit:
		p.exited = true
	default: // the record does not concern memory
	}
}

// nameSites sets the names of call sites, and returns their callers.
func (p *process) nameSites(names *callsite.ProcessNames) map[uint32][]string {
	p.program.Names = map[uint32]string{}
	callers := map[uint32][]string{}
	add := func(site uint32) {
		if _, known := p.program.Names[site]; known {
			return
		}
		s := names.Site(site)
		p.program.Names[site] = s.Name
		for i := range s.Frames[min(1, len(s.Frames)):] {
			callers[site] = append(callers[site], s.Frames[i+1].ShortText())
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
