package stats

import (
	"cmp"
	"slices"

	"codeberg.org/gpumemtop/gpumemtop/internal/heap"
	"codeberg.org/gpumemtop/gpumemtop/internal/wire"
)

// InFlight is memory that the program gave back to the driver before it had waited for the commands that use it. A driver frees
// such memory once these commands have ended. The program's waits show that late or not at all, so the driver may hold less.
type InFlight struct {
	Early
	Now, Peak uint64 // bytes
}

// Early counts releases of such memory.
type Early struct{ Releases, Bytes uint64 }

func (e *Early) addEarly(o Early) {
	e.Releases += o.Releases
	e.Bytes += o.Bytes
}

// waits is what a process has waited for. A wait for a command counts as one for all that its queue was given before: of an
// out-of-order queue some may go on, so that the figures are rather too low.
type waits struct {
	queues map[uint64]*waited
	ended  map[uint64]uint64 // of queues that ended: until when the program had waited for their commands
	all    uint64            // when the program waited for all queues last
	thread uint32            // that says in AWAIT records
	time   uint64            // what its wait at this time is for
}

// lastUse is the last command that used an object.
type lastUse struct{ queue, time uint64 }

// waited is one queue. The commands that were enqueued until done have ended, as far as the program has waited.
type waited struct {
	done  uint64
	held  []heldMemory // what commands after done use, by the time of the last of them
	after []commandAfter
}

type heldMemory struct{ until, bytes uint64 }

// commandAfter is a command, by its time, that runs after one of another queue.
type commandAfter struct {
	time uint64
	runs lastUse
}

// Bounds on what is kept of a queue. Held memory beyond is joined with the latest.
const (
	heldMax  = 1 << 16
	afterMax = 1 << 10
	endedMax = 1 << 10 // queues; beyond, any of them is forgotten
)

func (w *waits) queueOf(number uint64) *waited {
	q := w.queues[number]
	if q == nil {
		if w.queues == nil {
			w.queues = map[uint64]*waited{}
		}
		q = new(waited)
		w.queues[number] = q
	}
	return q
}

// handleAwait takes an AWAIT. It returns the bytes that are no longer held.
func (w *waits) handleAwait(r *wire.Record) uint64 {
	a := r.AsAwait()
	end := lastUse{a.AwaitedQueue(), a.AwaitedTime()}
	if a.Queue() == 0 {
		w.thread, w.time = r.Thread, r.Time
		return w.noteCommandEnded(end)
	}
	q := w.queueOf(a.Queue())
	if len(q.after) < afterMax {
		q.after = append(q.after, commandAfter{a.Time(), end})
	}
	return 0
}

// handleUse takes a USE. A blocking write has no SYNC, as it may return once it has the bytes; drivers carry it out.
func (w *waits) handleUse(u wire.UseView) uint64 {
	if u.Command() != wire.CommandWrite || u.Duration() == 0 {
		return 0
	}
	return w.noteCommandEnded(lastUse{u.Queue(), u.Time()})
}

// handleSync takes a SYNC. A wait for events that are not known may be for all commands.
func (w *waits) handleSync(r *wire.Record) uint64 {
	s := r.AsSync()
	switch {
	case s.Sync() == wire.SyncFlush, s.Sync() == wire.SyncWait && w.thread == r.Thread && w.time == r.Time:
		return 0
	case s.Queue() != 0:
		return w.noteCommandEnded(lastUse{s.Queue(), s.Time()})
	}
	return w.noteAllCommandsEnded(s.Time())
}

// noteQueueEnded takes the end of a queue, for which the program can wait no more. What it had waited for before has ended.
func (w *waits) noteQueueEnded(queue uint64) uint64 {
	for other := range w.ended {
		if len(w.ended) < endedMax {
			break
		}
		delete(w.ended, other)
	}
	if w.ended == nil {
		w.ended = map[uint64]uint64{}
	}
	w.ended[queue] = w.queueOf(queue).done
	bytes := w.noteCommandEnded(lastUse{queue, ^uint64(0)})
	delete(w.queues, queue)
	return bytes
}

func (w *waits) noteAllCommandsEnded(time uint64) (bytes uint64) {
	w.all = max(w.all, time)
	for number := range w.queues {
		bytes += w.noteCommandEnded(lastUse{number, time})
	}
	return bytes
}

// noteCommandEnded notes that a command has ended, and what its queue was given before.
func (w *waits) noteCommandEnded(of lastUse) uint64 {
	q := w.queueOf(of.queue)
	if of.time <= q.done {
		return 0
	}
	q.done = of.time
	n, bytes := 0, uint64(0)
	for ; n < len(q.held) && q.held[n].until <= q.done; n++ {
		bytes += q.held[n].bytes
	}
	q.held = slices.Delete(q.held, 0, n)
	over := 0
	for ; over < len(q.after) && q.after[over].time <= q.done; over++ {
	}
	before := slices.Clone(q.after[:over])
	q.after = slices.Delete(q.after, 0, over)
	for i := range before {
		bytes += w.noteCommandEnded(before[i].runs)
	}
	return bytes
}

// isNotAwaited reports whether the program has not waited for a command.
func (w *waits) isNotAwaited(of lastUse) bool {
	if of.time <= w.all {
		return false
	}
	q := w.queues[of.queue]
	return of.time > w.ended[of.queue] && (q == nil || of.time > q.done)
}

// addHeldMemory adds memory that a command uses.
func (w *waits) addHeldMemory(of lastUse, bytes uint64) {
	q := w.queueOf(of.queue)
	if n := len(q.held); n == heldMax {
		q.held[n-1].until = max(q.held[n-1].until, of.time)
		q.held[n-1].bytes += bytes
		return
	}
	at, _ := slices.BinarySearchFunc(q.held, of.time+1, func(h heldMemory, t uint64) int { return cmp.Compare(h.until, t) })
	q.held = slices.Insert(q.held, at, heldMemory{of.time, bytes})
}

// countIfReleasedInFlight looks whether the program released the memory of an object before it waited for the commands that use it. Shared memory ends
// at once, and memory of the program or of another API is none of the driver's.
func (m *Model) countIfReleasedInFlight(p *process, o *heap.Object, how heap.How) {
	if how != heap.Released || m.options.TransfersOnly || m.totals.quiet || o.Memory >= wire.MemorySVM || o.Access&wire.UseHostPtr != 0 {
		return
	}
	if of := (lastUse{o.Queue, o.Used}); o.Owns && m.totals.release.back && p.waits.isNotAwaited(of) {
		p.waits.addHeldMemory(of, o.Granted)
		m.totals.countHeldInFlight(p, o.Granted)
		m.sites.countHeldInFlight(o)
	}
}

// countHeldInFlight counts memory that went back to the driver too early.
func (t *totals) countHeldInFlight(p *process, bytes uint64) {
	for _, a := range p.accounts {
		f := &a.counters.InFlight
		f.addEarly(Early{1, bytes})
		f.Now += bytes
		f.Peak = max(f.Peak, f.Now)
	}
}

// countMovedBetweenDevices counts contents that a command needed on another device.
func (t *totals) countMovedBetweenDevices(p *process, bytes uint64) {
	for _, a := range p.accounts {
		a.counters.BetweenDevices += bytes
	}
}

// subtractHeldInFlight counts bytes that commands no longer use.
func (t *totals) subtractHeldInFlight(p *process, bytes uint64) {
	if bytes == 0 {
		return
	}
	for _, a := range p.accounts {
		a.counters.InFlight.Now -= bytes
	}
}

// subtractProcess takes what a process holds so off the run, when the memory of the process leaves.
func (t *totals) subtractProcess(p *process) {
	t.run.counters.InFlight.Now -= p.ownAccount().counters.InFlight.Now
	p.waits = waits{}
}

func (cs *callSites) countHeldInFlight(o *heap.Object) {
	for f := range cs.creatorOf(o).eachFigures {
		f.early.addEarly(Early{1, o.Granted})
	}
}
