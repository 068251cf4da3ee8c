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
	context  uint64 // handle; 0: that of the shared memory
	share    uint64 // handle of the memory that it shares; 0: none
	origin   uint64 // of a sub-buffer: 1 + its offset; 0: unknown
	least    uint64 // size that the shared memory has at least
	size     uint64
	flags    uint64
	element  uint64 // bytes of one element of an image; 0: unknown
	status   int32
	eligible bool // a pool could have served it
}

// recordCreate notes what a create call returned and writes its CREATE.
func (t *Tracker) recordCreate(s *wire.Sample, c *creation) {
	if old := t.memories[s.Result]; s.Result != 0 && old != nil {
		if !old.carried && old.firstCall.within(s) {
			return
		}
		t.endPrevious(s, s.Result)
	}
	parent := t.parentOf(s, c)
	e := wire.CreateFields{
		Memory: c.kind, Access: uint16(c.flags), Requested: c.size, Status: status(c.status),
		Duration: duration(s), Cost: duration(s), Outcome: wire.OutcomeFailed,
	}
	if parent != nil {
		e.Parent, e.Scope = parent.number, parent.scope
	}
	if c.kind == wire.MemorySubBuffer {
		e.OriginNumber = c.origin
	} else if parent == nil {
		e.Granted = c.size
	}
	in := t.contexts[c.context]
	if s.Result != 0 && in == nil {
		in = t.contextOf(s, c.context)
	}
	if in != nil {
		e.Scope = in.scope()
	} else if parent != nil {
		in = parent.context
	}
	e.Tag = t.tags.Tag(s, c.size)
	if s.Result == 0 || t.completeCreate(s, c, parent, in, &e) {
		t.write(s, e.Event())
	}
}

// completeCreate adds the new memory and completes its CREATE. It returns false if there is no room.
func (t *Tracker) completeCreate(s *wire.Sample, c *creation, parent *memory, in *context, e *wire.CreateFields) bool {
	m := t.addMemory(s, s.Result)
	if m == nil {
		return false
	}
	m.kind, m.context, m.size, m.tag = c.kind, in, e.Requested, e.Tag
	m.scope, m.access, m.element = e.Scope, e.Access, uint8(c.element)
	if parent != nil {
		m.adopt(parent)
	}
	e.Object, e.Outcome, e.Status = m.number, wire.OutcomeDriver, 0
	if c.eligible {
		e.Outcome, e.Reason = wire.OutcomeMiss, wire.MissPolicy // as under a pooling policy
	}
	return true
}

func (t *Tracker) createBuffer(s *wire.Sample) {
	t.createBufferOf(s, &wire.PoolRequest{Flags: s.Argument[1], Size: s.Argument[2], Contents: s.Argument[3] != 0})
}

func (t *Tracker) createBufferWithProperties(s *wire.Sample) {
	t.createBufferOf(s, &wire.PoolRequest{
		Properties: s.Argument[1] != 0, Flags: s.Argument[2], Size: s.Argument[3], Contents: s.Argument[4] != 0,
	})
}

// createBufferOf notes whether a pool could have served the buffer. The limit of the device is unknown.
func (t *Tracker) createBufferOf(s *wire.Sample, r *wire.PoolRequest) {
	r.Memory, r.Smallest = wire.MemoryBuffer, wire.CopyMin
	t.recordCreate(s, &creation{
		context: s.Argument[0], flags: r.Flags, size: r.Size, status: s.Error, eligible: r.Ineligible() == wire.IneligibleNone,
	})
}

func (t *Tracker) createSubBuffer(s *wire.Sample) {
	c := creation{kind: wire.MemorySubBuffer, flags: s.Argument[1], status: s.Error, share: s.Argument[0]}
	if region := s.Copy(0); region != nil && uint32(s.Argument[2]) == regionType {
		c.size = word(region, 1)
		c.origin = word(region, 0) + 1
		c.least = addSaturating(word(region, 0), c.size)
	}
	t.recordCreate(s, &c)
}

// parentOf returns the memory that a new object shares, nil if it has memory of its own.
func (t *Tracker) parentOf(s *wire.Sample, c *creation) *memory {
	if c.share == 0 || c.share == s.Result {
		return nil
	}
	m := t.memories[c.share]
	if m == nil {
		if t.checkFreed(s, c.share, wire.DiagUseAfterRelease) || s.Result == 0 {
			return nil
		}
		m = t.carryOver(s, c.share, evidence{kind: wire.MemoryBuffer, context: t.contexts[c.context], size: c.least})
	} else if s.Result != 0 {
		t.grow(s, m, c.least)
	}
	if m == nil || m.depth >= depthMax {
		return nil
	}
	return m
}

func (t *Tracker) createImage(s *wire.Sample) { t.createImageOf(s, 1, s.Error) }

// createImageWithProperties: the error is the seventh argument.
func (t *Tracker) createImageWithProperties(s *wire.Sample) { t.createImageOf(s, 2, 0) }

func (t *Tracker) createImageOf(s *wire.Sample, flags int, err int32) {
	c := creation{
		kind: wire.MemoryImage, context: s.Argument[0], flags: s.Argument[flags], element: elementSize(s.Copy(0)), status: err,
	}
	desc := descOf(s.Copy(1))
	c.share, c.least = desc.memory, desc.bytes(c.element)
	if s.Result != 0 {
		c.size = c.least
	}
	t.recordCreate(s, &c)
}

func (t *Tracker) createImage2D(s *wire.Sample) {
	desc := description{kind: image2D, width: s.Argument[3], height: s.Argument[4], row: s.Argument[5]}
	t.createOldImage(s, &desc)
}

// createImage3D: the pitches of the host memory are later arguments.
func (t *Tracker) createImage3D(s *wire.Sample) {
	desc := description{kind: image3D, width: s.Argument[3], height: s.Argument[4], depth: s.Argument[5]}
	t.createOldImage(s, &desc)
}

func (t *Tracker) createOldImage(s *wire.Sample, desc *description) {
	c := creation{kind: wire.MemoryImage, context: s.Argument[0], flags: s.Argument[1], element: elementSize(s.Copy(0))}
	if s.Result != 0 {
		c.size = desc.bytes(c.element)
	}
	t.recordCreate(s, &c)
}

func (t *Tracker) createPipe(s *wire.Sample) {
	c := creation{kind: wire.MemoryPipe, context: s.Argument[0], flags: s.Argument[1], status: s.Error}
	if s.Result != 0 {
		c.size = uint64(uint32(s.Argument[2])) * uint64(uint32(s.Argument[3]))
	}
	t.recordCreate(s, &c)
}

func (t *Tracker) createFromGL(s *wire.Sample) {
	t.recordCreate(s, &creation{kind: wire.MemoryExternal, context: s.Argument[0], flags: s.Argument[1], status: s.Error})
}

// allocateSVM handles clSVMAlloc, which fails without a status.
func (t *Tracker) allocateSVM(s *wire.Sample) {
	c := creation{kind: wire.MemorySVM, context: s.Argument[0], flags: s.Argument[1], size: s.Argument[2], status: allocationFailure}
	if alignment := uint32(s.Argument[3]); c.size == 0 || alignment&(alignment-1) != 0 {
		c.status = invalidValue
	}
	t.recordCreate(s, &c)
}

// allocateHost has a flag that buffers have for such memory, as in the shim.
func (t *Tracker) allocateHost(s *wire.Sample) {
	t.recordCreate(s, &creation{kind: wire.MemoryUSMHost, context: s.Argument[0], flags: wire.AllocHostPtr, size: s.Argument[2], status: s.Error})
}

func (t *Tracker) allocateDevice(s *wire.Sample) {
	t.allocateUSM(s, wire.MemoryUSMDevice, s.Argument[3])
}

func (t *Tracker) allocateShared(s *wire.Sample) {
	t.allocateUSM(s, wire.MemoryUSMShared, s.Argument[3])
}

func (t *Tracker) allocateUSM(s *wire.Sample, kind wire.Memory, size uint64) {
	t.recordCreate(s, &creation{kind: kind, context: s.Argument[0], size: size, status: s.Error})
}
