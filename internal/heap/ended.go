package heap

import (
	"math"
	"slices"
)

// Grace is how long after a process began to exit its memory is taken off when nothing says that it is gone: exit
// handlers may still release buffers. In ns.
const Grace = 1_000_000_000

// never is later than all times.
const never = math.MaxUint64

// exit handles EXIT. A record from the process itself, which has a thread, means that exit handlers run. One from the
// session means that the process is gone.
func (h *Heap) exit(p *Process, gone bool) {
	p.gone = p.gone || gone
	if !p.Ended {
		p.Ended, p.ended = true, h.now
		h.ended++
		h.leaving = append(h.leaving, p)
	}
	h.due = min(h.due, p.leavesAt())
	h.endProcesses()
}

// ProcessEnded says that a process is gone. A number that no record mentioned is ignored.
func (h *Heap) ProcessEnded(number uint32) {
	if p := h.Lookup(number); p != nil {
		h.exit(p, true)
	}
}

// leavesAt returns when the memory of a process that ended may leave.
func (p *Process) leavesAt() uint64 {
	if p.gone {
		return 0
	}
	return p.ended + min(Grace, never-p.ended)
}

// endProcesses lets the processes leave that are due, if another one runs.
func (h *Heap) endProcesses() {
	if h.now >= h.due && h.ended < len(h.processes) {
		h.letLeave()
	}
}

// letLeave lets the processes leave that are due.
func (h *Heap) letLeave() {
	if !h.options.EndProcesses {
		return
	}
	h.due = never
	slices.SortFunc(h.leaving, byNumber)
	h.leaving = slices.DeleteFunc(h.leaving, func(p *Process) bool {
		if h.now >= p.leavesAt() {
			h.leave(p)
			return true
		}
		h.due = min(h.due, p.leavesAt())
		return false
	})
}

// leave takes the memory of a process off.
func (h *Heap) leave(p *Process) {
	for _, x := range h.observers {
		x.Leaving(p)
	}
	gauges, population := p.Gauges, p.Population
	h.End(p, Leaked)
	p.objects.Shrink()
	p.blocks.Shrink()
	p.Gauges, p.Population, p.Left = gauges, population, true
	p.work = work{}
	for _, x := range h.observers {
		x.Left(p)
	}
}

// End ends what a process has: its objects as how says, its blocks in the pool as Open.
func (h *Heap) End(p *Process, how How) { h.EndAt(p, how, h.now) }

// EndAt ends what a process has at a time, which becomes Now even if it is earlier. With it processes end one after the other,
// each at the time of its last record.
func (h *Heap) EndAt(p *Process, how How, time uint64) {
	h.now = time
	for _, o := range p.Objects() {
		h.free(p, o, how)
		h.released(p, o, how)
		h.drop(p, o)
	}
	for _, b := range p.Blocks() {
		h.forget(p, b, Open)
	}
}
