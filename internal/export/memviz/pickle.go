package memviz

import (
	"bufio"
	"encoding/binary"
	"io"
)

// Opcodes of Python's pickle, protocol 4 (PEP 3154), as far as they are used. PyTorch's viewer knows all of them.
const (
	opProto      = 0x80
	opStop       = '.'
	opMark       = '('
	opDict       = '}'
	opSetItems   = 'u'
	opList       = ']'
	opAppends    = 'e'
	opText       = 'X' // u32 length, UTF-8
	opInt1       = 'K' // u8
	opInt2       = 'M' // u16
	opInt4       = 'J' // i32
	opLong       = 0x8a
	opMemoize    = 0x94
	opGet        = 'h' // u8
	opGetLong    = 'j' // u32
	chunk        = 1000
	largest      = 1<<53 - 1 // whole number up to which a double holds all
	protoVersion = 4
)

// pickler writes a pickle. It writes each text once and then refers to it. finish returns the first error.
type pickler struct {
	w     *bufio.Writer
	texts map[string]uint32 // their places in the memo
	memo  uint32            // number of places used
}

func newPickler(w io.Writer) *pickler {
	p := &pickler{w: bufio.NewWriterSize(w, 64<<10), texts: map[string]uint32{}}
	p.writeBytes(opProto, protoVersion)
	return p
}

func (p *pickler) stopAndFlush() error {
	p.writeBytes(opStop)
	return p.w.Flush()
}

// writeBytes writes bytes; a bufio.Writer keeps its first error for Flush.
func (p *pickler) writeBytes(b ...byte) { _, _ = p.w.Write(b) }

// memoizeLast puts the value that was written last into the memo and returns its place.
func (p *pickler) memoizeLast() uint32 {
	p.writeBytes(opMemoize)
	p.memo++
	return p.memo - 1
}

// writeReference writes a reference to a place in the memo.
func (p *pickler) writeReference(place uint32) {
	if place < 1<<8 {
		p.writeBytes(opGet, byte(place))
		return
	}
	p.writeBytes(binary.LittleEndian.AppendUint32([]byte{opGetLong}, place)...)
}

// writeText writes valid UTF-8.
func (p *pickler) writeText(s string) {
	if place, ok := p.texts[s]; ok {
		p.writeReference(place)
		return
	}
	p.writeBytes(binary.LittleEndian.AppendUint32([]byte{opText}, uint32(len(s)))...)
	_, _ = p.w.WriteString(s)
	p.texts[s] = p.memoizeLast()
}

// writeNumber writes a whole number, at most the largest that a double holds.
func (p *pickler) writeNumber(n uint64) {
	n = min(n, largest)
	switch {
	case n < 1<<8:
		p.writeBytes(opInt1, byte(n))
	case n < 1<<16:
		p.writeBytes(opInt2, byte(n), byte(n>>8))
	case n < 1<<31:
		p.writeBytes(binary.LittleEndian.AppendUint32([]byte{opInt4}, uint32(n))...)
	default:
		p.writeBytes(binary.LittleEndian.AppendUint64([]byte{opLong, 8}, n)...)
	}
}

// writeDict writes a dictionary; fill writes keys and values in turn.
func (p *pickler) writeDict(fill func()) {
	p.writeBytes(opDict, opMark)
	fill()
	p.writeBytes(opSetItems)
}

func (p *pickler) writeTextItem(key, value string) { p.writeText(key); p.writeText(value) }

func (p *pickler) writeNumberItem(key string, n uint64) { p.writeText(key); p.writeNumber(n) }

// writeList writes a list of unknown length; fill calls item before each element that it writes. The viewer
// passes the elements of an APPENDS as arguments of one call, so each APPENDS has only a few.
func (p *pickler) writeList(fill func(item func())) {
	p.writeBytes(opList)
	n := 0
	fill(func() {
		if n%chunk == 0 {
			if n > 0 {
				p.writeBytes(opAppends)
			}
			p.writeBytes(opMark)
		}
		n++
	})
	if n > 0 {
		p.writeBytes(opAppends)
	}
}
