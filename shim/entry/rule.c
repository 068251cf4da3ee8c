/*
 * rule.c: see rule.h. The compiler's unwinder finds the tables, and it walks stacks with rules that cfi.c cannot read.
 */
#define _GNU_SOURCE
#include "../base/opencl.h"
#include "../base/session.h"
#include "cfi.h"
#include "rule.h"

#include <errno.h>
#include <string.h>
#include <sys/uio.h>
#include <unistd.h>

#ifndef __x86_64__

/* On other processors the unwinder walks all stacks. */
struct gmt_rule gmt_rule_read(uintptr_t address, bool guess, uintptr_t near)
{
	(void)address, (void)guess, (void)near;
	return (struct gmt_rule){.kind = GMT_RULE_UNKNOWN};
}

#else

#define CODE_NEAR ((uintptr_t)256 << 20) /* bytes: Java reserves 240 MiB for generated code */

/* For libgcc's _Unwind_Find_FDE (since 3.0), which returns the entry for the instruction at an address, NULL if there is none. */
struct bases {
	void *text, *data, *function;
};
extern const void *_Unwind_Find_FDE(void *address, struct bases *bases);

static struct gmt_rule rule_of(const struct gmt_cfi *s)
{
	struct gmt_rule rule = {.kind = GMT_RULE_UNKNOWN};
	bool aligned = s->frame == BY_MEMORY;
	int64_t offset = aligned ? -s->offset : s->offset;
	if (s->caller == NOWHERE)
		rule.kind = GMT_RULE_END;
	else if (s->caller == UNSAID || offset <= 0 || offset % 8 != 0)
		return rule;
	else if (aligned && s->base == GMT_CFI_RBP && s->rbp == AT_BP)
		rule.kind = GMT_RULE_ALIGNED;
	else if (aligned || (s->rbp != SAME && s->rbp != AT_FRAME))
		return rule;
	else if (s->rbp == AT_FRAME && (s->rbp_offset >= 0 || s->rbp_offset < -120 || s->rbp_offset % 8 != 0))
		return rule;
	else if (s->base == GMT_CFI_RSP || s->base == GMT_CFI_RBP)
		rule.kind = s->base == GMT_CFI_RSP ? GMT_RULE_SP : GMT_RULE_BP;
	rule.offset = (uint64_t)offset;
	rule.saved = s->rbp == AT_FRAME ? (unsigned)(-s->rbp_offset / 8) : 0;
	return rule;
}

/* Whether an address is the C library's return from a signal handler, which may have no entry: recognised by its instructions. */
static bool returns_from_signal(uintptr_t address)
{
	static const unsigned char code[] = {0x48, 0xc7, 0xc0, 0x0f, 0, 0, 0, 0x0f, 0x05}; /* mov $15, %rax; syscall */
	const unsigned char *at = (const unsigned char *)address;
	size_t same = 0; /* compared byte by byte: the next one may not be mapped */
	while (same < sizeof code && at[same] == code[same])
		same++;
	return same == sizeof code;
}

/*
 * Whether a guessed return address is code: the instruction before it is a call (E8 with an offset, or FF /2), or generated
 * code is near, because Java's interpreter pushes its return addresses without a call. The kernel reads the bytes, since a
 * guess may be any word.
 */
static bool looks_like_code(uintptr_t address, uintptr_t near)
{
	unsigned char code[8] = {0};
	struct iovec to = {code, 7}, from = {(void *)(address - 7), 7};
	int saved = errno;
	bool there = !gmt_session_seccomp_installed() && process_vm_readv(getpid(), &to, 1, &from, 1, 0) == 7;
	errno = saved;
	if (!there)
		return false;
	if (code[2] == 0xe8 || (near && address - near + CODE_NEAR < 2 * CODE_NEAR))
		return true;
	for (unsigned i = 0; i < 6; i++)
		if (code[i] == 0xff && (code[i + 1] >> 3 & 7) == 2)
			return true;
	return false;
}

static struct gmt_rule rule_without_table(uintptr_t address, bool guess, uintptr_t near)
{
	if (guess)
		return (struct gmt_rule){.kind = looks_like_code(address, near) ? GMT_RULE_FRAME : GMT_RULE_NO_CODE};
	return (struct gmt_rule){.kind = returns_from_signal(address) ? GMT_RULE_UNKNOWN : GMT_RULE_FRAME};
}

struct gmt_rule gmt_rule_read(uintptr_t address, bool guess, uintptr_t near)
{
	struct gmt_rule unknown = {.kind = GMT_RULE_UNKNOWN};
	struct bases bases;
	const unsigned char *entry = _Unwind_Find_FDE((void *)(address - 1), &bases);
	if (!entry)
		return rule_without_table(address, guess, near);
	struct gmt_cfi found;
	return gmt_cfi_read(entry, (uintptr_t)bases.function, address, &found) ? rule_of(&found) : unknown;
}

#endif
