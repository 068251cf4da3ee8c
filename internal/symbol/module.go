package symbol

import (
	"cmp"
	"debug/elf"
	"fmt"
	"os"
	"regexp"
	"slices"
	"sort"
	"sync"

	"github.com/ianlancetaylor/demangle"
	"golang.org/x/sys/unix"
)

// Bounds on what is read of one module.
const (
	symbolBytesMax = 128 << 20 // of a symbol table and its names
	debugBytesMax  = 512 << 20 // of all debug sections, decompressed
)

// module is what was read of one file; its file is closed.
type module struct {
	base      uint64 // address in the file of the lowest mapped byte
	functions []function

	mu    sync.Mutex // debug/dwarf keeps caches that are not safe to share
	debug *debugInfo // nil when there is none
}

// function is one symbol.
type function struct {
	address, size uint64
	name          string // mangled
	rank          int    // of several names of one address the highest is shown
}

// load reads a module; what cannot be read is missing from it. It returns nil for what is no ELF file.
func load(path, root string) (m *module) {
	// debug/elf and debug/dwarf are meant to return errors for bad files, but a file that makes them panic must not
	// take the program down.
	defer func() {
		if recover() != nil {
			m = nil
		}
	}()
	file, err := open(path)
	if err != nil {
		return nil
	}
	defer file.close()
	m = &module{base: base(file.File)}
	files := []*object{file}
	if file.Section(".debug_info") == nil {
		if extra := findDebug(file, path, root); extra != nil {
			defer extra.close()
			files = append(files, extra)
		}
	}
	for _, f := range files {
		if len(m.functions) == 0 {
			m.functions = functions(f.File, elf.SHT_SYMTAB)
		}
		if m.debug == nil {
			m.debug = readDebug(f.File)
		}
	}
	if len(m.functions) == 0 {
		m.functions = functions(file.File, elf.SHT_DYNSYM)
	}
	return m
}

// object is an open ELF file.
type object struct {
	*elf.File
	file *os.File
}

// open opens a file only if it is a regular one: opening a device or a pipe can block or have effects.
func open(path string) (*object, error) {
	info, err := os.Stat(path)
	if err != nil {
		return nil, err
	}
	if !info.Mode().IsRegular() {
		return nil, fmt.Errorf("open %s: not a regular file", path)
	}
	file, err := os.OpenFile(path, os.O_RDONLY|unix.O_NONBLOCK, 0)
	if err != nil {
		return nil, err
	}
	opened, err := file.Stat()
	if err != nil || !opened.Mode().IsRegular() || !os.SameFile(info, opened) {
		_ = file.Close()
		return nil, fmt.Errorf("open %s: not a regular file", path)
	}
	parsed, err := elf.NewFile(file)
	if err != nil {
		_ = file.Close()
		return nil, err
	}
	return &object{File: parsed, file: file}, nil
}

// close gives the descriptor back. The file was only read: there is nothing that an error could have lost.
func (o *object) close() { _ = o.file.Close() }

// base returns the lowest mapped address: that of the first loaded segment, down to its page. Shared objects and
// position independent programs count from 0 there, others from where they were linked to; dli_fbase is the
// lowest mapped address in memory for both.
func base(f *elf.File) uint64 {
	const page = 4096 // the smallest; linkers align the first segment to the largest anyway
	lowest, found := uint64(0), false
	for _, p := range f.Progs {
		if p.Type == elf.PT_LOAD && (!found || p.Vaddr < lowest) {
			lowest, found = p.Vaddr, true
		}
	}
	return lowest &^ (page - 1)
}

// functions reads a symbol table, sorted by address.
func functions(f *elf.File, table elf.SectionType) []function {
	section := f.SectionByType(table)
	if section == nil || section.Size > symbolBytesMax || int(section.Link) >= len(f.Sections) ||
		f.Sections[section.Link].Size > symbolBytesMax {
		return nil
	}
	read := f.Symbols
	if table == elf.SHT_DYNSYM {
		read = f.DynamicSymbols
	}
	symbols, err := read()
	if err != nil {
		return nil
	}
	var list []function
	for i := range symbols {
		if s := &symbols[i]; isFunction(s) {
			list = append(list, function{address: s.Value, size: s.Size, name: s.Name, rank: rank(s)})
		}
	}
	slices.SortFunc(list, func(a, b function) int {
		return cmp.Or(cmp.Compare(a.address, b.address), -cmp.Compare(a.rank, b.rank), cmp.Compare(a.name, b.name))
	})
	return slices.CompactFunc(list, func(a, b function) bool { return a.address == b.address })
}

func isFunction(s *elf.Symbol) bool {
	kind := elf.ST_TYPE(s.Info)
	return (kind == elf.STT_FUNC || kind == elf.STT_GNU_IFUNC) && s.Section != elf.SHN_UNDEF && s.Name != ""
}

// rank prefers sized symbols, then global over weak over local ones.
func rank(s *elf.Symbol) int {
	r := 0
	if s.Size > 0 {
		r = 4
	}
	switch elf.ST_BIND(s.Info) {
	case elf.STB_GLOBAL:
		r += 2
	case elf.STB_WEAK:
		r++
	default:
	}
	return r
}

// function returns the mangled name of the function that has an address, empty when no symbol covers it. A symbol
// without a size (assembly) covers what comes before the next one, within reason.
func (m *module) function(address uint64) string {
	const assembly = 4096
	i := sort.Search(len(m.functions), func(i int) bool { return m.functions[i].address > address }) - 1
	if i < 0 {
		return ""
	}
	f := &m.functions[i]
	if size := cmp.Or(f.size, assembly); address-f.address >= size {
		return ""
	}
	return f.name
}

// frames resolves an address relative to the lowest mapped one, innermost first; nil when nothing is known.
func (m *module) frames(offset uint64) (frames []Frame) {
	m.mu.Lock()
	defer m.mu.Unlock()
	address := m.base + offset
	name := demangled(m.function(address))
	frames = m.debugFrames(address)
	switch {
	case len(frames) == 0 && name == "":
		return nil
	case len(frames) == 0:
		return []Frame{{Function: name}}
	case name != "":
		frames[len(frames)-1].Function = name
	}
	return frames
}

// debugFrames asks the debug information, and takes a panic in debug/dwarf for no answer.
func (m *module) debugFrames(address uint64) (frames []Frame) {
	if m.debug == nil {
		return nil
	}
	defer func() {
		if recover() != nil {
			m.debug, frames = nil, nil
		}
	}()
	return m.debug.frames(address)
}

// clones matches what compilers append to the names of parts and copies of functions.
var clones = sync.OnceValue(func() *regexp.Regexp { return regexp.MustCompile(`(\.(cold|constprop|part|isra|lto_priv)(\.\d+)?)+$`) })

// demangled returns the short form of a symbol's name.
func demangled(name string) string {
	const lengthMax = 10 // as a power of two: names of templates can expand without end
	return demangle.Filter(clones().ReplaceAllString(name, ""), demangle.NoParams, demangle.NoClones,
		demangle.MaxLength(lengthMax))
}
