package tracer

import (
	"errors"
	"fmt"
	"slices"

	"codeberg.org/gpumemtop/gpumemtop/tracer/target"
)

// attachToRunning probes the loaders of this machine and the selected processes that run already.
func (t *Tracer) attachToRunning() error {
	if t.probes.everywhere {
		t.probeLoaders(allProcesses)
	}
	if t.options.MaySelectLaterProcesses() {
		// Dynamic linkers come first: they report what later processes map.
		for _, linker := range t.catalog.KnownLinkers() {
			t.probeLibrary(&linker, allProcesses)
		}
		if err := t.attachToSelected(); err != nil {
			return err
		}
	}
	return t.attachToNamed()
}

// probeLoaders probes the ICD loaders of this machine before a process maps them: a short program may end before we
// could probe what it has mapped.
func (t *Tracer) probeLoaders(pid int) {
	for _, path := range target.KnownLoaders() {
		if library, err := t.catalog.LibraryAt(path); err == nil {
			t.probeLibrary(&library, pid)
		}
	}
}

// attachToSelected probes the libraries of all processes that belong to the selection. They are watched from their next
// call on.
func (t *Tracer) attachToSelected() error {
	pids, err := target.RunningPIDs()
	if err != nil {
		return err
	}
	var attached target.Selection
	for _, pid := range pids {
		if p, err := target.OpenProcess(pid); err == nil && t.matchesSelection(p) {
			t.addAndProbeCandidate(p, false)
			attached.PIDs = append(attached.PIDs, pid)
		}
	}
	if !t.options.Follow {
		return nil
	}
	attached.Follow = true
	family, err := attached.ProcessesByPID()
	for _, pid := range family {
		if p, err := target.OpenProcess(pid); err == nil && t.table.findProcess(pid) == nil {
			t.addAndProbeCandidate(p, true)
		}
	}
	return err
}

// matchesSelection reports whether a process belongs to the selection by its name or control group. Pids do not count here, since
// the kernel reuses them; nor do the processes in which we query drivers.
func (t *Tracer) matchesSelection(p *target.Process) bool {
	selection := t.options.Selection
	selection.PIDs = nil
	return selection.SelectsProcess(p) && !p.QueriesDrivers()
}

// attachToNamed begins to watch the processes that are named by pid, and their children.
func (t *Tracer) attachToNamed() error {
	tried := map[int]bool{}
	for more := true; more; { // until no child is new: forks are reported only once the parent is watched
		more = false
		pids, err := t.options.ProcessesByPID()
		if err != nil {
			return err
		}
		for _, pid := range pids {
			if tried[pid] {
				continue
			}
			tried[pid], more = true, true
			switch err := t.watchProcessAndChildren(pid); {
			case err == nil:
			case slices.Contains(t.options.PIDs, pid):
				return err
			case !errors.Is(err, target.ErrGone):
				t.warnOnce(err)
			}
		}
	}
	return nil
}

func (t *Tracer) watchProcessAndChildren(pid int) error {
	found, err := target.OpenProcess(pid)
	if err == nil && found.Unsupported != "" {
		err = fmt.Errorf("cannot watch process %d: %s", pid, found.Unsupported)
	}
	if err == nil && t.killsFiltered != "" && found.HasSeccompFilter() {
		err = fmt.Errorf("cannot watch process %d: %w", pid, seccompFilterError(t.killsFiltered))
	}
	if err != nil {
		return err
	}
	if t.attachLibraries(found) == 0 {
		t.probeLoaders(pid)
		t.options.Warn(fmt.Sprintf("%s (pid %d) has not loaded OpenCL yet: waiting for it", displayName(found), pid))
	}
	p := t.table.forgetPreviousProgram(pid)
	p.view = t.inspectCode(found)
	t.beginWatching(p, t.lastTime)
	t.remapped[pid] = true    // what it mapped while we attached was not reported
	if !found.StillExists() { // its end would never be reported
		t.noteExit(pid, t.lastTime, unknownStatus)
		return fmt.Errorf("process %d: %w", pid, target.ErrGone)
	}
	return nil
}

// seccompFilterError says why we leave processes with a seccomp filter alone.
func seccompFilterError(release string) error {
	return fmt.Errorf("this kernel (Linux %s) kills probed programs that have a seccomp filter, as in containers: use Linux 6.12.14, 6.13.3 or later", release)
}

// inspectProcess probes the libraries of a process that has mapped something or is about to use OpenCL. Doing so now tells us
// where its code lies, and whether it is selected, even if it has ended when we read its first call.
func (t *Tracer) inspectProcess(pid int) error {
	p := t.table.findProcess(pid)
	if p != nil && p.state == watched {
		p.walker.RenewMappings()
		t.attachLibraries(p.target)
		t.probeReceivedExtensions(p)
		return nil
	}
	found, err := target.OpenProcess(pid)
	if err != nil {
		return err
	}
	switch {
	case p != nil && p.selected:
		t.addAndProbeCandidate(found, true)
	case t.matchesSelection(found):
		t.addAndProbeCandidate(found, false)
	case t.options.MaySelectLaterProcesses() && (p != nil || !t.kernel.IsWatched(pid)): // else its fork is still to be read
		t.ignoreInspected(found)
	}
	return nil
}

// addAndProbeCandidate probes the libraries of a process. It becomes a candidate if it has OpenCL or its children may matter;
// the kernel then reports its forks and its end.
func (t *Tracer) addAndProbeCandidate(found *target.Process, selected bool) {
	libraries := t.attachLibraries(found)
	p := t.table.findOrAddProcess(found.PID)
	p.selected = selected || t.options.Follow
	switch {
	case libraries > 0:
		t.table.setCodeView(p, t.inspectCode(found))
	case p.target != nil, p.selected: // without libraries it may be just ending
		t.table.reportCallsOf(p)
	default:
		t.table.forgetUnselected(p.pid)
	}
}

// inspectPlatformQuerier inspects a process that makes the first OpenCL call of all.
func (t *Tracer) inspectPlatformQuerier(pid int) {
	if p := t.table.findWatched(pid); p != nil {
		p.objects.NoteSeenFromStart()
		return
	}
	if err := t.inspectProcess(pid); err != nil && !errors.Is(err, target.ErrGone) {
		t.ignoreUninspectable(pid, err)
	}
	if p := t.table.findProcess(pid); p != nil && p.state == inspected {
		p.fromStart = true
	}
}

// selectAtFirstCall decides about a process that makes its first reported call. It returns nil if the process is not selected.
func (t *Tracer) selectAtFirstCall(pid int, time uint64) *process {
	p := t.table.findOrAddProcess(pid)
	if p.state == inspected {
		t.beginWatching(p, time)
		return p
	}
	v, err := t.inspectCaller(p)
	switch {
	case errors.Is(err, target.ErrGone):
		ended := t.describeEnded(p)
		if ended == nil {
			return nil
		}
		v = t.inspectCode(ended)
	case err != nil:
		t.ignoreUninspectable(pid, err)
		return nil
	case !p.selected && !t.matchesSelection(v.target):
		t.ignoreInspected(v.target)
		return nil
	}
	p.view = v
	t.beginWatching(p, time)
	t.attachLibraries(v.target)
	return p
}

// inspectCaller inspects a process that has made a call. If it is a child that has ended or executed another program
// since, it still ran its parent's code then: its exec or exit would have been read before the call.
func (t *Tracer) inspectCaller(p *process) (view, error) {
	found, err := target.OpenProcess(p.pid)
	var v view
	if err == nil {
		v = t.inspectCode(found) // at once: it may end at any time
	}
	parent := p.target
	if parent == nil || err != nil && !errors.Is(err, target.ErrGone) || err == nil && found.RunsSameProgram(parent) && found.StillExists() {
		return v, err
	}
	child := parent.DescribeChild(p.pid, p.parent)
	return view{child, p.walker.Clone(child)}, nil
}

// describeEnded describes a selected process that has ended, by the name under which it was executed. It returns nil for others.
func (t *Tracer) describeEnded(p *process) *target.Process {
	name, known := t.names[p.pid]
	found := &target.Process{PID: p.pid, Parent: p.parent, Comm: name, Command: []string{name}}
	if !known {
		found.Command[0] = fmt.Sprintf("[%d]", p.pid)
	}
	if p.selected || t.matchesSelection(found) {
		return found
	}
	if !known || len(t.options.Cgroups) > 0 {
		t.warnOnce(errUnnamed)
	}
	return nil
}

var errUnnamed = errors.New("a process ended before its name or control group could be read, so whether it is selected is unknown: its calls are not shown")

// ignoreUninspectable ignores a process that we may not inspect.
func (t *Tracer) ignoreUninspectable(pid int, err error) {
	t.ignoreProcess(pid)
	if !errors.Is(err, target.ErrRefused) {
		t.warnOnce(err)
	}
}

func displayName(p *target.Process) string {
	if p.Comm != "" {
		return p.Comm
	}
	return "a process"
}
