package calls

import "codeberg.org/gpumemtop/gpumemtop/internal/wire"

type context struct {
	object
	handle   uint64
	queues   int  // queues that the program holds, which keep the context
	released bool // the program has given up its own references
	slept    int  // number of the latest sleep, counted in the tracker
}

// contexts are those of a process, by handle.
type contexts struct {
	*writer
	ledger   *ledger
	memories *memories

	byHandle map[uint64]*context
	last     uint64                // number of the latest
	sleeping [sleepingMax]*context // the latest
	sleeps   int
}

// sleepingMax bounds the sleeping contexts that can wake, as in the shim.
const sleepingMax = 64

// isUnkept reports whether neither the program nor its queues keep the context. Memory may still lead to it and wake it.
func (c *context) isUnkept() bool { return c.released && c.queues == 0 }

// scopeNumber returns the context's number for events, 0 if it is unknown.
func (c *context) scopeNumber() uint16 {
	if c == nil {
		return 0
	}
	return uint16(c.number)
}

func (cs *contexts) handleCreate(s *wire.Sample) {
	old := cs.byHandle[s.Result]
	if s.Result == 0 || old != nil && old.isFromNestedCall(s) || old == nil && len(cs.byHandle) >= objectsMax {
		return
	}
	cs.memories.endPreviousOfHandle(s, s.Result)
	if old != nil {
		cs.ledger.countEnded(&old.object)
	}
	cs.last++
	c := &context{object: newObject(s, cs.last), handle: s.Result}
	cs.ledger.countCreated(s, &c.object, wire.HeldContext)
	cs.byHandle[s.Result] = c
	cs.writeContextEvent(s, c, wire.LifeCreate, false)
}

// contextOfHandle returns the context of a handle that the driver accepts, nil if the handle is 0 or there is no room.
func (cs *contexts) contextOfHandle(s *wire.Sample, handle uint64) *context {
	c := cs.byHandle[handle]
	if c != nil || handle == 0 || len(cs.byHandle) >= objectsMax {
		return c
	}
	cs.last++
	c = &context{object: carriedObject(s, cs.last), handle: handle}
	cs.byHandle[handle] = c
	cs.writeContextEvent(s, c, wire.LifeCreate, true)
	return c
}

func (cs *contexts) writeContextEvent(s *wire.Sample, c *context, life wire.Life, carriedOver bool) {
	cs.writeEvent(s, wire.ContextFields{Life: life, CarriedOver: carriedOver, Scope: c.scopeNumber(), Context: c.number}.Event())
}

func (cs *contexts) handleRetain(s *wire.Sample) {
	if c := cs.contextOfHandle(s, s.Argument[0]); c != nil {
		if cs.wakeContext(s, c); !c.released {
			c.references++
		}
		c.released = false
		cs.writeContextEvent(s, c, wire.LifeRetain, false)
	}
}

func (cs *contexts) handleRelease(s *wire.Sample) {
	c := cs.contextOfHandle(s, s.Argument[0])
	if c == nil {
		return
	}
	if !c.released && c.dropReference() {
		cs.ledger.countEnded(&c.object)
		c.released, c.counts = true, nil
		if cs.endIfUnkept(s, c) {
			return
		}
	}
	cs.writeContextEvent(s, c, wire.LifeRelease, false)
}

// endIfUnkept ends a context once nothing keeps it, as the shim does.
func (cs *contexts) endIfUnkept(s *wire.Sample, c *context) bool {
	if !c.isUnkept() || cs.byHandle[c.handle] != c {
		return false
	}
	cs.writeContextEvent(s, c, wire.LifeEnd, false)
	cs.sleeps++
	oldest := &cs.sleeping[cs.sleeps%sleepingMax]
	if o := *oldest; o != nil && o.isUnkept() && o.slept == cs.sleeps-sleepingMax && cs.byHandle[o.handle] == o {
		delete(cs.byHandle, o.handle)
	}
	c.slept, *oldest = cs.sleeps, c
	return true
}

// wakeContext begins a sleeping context again.
func (cs *contexts) wakeContext(s *wire.Sample, c *context) {
	if c.isUnkept() {
		cs.writeContextEvent(s, c, wire.LifeCreate, c.carried)
	}
}
