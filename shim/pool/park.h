/*
 * park.h: sub-buffers that wait in the driver for the next request that gets their range. Programs ask for the same sizes again and
 * again, and policies give them the same ranges: then a sub-allocation needs no call of the driver.
 *
 * A parked sub-allocation is POOLED, and pins its slab. Functions that return one take it off its place; evict.h releases it.
 */
#ifndef GMT_PARK_H
#define GMT_PARK_H

#include "../registry/memory.h"

/* Whether a sub-allocation may wait that nothing uses, and whose range the policy gets back. Else its sub-buffer is released. */
bool gmt_park_may(const struct gmt_memory *memory);
/* Before the policy has its range. Returns another one that had its place, or NULL. */
struct gmt_memory *gmt_park(struct gmt_memory *memory);
/* The one of that range, claimed; NULL if none waits. */
struct gmt_memory *gmt_park_take(const struct gmt_memory *slab, uint64_t offset, uint64_t size, cl_mem_flags flags);
/* One of a slab that goes, from *place on, which moves from 0; NULL if there is none. */
struct gmt_memory *gmt_park_next(const struct gmt_memory *slab, uint32_t *place);
/* A sub-allocation has been claimed otherwise, and will be unregistered. */
void gmt_park_forget(const struct gmt_memory *memory);

#endif
