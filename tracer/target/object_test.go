package target

import (
	"debug/elf"
	"slices"
	"strings"
	"testing"
)

// program is an ELF file that was linked to an address, with code behind data.
func program() *elf.File {
	load := func(flags elf.ProgFlag, address, offset, size uint64) *elf.Prog {
		return &elf.Prog{ProgHeader: elf.ProgHeader{Type: elf.PT_LOAD, Flags: flags, Vaddr: address, Off: offset, Filesz: size}}
	}
	return &elf.File{Progs: []*elf.Prog{
		{ProgHeader: elf.ProgHeader{Type: elf.PT_PHDR, Vaddr: 0x40}},
		load(elf.PF_R, 0x400100, 0x100, 0x500), load(elf.PF_R|elf.PF_X, 0x402000, 0x1000, 0x800),
	}}
}

func TestFileOffset(t *testing.T) {
	for _, test := range []struct {
		address, want uint64
		ok            bool
	}{
		{0x402000, 0x1000, true}, {0x4027ff, 0x17ff, true}, {0x402800, 0, false}, {0x401fff, 0, false}, {0x400100, 0, false}, {0x40, 0, false},
	} {
		if got, ok := fileOffset(program(), test.address); got != test.want || ok != test.ok {
			t.Errorf("%#x: %#x, %v", test.address, got, ok)
		}
	}
	if got := base(program()); got != 0x400000 {
		t.Errorf("its base is %#x", got)
	}
}

// Of several versions of a name the default one counts, in whatever order they come.
func TestDefaultVersion(t *testing.T) {
	const hidden = 0x8000
	symbol := func(address uint64, version elf.VersionIndex) elf.Symbol {
		return elf.Symbol{
			Name: "clFlush", Info: elf.ST_INFO(elf.STB_GLOBAL, elf.STT_FUNC), Section: 1, Value: address,
			HasVersion: true, VersionIndex: version,
		}
	}
	list := []elf.Symbol{symbol(0x402100, 2|hidden), symbol(0x402200, 3), symbol(0x402300, 4|hidden)}
	for range 2 {
		into := map[string]uint64{}
		(&symbols{}).take(program(), list, into)
		if into["clFlush"] != 0x1200 {
			t.Errorf("%#x", into)
		}
		slices.Reverse(list)
	}
}

// Names are found wherever the pieces end in which they are read.
func TestMention(t *testing.T) {
	const piece = 1 << 20
	for _, at := range []int{0, 10, piece - 3, piece + 20, piece + 32, 2*piece - 14, 3 * piece} {
		text := strings.Repeat("x", at) + "clGetPlatformIDs\x00" + strings.Repeat("y", piece)
		for _, found := range []bool{true, false} {
			if !found {
				text = strings.Replace(text, "Get", "get", 1)
			}
			section := &elf.Section{SectionHeader: elf.SectionHeader{FileSize: uint64(len(text))}, ReaderAt: strings.NewReader(text)}
			if got := (table{section, section}).mention(); got != found {
				t.Errorf("at %d: %v", at, got)
			}
		}
	}
}
