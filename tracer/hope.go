package tracer

import (
	"errors"
	"fmt"
	"slices"

	"codeberg.org/gpumemtop/gpumemtop/tracer/kernel"
	"codeberg.org/gpumemtop/gpumemtop/tracer/target"
)

// hope is a process that is watched as soon as it calls something.
type hope struct {
	ours bool     // whatever it is called: it was named by its id, or is a child of one of ours
	seen *process // what was seen of it when it was looked at last, nil: nothing yet
	gone bool     // as in process

	parent    int  // who has forked it, 0: nobody knows
	inherited view // what was known of that one then: until it executes another program, it has that from it
}

// begin takes in what is there already.
func (t *Tracer) begin() error {
	if t.links.everywhere {
		t.probeLoaders(everybody)
	}
	if t.options.Open() {
		// What is mapped by those that start later is learned from their dynamic linker, so that must be known first.
		for _, linker := range t.catalog.KnownLinkers() {
			t.probe(&linker, everybody)
		}
		if err := t.takeAll(); err != nil {
			return err
		}
	}
	return t.takeNamed()
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
	var taken target.Selection
	for _, pid := range pids {
		if p, err := target.Open(pid); err == nil && t.wants(p) {
			t.take(p, false)
			taken.PIDs = append(taken.PIDs, pid)
		}
	}
	if !t.options.Follow {
		return nil
	}
	taken.Follow = true
	family, err := taken.Family()
	for _, pid := range family {
		if p, err := target.Open(pid); err == nil && !t.known(pid) {
			t.take(p, true)
		}
	}
	return err
}

// wants reports whether a process belongs to the selection by what it is. Ids do not count: they are given to others, too.
// Nor do processes in which we ask drivers.
func (t *Tracer) wants(p *target.Process) bool {
	selection := t.options.Selection
	selection.PIDs = nil
	return selection.Wants(p) && !p.Asks()
}

// takeNamed begins to watch the processes that are named by their ids, and their children.
func (t *Tracer) takeNamed() error {
	tried := map[int]bool{}
	for more := true; more; { // children that come meanwhile are nobody's until their parent is watched
		more = false
		pids, err := t.options.Family()
		if err != nil {
			return err
		}
		for _, pid := range pids {
			if tried[pid] {
				continue
			}
			tried[pid], more = true, true
			switch err := t.takeOne(pid); {
			case err == nil:
			case slices.Contains(t.options.PIDs, pid):
				return err
			case !errors.Is(err, target.ErrGone):
				t.warn(err)
			}
		}
	}
	return nil
}

func (t *Tracer) takeOne(pid int) error {
	p, err := target.Open(pid)
	if err == nil && p.Unsupported != "" {
		err = fmt.Errorf("process %d cannot be watched: %s", pid, p.Unsupported)
	}
	if err == nil && t.dangerous != "" && p.Filtered() {
		err = fmt.Errorf("process %d cannot be watched: %w", pid, endsFiltered(t.dangerous))
	}
	if err != nil {
		return err
	}
	if t.look(p) == 0 {
		t.probeLoaders(pid)
		t.options.Warn(fmt.Sprintf("%s (pid %d) has not loaded OpenCL yet: waiting for it", nameOf(p), pid))
	}
	t.hopes[pid] = &hope{ours: true}
	t.admit(t.newProcess(p), t.last)
	t.changed[pid] = true // what it maps while probes are put in is not told
	if !p.Same() {        // it would be waited for in vain
		t.exited(pid, t.last, unknownStatus)
		return fmt.Errorf("process %d: %w", pid, target.ErrGone)
	}
	return nil
}

// endsFiltered is why a process with a seccomp filter is left alone.
func endsFiltered(release string) error {
	return fmt.Errorf("this kernel (Linux %s) ends programs behind a seccomp filter, such as those in containers, when they are probed: use Linux 6.12.14, 6.13.3 or later", release)
}

// glimpse looks at a process that has mapped something, or is about to use OpenCL. It may live so shortly afterwards that
// it is gone when its first create is dealt with; but then it is known where its code lies, and whether it is one of ours.
func (t *Tracer) glimpse(pid int) error {
	if p := t.processes[pid]; p != nil {
		p.walker.Renew()
		t.look(p.target)
		t.give(p)
		return nil
	}
	p, err := target.Open(pid)
	if err != nil {
		return err
	}
	h := t.hopes[pid]
	switch {
	case h != nil && h.ours:
		t.take(p, true)
	case t.wants(p):
		t.take(p, false)
	case t.options.Open() && (h != nil || !t.kernel.Watches(pid)): // else its fork has yet to be told, and it is hoped for
		t.passOver(p)
	}
	return nil
}

// take probes what a process has mapped, and remembers it if it can use OpenCL, or if its children will be of interest.
// From then on the kernel tells of these, and of its end.
func (t *Tracer) take(p *target.Process, ours bool) {
	n := t.look(p)
	h := t.hopes[p.PID]
	if h == nil {
		h = &hope{}
	}
	h.ours = ours || t.options.Follow
	switch {
	case n > 0:
		// It loads its drivers after its first call of all: it was greeted before it is looked at because of those.
		former := h.seen
		h.seen = t.newProcess(p)
		h.seen.whole = former != nil && former.whole
	case h.seen != nil, h.inherited.target != nil: // it may be ending just now
	case !h.ours:
		delete(t.hopes, p.PID)
		return
	}
	t.hopes[p.PID] = h
	t.judge(p.PID, kernel.Watch)
}

// meet decides about a process that has called something for the first time: nil when it is none of ours.
func (t *Tracer) meet(pid int, time uint64) *process {
	h := t.hopes[pid]
	if h == nil {
		h = &hope{}
	}
	if h.seen != nil {
		t.admit(h.seen, time)
		return h.seen
	}
	met, err := t.find(pid, h)
	switch {
	case errors.Is(err, target.ErrGone) && (h.ours || t.options.All):
		met = t.newProcess(&target.Process{PID: pid, Parent: h.parent, Command: []string{fmt.Sprintf("[%d]", pid)}})
	case errors.Is(err, target.ErrGone):
		t.warn(errNameless)
		return nil
	case err != nil:
		t.refuse(pid, err)
		return nil
	case !h.ours && !t.wants(met.target):
		t.passOver(met.target) // else it is asked about again
		return nil
	}
	t.admit(met, time)
	t.look(met.target)
	return met
}

// find looks at a process that has called something. A child that has ended since, or executes another program by now,
// was what its parent is: nobody had told yet that it is no more.
func (t *Tracer) find(pid int, h *hope) (*process, error) {
	p, err := target.Open(pid)
	var met *process
	if err == nil {
		met = t.newProcess(p) // at once, for it may end at any time
	}
	parent := h.inherited
	if parent.target == nil || err != nil && !errors.Is(err, target.ErrGone) || err == nil && p.Runs(parent.target) && p.Same() {
		return met, err
	}
	child := parent.target.Child(pid, h.parent)
	return t.processOf(view{child, parent.walker.Clone(child)}), nil
}

var errNameless = errors.New("a process ended before it could be found out whether it is one to be watched: what it did is not shown")

// refuse leaves a process alone that we may not look into.
func (t *Tracer) refuse(pid int, err error) {
	t.ignore(pid)
	if !errors.Is(err, target.ErrRefused) {
		t.warn(err)
	}
}

func nameOf(p *target.Process) string {
	if p.Comm != "" {
		return p.Comm
	}
	return "a process"
}
