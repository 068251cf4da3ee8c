package symbol

import (
	"bytes"
	"encoding/binary"
)

// cursor reads the elements of DWARF from bytes. After the end it reads 0 and sets short.
type cursor struct {
	rest  []byte
	short bool
}

func cursorAt(section []byte, offset uint64) cursor {
	if offset > uint64(len(section)) {
		return cursor{short: true}
	}
	return cursor{rest: section[offset:]}
}

// nextBytes returns the next n bytes, nil if there are fewer.
func (c *cursor) nextBytes(n uint64) []byte {
	if n > uint64(len(c.rest)) {
		c.rest, c.short = nil, true
		return nil
	}
	taken := c.rest[:n]
	c.rest = c.rest[n:]
	return taken
}

// readNumber reads a little-endian number of up to 8 bytes.
func (c *cursor) readNumber(size uint64) uint64 {
	var b [8]byte
	copy(b[:], c.nextBytes(min(size, 8)))
	return binary.LittleEndian.Uint64(b[:])
}

// readUnitLength reads the length of a unit, which says the size of offsets in it, too.
func (c *cursor) readUnitLength() (readUnitLength, offsetSize uint64) {
	const long = 0xffffffff
	if readUnitLength = c.readNumber(4); readUnitLength == long {
		return c.readNumber(8), 8
	}
	return readUnitLength, 4
}

// readLEB reads a number of variable length, and returns how many bits it has in the file.
func (c *cursor) readLEB() (value uint64, bits uint) {
	for {
		b := c.readNumber(1)
		if bits < 64 {
			value |= b & 0x7f << bits
		}
		bits += 7
		if b&0x80 == 0 {
			return value, bits
		}
	}
}

func (c *cursor) readUnsigned() uint64 {
	value, _ := c.readLEB()
	return value
}

func (c *cursor) readSigned() int64 {
	value, bits := c.readLEB()
	if bits < 64 && value>>(bits-1) != 0 {
		value |= ^uint64(0) << bits
	}
	return int64(value)
}

// readText reads up to a NUL, without copying.
func (c *cursor) readText() []byte {
	text, rest, whole := bytes.Cut(c.rest, []byte{0})
	c.rest = rest
	if !whole {
		c.short = true
		return nil
	}
	return text
}
