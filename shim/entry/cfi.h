/* cfi.h: call frame information (DWARF 5, 6.4; Linux Standard Base, .eh_frame), as far as it says where rsp, rbp and the return address are. */
#ifndef GMT_CFI_H
#define GMT_CFI_H

#include <stdbool.h>
#include <stdint.h>

enum { GMT_CFI_RBP = 6, GMT_CFI_RSP = 7, GMT_CFI_RETURN = 16 }; /* DWARF's numbers */

/* What an entry's instructions make of the registers. */
struct gmt_cfi {
	enum { BY_REGISTER, BY_MEMORY } frame;
	uint64_t base; /* a register */
	int64_t offset;
	enum { SAME, AT_FRAME, AT_BP, ELSEWHERE } rbp;
	int64_t rbp_offset;
	enum { UNSAID, ON_STACK, NOWHERE } caller; /* the return address */
};

/* What holds at an address behind a call, by the entry for its function. False: something there is not known to us. */
bool gmt_cfi_read(const unsigned char *entry, uintptr_t function, uintptr_t address, struct gmt_cfi *found);

#endif
