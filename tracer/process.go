package tracer

import (
	"errors"
	"fmt"
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
	tracer *Tracer
	number uint32
	target *target.Process
	walker *stack.Walker
	tags   *stack.Tags
	book   *calls.Book
	thread uint32 // of the call at hand

	lost, lostUses uint64
}

// write hands a record of the process over. Times do not go back: between two processors they may, by less than a call
// takes.
func (p *process) write(r *wire.Record) {
	t := p.tracer
	r.Process = p.number
	if r.Kind != wire.KindExit && r.Kind != wire.KindLost {
		r.Thread = p.thread
	}
	t.last = max(t.last, r.Time)
	r.Time = t.last
	t.put(r)
}

// begin takes in what is there already.
func (t *Tracer) begin() error {
	if t.links.everywhere {
		t.probeLoaders(0)
	}
	if t.options.Open() {
		if err := t.takeAll(); err != nil {
			return err
		}
	}
	pids, err := t.options.Family()
	if err != nil {
		return err
	}
	for _, pid := range pids {
		p, err := target.Open(pid)
		if err == nil && p.Unsupported != "" {
			err = fmt.Errorf("process %d cannot be watched: %s", pid, p.Unsupported)
		}
		if err != nil {
			return err
		}
		if t.processes[pid] == nil {
			t.admit(t.newProcess(p), t.last)
		}
		if n := t.look(p); n == 0 {
			t.probeLoaders(pid)
			t.options.Warn(fmt.Sprintf("%s (pid %d) has not loaded OpenCL yet: waiting for it", nameOf(p), pid))
		}
	}
	return nil
}

// probeLoaders puts probes into the loaders of this machine before a process maps them: once it has, it may end sooner
// than they are in.
func (t *Tracer) probeLoaders(pid int) {
	for _, path := range target.KnownLoaders() {
		if library, err := t.catalog.File(path); err == nil {
			t.probe(&library, pid)
		}
	}
}

// takeAll puts probes into what the processes that are wanted have mapped. They are watched from their next call on.
func (t *Tracer) takeAll() error {
	pids, err := target.Running()
	if err != nil {
		return err
	}
	for _, pid := range pids {
		if p, err := target.Open(pid); err == nil && t.options.Wants(p) {
			t.look(p)
		}
	}
	return nil
}

// greet looks at a process that is about to use OpenCL. It may live so shortly afterwards that it is gone when its first
// create is dealt with; but then it is known where its code lies, and whether it is one of ours.
func (t *Tracer) greet(pid int) {
	p, err := target.Open(pid)
	switch {
	case errors.Is(err, target.ErrGone):
	case err != nil:
		t.refuse(pid, err)
	case t.expected[pid] || t.options.Wants(p):
		t.greeted[pid] = t.newProcess(p)
		_ = t.kernel.Judge(pid, kernel.Watch) // its first call says so again
		t.look(p)
	default:
		_ = t.kernel.Judge(pid, kernel.Ignore) // else it is asked about again
	}
}

// meet decides about a process that has called something for the first time: nil when it is none of ours.
func (t *Tracer) meet(pid int, time uint64) *process {
	p, err := target.Open(pid)
	if known := t.greeted[pid]; known != nil && (err != nil || p.Started == known.target.Started) {
		t.admit(known, time)
		return known
	}
	switch {
	case errors.Is(err, target.ErrGone):
		nameless := t.newProcess(&target.Process{PID: pid, Command: []string{fmt.Sprintf("[%d]", pid)}})
		t.admit(nameless, time)
		return nameless
	case err != nil:
		t.refuse(pid, err)
		return nil
	case t.expected[pid] || t.options.Wants(p):
		admitted := t.newProcess(p) // first, for it may end at any time
		t.admit(admitted, time)
		t.look(p)
		return admitted
	}
	_ = t.kernel.Judge(pid, kernel.Ignore) // else it is asked about again
	return nil
}

// refuse leaves a process alone that we may not look into.
func (t *Tracer) refuse(pid int, err error) {
	_ = t.kernel.Judge(pid, kernel.Ignore)
	if !t.refused[pid] && !errors.Is(err, target.ErrRefused) {
		t.options.Warn(err.Error())
	}
	t.refused[pid] = true
}

// newProcess looks at the code that a process has.
func (t *Tracer) newProcess(found *target.Process) *process {
	p := &process{tracer: t, target: found, thread: uint32(found.PID), walker: stack.New(found, t.files)}
	p.walker.Renew()
	return p
}

// admit begins to watch a process.
func (t *Tracer) admit(p *process, time uint64) {
	found := p.target
	t.mu.Lock()
	t.numbered = append(t.numbered, found)
	t.watched++
	p.number = uint32(len(t.numbered))
	t.mu.Unlock()
	delete(t.expected, found.PID)
	delete(t.greeted, found.PID)
	t.processes[found.PID] = p
	if err := t.kernel.Judge(found.PID, kernel.Watch); err != nil {
		t.options.Warn(err.Error())
	}
	if t.watch != nil {
		_ = t.watch.Add(found) // gone already: the next look says so
	}
	p.lost, p.lostUses = t.kernel.Lost(found.PID)
	p.tags = stack.NewTags(t.options.Tags, t.options.Depth, p.walker, p.write)
	p.book = calls.NewBook(p.tags, p.write)
	text := strings.Join(found.Command, "\x00")
	text = text[:min(len(text), wire.PayloadMax)]
	p.write(&wire.Record{
		Payload: []byte(text),
		Event: wire.Event{
			Time: time, Kind: wire.KindProcess,
			Object: uint64(found.PID), Link: uint64(found.Parent), Size: uint64(len(text)),
		},
	})
}

// end says that a process is gone, or that the program is that it was. Status is that of wait(2), all ones when unknown.
func (t *Tracer) end(p *process, time, status uint64) {
	t.losses(p)
	exit := wire.Event{Time: time, Kind: wire.KindExit, Status: -1}
	switch signal := status & 0x7f; {
	case status == ^uint64(0):
	case signal != 0:
		exit.Object, exit.Status = signal, int16(128+signal)
	default:
		exit.Status = int16(status >> 8 & 0xff)
	}
	p.write(&wire.Record{Event: exit})
	delete(t.processes, p.target.PID)
	t.mu.Lock()
	t.watched--
	t.mu.Unlock()
}

// forked notes a child, which is watched as soon as it calls something: the kernel knows of it already.
func (t *Tracer) forked(pid, child int) {
	if t.options.Follow && (t.processes[pid] != nil || t.greeted[pid] != nil || t.expected[pid]) {
		t.expected[child] = true
	}
}

// execed ends what was known of a process: its memory is gone, and with it all that OpenCL had there.
func (t *Tracer) execed(pid int, time uint64) {
	p := t.processes[pid]
	delete(t.greeted, pid)
	if p == nil && !t.expected[pid] {
		return
	}
	if p != nil {
		t.end(p, time, ^uint64(0))
	}
	if t.options.Follow || slices.Contains(t.options.PIDs, pid) {
		t.expected[pid] = true
		t.links.renew(pid)
	}
}

func (t *Tracer) exited(pid int, time, status uint64) {
	if p := t.processes[pid]; p != nil {
		t.end(p, time, status)
	}
	delete(t.expected, pid)
	delete(t.greeted, pid)
	delete(t.refused, pid)
	t.links.drop(pid)
}

// mapped looks at a process that has mapped code of a file.
func (t *Tracer) mapped(pid int) {
	p := t.processes[pid]
	if p == nil {
		p = t.greeted[pid]
	}
	if p != nil {
		p.walker.Renew()
		t.look(p.target)
		return
	}
	if p, err := target.Open(pid); err == nil && (t.expected[pid] || t.options.Wants(p)) {
		t.look(p)
	}
}

func nameOf(p *target.Process) string {
	if p.Comm != "" {
		return p.Comm
	}
	return "a process"
}
