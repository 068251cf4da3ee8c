package untrusted

import (
	"debug/elf"
	"encoding/binary"
	"errors"
	"io"
)

// Bounds on what is read of the headings of an ELF file.
const (
	segmentsMax = 128
	headingsMax = 1 << 20  // the names of sections, in bytes
	copiesMax   = 64 << 20 // the same if each section had all of them: debug/elf copies each name
)

// errNoELF is what all files get that are no ELF files of 64 bits, or that no linker writes.
var errNoELF = errors.New("no ELF file that a linker wrote")

// ReadELF reads the sections and segments of an ELF file for a machine like this one. It refuses headings that no linker writes:
// debug/elf trusts any size, and would read gigabytes of a sparse file.
func ReadELF(r io.ReaderAt) (*elf.File, error) {
	var h elf.Header64
	if binary.Read(io.NewSectionReader(r, 0, int64(binary.Size(h))), binary.LittleEndian, &h) != nil ||
		string(h.Ident[:elf.EI_VERSION]) != elf.ELFMAG+string([]byte{byte(elf.ELFCLASS64), byte(elf.ELFDATA2LSB)}) ||
		elf.Type(h.Type) == elf.ET_CORE || h.Phnum > segmentsMax {
		return nil, errNoELF
	}
	if h.Shoff > 0 {
		var headings elf.Section64
		size := binary.Size(headings)
		at := io.NewSectionReader(r, int64(h.Shoff)+int64(h.Shstrndx)*int64(size), int64(size))
		if h.Shnum == 0 || int(h.Shentsize) != size || binary.Read(at, binary.LittleEndian, &headings) != nil ||
			headings.Size > headingsMax || headings.Size*uint64(h.Shnum) > copiesMax || elf.SectionFlag(headings.Flags)&elf.SHF_COMPRESSED != 0 {
			return nil, errNoELF
		}
	}
	return elf.NewFile(r)
}
