package target

import (
	"debug/elf"
	"fmt"
	"math"
	"os"
	"strings"
	"testing"
)

// entryCases are beginnings of functions as compilers write them, with # at the best place for the probe.
var entryCases = map[string]string{
	"loader":       "mov 0x7d71(%rip),%rax; test %rax,%rax; # jne 1f; mov (%rdi),%rax; 1: jmp *0x130(%rax)",
	"pushes":       "mov 0x7d71(%rip),%rax; # push %rbx; mov 0x10(%rsp),%r10d; ret",
	"late":         "mov 0x10(%rsp),%r10; mov 0x118(%rsp),%r11; test %r10,%r10; # je 1f; 1: ret",
	"landing":      "endbr64; # push %r14; ret",
	"vectors":      "vzeroupper; vzeroall; # push %r14; ret",
	"flag":         "cmpb $0,0x1234(%rip); # jne 1f; .skip 200, 0x90; 1: ret",
	"flags":        "cmpl $0,0x1234(%rip); # jne 1f; 1: ret",
	"short":        "mov 0x1234(%rip),%ax; # push %rbx; ret",
	"sums":         "lea 8(%rax,%rbx,4),%r11; movzbl 0x99(%rip),%eax; sub $5,%r10; xor %eax,%eax; # jmp 1f; 1: ret",
	"two bytes":    "xor %eax,%eax; # .byte 0x66,0x90; push %rbx; ret",
	"nothing":      "mov 0x99(%rip),%r10; cmp %r10,%rsi; # .byte 0x0f,0x1f,0x44,0,0; ret",
	"something":    "xor %eax,%eax; .byte 0x0f,0x1f,0x44,0,0; # push %rbx; ret",
	"at once":      "# push %rbp; push %rbx; ret",
	"tail":         "# jmp 1f; .skip 300, 0x90; 1: ret",
	"indirect":     "mov 0x99(%rip),%rax; # nop; jmp *(%rax)",
	"again":        "9: mov 0x99(%rip),%eax; test %eax,%eax; # jne 9b; ret",
	"later":        "mov 0x99(%rip),%eax; # push %rbx; 1: test %eax,%eax; jne 1b; ret",
	"argument":     "# mov (%rdi),%rdi; test %rdi,%rdi; je 1f; 1: ret",
	"argument too": "# xor %r9d,%r9d; push %rbx; ret",
	"stack":        "# sub $8,%rsp; push %rbx; ret",
	"aligned":      "# lea 8(%rsp),%r10; push %rbx; ret",
	"base":         "# mov 0x99(%rip),%rbp; push %rbx; ret",
	"kept":         "# xor %r12d,%r12d; push %rbx; ret",
	"kept too":     "# mov %al,%bl; push %rbx; ret",
	"store":        "# mov %rax,8(%rdi); push %rbx; ret",
	"store too":    "# add %rax,0x99(%rip); push %rbx; ret",
	"fault":        "# mov (%rdi),%rax; push %rbx; ret",
	"fault too":    "# cmpl $0,(%rsi); push %rbx; ret",
	"far":          "# mov 0x10(%rsp,%rsi),%rax; push %rbx; ret",
	"thread":       "# mov %fs:0x10,%rax; push %rbx; ret",
	"locked":       "# lock xadd %eax,0x99(%rip); push %rbx; ret",
	"vector":       "# movups (%rdi),%xmm0; push %rbx; ret",
	"exchange":     "# .byte 0x41,0x90; push %rbx; ret",
	"pause":        "# pause; push %rbx; ret",
	"calls":        "# call 1f; 1: push %rbx; ret",
	"narrow":       "xor %eax,%eax; # .byte 0x90; .byte 0x66,0x53; ret",
	"narrow too":   "# xor %eax,%eax; .byte 0x66,0x53; ret",
	"hinted":       "# xor %eax,%eax; .byte 0x2e,0x75,0; ret",
	"no end":       "# mov 0x99(%rip),%rax; jmp *8(%rax)",
	"spin":         "# mov 0x99(%rip),%eax; 1: test %eax,%eax; jne 1b; ret",
	"loop":         "# mov 0x99(%rip),%eax; 1: push %rbx; .skip 300, 0x90; test %eax,%eax; jne 1b; ret",
	"counted":      "# mov 0x99(%rip),%eax; 1: push %rbx; pop %rbx; loop 1b; ret",
	"label":        "# mov 0x99(%rip),%eax; 1: push %rbx; lea 1b(%rip),%rax; jmp *%rax",
	"data":         "# mov 0x99(%rip),%eax; push %rbx; ret; .byte 0x06",
	"avx":          "mov 0x99(%rip),%eax; # push %rbx; vzeroupper; vmovups (%rax),%ymm0; ret",
	"avx loop":     "# mov 0x99(%rip),%eax; 1: push %rbx; vzeroupper; jne 1b; ret",
}

// The assembler knows where instructions begin, and the sizes of functions.
func TestEntries(t *testing.T) {
	var source strings.Builder
	var names []string
	for name, code := range entryCases {
		symbol := fmt.Sprintf("f%d", len(names))
		names = append(names, name)
		code = strings.Replace(code, "#", "p"+symbol+":", 1)
		fmt.Fprintf(&source, "__asm__(\".globl %s, p%s; .type %s, @function; %s: %s; .size %s, .-%s; .skip 100, 6\");\n",
			symbol, symbol, symbol, symbol, code, symbol, symbol)
	}
	library := build(t, "libentries.so", source.String(), "-shared", "-fPIC")
	symbols := labels(t, library)
	for i, name := range names {
		begin, want := symbols[fmt.Sprintf("f%d", i)], symbols[fmt.Sprintf("pf%d", i)]
		if got := ProbePlaces(library, []uint64{begin})[0]; begin == 0 || got != want {
			t.Errorf("%s: probed after %d bytes, want %d", name, got-begin, want-begin)
		}
	}
}

// labels returns the places of all symbols of a file.
func labels(t *testing.T, library string) map[string]uint64 {
	t.Helper()
	file, err := elf.Open(library)
	if err != nil {
		t.Fatal(err)
	}
	defer file.Close() //nolint:errcheck // only read
	list, err := file.DynamicSymbols()
	if err != nil {
		t.Fatal(err)
	}
	places := map[string]uint64{}
	for _, symbol := range list {
		if offset, ok := fileOffset(file, symbol.Value); ok {
			places[symbol.Name] = offset
		}
	}
	return places
}

// Code after the beginning of another function is reached by calls of that function, too.
func TestEntriesOfNeighbours(t *testing.T) {
	library := build(t, "libneighbours.so", `
		__asm__(".globl a, b, c, d; .type a, @function; .type c, @function; .type d, @function");
		__asm__("a: xor %eax, %eax; b: xor %r10d, %r10d; push %rbx; .size a, .-a; .skip 100, 6");
		__asm__("c: xor %eax, %eax; d: xor %r10d, %r10d; push %rbx; .size c, .-c; .size d, .-d; .skip 5000, 0x90");`,
		"-shared", "-fPIC")
	at := labels(t, library)
	for _, c := range []struct {
		name string
		ask  []uint64
		want []uint64
	}{
		{"alone", []uint64{at["a"]}, []uint64{at["a"] + 5}},
		{"asked for", []uint64{at["b"], at["a"]}, []uint64{at["b"], at["a"]}},
		{"named", []uint64{at["c"]}, []uint64{at["c"]}},
		{"second", []uint64{at["d"], at["d"]}, []uint64{at["d"] + 3, at["d"] + 3}},
	} {
		if got := ProbePlaces(library, c.ask); fmt.Sprint(got) != fmt.Sprint(c.want) {
			t.Errorf("%s: %#x, want %#x", c.name, got, c.want)
		}
	}
}

// Functions without a size extend to the next function, or to the bound.
func TestEntriesWithoutSize(t *testing.T) {
	library := build(t, "libunsized.so", `
		__asm__(".globl a, b, c, d; .type a, @function; .type b, @function; .type c, @function; .type d, @function");
		__asm__("a: xor %eax, %eax; push %rbx; ret; .skip 50, 0xcc");
		__asm__("b: xor %eax, %eax; 1: push %rbx; .skip 3000, 0x90; jmp 1b; .byte 6");
		__asm__("c: xor %eax, %eax; push %rbx; ret; .byte 6; .skip 100, 0x90");
		__asm__("d: xor %eax, %eax; push %rbx; ret; .skip 5000, 0x90; .byte 6");`,
		"-shared", "-fPIC")
	at := labels(t, library)
	for name, after := range map[string]uint64{"a": 2, "b": 0, "c": 0, "d": 2} {
		if got := ProbePlaces(library, []uint64{at[name]})[0]; got != at[name]+after {
			t.Errorf("%s: probed after %d bytes, want %d", name, got-at[name], after)
		}
	}
}

// An absurd size costs nothing.
func TestEntriesOfGiants(t *testing.T) {
	library := build(t, "libgiant.so", `
		__asm__(".globl a, b; .type a, @function; .type b, @function; .size a, 0x10001; .size b, -1");
		__asm__("a: xor %eax, %eax; push %rbx; ret; .skip 0x10000, 0x90; b: xor %eax, %eax; push %rbx; ret");`,
		"-shared", "-fPIC")
	at := labels(t, library)
	for name, place := range at {
		if got := ProbePlaces(library, []uint64{place})[0]; got != place {
			t.Errorf("%s: probed after %d bytes", name, got-place)
		}
	}
}

func TestEntriesOfNothing(t *testing.T) {
	empty := copyOf(t, "/dev/null", "empty")
	for _, path := range []string{empty, "/dev/zero", t.TempDir(), "/nowhere", os.Args[0]} {
		places := []uint64{0, 7, 1 << 40, 1 << 63, math.MaxUint64}
		for i, got := range ProbePlaces(path, places) {
			if got != places[i] {
				t.Errorf("%s: %#x for %#x", path, got, places[i])
			}
		}
	}
	if got := ProbePlaces(os.Args[0], nil); len(got) != 0 {
		t.Errorf("%#x for none", got)
	}
}

// Any code before the place is harmless, and the instruction there is emulated.
func FuzzEntries(f *testing.F) {
	f.Add([]byte("\x48\x8b\x05\x71\x7d\x00\x00\x48\x85\xc0\x75\x14\xc3"), uint16(13), uint16(64))
	f.Add([]byte("\xf3\x0f\x1e\xfa\x31\xc0\x41\x56\xc5\xf8\x77\xc3\x90\x90"), uint16(12), uint16(64))
	f.Add([]byte("\x31\xc0\x0f\x1f\x44\x00\x00\xc3"), uint16(8), uint16(5))
	f.Add([]byte("\x31\xc0\x53\xeb\xfd"), uint16(5), uint16(64))
	f.Add([]byte("\x62\xf1\x7c\x48\x57\xc0\x8f\xe9\x78\xe1\xc0\xc4\xe2\x7d\x18"), uint16(15), uint16(64))
	f.Fuzz(func(t *testing.T, code []byte, size, limit uint16) {
		place := cheapestPlace(code, int(size), int(limit))
		if place == 0 {
			return
		}
		if place < 0 || place >= int(size) || place >= int(limit) || place >= len(code) {
			t.Fatalf("at %d of %d bytes, of a function of %d, with a limit of %d", place, len(code), size, limit)
		}
		at := 0
		for at < place {
			inst, ok := decodeFirstInstruction(code[at:])
			if !ok || !isHarmlessForProbe(&inst) || isEmulated(code[at:at+inst.Len]) {
				t.Fatalf("% x stands before the place", code[at:])
			}
			at += inst.Len
		}
		inst, ok := decodeFirstInstruction(code[at:])
		if !ok || at != place || !isEmulated(code[at:at+inst.Len]) && string(code[at:at+inst.Len]) != string(nop5) {
			t.Fatalf("% x is not emulated", code[place:])
		}
	})
}
