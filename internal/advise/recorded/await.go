package recorded

import (
	"slices"
	"sort"

	"codeberg.org/gpumemtop/gpumemtop/internal/advise/merging"
	"codeberg.org/gpumemtop/gpumemtop/internal/wire"
)

// awaits are the commands that one command of a thread, or the thread itself, waits for.
type awaits struct {
	time, queue uint64 // of the waiting command or thread: its time, and its queue, 0 for the thread
	any         bool   // some were recorded
	steps       []int  // those that are not known to have completed; earlier ones on in-order queues count, too
}

// awaitedMax bounds how many awaited commands are kept for one command or thread: the latest.
const awaitedMax = 64

// addAwaitedCommand adds a command that a command or thread waits for. The records of the waiting command follow.
func (p *process) addAwaitedCommand(r *wire.Record) {
	t, e := p.threadOf(r.Thread), r.AsAwait()
	if t.awaits.time != e.Time() || t.awaits.queue != e.Queue() {
		p.passMarkerAwaitsToNext(t)
		t.awaits = awaits{time: e.Time(), queue: e.Queue()}
	}
	t.awaits.any = true
	t.awaits.steps = latestSteps(append(t.awaits.steps, p.awaitedSteps(e)...))
}

// latestSteps returns the latest of many steps.
func latestSteps(steps []int) []int { return steps[max(0, len(steps)-awaitedMax):] }

// awaitedSteps returns the steps that have completed when the command of an AWAIT record has. On an in-order queue the
// last one is enough.
func (p *process) awaitedSteps(e wire.AwaitView) []int {
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
	return latestSteps(q.running[:n])
}

// passMarkerAwaitsToNext passes what a marker waited for on to the next command on its queue, if the queue is in order.
func (p *process) passMarkerAwaitsToNext(t *thread) {
	if q := p.queues[t.awaits.queue]; q != nil && q.inOrder {
		q.after = latestSteps(append(q.after, t.awaits.steps...))
	}
	t.awaits = awaits{}
}

// precedingSteps returns the steps that have ended when a new command begins.
func (p *process) precedingSteps(r *wire.Record, q *queue) []int {
	t := p.threadOf(r.Thread)
	var after []int
	if t.awaits.time == r.Time && t.awaits.queue == r.AsUse().Queue() {
		after, t.awaits = t.awaits.steps, awaits{}
	}
	p.passMarkerAwaitsToNext(t)
	if q != nil && q.inOrder {
		after = append(after, q.after...)
		q.after = nil
	}
	return slices.Clip(after)
}

// markCompleted marks steps as completed, and with them the steps that they waited for and all earlier steps on
// in-order queues.
func (p *process) markCompleted(steps []int, done int) {
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
		q.unreadResults = q.unreadResults && len(q.running) > 0
		steps = append(steps, before...)
	}
}
