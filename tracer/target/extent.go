package target

import (
	"bufio"
	"debug/elf"
	"io"
	"math"
	"slices"
)

// extent is what is known of where a function ends, in bytes from its beginning.
type extent struct {
	size uint64 // 0 where no symbol tells
	next uint64 // where the next function begins, of those that have symbols or are asked for, too
}

// extents returns how far the functions reach that begin at some places of a file.
func extents(r io.ReaderAt, functions []uint64) []extent {
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

// eachFunction tells where in an ELF file the functions are that have symbols. It reads no names and keeps nothing, so
// that it costs little in files that have many.
func eachFunction(r io.ReaderAt, tell func(offset, size uint64)) {
	defer func() { _ = recover() }() // see readSymbols
	f, err := elf.NewFile(r)
	if err != nil {
		return
	}
	for _, kind := range []elf.SectionType{elf.SHT_DYNSYM, elf.SHT_SYMTAB} {
		section := f.SectionByType(kind)
		if section == nil || section.Size > symbolsMax {
			continue
		}
		symbols := bufio.NewReader(io.NewSectionReader(section, 0, int64(section.Size)))
		var raw [elf.Sym64Size]byte // st_name, st_info, st_other, st_shndx, st_value, st_size
		for {
			if _, err := io.ReadFull(symbols, raw[:]); err != nil {
				break
			}
			if elf.ST_TYPE(raw[4]) != elf.STT_FUNC || f.ByteOrder.Uint16(raw[6:]) == uint16(elf.SHN_UNDEF) {
				continue
			}
			if offset, ok := fileOffset(f, f.ByteOrder.Uint64(raw[8:])); ok {
				tell(offset, f.ByteOrder.Uint64(raw[16:]))
			}
		}
	}
}
