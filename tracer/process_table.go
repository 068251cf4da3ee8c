package tracer

import (
	"iter"

	"codeberg.org/gpumemtop/gpumemtop/tracer/calls"
	"codeberg.org/gpumemtop/gpumemtop/tracer/kernel"
	"codeberg.org/gpumemtop/gpumemtop/tracer/stack"
	"codeberg.org/gpumemtop/gpumemtop/tracer/target"
)

// state is how far a process has come on its way to being watched. All but watched are candidates: we watch them from
// their first OpenCL call on.
//
//	absent ──fork of a known one──▶ inherited ──OpenCL library probed──▶ inspected
//	absent ──OpenCL library probed────────────────────────────────────▶ inspected
//	absent ──fork with Follow, but parent not inspected──▶ expected ───▶ inspected
//	absent, expected, inherited, inspected ──first call, or named by pid──▶ watched
//	any ──exec──▶ expected if selected, else absent
//	any ──exit, not selected, or not accessible──▶ absent
//
// The kernel has a verdict for each process, which the transitions set: watch for all that are in the table, ignore for
// processes that we inspected and that are not selected. Ignored ones are therefore absent here.
type state uint8

const (
	absent    state = iota // not in the table
	expected               // selected; we know nothing of its code yet
	inherited              // forked, and runs the code of its parent until it executes a program
	inspected              // we have seen its own code
	watched                // it has a number and its calls are recorded
)

// process is an entry of the table.
type process struct {
	view

	pid, parent int // parent: the process that forked it, 0: unknown
	state       state
	selected    bool // watched whatever its name: named by pid, or a descendant that we follow
	fromStart   bool // inspected before its first OpenCL call, so that we miss none
	missing     bool // gone at the latest scan

	// Of a watched process:

	tracer  *Tracer
	number  uint32 // in records
	tags    *stack.Tags
	objects *calls.Tracker
	thread  uint32 // of the current call

	extensions        map[uint64]bool    // addresses of extension functions that it received
	pendingExtensions []target.Extension // those still to be probed
}

// view is what we know of a process's code. That of an inherited one is its parent's.
type view struct {
	target *target.Process // nil: nothing
	walker *stack.Walker
}

// processTable holds all processes that are candidates or watched, by pid. All changes of state are made here.
type processTable struct {
	byPID      map[int]*process
	setVerdict func(pid int, verdict kernel.Verdict)
}

func newProcessTable(setVerdict func(int, kernel.Verdict)) processTable {
	return processTable{byPID: map[int]*process{}, setVerdict: setVerdict}
}

// findProcess returns the entry of a process, nil if it is absent.
func (t *processTable) findProcess(pid int) *process { return t.byPID[pid] }

// findOrAddProcess returns the entry of a process. A new one is not in the table until a transition puts it there.
func (t *processTable) findOrAddProcess(pid int) *process {
	if p := t.byPID[pid]; p != nil {
		return p
	}
	return &process{pid: pid}
}

// findWatched returns the entry of a process, nil if it is not watched.
func (t *processTable) findWatched(pid int) *process {
	if p := t.byPID[pid]; p != nil && p.state == watched {
		return p
	}
	return nil
}

// eachInStateOrLater iterates over the processes that have come at least so far.
func (t *processTable) eachInStateOrLater(least state) iter.Seq[*process] {
	return func(yield func(*process) bool) {
		for _, p := range t.byPID {
			if p.state >= least && !yield(p) {
				return
			}
		}
	}
}

// addChild adds a process that a known one forked. The kernel has set its verdict already.
func (t *processTable) addChild(parent *process, pid int, selected bool, v view) {
	child := &process{view: v, pid: pid, parent: parent.pid, state: expected, selected: selected}
	if v.target != nil {
		child.state = inherited
	}
	t.byPID[pid] = child
}

// forgetPreviousProgram forgets what is known of a selected process: it runs, or will run, another program.
func (t *processTable) forgetPreviousProgram(pid int) *process {
	p := &process{pid: pid, selected: true}
	t.setState(p, expected)
	return p
}

// reportCallsOf keeps a candidate as it is, and has the kernel report its calls.
func (t *processTable) reportCallsOf(p *process) { t.setState(p, max(p.state, expected)) }

// setCodeView notes the code of a candidate.
func (t *processTable) setCodeView(p *process, v view) {
	p.view = v
	t.setState(p, inspected)
}

// beginWatching begins to watch a process whose view is known.
func (t *processTable) beginWatching(p *process) {
	p.missing = false
	t.setState(p, watched)
}

func (t *processTable) setState(p *process, s state) {
	p.state = s
	t.byPID[p.pid] = p
	t.setVerdict(p.pid, kernel.Watch)
}

// forgetUnselected forgets a process that executed a program which is not selected. The kernel has dropped its verdict already.
func (t *processTable) forgetUnselected(pid int) { delete(t.byPID, pid) }

// forgetEndedProcess forgets a process that has ended.
func (t *processTable) forgetEndedProcess(pid int) {
	delete(t.byPID, pid)
	t.setVerdict(pid, kernel.Forget)
}

// ignoreProcess has the kernel report nothing of a process until it executes another program.
func (t *processTable) ignoreProcess(pid int) {
	delete(t.byPID, pid)
	t.setVerdict(pid, kernel.Ignore)
	if !target.ProcessExists(pid) {
		t.setVerdict(pid, kernel.Forget) // a later process may get its pid
	}
}
