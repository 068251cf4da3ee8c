package symbol

import (
	"bytes"
	"cmp"
	"debug/elf"
	"math"
	"os"
	"regexp"
	"slices"
	"sort"
	"sync"

	"github.com/ianlancetaylor/demangle"

	"codeberg.org/gpumemtop/gpumemtop/internal/budget"
	"codeberg.org/gpumemtop/gpumemtop/internal/untrusted"
)

// Bounds on the memory for one module, in bytes: a small file gets little, however large its content unpacks.
const (
	moduleLeast = 32 << 20
	moduleShare = 16      // for each byte of the file
	nameMax     = 4096    // of the name of a function
	checksumMax = 1 << 30 // of a debug file that is read for its checksum
)

// module is the content of one file that was read. The file is closed.
type module struct {
	base      uint64 // address in the file of the lowest mapped byte
	functions []function
	names     []byte // of functions
	keep      *budget.Budget

	mu    sync.Mutex // debug/dwarf keeps caches that are not safe to share
	debug *debugInfo // nil: none
}

// function is one symbol.
type function struct {
	address, size uint64
	name          uint32 // index in names where its name begins
	rank          uint8  // of several symbols at one address the highest rank counts
}

// readModule reads a module, without parts that cannot be read or have no room. It returns nil if the file is not ELF.
func readModule(path, root string, whole *budget.Budget) (m *module) {
	// debug/elf and debug/dwarf are meant to return errors for bad files, but a file that makes them panic must not
	// take the program down.
	defer func() {
		if recover() != nil {
			m = nil
		}
	}()
	file, err := openObject(path)
	if err != nil {
		return nil
	}
	defer file.close()
	files := []*object{file}
	if file.Section(".debug_info") == nil {
		if extra := openSeparateDebugFile(file, path, root); extra != nil {
			defer extra.close()
			files = append(files, extra)
		}
	}
	room := int64(moduleLeast)
	for _, f := range files {
		room += min(moduleShare*f.size, math.MaxInt64-room)
	}
	m = &module{base: lowestAddress(file.File), keep: whole.NewPart(room)}
	for _, f := range files {
		if len(m.functions) == 0 {
			m.readFunctions(f.File, elf.SHT_SYMTAB)
		}
		if m.debug == nil {
			m.debug = readDebugSections(f.File, m.keep)
		}
	}
	if len(m.functions) == 0 {
		m.readFunctions(file.File, elf.SHT_DYNSYM)
	}
	return m
}

// object is an open ELF file.
type object struct {
	*elf.File
	file *os.File
	size int64
}

func openObject(path string) (*object, error) {
	file, err := untrusted.OpenRegular(path, 0)
	if err != nil {
		return nil, err
	}
	info, err := file.Stat()
	if err == nil {
		var parsed *elf.File
		if parsed, err = untrusted.ReadELF(file); err == nil {
			return &object{File: parsed, file: file, size: info.Size()}, nil
		}
	}
	_ = file.Close()
	return nil, err
}

// close closes the file. An error cannot have lost anything, since the file was only read.
func (o *object) close() { _ = o.file.Close() }

// lowestAddress returns the lowest mapped address in the file: that of the first loaded segment, rounded down to its page. It
// is 0 in shared objects and position independent programs, and the linked address in others. dli_fbase is the same place in
// memory.
func lowestAddress(f *elf.File) uint64 {
	const page = 4096 // the smallest; linkers align the first segment to the largest anyway
	lowest, found := uint64(0), false
	for _, p := range f.Progs {
		if p.Type == elf.PT_LOAD && (!found || p.Vaddr < lowest) {
			lowest, found = p.Vaddr, true
		}
	}
	return lowest &^ (page - 1)
}

// readFunctions reads a symbol table, sorted by address. debug/elf would copy each name, and a million symbols can share one.
func (m *module) readFunctions(f *elf.File, kind elf.SectionType) {
	table := f.SectionByType(kind)
	if table == nil || int(table.Link) >= len(f.Sections) || table.Size > math.MaxInt32 || f.Sections[table.Link].Size > math.MaxInt32 {
		return
	}
	names := f.Sections[table.Link]
	if !m.keep.Charge(int64(table.Size)) {
		return
	}
	defer m.keep.Release(int64(table.Size))
	symbols, err := table.Data()
	if err != nil || len(symbols)%elf.Sym64Size != 0 || !m.keep.Charge(int64(names.Size)) {
		return
	}
	if m.names, err = names.Data(); err != nil {
		return
	}
	var list []function
	for c := (cursor{rest: symbols}); len(c.rest) > 0; {
		name, info, _, section := c.readNumber(4), byte(c.readNumber(1)), c.readNumber(1), elf.SectionIndex(c.readNumber(2))
		s := function{name: uint32(name), address: c.readNumber(8), size: c.readNumber(8)}
		s.rank = rankOfSymbol(info, s.size)
		if isFunctionSymbol(info) && section != elf.SHN_UNDEF && len(m.mangledName(&s)) > 0 {
			var fits bool
			if list, fits = budget.AppendIfRoom(m.keep, list, functionBytes, s); !fits {
				break
			}
		}
	}
	slices.SortFunc(list, func(a, b function) int {
		return cmp.Or(cmp.Compare(a.address, b.address), -cmp.Compare(a.rank, b.rank))
	})
	m.functions = m.keepBestAtAddress(list)
}

// functionBytes is the memory that a function takes.
const functionBytes = 24

// keepBestAtAddress keeps one function for each address: the first with the highest rank.
func (m *module) keepBestAtAddress(list []function) []function {
	kept := list[:0]
	for i := range list {
		f, last := list[i], len(kept)-1
		switch {
		case last < 0 || kept[last].address != f.address:
			kept = append(kept, f)
		case kept[last].rank == f.rank && bytes.Compare(m.mangledName(&f), m.mangledName(&kept[last])) < 0:
			kept[last] = f
		}
	}
	return kept
}

// mangledName returns a function's mangled name.
func (m *module) mangledName(f *function) []byte {
	name := cursorAt(m.names, uint64(f.name))
	text, _, _ := bytes.Cut(name.rest[:min(len(name.rest), nameMax)], []byte{0})
	return text
}

func isFunctionSymbol(info byte) bool {
	kind := elf.ST_TYPE(info)
	return kind == elf.STT_FUNC || kind == elf.STT_GNU_IFUNC
}

// rankOfSymbol prefers sized symbols, then global over weak over local ones.
func rankOfSymbol(info byte, size uint64) uint8 {
	r := uint8(0)
	if size > 0 {
		r = 4
	}
	switch elf.ST_BIND(info) {
	case elf.STB_GLOBAL:
		r += 2
	case elf.STB_WEAK:
		r++
	default:
	}
	return r
}

// functionAt returns the mangled name of the function at an address, empty if no symbol covers it. A symbol without a size
// (assembly) covers the code up to the next one, within a bound.
func (m *module) functionAt(address uint64) string {
	const assembly = 4096
	i := sort.Search(len(m.functions), func(i int) bool { return m.functions[i].address > address }) - 1
	if i < 0 {
		return ""
	}
	f := &m.functions[i]
	if size := cmp.Or(f.size, assembly); address-f.address >= size {
		return ""
	}
	return string(m.mangledName(f))
}

// framesAtOffset resolves an address relative to the lowest mapped one, innermost first; nil: unknown.
func (m *module) framesAtOffset(offset uint64) (framesAt []Frame) {
	m.mu.Lock()
	defer m.mu.Unlock()
	address := m.base + offset
	name := shortDemangled(m.functionAt(address))
	framesAt = m.debugFrames(address)
	switch {
	case len(framesAt) == 0 && name == "":
		return nil
	case len(framesAt) == 0:
		return []Frame{{Function: name}}
	case name != "":
		framesAt[len(framesAt)-1].Function = name
	}
	return framesAt
}

// isIncomplete reports whether parts of the module were left out, or may be.
func (m *module) isIncomplete() bool {
	m.mu.Lock()
	defer m.mu.Unlock()
	return m.keep.RefusedCount() > 0 || m.debug != nil && m.debug.work.RefusedCount() > 0
}

// debugFrames looks an address up in the debug information. A panic in debug/dwarf counts as no answer.
func (m *module) debugFrames(address uint64) (frames []Frame) {
	if m.debug == nil {
		return nil
	}
	defer func() {
		if recover() != nil {
			m.debug, frames = nil, nil
		}
	}()
	return m.debug.framesAtAddress(address)
}

// clones matches the suffixes that compilers give to parts and copies of functions.
var clones = sync.OnceValue(func() *regexp.Regexp { return regexp.MustCompile(`(\.(cold|constprop|part|isra|lto_priv)(\.\d+)?)+$`) })

// shortDemangled returns the short form of a symbol's name.
func shortDemangled(name string) string {
	const lengthMax = 10 // as a power of two: names of templates can expand without end
	return demangle.Filter(clones().ReplaceAllString(name, ""), demangle.NoParams, demangle.NoClones,
		demangle.MaxLength(lengthMax))
}
