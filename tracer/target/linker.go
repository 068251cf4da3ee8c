package target

import (
	"debug/elf"
	"io"
	"path/filepath"
	"strings"

	"golang.org/x/sys/unix"
)

// LinkerHook is the function that a dynamic linker calls after it has mapped libraries, for debuggers: once when a program
// starts, before its own code runs, and at each dlopen (glibc's elf/dl-debug.c, and musl).
const LinkerHook = "_dl_debug_state"

// LinkerOfProcess returns the dynamic linker of a process, with LinkerHook as its only function. It returns false if there is none
// that we can read, as in a static program.
func (c *Catalog) LinkerOfProcess(p *Process, maps []Mapping) (Library, bool) {
	for _, m := range filesWithCode(maps) {
		if name := filepath.Base(m.Path); !strings.HasPrefix(name, "ld-") && !strings.HasPrefix(name, "ld.") && !strings.HasPrefix(name, "ld64.") {
			continue
		}
		path, info, err := p.openableFile(m)
		if err != nil {
			continue
		}
		if linker, ok := c.linkerAtPath(m.Path, path, info); ok {
			return linker, true
		}
	}
	return Library{}, false
}

// linkers are the paths of the dynamic linkers of glibc and musl, as the processor's ABI defines them.
var linkers = []string{"/lib64/ld-linux-x86-64.so.2", "/lib/ld-musl-x86_64.so.1"}

// KnownLinkers returns the dynamic linkers of programs that start later. See Linker.
func (c *Catalog) KnownLinkers() []Library {
	var list []Library
	for _, path := range distinctFiles(linkers) {
		var info unix.Stat_t
		if unix.Stat(path, &info) != nil {
			continue
		}
		if linker, ok := c.linkerAtPath(path, path, &info); ok {
			list = append(list, linker)
		}
	}
	return list
}

// linkerAtPath returns the dynamic linker that a process sees at path and we open at open.
func (c *Catalog) linkerAtPath(path, open string, info *unix.Stat_t) (Library, bool) {
	offset := c.hookOffset(open, info)
	return Library{
		Path: path, Open: open, Identity: identifyOpenFile(open, info), Functions: map[string]uint64{LinkerHook: offset},
	}, offset != 0
}

// hookOffset returns the offset of LinkerHook in a dynamic linker, 0 if it has none.
func (c *Catalog) hookOffset(path string, info *unix.Stat_t) uint64 {
	if offset, known := c.linkers[keyOfFile(info)]; known {
		return offset
	}
	file, opened, err := openIfSame(path, info)
	if err != nil || file == nil {
		return 0
	}
	defer file.Close() //nolint:errcheck // only read
	offset := findHook(file)
	if len(c.linkers) >= filesMax {
		clear(c.linkers)
	}
	c.linkers[keyOfFile(opened)] = offset
	return offset
}

func findHook(r io.ReaderAt) (offset uint64) {
	defer func() {
		if recover() != nil { // see readSymbols
			offset = 0
		}
	}()
	f := parseELF(r)
	if f == nil {
		return 0
	}
	dynamic := symbolTableOf(f, elf.SHT_DYNSYM)
	names := readSection(dynamic.names)
	for function := range dynamic.functionsOfTable(f) {
		if string(textAt(names, function.name, nameMax)) == LinkerHook {
			return function.offset
		}
	}
	return 0
}
