package calls

import "codeberg.org/gpumemtop/gpumemtop/internal/wire"

type queue struct {
	object
	context    *context // nil: uncertain
	likely     *context // that of memory used with it
	outOfOrder bool
}

// queues are those of a process, by handle.
type queues struct {
	*writer
	ledger   *ledger
	contexts *contexts
	memories *memories

	byHandle map[uint64]*queue
	last     uint64 // number of the latest
}

// Properties of queues. (API specification, table of queue creation properties.)
const (
	queueProperties = 0x1093 // CL_QUEUE_PROPERTIES
	queueOutOfOrder = 1 << 0 // CL_QUEUE_OUT_OF_ORDER_EXEC_MODE_ENABLE
	queueOnDevice   = 1 << 2 // CL_QUEUE_ON_DEVICE, which is never in order
)

func (qs *queues) handleCreate(s *wire.Sample) { qs.addQueue(s, s.Argument[2]) }

func (qs *queues) handleCreateWithProperties(s *wire.Sample) {
	list := s.CopiedArgument(0)
	for i := 0; i+1 < min(len(list), propertiesBytes)/8 && numberAt(list, i) != 0; i += 2 {
		if numberAt(list, i) == queueProperties {
			qs.addQueue(s, numberAt(list, i+1))
			return
		}
	}
	qs.addQueue(s, 0)
}

func (qs *queues) addQueue(s *wire.Sample, properties uint64) {
	old := qs.byHandle[s.Result]
	if s.Result == 0 || old != nil && old.isFromNestedCall(s) || old == nil && len(qs.byHandle) >= objectsMax {
		return
	}
	qs.memories.endPreviousOfHandle(s, s.Result)
	if old != nil {
		qs.ledger.countEnded(&old.object)
	}
	in := qs.contexts.contextOfHandle(s, s.Argument[0])
	if in != nil {
		qs.contexts.wakeContext(s, in)
		in.queues++
	}
	qs.last++
	q := &queue{
		object: newObject(s, qs.last), context: in, likely: in,
		outOfOrder: properties&(queueOutOfOrder|queueOnDevice) != 0,
	}
	qs.byHandle[s.Result] = q
	qs.ledger.countCreated(s, &q.object, wire.HeldQueue)
	qs.writeQueueEvent(s, q, wire.LifeCreate, false)
}

// queueOfHandle returns the queue of a handle that the driver accepts, nil if the handle is 0 or there is no room.
func (qs *queues) queueOfHandle(s *wire.Sample, handle uint64) *queue {
	q := qs.byHandle[handle]
	if q != nil || handle == 0 || len(qs.byHandle) >= objectsMax {
		return q
	}
	qs.last++
	q = &queue{object: carriedObject(s, qs.last)}
	qs.byHandle[handle] = q
	qs.writeQueueEvent(s, q, wire.LifeCreate, true)
	return q
}

func (qs *queues) writeQueueEvent(s *wire.Sample, q *queue, life wire.Life, carriedOver bool) {
	qs.writeEvent(s, wire.QueueFields{
		Life: life, OutOfOrder: q.outOfOrder, CarriedOver: carriedOver, Scope: q.likely.scopeNumber(), Queue: q.number,
	}.Event())
}

func (qs *queues) handleRetain(s *wire.Sample) {
	if q := qs.queueOfHandle(s, s.Argument[0]); q != nil {
		q.references++
		qs.writeQueueEvent(s, q, wire.LifeRetain, false)
	}
}

func (qs *queues) handleRelease(s *wire.Sample) {
	q := qs.queueOfHandle(s, s.Argument[0])
	if q == nil {
		return
	}
	if !q.dropReference() {
		qs.writeQueueEvent(s, q, wire.LifeRelease, false)
		return
	}
	delete(qs.byHandle, s.Argument[0])
	qs.ledger.countEnded(&q.object)
	qs.writeQueueEvent(s, q, wire.LifeEnd, false)
	if q.context != nil {
		q.context.queues--
		qs.contexts.endIfUnkept(s, q.context)
	}
}

func (qs *queues) writeSync(s *wire.Sample, op wire.Sync, q *queue) {
	e := wire.SyncFields{Sync: op, Duration: callDuration(s)}
	if q != nil {
		e.Scope, e.Queue = q.likely.scopeNumber(), q.number
	}
	qs.writeEvent(s, e.Event())
}

func (qs *queues) handleFinish(s *wire.Sample) {
	q := qs.byHandle[s.Argument[0]]
	if int32(s.Result) == 0 {
		q = qs.queueOfHandle(s, s.Argument[0])
	}
	qs.writeSync(s, wire.SyncFinish, q)
}

func (qs *queues) handleFlush(s *wire.Sample) {
	qs.writeSync(s, wire.SyncFlush, qs.queueOfHandle(s, s.Argument[0]))
}

func (qs *queues) handleWaitForEvents(s *wire.Sample) { qs.writeSync(s, wire.SyncWait, nil) }
