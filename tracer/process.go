package tracer

import (
	"fmt"
	"math"
	"os"
	"slices"

	"codeberg.org/gpumemtop/gpumemtop/internal/wire"
	"codeberg.org/gpumemtop/gpumemtop/tracer/calls"
	"codeberg.org/gpumemtop/gpumemtop/tracer/kernel"
	"codeberg.org/gpumemtop/gpumemtop/tracer/stack"
	"codeberg.org/gpumemtop/gpumemtop/tracer/target"
)

// unknownStatus is the exit status of a process whose end the kernel did not report.
const unknownStatus = math.MaxUint64

// inspectCode returns a view of the code that a process has mapped.
func (t *Tracer) inspectCode(found *target.Process) view {
	v := view{found, stack.New(found, t.files)}
	v.walker.RenewMappings()
	return v
}

// passRecord passes on a record of the process. Its time is at least that of the record before: clocks of two processors
// differ by less than a call takes.
func (p *process) passRecord(r *wire.Record) {
	t := p.tracer
	r.Process = p.number
	if r.Kind != wire.KindExit && r.Kind != wire.KindLost {
		r.Thread = p.thread
	}
	t.lastTime = max(t.lastTime, r.Time)
	r.Time = t.lastTime + t.shift
	t.put(r)
}

// losses are the calls of a pid that found no room in the ring, and how many of them used memory.
type losses struct {
	calls, uses uint64
	shared      bool // some may be those of the program that the process executed afterwards
}

// passTrackerRecord passes on a record of what the calls mean.
func (p *process) passTrackerRecord(r *wire.Record) {
	if r.Kind == wire.KindDiag && p.hasUnnotedLosses() { // the lost calls may explain the finding
		p.tracer.scan.last = 0
		return
	}
	p.passRecord(r)
}

// clockShiftOfNamespace returns how far CLOCK_MONOTONIC of our time namespace is ahead of the kernel's, in ns modulo 2^64: time_namespaces(7).
func clockShiftOfNamespace() uint64 {
	var seconds, ns int64
	text, _ := os.ReadFile("/proc/self/timens_offsets") // kernels without time namespaces have no such file
	_, _ = fmt.Sscanf(string(text), "monotonic %d %d", &seconds, &ns)
	return uint64(seconds*1e9 + ns)
}

// hasUnnotedLosses reports whether calls were lost that the tracker does not know of yet.
func (p *process) hasUnnotedLosses() bool {
	calls, _ := p.tracer.kernel.LostCalls(p.pid)
	return calls > p.tracer.noted[p.pid].calls
}

// recordLosses records how many calls of a process found no room in the ring.
func (p *process) recordLosses() {
	calls, uses := p.tracer.kernel.LostCalls(p.pid)
	before := p.tracer.noted[p.pid]
	if calls <= before.calls {
		return
	}
	p.tracer.noted[p.pid] = losses{calls, uses, false}
	p.objects.NoteCallsLost()
	p.passRecord(&wire.Record{Event: wire.LostFields{Events: calls - before.calls, Uses: uses - before.uses}.Event()})
}

// isForwarded reports whether an ICD loader makes the call on behalf of another loader, which is probed as well. A call
// that is reported at its entry was then reported for the outer loader already. Of a call that is reported at its
// return, the probes report the inner one only.
func (p *process) isForwarded(s *wire.Sample) bool {
	loaders := p.tracer.probes.mappedLoaders(p.pid)
	if len(loaders) < 2 || calls.Functions[s.Function].Shape.Flags&wire.ShapeReturn != 0 {
		return false
	}
	path, _, known := p.walker.ModuleOfAddress(s.Ip)
	return known && slices.Contains(loaders, path)
}

// beginWatching begins to watch a process whose view is known.
func (t *Tracer) beginWatching(p *process, time uint64) {
	t.table.beginWatching(p)
	p.tracer, p.thread = t, uint32(p.pid)
	p.number = t.registry.addProcess(p.target)
	p.tags = stack.NewTags(t.options.Tags, t.options.Depth, p.walker, p.passRecord)
	p.objects = calls.NewTracker(p.tags, p.passTrackerRecord)
	if p.fromStart && !t.noted[p.pid].shared {
		p.objects.NoteSeenFromStart()
	}
	payload := wire.AppendProcess(nil, p.target.Command)
	if len(payload) == 0 {
		payload = wire.AppendProcess(nil, []string{p.target.Comm})
	}
	place := p.target.ReadPlace()
	r := wire.ProcessFields{
		Time: time, PID: uint64(p.pid), Parent: uint64(p.target.Parent), RankNumber: wire.RankNumber(place.Rank),
	}.Record(payload)
	p.passRecord(&r)
	r = place.DiagRecord(time)
	p.passRecord(&r)
}

// recordEnd records that a watched process ended or executed another program. Status is that of wait(2), or
// unknownStatus.
func (t *Tracer) recordEnd(p *process, time, status uint64) {
	p.recordLosses()
	p.objects.WriteRestAt(time)
	exit := wire.ExitFields{Time: time, Status: -1}
	switch signal := status & 0x7f; {
	case status == unknownStatus:
	case signal != 0:
		exit.Signal, exit.Status = signal, int16(128+signal)
	default:
		exit.Status = int16(status >> 8 & 0xff)
	}
	p.passRecord(&wire.Record{Event: exit.Event()})
	t.truncated += p.walker.TruncatedCount()
	t.registry.endProcess(p.number)
}

// addForkedChild adds a child of a known process. The kernel watches it already.
func (t *Tracer) addForkedChild(pid, child int) {
	parent := t.table.findProcess(pid)
	if parent == nil || t.table.findProcess(child) != nil {
		return
	}
	var v view
	if t.kernel.ReportsLifecycle() { // else nothing reports when the child executes another program
		v = parent.view
	}
	if t.options.Follow || v.target != nil && t.options.MaySelectLaterProcesses() {
		t.table.addChild(parent, child, t.options.Follow, v)
	}
}

// noteExec ends the program that a process ran: its memory is gone, and all OpenCL objects with it. another: a thread
// other than the first executes, and takes over the number of the process.
func (t *Tracer) noteExec(pid int, another bool, time uint64) {
	p := t.table.findProcess(pid)
	if p == nil {
		return
	}
	if p.state == watched {
		shared := p.hasUnnotedLosses()
		t.recordEnd(p, time, unknownStatus)
		if shared {
			noted := t.noted[pid]
			noted.shared = true
			t.noted[pid] = noted
		}
	}
	if !t.options.Follow && !p.selected {
		t.table.forgetUnselected(pid)
		t.probes.dropProcess(pid)
		return
	}
	t.table.forgetPreviousProgram(pid) // sets the verdict again: with an open selection the kernel dropped it
	if another {
		t.probes.renewProbes(pid)
	} else {
		t.probes.forgetMappedFiles(pid)
	}
	t.remapped[pid] = true // it may have another dynamic linker now
}

// noteExecedName notes the name of a program: it may end before we can read it.
func (t *Tracer) noteExecedName(pid int, name string) {
	if t.options.MaySelectLaterProcesses() {
		t.names[pid] = name
	}
}

// noteExit forgets a process, which need not be known: it may have got a verdict, or probes, when it was already over.
func (t *Tracer) noteExit(pid int, time, status uint64) {
	if p := t.table.findWatched(pid); p != nil {
		t.recordEnd(p, time, status)
	}
	t.table.forgetEndedProcess(pid)
	delete(t.remapped, pid)
	delete(t.names, pid)
	t.probes.dropProcess(pid)
}

// ignoreProcess ignores a process until it executes another program.
func (t *Tracer) ignoreProcess(pid int) {
	t.table.ignoreProcess(pid)
	t.probes.dropProcess(pid)
}

// ignoreInspected ignores a process unless it has executed another program since we inspected it: that one may be
// selected, and nothing would clear a verdict that came after the execve.
func (t *Tracer) ignoreInspected(p *target.Process) {
	t.ignoreProcess(p.PID)
	if p.HasExecutedSince() {
		t.tellKernelVerdict(p.PID, kernel.Forget)
	}
}
