/*
 * park.h: sub-buffers that wait in the driver for the next request that gets their range. Programs ask for the same sizes again and
 * again, and policies give them the same ranges: then a sub-allocation needs no call of the driver.
 *
 * A parked sub-allocation is POOLED, and pins its slab. Functions that return one take it off its place; evict.h releases it.
 */
#ifndef GMT_PARK_H
#define GMT_PARK_H

#include "../registry/memory.h"

/* Whether an unused sub-allocation, whose range goes back to the policy, may be parked. If not, the caller releases its sub-buffer. */
bool gmt_park_may_hold(const struct gmt_memory *memory);
/* Parks memory, before the policy gets its range. Returns the sub-allocation that memory displaced, or NULL. */
struct gmt_memory *gmt_park(struct gmt_memory *memory);
/* Takes and claims the sub-allocation that is parked for a range; NULL: none is. */
struct gmt_memory *gmt_park_take(const struct gmt_memory *slab, uint64_t offset, uint64_t size, cl_mem_flags flags);
/* Takes a parked sub-allocation of a slab that is being released. *place is the position of the search, 0 at first. NULL: none is left. */
struct gmt_memory *gmt_park_take_next_of_slab(const struct gmt_memory *slab, uint32_t *place);
/* A sub-allocation has been claimed otherwise, and will be unregistered. */
void gmt_park_forget(const struct gmt_memory *memory);

#endif
