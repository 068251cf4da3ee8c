/* pool.c: carries out the plans of the core. */
#define _GNU_SOURCE
#include "pool.h"

#include "../base/ring.h"
#include "../base/signals.h"
#include "../order/inflight.h"
#include "cooling.h"
#include "plan.h"
#include "suballoc.h"
#include "upload.h"

static struct gmt_served serve_directly(struct gmt_call *call, const struct gmt_request_for *r, cl_int *error)
{
	struct gmt_served served = {.granted = r->size, .outcome = GMT_OUTCOME_DRIVER, .written = true};
	served.handle = gmt_driver_create(call, r, error);
	if (!served.handle)
		served.outcome = GMT_OUTCOME_FAILED;
	return served;
}

static struct gmt_served serve_miss(struct gmt_call *call, const struct gmt_request_for *r, const struct gmt_plan *plan, cl_int *error)
{
	struct gmt_served served = {
		.granted = plan->size, .block = plan->block, .outcome = GMT_OUTCOME_MISS, .reason = plan->reason, .written = true,
		.route = plan->route,
	};
	struct gmt_request_for block = *r;
	block.size = plan->size;
	if (!r->host || plan->size == r->size) /* the driver copies as much as it creates */
		served.handle = gmt_driver_create(call, &block, error);
	if (served.handle) {
		if (gmt_decision_note(GMT_CORE(commit(plan, (uint64_t)(uintptr_t)served.handle)), call->last))
			return served;
		gmt_pool_fail();
		served.block = 0;
		served.outcome = GMT_OUTCOME_DRIVER;
		return served;
	}
	gmt_plan_abort(call, r, plan, false);
	/* The rounded size may be too large where the requested size is not: try that. */
	if (plan->size > r->size)
		return serve_directly(call, r, error);
	served.block = 0;
	served.granted = r->size;
	served.outcome = GMT_OUTCOME_FAILED;
	return served;
}

/* Gives a block its initial contents. False: it cannot, or only by waiting. */
static bool init_contents(struct gmt_call *call, const struct gmt_request_for *r, const struct gmt_plan *plan, struct gmt_memory *memory)
{
	cl_mem handle = (cl_mem)(uintptr_t)plan->handle;
	/* Rounding must not make a __constant argument too large for a kernel. */
	if (r->context->devices.constant && r->size <= r->context->devices.constant && plan->size > r->context->devices.constant)
		return false;
	if (gmt_likely(!r->host && !gmt_scrubs(r->context)))
		return true;
	struct gmt_uses uses = gmt_uses_of(memory);
	if (gmt_uses_state(&uses, NULL) != GMT_FLIGHT_DONE)
		return false; /* a command may still use the block, and our queue is not ordered after it */
	bool ok;
	if (r->pointer)
		ok = gmt_scrub_pointer(r->context, r->pointer->kind, handle, plan->size);
	else if (r->image)
		ok = r->host ? gmt_upload_image(r->context, handle, r->image->desc, r->host) : gmt_scrub_image(r->context, handle, r->image->desc);
	else
		ok = r->host ? gmt_upload_buffer(r->context, handle, r->size, r->host) : gmt_scrub_buffer(r->context, handle, plan->size);
	gmt_driver_returned(call);
	return ok;
}

/* Serves the request with a block of the pool. False: the block went back to the pool, and the driver must serve the request. */
static bool serve_hit(struct gmt_call *call, const struct gmt_request_for *r, const struct gmt_plan *plan, struct gmt_served *served)
{
	struct gmt_memory *memory = gmt_memory_find((const void *)(uintptr_t)plan->handle);
	if (!memory || !gmt_memory_claim(memory))
		return false; /* evicted meanwhile: pooling has ended */
	if (init_contents(call, r, plan, memory)) {
		/* Field by field: the compiler would build a literal elsewhere, and its copy would stall until all of it is written. */
		served->handle = (cl_mem)(uintptr_t)plan->handle;
		served->block = plan->block;
		served->granted = plan->size;
		served->outcome = GMT_OUTCOME_HIT;
		served->route = plan->route;
		served->written = r->host != NULL || r->pointer; /* the host and kernels write through pointers, unseen */
		return true;
	}
	gmt_memory_set_pooled(memory);
	gmt_plan_return_block(call, r, plan);
	return false;
}

void gmt_pool_create(struct gmt_call *call, const struct gmt_request_for *r, struct gmt_served *served, cl_int *error)
{
	bool open = gmt_pooling() && !atomic_load_explicit(&r->context->pool.closed, memory_order_relaxed);
	const struct gmt_shape_class *shape = gmt_request_shape(r);
	uint32_t class = !open ? 0 : gmt_likely(!shape) ? gmt_plan_class(r->context, r->flags) : shape->class;
	if (!class) {
		gmt_call_driver_begins(call);
		*served = serve_directly(call, r, error);
		if (served->handle && !gmt_session.config.pooling) { /* as a policy would have seen it */
			served->outcome = GMT_OUTCOME_MISS;
			served->reason = GMT_MISS_POLICY;
		}
		return;
	}
	gmt_cooling_collect(4, true);
	struct gmt_plan plan;
	uint32_t align = gmt_suballoc_align(r);
	bool planned = gmt_plan_for(call, r, class, align, false, &plan);
	gmt_call_read_clock(call);
	if (planned && plan.slab) {
		if (gmt_suballoc_create(call, r, &plan, served)) {
			*error = CL_SUCCESS;
			return;
		}
		planned = gmt_pooling() && gmt_plan_for(call, r, class, 0, true, &plan); /* a whole block needs less memory */
		gmt_call_read_clock(call);
	}
	if (!planned) {
		if (gmt_pooling())
			gmt_pool_fail();
		*served = serve_directly(call, r, error);
		return;
	}
	*error = CL_SUCCESS;
	if (!plan.hit)
		*served = serve_miss(call, r, &plan, error);
	else if (!serve_hit(call, r, &plan, served))
		*served = serve_directly(call, r, error);
	served->alone = align == 0;
	served->shape = gmt_likely(!shape) ? 0 : shape->number;
}
