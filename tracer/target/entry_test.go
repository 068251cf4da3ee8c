package target

import (
	"fmt"
	"os"
	"strings"
	"testing"
)

// Functions as compilers begin them, with # where the probe belongs.
var entryCases = map[string]string{
	"loader":       "mov 0x7d71(%rip),%rax; test %rax,%rax; # jne 1f; mov (%rdi),%rax; 1: jmp *0x130(%rax)",
	"pushes":       "mov 0x7d71(%rip),%rax; # push %rbx; mov 0x10(%rsp),%r10d; ret",
	"late":         "mov 0x10(%rsp),%r10; mov 0x118(%rsp),%r11; test %r10,%r10; # je 1f; 1: ret",
	"landing":      "endbr64; # push %r14; ret",
	"flag":         "cmpb $0,0x1234(%rip); # jne 1f; .skip 200; 1: ret",
	"flags":        "cmpl $0,0x1234(%rip); # jne 1f; 1: ret",
	"sums":         "lea 8(%rax,%rbx,4),%r11; mov (%r12),%rbp; mov 5(%r13),%eax; xor %eax,%eax; cmp %rax,0x1234(,%rbx,2); # jmp 1f; 1: ret",
	"nothing":      "mov 0x99(%rip),%r10; cmp (%rsi),%r10; # .byte 0x0f,0x1f,0x44,0,0; ret",
	"at once":      "# push %rbp; push %rbx; ret",
	"tail":         "# jmp 1f; .skip 300; 1: ret",
	"argument":     "# mov (%rdi),%rdi; test %rdi,%rdi; je 1f; 1: ret",
	"argument too": "# xor %r9d,%r9d; push %rbx; ret",
	"stack":        "# sub $8,%rsp; push %rbx; ret",
	"store":        "# mov %rax,8(%rdi); push %rbx; ret",
	"vector":       "# movups (%rdi),%xmm0; push %rbx; ret",
	"short":        "# mov (%rdi),%ax; push %rbx; ret",
	"indirect":     "mov 0x99(%rip),%rax; # nop; jmp *(%rax)",
	"no end":       "# mov (%rdi),%rax; jmp *8(%rax)",
	"spin":         "# mov 0x99(%rip),%eax; 1: test %eax,%eax; jne 1b; ret",
	"again":        "9: # mov (%rsi),%eax; test %eax,%eax; jne 9b; ret",
}

// The assembler knows where instructions begin.
func TestEntries(t *testing.T) {
	var source strings.Builder
	var names []string
	for name, code := range entryCases {
		symbol := fmt.Sprintf("f%d", len(names))
		names = append(names, name)
		code = strings.Replace(code, "#", "p"+symbol+":", 1)
		fmt.Fprintf(&source, "__asm__(\".globl %s, p%s; .type %s, @function; .type p%s, @function; %s: %s; .skip 100\");\n",
			symbol, symbol, symbol, symbol, symbol, code)
	}
	source.WriteString("int clGetPlatformIDs(void) { return 1; }\n")
	library := build(t, "libentries.so", source.String(), "-shared", "-fPIC")
	file, err := os.Open(library)
	if err != nil {
		t.Fatal(err)
	}
	defer file.Close() //nolint:errcheck // only read
	symbols := readSymbols(file).all
	for i, name := range names {
		begin, want := symbols[fmt.Sprintf("f%d", i)], symbols[fmt.Sprintf("pf%d", i)]
		if got := Entries(library, []uint64{begin})[0]; begin == 0 || got != want {
			t.Errorf("%s: probed after %d bytes, want %d", name, got-begin, want-begin)
		}
	}
}

// A function that runs on into the next one is not to be told when that is called.
func TestEntriesOfNeighbours(t *testing.T) {
	path := copyOf(t, "/dev/null", "code")
	put(t, path, "\x31\xc0\x31\xdb\x53\x90\x90\x90\x90\x90\x90\x90")
	if got := Entries(path, []uint64{0, 2}); got[0] != 0 || got[1] != 4 {
		t.Errorf("%d", got)
	}
	if got := Entries(path, []uint64{0}); got[0] != 4 {
		t.Errorf("alone: %d", got)
	}
}

func TestEntriesOfNothing(t *testing.T) {
	empty := copyOf(t, "/dev/null", "empty")
	for _, path := range []string{empty, "/dev/zero", t.TempDir(), "/nowhere"} {
		places := []uint64{0, 7, 1 << 40, 1 << 63, ^uint64(0)}
		for i, got := range Entries(path, places) {
			if got != places[i] {
				t.Errorf("%s: %#x for %#x", path, got, places[i])
			}
		}
	}
}

// What is before the place is code of known length, so no more is said than where it ends.
func FuzzCheapest(f *testing.F) {
	f.Add([]byte("\x48\x8b\x05\x71\x7d\x00\x00\x48\x85\xc0\x75\x14"))
	f.Fuzz(func(t *testing.T, code []byte) {
		at := cheapest(code)
		if at > uint64(len(code)) {
			t.Fatalf("%d of %d bytes", at, len(code))
		}
		if at == 0 {
			return
		}
		if yes, _ := emulated(code[at:]); !yes {
			t.Fatalf("% x is not emulated", code[at:])
		}
	})
}
