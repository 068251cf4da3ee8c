package target

import (
	"bytes"
	"os"
	"slices"

	"golang.org/x/arch/x86/x86asm"

	"codeberg.org/gpumemtop/gpumemtop/internal/untrusted"
)

// The place of a probe in a function determines its cost. If the breakpoint replaces a jump, push or no-op, the kernel
// emulates that instruction. It single-steps any other out of line, which takes a second exception: twice the cost of the
// first on bare metal, and twenty times in a virtual machine whose host intercepts it. So we probe the first instruction
// that the kernel emulates, if the ones before change nothing that a probe at the entry sees, and if each call reaches it
// exactly once.

const (
	entryMax    = 64       // largest distance from the beginning of a function
	functionMax = 64 << 10 // larger functions are probed at their beginning
	unsizedMax  = 4 << 10  // bytes examined of a function of unknown size
	longest     = 15       // bytes of one instruction
)

// ProbePlaces returns where to probe functions of a file, given by their offsets: there, or a few instructions later, where a
// probe costs less and sees the same. Functions that cannot be read or decoded are probed at their beginning.
func ProbePlaces(path string, functions []uint64) []uint64 {
	entries := slices.Clone(functions)
	file, err := untrusted.OpenRegular(path, 0)
	if err != nil {
		return entries
	}
	defer file.Close() //nolint:errcheck // only read
	for i, e := range functionExtents(file, functions) {
		size := e.size
		if size == 0 {
			size = min(e.next, unsizedMax)
		}
		if size > functionMax {
			continue
		}
		code := readCode(file, functions[i], int(size)+longest)
		entries[i] += uint64(cheapestPlace(code, int(size), int(min(e.next, entryMax))))
	}
	return entries
}

func readCode(file *os.File, at uint64, size int) []byte {
	if at > 1<<62 {
		return nil
	}
	code := make([]byte, size)
	n, _ := file.ReadAt(code, int64(at)) // the file may end with the function
	return code[:n]
}

// cheapestPlace returns the distance of the cheapest place for a probe from the beginning of a function. The function has size
// bytes, and the place is among the first limit. The code may continue after the function, so that its last instructions
// can be decoded.
func cheapestPlace(code []byte, size, limit int) int {
	place := firstEmulatedPlace(code, min(size, limit))
	if place > 0 && refersIntoStart(code, size, place) {
		return 0
	}
	return place
}

// firstEmulatedPlace returns the first instruction before limit that the kernel emulates, 0 if an earlier one changes what a probe
// sees. Linux emulates no-ops of several bytes since 6.16. Such a no-op is the second choice: on older kernels it costs as
// much as the beginning.
func firstEmulatedPlace(code []byte, limit int) int {
	fallback := 0
	for at := 0; at < limit; {
		inst, ok := decodeFirstInstruction(code[at:])
		if !ok {
			break
		}
		if isEmulated(code[at : at+inst.Len]) {
			return at
		}
		if !isHarmlessForProbe(&inst) {
			break
		}
		if fallback == 0 && bytes.HasPrefix(code[at:], nop5) {
			fallback = at
		}
		at += inst.Len
	}
	return fallback
}

// refersIntoStart reports whether anything in a function refers to the code after its beginning, up to place: a probe there
// might report one call several times, or not at all. It counts all relative operands, also addresses of labels, and
// returns true if the function cannot be decoded.
func refersIntoStart(code []byte, size, place int) bool {
	for at := 0; at < size; {
		inst, ok := decodeFirstInstruction(code[at:])
		if !ok {
			return true
		}
		at += inst.Len
		for _, arg := range inst.Args {
			distance, ok := distanceOfOperand(arg)
			if target := int64(at) + distance; ok && 0 < target && target <= int64(place) {
				return true
			}
		}
	}
	return false
}

// distanceOfOperand returns the distance from the end of an instruction that an operand refers to.
func distanceOfOperand(arg x86asm.Arg) (distance int64, ok bool) {
	switch arg := arg.(type) {
	case x86asm.Rel:
		return int64(arg), true
	case x86asm.Mem:
		return int64(int32(arg.Disp)), arg.Base == x86asm.RIP // the decoder drops the sign
	}
	return 0, false
}

var nop5 = []byte{0x0f, 0x1f, 0x44, 0x00, 0x00}

// misread are instructions that the decoder takes for others, of another length. All are no-ops to a probe.
var misread = [][]byte{
	{0xf3, 0x0f, 0x1e, 0xfa}, // endbr64
	{0xc5, 0xf8, 0x77},       // vzeroupper
	{0xc5, 0xfc, 0x77},       // vzeroall
}

// decodeFirstInstruction returns the first instruction.
func decodeFirstInstruction(code []byte) (inst x86asm.Inst, ok bool) {
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

// isEmulated reports whether the kernel emulates an instruction (branch_setup_xol_ops and push_setup_xol_ops of
// arch/x86/kernel/uprobes.c, the same from Linux 5.15 on). Prefixes matter: with some it executes the instruction, with
// others it refuses to probe it. It also emulates relative calls, but not their effect on a shadow stack.
func isEmulated(inst []byte) bool {
	switch len(inst) {
	case 1:
		return inst[0]&^7 == 0x50 || inst[0] == 0x90 // push, nop
	case 2:
		return inst[0] == 0x41 && inst[1]&^7 == 0x50 || // push of r8 to r15
			inst[0] == 0x66 && inst[1] == 0x90 ||
			inst[0]&^15 == 0x70 || inst[0] == 0xeb // jumps with an 8-bit offset
	case 5:
		return inst[0] == 0xe9
	case 6:
		return inst[0] == 0x0f && inst[1]&^15 == 0x80
	}
	return false
}

// isHarmlessForProbe reports whether an instruction preserves what a probe at the entry sees: arguments, memory, and the registers
// that unwinding needs. It must not fault either. Only instructions that compilers put before the first push or jump are
// known.
func isHarmlessForProbe(inst *x86asm.Inst) bool {
	for _, prefix := range inst.Prefix {
		if prefix != 0 && !prefix.IsREX() && prefix&0xff != x86asm.PrefixDataSize {
			return false
		}
	}
	switch inst.Op {
	case x86asm.NOP:
		return true
	case x86asm.TEST, x86asm.CMP:
		return canReadWithoutFault(inst.Args[0]) && canReadWithoutFault(inst.Args[1])
	case x86asm.LEA:
		// A function takes the address of its arguments to align its stack, with special unwinding rules.
		from, isMemory := inst.Args[1].(x86asm.Mem)
		return isMemory && from.Base != x86asm.RSP && isScratchRegister(inst.Args[0])
	case x86asm.MOV, x86asm.MOVZX, x86asm.MOVSX, x86asm.MOVSXD,
		x86asm.XOR, x86asm.AND, x86asm.OR, x86asm.ADD, x86asm.SUB:
		return isScratchRegister(inst.Args[0]) && canReadWithoutFault(inst.Args[1])
	}
	return false
}

// isScratchRegister reports whether an operand is a register that neither holds an argument nor is preserved for the caller.
func isScratchRegister(arg x86asm.Arg) bool {
	switch arg {
	case x86asm.AL, x86asm.AH, x86asm.AX, x86asm.EAX, x86asm.RAX,
		x86asm.R10B, x86asm.R10W, x86asm.R10L, x86asm.R10, x86asm.R11B, x86asm.R11W, x86asm.R11L, x86asm.R11:
		return true
	}
	return false
}

// canReadWithoutFault reports whether reading an operand cannot fault: numbers, registers, the library's variables, and arguments on
// the stack.
func canReadWithoutFault(arg x86asm.Arg) bool {
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
