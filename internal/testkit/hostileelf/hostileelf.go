// Package hostileelf makes small ELF files that refer to the same bytes many times, so that readers need much memory.
package hostileelf

import (
	"bytes"
	"compress/zlib"
	"debug/elf"
	"encoding/binary"
)

// section is a section of such a file.
type section struct {
	name string
	kind elf.SectionType
	link uint32
	data []byte
}

// makeELF writes an ELF file with compressed sections, and a last one with their names.
func makeELF(sections []section) []byte {
	var names, body, headings bytes.Buffer
	names.WriteByte(0)
	headings.Write(make([]byte, 64))
	const begin = 64 + 56
	add := func(s section, flags elf.SectionFlag, data []byte) {
		h := elf.Section64{
			Name: uint32(names.Len()), Type: uint32(s.kind), Flags: uint64(flags), Off: uint64(begin + body.Len()), Size: uint64(len(data)), Link: s.link,
		}
		names.WriteString(s.name + "\x00")
		putNumbers(&headings, &h)
		body.Write(data)
	}
	for _, s := range sections {
		var packed bytes.Buffer
		putNumbers(&packed, &elf.Chdr64{Type: uint32(elf.COMPRESS_ZLIB), Size: uint64(len(s.data)), Addralign: 1})
		w := zlib.NewWriter(&packed)
		if _, err := w.Write(s.data); err != nil || w.Close() != nil {
			panic("no room in memory")
		}
		add(s, elf.SHF_COMPRESSED, packed.Bytes())
	}
	shstrtab := section{name: ".shstrtab", kind: elf.SHT_STRTAB}
	add(shstrtab, 0, append(bytes.Clone(names.Bytes()), ".shstrtab\x00"...))
	header := elf.Header64{
		Type: uint16(elf.ET_DYN), Machine: uint16(elf.EM_X86_64), Version: 1, Phoff: 64, Shoff: uint64(begin + body.Len()), Ehsize: 64, Phentsize: 56,
		Phnum: 1, Shentsize: 64, Shnum: uint16(len(sections) + 2), Shstrndx: uint16(len(sections) + 1),
	}
	copy(header.Ident[:], "\x7fELF\x02\x01\x01")
	var file bytes.Buffer
	putNumbers(&file, &header)
	putNumbers(&file, &elf.Prog64{Type: uint32(elf.PT_LOAD), Flags: 5, Filesz: 0x100000, Memsz: 0x100000})
	file.Write(body.Bytes())
	file.Write(headings.Bytes())
	return file.Bytes()
}

// putNumbers writes a number or a structure of numbers.
func putNumbers(b *bytes.Buffer, n any) {
	if err := binary.Write(b, binary.LittleEndian, n); err != nil {
		panic(err)
	}
}

// encodeNumbers writes numbers of 1, 4 and 8 bytes.
func encodeNumbers(list ...any) []byte {
	var b bytes.Buffer
	for _, n := range list {
		switch n := n.(type) {
		case int: // ULEB128
			for ; n >= 0x80; n >>= 7 {
				b.WriteByte(byte(n) | 0x80)
			}
			b.WriteByte(byte(n))
		case string:
			b.WriteString(n)
		case []byte:
			b.Write(n)
		default:
			putNumbers(&b, n)
		}
	}
	return b.Bytes()
}

// encodeUnit writes a unit of DWARF 4.
func encodeUnit(table uint32, entries ...any) []byte {
	body := append(encodeNumbers(uint16(4), table, byte(8)), encodeNumbers(entries...)...)
	return append(encodeNumbers(uint32(len(body))), body...)
}

func debugSection(name string, data []byte) section {
	return section{name: ".debug_" + name, kind: elf.SHT_PROGBITS, data: data}
}

// abbreviations: 1 a unit with code, a line table and children, 2 a function with a list of ranges, 3 the same with children, 4 an
// inlined call with such a list, 5 a block with children, 6 an entry with a name in .debug_str.
var abbreviations = encodeNumbers(
	1, 0x11, 1, 0x11, 0x01, 0x12, 0x06, 0x10, 0x17, 0, 0,
	2, 0x2e, 0, 0x55, 0x17, 0, 0,
	3, 0x2e, 1, 0x55, 0x17, 0, 0,
	4, 0x1d, 0, 0x55, 0x17, 0, 0,
	5, 0x0b, 1, 0, 0,
	6, 0x34, 0, 0x03, 0x0e, 0, 0,
	0)

func encodeRootEntry() []byte { return encodeUnitEntry(0x1000, 0x100000, 0) }

func encodeUnitEntry(low, size int, line uint32) []byte {
	return encodeNumbers(1, uint64(low), uint32(size), line)
}

func encodeRangeList(n int) []byte {
	list := bytes.Repeat(encodeNumbers(uint64(0), uint64(0x1000)), n)
	return append(list, make([]byte, 16)...)
}

// encodeLineTable writes a line table of DWARF 4.
func encodeLineTable(instructions []byte) []byte {
	header := encodeNumbers(byte(1), byte(1), byte(1), byte(0xfb), byte(14), byte(13), "\x00\x01\x01\x01\x01\x00\x00\x00\x01\x00\x00\x01",
		byte(0), "a.c\x00", 0, 0, 0, byte(0))
	body := encodeNumbers(uint16(4), uint32(len(header)), header, "\x00\x09\x02", uint64(0x1000), instructions)
	return append(encodeNumbers(uint32(len(body))), body...)
}

// HostileFiles returns the files by what is expensive about them.
func HostileFiles() map[string][]byte {
	files := map[string][]byte{}
	for name, sections := range hostile {
		files[name] = makeELF(sections())
	}
	return files
}

var hostile = map[string]func() []section{
	"functions that share a list of ranges": func() []section {
		function := encodeNumbers(2, uint32(0))
		return []section{
			debugSection("abbrev", abbreviations), debugSection("info", encodeUnit(0, encodeRootEntry(), bytes.Repeat(function, 20_000),
				0)), debugSection("ranges", encodeRangeList(50_000)),
		}
	},
	"inlined calls that share a list of ranges": func() []section {
		return []section{
			debugSection("abbrev", abbreviations), debugSection("ranges", encodeRangeList(1000)),
			debugSection("info", encodeUnit(0, encodeRootEntry(), 3, uint32(0), bytes.Repeat(encodeNumbers(4, uint32(0)), 100_000), 0, 0)),
		}
	},
	"units that share a line table": func() []section {
		var units []byte
		for i := range 64 {
			units = append(units, encodeUnit(0, encodeUnitEntry(0x1000+i, 1, 0), 0)...)
		}
		return []section{debugSection("abbrev", abbreviations), debugSection("info", units), debugSection("line",
			encodeLineTable(bytes.Repeat([]byte{20}, 4_000_000)))}
	},
	"line tables within one another": func() []section {
		table := encodeLineTable(bytes.Repeat([]byte{20}, 1_000_000))
		begin := len(encodeLineTable(nil)) - 11 // without the instruction that sets the address
		var units []byte
		for i := range 64 { // each is an instruction for a user's own use, and more, to the one around it
			units = append(units, encodeUnit(0, encodeUnitEntry(0x1000+i, 1, uint32((63-i)*(begin+14))), 0)...)
			table = encodeLineTable(encodeNumbers(byte(0), begin+1, byte(0x80), table))
		}
		return []section{debugSection("abbrev", abbreviations), debugSection("info", units), debugSection("line", table)}
	},
	"a line table that says that it has many files": func() []section {
		header := encodeNumbers(byte(1), byte(1), byte(1), byte(0xfb), byte(14), byte(1), byte(0), 1<<30, byte(0), 1<<40)
		body := encodeNumbers(uint16(5), byte(8), byte(0), uint32(len(header)), header)
		return []section{debugSection("abbrev", abbreviations), debugSection("info", encodeUnit(0, encodeRootEntry(), 0)),
			debugSection("line", encodeNumbers(uint32(len(body)), body))}
	},
	"blocks within blocks": func() []section {
		return []section{debugSection("abbrev", abbreviations), debugSection("info", encodeUnit(0, encodeRootEntry(), 3, uint32(0),
			bytes.Repeat([]byte{5}, 4_000_000))), debugSection("ranges", encodeRangeList(1))}
	},
	"entries that share a name": func() []section {
		return []section{
			debugSection("abbrev", abbreviations), debugSection("info", encodeUnit(0, encodeRootEntry(),
				bytes.Repeat(encodeNumbers(6, uint32(0)), 500_000), 0)),
			debugSection("str", bytes.Repeat([]byte("x"), 9<<20)),
		}
	},
	"tables of abbreviations within one another": func() []section {
		var units []byte
		for i := range 100_000 {
			units = append(units, encodeUnit(uint32(7*i), encodeRootEntry())...)
		}
		return []section{debugSection("info", units), debugSection("abbrev", bytes.Repeat(encodeNumbers(1, 0x34, 0, 0x03, 0x0e, 0, 0), 1_000_000))}
	},
	"symbols that share a name": func() []section {
		return []section{
			{name: ".symtab", kind: elf.SHT_SYMTAB, link: 2, data: bytes.Repeat(encodeNumbers(uint32(0), byte(0x12), byte(0), uint16(1),
				uint64(0x1000), uint64(16)), 300_000)},
			{name: ".strtab", kind: elf.SHT_STRTAB, data: append(bytes.Repeat([]byte("x"), 9<<20), 0)},
		}
	},
}
