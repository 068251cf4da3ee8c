package calls

import "codeberg.org/gpumemtop/gpumemtop/internal/wire"

const (
	reads  = 1 << 0
	writes = 1 << 1
)

// extent is the bytes of an object that a command touches.
type extent struct {
	offset    uint64 // of the first, in the object
	bytes     uint64 // 0: unknown
	scattered bool   // with other bytes between them, or at an unknown place
}

// contiguousExtent is bytes without gaps.
func contiguousExtent(offset, bytes uint64) extent { return extent{offset: offset, bytes: bytes} }

// unplacedExtent is bytes at an unknown place.
func unplacedExtent(bytes uint64) extent { return extent{bytes: bytes, scattered: true} }

// access is a command's use of memory.
type access struct {
	memory   *memory
	extent   extent
	argument uint32 // of a kernel: 1 + its index; 0: none
	flags    uint8  // reads, writes; neither: unknown
}

// command is the enqueue that has returned last.
type command struct {
	*writer
	memories *memories
	contexts *contexts
	queues   *queues
	kernels  *kernels
	samplers *samplers

	sample  *wire.Sample
	queue   *queue // nil: unknown
	kernel  uint64
	op      wire.Command
	failed  bool
	status  int32 // 0: failed without a status
	unknown bool  // it names memory that we do not know
	more    bool  // it uses more memory than access has room for
	count   int
	access  [accessesMax]access
}

// beginCommand handles an enqueue that returned a status. end must follow.
func (c *command) beginCommand(s *wire.Sample, op wire.Command) {
	c.reset(s, op, int32(s.Result) != 0, int32(s.Result))
}

// beginPointerCommand handles an enqueue that returned a pointer. Its error is a later argument.
func (c *command) beginPointerCommand(s *wire.Sample) {
	c.reset(s, wire.CommandMap, s.Result == 0, 0)
}

func (c *command) reset(s *wire.Sample, op wire.Command, failed bool, err int32) {
	c.sample, c.op, c.failed, c.status = s, op, failed, err
	c.kernel, c.unknown, c.more, c.count = 0, false, false, 0
	if failed {
		c.queue = c.queues.byHandle[s.Argument[0]]
	} else {
		c.queue = c.queues.queueOfHandle(s, s.Argument[0])
	}
}

// likelyContext returns the context that a command's memory probably belongs to, nil if unknown.
func (c *command) likelyContext() *context {
	if c.queue == nil {
		return nil
	}
	return c.queue.likely
}

func (c *command) addAccess(a access) {
	if c.count == accessesMax {
		c.more = true
		return
	}
	c.access[c.count] = a
	c.count++
}

// noteUse notes that a command names memory. If we do not know it, kind is what it must be; least is the size that the
// command implies.
func (c *command) noteUse(handle uint64, kind wire.Memory, flags uint8, x extent, least uint64) {
	m := c.memories.byHandle[handle]
	switch {
	case m == nil:
		if handle == 0 || c.memories.findUseAfterFree(c.sample, handle, wire.DiagUseAfterRelease) {
			return
		}
		if c.failed {
			c.unknown = c.unknown || c.memories.findFreedHandle(handle) == nil
			return
		}
		if m = c.memories.addCarriedOver(c.sample, handle, evidence{kind, c.likelyContext(), least}); m == nil {
			return
		}
	case m.carried:
		if !c.failed {
			c.memories.raiseCarriedSize(c.sample, m, least)
		}
	case m.firstCall.time > c.sample.Entered: // the handle was another object's when the command was called
		return
	}
	c.addAccess(access{memory: m, extent: x, flags: flags})
}

func (c *command) noteBufferUse(handle uint64, flags uint8, x extent, least uint64) {
	c.noteUse(handle, wire.MemoryBuffer, flags, x, least)
}

// noteImageUse notes a command on a region of an image. The driver decides where its elements lie, unless they are all of
// the image.
func (c *command) noteImageUse(handle uint64, flags uint8, region []byte, least uint64) {
	x := unplacedExtent(c.imageBytes(handle, region))
	if m := c.memories.byHandle[handle]; x.bytes > 0 && x.bytes == m.size {
		x = contiguousExtent(0, x.bytes)
	}
	c.noteUse(handle, wire.MemoryImage, flags, x, least)
}

// imageBytes returns the bytes of a region of an image, 0 if its format is unknown.
func (c *command) imageBytes(handle uint64, region []byte) uint64 {
	m := c.memories.byHandle[handle]
	if m == nil {
		return 0
	}
	return mulSaturating(volumeOfRegion(region), uint64(m.element))
}

// noteListUse notes a list of memory. Only a migration is known to concern all bytes of each.
func (c *command) noteListUse(count uint64, kind wire.Memory) {
	list := c.sample.CopiedArgument(0)
	c.more = uint32(count) > uint32(countCopiedHandles(list, uint32(count))) // the rest was not copied
	for i := range countCopiedHandles(list, uint32(count)) {
		x := unplacedExtent(0)
		if c.op == wire.CommandMigrate {
			x = wholeExtent(c.memories.byHandle[numberAt(list, i)])
		}
		c.noteUse(numberAt(list, i), kind, 0, x, 0)
	}
}

// wholeExtent returns all bytes of memory, as far as they are known.
func wholeExtent(m *memory) extent {
	if m == nil || m.carried {
		return unplacedExtent(0)
	}
	return contiguousExtent(0, m.size)
}

// notePointerUse notes shared memory that begins at an address. An unknown address may be any host memory.
func (c *command) notePointerUse(address uint64, flags uint8, x extent) {
	if m := c.memories.byHandle[address]; m != nil && isPointerKind(m.kind) {
		c.addAccess(access{memory: m, extent: x, flags: flags})
	}
}

func (c *command) writeEvents(blocking bool) {
	if c.failed {
		c.writeRefusalFinding()
		return
	}
	if c.queue == nil {
		return
	}
	s := c.sample
	if c.queue.likely == nil && c.count > 0 {
		c.queue.likely = c.access[0].memory.context
	}
	if blocking {
		c.queues.writeSync(s, wire.SyncBlocking, c.queue)
	}
	for i := range c.count {
		in := c.queue.context
		if root := c.access[i].memory.rootMemory(); in != nil && root.context != nil && in != root.context {
			c.writeFinding(s, wire.DiagWrongContext, root, c.kernel, 0)
			break // a command is one mistake, however many arguments are of another context
		}
	}
	c.writeUses()
}

// writeUses writes one USE for each memory, one directly after the other. Those of a copy have the tag of the call.
func (c *command) writeUses() {
	var site uint32
	if c.op == wire.CommandCopy && c.count > 0 {
		site = c.tags.Tag(c.sample, c.access[0].extent.bytes)
	}
	if c.more {
		defer c.writeUnknownUse(c.sample, c.op, c.queue.number)
	}
	for i := range c.count {
		a := &c.access[i]
		m := a.memory
		e := wire.UseFields{
			ArgumentNumber: a.argument, Command: c.op, Reads: a.flags&reads != 0, Writes: a.flags&writes != 0,
			Scope: m.scope, Tag: m.tag, Object: m.number, Bytes: a.extent.bytes, Queue: c.queue.number,
		}
		switch c.op {
		case wire.CommandKernel:
			e.Kernel = c.kernel
		case wire.CommandNative: // gets pointers
		default:
			e.Offset, e.Scattered = a.extent.offset, a.extent.scattered
		}
		if c.op == wire.CommandCopy {
			e.Tag = site
		}
		c.writeEvent(c.sample, e.Event())
	}
}

// writeUnknownUse writes that a command uses memory that we do not know.
func (c *command) writeUnknownUse(s *wire.Sample, op wire.Command, queue uint64) {
	c.writeEvent(s, wire.UseFields{Command: op, Scattered: true, Queue: queue}.Event())
}

// handleCommandBuffer handles the replay of a command buffer, whose commands and queue we do not know.
func (c *command) handleCommandBuffer(s *wire.Sample) {
	if int32(s.Result) == 0 {
		c.writeUnknownUse(s, wire.CommandOther, 0)
	}
}

// writeRefusalFinding writes a finding if it explains why a command failed.
func (c *command) writeRefusalFinding() {
	if c.unknown && c.status == invalidMemory {
		c.writeRecord(c.sample, wire.DiagFields{
			Diag: wire.DiagUnknownMemory, Status: clampStatus(c.status),
		}.Record([]byte(c.function)))
	}
	if c.status != invalidContext && c.status != 0 || c.queue == nil || c.queue.context == nil {
		return
	}
	for i := range c.count {
		if m := c.access[i].memory; m.context != nil && m.context != c.queue.context {
			c.writeFinding(c.sample, wire.DiagWrongContext, m, 0, c.status)
			break
		}
	}
}

// handleRunKernel handles clEnqueueNDRangeKernel and clEnqueueTask.
func (c *command) handleRunKernel(s *wire.Sample) {
	c.beginCommand(s, wire.CommandKernel)
	if c.failed {
		c.noteArgumentUses(c.kernels.byHandle[s.Argument[1]])
	} else {
		c.noteArgumentUses(c.kernels.kernelOfHandle(s, s.Argument[1]))
	}
	c.writeEvents(false)
}

// noteArgumentUses notes the memory among a kernel's arguments. A released one is no mistake, since the kernel need not use it.
func (c *command) noteArgumentUses(k *kernel) {
	if k == nil {
		return
	}
	c.kernel = k.number
	for i, value := range k.arguments {
		if value == 0 {
			continue
		}
		m := c.memories.byHandle[argumentWithoutMarks(value)]
		if m == nil && !c.failed && value&isMarked == 0 {
			m = c.carryOverArgument(value)
		}
		if m != nil {
			c.addAccess(access{memory: m, argument: uint32(i) + 1, flags: m.kernelAccess()})
		}
	}
}

// kernelAccess says whether memory was made for a device only to write. Some programs write what is CL_MEM_READ_ONLY, and what the
// kernel declares is not visible.
func (m *memory) kernelAccess() uint8 {
	rights := m.access & (wire.ReadOnly | wire.WriteOnly)
	if rights == 0 && m.parent != nil { // a sub-buffer without flags has those of its buffer
		rights = m.parent.access
	}
	if rights&wire.WriteOnly != 0 {
		return writes
	}
	return 0
}

func (c *command) carryOverArgument(handle uint64) *memory {
	if g := c.memories.findFreedHandle(handle); g != nil && (!g.mayLive || !g.heldByKernel) || c.isOtherObject(handle) {
		return nil
	}
	return c.memories.addCarriedOver(c.sample, handle, evidence{kind: wire.MemoryBuffer, context: c.likelyContext()})
}

// isOtherObject reports whether a handle is certainly not memory.
func (c *command) isOtherObject(handle uint64) bool {
	return c.samplers.byHandle[handle] != nil || c.queues.byHandle[handle] != nil ||
		c.kernels.byHandle[handle] != nil || c.contexts.byHandle[handle] != nil
}

// handleRunNative handles host code in a queue.
func (c *command) handleRunNative(s *wire.Sample) {
	c.beginCommand(s, wire.CommandNative)
	c.noteListUse(s.Argument[4], wire.MemoryBuffer)
	c.writeEvents(false)
}

func (c *command) handleMigrate(s *wire.Sample) {
	c.beginCommand(s, wire.CommandMigrate)
	c.noteListUse(s.Argument[1], wire.MemoryBuffer)
	c.noteMigration(s.Argument[3])
	c.writeEvents(false)
}

// noteMigration notes with which flags the command migrates all that it uses: with undefined contents no bytes move.
func (c *command) noteMigration(flags uint64) {
	const contentUndefined = 1 << 1 // CL_MIGRATE_MEM_OBJECT_CONTENT_UNDEFINED
	if flags&contentUndefined == 0 {
		return
	}
	for i := range c.access[:c.count] {
		c.access[i].extent = unplacedExtent(0)
	}
}

// handleAcquireGL handles commands that acquire memory from OpenGL.
func (c *command) handleAcquireGL(s *wire.Sample) { c.exchangeWithGL(s, wire.CommandAcquire) }

// handleReleaseGL handles commands that release memory to OpenGL.
func (c *command) handleReleaseGL(s *wire.Sample) { c.exchangeWithGL(s, wire.CommandRelease) }

func (c *command) exchangeWithGL(s *wire.Sample, op wire.Command) {
	c.beginCommand(s, op)
	c.noteListUse(s.Argument[1], wire.MemoryExternal)
	c.writeEvents(false)
}
