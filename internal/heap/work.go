package heap

import (
	"math"
	"slices"
	"sort"

	"codeberg.org/gpumemtop/gpumemtop/internal/wire"
)

// Bounds on the state that is kept of commands. Beyond them the end of a command stays unknown.
const (
	queuesMax  = 1024
	runningMax = 1 << 16 // commands' uses of a queue
	awaitsMax  = 64      // of a queue's commands for others, or of one command or wait
	parentsMax = 4       // an image of a sub-buffer of a buffer has two
)

// work tracks which commands of a process have surely ended. The driver does not report the end of a command; a wait of the
// program shows it. So a command is known to have ended once a wait that covers it has ended.
type work struct {
	queues map[uint64]*queue
	latest *queue // the last command's
	number uint64 // its number
	blind  uint64 // when a command last used unknown memory
	awaits awaits
	long   longWait
	last   uint64 // see LastCommandEnd
}

// queue is a command queue.
type queue struct {
	inOrder bool
	before  uint64 // commands enqueued up to then
	ended   uint64 // were known to have ended then
	running []running
	begin   int // of running: those before have ended
	after   []waiting
}

// running is the use of an object by a command that may still run.
type running struct {
	object uint64 // 0: it has ended
	time   uint64 // when it was enqueued
}

// waiting is a command of a queue, enqueued at a time, that begins after another command has ended.
type waiting struct {
	time uint64
	awaited
}

type awaited struct {
	queue uint64
	time  uint64
	all   bool // all earlier commands of its queue have ended as well
}

// awaits are the commands for which one command, or a thread, waits.
type awaits struct {
	time   uint64
	thread uint32
	list   []awaited
}

// longWait is a wait whose duration does not fit its record. It ended at the latest when its thread made the next call.
type longWait struct {
	thread uint32
	wire.Record
}

// ObjectIdleSince returns the time at which all commands on an object were known to have ended; they may have ended earlier. False: no
// command used the object, or a command may still run, or the host may use the memory without a call.
func (p *Process) ObjectIdleSince(o *Object) (time uint64, known bool) {
	if o.Used == 0 || o.running > 0 || o.maps > 0 || !p.areUsesRecorded(o) {
		return 0, false
	}
	return o.ended, true
}

// LastCommandEnd returns when a command of the process was known to have ended, the latest; 0: none was.
func (p *Process) LastCommandEnd() uint64 { return p.work.last }

// MayCommandsStillRun reports whether a command of the process that uses memory may still run when a record comes, which Apply
// takes next.
func (p *Process) MayCommandsStillRun(r *wire.Record) bool {
	p.endLongWait(r)
	for _, q := range p.work.queues {
		if slices.ContainsFunc(q.running[q.begin:], func(r running) bool { return r.object != 0 }) {
			return true
		}
	}
	return false
}

// IsUntouched reports whether no command has used an object, nor the host without a call.
func (p *Process) IsUntouched(o *Object) bool {
	return o.Used == 0 && !o.CarriedOver && p.areUsesRecorded(o)
}

// areUsesRecorded reports whether all uses of an object are recorded.
func (p *Process) areUsesRecorded(o *Object) bool {
	switch o.Memory {
	case wire.MemorySVM:
		if o.Access&wire.SVMFineGrainBuffer != 0 {
			return false
		}
	case wire.MemoryUSMHost, wire.MemoryUSMDevice, wire.MemoryUSMShared: // a kernel may follow pointers to it
		return false
	default:
	}
	blind := max(p.work.blind, p.heap.blind)
	return blind == 0 || o.Started > blind
}

// applyUse notes that a command uses an object. The record of a blocking command comes at its end, after all records from its
// duration.
func (h *Heap) applyUse(p *Process, u wire.UseView) {
	if u.Object() == 0 {
		p.work.blind = max(p.work.blind, u.Time())
		return
	}
	o := p.Object(u.Object())
	if o == nil {
		h.Unknown++
		return
	}
	q := p.queueNumbered(u.Queue())
	p.noteCommandUse(o, q, u)
	for range parentsMax {
		if o.Parent == 0 {
			return
		}
		if o = p.Object(o.Parent); o == nil {
			return
		}
		p.noteCommandUse(o, q, u)
	}
}

// noteCommandUse notes a command that uses an object, or a part of it.
func (p *Process) noteCommandUse(o *Object, q *queue, u wire.UseView) {
	time := u.Time()
	if time >= o.Used {
		o.Used, o.Queue = time, u.Queue()
	}
	if o.First == 0 {
		o.First = time
	}
	switch u.Command() {
	case wire.CommandMap:
		o.maps++
	case wire.CommandUnmap:
		o.maps = max(0, o.maps-1)
	default:
	}
	took := u.Duration() // of a blocking command
	switch {
	case took > 0 && took < math.MaxUint32:
		p.noteCommandEnd(o, time+uint64(took))
	case q != nil && time <= q.before:
		p.noteCommandEnd(o, q.ended)
	case q == nil || len(q.running)-q.begin == runningMax:
		o.running++ // for ever
	default:
		o.running++
		q.running = append(q.running, running{o.ID, time})
	}
}

// queueNumbered returns a queue by its number, nil if it is unknown or there are too many.
func (p *Process) queueNumbered(number uint64) *queue {
	w := &p.work
	if number == 0 {
		return nil
	}
	if w.latest != nil && w.number == number {
		return w.latest
	}
	q := w.queues[number]
	if q == nil {
		if len(w.queues) == queuesMax {
			return nil
		}
		if w.queues == nil {
			w.queues = map[uint64]*queue{}
		}
		q = &queue{}
		w.queues[number] = q
	}
	w.latest, w.number = q, number
	return q
}

func (p *Process) applyQueue(v wire.QueueView) {
	switch v.Life() {
	case wire.LifeCreate:
		if q := p.queueNumbered(v.Queue()); q != nil {
			q.inOrder = !v.OutOfOrder()
		}
	case wire.LifeEnd: // its commands go on, and nothing shows their end
		delete(p.work.queues, v.Queue())
		p.work.latest = nil
	default:
	}
}

// noteAwaited notes for which commands a command or a thread waits. The record of that command or wait follows.
func (p *Process) noteAwaited(thread uint32, v wire.AwaitView) {
	other := awaited{v.AwaitedQueue(), v.AwaitedTime(), v.Await() == wire.AwaitAll}
	if v.Queue() != 0 {
		if q := p.queueNumbered(v.Queue()); q != nil && len(q.after) < awaitsMax {
			q.after = append(q.after, waiting{v.Time(), other})
		}
		return
	}
	a := &p.work.awaits
	if a.time != v.Time() || a.thread != thread {
		a.time, a.thread, a.list = v.Time(), thread, a.list[:0]
	}
	if len(a.list) < awaitsMax {
		a.list = append(a.list, other)
	}
}

// applySync notes the commands whose end a wait shows.
func (p *Process) applySync(r *wire.Record) {
	v := r.AsSync()
	switch took := v.Duration(); {
	case took == 0 && v.Sync() != wire.SyncWait: // not measured; an event's status or times, which the program has asked for, need no wait
	case took == math.MaxUint32:
		p.work.long = longWait{r.Thread, *r}
	default:
		p.completeCommandsAfterWait(r, r.Time+uint64(took))
	}
}

// endLongWait ends a wait of a thread whose next record has come. The command that blocked belongs to the wait.
func (p *Process) endLongWait(next *wire.Record) {
	if p.work.long.thread == 0 || p.work.long.thread != next.Thread || next.Time == p.work.long.Time || next.Kind.IsMadeLater() {
		return
	}
	p.work.long.thread = 0
	p.completeCommandsAfterWait(&p.work.long.Record, next.Time)
}

// completeCommandsAfterWait notes the commands that have ended when a wait was over.
func (p *Process) completeCommandsAfterWait(r *wire.Record, over uint64) {
	v := r.AsSync()
	switch v.Sync() {
	case wire.SyncFinish:
		p.completeCommandsOfQueue(p.work.queues[v.Queue()], r.Time, over)
	case wire.SyncBlocking:
		if q := p.work.queues[v.Queue()]; q != nil && q.inOrder {
			p.completeCommandsOfQueue(q, r.Time, over)
		}
	case wire.SyncWait:
		if a := &p.work.awaits; a.time == r.Time && a.thread == r.Thread {
			for _, other := range a.list {
				p.completeAwaited(other, over)
			}
		}
	default: // a flush waits for nothing
	}
}

// completeCommandsOfQueue notes that all commands of a queue that were enqueued until before have ended.
func (p *Process) completeCommandsOfQueue(q *queue, before, over uint64) {
	if q == nil {
		return
	}
	if before > q.before {
		q.before, q.ended = before, over
	}
	for q.begin < len(q.running) && q.running[q.begin].time <= before {
		p.endCommandUse(&q.running[q.begin], over)
		q.begin++
	}
	if q.begin == len(q.running) || q.begin > runningMax {
		q.running, q.begin = q.running[:copy(q.running, q.running[q.begin:])], 0
	}
	q.completeAwaitedUntil(p, before, over)
}

// completeAwaitedUntil notes that the commands for which a queue's commands up to a time had waited have ended, too.
func (q *queue) completeAwaitedUntil(p *Process, before, over uint64) {
	n := 0
	for n < len(q.after) && q.after[n].time <= before {
		n++
	}
	if n == 0 {
		return
	}
	list := q.after[:n:n]
	q.after = q.after[n:]
	for _, w := range list {
		p.completeAwaited(w.awaited, over)
	}
	if len(q.after) == 0 {
		q.after = list[:0]
	}
}

// completeAwaited notes that a command for which another or a thread waited has ended.
func (p *Process) completeAwaited(a awaited, over uint64) {
	q := p.work.queues[a.queue]
	if q == nil {
		return
	}
	if a.all || q.inOrder {
		p.completeCommandsOfQueue(q, a.time, over)
		return
	}
	left := q.running[q.begin:]
	for i := sort.Search(len(left), func(i int) bool { return left[i].time >= a.time }); i < len(left) && left[i].time == a.time; i++ {
		p.endCommandUse(&left[i], over)
		left[i].object = 0
	}
}

func (p *Process) noteCommandEnd(o *Object, over uint64) {
	o.ended = max(o.ended, over)
	p.work.last = max(p.work.last, over)
}

// endCommandUse notes that a command that used an object has ended.
func (p *Process) endCommandUse(r *running, over uint64) {
	if r.object == 0 {
		return
	}
	if o := p.Object(r.object); o != nil && o.running > 0 {
		o.running--
		p.noteCommandEnd(o, over)
	}
}
