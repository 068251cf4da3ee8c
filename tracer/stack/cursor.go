package stack

import "encoding/binary"

// cursor reads the fields of unwind information. Past the end it reads 0 and sets short, so that callers can read an
// untrusted file and check once.
type cursor struct {
	data  []byte
	at    int
	start uint64 // address of data[0], for self-relative pointers
	short bool
}

func (c *cursor) bytesLeft() int { return len(c.data) - c.at }

// nextBytes returns the next n bytes, nil if there are fewer.
func (c *cursor) nextBytes(n uint64) []byte {
	if n > uint64(c.bytesLeft()) {
		c.short, c.at = true, len(c.data)
		return nil
	}
	taken := c.data[c.at : c.at+int(n)]
	c.at += int(n)
	return taken
}

func (c *cursor) readU8() uint8 {
	if b := c.nextBytes(1); b != nil {
		return b[0]
	}
	return 0
}

func (c *cursor) readU16() uint16 {
	if b := c.nextBytes(2); b != nil {
		return binary.LittleEndian.Uint16(b)
	}
	return 0
}

func (c *cursor) readU32() uint32 {
	if b := c.nextBytes(4); b != nil {
		return binary.LittleEndian.Uint32(b)
	}
	return 0
}

func (c *cursor) readU64() uint64 {
	if b := c.nextBytes(8); b != nil {
		return binary.LittleEndian.Uint64(b)
	}
	return 0
}

// readULEB reads an unsigned LEB128 number (DWARF 5, section 7.6). It drops bits above 64.
func (c *cursor) readULEB() uint64 {
	var value uint64
	for shift := 0; ; shift += 7 {
		b := c.readU8()
		if shift < 64 {
			value |= uint64(b&0x7f) << shift
		}
		if b < 0x80 {
			return value
		}
	}
}

// readSLEB reads a signed LEB128 number.
func (c *cursor) readSLEB() int64 {
	var value int64
	for shift := 0; ; {
		b := c.readU8()
		if shift < 64 {
			value |= int64(b&0x7f) << shift
		}
		shift += 7
		if b < 0x80 {
			if shift < 64 && b&0x40 != 0 {
				value |= -1 << shift
			}
			return value
		}
	}
}

// readBlock reads a length and that many bytes.
func (c *cursor) readBlock() []byte { return c.nextBytes(c.readULEB()) }

// readText reads up to a NUL.
func (c *cursor) readText() string {
	from := c.at
	for c.readU8() != 0 {
	}
	if c.short {
		return ""
	}
	return string(c.data[from : c.at-1])
}

// Encodings of pointers in .eh_frame and .eh_frame_hdr (Linux Standard Base, core part, "DWARF extensions").
const (
	pointerForm     = 0x0f
	pointerBase     = 0x70
	pointerIndirect = 0x80
	pointerOmitted  = 0xff

	relativeToNothing = 0x00
	relativeToPlace   = 0x10
	relativeToHeader  = 0x30 // .eh_frame_hdr only
)

// readPointer reads a pointer in an encoding. header is the address of .eh_frame_hdr, 0 outside of it. It treats encodings
// that no linker for amd64 writes as missing data.
func (c *cursor) readPointer(encoding uint8, header uint64) uint64 {
	place := c.start + uint64(c.at)
	value := c.readValue(encoding)
	switch encoding & (pointerBase | pointerIndirect) {
	case relativeToNothing:
		return value
	case relativeToPlace:
		return value + place
	case relativeToHeader:
		if header != 0 {
			return value + header
		}
	}
	c.short = true
	return 0
}

// readValue reads the number in a pointer.
func (c *cursor) readValue(encoding uint8) uint64 {
	switch encoding & pointerForm {
	case 0x00, 0x04, 0x0c: // address-sized, unsigned and signed 8 bytes
		return c.readU64()
	case 0x01:
		return c.readULEB()
	case 0x02:
		return uint64(c.readU16())
	case 0x03:
		return uint64(c.readU32())
	case 0x09:
		return uint64(c.readSLEB())
	case 0x0a:
		return uint64(int64(int16(c.readU16())))
	case 0x0b:
		return uint64(int64(int32(c.readU32())))
	}
	c.short = true
	return 0
}
