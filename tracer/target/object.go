package target

import (
	"bufio"
	"bytes"
	"debug/elf"
	"encoding/binary"
	"io"
	"iter"
	"maps"

	"codeberg.org/gpumemtop/gpumemtop/internal/untrusted"
)

// ourMachine is the only processor that attach supports.
const ourMachine = elf.EM_X86_64

// Bounds on what we read and keep of one file, since anyone can map a file that is made to be expensive.
const (
	namesMax   = 1 << 30   // of a table of names that is searched
	symbolsMax = 128 << 20 // of a symbol table, or of the names in it, that is read
	nameMax    = 256       // of one name, with the NUL
	keptMax    = 1 << 16   // functions of one file
)

// parseELF reads the sections and segments of an ELF file. It returns nil for other files, and for those for other processors.
func parseELF(r io.ReaderAt) *elf.File {
	f, err := untrusted.ReadELF(r)
	if err != nil || f.Machine != ourMachine {
		return nil
	}
	return f
}

// symbols are the offsets of a file's functions, by name. dynamic are those that other files can call.
type symbols struct{ dynamic, all map[string]uint64 }

// readSymbols returns the functions of an ELF file if it may concern OpenCL, otherwise nil. Most files cost one search
// through their names.
func readSymbols(r io.ReaderAt) (s *symbols) {
	// debug/elf should return errors for bad files, but one that makes it panic must not end the program.
	defer func() {
		if recover() != nil {
			s = nil
		}
	}()
	f := parseELF(r)
	if f == nil {
		return nil
	}
	dynamic, static := symbolTableOf(f, elf.SHT_DYNSYM), symbolTableOf(f, elf.SHT_SYMTAB)
	if !dynamic.mentionsOpenCL() && !static.mentionsOpenCL() {
		return nil
	}
	s = &symbols{dynamic: map[string]uint64{}, all: map[string]uint64{}}
	addFunctions(f, dynamic, readSection(f.SectionByType(elf.SHT_GNU_VERSYM)), s.dynamic)
	addFunctions(f, static, nil, s.all)
	maps.Copy(s.all, s.dynamic)
	return s
}

// table is a symbol table with its names. It is not read with debug/elf, which copies every name: a small file can have a
// million symbols that share one name of a megabyte.
type table struct{ symbols, names *elf.Section }

func symbolTableOf(f *elf.File, kind elf.SectionType) table {
	section := f.SectionByType(kind)
	if section == nil || int(section.Link) >= len(f.Sections) {
		return table{}
	}
	return table{section, f.Sections[section.Link]}
}

// readSection returns the content of a section, within bounds.
func readSection(section *elf.Section) []byte {
	if section == nil || section.Type == elf.SHT_NOBITS {
		return nil
	}
	data := make([]byte, min(section.FileSize, symbolsMax))
	n, _ := section.ReadAt(data, 0)
	return data[:n]
}

// function is the symbol of a function with code in the file.
type function struct {
	index        int    // in its table
	name         uint32 // where its name begins
	offset, size uint64 // in the file; the size is 0 if the symbol has none
}

// functionsOfTable returns those of a table, without indirect functions (STT_GNU_IFUNC), whose symbol leads to a resolver.
func (t table) functionsOfTable(f *elf.File) iter.Seq[function] {
	return func(yield func(function) bool) {
		if t.symbols == nil || t.symbols.Type == elf.SHT_NOBITS {
			return
		}
		symbols := bufio.NewReader(io.NewSectionReader(t.symbols, 0, symbolsMax))
		var raw [elf.Sym64Size]byte // st_name, st_info, st_other, st_shndx, st_value, st_size
		for i := 0; ; i++ {
			if _, err := io.ReadFull(symbols, raw[:]); err != nil {
				return
			}
			if elf.ST_TYPE(raw[4]) != elf.STT_FUNC || binary.LittleEndian.Uint16(raw[6:]) == uint16(elf.SHN_UNDEF) {
				continue
			}
			offset, ok := fileOffset(f, binary.LittleEndian.Uint64(raw[8:]))
			size := binary.LittleEndian.Uint64(raw[16:])
			if ok && !yield(function{i, binary.LittleEndian.Uint32(raw[:]), offset, size}) {
				return
			}
		}
	}
}

// needles are names; each loader or vendor library has at least one of them, under any prefix.
var needles = [][]byte{
	[]byte("GetPlatformIDs"), []byte("GetExtensionFunctionAddress"),
}

// mentionsOpenCL reports whether the names contain a needle. It searches a large table piece by piece to save memory.
func (t table) mentionsOpenCL() bool {
	if t.symbols == nil || t.names.Type == elf.SHT_NOBITS || t.names.Size > namesMax {
		return false
	}
	const overlap = 32 // longer than the needles
	buffer := make([]byte, min(int(t.names.FileSize), 1<<20)+overlap)
	kept := 0
	for at := int64(0); ; {
		n, err := t.names.ReadAt(buffer[kept:], at)
		piece := buffer[:kept+n]
		for _, needle := range needles {
			if bytes.Contains(piece, needle) {
				return true
			}
		}
		if err != nil || n == 0 {
			return false
		}
		at += int64(n)
		kept = copy(buffer, piece[max(0, len(piece)-overlap):])
	}
}

// addFunctions adds the functions of a table that may belong to OpenCL. The highest bit of a symbol's version says that it is
// not the default version.
func addFunctions(f *elf.File, t table, versions []byte, into map[string]uint64) {
	names := readSection(t.names)
	for function := range t.functionsOfTable(f) {
		name := textAt(names, function.name, nameMax)
		if !mayBeOpenCL(name) {
			continue
		}
		hidden := false
		if at := 2 * function.index; at+2 <= len(versions) {
			hidden = binary.LittleEndian.Uint16(versions[at:])&0x8000 != 0
		}
		if addFunction(into, string(name), function.offset, hidden); len(into) == keptMax {
			return
		}
	}
}

// mayBeOpenCL reports whether a name may belong to OpenCL: such names begin with cl, or with a vendor's prefix that ends with
// it, and are not those of C++.
func mayBeOpenCL(name []byte) bool {
	const toLower = 0x20
	if bytes.HasPrefix(name, []byte("_Z")) {
		return false
	}
	for i := 1; i < len(name); i++ {
		if name[i-1]|toLower == 'c' && name[i]|toLower == 'l' {
			return true
		}
	}
	return false
}

// addFunction adds a function. Of several versions of a name the default one counts.
func addFunction(into map[string]uint64, name string, offset uint64, hidden bool) {
	if _, taken := into[name]; !taken || !hidden {
		into[name] = offset
	}
}

// fileOffset returns the offset in the file of the code at an address.
func fileOffset(f *elf.File, address uint64) (uint64, bool) {
	for _, p := range f.Progs {
		if p.Type == elf.PT_LOAD && p.Flags&elf.PF_X != 0 && address >= p.Vaddr && address-p.Vaddr < p.Filesz {
			return address - p.Vaddr + p.Off, true
		}
	}
	return 0, false
}

// lowestPage returns the page of the lowest mapped address, to which offsets of dladdr(3) are relative.
func lowestPage(f *elf.File) uint64 {
	const page = 4096
	lowest, found := uint64(0), false
	for _, p := range f.Progs {
		if p.Type == elf.PT_LOAD && (!found || p.Vaddr < lowest) {
			lowest, found = p.Vaddr, true
		}
	}
	return lowest &^ (page - 1)
}
