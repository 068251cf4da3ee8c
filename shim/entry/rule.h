/* rule.h: how to get from a frame of the stack to the frame of its caller, on x86-64. */
#ifndef GMT_RULE_H
#define GMT_RULE_H

#include <stdbool.h>
#include <stdint.h>

/* How to find the stack pointer after the return, which DWARF calls the canonical frame address. */
enum gmt_rule_kind {
	GMT_RULE_SP = 1,  /* rsp + offset */
	GMT_RULE_BP,      /* rbp + offset */
	GMT_RULE_ALIGNED, /* the word at rbp - offset, in a function that aligns its stack; the caller's rbp is at rbp */
	GMT_RULE_END,     /* nothing called the function */
	GMT_RULE_UNKNOWN, /* anything else: the compiler's unwinder must walk */
	GMT_RULE_FRAME,   /* the code has no table; it may have a frame pointer */
	GMT_RULE_NO_CODE  /* the address is no code that a call returns to */
};

struct gmt_rule {
	enum gmt_rule_kind kind;
	uint64_t offset; /* bytes, a multiple of 8 */
	unsigned saved;  /* the caller's rbp is that number of words below the new stack pointer; 0: still in rbp */
};

/*
 * The rule at a return address on this thread's stack, from the tables that programs have for exceptions. guess: the word may be
 * something else than a return address; near: an address in generated code that would have been called from there, 0 if none.
 */
struct gmt_rule gmt_rule_read(uintptr_t address, bool guess, uintptr_t near);

#endif
