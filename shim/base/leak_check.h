/*
 * leak_check.h: between these two calls LeakSanitizer, alone or in AddressSanitizer, ignores what the thread allocates: what
 * drivers leak in our own calls is no leak of the program. Without a sanitizer they cost a load and a branch.
 */
#ifndef GMT_LEAK_CHECK_H
#define GMT_LEAK_CHECK_H

#include "call.h"

extern void __lsan_disable(void) __attribute__((weak));
extern void __lsan_enable(void) __attribute__((weak));

static inline void gmt_leak_check_off(void)
{
	if (gmt_unlikely(__lsan_disable != NULL))
		__lsan_disable();
}

static inline void gmt_leak_check_on(void)
{
	if (gmt_unlikely(__lsan_enable != NULL))
		__lsan_enable();
}

#endif
