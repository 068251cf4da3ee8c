package target

import (
	"encoding/binary"
	"os"
	"slices"
)

// Where a function is probed decides what a probe costs. Of the instruction that its breakpoint replaces the kernel does
// itself what a few kinds ask for, jumps, pushes and no-ops; any other it has the processor execute elsewhere, one step
// at a time, which takes a second exception: twice the cost of the first on bare metal, and twenty times in a virtual
// machine whose host wants to see it. So a probe goes where the function's first instruction of those kinds is, if
// nothing before it touches what a probe at the entry sees: the arguments in registers, and the stack pointer. (Linux,
// arch/x86/kernel/uprobes.c: branch_setup_xol_ops, push_setup_xol_ops.)

// entryMax is how much of a function is looked at.
const entryMax = 64

// Entries returns where to probe the functions that begin at some places of a file: there, or a few instructions later,
// where a probe costs less and sees the same. What cannot be read is left as it is.
func Entries(path string, functions []uint64) []uint64 {
	entries := make([]uint64, len(functions))
	copy(entries, functions)
	file, err := open(path)
	if err != nil {
		return entries
	}
	defer file.Close() //nolint:errcheck // only read
	for i, at := range functions {
		code := readCode(file, at)
		for j := range code {
			if j > 0 && slices.Contains(functions, at+uint64(j)) {
				code = code[:j] // what is behind is reached by calls of another function, too
				break
			}
		}
		entries[i] += cheapest(code)
	}
	return entries
}

func readCode(file *os.File, at uint64) []byte {
	if at > 1<<62 {
		return nil
	}
	code := make([]byte, entryMax)
	n, _ := file.ReadAt(code, int64(at)) // the function may be the last of the file
	return code[:n]
}

// cheapest returns how far behind the beginning of a function its cheapest place for a probe is, 0: it is the beginning.
func cheapest(code []byte) uint64 {
	for at := 0; at < len(code); {
		if stop, back := emulated(code[at:]); stop {
			if back < 0 && at+back >= 0 {
				return 0 // a loop, which would be told many times
			}
			return uint64(at)
		}
		length := harmless(code[at:])
		if length == 0 {
			break
		}
		at += length
	}
	return 0
}

// emulated reports whether the kernel does itself what the instruction asks for; back is how far it jumps back, if it
// does.
func emulated(code []byte) (yes bool, back int) {
	if len(code) < 6 {
		return false, 0
	}
	switch first, second := code[0], code[1]; {
	case first&^7 == 0x50, first == 0x41 && second&^7 == 0x50: // push
		return true, 0
	case first == 0x90, first == 0x0f && second == 0x1f && code[2] == 0x44 && code[3] == 0 && code[4] == 0: // nop
		return true, 0
	case first&^15 == 0x70, first == 0xeb: // jumps with an offset of one byte
		return true, min(int(int8(second))+2, 0)
	case first == 0xe9:
		return true, min(int(int32(binary.LittleEndian.Uint32(code[1:])))+5, 0)
	case first == 0x0f && second&^15 == 0x80:
		return true, min(int(int32(binary.LittleEndian.Uint32(code[2:])))+6, 0)
	}
	return false, 0
}

// harmless returns the length of an instruction behind which everything is as before that a probe at a function's entry
// sees, 0 for one that is not surely such: only those that compilers put there are known. (AMD64 Architecture
// Programmer's Manual, volume 3, appendix A.)
func harmless(code []byte) int {
	if len(code) >= 4 && string(code[:4]) == "\xf3\x0f\x1e\xfa" { // endbr64
		return 4
	}
	var rex byte
	at := 0
	if len(code) > 0 && code[0]&^15 == 0x40 {
		rex, at = code[0], 1
	}
	if len(code) < at+2 {
		return 0
	}
	op, modrm := code[at], code[at+1]
	register, other := modrm>>3&7|rex<<1&8, modrm&7|rex<<3&8
	inRegister, immediate := modrm>>6 == 3, 0
	switch {
	case op == 0x8b && spare(register): // mov into a register
	case op == 0x8d && spare(register) && !inRegister: // lea
	case op == 0x31 && spare(other) && inRegister: // xor of registers
	case op == 0x84, op == 0x85, op == 0x39, op == 0x3b: // test, cmp
	case (op == 0x80 || op == 0x83) && modrm>>3&7 == 7: // cmp with a byte
		immediate = 1
	default:
		return 0
	}
	length := operand(code[at+1:])
	if length == 0 || at+1+length+immediate > len(code) {
		return 0
	}
	return at + 1 + length + immediate
}

// spare reports whether a register is none of those that a probe at an entry reads.
func spare(register byte) bool {
	switch register {
	case 1, 2, 4, 6, 7, 8, 9: // rcx, rdx, rsp, rsi, rdi, r8, r9
		return false
	}
	return true
}

// operand returns how many bytes say what an instruction is about: ModRM, SIB and displacement, 0: the end is missing.
func operand(code []byte) int {
	length, base := 1, code[0]&7
	mode := code[0] >> 6
	if mode != 3 && base == 4 { // SIB
		if len(code) < 2 {
			return 0
		}
		length, base = 2, code[1]&7
	}
	switch {
	case mode == 1:
		return length + 1
	case mode == 2, mode == 0 && base == 5:
		return length + 4
	}
	return length
}
