package target

import (
	"debug/elf"
	"io"
	"math"
	"slices"
)

// extent is the known extent of a function, in bytes from its beginning.
type extent struct {
	size uint64 // 0: no symbol says it
	next uint64 // beginning of the next function that is known or asked for
}

// functionExtents returns the extents of functions, given by their offsets in a file.
func functionExtents(r io.ReaderAt, functions []uint64) []extent {
	begins := slices.Compact(slices.Sorted(slices.Values(functions)))
	known := make([]extent, len(begins))
	for i := range known {
		known[i].next = math.MaxInt64
	}
	note := func(at, size uint64) {
		i, asked := slices.BinarySearch(begins, at)
		if asked {
			known[i].size = max(known[i].size, size)
		}
		if i > 0 {
			known[i-1].next = min(known[i-1].next, at-begins[i-1])
		}
	}
	for _, at := range begins {
		note(at, 0)
	}
	eachFunction(r, note)
	list := make([]extent, len(functions))
	for i, at := range functions {
		place, _ := slices.BinarySearch(begins, at)
		list[i] = known[place]
	}
	return list
}

// eachFunction visits the functions of an ELF file that have symbols, with their sizes.
func eachFunction(r io.ReaderAt, visit func(offset, size uint64)) {
	defer func() { _ = recover() }() // see readSymbols
	f := parseELF(r)
	if f == nil {
		return
	}
	for _, kind := range []elf.SectionType{elf.SHT_DYNSYM, elf.SHT_SYMTAB} {
		for function := range symbolTableOf(f, kind).functionsOfTable(f) {
			visit(function.offset, function.size)
		}
	}
}
