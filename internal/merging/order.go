package merging

import "slices"

// mark is how far a queue is known to have come: to a step, and all before it on the same queue.
type mark struct {
	queue uint32
	step  int32
}

// mostMarks is how many queues are known of at a step. To forget some means to know less.
const mostMarks = 16

// order says how far other queues have surely come when a step begins, by the events that it and those before it on its queue
// wait for. Without events it is empty.
type order struct {
	at    []int32  // by step: its marks
	marks [][]mark // that many steps share; the first are none
}

func orderOf(p *Program) order {
	if !slices.ContainsFunc(p.Steps, func(s Step) bool { return len(s.After) > 0 }) {
		return order{}
	}
	o := order{at: make([]int32, len(p.Steps)), marks: [][]mark{nil}}
	last := map[uint32]int32{}
	for i := range p.Steps {
		s := &p.Steps[i]
		if s.Kind == KindCreate {
			continue
		}
		if len(s.After) > 0 {
			marks := slices.Clone(o.marks[last[s.Queue]])
			for _, x := range s.After {
				for _, m := range o.marks[o.at[x]] {
					marks = further(marks, m)
				}
				marks = further(marks, mark{p.Steps[x].Queue, int32(x)})
			}
			o.marks = append(o.marks, marks)
			last[s.Queue] = int32(len(o.marks) - 1)
		}
		o.at[i] = last[s.Queue]
	}
	return o
}

// further adds a mark, in the place of one of the same queue, or of the one that is furthest back where there are many.
func further(marks []mark, m mark) []mark {
	oldest := 0
	for i := range marks {
		if marks[i].queue == m.queue {
			marks[i].step = max(marks[i].step, m.step)
			return marks
		}
		if marks[i].step < marks[oldest].step {
			oldest = i
		}
	}
	if len(marks) < mostMarks {
		return append(marks, m)
	}
	if marks[oldest].step < m.step {
		marks[oldest] = m
	}
	return marks
}

// before reports whether a step on one queue has surely ended when one on another begins.
func (o *order) before(p *Program, first, then int) bool {
	if o.at == nil {
		return false
	}
	return slices.ContainsFunc(o.marks[o.at[then]], func(m mark) bool {
		return m.queue == p.Steps[first].Queue && int(m.step) >= first && p.Steps[first].Kind != KindCreate
	})
}
