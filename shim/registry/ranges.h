/*
 * ranges.h: finds an allocation by any address in it. Commands and kernels may get pointers into the middle of shared memory,
 * and those use all of it. Any thread may call these functions.
 */
#ifndef GMT_RANGES_H
#define GMT_RANGES_H

#include "../base/opencl.h"

/* Notes that the bytes from first on belong to what, instead of an earlier allocation. False: memory is short. */
bool gmt_range_add(const void *first, uint64_t bytes, void *what);
void gmt_range_remove(const void *first, uint64_t bytes);
/* What the byte at address belongs to; NULL: nothing. */
void *gmt_range_at(const void *address);
/* Whether there are any ranges. */
bool gmt_ranges_any(void);

#endif
