package tracer

import (
	"codeberg.org/gpumemtop/gpumemtop/tracer/kernel"
	"codeberg.org/gpumemtop/gpumemtop/tracer/target"
)

// doubtful is how many times it is looked who has gone after something could not be told: it may have been an end, and the
// process may have been on its way for some time.
const doubtful = 8

// lookAround finds out what no probe tells. New processes are looked at for a dynamic linker that is not known yet, as in
// a container that has just started; all others of theirs are probed before they begin. On a kernel without BTF nothing
// says that processes come and go, or execute another program: it is found out late then, and what is called meanwhile is
// not seen.
func (t *Tracer) lookAround() {
	blind := !t.kernel.Lifecycle()
	if blind {
		t.lookForExecs()
	}
	if t.options.Open() || t.options.Follow && blind {
		t.lookForOthers()
	}
	if lost, _ := t.kernel.LostAll(); lost > t.lost {
		t.lost, t.doubts = lost, doubtful
	}
	if blind || t.doubts > 0 {
		t.doubts = max(t.doubts-1, 0)
		t.lookForEnds()
	}
	t.drained = false
}

func (t *Tracer) lookForExecs() {
	for pid, p := range t.processes {
		if p.target.Replaced() {
			t.execed(pid, pid, t.swept) // by which thread, nobody says
		}
	}
}

// lookForEnds ends what is gone without a word. What it has told before may still wait to be read: so it must be gone at
// two looks, and everything have been read in between.
func (t *Tracer) lookForEnds() {
	for pid, p := range t.processes {
		gone := !p.target.Same()
		if gone && p.gone && t.drained {
			t.exited(pid, t.swept, unknownStatus)
		}
		p.gone = gone
	}
	for pid, h := range t.hopes {
		gone := !target.Exists(pid)
		if gone && h.gone && t.drained {
			t.exited(pid, t.swept, unknownStatus)
		}
		h.gone = gone
	}
}

// lookForOthers looks for processes that may belong to us, and forgets about others that are gone. Without BTF, children
// whose parent ended before the look are missed.
func (t *Tracer) lookForOthers() {
	came, went, err := t.watch.Look()
	if err != nil {
		t.warn(err)
	}
	for _, pid := range went {
		if !t.known(pid) {
			t.judge(pid, kernel.Forget)
			t.links.drop(pid)
		}
	}
	for _, pid := range came {
		if p, err := target.Open(pid); err == nil && !t.kernel.Lifecycle() {
			t.forked(p.Parent, pid)
		}
		_ = t.glimpse(pid) // it is said once it calls something
	}
}
