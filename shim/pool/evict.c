/*
 * evict.c: see evict.h. A block belongs to the pool while its entry is POOLED. The thread that claims it owns it, so it is handed
 * out or released exactly once.
 */
#define _GNU_SOURCE
#include "evict.h"

#include "../base/call.h"
#include "../base/dispatch.h"
#include "../base/ring.h"
#include "../base/signals.h"
#include "alias.h"
#include "budget.h"
#include "frag_stats.h"
#include "park.h"

/* On a cache line of its own: every create and command reads it, and every create and release of the pool writes its neighbours. */
_Alignas(64) _Atomic uint64_t gmt_given_back;
_Alignas(64) _Atomic uint32_t gmt_evict_running;
_Alignas(64) _Atomic uint32_t gmt_evict_leaving;

/* Notes a block in the ledger for the core's next call. 0: the ledger has no room, or the core must be called now. */
static int64_t note_in_ledger(uint64_t block, uint64_t size, uint64_t time)
{
	struct gmt_ledger *l = &gmt_ledger;
	uint64_t *room = &l->room[GMT_ARM_OF(block)];
	if (gmt_unlikely(size > *room || l->count == GMT_LEDGER_SIZE || (int64_t)time >= l->due))
		return 0;
	*room -= size;
	l->freed[l->count++] = (struct gmt_freed){block, (int64_t)time};
	return (int64_t)(l->latest + l->count);
}

static int64_t note_or_free_block(uint64_t block, uint64_t size, bool busy, uint64_t time, struct gmt_evictions *evictions)
{
	int64_t number = busy ? 0 : note_in_ledger(block, size, time);
	if (gmt_likely(number))
		return number;
	return gmt_evict_begun(gmt_session.core.free(block, busy, (int64_t)time, evictions), evictions);
}

int64_t gmt_pool_give_block(uint64_t block, uint64_t size, bool busy, uint64_t time, struct gmt_evictions *evictions)
{
	return GMT_GATED(note_or_free_block(block, size, busy, time, evictions));
}

struct gmt_leaving gmt_memory_leave(struct gmt_memory *memory)
{
	struct gmt_leaving leaving = {
		.handle = gmt_memory_handle(memory), .context = gmt_memory_is_shared(memory) ? memory->owner : NULL, .kind = memory->kind,
		.waits = atomic_load(&memory->no_reuse) == 2,
	};
	leaving.counted = gmt_memory_unregister(memory);
	return leaving;
}

/* The program has looked up one of these functions: otherwise it could not have freed the memory. */
static cl_int free_usm(const struct gmt_leaving *l)
{
	clMemFreeINTEL_fn plain = atomic_load(&gmt_driver.clMemFreeINTEL);
	clMemBlockingFreeINTEL_fn waits = atomic_load(&gmt_driver.clMemBlockingFreeINTEL);
	if (waits && (l->waits || !plain))
		return waits(l->context, l->handle);
	if (plain)
		return plain(l->context, l->handle);
	gmt_driver.clSVMFree(l->context, l->handle);
	return CL_SUCCESS;
}

cl_int gmt_driver_release(const struct gmt_leaving *l)
{
	cl_int err = CL_SUCCESS;
	if (gmt_likely(l->kind < GMT_MEMORY_SVM || l->kind > GMT_MEMORY_USM_SHARED))
		err = gmt_driver.clReleaseMemObject(l->handle);
	else if (l->kind != GMT_MEMORY_SVM)
		err = free_usm(l);
	else
		gmt_driver.clSVMFree(l->context, l->handle);
	gmt_budget_give_back(l->counted);
	return err;
}

cl_int gmt_evict_block(const struct gmt_eviction *e, struct gmt_leaving leaving)
{
	uint64_t start = gmt_now();
	cl_int err = gmt_driver_release(&leaving);
	uint64_t cost = gmt_elapsed(start, gmt_now());
	struct gmtevent event = GMT_EVENT_EVICT(.time = start, .duration = gmt_clamp32(cost), .cost = gmt_clamp32(cost),
						.reason = (enum gmtevict)e->reason, .status = gmt_clamp16(err), .tag = e->tag,
						.bytes = e->size, .block = e->block);
	gmt_ring_write(&event);
	return err;
}

void gmt_slab_unpin(struct gmt_memory *slab)
{
	if (atomic_fetch_sub(&slab->pins, 1) != 1)
		return;
	struct gmt_eviction e = {
		.block = slab->block,
		.size = slab->granted,
		.handle = (uint64_t)(uintptr_t)gmt_memory_handle(slab),
		.tag = slab->object.tag,
		.reason = slab->reason,
	};
	gmt_evict_block(&e, gmt_memory_leave(slab));
	gmt_frag_stats_write(gmt_now(), true);
}

void gmt_suballoc_note_gone(struct gmt_memory *slab)
{
	gmt_memory_count_child(slab, -1);
	gmt_slab_unpin(slab);
}

cl_int gmt_suballoc_end(struct gmt_memory *memory)
{
	struct gmt_memory *slab = memory->slab;
	cl_mem handle = gmt_memory_handle(memory);
	gmt_alias_end(memory);
	gmt_memory_unregister(memory);
	cl_int err = gmt_driver.clReleaseMemObject(handle);
	gmt_memory_count_child(slab, -1);
	return err;
}

/* memory may be NULL. If pooling has ended, another thread may have claimed it. */
void gmt_suballoc_release_parked(struct gmt_memory *memory)
{
	if (!memory || !gmt_memory_claim(memory))
		return;
	struct gmt_memory *slab = memory->slab;
	gmt_suballoc_end(memory);
	gmt_slab_unpin(slab);
}

/* The pool gives up a slab that the caller has claimed. */
static void evict_slab(struct gmt_memory *slab, enum gmtevict reason)
{
	slab->reason = (uint8_t)reason;
	uint32_t place = 0;
	for (struct gmt_memory *parked; (parked = gmt_park_take_next_of_slab(slab, &place));)
		gmt_suballoc_release_parked(parked);
	gmt_slab_unpin(slab);
}

/* Releases what the caller has claimed. */
static void abandon_slab_or_suballoc(struct gmt_memory *memory)
{
	struct gmt_memory *slab = memory->slab;
	if (slab) {
		gmt_park_forget(memory);
		gmt_suballoc_end(memory);
		gmt_slab_unpin(slab);
	} else {
		evict_slab(memory, GMT_EVICT_POLICY);
	}
}

void gmt_suballoc_release_deferred(cl_mem handle, uint64_t block)
{
	struct gmt_memory *memory = gmt_memory_find(handle);
	if (memory && memory->block == block && gmt_memory_claim(memory))
		abandon_slab_or_suballoc(memory);
}

/* Pooling has ended: what the pool has goes back to the driver. */
static void abandon_all_blocks(void)
{
	if (gmt_session_is_quiet())
		return;
	uint32_t bucket = 0;
	for (struct gmt_memory *memory; (memory = gmt_memory_next_pooled(&bucket));) {
		if (!gmt_memory_claim(memory))
			continue;
		if (memory->is_slab || memory->slab) {
			abandon_slab_or_suballoc(memory);
			continue;
		}
		struct gmt_eviction e = {
			.block = memory->block,
			.size = memory->granted,
			.handle = (uint64_t)(uintptr_t)gmt_memory_handle(memory),
			.tag = memory->object.tag,
			.reason = GMT_EVICT_POLICY,
		};
		gmt_evict_block(&e, gmt_memory_leave(memory));
	}
}

void gmt_pooling_stop(enum gmtdiag code, const char *why)
{
	if (!atomic_exchange(&gmt_session.pooling, 0))
		return;
	gmt_diag(code, why);
	abandon_all_blocks();
}

void gmt_pool_fail(void)
{
	gmt_pooling_stop(GMT_DIAG_PANIC, "the allocator failed; buffers come from the driver from here on");
	abandon_all_blocks(); /* again: this thread may have come late */
}

/* Not with gmt_pooling(): a relaxed load may come before the store that pools the block, and each thread would miss the other. */
void gmt_pool_abandon_if_off(void)
{
	if (gmt_unlikely(!atomic_load(&gmt_session.pooling)))
		abandon_all_blocks();
}

static void evict_block(const struct gmt_eviction *e)
{
	struct gmt_memory *memory = gmt_memory_find((const void *)(uintptr_t)e->handle);
	if (!memory || !gmt_memory_claim(memory))
		return; /* abandon was first */
	if (gmt_unlikely(memory->is_slab)) {
		evict_slab(memory, e->reason);
		return;
	}
	gmt_evict_block(e, gmt_memory_leave(memory));
}

/* The core's own thread calls this, too, so it sets the guard itself. */
void gmt_evict_all(struct gmt_evictions *evictions)
{
	if (gmt_likely(!evictions->count))
		return;
	int inside = gmt_inside;
	atomic_fetch_add(&gmt_evict_leaving, 1);
	gmt_inside = 1;
	for (;;) {
		for (uint32_t i = 0; i < evictions->count && !gmt_session_is_quiet(); i++)
			evict_block(&evictions->list[i]);
		if (!evictions->more)
			break;
		if (GMT_CORE(more(evictions)) < 0) {
			gmt_pool_fail();
			break;
		}
	}
	atomic_fetch_add(&gmt_given_back, 1);
	atomic_fetch_sub(&gmt_evict_leaving, 1);
	atomic_fetch_sub(&gmt_evict_running, 1);
	gmt_inside = inside;
}
