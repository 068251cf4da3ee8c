package calls

import "codeberg.org/gpumemtop/gpumemtop/internal/wire"

// Flags of memory. (API specification, table of memory flags.)
const (
	memoryReadWrite     = 1 << 0 // CL_MEM_READ_WRITE
	memoryWriteOnly     = 1 << 1
	memoryReadOnly      = 1 << 2
	memoryAllocHost     = 1 << 4 // CL_MEM_ALLOC_HOST_PTR
	memoryCopyHost      = 1 << 5 // CL_MEM_COPY_HOST_PTR
	memoryHostWriteOnly = 1 << 7
	memoryHostReadOnly  = 1 << 8
	memoryHostNoAccess  = 1 << 9

	deviceAccess = memoryReadWrite | memoryWriteOnly | memoryReadOnly
	hostAccess   = memoryHostWriteOnly | memoryHostReadOnly | memoryHostNoAccess
)

// copyMin is the size from which a buffer that starts as a copy of host memory could come from a pool: that of the
// command's sessions.
const copyMin = 4 << 20

// Codes of OpenCL.
const (
	allocationFailure = -4  // CL_MEM_OBJECT_ALLOCATION_FAILURE
	invalidValue      = -30 // CL_INVALID_VALUE
	invalidContext    = -34 // CL_INVALID_CONTEXT
	invalidMemory     = -38 // CL_INVALID_MEM_OBJECT

	regionType = 0x1220 // CL_BUFFER_CREATE_TYPE_REGION
)

// creation is a create that has returned.
type creation struct {
	kind     wire.Memory
	context  uint64 // handle, 0: that of what it shares
	share    uint64 // handle of the memory that it shares, 0: none
	origin   uint64 // of a sub-buffer: 1 + its offset in what it shares; 0: unknown
	least    uint64 // bytes that this has at least
	size     uint64
	flags    uint64
	element  uint64 // bytes of one element of an image; 0: unknown
	status   int32
	eligible bool // a pool could have served it
}

// created enters what a create has returned, and writes its CREATE.
func (b *Book) created(s *wire.Sample, c *creation) {
	if old := b.memories[s.Result]; s.Result != 0 && old != nil {
		if !old.carried && old.birth.within(s) {
			return
		}
		b.displace(s, s.Result)
	}
	parent := b.shared(s, c)
	e := wire.Event{
		Kind: wire.KindCreate, Op: uint8(c.kind), Access: uint16(c.flags), Size: c.size, Status: status(c.status),
		Duration: duration(s), Cost: duration(s), Outcome: wire.OutcomeFailed,
	}
	if parent != nil {
		e.Link, e.Scope = parent.number, parent.scope
	}
	if c.kind == wire.MemorySubBuffer {
		e.Granted = c.origin
	} else if parent == nil {
		e.Granted = c.size
	}
	in := b.contexts[c.context]
	if s.Result != 0 && in == nil {
		in = b.contextOf(s, c.context)
	}
	if in != nil {
		e.Scope = in.scope()
	} else if parent != nil {
		in = parent.context
	}
	e.Tag = b.tags.Tag(s, c.size)
	if s.Result == 0 || b.enter(s, c, parent, in, &e) {
		b.write(s, e)
	}
}

// enter completes the CREATE of what was made; false: there is no room for it.
func (b *Book) enter(s *wire.Sample, c *creation, parent *memory, in *context, e *wire.Event) bool {
	m := b.add(s, s.Result)
	if m == nil {
		return false
	}
	m.kind, m.context, m.size, m.tag = c.kind, in, e.Size, e.Tag
	m.scope, m.access, m.element = e.Scope, e.Access, uint8(c.element)
	if parent != nil {
		m.adopt(parent)
	}
	e.Object, e.Outcome, e.Status = m.number, wire.OutcomeDriver, 0
	if c.eligible {
		e.Outcome, e.Reason = wire.OutcomeMiss, uint8(wire.MissPolicy) // what a policy would have seen
	}
	return true
}

func (b *Book) createBuffer(s *wire.Sample) {
	flags, size, host := s.Argument[1], s.Argument[2], s.Argument[3]
	b.created(s, &creation{
		context: s.Argument[0], flags: flags, size: size, status: s.Error, eligible: eligible(flags, size, host),
	})
}

// createBufferWithProperties: properties are given back by queries word for word, so a pool leaves them to the driver.
func (b *Book) createBufferWithProperties(s *wire.Sample) {
	flags, size, host := s.Argument[2], s.Argument[3], s.Argument[4]
	b.created(s, &creation{
		context: s.Argument[0], flags: flags, size: size, status: s.Error,
		eligible: s.Argument[1] == 0 && eligible(flags, size, host),
	})
}

// eligible is gmt_pool_eligible of shim/pool.c.
func eligible(flags, size, host uint64) bool {
	const known = deviceAccess | hostAccess | memoryAllocHost | memoryCopyHost
	copied := flags&memoryCopyHost != 0
	if copied && (size < copyMin || flags&(memoryHostReadOnly|memoryHostNoAccess) != 0) {
		return false
	}
	return copied == (host != 0) && size > 0 && flags&^known == 0 && atMostOne(flags&deviceAccess) && atMostOne(flags&hostAccess)
}

// atMostOne says so of the bits of flags.
func atMostOne(flags uint64) bool { return flags&(flags-1) == 0 }

func (b *Book) createSubBuffer(s *wire.Sample) {
	c := creation{kind: wire.MemorySubBuffer, flags: s.Argument[1], status: s.Error, share: s.Argument[0]}
	if region := s.Copy(0); region != nil && uint32(s.Argument[2]) == regionType {
		c.size = word(region, 1)
		c.origin = word(region, 0) + 1
		c.least = plus(word(region, 0), c.size)
	}
	b.created(s, &c)
}

// shared returns the memory that a create makes another object of; nil when there is none.
func (b *Book) shared(s *wire.Sample, c *creation) *memory {
	if c.share == 0 || c.share == s.Result {
		return nil
	}
	m := b.memories[c.share]
	if m == nil {
		if b.dead(s, c.share, wire.DiagUseAfterRelease) || s.Result == 0 {
			return nil
		}
		m = b.learn(s, c.share, sighting{kind: wire.MemoryBuffer, context: b.contexts[c.context], size: c.least})
	} else if s.Result != 0 {
		b.grow(s, m, c.least)
	}
	if m == nil || m.depth >= depthMax {
		return nil
	}
	return m
}

func (b *Book) createImage(s *wire.Sample) { b.createImageOf(s, 1, s.Error) }

// createImageWithProperties: the error comes as its seventh argument.
func (b *Book) createImageWithProperties(s *wire.Sample) { b.createImageOf(s, 2, 0) }

func (b *Book) createImageOf(s *wire.Sample, flags int, err int32) {
	c := creation{
		kind: wire.MemoryImage, context: s.Argument[0], flags: s.Argument[flags], element: elementSize(s.Copy(0)), status: err,
	}
	desc := descOf(s.Copy(1))
	c.share, c.least = desc.memory, desc.bytes(c.element)
	if s.Result != 0 {
		c.size = c.least
	}
	b.created(s, &c)
}

func (b *Book) createImage2D(s *wire.Sample) {
	desc := description{kind: image2D, width: s.Argument[3], height: s.Argument[4], row: s.Argument[5]}
	b.createOldImage(s, &desc)
}

// createImage3D: the pitches of its host memory come as later arguments.
func (b *Book) createImage3D(s *wire.Sample) {
	desc := description{kind: image3D, width: s.Argument[3], height: s.Argument[4], depth: s.Argument[5]}
	b.createOldImage(s, &desc)
}

func (b *Book) createOldImage(s *wire.Sample, desc *description) {
	c := creation{kind: wire.MemoryImage, context: s.Argument[0], flags: s.Argument[1], element: elementSize(s.Copy(0))}
	if s.Result != 0 {
		c.size = desc.bytes(c.element)
	}
	b.created(s, &c)
}

func (b *Book) createPipe(s *wire.Sample) {
	c := creation{kind: wire.MemoryPipe, context: s.Argument[0], flags: s.Argument[1], status: s.Error}
	if s.Result != 0 {
		c.size = uint64(uint32(s.Argument[2])) * uint64(uint32(s.Argument[3]))
	}
	b.created(s, &c)
}

func (b *Book) createFromGL(s *wire.Sample) {
	b.created(s, &creation{kind: wire.MemoryExternal, context: s.Argument[0], flags: s.Argument[1], status: s.Error})
}

// allocateSVM is clSVMAlloc, which fails without saying why.
func (b *Book) allocateSVM(s *wire.Sample) {
	c := creation{kind: wire.MemorySVM, context: s.Argument[0], size: s.Argument[2], status: allocationFailure}
	if c.size == 0 {
		c.status = invalidValue
	}
	b.created(s, &c)
}

func (b *Book) allocateHost(s *wire.Sample) { b.allocateUSM(s, wire.MemoryUSMHost, s.Argument[2]) }

func (b *Book) allocateDevice(s *wire.Sample) { b.allocateUSM(s, wire.MemoryUSMDevice, s.Argument[3]) }

func (b *Book) allocateShared(s *wire.Sample) { b.allocateUSM(s, wire.MemoryUSMShared, s.Argument[3]) }

func (b *Book) allocateUSM(s *wire.Sample, kind wire.Memory, size uint64) {
	b.created(s, &creation{kind: kind, context: s.Argument[0], size: size, status: s.Error})
}
