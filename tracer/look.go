package tracer

import (
	"errors"
	"fmt"

	"codeberg.org/gpumemtop/gpumemtop/tracer/kernel"
	"codeberg.org/gpumemtop/gpumemtop/tracer/target"
)

// look probes the libraries that a process has mapped, and returns how many there are.
func (t *Tracer) look(p *target.Process) int {
	mappings, err := p.Maps()
	if err != nil {
		return 0
	}
	if linker, ok := t.catalog.Linker(p, mappings); ok {
		t.probe(&linker, p.PID)
	}
	n := 0
	libraries := t.catalog.Libraries(p, mappings)
	for i := range libraries {
		if t.probe(&libraries[i], p.PID) {
			n++
		}
		t.ask(&libraries[i])
	}
	if n > 0 && target.Preloaded(mappings) {
		t.warn(fmt.Errorf("%s (pid %d) runs under gpumemtop already: next to nothing is seen from here, for its calls go past the ICD loader", nameOf(p), p.PID))
	}
	return n
}

// probe probes a library and says once what stands in the way: the end of the process does not, for it calls nothing more.
func (t *Tracer) probe(library *target.Library, pid int) bool {
	err := library.Err
	n := 0
	if err == nil {
		n, err = t.links.probe(library, pid)
	}
	if err != nil && !errors.Is(err, kernel.ErrGone) && (pid == everybody || target.Exists(pid)) {
		t.warn(fmt.Errorf("calls into %s are not seen: %w", library.Path, err))
	}
	return n > 0
}

// toldMax bounds what is remembered of what the user was told.
const toldMax = 1024

// warn tells the user of something once.
func (t *Tracer) warn(err error) {
	text := err.Error()
	if t.told[text] || len(t.told) == toldMax {
		return
	}
	t.told[text] = true
	t.options.Warn(text)
}
