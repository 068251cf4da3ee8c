package calls

import "codeberg.org/gpumemtop/gpumemtop/internal/wire"

// pointers handles calls on shared memory.
type pointers struct {
	memories *memories
	contexts *contexts
	queues   *queues
	creates  *creates
	command  *command
}

// handleAllocateSVM handles clSVMAlloc, which fails without a status.
func (p *pointers) handleAllocateSVM(s *wire.Sample) {
	c := creation{kind: wire.MemorySVM, context: s.Argument[0], flags: s.Argument[1], size: s.Argument[2], status: allocationFailure}
	if alignment := uint32(s.Argument[3]); c.size == 0 || alignment&(alignment-1) != 0 {
		c.status = invalidValue
	}
	p.creates.noteCreatedObject(s, &c)
}

// handleAllocateHost has a flag that buffers have for such memory, as in the shim.
func (p *pointers) handleAllocateHost(s *wire.Sample) {
	p.creates.noteCreatedObject(s, &creation{kind: wire.MemoryUSMHost, context: s.Argument[0], flags: wire.AllocHostPtr, size: s.Argument[2], status: s.Error})
}

func (p *pointers) handleAllocateDevice(s *wire.Sample) {
	p.allocateUSM(s, wire.MemoryUSMDevice, s.Argument[3])
}

func (p *pointers) handleAllocateShared(s *wire.Sample) {
	p.allocateUSM(s, wire.MemoryUSMShared, s.Argument[3])
}

func (p *pointers) allocateUSM(s *wire.Sample, kind wire.Memory, size uint64) {
	p.creates.noteCreatedObject(s, &creation{kind: kind, context: s.Argument[0], size: size, status: s.Error})
}

// endMemoryAt ends shared memory.
func (p *pointers) endMemoryAt(s *wire.Sample, address uint64, in *context) {
	m := p.memories.byHandle[address]
	if m == nil {
		if address == 0 || p.memories.findFreedHandle(address) != nil {
			return
		}
		if m = p.memories.addCarriedOver(s, address, evidence{kind: wire.MemorySVM, context: in}); m == nil {
			return
		}
	}
	if isPointerKind(m.kind) {
		m.references = 0
		p.memories.writeRelease(s, m, 0, wire.OutcomeDriver, false)
		p.memories.forgetMemory(s, m)
	}
}

func (p *pointers) handleFree(s *wire.Sample) {
	p.endMemoryAt(s, s.Argument[1], p.contexts.byHandle[s.Argument[0]])
}

// handleFreeAll handles clEnqueueSVMFree. Its list may be gone when it returns. With a callback the program itself frees the
// memory.
func (p *pointers) handleFreeAll(s *wire.Sample) {
	if s.Argument[3] != 0 {
		return
	}
	var in *context
	if q := p.queues.byHandle[s.Argument[0]]; q != nil {
		in = q.likely
	}
	addresses := s.CopiedArgument(0)
	for i := range countCopiedHandles(addresses, uint32(s.Argument[1])) {
		p.endMemoryAt(s, numberAt(addresses, i), in)
	}
}

// Commands on shared memory. clEnqueueSVMMemcpy and clEnqueueMemcpyINTEL have the same first arguments, as do
// clEnqueueSVMMemFill and clEnqueueMemFillINTEL.

func (p *pointers) handleCopy(s *wire.Sample) {
	c := p.command
	c.beginCommand(s, wire.CommandCopy)
	to, from, size := s.Argument[2], s.Argument[3], s.Argument[4]
	c.notePointerUse(from, reads, contiguousExtent(0, size))
	c.notePointerUse(to, writes, contiguousExtent(0, size))
	if c.count == 1 { // the other side is the program's
		c.op = wire.CommandWrite
		if c.access[0].flags&reads != 0 {
			c.op = wire.CommandRead
		}
	}
	c.writeEvents(isArgumentBlocking(s, 1))
}

func (p *pointers) handleFill(s *wire.Sample) {
	c := p.command
	c.beginCommand(s, wire.CommandFill)
	c.notePointerUse(s.Argument[1], writes, contiguousExtent(0, s.Argument[4]))
	c.writeEvents(false)
}

func (p *pointers) handleMap(s *wire.Sample) {
	c := p.command
	c.beginCommand(s, wire.CommandMap)
	c.notePointerUse(s.Argument[3], accessOfMap(s.Argument[2]), contiguousExtent(0, s.Argument[4]))
	c.writeEvents(isArgumentBlocking(s, 1))
}

func (p *pointers) handleUnmap(s *wire.Sample) {
	c := p.command
	c.beginCommand(s, wire.CommandUnmap)
	c.notePointerUse(s.Argument[1], 0, unplacedExtent(0))
	c.writeEvents(false)
}

func (p *pointers) handleMigrateAll(s *wire.Sample) {
	c := p.command
	c.beginCommand(s, wire.CommandMigrate)
	list, sizes := s.CopiedArgument(0), s.CopiedArgument(1)
	for i := range countCopiedHandles(list, uint32(s.Argument[1])) {
		x := wholeExtent(p.memories.byHandle[numberAt(list, i)])
		if i < countCopiedHandles(sizes, uint32(s.Argument[1])) && numberAt(sizes, i) > 0 {
			x = contiguousExtent(0, numberAt(sizes, i))
		}
		c.notePointerUse(numberAt(list, i), 0, x)
	}
	c.noteMigration(s.Argument[4])
	c.writeEvents(false)
}

func (p *pointers) handleMigrateUSM(s *wire.Sample) {
	c := p.command
	c.beginCommand(s, wire.CommandMigrate)
	c.notePointerUse(s.Argument[1], 0, contiguousExtent(0, s.Argument[2]))
	c.noteMigration(s.Argument[3])
	c.writeEvents(false)
}
