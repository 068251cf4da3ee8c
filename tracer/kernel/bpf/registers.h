/*
 * registers.h: where a processor's calling convention has what is reported of a call: at the beginning of a function, and
 * behind its return. The kernel permits no variable index into registers.
 */
#ifndef GMT_REGISTERS_H
#define GMT_REGISTERS_H

#include "shared.h"

/* The argument of that number, from 1 on, which found none of the registers for arguments. */
static __always_inline uint64_t stacked(uint64_t first, unsigned in_registers, uint8_t number)
{
	uint64_t value = 0;
	bpf_probe_read_user(&value, sizeof value, (void *)(first + 8 * (uint64_t)(number - 1 - in_registers)));
	return value;
}

#ifdef __TARGET_ARCH_arm64

/* The kernel's struct user_pt_regs, which programs get. */
struct registers {
	uint64_t x[31];
	uint64_t sp;
	uint64_t pc;
};

static __always_inline const struct registers *registers_of(struct pt_regs *registers)
{
	return (const struct registers *)registers;
}

static __always_inline void arguments(struct pt_regs *registers, uint64_t *argument)
{
	for (unsigned i = 0; i < GMT_CALL_ARGUMENTS; i++)
		argument[i] = registers_of(registers)->x[i];
}

static __always_inline uint64_t further_argument(struct pt_regs *registers, uint8_t number)
{
	if (number == 7)
		return registers_of(registers)->x[6];
	if (number == 8)
		return registers_of(registers)->x[7];
	return stacked(registers_of(registers)->sp, 8, number);
}

static __always_inline uint64_t return_address(struct pt_regs *registers)
{
	return registers_of(registers)->x[30];
}

static __always_inline uint64_t result(struct pt_regs *registers)
{
	return registers_of(registers)->x[0];
}

/* The frame pointer; no unwinder of ours reads more. */
static __always_inline void callers(struct pt_regs *registers, struct gmtcall *to)
{
	to->ip = registers_of(registers)->pc;
	to->sp = registers_of(registers)->sp;
	to->bp = registers_of(registers)->x[29];
}

#else

static __always_inline void arguments(struct pt_regs *registers, uint64_t *argument)
{
	argument[0] = registers->rdi;
	argument[1] = registers->rsi;
	argument[2] = registers->rdx;
	argument[3] = registers->rcx;
	argument[4] = registers->r8;
	argument[5] = registers->r9;
}

static __always_inline uint64_t further_argument(struct pt_regs *registers, uint8_t number)
{
	return stacked(registers->rsp + 8, 6, number); /* behind the return address */
}

static __always_inline uint64_t return_address(struct pt_regs *registers)
{
	uint64_t address = 0;
	bpf_probe_read_user(&address, sizeof address, (void *)registers->rsp);
	return address;
}

static __always_inline uint64_t result(struct pt_regs *registers)
{
	return registers->rax;
}

static __always_inline void callers(struct pt_regs *registers, struct gmtcall *to)
{
	to->ip = registers->rip;
	to->sp = registers->rsp;
	to->bp = registers->rbp;
	to->bx = registers->rbx;
	to->r12 = registers->r12;
	to->r13 = registers->r13;
	to->r14 = registers->r14;
	to->r15 = registers->r15;
}

#endif
#endif
