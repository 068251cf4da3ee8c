package e2e

import (
	"bytes"
	"debug/elf"
	"encoding/binary"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/cilium/ebpf"
	"github.com/cilium/ebpf/asm"
	"github.com/cilium/ebpf/link"

	"codeberg.org/gpumemtop/gpumemtop/internal/testkit/rightstest"
)

// usdt is a static probe, as a tool finds it in a library.
type usdt struct {
	name                string // provider:name
	location, semaphore uint64 // in the file
	places              string // of the arguments
}

// usdts reads the notes of static probes.
func usdts(t *testing.T, path string) map[string]usdt {
	t.Helper()
	file, err := elf.Open(path)
	if err != nil {
		t.Fatal(err)
	}
	defer file.Close() //nolint:errcheck // it was only read
	section := file.Section(".note.stapsdt")
	if section == nil {
		t.Fatal("no static probes")
	}
	notes, err := section.Data()
	if err != nil {
		t.Fatal(err)
	}
	at := func(address uint64) uint64 {
		for _, p := range file.Progs {
			if p.Type == elf.PT_LOAD && address-p.Vaddr < p.Filesz {
				return address - p.Vaddr + p.Off
			}
		}
		t.Fatalf("address %#x is not in the file", address)
		return 0
	}
	found := map[string]usdt{}
	for len(notes) >= 20 {
		word := func(i int) uint64 { return binary.LittleEndian.Uint64(notes[20+8*i:]) }
		size := binary.LittleEndian.Uint32(notes[4:])
		texts := bytes.Split(notes[20+24:20+size], []byte{0})
		p := usdt{fmt.Sprintf("%s:%s", texts[0], texts[1]), at(word(0)), at(word(2)), string(texts[2])}
		found[p.name] = p
		notes = notes[20+(size+3)/4*4:]
	}
	return found
}

// registers are places in the registers that a program of eBPF gets.
var registers = map[string]int16{"%r15": 0, "%r14": 8, "%r13": 16, "%r12": 24, "%rbp": 32, "%rbx": 40, "%r11": 48, "%r10": 56,
	"%r9": 64, "%r8": 72, "%rax": 80, "%rcx": 88, "%rdx": 96, "%rsi": 104, "%rdi": 112}

// listen attaches to a probe, and returns how often it fired, and the sum of one of its arguments.
func (p usdt) listen(t *testing.T, library string, argument int) func() (count, sum uint64) {
	t.Helper()
	sums, err := ebpf.NewMap(&ebpf.MapSpec{Type: ebpf.Array, KeySize: 4, ValueSize: 8, MaxEntries: 2})
	if err != nil {
		t.Fatal(err)
	}
	_, register, _ := strings.Cut(strings.Fields(p.places)[argument], "@")
	place, known := registers[register]
	if !known {
		t.Fatalf("%s: argument %d of %q", p.name, argument, p.places)
	}
	add := func(key int32, value asm.Register) asm.Instructions {
		return asm.Instructions{
			asm.StoreImm(asm.RFP, -4, int64(key), asm.Word), asm.LoadMapPtr(asm.R1, sums.FD()), asm.Mov.Reg(asm.R2, asm.RFP),
			asm.Add.Imm(asm.R2, -4), asm.FnMapLookupElem.Call(), asm.JEq.Imm(asm.R0, 0, "end"), asm.AddAtomic.Mem(asm.R0, value, asm.DWord, 0),
		}
	}
	code := asm.Instructions{asm.LoadMem(asm.R6, asm.R1, place, asm.DWord), asm.Mov.Imm(asm.R7, 1)}
	code = append(append(append(code, add(0, asm.R7)...), add(1, asm.R6)...), asm.Mov.Imm(asm.R0, 0).WithSymbol("end"), asm.Return())
	program, err := ebpf.NewProgram(&ebpf.ProgramSpec{Type: ebpf.Kprobe, License: "GPL", Instructions: code})
	if err != nil {
		t.Fatal(err)
	}
	executable, err := link.OpenExecutable(library)
	if err != nil {
		t.Fatal(err)
	}
	l, err := executable.Uprobe("", program, &link.UprobeOptions{Address: p.location, RefCtrOffset: p.semaphore})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _, _, _ = l.Close(), program.Close(), sums.Close() })
	return func() (count, sum uint64) {
		if err := sums.Lookup(uint32(0), &count); err != nil {
			t.Fatal(err)
		}
		if err := sums.Lookup(uint32(1), &sum); err != nil {
			t.Fatal(err)
		}
		return count, sum
	}
}

// TestStaticProbes: tools of eBPF see what a program allocates by the probes of the preloaded library alone.
func TestStaticProbes(t *testing.T) {
	t.Parallel()
	rightstest.NeedAttach(t)
	library := filepath.Join(t.TempDir(), "libgpumemtop.so") // other programs do not have it
	data, err := os.ReadFile(root + "/build/libgpumemtop.so")
	if err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(library, data, 0o755); err != nil { //nolint:gosec // a library
		t.Fatal(err)
	}
	probes := usdts(t, library)
	alloc, free := probes["gpumemtop:alloc"].listen(t, library, 1), probes["gpumemtop:free"].listen(t, library, 0)
	otelAlloc, otelFree := probes["otel_memory:alloc"].listen(t, library, 2), probes["otel_memory:free"].listen(t, library, 0)
	requested := probes["gpumemtop:alloc"].listen(t, library, 2)
	program := []string{example("pipeline"), "20", "256K"}
	bare := runBare(t, program...)
	for i, c := range []struct {
		setting   string
		all, otel uint64 // runs that fired so far
	}{{"", 0, 0}, {"1", 1, 0}, {"otel", 2, 1}} {
		r := run(t, command{args: program, env: []string{"LD_PRELOAD=" + library, "GPUMEMTOP_USDT=" + c.setting}})
		if d := differs(bare, r); d != "" {
			t.Fatalf("%q: %s", c.setting, d)
		}
		const count, bytes = 200, 38031360
		allocs, size := alloc()
		frees, _ := free()
		_, asked := requested()
		if allocs != c.all*count || size != c.all*bytes || asked != size || frees != c.all*count {
			t.Errorf("after run %d: %d allocs of %d bytes, %d asked for, %d frees", i, allocs, size, asked, frees)
		}
		allocs, size = otelAlloc()
		frees, _ = otelFree()
		if allocs != c.otel*count || size != c.otel*bytes || frees != c.otel*count {
			t.Errorf("OpenTelemetry's after run %d: %d allocs of %d bytes, %d frees", i, allocs, size, frees)
		}
	}
}
