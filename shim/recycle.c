/*
 * recycle.c: releases and evictions. A block is the pool's while its entry is idle; whoever clears that mark owns the
 * block, so it is handed out or released exactly once. Parts of slabs take another way, see part.c.
 */
#define _GNU_SOURCE
#include "pool.h"
#include "signals.h"

void gmt_pool_failed(void)
{
	gmt_pooling_off(GMT_DIAG_PANIC, "the allocator failed; buffers come from the driver from here on");
	gmt_pool_abandon(); /* again: this thread may have come late */
}

bool gmt_pool_claim(struct gmt_memory *memory)
{
	if (!atomic_exchange(&memory->idle, 0))
		return false;
	atomic_fetch_sub_explicit(&memory->context->idle, 1, memory_order_relaxed);
	return true;
}

void gmt_pool_idle(struct gmt_memory *memory)
{
	atomic_fetch_add_explicit(&memory->context->idle, 1, memory_order_relaxed);
	atomic_store(&memory->idle, 1);
}

static cl_mem handle_of(const struct gmt_memory *memory)
{
	return (cl_mem)atomic_load_explicit(&memory->object.handle, memory_order_relaxed);
}

uint64_t gmt_pool_bury(struct gmt_memory *memory)
{
	uint64_t counted = memory->counted ? memory->granted : 0;
	if (memory->kind == GMT_MEMORY_SUBBUFFER && memory->parent && memory->parent->slab)
		gmt_part_count(memory->parent, -1);
	if (!memory->whole)
		gmt_finding_buried(memory);
	return gmt_memory_remove(memory) ? counted : 0;
}

cl_int gmt_pool_release_block(const struct gmt_eviction *e, uint64_t counted)
{
	uint64_t start = gmt_now();
	cl_int err = gmt_next.clReleaseMemObject((cl_mem)(uintptr_t)e->handle);
	gmt_budget_give(counted);
	uint64_t cost = gmt_now() - start;
	struct gmtevent event = {
		.time = start,
		.duration = gmt_clamp32(cost),
		.cost = gmt_clamp32(cost),
		.kind = GMT_KIND_EVICT,
		.reason = e->reason,
		.status = gmt_clamp16(err),
		.tag = e->tag,
		.granted = e->size,
		.link = e->block,
	};
	gmt_ring_write(&event);
	return err;
}

static void evict(const struct gmt_eviction *e)
{
	struct gmt_memory *memory = gmt_memory_find((const void *)(uintptr_t)e->handle);
	if (!memory || !gmt_pool_claim(memory))
		return; /* gmt_pool_abandon was first */
	if (gmt_unlikely(memory->whole)) {
		gmt_slab_evict(memory, e->reason);
		return;
	}
	gmt_pool_release_block(e, gmt_pool_bury(memory));
}

/* Releases what left the pool. Reached from the core's own thread too, so it holds the guard itself. */
void gmt_pool_evicted(struct gmt_evictions *evictions)
{
	if (gmt_likely(!evictions->count))
		return;
	int inside = gmt_inside;
	gmt_leaving();
	gmt_inside = 1;
	for (;;) {
		for (uint32_t i = 0; i < evictions->count && !gmt_session_is_quiet(); i++)
			evict(&evictions->list[i]);
		if (!evictions->more)
			break;
		evictions->count = evictions->more = 0;
		if (GMT_CORE(more(evictions)) < 0) {
			gmt_pool_failed();
			break;
		}
	}
	gmt_left();
	gmt_inside = inside;
}

/* Whether a block still is the pool's: another thread may have given it up while it cooled. */
static bool is_there(const struct gmt_cooled *what)
{
	return what->part || gmt_memory_waits(what->handle, what->block);
}

/*
 * The event is written before the core knows: from then on another thread may give the block up, and what that says must
 * come after it.
 */
static void cooled(const struct gmt_cooled *what)
{
	struct gmt_evictions evictions;
	evictions.count = evictions.more = 0;
	if (gmt_unlikely(what->late != NULL))
		gmt_part_late(what);
	if (gmt_unlikely(what->alone))
		return;
	uint64_t now = gmt_now();
	if (!is_there(what))
		return;
	struct gmtevent event = {
		.time = now, .kind = GMT_KIND_COOLED, .flags = what->part ? GMT_FLAG_PART : 0,
		.tag = what->tag, .granted = what->size, .link = what->block,
	};
	gmt_ring_write(&event);
	gmt_evicting();
	if (gmt_decided(GMT_CORE(cooled(what->block, (int64_t)now, &evictions)), now))
		gmt_pool_evicted(&evictions);
	else
		gmt_pool_failed();
	gmt_evicted();
}

void gmt_pool_settle(unsigned most, bool markers)
{
	struct gmt_cooled done[16];
	unsigned count = gmt_cooling_take(done, sizeof done / sizeof done[0], most, markers);
	for (unsigned i = 0; i < count; i++)
		if (gmt_pooling())
			cooled(&done[i]);
		else if (done[i].late)
			gmt_part_late(&done[i]);
}

static struct gmtevent release_event(const struct gmt_call *call, const struct gmt_memory *memory)
{
	return (struct gmtevent){
		.time = call->start,
		.kind = GMT_KIND_RELEASE,
		.op = memory->kind,
		.scope = memory->scope,
		.tag = memory->tag,
		.object = memory->object.number,
		.size = memory->size,
		.link = memory->block,
	};
}

void gmt_pool_released(struct gmtevent *event, enum gmtoutcome outcome, cl_int status, uint64_t now)
{
	event->outcome = (uint8_t)outcome;
	event->status = gmt_clamp16(status);
	event->duration = gmt_clamp32(now - event->time);
	gmt_ring_write(event);
}

cl_int gmt_pool_to_driver(struct gmtevent *event, struct gmt_memory *memory)
{
	cl_mem handle = handle_of(memory);
	uint64_t counted = gmt_pool_bury(memory);
	cl_int err = gmt_next.clReleaseMemObject(handle);
	gmt_budget_give(counted);
	uint64_t now = gmt_now();
	event->cost = gmt_clamp32(now - event->time);
	gmt_pool_released(event, GMT_OUTCOME_DRIVER, err, now);
	return err;
}

/* A pooled block that must not be handed out again, because of what the program left behind on it. */
static cl_int unfit(struct gmtevent *event, struct gmt_memory *memory)
{
	struct gmt_eviction eviction = {
		.block = event->link,
		.size = memory->granted,
		.handle = (uint64_t)(uintptr_t)handle_of(memory),
		.tag = event->tag,
		.reason = GMT_EVICT_STATE,
	};
	uint64_t counted = gmt_pool_bury(memory);
	if (!gmt_decided(GMT_CORE(forget(event->link)), event->time))
		gmt_pool_failed();
	gmt_pool_released(event, GMT_OUTCOME_REFUSED, CL_SUCCESS, gmt_now());
	return gmt_pool_release_block(&eviction, counted);
}

/* Gives a block back to the policy. What it evicts is released after the event, so that nobody waits for it. */
static cl_int to_pool(struct gmtevent *event, struct gmt_memory *memory, const struct gmt_uses *uses)
{
	bool busy = (event->flags & GMT_FLAG_WOULD_RACE) && !gmt_session.config.ungated;
	struct gmt_cooled what = {.block = event->link, .size = memory->granted, .tag = event->tag, .handle = handle_of(memory)};
	struct gmt_context *context = memory->context;
	struct gmt_evictions evictions;
	evictions.count = evictions.more = 0;
	gmt_pool_idle(memory); /* first: from here on it may have a new owner */
	gmt_evicting();
	if (!gmt_decided(GMT_CORE(free(event->link, busy, (int64_t)event->time, &evictions)), event->time)) {
		gmt_pool_failed(); /* which releases it */
		gmt_evicted();
		gmt_pool_released(event, GMT_OUTCOME_REFUSED, CL_SUCCESS, gmt_now());
		return CL_SUCCESS;
	}
	bool refused = false;
	for (uint32_t i = 0; i < evictions.count; i++)
		refused |= evictions.list[i].block == event->link;
	gmt_pool_released(event, refused ? GMT_OUTCOME_REFUSED : busy ? GMT_OUTCOME_COOLING : GMT_OUTCOME_CACHED, CL_SUCCESS, gmt_now());
	if (busy && !refused)
		gmt_cooling_add(&what, uses, context);
	gmt_pool_evicted(&evictions);
	gmt_evicted();
	gmt_pool_check();
	return CL_SUCCESS;
}

enum gmt_flight gmt_pool_in_flight(const struct gmt_uses *uses, struct gmt_context *context)
{
	enum gmt_flight flight = gmt_uses_state(uses, context);
	if (flight != GMT_FLIGHT_ORDERED)
		return flight;
	for (uint32_t i = 0; i < uses->count; i++)
		gmt_queue_hand(uses->use[i].queue, uses->use[i].position);
	/* Asked again: a queue or user event that appears meanwhile either sees this, or is seen here. */
	return gmt_uses_state(uses, context);
}

cl_int gmt_pool_release(struct gmt_call *call, struct gmt_memory *memory)
{
	struct gmtevent event = release_event(call, memory);
	struct gmt_context *context = memory->context;
	if (memory->slab) /* none that is mapped */
		return gmt_part_release(&event, memory);
	bool mapped = atomic_load(&memory->maps) > 0;
	if (gmt_unlikely(mapped))
		gmt_finding(GMT_DIAG_STILL_MAPPED, "clReleaseMemObject", memory, CL_SUCCESS);
	if (!memory->block || !gmt_pooling())
		return gmt_pool_to_driver(&event, memory);
	if (mapped || atomic_load(&memory->unfit) || atomic_load(&context->recordings) || atomic_load(&context->closed))
		return unfit(&event, memory);
	struct gmt_uses uses = gmt_uses_of(memory);
	enum gmt_flight flight = gmt_pool_in_flight(&uses, context);
	if (flight == GMT_FLIGHT_BUSY)
		event.flags = GMT_FLAG_WOULD_RACE;
	else if (flight == GMT_FLIGHT_ORDERED)
		event.flags = GMT_FLAG_ORDERED;
	return to_pool(&event, memory, &uses);
}

void gmt_pool_drop_context(struct gmt_context *context)
{
	for (struct gmt_cooled what; gmt_cooling_late(context, &what);)
		gmt_part_late(&what);
	gmt_inflight_drop(context);
	uint32_t count = atomic_load(&context->classes);
	gmt_evicting();
	for (uint32_t i = 0; i < count && gmt_pooling(); i++) {
		struct gmt_evictions evictions;
		evictions.count = evictions.more = 0;
		int64_t number = GMT_CORE(drop_class(context->class[i], &evictions));
		if (number < 0) {
			gmt_pool_failed();
			break;
		}
		if (number > 0)
			gmt_order(GMT_ORDER_DROP, number, (struct gmtevent){
				.time = gmt_now(), .scope = gmt_scope(context), .access = (uint16_t)context->flags[i],
			});
		gmt_pool_evicted(&evictions);
	}
	gmt_evicted();
	gmt_upload_end(context);
}

/* Blocks that became idle while pooling ended would be nobody's. */
void gmt_pool_check(void)
{
	if (gmt_unlikely(!gmt_pooling()))
		gmt_pool_abandon();
}

void gmt_context_failed(struct gmt_context *context)
{
	if (context && !atomic_exchange(&context->closed, 1))
		gmt_diag(GMT_DIAG_TRANSPARENT, "a command has failed: memory of its context is not recycled any more");
}

void gmt_pool_abandon(void)
{
	if (gmt_session_is_quiet())
		return;
	uint32_t bucket = 0;
	for (struct gmt_memory *memory; (memory = gmt_memory_idle(&bucket));) {
		if (!gmt_pool_claim(memory))
			continue;
		if (memory->whole || memory->slab) {
			gmt_part_abandon(memory);
			continue;
		}
		struct gmt_eviction e = {
			.block = memory->block,
			.size = memory->granted,
			.handle = (uint64_t)(uintptr_t)handle_of(memory),
			.tag = memory->tag,
			.reason = GMT_EVICT_POLICY,
		};
		gmt_pool_release_block(&e, gmt_pool_bury(memory));
	}
}
