package calls

import "codeberg.org/gpumemtop/gpumemtop/internal/wire"

// object is what contexts, queues, kernels and samplers have in common.
type object struct {
	number     uint64
	references uint32
	carried    bool // it was there before: its references are not known
	birth      birth
}

// release takes a reference and reports whether the object is to be forgotten. One that was there before may have had
// more references than anybody saw.
func (o *object) release() bool {
	if o.references > 1 {
		o.references--
		return false
	}
	return !o.carried
}

// made reports whether an object that a call returned was told of already, by a call inside it.
func (o *object) made(s *wire.Sample) bool { return !o.carried && o.birth.within(s) }

// learnt returns an object that was there before.
func learnt(s *wire.Sample, number uint64) object {
	return object{number: number, references: 1, carried: true, birth: birthOf(s)}
}

func born(s *wire.Sample, number uint64) object {
	return object{number: number, references: 1, birth: birthOf(s)}
}

// flags are those of the record with which an object begins.
func (o *object) flags() uint8 {
	if o.carried {
		return wire.FlagCarried
	}
	return 0
}

type context struct{ object }

// scope is how events name a context: 0 when it is unknown.
func (c *context) scope() uint16 {
	if c == nil {
		return 0
	}
	return uint16(c.number)
}

func (b *Book) createContext(s *wire.Sample) {
	old := b.contexts[s.Result]
	if s.Result == 0 || old != nil && old.made(s) || old == nil && len(b.contexts) >= objectsMax {
		return
	}
	b.displace(s, s.Result)
	b.numbers.context++
	c := &context{born(s, b.numbers.context)}
	b.contexts[s.Result] = c
	b.writeContext(s, c, wire.LifeCreate, 0)
}

// contextOf returns the context with a handle that the driver has accepted, or will; nil when there is none.
func (b *Book) contextOf(s *wire.Sample, handle uint64) *context {
	c := b.contexts[handle]
	if c != nil || handle == 0 || len(b.contexts) >= objectsMax {
		return c
	}
	b.numbers.context++
	c = &context{learnt(s, b.numbers.context)}
	b.contexts[handle] = c
	b.writeContext(s, c, wire.LifeCreate, c.flags())
	return c
}

func (b *Book) writeContext(s *wire.Sample, c *context, life wire.Life, flags uint8) {
	b.write(s, wire.Event{Kind: wire.KindContext, Op: uint8(life), Scope: c.scope(), Object: c.number, Flags: flags})
}

func (b *Book) retainContext(s *wire.Sample) {
	if c := b.contextOf(s, s.Argument[0]); c != nil {
		c.references++
		b.writeContext(s, c, wire.LifeRetain, 0)
	}
}

func (b *Book) releaseContext(s *wire.Sample) {
	c := b.contextOf(s, s.Argument[0])
	if c == nil {
		return
	}
	life := wire.LifeRelease
	if c.release() {
		delete(b.contexts, s.Argument[0])
		life = wire.LifeEnd
	}
	b.writeContext(s, c, life, 0)
}

type queue struct {
	object
	context    *context // nil: not surely known
	likely     *context // that of memory which it was used with
	outOfOrder bool
}

// Properties of queues. (API specification, table of queue creation properties.)
const (
	queueProperties = 0x1093 // CL_QUEUE_PROPERTIES
	queueOutOfOrder = 1 << 0 // CL_QUEUE_OUT_OF_ORDER_EXEC_MODE_ENABLE
	queueOnDevice   = 1 << 2 // CL_QUEUE_ON_DEVICE, which is never in order
)

func (b *Book) createQueue(s *wire.Sample) { b.newQueue(s, s.Argument[2]) }

func (b *Book) createQueueWithProperties(s *wire.Sample) {
	list := s.Copy(0)
	for i := 0; i+1 < min(len(list), propertiesBytes)/8 && word(list, i) != 0; i += 2 {
		if word(list, i) == queueProperties {
			b.newQueue(s, word(list, i+1))
			return
		}
	}
	b.newQueue(s, 0)
}

func (b *Book) newQueue(s *wire.Sample, properties uint64) {
	old := b.queues[s.Result]
	if s.Result == 0 || old != nil && old.made(s) || old == nil && len(b.queues) >= objectsMax {
		return
	}
	b.displace(s, s.Result)
	in := b.contextOf(s, s.Argument[0])
	b.numbers.queue++
	q := &queue{
		object: born(s, b.numbers.queue), context: in, likely: in,
		outOfOrder: properties&(queueOutOfOrder|queueOnDevice) != 0,
	}
	b.queues[s.Result] = q
	b.writeQueue(s, q, wire.LifeCreate, 0)
}

// queueOf returns the queue with a handle that the driver has accepted, or will; nil when there is none.
func (b *Book) queueOf(s *wire.Sample, handle uint64) *queue {
	q := b.queues[handle]
	if q != nil || handle == 0 || len(b.queues) >= objectsMax {
		return q
	}
	b.numbers.queue++
	q = &queue{object: learnt(s, b.numbers.queue)}
	b.queues[handle] = q
	b.writeQueue(s, q, wire.LifeCreate, q.flags())
	return q
}

func (b *Book) writeQueue(s *wire.Sample, q *queue, life wire.Life, flags uint8) {
	if q.outOfOrder {
		flags |= wire.FlagOutOfOrder
	}
	b.write(s, wire.Event{Kind: wire.KindQueue, Op: uint8(life), Flags: flags, Scope: q.likely.scope(), Object: q.number})
}

func (b *Book) retainQueue(s *wire.Sample) {
	if q := b.queueOf(s, s.Argument[0]); q != nil {
		q.references++
		b.writeQueue(s, q, wire.LifeRetain, 0)
	}
}

func (b *Book) releaseQueue(s *wire.Sample) {
	q := b.queueOf(s, s.Argument[0])
	if q == nil {
		return
	}
	life := wire.LifeRelease
	if q.release() {
		delete(b.queues, s.Argument[0])
		life = wire.LifeEnd
	}
	b.writeQueue(s, q, life, 0)
}
