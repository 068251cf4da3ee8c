/*
 * evict.h: what leaves the pool: evicted blocks and slabs, and everything once pooling ends. oom.c asks here what other
 * threads are giving back.
 */
#ifndef GMT_EVICT_H
#define GMT_EVICT_H

#include "../base/session.h"
#include "../base/signals.h"
#include "../registry/memory.h"

/* For oom.c: how many calls of gmt_evict_all have returned, and how many threads are about to release blocks. */
extern _Atomic uint64_t gmt_given_back;
extern _Atomic uint32_t gmt_evict_running; /* threads that the core gave blocks to release, until they have */
extern _Atomic uint32_t gmt_evict_leaving; /* of these, those inside gmt_evict_all */

/* In the gate, after a call that may have taken blocks out of the pool: lets other threads wait until gmt_evict_all has released them. */
static inline int64_t gmt_evict_begun(int64_t number, const struct gmt_evictions *evictions)
{
	if (gmt_unlikely(evictions->count))
		atomic_fetch_add(&gmt_evict_running, 1);
	return number;
}
#define GMT_CORE_EVICTS(call, evictions) GMT_GATED(gmt_evict_begun(gmt_session.core.call, evictions))
/* Releases the blocks that a call of the core took out of the pool. */
void gmt_evict_all(struct gmt_evictions *evictions);
/*
 * Returns a block to the policy, a busy one while commands still use it: gmt_evict_all follows. The result is the number of the
 * decision, -1 if the core has failed.
 */
int64_t gmt_pool_give_block(uint64_t block, uint64_t size, bool busy, uint64_t time, struct gmt_evictions *evictions);
/* The facts for a release by the driver of memory whose entry has left the registry. */
struct gmt_leaving {
	void *handle;
	cl_context context; /* of shared memory */
	uint64_t counted;   /* bytes to give back to the budget */
	uint8_t kind;       /* enum gmtmemory */
	bool waits;         /* the driver is to wait for the commands that use it */
};
/* Takes memory out of the registry. */
struct gmt_leaving gmt_memory_leave(struct gmt_memory *memory);
cl_int gmt_driver_release(const struct gmt_leaving *leaving);

/* Releases a block that has left the pool and the registry. */
cl_int gmt_evict_block(const struct gmt_eviction *e, struct gmt_leaving leaving);

/* Drops a pin of a slab: the pool's, or that of a sub-allocation. The last one releases the slab. */
void gmt_slab_unpin(struct gmt_memory *slab);
/* A sub-allocation of the slab has left the registry. */
void gmt_suballoc_note_gone(struct gmt_memory *slab);
/* Takes a sub-allocation out of the registry and releases it in the driver. The slab stays pinned. */
cl_int gmt_suballoc_end(struct gmt_memory *memory);
/* Releases a sub-allocation that was parked; NULL: none. */
void gmt_suballoc_release_parked(struct gmt_memory *memory);
/* Releases a POOLED sub-allocation whose commands have completed, unless it has gone. */
void gmt_suballoc_release_deferred(cl_mem handle, uint64_t block);

/* Ends pooling and reports why. Buffers in use stay valid; pooled blocks go back to the driver. */
void gmt_pooling_stop(enum gmtdiag code, const char *why);
/* The core has failed: from here on buffers come from the driver. */
void gmt_pool_fail(void);
/* After a block became POOLED: releases it if pooling has ended meanwhile. */
void gmt_pool_abandon_if_off(void);

#endif
