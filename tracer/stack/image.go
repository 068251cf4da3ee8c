package stack

import (
	"encoding/binary"
	"io"
)

// segment is a mapped part of an ELF file: a PT_LOAD program header.
type segment struct {
	exec                  bool
	offset, address, size uint64 // size: bytes in the file
}

// image is an ELF file as the dynamic linker sees it: only program headers, which even stripped files have. It keeps only
// addresses; a walk reads what it needs.
type image struct {
	file     io.ReaderAt
	segments []segment
	base     uint64 // address in the file of the lowest mapped page
	header   uint64 // of .eh_frame_hdr; 0: no unwind information
	foreign  bool   // for another machine
	table    table
}

const (
	elfHeaderSize   = 64
	elfProgramSize  = 56
	elfProgramsMax  = 1024
	programLoad     = 1
	programEhFrame  = 0x6474e550
	programFlagExec = 1
	pageSize        = 4096
)

// openImage returns an ELF file, nil if the file is not ELF.
func openImage(file io.ReaderAt) *image {
	var head [elfHeaderSize]byte
	if n, _ := file.ReadAt(head[:], 0); n < 20 || string(head[:4]) != "\x7fELF" {
		return nil
	}
	const class64, little, x8664 = 2, 1, 62
	if head[4] != class64 || head[5] != little || binary.LittleEndian.Uint16(head[18:]) != x8664 {
		return &image{foreign: true}
	}
	i := &image{file: file}
	if !i.readProgramHeaders(head[:]) {
		return nil
	}
	i.findUnwindTable()
	return i
}

func (i *image) readProgramHeaders(head []byte) bool {
	offset := binary.LittleEndian.Uint64(head[32:])
	size, count := binary.LittleEndian.Uint16(head[54:]), binary.LittleEndian.Uint16(head[56:])
	if size != elfProgramSize || count > elfProgramsMax || offset > 1<<62 {
		return false
	}
	raw := make([]byte, int(count)*elfProgramSize)
	if n, _ := i.file.ReadAt(raw, int64(offset)); n < len(raw) {
		return false
	}
	first := true
	for ; len(raw) > 0; raw = raw[elfProgramSize:] {
		address := binary.LittleEndian.Uint64(raw[16:])
		switch binary.LittleEndian.Uint32(raw) {
		case programLoad:
			i.segments = append(i.segments, segment{
				exec:    binary.LittleEndian.Uint32(raw[4:])&programFlagExec != 0,
				offset:  binary.LittleEndian.Uint64(raw[8:]),
				address: address,
				size:    binary.LittleEndian.Uint64(raw[32:]),
			})
			if page := address &^ (pageSize - 1); first || page < i.base {
				i.base, first = page, false
			}
		case programEhFrame:
			i.header = address
		}
	}
	return true
}

// readAtAddress fills into with the content at an address, up to the end of its segment, and returns the number of bytes.
func (i *image) readAtAddress(into []byte, address uint64) int {
	for _, s := range i.segments {
		within := address - s.address
		if within >= s.size || s.offset+within > 1<<62 {
			continue
		}
		n, _ := i.file.ReadAt(into[:min(uint64(len(into)), s.size-within)], int64(s.offset+within))
		return n
	}
	return 0
}
