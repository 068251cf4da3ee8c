package tracer

import (
	"errors"
	"fmt"

	"codeberg.org/gpumemtop/gpumemtop/tracer/kernel"
	"codeberg.org/gpumemtop/gpumemtop/tracer/target"
)

// attachLibraries probes the OpenCL libraries that a process has mapped, and returns how many it has. Where all processes are
// watched, those of one that runs under gpumemtop stay as they are: probes would hide the callers of its calls from its own
// session, and show almost nothing.
func (t *Tracer) attachLibraries(p *target.Process) int {
	mappings, err := p.ReadMappings()
	if err != nil {
		return 0
	}
	if linker, ok := t.catalog.LinkerOfProcess(p, mappings); ok {
		t.probeLibrary(&linker, p.PID)
	}
	n, inside := 0, p.RunsUnderGpumemtop(mappings)
	libraries := t.catalog.LibrariesOfProcess(p, mappings)
	for i := range libraries {
		if inside && t.options.All {
			n++
			continue
		}
		if t.probeLibrary(&libraries[i], p.PID) {
			n++
		}
		t.queryDriversOfLibrary(&libraries[i])
	}
	if n > 0 && inside {
		t.warnOnce(fmt.Errorf("%s (pid %d) already runs under gpumemtop: attach sees almost nothing of it, since its calls bypass the ICD loader", displayName(p), p.PID))
	}
	return n
}

// probeLibrary probes a library and reports whether any of its functions has a probe then. It warns of errors once, but not if
// the process has ended: it makes no more calls.
func (t *Tracer) probeLibrary(library *target.Library, pid int) bool {
	err := library.Err
	n := 0
	if err == nil {
		n, err = t.probes.attachToLibrary(library, pid)
	}
	if err != nil && !errors.Is(err, kernel.ErrGone) && (pid == allProcesses || target.ProcessExists(pid)) {
		t.warnOnce(fmt.Errorf("calls into %s are not recorded: %w", library.Path, err))
	}
	return n > 0
}

// warnedMax bounds how many warnings we remember.
const warnedMax = 1024

// warnOnce shows the user a warning, once.
func (t *Tracer) warnOnce(err error) {
	text := err.Error()
	if t.warned[text] || len(t.warned) == warnedMax {
		return
	}
	t.warned[text] = true
	t.options.Warn(text)
}
