package heap

import (
	"math"
	"slices"
)

// Grace is the time in ns from the begin of a process's exit to the removal of its memory, if no record says that the process is
// gone: exit handlers may still release buffers.
const Grace = 1_000_000_000

// never is later than all times.
const never = math.MaxUint64

// applyExit handles EXIT. A record from the process itself, which has a thread, means that exit handlers run. One from the
// session means that the process is gone.
func (h *Heap) applyExit(p *Process, gone bool) {
	if gone && !p.gone {
		p.gone = true
		for i := range h.overtaken.latest { // whose releases were lost, as they come no more
			if note := &h.overtaken.latest[i]; note.process == p {
				h.abandonOvertaken(note)
			}
		}
	}
	if !p.Ended {
		p.Ended, p.ended = true, h.now
		h.ended++
		h.leaving = append(h.leaving, p)
	}
	h.due = min(h.due, p.timeMemoryMayLeave())
	h.endProcesses()
}

// ProcessEnded notes that a process is gone. A number that no record mentioned is ignored.
func (h *Heap) ProcessEnded(number uint32) {
	if p := h.FindProcess(number); p != nil {
		h.applyExit(p, true)
	}
}

// timeMemoryMayLeave returns when the memory of a process that ended may leave.
func (p *Process) timeMemoryMayLeave() uint64 {
	if p.gone {
		return 0
	}
	return p.ended + min(Grace, never-p.ended)
}

// endProcesses removes the memory of ended processes that are due, if another process runs.
func (h *Heap) endProcesses() {
	if h.now >= h.due && h.ended < len(h.processes) {
		h.removeDueMemory()
	}
}

// removeDueMemory removes the memory of ended processes that are due.
func (h *Heap) removeDueMemory() {
	if !h.options.EndProcesses {
		return
	}
	h.due = never
	slices.SortFunc(h.leaving, compareByNumber)
	h.leaving = slices.DeleteFunc(h.leaving, func(p *Process) bool {
		if h.now >= p.timeMemoryMayLeave() {
			h.removeMemoryOfProcess(p)
			return true
		}
		h.due = min(h.due, p.timeMemoryMayLeave())
		return false
	})
}

// removeMemoryOfProcess removes the memory of a process from the heap.
func (h *Heap) removeMemoryOfProcess(p *Process) {
	for _, x := range h.observers {
		x.ProcessLeaving(p)
	}
	gauges, population := p.Gauges, p.Population
	h.EndObjects(p, Leaked)
	p.objects.FreeIfEmpty()
	p.blocks.FreeIfEmpty()
	p.Gauges, p.Population, p.Left = gauges, population, true
	p.work = work{}
	for _, x := range h.observers {
		x.ProcessLeft(p)
	}
}

// HowLeft says how what the process has in use ends after the last record: it is Leaked if the process ended, or may have. cut: the run
// goes on after that record.
func (p *Process) HowLeft(cut bool) How {
	if !p.Ended && (cut || p.watched) {
		return Cut
	}
	return Leaked
}

// EndObjects ends the objects of a process, for the reason how, and its blocks in the pool as Open.
func (h *Heap) EndObjects(p *Process, how How) { h.EndObjectsAt(p, how, h.now) }

// EndObjectsAt is End at a time, which becomes Now even if it is earlier. So callers can end processes one after the other, each at the
// time of its last record.
func (h *Heap) EndObjectsAt(p *Process, how How, time uint64) {
	h.now = time
	for _, o := range p.Objects() {
		h.endObjectUse(p, o, how)
		h.noteHoldOver(p, o, how)
		h.forgetObject(p, o)
	}
	for _, b := range p.Blocks() {
		h.endBlock(p, b, Open)
	}
}
