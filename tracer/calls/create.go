package calls

import "codeberg.org/gpumemtop/gpumemtop/internal/wire"

// OpenCL error codes.
const (
	allocationFailure = -4  // CL_MEM_OBJECT_ALLOCATION_FAILURE
	invalidValue      = -30 // CL_INVALID_VALUE
	invalidContext    = -34 // CL_INVALID_CONTEXT
	invalidMemory     = -38 // CL_INVALID_MEM_OBJECT

	regionType = 0x1220 // CL_BUFFER_CREATE_TYPE_REGION
)

// creation is a create call that has returned.
type creation struct {
	kind     wire.Memory
	context  uint64 // handle; 0: the context of the shared memory
	share    uint64 // handle of the memory that it shares; 0: none
	origin   uint64 // of a sub-buffer: 1 + its offset; 0: unknown
	least    uint64 // least size of the shared memory
	size     uint64
	flags    uint64
	element  uint64 // bytes of one element of an image; 0: unknown
	status   int32
	eligible bool // a pool could have served it
	offPage  bool // it is in memory of the program that begins at no multiple of wire.Page
}

// creates handles calls that create memory.
type creates struct {
	*writer
	memories *memories
	contexts *contexts
}

// noteCreatedObject notes the object that a create call has returned, and writes its CREATE.
func (cr *creates) noteCreatedObject(s *wire.Sample, c *creation) {
	if old := cr.memories.byHandle[s.Result]; s.Result != 0 && old != nil {
		if !old.carried && old.firstCall.isNested(s) {
			return
		}
		cr.memories.endPreviousOfHandle(s, s.Result)
	}
	parent := cr.parentOfCreation(s, c)
	e := wire.CreateFields{
		Memory: c.kind, Access: uint16(c.flags), Requested: c.size, Status: clampStatus(c.status),
		Duration: callDuration(s), Cost: callDuration(s), Outcome: wire.OutcomeFailed, OffPage: c.offPage,
	}
	if parent != nil {
		e.Parent, e.Scope = parent.number, parent.scope
	}
	if c.kind == wire.MemorySubBuffer {
		e.OriginNumber = c.origin
	} else if parent == nil {
		e.Granted = c.size
	}
	in := cr.contexts.byHandle[c.context]
	if s.Result != 0 && in == nil {
		in = cr.contexts.contextOfHandle(s, c.context)
	}
	if in != nil {
		e.Scope = in.scopeNumber()
	} else if parent != nil {
		in = parent.context
	}
	e.Tag = cr.tags.Tag(s, c.size)
	if s.Result == 0 || cr.completeCreate(s, c, parent, in, &e) {
		cr.writeEvent(s, e.Event())
	}
}

// completeCreate adds the new memory and completes its CREATE. It returns false if there is no room.
func (cr *creates) completeCreate(s *wire.Sample, c *creation, parent *memory, in *context, e *wire.CreateFields) bool {
	m := cr.memories.addMemory(s, s.Result)
	if m == nil {
		return false
	}
	m.kind, m.context, m.size, m.tag = c.kind, in, e.Requested, e.Tag
	m.scope, m.access, m.element = e.Scope, e.Access, uint8(c.element)
	if parent != nil {
		m.becomeChildOf(parent)
	}
	e.Object, e.Outcome, e.Status = m.number, wire.OutcomeDriver, 0
	if c.eligible {
		e.Outcome, e.Reason = wire.OutcomeMiss, wire.MissPolicy // as under a pooling policy
	}
	return true
}

func (cr *creates) handleBuffer(s *wire.Sample) {
	cr.addBufferCreation(s, &wire.PoolRequest{Flags: s.Argument[1], Size: s.Argument[2], Contents: s.Argument[3] != 0}, s.Argument[3])
}

func (cr *creates) handleBufferWithProperties(s *wire.Sample) {
	cr.addBufferCreation(s, &wire.PoolRequest{
		Properties: s.Argument[1] != 0, Flags: s.Argument[2], Size: s.Argument[3], Contents: s.Argument[4] != 0,
	}, s.Argument[4])
}

// addBufferCreation notes whether a pool could have served the buffer. The limit of the device is unknown.
func (cr *creates) addBufferCreation(s *wire.Sample, r *wire.PoolRequest, host uint64) {
	r.Memory, r.Smallest = wire.MemoryBuffer, wire.CopyMin
	cr.noteCreatedObject(s, &creation{
		context: s.Argument[0], flags: r.Flags, size: r.Size, status: s.Error, eligible: r.Ineligible() == wire.IneligibleNone,
		offPage: r.Flags&wire.UseHostPtr != 0 && host%wire.Page != 0,
	})
}

func (cr *creates) handleSubBuffer(s *wire.Sample) {
	c := creation{kind: wire.MemorySubBuffer, flags: s.Argument[1], status: s.Error, share: s.Argument[0]}
	if region := s.CopiedArgument(0); region != nil && uint32(s.Argument[2]) == regionType {
		c.size = numberAt(region, 1)
		c.origin = numberAt(region, 0) + 1
		c.least = addSaturating(numberAt(region, 0), c.size)
	}
	cr.noteCreatedObject(s, &c)
}

// parentOfCreation returns the memory that a new object shares, nil if it has memory of its own.
func (cr *creates) parentOfCreation(s *wire.Sample, c *creation) *memory {
	if c.share == 0 || c.share == s.Result {
		return nil
	}
	m := cr.memories.byHandle[c.share]
	if m == nil {
		if cr.memories.findUseAfterFree(s, c.share, wire.DiagUseAfterRelease) || s.Result == 0 {
			return nil
		}
		m = cr.memories.addCarriedOver(s, c.share, evidence{kind: wire.MemoryBuffer, context: cr.contexts.byHandle[c.context], size: c.least})
	} else if s.Result != 0 {
		cr.memories.raiseCarriedSize(s, m, c.least)
	}
	if m == nil || m.depth >= depthMax {
		return nil
	}
	return m
}

func (cr *creates) handlePipe(s *wire.Sample) {
	c := creation{kind: wire.MemoryPipe, context: s.Argument[0], flags: s.Argument[1], status: s.Error}
	if s.Result != 0 {
		c.size = uint64(uint32(s.Argument[2])) * uint64(uint32(s.Argument[3]))
	}
	cr.noteCreatedObject(s, &c)
}

func (cr *creates) handleFromGL(s *wire.Sample) {
	cr.noteCreatedObject(s, &creation{kind: wire.MemoryExternal, context: s.Argument[0], flags: s.Argument[1], status: s.Error})
}
