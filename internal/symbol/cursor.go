package symbol

import (
	"bytes"
	"encoding/binary"
)

// cursor reads what DWARF is made of from bytes. After its end, all is 0 and short is set.
type cursor struct {
	rest  []byte
	short bool
}

// at returns a cursor at an offset of a section.
func at(section []byte, offset uint64) cursor {
	if offset > uint64(len(section)) {
		return cursor{short: true}
	}
	return cursor{rest: section[offset:]}
}

// take returns the next bytes, nil beyond the end.
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

// length reads how long a unit is, and the size of offsets in it.
func (c *cursor) length() (length, offsetSize uint64) {
	const long = 0xffffffff
	if length = c.number(4); length == long {
		return c.number(8), 8
	}
	return length, 4
}

// leb reads a number of variable length: of its bits, bits are there.
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

// text reads up to a NUL. It is not copied.
func (c *cursor) text() []byte {
	text, rest, whole := bytes.Cut(c.rest, []byte{0})
	c.rest = rest
	if !whole {
		c.short = true
		return nil
	}
	return text
}
