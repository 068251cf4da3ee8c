/* rule.h: how to get from a frame of the stack to the frame of its caller, on x86-64. */
#ifndef GMT_RULE_H
#define GMT_RULE_H

#include <stdbool.h>
#include <stdint.h>

/* The stack pointer after the return, which DWARF calls the canonical frame address, and where the caller's rbp is. */
enum gmt_rule_kind {
	GMT_RULE_SP = 1,  /* rsp + offset */
	GMT_RULE_BP,      /* rbp + offset */
	GMT_RULE_ALIGNED, /* what is at rbp - offset, of a function that aligns its stack; the caller's rbp is at rbp */
	GMT_RULE_END,     /* nothing called the function */
	GMT_RULE_UNKNOWN, /* anything else: the unwinder of the compiler has to look */
	GMT_RULE_FRAME,   /* no table is about the code: it may have a frame pointer */
	GMT_RULE_NO_CODE  /* no call returns to this address */
};

struct gmt_rule {
	enum gmt_rule_kind kind;
	uint64_t offset; /* bytes, a multiple of 8 */
	unsigned saved;  /* the caller's rbp is that number of words below the new stack pointer; 0: still in rbp */
};

/*
 * The rule at a return address on the stack of this thread, from the tables that programs have for exceptions. A guess is a word
 * that may be a return address, or anything else; near is generated code that would have been called from there, 0 if there is none.
 */
struct gmt_rule gmt_rule_read(uintptr_t address, bool guess, uintptr_t near);

#endif
