package heap

import (
	"cmp"
	"slices"
)

// foldedShare: 1/foldedShare of all processes make room at once, because each time costs the observers.
const foldedShare = 16

// haveTooManyLeft reports whether more processes have left than may keep a place.
func (h *Heap) haveTooManyLeft() bool {
	return h.options.LeftMax > 0 && h.ended-len(h.leaving) > h.options.LeftMax
}

// foldLeftProcesses folds some of the processes that have left, the oldest. It reports whether there is room.
func (h *Heap) foldLeftProcesses() bool {
	h.removeDueMemory() // another process runs
	var list []*Process
	kept := h.processes[:1]
	for _, p := range h.processes[1:] {
		if p.Left && len(list) <= len(h.processes)/foldedShare && h.folded.add(p.Number) {
			list = append(list, p)
		} else {
			kept = append(kept, p)
		}
	}
	if len(list) == 0 {
		return false
	}
	for _, x := range h.observers {
		x.ProcessesFolded(list)
	}
	for _, p := range list {
		delete(h.numbers, p.Number)
	}
	clear(h.processes[len(kept):])
	h.processes, h.latest = kept, nil
	h.ended -= len(list)
	for i, p := range h.processes {
		p.Place = i
	}
	return true
}

// spansMax bounds spans: numbers grow in a session, so one span is enough.
const spansMax = 1 << 16

// spans is a set of numbers: ranges with gaps between them, ascending.
type spans []span

type span struct{ first, last uint32 }

// findRange returns the place of the first range that does not end before a number.
func (s spans) findRange(number uint32) int {
	at, _ := slices.BinarySearchFunc(s, number, func(r span, number uint32) int { return cmp.Compare(r.last, number) })
	return at
}

func (s spans) has(number uint32) bool {
	at := s.findRange(number)
	return at < len(s) && s[at].first <= number
}

// add adds a number that is not there; false: it would take too many ranges.
func (s *spans) add(number uint32) bool {
	list := *s
	at := list.findRange(number)
	above := at < len(list) && list[at].first == number+1
	below := at > 0 && list[at-1].last == number-1
	switch {
	case above && below:
		list[at].first = list[at-1].first
		list = slices.Delete(list, at-1, at)
	case above:
		list[at].first = number
	case below:
		list[at-1].last = number
	case len(list) == spansMax:
		return false
	default:
		list = slices.Insert(list, at, span{number, number})
	}
	*s = list
	return true
}
