package target

import (
	"bytes"
	"debug/elf"
	"errors"
	"io"
	"os"
	"strings"

	"golang.org/x/sys/unix"
)

// ourMachine is the only processor that attaching works on.
const ourMachine = elf.EM_X86_64

// Bounds on what is read of one file.
const (
	namesMax   = 1 << 30   // of a table of names that is searched
	symbolsMax = 128 << 20 // of a symbol table, or of the names in it, that is read
)

// open opens a regular file only: opening a device or a pipe can block or have effects.
func open(path string) (*os.File, error) {
	file, err := os.OpenFile(path, os.O_RDONLY|unix.O_NONBLOCK, 0)
	if err != nil {
		return nil, err
	}
	if info, err := file.Stat(); err != nil || !info.Mode().IsRegular() {
		_ = file.Close()
		return nil, errors.New("not a regular file")
	}
	return file, nil
}

// symbols are the functions of a file: name to offset in the file. dynamic are those that others can call.
type symbols struct{ dynamic, all map[string]uint64 }

// readSymbols returns the functions of an ELF file if it may have to do with OpenCL, nil for all others, most of which
// cost one look through their names.
func readSymbols(r io.ReaderAt) (s *symbols) {
	// debug/elf is meant to return errors for bad files, but one that makes it panic must not take the program down.
	defer func() {
		if recover() != nil {
			s = nil
		}
	}()
	f, err := elf.NewFile(r)
	if err != nil || f.Class != elf.ELFCLASS64 || f.Machine != ourMachine || f.Type == elf.ET_CORE {
		return nil
	}
	dynamic, static := names(f, elf.SHT_DYNSYM), names(f, elf.SHT_SYMTAB)
	if !dynamic.mention() && !static.mention() {
		return nil
	}
	s = &symbols{dynamic: map[string]uint64{}, all: map[string]uint64{}}
	if dynamic.small() {
		if list, err := f.DynamicSymbols(); err == nil {
			s.take(f, list, s.dynamic)
		}
	}
	if static.small() {
		if list, err := f.Symbols(); err == nil {
			s.take(f, list, s.all)
		}
	}
	for name, offset := range s.dynamic {
		s.all[name] = offset
	}
	return s
}

// table is a symbol table and the names that belong to it.
type table struct{ symbols, names *elf.Section }

func names(f *elf.File, kind elf.SectionType) table {
	section := f.SectionByType(kind)
	if section == nil || int(section.Link) >= len(f.Sections) {
		return table{}
	}
	return table{section, f.Sections[section.Link]}
}

func (t table) small() bool {
	return t.symbols != nil && t.symbols.Size <= symbolsMax && t.names.Size <= symbolsMax
}

// needles are names of which loaders and vendors' libraries have at least one, under any prefix.
var needles = [][]byte{
	[]byte("GetPlatformIDs"), []byte("GetExtensionFunctionAddress"),
}

// mention reports whether one of the needles is among the names. A table that is larger than memory should be is
// searched piece by piece.
func (t table) mention() bool {
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

// take collects functions that have code in the file. Indirect functions (STT_GNU_IFUNC) are none: what their symbol
// leads to is the function that chooses. Of several versions of a name the default one counts.
func (s *symbols) take(f *elf.File, list []elf.Symbol, into map[string]uint64) {
	for i := range list {
		symbol := &list[i]
		if elf.ST_TYPE(symbol.Info) != elf.STT_FUNC || symbol.Section == elf.SHN_UNDEF || strings.HasPrefix(symbol.Name, "_Z") {
			continue // not a function, not in this file, or of C++
		}
		if _, taken := into[symbol.Name]; taken && symbol.VersionIndex.IsHidden() {
			continue
		}
		if offset, ok := fileOffset(f, symbol.Value); ok {
			into[symbol.Name] = offset
		}
	}
}

// fileOffset returns where in the file the code of an address lies.
func fileOffset(f *elf.File, address uint64) (uint64, bool) {
	for _, p := range f.Progs {
		if p.Type == elf.PT_LOAD && p.Flags&elf.PF_X != 0 && address >= p.Vaddr && address-p.Vaddr < p.Filesz {
			return address - p.Vaddr + p.Off, true
		}
	}
	return 0, false
}

// base returns the lowest address that is mapped, down to its page: from there dladdr(3) counts.
func base(f *elf.File) uint64 {
	const page = 4096
	lowest, found := uint64(0), false
	for _, p := range f.Progs {
		if p.Type == elf.PT_LOAD && (!found || p.Vaddr < lowest) {
			lowest, found = p.Vaddr, true
		}
	}
	return lowest &^ (page - 1)
}
