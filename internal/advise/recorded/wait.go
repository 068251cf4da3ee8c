package recorded

import (
	"math"

	"codeberg.org/gpumemtop/gpumemtop/internal/advise/merging"
	"codeberg.org/gpumemtop/gpumemtop/internal/wire"
)

// noteHostMayRead notes that the host may learn something when a queue's commands have completed.
func (p *process) noteHostMayRead(number uint64) {
	if q := p.queues[number]; q != nil {
		q.unreadResults = true
	} else {
		p.unreadUnknownQueue = true
	}
}

// beginWait begins a wait. It ends when the call returns; other threads may continue before.
func (p *process) beginWait(r *wire.Record) {
	e := r.AsSync()
	if e.Sync() == wire.SyncFlush {
		return
	}
	t := p.threadOf(r.Thread)
	t.wait = &wait{record: *r, end: r.Time + uint64(e.Duration()), command: merging.None}
	if e.Duration() == math.MaxUint32 { // or longer: the thread's next record shows that it is over
		t.wait.end = math.MaxUint64
	}
	if t.awaits.time == r.Time && t.awaits.queue == 0 {
		t.wait.awaits, t.awaits = t.awaits, awaits{}
	}
	p.waiting = append(p.waiting, t)
}

// endWaitsBefore ends the waits that are over when a record comes: waits that ended before it, and the wait of the
// record's own thread, unless that wait belongs to the record's blocking command, whose TRANSFER comes first.
func (p *process) endWaitsBefore(r *wire.Record) {
	if len(p.waiting) == 0 {
		return
	}
	still := p.waiting[:0]
	for _, t := range p.waiting {
		w, ownWait := t.wait, t.wait.record.Thread == r.Thread
		blocking := w.record.AsSync().Sync() == wire.SyncBlocking && ownWait && r.Time == w.record.Time &&
			(r.Kind == wire.KindTransfer || r.Kind == wire.KindUse && r.AsUse().Queue() == w.record.AsSync().Queue())
		if ownWait && w.end == math.MaxUint64 {
			w.end = r.Time
		}
		over := r.Time >= w.end && !r.Kind.IsMadeLater() || ownWait
		if over && !blocking {
			p.endWait(t)
		} else {
			still = append(still, t)
		}
	}
	p.waiting = still
}

// endWait adds the step at which a wait ends, and marks what has completed by then. Earlier versions and tracers do not
// record for which commands a program waits with clWaitForEvents.
func (p *process) endWait(t *thread) {
	w := t.wait
	t.wait = nil
	s := merging.Step{Kind: merging.KindSync, Time: w.end, Done: len(p.program.Steps)}
	if p.hostMayHaveRead() {
		s.Kind = merging.KindHostRead
	}
	if p.hasDroppedSteps() {
		p.dropped++
		return
	}
	done := p.addStep(&s)
	if w.record.AsSync().Sync() == wire.SyncWait {
		if !w.awaits.any {
			p.waits++
		}
		p.markCompleted(w.awaits.steps, done)
		return
	}
	q := p.queues[w.record.AsSync().Queue()]
	if w.record.AsSync().Sync() == wire.SyncFinish && q != nil || q != nil && q.inOrder {
		p.completeCommandsUntil(q, w.record.Time, done)
	} else if w.command != merging.None {
		p.markCompleted([]int{w.command}, done)
	}
}

// hostMayHaveRead reports whether the host may have got results of reads that it had not waited for.
func (p *process) hostMayHaveRead() bool {
	for _, q := range p.queues {
		if q.unreadResults {
			return true
		}
	}
	return p.unreadUnknownQueue
}

// completeCommandsUntil marks all commands that were enqueued before a time as completed.
func (p *process) completeCommandsUntil(q *queue, before uint64, done int) {
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
	q.unreadResults = q.unreadResults && len(left) > 0
	p.markCompleted(ended, done)
}
