package tracer

import (
	"math"

	"codeberg.org/gpumemtop/gpumemtop/tracer/target"
)

// lookAround finds out what no probe tells. New processes are looked at for a dynamic linker that is not known yet, as in
// a container that has just started; all others of theirs are probed before they begin. On a kernel without BTF nothing
// says that processes come and go, or execute another program: it is found out late then, and what is called meanwhile is
// not seen.
func (t *Tracer) lookAround() {
	if !t.kernel.Lifecycle() {
		t.lookForEnds()
	}
	if t.options.Open() || t.options.Follow && !t.kernel.Lifecycle() {
		t.lookForNew()
	}
}

func (t *Tracer) lookForEnds() {
	ended, err := t.watch.Ended()
	if err != nil {
		t.options.Warn(err.Error())
	}
	for _, pid := range ended {
		t.exited(pid, t.swept, math.MaxUint64)
	}
	for pid, p := range t.processes {
		if p.target.Replaced() {
			t.execed(pid, t.swept)
		}
	}
}

// lookForNew looks for processes that may belong to us. Children whose parent ended before the look are missed.
func (t *Tracer) lookForNew() {
	came, err := t.watch.Came()
	if err != nil {
		t.options.Warn(err.Error())
	}
	for _, pid := range came {
		p, err := target.Open(pid)
		if err != nil {
			continue
		}
		if !t.kernel.Lifecycle() {
			t.forked(p.Parent, pid)
		}
		t.consider(p)
	}
}
