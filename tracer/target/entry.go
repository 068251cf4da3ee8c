package target

import (
	"bytes"
	"os"
	"slices"

	"golang.org/x/arch/x86/x86asm"
)

// Where a function is probed decides what a probe costs. Of the instruction that its breakpoint replaces the kernel does
// itself what a few kinds ask for, jumps, pushes and no-ops; any other it has the processor execute elsewhere, one step
// at a time, which takes a second exception: twice the cost of the first on bare metal, and twenty times in a virtual
// machine whose host wants to see it. So a probe goes where the function's first instruction of those kinds is, if
// what comes before leaves all that a probe at the entry sees as it was, and if the place is come to once in each call.

const (
	entryMax    = 64       // how far behind a function's beginning it is probed, at most
	functionMax = 64 << 10 // larger functions are probed where they begin
	unsizedMax  = 4 << 10  // how much is looked at of a function whose size nobody tells
	longest     = 15       // bytes of one instruction
)

// Entries returns where to probe the functions that begin at some places of a file: there, or a few instructions later,
// where a probe costs less and sees the same. What cannot be read or understood is left as it is.
func Entries(path string, functions []uint64) []uint64 {
	entries := slices.Clone(functions)
	file, err := open(path)
	if err != nil {
		return entries
	}
	defer file.Close() //nolint:errcheck // only read
	for i, e := range extents(file, functions) {
		size := e.size
		if size == 0 {
			size = min(e.next, unsizedMax)
		}
		if size > functionMax {
			continue
		}
		code := readCode(file, functions[i], int(size)+longest)
		entries[i] += uint64(cheapest(code, int(size), int(min(e.next, entryMax))))
	}
	return entries
}

func readCode(file *os.File, at uint64, size int) []byte {
	if at > 1<<62 {
		return nil
	}
	code := make([]byte, size)
	n, _ := file.ReadAt(code, int64(at)) // the function may be the last of the file
	return code[:n]
}

// cheapest returns how far behind the beginning of a function its cheapest place for a probe is, 0: it is the beginning.
// The function has size bytes, and the place is among the first limit. The code may go on behind the function, so that
// its last instructions can be decoded.
func cheapest(code []byte, size, limit int) int {
	place := candidate(code, min(size, limit))
	if place > 0 && leadsInto(code, size, place) {
		return 0
	}
	return place
}

// candidate returns the first place, before limit, of an instruction that the kernel emulates, 0 if something stands
// before it that a probe would notice. No-ops of several bytes are emulated since Linux 6.16 only, so one of them is
// taken where there is nothing better: older kernels have no more to do there than at the beginning.
func candidate(code []byte, limit int) int {
	fallback := 0
	for at := 0; at < limit; {
		inst, ok := decode(code[at:])
		if !ok {
			break
		}
		if emulated(code[at : at+inst.Len]) {
			return at
		}
		if !harmless(&inst) {
			break
		}
		if fallback == 0 && bytes.HasPrefix(code[at:], nop5) {
			fallback = at
		}
		at += inst.Len
	}
	return fallback
}

// leadsInto reports whether anything in a function, as far as its code says it, leads to a place behind its beginning, up
// to place: a probe there would tell of one call several times, or of none. It does so, too, when the function cannot be
// decoded whole. Whatever is relative to an instruction counts, addresses of labels, too.
func leadsInto(code []byte, size, place int) bool {
	for at := 0; at < size; {
		inst, ok := decode(code[at:])
		if !ok {
			return true
		}
		at += inst.Len
		for _, arg := range inst.Args {
			distance, ok := relative(arg)
			if target := int64(at) + distance; ok && 0 < target && target <= int64(place) {
				return true
			}
		}
	}
	return false
}

// relative returns how far from an instruction's end that lies which an operand names by its distance from there.
func relative(arg x86asm.Arg) (distance int64, ok bool) {
	switch arg := arg.(type) {
	case x86asm.Rel:
		return int64(arg), true
	case x86asm.Mem:
		return int64(int32(arg.Disp)), arg.Base == x86asm.RIP // the decoder leaves the sign out
	}
	return 0, false
}

var nop5 = []byte{0x0f, 0x1f, 0x44, 0x00, 0x00}

// misread are instructions that the decoder takes for others, of another length. To a probe they are no-ops.
var misread = [][]byte{
	{0xf3, 0x0f, 0x1e, 0xfa}, // endbr64
	{0xc5, 0xf8, 0x77},       // vzeroupper
	{0xc5, 0xfc, 0x77},       // vzeroall
}

// decode returns the first instruction.
func decode(code []byte) (inst x86asm.Inst, ok bool) {
	for _, known := range misread {
		if bytes.HasPrefix(code, known) {
			return x86asm.Inst{Op: x86asm.NOP, Len: len(known)}, true
		}
	}
	inst, err := x86asm.Decode(code, 64)
	switch inst.Op {
	case 0, x86asm.VZEROUPPER, x86asm.VZEROALL:
		return inst, false
	}
	return inst, err == nil
}

// emulated reports whether the kernel does itself what an instruction asks for (arch/x86/kernel/uprobes.c, alike from
// Linux 5.15 on: branch_setup_xol_ops, push_setup_xol_ops). Prefixes matter: with some of them it executes the
// instruction, and with others it refuses to probe it. It emulates relative calls, too, but not what these do with a
// shadow stack.
func emulated(inst []byte) bool {
	switch len(inst) {
	case 1:
		return inst[0]&^7 == 0x50 || inst[0] == 0x90 // push, nop
	case 2:
		return inst[0] == 0x41 && inst[1]&^7 == 0x50 || // push of r8 to r15
			inst[0] == 0x66 && inst[1] == 0x90 ||
			inst[0]&^15 == 0x70 || inst[0] == 0xeb // jumps with an offset of one byte
	case 5:
		return inst[0] == 0xe9
	case 6:
		return inst[0] == 0x0f && inst[1]&^15 == 0x80
	}
	return false
}

// harmless reports whether everything is as before behind an instruction, as far as a probe at a function's entry sees
// it: arguments, memory, and the registers by which the stack is unwound. It must be one that cannot end the call, by a
// fault either. Only those are known that compilers put in front of a function's first push or jump.
func harmless(inst *x86asm.Inst) bool {
	for _, prefix := range inst.Prefix {
		if prefix != 0 && !prefix.IsREX() && prefix&0xff != x86asm.PrefixDataSize {
			return false
		}
	}
	switch inst.Op {
	case x86asm.NOP:
		return true
	case x86asm.TEST, x86asm.CMP:
		return readable(inst.Args[0]) && readable(inst.Args[1])
	case x86asm.LEA:
		// What a function does with the address of its arguments is to align its stack, by rules of its own for unwinding.
		from, isMemory := inst.Args[1].(x86asm.Mem)
		return isMemory && from.Base != x86asm.RSP && spare(inst.Args[0])
	case x86asm.MOV, x86asm.MOVZX, x86asm.MOVSX, x86asm.MOVSXD,
		x86asm.XOR, x86asm.AND, x86asm.OR, x86asm.ADD, x86asm.SUB:
		return spare(inst.Args[0]) && readable(inst.Args[1])
	}
	return false
}

// spare reports whether an operand is a register that neither has an argument nor is kept for the caller.
func spare(arg x86asm.Arg) bool {
	switch arg {
	case x86asm.AL, x86asm.AH, x86asm.AX, x86asm.EAX, x86asm.RAX,
		x86asm.R10B, x86asm.R10W, x86asm.R10L, x86asm.R10, x86asm.R11B, x86asm.R11W, x86asm.R11L, x86asm.R11:
		return true
	}
	return false
}

// readable reports whether reading an operand cannot fault: numbers, registers, variables of the library, and arguments on
// the stack.
func readable(arg x86asm.Arg) bool {
	switch arg := arg.(type) {
	case x86asm.Imm:
		return true
	case x86asm.Reg:
		return x86asm.AL <= arg && arg <= x86asm.R15
	case x86asm.Mem:
		const arguments = 1 << 10 // more than any function has
		return arg.Segment == 0 && arg.Index == 0 &&
			(arg.Base == x86asm.RIP || arg.Base == x86asm.RSP && 0 <= arg.Disp && arg.Disp < arguments)
	}
	return false
}
