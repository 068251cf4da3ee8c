package heap

import (
	"math"
	"slices"

	"codeberg.org/gpumemtop/gpumemtop/internal/wire"
)

// Grace is the time in ns from the begin of a process's exit to the removal of its memory, if no record says that the process is
// gone: exit handlers may still release buffers.
const Grace = 1_000_000_000

// never is later than all times.
const never = math.MaxUint64

// Exit is how a process ended, as far as it is known.
type Exit struct {
	Status  int  // exit status, or 128 + the signal that ended it; -1: unknown
	Orderly bool // its exit handlers ran to their end: it was not killed, nor left by _exit
	RanOut  bool // a call of it failed for lack of memory
}

// WasAborted reports whether a signal ended the process, or perhaps _exit where its exit status is not known, or it gave up for lack of
// memory. What it had in use is no leak.
func (e *Exit) WasAborted() bool {
	return !e.Orderly && (e.Status < 0 || e.SignalNumber() > 0) || e.RanOut && e.Status > 0
}

// lastSignal is the number of Linux's last signal.
const lastSignal = 64

// SignalNumber returns the signal that ended the process, 0 if none did or that is not known. EXIT has signals as shells write them.
func (e *Exit) SignalNumber() int {
	if n := e.Status - 128; !e.Orderly && n > 0 && n <= lastSignal {
		return n
	}
	return 0
}

// NoteExit notes what EXIT says of the end. A later record replaces an earlier one, unless its status is unknown. With the status of a
// signal, where the process itself said another, a signal came while its exit handlers ran.
func (e *Exit) NoteExit(r *wire.Record) {
	status := int(r.AsExit().Status())
	bySignal := (&Exit{Status: status}).SignalNumber() > 0
	e.Orderly = r.Thread != 0 || e.Orderly && (!bySignal || e.Status < 0 || status == e.Status)
	if status >= 0 {
		e.Status = status
	}
}

// FailedForLackOrSize reports whether a create failed for lack of memory, or because no buffer may be so large. largest: bytes of one
// allocation at most, 0 when unknown. clSVMAlloc returns no status: the shim makes one up.
func FailedForLackOrSize(c wire.CreateView, largest uint64) bool {
	switch int32(c.Status()) {
	case wire.MemObjectAllocationFailure, wire.OutOfResources, wire.OutOfHostMemory:
		return true
	case wire.InvalidBufferSize, wire.InvalidImageSize:
		return c.Requested() > 0
	case wire.InvalidValue:
		return c.Memory() >= wire.MemorySVM && largest > 0 && c.Requested() > largest
	}
	return false
}

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
	h.due = min(h.due, p.timeMemoryIsDue())
	h.removeDueMemoryIfOthersRun()
}

// NoteProcessEnded notes that a process is gone. A number that no record mentioned is ignored.
func (h *Heap) NoteProcessEnded(number uint32) {
	if p := h.FindProcess(number); p != nil {
		h.applyExit(p, true)
	}
}

// timeMemoryIsDue returns when the memory of a process that ended may leave.
func (p *Process) timeMemoryIsDue() uint64 {
	if p.gone {
		return 0
	}
	return p.ended + min(Grace, never-p.ended)
}

// removeDueMemoryIfOthersRun removes the memory of ended processes that are due, if another process runs.
func (h *Heap) removeDueMemoryIfOthersRun() {
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
		if h.now >= p.timeMemoryIsDue() {
			h.removeMemoryOfProcess(p)
			return true
		}
		h.due = min(h.due, p.timeMemoryIsDue())
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

// HowMemoryEnds says how what the process has in use ends after the last record: it is Leaked if the process ended, or may
// have, and Held if it was aborted. cut: the run goes on after that record.
func (p *Process) HowMemoryEnds(cut bool) How {
	switch {
	case !p.Ended && (cut || p.watched):
		return Cut
	case p.Ended && p.WasAborted():
		return Held
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
