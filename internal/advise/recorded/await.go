package recorded

import (
	"slices"
	"sort"

	"codeberg.org/gpumemtop/gpumemtop/internal/advise/merging"
	"codeberg.org/gpumemtop/gpumemtop/internal/wire"
)

// awaits are commands that one command of a thread, or the thread itself, waits for.
type awaits struct {
	time, link uint64 // of what waits: its queue, 0 for the thread
	some       bool   // any were recorded
	steps      []int  // those that are not known to have completed; all before them on queues with an order count, too
}

// mostAfter is how many commands of those that one waits for are kept.
const mostAfter = 64

// await takes one command that a command or thread waits for, whose own records follow.
func (p *process) await(r *wire.Record) {
	t, e := p.thread(r.Thread), r.AsAwait()
	if t.awaits.time != e.Time() || t.awaits.link != e.Queue() {
		p.pass(t)
		t.awaits = awaits{time: e.Time(), link: e.Queue()}
	}
	t.awaits.some = true
	t.awaits.steps = few(append(t.awaits.steps, p.awaited(e)...))
}

// few keeps the latest of many steps.
func few(steps []int) []int { return steps[max(0, len(steps)-mostAfter):] }

// awaited returns the steps that have completed when what a record names has: the last is enough where there is an order.
func (p *process) awaited(e wire.AwaitView) []int {
	q := p.queues[e.AwaitedQueue()]
	if q == nil {
		return nil
	}
	steps := p.program.Steps
	n := sort.Search(len(q.running), func(i int) bool { return steps[q.running[i]].Time > e.AwaitedTime() })
	all := e.Await() == wire.AwaitAll
	switch {
	case n == 0 || !all && steps[q.running[n-1]].Time != e.AwaitedTime():
		return nil
	case q.inOrder || !all:
		return q.running[n-1 : n]
	}
	return few(q.running[:n])
}

// pass hands what a marker waited for to the next command on its queue, where there is an order.
func (p *process) pass(t *thread) {
	if q := p.queues[t.awaits.link]; q != nil && q.inOrder {
		q.after = few(append(q.after, t.awaits.steps...))
	}
	t.awaits = awaits{}
}

// behind returns the steps that have ended when a new command begins.
func (p *process) behind(r *wire.Record, q *queue) []int {
	t := p.thread(r.Thread)
	var after []int
	if t.awaits.time == r.Time && t.awaits.link == r.AsUse().Queue() {
		after, t.awaits = t.awaits.steps, awaits{}
	}
	p.pass(t)
	if q != nil && q.inOrder {
		after = append(after, q.after...)
		q.after = nil
	}
	return slices.Clip(after)
}

// ended says that steps have completed, and with them what they waited for and all before them on queues with an order.
func (p *process) ended(steps []int, done int) {
	for len(steps) > 0 {
		last := len(steps) - 1
		step := steps[last]
		steps = steps[:last]
		s := &p.program.Steps[step]
		if s.Done == merging.None {
			s.Done = done
			steps = append(steps, s.After...)
		}
		q := p.ordered[s.Queue]
		if q == nil {
			continue
		}
		n := sort.SearchInts(q.running, step+1)
		before := q.running[:n]
		q.running = q.running[n:]
		q.unread = q.unread && len(q.running) > 0
		steps = append(steps, before...)
	}
}
