package calls

import "codeberg.org/gpumemtop/gpumemtop/internal/wire"

// object is the common part of contexts, queues, kernels, samplers and programs.
type object struct {
	number     uint64
	references uint32
	carried    bool // existed before we attached: its references are unknown
	firstCall  firstCall
	counts     *counts
}

// release drops a reference and reports whether the object has ended. A carried object may have had more references than
// we know of.
func (o *object) release() bool {
	if o.references > 1 {
		o.references--
		return false
	}
	return !o.carried
}

// reportedWithin reports whether a call inside s has reported the object already.
func (o *object) reportedWithin(s *wire.Sample) bool { return !o.carried && o.firstCall.within(s) }

// carriedObject returns an object that existed before we attached.
func carriedObject(s *wire.Sample, number uint64) object {
	return object{number: number, references: 1, carried: true, firstCall: firstCallOf(s)}
}

func newObject(s *wire.Sample, number uint64) object {
	return object{number: number, references: 1, firstCall: firstCallOf(s)}
}

type context struct {
	object
	handle   uint64
	queues   int  // that the program holds; they keep the context
	released bool // the program has given up its own references
	slept    int  // the latest time that it has, in the tracker
}

// sleepingMax bounds how many contexts that nothing keeps may come back, as in the shim.
const sleepingMax = 64

// asleep reports whether neither the program nor a queue of its keeps the context: memory, which may, can lead to it again.
func (c *context) asleep() bool { return c.released && c.queues == 0 }

// scope returns the context's number for events, 0 if it is unknown.
func (c *context) scope() uint16 {
	if c == nil {
		return 0
	}
	return uint16(c.number)
}

func (t *Tracker) createContext(s *wire.Sample) {
	old := t.contexts[s.Result]
	if s.Result == 0 || old != nil && old.reportedWithin(s) || old == nil && len(t.contexts) >= objectsMax {
		return
	}
	t.endPrevious(s, s.Result)
	if old != nil {
		t.uncount(&old.object)
	}
	t.numbers.context++
	c := &context{object: newObject(s, t.numbers.context), handle: s.Result}
	t.count(s, &c.object, wire.HeldContext)
	t.contexts[s.Result] = c
	t.writeContext(s, c, wire.LifeCreate, false)
}

// contextOf returns the context of a handle that the driver accepts, nil if the handle is 0 or there is no room.
func (t *Tracker) contextOf(s *wire.Sample, handle uint64) *context {
	c := t.contexts[handle]
	if c != nil || handle == 0 || len(t.contexts) >= objectsMax {
		return c
	}
	t.numbers.context++
	c = &context{object: carriedObject(s, t.numbers.context), handle: handle}
	t.contexts[handle] = c
	t.writeContext(s, c, wire.LifeCreate, true)
	return c
}

func (t *Tracker) writeContext(s *wire.Sample, c *context, life wire.Life, carriedOver bool) {
	t.write(s, wire.ContextFields{Life: life, CarriedOver: carriedOver, Scope: c.scope(), Context: c.number}.Event())
}

func (t *Tracker) retainContext(s *wire.Sample) {
	if c := t.contextOf(s, s.Argument[0]); c != nil {
		if t.wake(s, c); !c.released {
			c.references++
		}
		c.released = false
		t.writeContext(s, c, wire.LifeRetain, false)
	}
}

func (t *Tracker) releaseContext(s *wire.Sample) {
	c := t.contextOf(s, s.Argument[0])
	if c == nil {
		return
	}
	if !c.released && c.release() {
		t.uncount(&c.object)
		c.released, c.counts = true, nil
		if t.sleep(s, c) {
			return
		}
	}
	t.writeContext(s, c, wire.LifeRelease, false)
}

// sleep ends a context if nothing keeps it any more, as the shim does.
func (t *Tracker) sleep(s *wire.Sample, c *context) bool {
	if !c.asleep() || t.contexts[c.handle] != c {
		return false
	}
	t.writeContext(s, c, wire.LifeEnd, false)
	t.sleeps++
	oldest := &t.sleeping[t.sleeps%sleepingMax]
	if o := *oldest; o != nil && o.asleep() && o.slept == t.sleeps-sleepingMax && t.contexts[o.handle] == o {
		delete(t.contexts, o.handle)
	}
	c.slept, *oldest = t.sleeps, c
	return true
}

// wake begins a context again that sleeps.
func (t *Tracker) wake(s *wire.Sample, c *context) {
	if c.asleep() {
		t.writeContext(s, c, wire.LifeCreate, c.carried)
	}
}

type queue struct {
	object
	context    *context // nil: uncertain
	likely     *context // that of memory used with it
	outOfOrder bool
}

// Properties of queues. (API specification, table of queue creation properties.)
const (
	queueProperties = 0x1093 // CL_QUEUE_PROPERTIES
	queueOutOfOrder = 1 << 0 // CL_QUEUE_OUT_OF_ORDER_EXEC_MODE_ENABLE
	queueOnDevice   = 1 << 2 // CL_QUEUE_ON_DEVICE, which is never in order
)

func (t *Tracker) createQueue(s *wire.Sample) { t.newQueue(s, s.Argument[2]) }

func (t *Tracker) createQueueWithProperties(s *wire.Sample) {
	list := s.Copy(0)
	for i := 0; i+1 < min(len(list), propertiesBytes)/8 && word(list, i) != 0; i += 2 {
		if word(list, i) == queueProperties {
			t.newQueue(s, word(list, i+1))
			return
		}
	}
	t.newQueue(s, 0)
}

func (t *Tracker) newQueue(s *wire.Sample, properties uint64) {
	old := t.queues[s.Result]
	if s.Result == 0 || old != nil && old.reportedWithin(s) || old == nil && len(t.queues) >= objectsMax {
		return
	}
	t.endPrevious(s, s.Result)
	if old != nil {
		t.uncount(&old.object)
	}
	in := t.contextOf(s, s.Argument[0])
	if in != nil {
		t.wake(s, in)
		in.queues++
	}
	t.numbers.queue++
	q := &queue{
		object: newObject(s, t.numbers.queue), context: in, likely: in,
		outOfOrder: properties&(queueOutOfOrder|queueOnDevice) != 0,
	}
	t.queues[s.Result] = q
	t.count(s, &q.object, wire.HeldQueue)
	t.writeQueue(s, q, wire.LifeCreate, false)
}

// queueOf returns the queue of a handle that the driver accepts, nil if the handle is 0 or there is no room.
func (t *Tracker) queueOf(s *wire.Sample, handle uint64) *queue {
	q := t.queues[handle]
	if q != nil || handle == 0 || len(t.queues) >= objectsMax {
		return q
	}
	t.numbers.queue++
	q = &queue{object: carriedObject(s, t.numbers.queue)}
	t.queues[handle] = q
	t.writeQueue(s, q, wire.LifeCreate, true)
	return q
}

func (t *Tracker) writeQueue(s *wire.Sample, q *queue, life wire.Life, carriedOver bool) {
	t.write(s, wire.QueueFields{
		Life: life, OutOfOrder: q.outOfOrder, CarriedOver: carriedOver, Scope: q.likely.scope(), Queue: q.number,
	}.Event())
}

func (t *Tracker) retainQueue(s *wire.Sample) {
	if q := t.queueOf(s, s.Argument[0]); q != nil {
		q.references++
		t.writeQueue(s, q, wire.LifeRetain, false)
	}
}

func (t *Tracker) releaseQueue(s *wire.Sample) {
	q := t.queueOf(s, s.Argument[0])
	if q == nil {
		return
	}
	if !q.release() {
		t.writeQueue(s, q, wire.LifeRelease, false)
		return
	}
	delete(t.queues, s.Argument[0])
	t.uncount(&q.object)
	t.writeQueue(s, q, wire.LifeEnd, false)
	if q.context != nil {
		q.context.queues--
		t.sleep(s, q.context)
	}
}
