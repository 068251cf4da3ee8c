package tracer

import (
	"math"

	"codeberg.org/gpumemtop/gpumemtop/tracer/kernel"
	"codeberg.org/gpumemtop/gpumemtop/tracer/target"
)

// lookAround finds out what the kernel does not tell: on one without BTF nothing says that processes come and go, that
// they execute another program, or map another file. It is found out late then, and what is called meanwhile is not seen.
func (t *Tracer) lookAround() {
	if t.watch != nil {
		t.lookForEnds()
		t.lookForNew()
	}
	if t.kernel.TellsMaps() {
		return
	}
	for _, p := range t.processes {
		t.look(p.target)
	}
	for pid := range t.expected {
		t.mapped(pid)
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
		t.forked(p.Parent, pid)
		if t.expected[pid] {
			_ = t.kernel.Judge(pid, kernel.Watch)
		}
		if t.expected[pid] || t.options.Wants(p) {
			t.look(p)
		}
	}
}
