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

// take returns the next n bytes, nil if there are fewer.
func (c *cursor) take(n uint64) []byte {
	if n > uint64(len(c.rest)) {
		c.rest, c.short = nil, true
		return nil
	}
	taken := c.rest[:n]
	c.rest = c.rest[n:]
	return taken
}

// number reads a little-endian number of up to 8 bytes.
func (c *cursor) number(size uint64) uint64 {
	var b [8]byte
	copy(b[:], c.take(min(size, 8)))
	return binary.LittleEndian.Uint64(b[:])
}

// length reads the length of a unit, which says the size of offsets in it, too.
func (c *cursor) length() (length, offsetSize uint64) {
	const long = 0xffffffff
	if length = c.number(4); length == long {
		return c.number(8), 8
	}
	return length, 4
}

// leb reads a number of variable length, and returns how many bits it has in the file.
func (c *cursor) leb() (value uint64, bits uint) {
	for {
		b := c.number(1)
		if bits < 64 {
			value |= b & 0x7f << bits
		}
		bits += 7
		if b&0x80 == 0 {
			return value, bits
		}
	}
}

func (c *cursor) unsigned() uint64 {
	value, _ := c.leb()
	return value
}

func (c *cursor) signed() int64 {
	value, bits := c.leb()
	if bits < 64 && value>>(bits-1) != 0 {
		value |= ^uint64(0) << bits
	}
	return int64(value)
}

// text reads up to a NUL, without copying.
func (c *cursor) text() []byte {
	text, rest, whole := bytes.Cut(c.rest, []byte{0})
	c.rest = rest
	if !whole {
		c.short = true
		return nil
	}
	return text
}
