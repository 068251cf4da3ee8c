/*
 * release.c: releases memory whose last reference the program has given up. A whole block goes to the pool or the driver. The
 * sub-buffer of a sub-allocation goes to the driver or is parked, and its range goes to the pool.
 */
#define _GNU_SOURCE
#include "release.h"

#include "../base/dispatch.h"
#include "../base/idle.h"
#include "../base/lock.h"
#include "../base/ring.h"
#include "../base/signals.h"
#include "../base/usdt.h"
#include "../order/closed_queues.h"
#include "../order/queue.h"
#include "../registry/finding.h"
#include "../registry/memory.h"
#include "alias.h"
#include "budget.h"
#include "cooling.h"
#include "evict.h"
#include "frag_stats.h"
#include "park.h"
#include "shapes.h"
#include "upload.h"

#include <stdlib.h>

struct gmtreleasefields gmt_release_fields(const struct gmt_call *call, const struct gmt_memory *memory)
{
	if (!memory)
		return (struct gmtreleasefields){.time = call->start, .outcome = GMT_OUTCOME_DRIVER};
	return (struct gmtreleasefields){
		.time = call->start,
		.outcome = GMT_OUTCOME_DRIVER,
		.memory = (enum gmtmemory)memory->kind,
		.scope = gmt_context_id(memory->context),
		.tag = memory->object.tag,
		.exposed = (enum gmtexposed)atomic_load_explicit(&memory->exposed, memory_order_relaxed),
		.object = memory->object.id,
		.requested = memory->size,
		.block = memory->block,
	};
}

void gmt_release_write_event(struct gmtreleasefields *release, cl_int status, uint64_t now)
{
	release->status = gmt_clamp16(status);
	release->duration = gmt_took(release->time, now);
	struct gmtevent event = gmtrelease_event(*release);
	gmt_ring_write(&event);
	if (gmt_usdt_frees())
		gmt_usdt_released(&event);
}

static void write_release(struct gmtreleasefields *release, enum gmtoutcome outcome, cl_int status, uint64_t now)
{
	release->outcome = outcome;
	gmt_release_write_event(release, status, now);
}

static cl_int release_to_driver(struct gmtreleasefields *release, struct gmt_memory *memory)
{
	struct gmt_leaving leaving = gmt_memory_leave(memory);
	cl_int err = gmt_driver_release(&leaving);
	uint64_t now = gmt_about_now();
	release->cost = gmt_took(release->time, now);
	write_release(release, GMT_OUTCOME_DRIVER, err, now);
	return err;
}

/* Releases a block that must not be handed out again: gmt_release_memory has the reasons. */
static cl_int discard_block(struct gmtreleasefields *release, struct gmt_memory *memory)
{
	struct gmt_eviction eviction = {
		.block = release->block,
		.size = memory->granted,
		.handle = (uint64_t)(uintptr_t)gmt_memory_handle(memory),
		.tag = release->tag,
		.reason = GMT_EVICT_STATE,
	};
	struct gmt_leaving leaving = gmt_memory_leave(memory);
	if (!gmt_decision_note(GMT_CORE(forget(release->block)), release->time))
		gmt_pool_fail();
	write_release(release, GMT_OUTCOME_REFUSED, CL_SUCCESS, gmt_now());
	return gmt_evict_block(&eviction, leaving);
}

/* Returns a block to the policy. Its evictions are released after the event, so that no one waits for them. */
static cl_int release_to_pool(struct gmtreleasefields *release, struct gmt_memory *memory, const struct gmt_uses *uses)
{
	bool busy = release->would_race && !gmt_session.config.ungated;
	struct gmt_cooled what = {.block = release->block, .size = memory->granted, .tag = release->tag, .handle = gmt_memory_handle(memory)};
	struct gmt_context *context = memory->context;
	struct gmt_evictions evictions;
	evictions.count = evictions.more = 0;
	gmt_memory_set_pooled(memory); /* first: from here on it may have a new owner */
	if (!gmt_decision_note(gmt_pool_give_block(release->block, what.size, busy, release->time, &evictions), release->time)) {
		gmt_pool_fail(); /* which releases the block */
		write_release(release, GMT_OUTCOME_REFUSED, CL_SUCCESS, gmt_now());
		return CL_SUCCESS;
	}
	bool refused = false;
	for (uint32_t i = 0; i < evictions.count; i++)
		refused |= evictions.list[i].block == release->block;
	write_release(release, refused ? GMT_OUTCOME_REFUSED : busy ? GMT_OUTCOME_COOLING : GMT_OUTCOME_CACHED, CL_SUCCESS, gmt_about_now());
	if (busy && !refused)
		gmt_cooling_add(&what, uses, context);
	gmt_evict_all(&evictions);
	gmt_pool_abandon_if_off();
	return CL_SUCCESS;
}

/* Whether commands may still use the memory, and if so, whether all later commands of the context run after them. */
static enum gmt_flight flight_state(const struct gmt_uses *uses, struct gmt_context *context)
{
	enum gmt_flight flight = gmt_uses_state(uses, context);
	if (flight != GMT_FLIGHT_ORDERED || gmt_uses_hand_out(uses, context))
		return flight;
	return gmt_uses_state(uses, NULL); /* a queue or user event has appeared meanwhile: nothing is ordered */
}

/*
 * A deferred release waits for callbacks of markers after the commands, not for polls: the program may wait for nothing else than
 * its destructor. The sub-allocation cools as well, in case no marker is possible: then the release comes with the next look at
 * cooling blocks after the commands have completed, or with the end of the context.
 */
struct deferred {
	cl_mem handle;
	uint64_t block;
	_Atomic uint32_t left; /* markers whose callback has not come, and 1 for the thread that puts them */
	bool incomplete;       /* markers cover only some of its commands: polling ends it */
};

static void count_marker_ended(struct deferred *d)
{
	if (atomic_fetch_sub(&d->left, 1) != 1)
		return;
	if (!d->incomplete && !gmt_session_is_quiet())
		gmt_suballoc_release_deferred(d->handle, d->block);
	free(d);
}

static void CL_CALLBACK marker_ended(cl_event event, cl_int status, void *data)
{
	(void)event, (void)status;
	int inside = gmt_inside;
	gmt_inside = 1;
	count_marker_ended(data);
	gmt_inside = inside;
}

/* False if nothing will report that the use is over. */
static bool put_end_marker(const struct gmt_use *use, struct deferred *d)
{
	struct gmt_queue *queue = use->queue;
	if (!gmt_lock_driver(&queue->lock))
		return false;
	bool over = queue->object.id != use->queue_id || atomic_load(&queue->done) >= use->position;
	cl_event event = over || atomic_load(&queue->waiting) ? NULL : gmt_queue_marker_behind(queue, use->position);
	gmt_unlock_driver(&queue->lock);
	if (!event)
		return over;
	atomic_fetch_add(&d->left, 1);
	bool set = gmt_driver.clSetEventCallback(event, CL_COMPLETE, marker_ended, d) == CL_SUCCESS;
	if (!set)
		atomic_fetch_sub(&d->left, 1);
	gmt_driver.clReleaseEvent(event);
	return set;
}

/* Arranges for the deferred release once the commands of uses have completed, as far as markers can report that. */
static void defer_release(const struct gmt_cooled *what, const struct gmt_uses *uses)
{
	struct deferred *d = malloc(sizeof *d);
	if (!d)
		return;
	d->handle = what->deferred;
	d->block = what->block;
	d->incomplete = uses->many;
	atomic_store(&d->left, 1);
	for (uint32_t i = 0; i < uses->count; i++)
		d->incomplete |= !put_end_marker(&uses->use[i], d);
	count_marker_ended(d);
}

/* How to treat a sub-allocation that the program has released. */
struct fate {
	bool busy;     /* its range cools */
	bool forever;  /* its range stays taken until its context ends: a command that we do not follow may use it */
	bool deferred; /* its release waits for its commands: drivers may call its destructors on release (PoCL 3.1: too early) */
	bool parked;   /* its sub-buffer waits for the next request for its range */
};

static struct fate fate_of_memory(const struct gmt_memory *memory, enum gmt_flight flight)
{
	const struct gmt_context *context = memory->context;
	bool failed = atomic_load(&context->pool.closed); /* the driver no longer reports the ends of commands */
	bool unfit = failed || atomic_load(&memory->no_reuse) || atomic_load(&context->order.command_buffers);
	bool ordered = flight == GMT_FLIGHT_ORDERED && !gmt_scrubs(context); /* our scrub would not be ordered after the commands */
	bool pending = flight != GMT_FLIGHT_DONE && !ordered && !gmt_session.config.ungated;
	return (struct fate){
		.parked = !unfit && flight != GMT_FLIGHT_BUSY && !gmt_scrubs(context) && gmt_park_may_hold(memory),
		.busy = unfit || pending,
		.forever = unfit,
		.deferred = !failed && flight != GMT_FLIGHT_DONE && atomic_load(&memory->has_destructor),
	};
}

/*
 * Returns the range of a sub-allocation to the policy. Evictions and the end of the cooling come after the event, because another
 * thread may record them as soon as the policy has the range. Returns the time of the event.
 */
static uint64_t give_range_to_core(struct gmtreleasefields *release, const struct gmt_cooled *what, const struct gmt_uses *uses,
		       struct gmt_context *context, struct fate fate, cl_int status)
{
	struct gmt_evictions evictions;
	evictions.count = evictions.more = 0;
	bool given = gmt_decision_note(gmt_pool_give_block(what->block, what->size, fate.busy, release->time, &evictions), release->time);
	if (!given)
		gmt_pool_fail();
	uint64_t now = release->time + gmt_elapsed(release->time, gmt_about_now());
	release->cost = fate.parked ? 0 : gmt_took(release->time, now);
	write_release(release, fate.busy ? GMT_OUTCOME_COOLING : GMT_OUTCOME_CACHED, status, now);
	if (given && (fate.deferred || (fate.busy && !fate.forever)))
		gmt_cooling_add(what, uses, context);
	gmt_evict_all(&evictions);
	return now;
}

static cl_int release_suballoc(struct gmtreleasefields *release, struct gmt_memory *memory)
{
	struct gmt_context *context = memory->context;
	struct gmt_memory *slab = memory->slab;
	release->sub_allocation = memory->block != 0;
	if (!memory->block || !gmt_pooling()) {
		gmt_alias_end(memory);
		cl_int err = release_to_driver(release, memory);
		gmt_suballoc_note_gone(slab);
		return err;
	}
	struct gmt_uses uses = gmt_uses_of(memory);
	enum gmt_flight flight = flight_state(&uses, context);
	struct fate fate = fate_of_memory(memory, flight);
	struct gmt_cooled what = {
		.block = release->block,
		.size = memory->granted,
		.tag = release->tag,
		.suballoc = true,
		.deferred = fate.deferred ? gmt_memory_handle(memory) : NULL,
		.deferred_only = !fate.busy || fate.forever,
	};
	release->would_race = flight == GMT_FLIGHT_BUSY;
	release->ordered = flight == GMT_FLIGHT_ORDERED;
	cl_int err = CL_SUCCESS;
	if (fate.deferred)
		gmt_memory_set_pooled(memory);
	else if (fate.parked)
		gmt_suballoc_release_parked(gmt_park(memory));
	else
		err = gmt_suballoc_end(memory);
	uint64_t now = give_range_to_core(release, &what, &uses, context, fate, err);
	if (fate.deferred)
		defer_release(&what, &uses);
	else if (!fate.parked)
		gmt_slab_unpin(slab);
	gmt_frag_stats_write(now, false);
	gmt_pool_abandon_if_off();
	return err;
}

cl_int gmt_release_memory(struct gmt_call *call, struct gmt_memory *memory)
{
	struct gmtreleasefields release = gmt_release_fields(call, memory);
	struct gmt_context *context = memory->context;
	if (memory->slab) /* never mapped: a mapping pins it */
		return release_suballoc(&release, memory);
	bool mapped = atomic_load(&memory->maps) > 0, shared = gmt_memory_is_shared(memory);
	if (gmt_unlikely(mapped && !shared)) /* shared memory may be freed so */
		gmt_finding(GMT_DIAG_STILL_MAPPED, "clReleaseMemObject", memory, CL_SUCCESS);
	if (!memory->block || !gmt_pooling())
		return release_to_driver(&release, memory);
	if (mapped || atomic_load(&memory->no_reuse) || atomic_load(&context->order.command_buffers) || atomic_load(&context->pool.closed))
		return discard_block(&release, memory);
	struct gmt_uses uses = gmt_uses_of(memory);
	/* The host may write to shared memory at any time, so it must be idle: an order of commands is not enough. */
	enum gmt_flight flight = gmt_unlikely(shared) ? gmt_uses_state(&uses, NULL) : flight_state(&uses, context);
	release.would_race = flight == GMT_FLIGHT_BUSY;
	release.ordered = flight == GMT_FLIGHT_ORDERED;
	return release_to_pool(&release, memory, &uses);
}

/* No more requests of a class come. */
static void drop_class(struct gmt_context *context, cl_mem_flags flags, const struct gmt_shape_class *class)
{
	if (!gmt_pooling())
		return;
	struct gmt_evictions evictions;
	evictions.count = evictions.more = 0;
	int64_t number = GMT_CORE_EVICTS(drop_class(class->class, &evictions), &evictions);
	if (number < 0) {
		gmt_pool_fail();
		return;
	}
	gmt_decision_write((struct gmtorderfields){
		.order = GMT_ORDER_DROP,
		.number = (uint64_t)number,
		.time = gmt_now(),
		.scope = gmt_context_id(context),
		.access = (uint16_t)flags,
		.shape = class->number,
	});
	gmt_evict_all(&evictions);
}

void gmt_release_context(struct gmt_context *context)
{
	gmt_idle_stop();
	gmt_lock(&context->lock);
	uint32_t wakes = context->life.wakes;
	bool sleeps = atomic_load(&context->life.holds) == 0;
	gmt_unlock(&context->lock);
	gmt_cooling_drop_context(context);
	uint64_t classes[GMT_CLASSES_MAX];
	gmt_lock(&context->lock); /* requests of another thread add none to a context that sleeps, and new ones to one that wakes */
	uint32_t count = atomic_exchange(&context->pool.classes, 0);
	for (uint32_t i = 0; i < count; i++)
		classes[i] = atomic_load(&context->pool.class[i]);
	gmt_unlock(&context->lock);
	for (uint32_t i = 0; i < count; i++)
		drop_class(context, classes[i] >> 32, &(struct gmt_shape_class){.class = (uint32_t)classes[i]});
	gmt_shapes_drop(context, drop_class);
	/*
	 * Another thread may have woken the context with a new queue, whose commands have to run after those of the queues that were
	 * released before: then the context must not count as asleep. That thread may also have let go of the context again, and the
	 * pool may have got blocks after this thread dropped its own. Then that thread drops those, and marks the context as asleep.
	 */
	gmt_lock(&context->lock);
	if (sleeps && atomic_load(&context->life.holds) == 0 && context->life.wakes == wakes)
		atomic_store(&context->life.asleep, true);
	gmt_unlock(&context->lock);
	gmt_context_drop_markers(context);
	gmt_upload_drop_queue(context);
	gmt_idle_go();
}
