package tracer

import (
	"math"
	"slices"
	"strings"

	"codeberg.org/gpumemtop/gpumemtop/internal/wire"
	"codeberg.org/gpumemtop/gpumemtop/tracer/calls"
	"codeberg.org/gpumemtop/gpumemtop/tracer/kernel"
	"codeberg.org/gpumemtop/gpumemtop/tracer/stack"
	"codeberg.org/gpumemtop/gpumemtop/tracer/target"
)

// process is one that is watched, from its first call, or from the start, to its end or its next execve.
type process struct {
	view

	tracer *Tracer
	number uint32
	ours   bool // whatever it is called: see hope
	whole  bool // it was seen before its first call
	tags   *stack.Tags
	book   *calls.Book
	thread uint32 // of the call at hand

	asked map[uint64]bool    // addresses of extension functions that it was given
	given []target.Extension // of these, those that are to be probed
	gone  bool               // it was not there any more when it was looked for

	lost, lostUses uint64
}

// unknownStatus is what the kernel's eBPF program says of how a process ended when nobody knows.
const unknownStatus = math.MaxUint64

// view is what is known of a process from outside.
type view struct {
	target *target.Process
	walker *stack.Walker
}

// newProcess looks at the code that a process has.
func (t *Tracer) newProcess(found *target.Process) *process {
	v := view{found, stack.New(found, t.files)}
	v.walker.Renew()
	return t.processOf(v)
}

func (t *Tracer) processOf(v view) *process {
	return &process{view: v, tracer: t, thread: uint32(v.target.PID)}
}

// write hands a record of the process over. Times do not go back: between two processors they may, by less than a call
// takes.
func (p *process) write(r *wire.Record) {
	t := p.tracer
	if r.Kind == wire.KindDiag && p.hasLost() { // what was lost may be what is missed here
		t.swept = 0
		return
	}
	r.Process = p.number
	if r.Kind != wire.KindExit && r.Kind != wire.KindLost {
		r.Thread = p.thread
	}
	t.last = max(t.last, r.Time)
	r.Time = t.last
	t.put(r)
}

// hasLost reports whether calls were lost that the book does not know of yet.
func (p *process) hasLost() bool {
	calls, _ := p.tracer.kernel.Lost(p.target.PID)
	return calls > p.lost
}

// forwarded reports whether a loader passes on what it was asked for to another one, which is probed as well: a call that
// is told when it begins was told then. Of one that is told when it returns, the probes tell the inner one alone.
func (p *process) forwarded(s *wire.Sample) bool {
	loaders := p.tracer.links.loaders[p.target.PID]
	if len(loaders) < 2 || calls.Functions[s.Function].Shape.Flags&wire.ShapeReturn != 0 {
		return false
	}
	path, _, known := p.walker.Locate(s.Ip)
	return known && slices.Contains(loaders, path)
}

// admit begins to watch a process.
func (t *Tracer) admit(p *process, time uint64) {
	found := p.target
	p.number = t.roll.add(found)
	if h := t.hopes[found.PID]; h != nil {
		p.ours = h.ours
	}
	delete(t.hopes, found.PID)
	t.processes[found.PID] = p
	t.judge(found.PID, kernel.Watch)
	p.lost, p.lostUses = t.kernel.Lost(found.PID)
	p.tags = stack.NewTags(t.options.Tags, t.options.Depth, p.walker, p.write)
	p.book = calls.NewBook(p.tags, p.write)
	if p.whole {
		p.book.Whole()
	}
	text := strings.Join(found.Command, "\x00")
	if text == "" {
		text = found.Comm
	}
	text = text[:min(len(text), wire.PayloadMax)]
	p.write(&wire.Record{
		Payload: []byte(text),
		Event: wire.Event{
			Time: time, Kind: wire.KindProcess,
			Object: uint64(found.PID), Link: uint64(found.Parent), Size: uint64(len(text)),
		},
	})
}

// end says that a process is gone, or that the program is that it was. Status is that of wait(2), or unknownStatus.
func (t *Tracer) end(p *process, time, status uint64) {
	t.losses(p)
	exit := wire.Event{Time: time, Kind: wire.KindExit, Status: -1}
	switch signal := status & 0x7f; {
	case status == unknownStatus:
	case signal != 0:
		exit.Object, exit.Status = signal, int16(128+signal)
	default:
		exit.Status = int16(status >> 8 & 0xff)
	}
	p.write(&wire.Record{Event: exit})
	t.truncated += p.walker.Truncated()
	delete(t.processes, p.target.PID)
	t.roll.end(p.number)
}

// forked notes a child, which is watched as soon as it calls something: the kernel knows of it already.
func (t *Tracer) forked(pid, child int) {
	if !t.known(pid) || t.known(child) {
		return
	}
	h := &hope{ours: t.options.Follow, parent: pid}
	if t.kernel.Lifecycle() { // else nobody says when it executes another program
		h.inherited = t.viewOf(pid)
	}
	if h.ours || h.inherited.target != nil && t.options.Open() {
		t.hopes[child] = h
	}
}

// viewOf returns what is known of a process that its children have in common with it, if anything is.
func (t *Tracer) viewOf(pid int) view {
	if p := t.processes[pid]; p != nil {
		return p.view
	}
	switch h := t.hopes[pid]; {
	case h == nil:
		return view{}
	case h.seen != nil:
		return h.seen.view
	default:
		return h.inherited
	}
}

// known reports whether a process is watched, or will be.
func (t *Tracer) known(pid int) bool { return t.processes[pid] != nil || t.hopes[pid] != nil }

// execed ends what was known of a process: its memory is gone, and with it all that OpenCL had there. thread is the one
// that executes: it takes the number of the process over.
func (t *Tracer) execed(pid, thread int, time uint64) {
	p, h := t.processes[pid], t.hopes[pid]
	if p == nil && h == nil {
		return
	}
	ours := t.options.Follow || p != nil && p.ours || h != nil && h.ours
	if p != nil {
		t.end(p, time, unknownStatus)
	}
	delete(t.hopes, pid)
	if !ours {
		t.links.drop(pid)
		return
	}
	t.hopes[pid] = &hope{ours: true}
	t.judge(pid, kernel.Watch) // where everybody is of interest, the kernel has forgotten it
	if thread == pid {
		t.links.executed(pid)
	} else {
		t.links.renew(pid)
	}
	t.changed[pid] = true // it may have another dynamic linker now
}

// exited forgets a process. It may be one that has never done anything: then it may have been judged, or looked at, when it
// was over.
func (t *Tracer) exited(pid int, time, status uint64) {
	if p := t.processes[pid]; p != nil {
		t.end(p, time, status)
	}
	delete(t.hopes, pid)
	delete(t.changed, pid)
	t.judge(pid, kernel.Forget)
	t.links.drop(pid)
}

// judge has the kernel watch a process, leave it alone, or forget it.
func (t *Tracer) judge(pid int, verdict kernel.Verdict) {
	if err := t.kernel.Judge(pid, verdict); err != nil {
		t.warn(err)
	}
}

// passOver has the kernel leave a process alone that was looked at, unless it executes another program by now: that may be
// one of ours, and nobody forgets a verdict that comes after the execve.
func (t *Tracer) passOver(p *target.Process) {
	t.ignore(p.PID)
	if p.Replaced() {
		t.judge(p.PID, kernel.Forget)
	}
}

// ignore has the kernel leave a process alone, for good: until it executes another program.
func (t *Tracer) ignore(pid int) {
	delete(t.hopes, pid)
	t.links.drop(pid)
	t.judge(pid, kernel.Ignore)
	if !target.Exists(pid) {
		t.judge(pid, kernel.Forget) // its id may come again
	}
}
