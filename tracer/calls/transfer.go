package calls

import "codeberg.org/gpumemtop/gpumemtop/internal/wire"

// blocking reads a cl_bool argument: what is above it in the register means nothing.
func blocking(s *wire.Sample, i int) bool { return uint32(s.Argument[i]) != 0 }

// volume is how many bytes a region of a buffer has, or elements one of an image.
func volume(region []byte) uint64 {
	if region == nil {
		return 0
	}
	return times(times(word(region, 0), word(region, 1)), word(region, 2))
}

// reach is how many bytes a buffer with a rectangle in it has at least: the pitches, which are not seen, can only make it
// larger. The same holds for the elements of an image.
func reach(origin, region []byte) uint64 {
	if region == nil || volume(region) == 0 {
		return 0
	}
	w, h, d := word(region, 0), word(region, 1), word(region, 2)
	var x, y, z uint64
	if origin != nil {
		x, y, z = word(origin, 0), word(origin, 1), word(origin, 2)
	}
	plane := times(w, h)
	return plus(plus(times(plane, plus(z, d-1)), times(w, plus(y, h-1))), plus(x, w))
}

// rectangle is one in a buffer. The pitches are not seen: only of a single row at the top is it known where it lies.
func rectangle(origin, region []byte) extent {
	switch {
	case origin == nil || region == nil, word(region, 1) != 1 || word(region, 2) != 1, word(origin, 1) != 0 || word(origin, 2) != 0:
		return somewhere(volume(region))
	default:
		return piece(word(origin, 0), word(region, 0))
	}
}

func (b *Book) readBuffer(s *wire.Sample) {
	c := b.begin(s, wire.CommandRead)
	b.usesBuffer(c, s.Argument[1], reads, piece(s.Argument[3], s.Argument[4]), plus(s.Argument[3], s.Argument[4]))
	b.done(c, blocking(s, 2))
}

func (b *Book) writeBuffer(s *wire.Sample) {
	c := b.begin(s, wire.CommandWrite)
	b.usesBuffer(c, s.Argument[1], writes, piece(s.Argument[3], s.Argument[4]), plus(s.Argument[3], s.Argument[4]))
	b.done(c, false) // before OpenCL 2.0 it may return as soon as the host's data is copied
}

func (b *Book) copyBuffer(s *wire.Sample) {
	c, from, to, size := b.begin(s, wire.CommandCopy), s.Argument[3], s.Argument[4], s.Argument[5]
	b.usesBuffer(c, s.Argument[1], reads, piece(from, size), plus(from, size))
	b.usesBuffer(c, s.Argument[2], writes, piece(to, size), plus(to, size))
	b.done(c, false)
}

func (b *Book) fillBuffer(s *wire.Sample) {
	c := b.begin(s, wire.CommandFill)
	b.usesBuffer(c, s.Argument[1], writes, piece(s.Argument[4], s.Argument[5]), plus(s.Argument[4], s.Argument[5]))
	b.done(c, false)
}

// In all that follows the first copy is the region, and the second, where there is one, the origin.

func (b *Book) readRect(s *wire.Sample) {
	c, region := b.begin(s, wire.CommandRead), s.Copy(0)
	b.usesBuffer(c, s.Argument[1], reads, rectangle(s.Copy(1), region), reach(s.Copy(1), region))
	b.done(c, blocking(s, 2))
}

func (b *Book) writeRect(s *wire.Sample) {
	c, region := b.begin(s, wire.CommandWrite), s.Copy(0)
	b.usesBuffer(c, s.Argument[1], writes, rectangle(s.Copy(1), region), reach(s.Copy(1), region))
	b.done(c, false)
}

func (b *Book) copyRect(s *wire.Sample) {
	c, region := b.begin(s, wire.CommandCopy), s.Copy(0)
	b.usesBuffer(c, s.Argument[1], reads, rectangle(s.Copy(1), region), reach(s.Copy(1), region))
	b.usesBuffer(c, s.Argument[2], writes, rectangle(nil, region), reach(nil, region))
	b.done(c, false)
}

func (b *Book) readImage(s *wire.Sample) {
	c := b.begin(s, wire.CommandRead)
	b.usesImage(c, s.Argument[1], reads, s.Copy(0), reach(s.Copy(1), s.Copy(0)))
	b.done(c, blocking(s, 2))
}

func (b *Book) writeImage(s *wire.Sample) {
	c := b.begin(s, wire.CommandWrite)
	b.usesImage(c, s.Argument[1], writes, s.Copy(0), reach(s.Copy(1), s.Copy(0)))
	b.done(c, false)
}

func (b *Book) copyImage(s *wire.Sample) {
	c, region := b.begin(s, wire.CommandCopy), s.Copy(0)
	b.usesImage(c, s.Argument[1], reads, region, reach(nil, region))
	b.usesImage(c, s.Argument[2], writes, region, reach(nil, region))
	b.done(c, false)
}

func (b *Book) fillImage(s *wire.Sample) {
	c := b.begin(s, wire.CommandFill)
	b.usesImage(c, s.Argument[1], writes, s.Copy(0), reach(s.Copy(1), s.Copy(0)))
	b.done(c, false)
}

func (b *Book) copyImageToBuffer(s *wire.Sample) {
	c, region := b.begin(s, wire.CommandCopy), s.Copy(0)
	b.usesImage(c, s.Argument[1], reads, region, reach(s.Copy(1), region))
	b.usesBuffer(c, s.Argument[2], writes, piece(s.Argument[5], b.imageBytes(s.Argument[1], region)), plus(s.Argument[5], volume(region)))
	b.done(c, false)
}

func (b *Book) copyBufferToImage(s *wire.Sample) {
	c, region := b.begin(s, wire.CommandCopy), s.Copy(0)
	b.usesBuffer(c, s.Argument[1], reads, piece(s.Argument[3], b.imageBytes(s.Argument[2], region)), plus(s.Argument[3], volume(region)))
	b.usesImage(c, s.Argument[2], writes, region, reach(s.Copy(1), region))
	b.done(c, false)
}

// Flags of mappings. (API specification, table of map flags.)
const (
	mapRead  = 1 << 0      // CL_MAP_READ
	mapWrite = 1<<1 | 1<<2 // CL_MAP_WRITE, CL_MAP_WRITE_INVALIDATE_REGION
)

func mapFlags(asked uint64) (flags uint8) {
	if asked&mapRead != 0 {
		flags = reads
	}
	if asked&mapWrite != 0 {
		flags |= writes
	}
	return flags
}

func (b *Book) mapBuffer(s *wire.Sample) {
	c, offset, size := b.beginMap(s), s.Argument[4], s.Argument[5]
	b.usesBuffer(c, s.Argument[1], mapFlags(s.Argument[3]), piece(offset, size), plus(offset, size))
	b.mapped(c, 1)
	b.done(c, blocking(s, 2))
}

func (b *Book) mapImage(s *wire.Sample) {
	c := b.beginMap(s)
	b.usesImage(c, s.Argument[1], mapFlags(s.Argument[3]), s.Copy(0), reach(s.Copy(1), s.Copy(0)))
	b.mapped(c, 1)
	b.done(c, blocking(s, 2))
}

func (b *Book) unmap(s *wire.Sample) {
	c := b.begin(s, wire.CommandUnmap)
	b.usesBuffer(c, s.Argument[1], 0, somewhere(0), 0)
	b.mapped(c, -1)
	b.done(c, false)
}

// mapped counts a mapping of the memory that a command uses, and of what it is a part of, or the end of one: which may
// have been there before.
func (b *Book) mapped(c *command, change int64) {
	if c.failed || c.count == 0 {
		return
	}
	for m := c.access[0].memory; m != nil; m = m.parent {
		if m.mapLosses != b.losses {
			m.maps, m.mapLosses = 0, b.losses
		}
		m.maps = uint32(max(int64(m.maps)+change, 0))
	}
}

// Commands on shared memory. clEnqueueSVMMemcpy and clEnqueueMemcpyINTEL have the same first arguments, as have
// clEnqueueSVMMemFill and clEnqueueMemFillINTEL.

func (b *Book) copyPointers(s *wire.Sample) {
	c, to, from, size := b.begin(s, wire.CommandCopy), s.Argument[2], s.Argument[3], s.Argument[4]
	b.usesPointer(c, from, reads, piece(0, size))
	b.usesPointer(c, to, writes, piece(0, size))
	b.done(c, blocking(s, 1))
}

func (b *Book) fillPointer(s *wire.Sample) {
	c := b.begin(s, wire.CommandFill)
	b.usesPointer(c, s.Argument[1], writes, piece(0, s.Argument[4]))
	b.done(c, false)
}

func (b *Book) mapPointer(s *wire.Sample) {
	c := b.begin(s, wire.CommandMap)
	b.usesPointer(c, s.Argument[3], mapFlags(s.Argument[2]), piece(0, s.Argument[4]))
	b.done(c, blocking(s, 1))
}

func (b *Book) unmapPointer(s *wire.Sample) {
	c := b.begin(s, wire.CommandUnmap)
	b.usesPointer(c, s.Argument[1], 0, somewhere(0))
	b.done(c, false)
}

func (b *Book) migratePointers(s *wire.Sample) {
	c, list, sizes := b.begin(s, wire.CommandMigrate), s.Copy(0), s.Copy(1)
	for i := range handles(list, uint32(s.Argument[1])) {
		x := all(b.memories[word(list, i)])
		if i < handles(sizes, uint32(s.Argument[1])) && word(sizes, i) > 0 {
			x = piece(0, word(sizes, i))
		}
		b.usesPointer(c, word(list, i), 0, x)
	}
	b.done(c, false)
}

func (b *Book) migratePointer(s *wire.Sample) {
	c := b.begin(s, wire.CommandMigrate)
	b.usesPointer(c, s.Argument[1], 0, piece(0, s.Argument[2]))
	b.done(c, false)
}
