/*
 * cfi.h: call frame information (DWARF 5, 6.4; Linux Standard Base, .eh_frame), as far as needed to find rsp, rbp and the
 * return address.
 */
#ifndef GMT_CFI_H
#define GMT_CFI_H

#include <stdbool.h>
#include <stdint.h>

enum { GMT_CFI_RBP = 6, GMT_CFI_RSP = 7, GMT_CFI_RETURN = 16 }; /* DWARF's numbers */

/* The caller's registers, as an entry's instructions have them. */
struct gmt_cfi {
	enum { BY_REGISTER, BY_MEMORY } frame;
	uint64_t base; /* a register */
	int64_t offset;
	enum { SAME, AT_FRAME, AT_BP, ELSEWHERE } rbp;
	int64_t rbp_offset;
	enum { UNSAID, ON_STACK, NOWHERE } caller; /* the return address */
};

/* Reads the rules for an address after a call from its function's entry. False: the entry has something that we cannot read. */
bool gmt_cfi_read(const unsigned char *entry, uintptr_t function, uintptr_t address, struct gmt_cfi *found);

#endif
