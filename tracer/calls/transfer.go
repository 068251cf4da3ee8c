package calls

import "codeberg.org/gpumemtop/gpumemtop/internal/wire"

// isArgumentBlocking reads a cl_bool argument, the lower half of the register.
func isArgumentBlocking(s *wire.Sample, i int) bool { return uint32(s.Argument[i]) != 0 }

// volumeOfRegion returns the bytes of a region of a buffer, or the elements of one of an image.
func volumeOfRegion(region []byte) uint64 {
	if region == nil {
		return 0
	}
	return mulSaturating(mulSaturating(numberAt(region, 0), numberAt(region, 1)), numberAt(region, 2))
}

// rectangleEnd returns the size that a buffer with a rectangle in it has at least, or the elements of an image. The pitches,
// which we do not see, can only make it larger.
func rectangleEnd(origin, region []byte) uint64 {
	if region == nil || volumeOfRegion(region) == 0 {
		return 0
	}
	w, h, d := numberAt(region, 0), numberAt(region, 1), numberAt(region, 2)
	var x, y, z uint64
	if origin != nil {
		x, y, z = numberAt(origin, 0), numberAt(origin, 1), numberAt(origin, 2)
	}
	plane := mulSaturating(w, h)
	return addSaturating(addSaturating(mulSaturating(plane, addSaturating(z, d-1)), mulSaturating(w, addSaturating(y, h-1))), addSaturating(x, w))
}

// extentOfRectangle returns the extent of a rectangle in a buffer. Without the pitches, only a single row at the top has a known
// place.
func extentOfRectangle(origin, region []byte) extent {
	switch {
	case origin == nil || region == nil, numberAt(region, 1) != 1 || numberAt(region, 2) != 1, numberAt(origin, 1) != 0 || numberAt(origin, 2) != 0:
		return unplacedExtent(volumeOfRegion(region))
	default:
		return contiguousExtent(numberAt(origin, 0), numberAt(region, 0))
	}
}

// handlerOfBufferTransfer returns the handler of a command on bytes of a buffer, whose offset and size are the arguments from offset
// on. blockingAt is the argument that says whether it blocks, 0 if it does not. A blocking write counts as one that does
// not: before OpenCL 2.0 it may return as soon as the host's data is copied.
func handlerOfBufferTransfer(op wire.Command, flags uint8, offset, blockingAt int) func(*command, *wire.Sample) {
	return func(c *command, s *wire.Sample) {
		c.beginCommand(s, op)
		at, size := s.Argument[offset], s.Argument[offset+1]
		c.noteBufferUse(s.Argument[1], flags, contiguousExtent(at, size), addSaturating(at, size))
		c.writeEvents(blockingAt > 0 && isArgumentBlocking(s, blockingAt))
	}
}

func (c *command) handleCopyBuffer(s *wire.Sample) {
	c.beginCommand(s, wire.CommandCopy)
	from, to, size := s.Argument[3], s.Argument[4], s.Argument[5]
	c.noteBufferUse(s.Argument[1], reads, contiguousExtent(from, size), addSaturating(from, size))
	c.noteBufferUse(s.Argument[2], writes, contiguousExtent(to, size), addSaturating(to, size))
	c.writeEvents(false)
}

// In all functions below, the first copy is the region and the second, if any, the origin.

// handlerOfRectTransfer returns the handler of a command on a rectangle of a buffer. Reads may block.
func handlerOfRectTransfer(op wire.Command, flags uint8) func(*command, *wire.Sample) {
	return func(c *command, s *wire.Sample) {
		c.beginCommand(s, op)
		region := s.CopiedArgument(0)
		c.noteBufferUse(s.Argument[1], flags, extentOfRectangle(s.CopiedArgument(1), region), rectangleEnd(s.CopiedArgument(1), region))
		c.writeEvents(op == wire.CommandRead && isArgumentBlocking(s, 2))
	}
}

// handlerOfImageTransfer returns the handler of a command on a region of an image. Reads may block.
func handlerOfImageTransfer(op wire.Command, flags uint8) func(*command, *wire.Sample) {
	return func(c *command, s *wire.Sample) {
		c.beginCommand(s, op)
		c.noteImageUse(s.Argument[1], flags, s.CopiedArgument(0), rectangleEnd(s.CopiedArgument(1), s.CopiedArgument(0)))
		c.writeEvents(op == wire.CommandRead && isArgumentBlocking(s, 2))
	}
}

func (c *command) handleCopyRect(s *wire.Sample) {
	c.beginCommand(s, wire.CommandCopy)
	region := s.CopiedArgument(0)
	c.noteBufferUse(s.Argument[1], reads, extentOfRectangle(s.CopiedArgument(1), region), rectangleEnd(s.CopiedArgument(1), region))
	c.noteBufferUse(s.Argument[2], writes, extentOfRectangle(nil, region), rectangleEnd(nil, region))
	c.writeEvents(false)
}

func (c *command) handleCopyImage(s *wire.Sample) {
	c.beginCommand(s, wire.CommandCopy)
	region := s.CopiedArgument(0)
	c.noteImageUse(s.Argument[1], reads, region, rectangleEnd(nil, region))
	c.noteImageUse(s.Argument[2], writes, region, rectangleEnd(nil, region))
	c.writeEvents(false)
}

func (c *command) handleCopyImageToBuffer(s *wire.Sample) {
	c.beginCommand(s, wire.CommandCopy)
	region := s.CopiedArgument(0)
	c.noteImageUse(s.Argument[1], reads, region, rectangleEnd(s.CopiedArgument(1), region))
	c.noteBufferUse(s.Argument[2], writes, contiguousExtent(s.Argument[5], c.imageBytes(s.Argument[1], region)), addSaturating(s.Argument[5], volumeOfRegion(region)))
	c.writeEvents(false)
}

func (c *command) handleCopyBufferToImage(s *wire.Sample) {
	c.beginCommand(s, wire.CommandCopy)
	region := s.CopiedArgument(0)
	c.noteBufferUse(s.Argument[1], reads, contiguousExtent(s.Argument[3], c.imageBytes(s.Argument[2], region)), addSaturating(s.Argument[3], volumeOfRegion(region)))
	c.noteImageUse(s.Argument[2], writes, region, rectangleEnd(s.CopiedArgument(1), region))
	c.writeEvents(false)
}

// Flags of mappings. (API specification, table of map flags.)
const (
	mapRead  = 1 << 0      // CL_MAP_READ
	mapWrite = 1<<1 | 1<<2 // CL_MAP_WRITE, CL_MAP_WRITE_INVALIDATE_REGION
)

func accessOfMap(asked uint64) (flags uint8) {
	if asked&mapRead != 0 {
		flags = reads
	}
	if asked&mapWrite != 0 {
		flags |= writes
	}
	return flags
}

func (c *command) handleMapBuffer(s *wire.Sample) {
	c.beginPointerCommand(s)
	offset, size := s.Argument[4], s.Argument[5]
	c.noteBufferUse(s.Argument[1], accessOfMap(s.Argument[3]), contiguousExtent(offset, size), addSaturating(offset, size))
	c.countMapping(1)
	c.writeEvents(isArgumentBlocking(s, 2))
}

func (c *command) handleMapImage(s *wire.Sample) {
	c.beginPointerCommand(s)
	c.noteImageUse(s.Argument[1], accessOfMap(s.Argument[3]), s.CopiedArgument(0), rectangleEnd(s.CopiedArgument(1), s.CopiedArgument(0)))
	c.countMapping(1)
	c.writeEvents(isArgumentBlocking(s, 2))
}

func (c *command) handleUnmap(s *wire.Sample) {
	c.beginCommand(s, wire.CommandUnmap)
	c.noteBufferUse(s.Argument[1], 0, unplacedExtent(0), 0)
	c.countMapping(-1)
	c.writeEvents(false)
}

// countMapping counts a mapping of a command's memory and its parents, or the end of one. That may have begun before we
// attached.
func (c *command) countMapping(change int64) {
	if c.failed || c.count == 0 {
		return
	}
	for m := c.access[0].memory; m != nil; m = m.parent {
		if m.mapLosses != c.memories.losses {
			m.maps, m.mapLosses = 0, c.memories.losses
		}
		m.maps = uint32(max(int64(m.maps)+change, 0))
	}
}
