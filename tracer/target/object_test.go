package target

import (
	"bytes"
	"debug/elf"
	"encoding/binary"
	"errors"
	"io"
	"math"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"golang.org/x/sys/unix"

	"codeberg.org/gpumemtop/gpumemtop/internal/untrusted"
)

// program is an ELF file linked to an address, with code after data.
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
	if got := lowestPage(program()); got != 0x400000 {
		t.Errorf("its base is %#x", got)
	}
}

// Of several versions of a name the default one counts, in any order.
func TestDefaultVersion(t *testing.T) {
	type version struct {
		offset uint64
		hidden bool
	}
	list := []version{{1, true}, {2, false}, {3, true}}
	for range 2 {
		into := map[string]uint64{}
		for _, v := range list {
			addFunction(into, "clFlush", v.offset, v.hidden)
		}
		if into["clFlush"] != 2 {
			t.Errorf("%#x", into)
		}
		slices.Reverse(list)
	}
	script := copyOf(t, "/dev/null", "versions")
	put(t, script, "V1 { global: *; }; V2 { } V1; V3 { } V2;")
	library := build(t, "libversions.so", `
		int clGetPlatformIDs(void) { return 0; }
		int one(void) { return 1; } int two(void) { return 2; } int three(void) { return 3; }
		__asm__(".symver one, clFlush@V1; .symver two, clFlush@@V2; .symver three, clFlush@V3");
		__asm__(".globl clTwo; .type clTwo, @function; .set clTwo, two");`,
		"-shared", "-fPIC", "-Wl,--version-script="+script)
	file, err := os.Open(library)
	if err != nil {
		t.Fatal(err)
	}
	defer file.Close() //nolint:errcheck // only read
	if s := readSymbols(file); s.dynamic["clFlush"] == 0 || s.dynamic["clFlush"] != s.dynamic["clTwo"] {
		t.Errorf("%v", s.dynamic)
	}
}

// Opening a file that is not regular can block or have effects, and the file may be replaced at any time.
func TestOpenTouchesNothing(t *testing.T) {
	pipe := filepath.Join(t.TempDir(), "pipe")
	if err := unix.Mkfifo(pipe, 0o600); err != nil {
		t.Fatal(err)
	}
	watch, err := unix.InotifyInit1(unix.IN_NONBLOCK | unix.IN_CLOEXEC)
	if err != nil {
		t.Fatal(err)
	}
	defer unix.Close(watch) //nolint:errcheck // only read
	if _, err := unix.InotifyAddWatch(watch, pipe, unix.IN_OPEN); err != nil {
		t.Fatal(err)
	}
	if file, err := untrusted.OpenRegular(pipe, 0); err == nil {
		t.Errorf("%s is open", file.Name())
	}
	if n, err := unix.Read(watch, make([]byte, 4096)); !errors.Is(err, unix.EAGAIN) {
		t.Errorf("it was opened: %d bytes of events, %v", n, err)
	}
}

// A small file can claim more than fits into memory. The reader reports what is read.
func TestSymbolsOfGiants(t *testing.T) {
	library, err := os.ReadFile(build(t, "libgiant.so", "int clGetPlatformIDs(void) { return 0; }", "-shared", "-fPIC"))
	if err != nil {
		t.Fatal(err)
	}
	const sections, segments, count, size, names = 0x28, 0x38, 0x3c, 0x3a, 0x3e // of the header
	heading := func(data []byte) uint64 {
		at := binary.LittleEndian.Uint64(data[sections:])
		return at + 64*uint64(binary.LittleEndian.Uint16(data[names:]))
	}
	for name, change := range map[string]func(data []byte){
		"as it is": func([]byte) {},
		"sections": func(data []byte) {
			binary.LittleEndian.PutUint16(data[count:], 0)
			binary.LittleEndian.PutUint64(data[binary.LittleEndian.Uint64(data[sections:])+32:], 1<<28)
		},
		"large sections": func(data []byte) { binary.LittleEndian.PutUint16(data[size:], math.MaxUint16) },
		"segments":       func(data []byte) { binary.LittleEndian.PutUint16(data[segments:], math.MaxUint16) },
		"headings":       func(data []byte) { binary.LittleEndian.PutUint64(data[heading(data)+32:], 1<<34) },
		"packed":         func(data []byte) { data[heading(data)+9] |= byte(elf.SHF_COMPRESSED >> 8) },
	} {
		data := slices.Clone(library)
		change(data)
		r := &holes{data: data}
		if s := readSymbols(r); (s != nil) != (name == "as it is") {
			t.Errorf("%s: %v", name, s)
		}
		if r.read > 1<<20 {
			t.Errorf("%s: %d bytes were read", name, r.read)
		}
	}
}

// holes is an endless file.
type holes struct {
	data []byte
	read int
}

func (h *holes) ReadAt(p []byte, at int64) (int, error) {
	if h.read += len(p); h.read > 1<<30 {
		return 0, io.ErrUnexpectedEOF
	}
	clear(p)
	if at < int64(len(h.data)) {
		copy(p, h.data[at:])
	}
	return len(p), nil
}

// Symbols cost what they take, even if all share one long name.
func TestSymbolsOfOneName(t *testing.T) {
	const count, length = 20_000, 1 << 20
	symbols := make([]byte, count*elf.Sym64Size)
	for i := range count {
		symbol := symbols[i*elf.Sym64Size:]
		symbol[4], symbol[6] = elf.ST_INFO(elf.STB_GLOBAL, elf.STT_FUNC), 1
		binary.LittleEndian.PutUint64(symbol[8:], 0x402000)
	}
	section := func(data []byte) *elf.Section {
		return &elf.Section{SectionHeader: elf.SectionHeader{FileSize: uint64(len(data))}, ReaderAt: bytes.NewReader(data)}
	}
	long := append(bytes.Repeat([]byte("cl"), length/2), 0)
	binary.LittleEndian.PutUint32(symbols, length-2)
	into := map[string]uint64{}
	allocations := testing.AllocsPerRun(1, func() { addFunctions(program(), table{section(symbols), section(long)}, nil, into) })
	if len(into) != 1 || into["cl"] != 0x1000 || allocations > 1000 {
		t.Errorf("%d functions, %v allocations", len(into), allocations)
	}
}

// Names are found across the ends of the pieces that are read.
func TestNamesAcrossPiecesAreFound(t *testing.T) {
	const piece = 1 << 20
	for _, at := range []int{0, 10, piece - 3, piece + 20, piece + 32, 2*piece - 14, 3 * piece} {
		text := strings.Repeat("x", at) + "clGetPlatformIDs\x00" + strings.Repeat("y", piece)
		for _, found := range []bool{true, false} {
			if !found {
				text = strings.Replace(text, "Get", "get", 1)
			}
			section := &elf.Section{SectionHeader: elf.SectionHeader{FileSize: uint64(len(text))}, ReaderAt: strings.NewReader(text)}
			if got := (table{section, section}).mentionsOpenCL(); got != found {
				t.Errorf("at %d: %v", at, got)
			}
		}
	}
}
