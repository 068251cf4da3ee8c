package recorded

import (
	"codeberg.org/gpumemtop/gpumemtop/internal/advise/merging"
	"codeberg.org/gpumemtop/gpumemtop/internal/wire"
)

// expect notes that the host may learn something once a queue's commands have completed.
func (p *process) expect(number uint64) {
	if q := p.queues[number]; q != nil {
		q.unread = true
	} else {
		p.unread = true
	}
}

// sync begins a wait: it ends when the call returns, before which other threads go on.
func (p *process) sync(r *wire.Record) {
	e := r.AsSync()
	if e.Sync() == wire.SyncFlush {
		return
	}
	t := p.thread(r.Thread)
	t.wait = &wait{record: *r, end: r.Time + uint64(e.Duration()), mine: merging.None}
	if t.awaits.time == r.Time && t.awaits.link == 0 {
		t.wait.awaits, t.awaits = t.awaits, awaits{}
	}
	p.waiting = append(p.waiting, t)
}

// settle ends the waits that a record shows to be over: those that ended before it, and its own thread's, except the
// blocking command that the wait is a part of.
func (p *process) settle(r *wire.Record) {
	if len(p.waiting) == 0 {
		return
	}
	still := p.waiting[:0]
	for _, t := range p.waiting {
		w, mine := t.wait, t.wait.record.Thread == r.Thread
		blocking := w.record.AsSync().Sync() == wire.SyncBlocking && r.Kind == wire.KindUse && mine &&
			r.Time == w.record.Time && r.AsUse().Queue() == w.record.AsSync().Queue()
		over := r.Time >= w.end && !r.Kind.Late() || mine
		if over && !blocking {
			p.endWait(t)
		} else {
			still = append(still, t)
		}
	}
	p.waiting = still
}

// endWait adds the step at which a wait ends, and says what has completed by then. For which commands a program waited
// with clWaitForEvents earlier versions did not record, and tracers do not.
func (p *process) endWait(t *thread) {
	w := t.wait
	t.wait = nil
	s := merging.Step{Kind: merging.KindSync, Time: w.end, Done: len(p.program.Steps)}
	if p.learns() {
		s.Kind = merging.KindHostRead
	}
	if p.full() {
		p.dropped++
		return
	}
	done := p.add(&s)
	if w.record.AsSync().Sync() == wire.SyncWait {
		if !w.awaits.some {
			p.waits++
		}
		p.ended(w.awaits.steps, done)
		return
	}
	q := p.queues[w.record.AsSync().Queue()]
	if w.record.AsSync().Sync() == wire.SyncFinish && q != nil || q != nil && q.inOrder {
		p.complete(q, w.record.Time, done)
	} else if w.mine != merging.None {
		p.ended([]int{w.mine}, done)
	}
}

// learns reports whether the host may have got the results of reads that it did not wait for then.
func (p *process) learns() bool {
	for _, q := range p.queues {
		if q.unread {
			return true
		}
	}
	return p.unread
}

// complete says that all commands that were enqueued before a time have completed.
func (p *process) complete(q *queue, before uint64, done int) {
	var ended []int
	left := q.running[:0]
	for _, step := range q.running {
		if p.program.Steps[step].Time <= before {
			ended = append(ended, step)
		} else {
			left = append(left, step)
		}
	}
	q.running = left
	q.unread = q.unread && len(left) > 0
	p.ended(ended, done)
}
