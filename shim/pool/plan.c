/* plan.c: see plan.h. */
#define _GNU_SOURCE
#include "plan.h"

#include "../../internal/wire/eligible.h"
#include "../base/lock.h"
#include "../base/ring.h"
#include "../base/signals.h"

#include <limits.h>

#define PATIENCE 100000000u /* ns */

/* The request of the create, with the limits that apply to it. */
static struct gmtpoolrequest pool_request(const struct gmt_request_for *r, enum gmtmemory memory, uint64_t largest)
{
	return (struct gmtpoolrequest){
		.memory = memory,
		.flags = r->flags,
		.size = r->size,
		.largest = largest,
		.smallest = gmt_session.config.copymin,
		.properties = r->properties != NULL,
		.contents = r->host != NULL,
	};
}

bool gmt_plan_eligible(const struct gmt_request_for *r)
{
	return r->context && !gmt_ineligible(pool_request(r, GMT_MEMORY_BUFFER, r->context->devices.largest));
}

/* The driver must have made an image of the same size. Arrays with initial contents are not served: drivers do not agree on pitches. */
bool gmt_plan_image_eligible(const struct gmt_request_for *r)
{
	struct gmtpoolrequest request = pool_request(r, GMT_MEMORY_IMAGE, 0);
	cl_mem_object_type type = r->image->desc->image_type;
	request.array = type != CL_MEM_OBJECT_IMAGE2D && type != CL_MEM_OBJECT_IMAGE3D;
	return r->context && !gmt_ineligible(request);
}

_Atomic int gmt_pointers_elsewhere;

/* Scrubbing memory that only the device sees takes a function that the program may not have asked for. */
bool gmt_plan_pointer_eligible(const struct gmt_request_for *r)
{
	const struct gmt_pointer_call *p = r->pointer;
	bool hidden = p->kind == GMT_MEMORY_USM_DEVICE && r->context && gmt_scrubs(r->context);
	if (!r->context || hidden || atomic_load_explicit(&gmt_pointers_elsewhere, memory_order_relaxed))
		return false;
	struct gmtpoolrequest request = pool_request(r, p->kind, r->context->devices.largest);
	request.flags = p->flags;
	request.alignment = p->alignment;
	request.properties = p->properties && p->properties[0];
	return !gmt_ineligible(request);
}

static uint32_t find_class(const struct gmt_context *context, uint32_t count, cl_mem_flags flags)
{
	for (uint32_t i = 0; i < count; i++) {
		uint64_t class = atomic_load_explicit(&context->pool.class[i], memory_order_relaxed);
		if (class >> 32 == flags)
			return (uint32_t)class;
	}
	return 0;
}

uint32_t gmt_plan_class(struct gmt_context *context, cl_mem_flags flags)
{
	uint32_t class = find_class(context, atomic_load_explicit(&context->pool.classes, memory_order_acquire), flags);
	if (gmt_likely(class))
		return class;
	gmt_lock(&context->lock);
	uint32_t count = atomic_load(&context->pool.classes);
	class = find_class(context, count, flags);
	if (!class && count < GMT_CLASSES_MAX && atomic_load(&context->life.holds)) {
		class = gmt_class_new_number();
		atomic_store_explicit(&context->pool.class[count], flags << 32 | class, memory_order_relaxed);
		atomic_store_explicit(&context->pool.classes, count + 1, memory_order_release);
	}
	gmt_unlock(&context->lock);
	return class;
}

/* The largest block that a request may be rounded up to. */
static uint64_t largest_block(const struct gmt_request_for *r)
{
	uint64_t constant = r->context->devices.constant, largest = r->context->devices.largest;
	return constant && r->size <= constant && constant < largest ? constant : largest;
}

/* Counts attempts to create a slab that have ended, well or not. */
static _Atomic uint32_t settled;

void gmt_plan_wake_waiters(void)
{
	atomic_fetch_add(&settled, 1);
	gmt_futex_wake(&settled, INT_MAX);
}

/*
 * Waits for another thread, which is in the driver: it may wait there for commands, these for an event that the program sets,
 * and the program for this plan. So not for long.
 */
static int64_t wait_for_slab(const struct gmt_request *request, struct gmt_plan *plan, int64_t number, struct gmt_evictions *evictions)
{
	const uint64_t until = gmt_now() + PATIENCE;
	while (number > 0 && plan->waits) {
		uint32_t seen = atomic_load(&settled);
		uint64_t now = gmt_now();
		plan->number = number;
		number = GMT_CORE_EVICTS(resume(request, plan, now >= until, evictions), evictions);
		if (number > 0 && plan->waits)
			gmt_futex_wait(&settled, seen, until - now);
	}
	return number;
}

bool gmt_plan_for(const struct gmt_call *call, const struct gmt_request_for *r, uint32_t class, uint32_t align, bool again,
		  struct gmt_plan *plan)
{
	struct gmt_request request = {
		.size = r->size,
		.max = r->context->devices.largest,
		.round = largest_block(r),
		.heap = r->context->devices.heap,
		.time = (int64_t)call->start,
		.class = class,
		.tag = r->tag,
		.align = align,
		.pinned = (r->flags & CL_MEM_ALLOC_HOST_PTR) != 0,
		.exact = r->host != NULL || r->image, /* the driver copies as much as it creates; images are of one size */
		.again = again,
	};
	struct gmt_evictions evictions;
	evictions.count = evictions.more = 0;
	int64_t number = GMT_CORE_EVICTS(plan(&request, plan, &evictions), &evictions);
	if (gmt_unlikely(number > 0 && plan->waits))
		number = wait_for_slab(&request, plan, number, &evictions);
	bool ok = number >= 0;
	if (ok && plan->waived)
		gmt_decision_write((struct gmtorderfields){
			.order = GMT_ORDER_ABORT,
			.number = (uint64_t)number - 1,
			.time = call->start,
			.decision = (uint64_t)plan->waived,
		});
	if (ok) {
		plan->number = number;
		gmt_decision_note(number, call->start);
		gmt_decision_note(plan->committed, call->start);
		gmt_evict_all(&evictions);
	}
	return ok;
}

void gmt_plan_return_block(const struct gmt_call *call, const struct gmt_request_for *r, const struct gmt_plan *plan)
{
	struct gmt_evictions evictions;
	evictions.count = evictions.more = 0;
	int64_t number = gmt_pool_give_block(plan->block, plan->size, false, call->start, &evictions);
	if (number > 0)
		gmt_decision_write((struct gmtorderfields){
			.order = GMT_ORDER_RETURN, .number = (uint64_t)number, .time = call->start, .decision = (uint64_t)plan->number,
			.scope = gmt_context_id(r->context), .access = (uint16_t)r->flags, .shape = gmt_request_shape_number(r),
			.slab = (uint64_t)plan->committed,
		});
	if (number < 0)
		gmt_pool_fail();
	else
		gmt_evict_all(&evictions);
	gmt_pool_abandon_if_off();
}

void gmt_plan_abort(const struct gmt_call *call, const struct gmt_request_for *r, const struct gmt_plan *plan, bool grown)
{
	int64_t number = GMT_CORE(abort(plan));
	if (number < 0)
		gmt_pool_fail();
	if (number > 0)
		gmt_decision_write((struct gmtorderfields){
			.order = GMT_ORDER_ABORT,
			.scope = gmt_context_id(r->context),
			.access = (uint16_t)r->flags,
			.shape = gmt_request_shape_number(r),
			.number = (uint64_t)number,
			.time = call->last,
			.decision = (uint64_t)plan->number,
			.slab = grown ? gmt_decision : 0,
		});
	if (plan->slabsize && !grown)
		gmt_plan_wake_waiters();
}
