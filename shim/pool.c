/* pool.c: creates. A policy plans in the Go core; here the plan is carried out. */
#define _GNU_SOURCE
#include "pool.h"
#include "signals.h"

#define HOST_ACCESS (CL_MEM_HOST_READ_ONLY | CL_MEM_HOST_WRITE_ONLY | CL_MEM_HOST_NO_ACCESS)
#define DEVICE_ACCESS (CL_MEM_READ_WRITE | CL_MEM_READ_ONLY | CL_MEM_WRITE_ONLY)

/* Modes that exclude each other. */
static bool at_most_one(cl_mem_flags flags, cl_mem_flags group)
{
	flags &= group;
	return (flags & (flags - 1)) == 0;
}

/* Anything that the driver might refuse, or that we do not know, is for the driver. */
bool gmt_pool_eligible(const struct gmt_request_for *r)
{
	const cl_mem_flags known = DEVICE_ACCESS | HOST_ACCESS | CL_MEM_ALLOC_HOST_PTR | CL_MEM_COPY_HOST_PTR;
	bool copies = r->flags & CL_MEM_COPY_HOST_PTR;
	if (copies && (r->size < gmt_session.config.copymin || r->flags & (CL_MEM_HOST_READ_ONLY | CL_MEM_HOST_NO_ACCESS)))
		return false; /* filling a block would cost more than it saves, or is not allowed */
	return r->context && copies == (r->host != NULL) && r->size > 0 &&
	       (!r->context->largest || r->size <= r->context->largest) && !(r->flags & ~known) &&
	       at_most_one(r->flags, DEVICE_ACCESS) && at_most_one(r->flags, HOST_ACCESS);
}

/* The number of (context, flags), 0 when the context uses more kinds of flags than it has room for. */
static uint32_t class_of(struct gmt_context *context, cl_mem_flags flags)
{
	static _Atomic uint32_t classes;
	uint32_t count = atomic_load_explicit(&context->classes, memory_order_acquire), class = 0;
	for (uint32_t i = 0; i < count; i++)
		if (context->flags[i] == flags)
			return context->class[i];
	gmt_lock(&context->lock);
	count = atomic_load(&context->classes);
	for (uint32_t i = 0; i < count && !class; i++)
		if (context->flags[i] == flags)
			class = context->class[i];
	if (!class && count < GMT_CLASSES_MAX) {
		class = atomic_fetch_add(&classes, 1) + 1;
		context->flags[count] = flags;
		context->class[count] = class;
		atomic_store_explicit(&context->classes, count + 1, memory_order_release);
	}
	gmt_unlock(&context->lock);
	return class;
}

static cl_mem within_budget(const struct gmt_request_for *r, cl_int *error)
{
	if (gmt_budget_cap(r->size) < r->size) {
		*error = CL_INVALID_BUFFER_SIZE;
		return NULL;
	}
	if (!gmt_budget_take(r->size)) {
		*error = CL_MEM_OBJECT_ALLOCATION_FAILURE;
		return NULL;
	}
	cl_context context = (cl_context)atomic_load(&r->context->object.handle);
	cl_mem handle = gmt_next.clCreateBuffer(context, r->flags, r->size, r->host, error);
	if (!handle)
		gmt_budget_give(r->size);
	return handle;
}

cl_mem gmt_pool_driver_try(struct gmt_call *call, const struct gmt_request_for *r, cl_int *error)
{
	cl_mem handle = within_budget(r, error);
	gmt_driver_returned(call);
	return handle;
}

cl_mem gmt_pool_driver_create(struct gmt_call *call, const struct gmt_request_for *r, cl_int *error)
{
	cl_mem handle;
	struct gmt_shortage shortage = gmt_shortage();
	do {
		handle = gmt_pool_driver_try(call, r, error);
	} while (!handle && gmt_pool_drain(&shortage, *error, r->size));
	return handle;
}

static struct gmt_served direct(struct gmt_call *call, const struct gmt_request_for *r, cl_int *error)
{
	struct gmt_served served = {.granted = r->size, .outcome = GMT_OUTCOME_DRIVER, .written = true};
	served.handle = gmt_pool_driver_create(call, r, error);
	if (!served.handle)
		served.outcome = GMT_OUTCOME_FAILED;
	return served;
}

void gmt_plan_abort(const struct gmt_call *call, const struct gmt_plan *plan, bool grown)
{
	int64_t number = GMT_CORE(abort(plan));
	if (number < 0)
		gmt_pool_failed();
	if (number > 0)
		gmt_order(GMT_ORDER_ABORT, number, (struct gmtevent){
			.time = call->last, .size = (uint64_t)plan->number, .granted = grown ? gmt_decision : 0,
		});
}

static struct gmt_served miss(struct gmt_call *call, const struct gmt_request_for *r, const struct gmt_plan *plan, cl_int *error)
{
	struct gmt_served served = {
		.granted = plan->size, .block = plan->block, .outcome = GMT_OUTCOME_MISS, .reason = plan->reason, .written = true,
	};
	struct gmt_request_for block = *r;
	block.size = plan->size;
	if (!r->host || plan->size == r->size) /* the driver copies as much as it creates */
		served.handle = gmt_pool_driver_create(call, &block, error);
	if (served.handle) {
		if (gmt_decided(GMT_CORE(commit(plan, (uint64_t)(uintptr_t)served.handle)), call->last))
			return served;
		gmt_pool_failed();
		served.block = 0;
		served.outcome = GMT_OUTCOME_DRIVER;
		return served;
	}
	gmt_plan_abort(call, plan, false);
	/* Rounding up must not turn a request down that the driver would have met. */
	if (plan->size > r->size)
		return direct(call, r, error);
	served.block = 0;
	served.granted = r->size;
	served.outcome = GMT_OUTCOME_FAILED;
	return served;
}

/* Makes a block what the request asks for; false when that cannot be done without waiting, or at all. */
static bool prepare(struct gmt_call *call, const struct gmt_request_for *r, const struct gmt_plan *plan, struct gmt_memory *memory)
{
	cl_mem handle = (cl_mem)(uintptr_t)plan->handle;
	/* A kernel must not find its __constant argument too large because of what rounding added. */
	if (r->context->constant && r->size <= r->context->constant && plan->size > r->context->constant)
		return false;
	if (gmt_likely(!r->host && !gmt_session.config.scrub))
		return true;
	struct gmt_uses uses = gmt_uses_of(memory);
	if (gmt_uses_state(&uses, NULL) != GMT_FLIGHT_DONE)
		return false; /* it may be ordered behind a command, but our queue is not */
	bool ok = r->host ? gmt_upload(r->context, handle, r->size, r->host) : gmt_scrub(r->context, handle, plan->size);
	gmt_driver_returned(call);
	return ok;
}

/* False: the block went back, and the request to the driver. */
static bool hit(struct gmt_call *call, const struct gmt_request_for *r, const struct gmt_plan *plan, struct gmt_served *served)
{
	struct gmt_memory *memory = gmt_memory_find((const void *)(uintptr_t)plan->handle);
	if (!memory || !gmt_pool_claim(memory))
		return false; /* given up meanwhile: pooling has ended */
	if (prepare(call, r, plan, memory)) {
		*served = (struct gmt_served){
			.handle = (cl_mem)(uintptr_t)plan->handle,
			.block = plan->block,
			.granted = plan->size,
			.outcome = GMT_OUTCOME_HIT,
			.written = r->host != NULL,
		};
		return true;
	}
	struct gmt_evictions evictions;
	evictions.count = evictions.more = 0;
	gmt_pool_idle(memory);
	gmt_evicting();
	int64_t number = GMT_CORE(free(plan->block, 0, (int64_t)call->start, &evictions));
	if (number > 0)
		gmt_order(GMT_ORDER_RETURN, number, (struct gmtevent){.time = call->start, .size = (uint64_t)plan->number});
	if (number < 0)
		gmt_pool_failed();
	else
		gmt_pool_evicted(&evictions);
	gmt_evicted();
	gmt_pool_check();
	return false;
}

/* The largest block that a request may be rounded up to. */
static uint64_t most(const struct gmt_request_for *r)
{
	bool constant = r->context->constant && r->size <= r->context->constant && r->context->constant < r->context->largest;
	return constant ? r->context->constant : r->context->largest;
}

static bool plan_for(const struct gmt_call *call, const struct gmt_request_for *r, uint32_t class, uint32_t align,
		     struct gmt_plan *plan)
{
	struct gmt_request request = {
		.size = r->size,
		.max = r->context->largest,
		.round = most(r),
		.heap = r->context->heap,
		.time = (int64_t)call->start,
		.class = class,
		.tag = r->tag,
		.align = align,
		.pinned = (r->flags & CL_MEM_ALLOC_HOST_PTR) != 0,
		.exact = r->host != NULL, /* see miss */
	};
	struct gmt_evictions evictions;
	evictions.count = evictions.more = 0;
	gmt_evicting();
	int64_t number = GMT_CORE(plan(&request, plan, &evictions));
	bool ok = number >= 0;
	if (ok && plan->waived)
		gmt_order(GMT_ORDER_ABORT, number - 1, (struct gmtevent){.time = call->start, .size = (uint64_t)plan->waived});
	if (ok) {
		plan->number = number;
		gmt_decided(number, call->start);
		gmt_pool_evicted(&evictions);
	}
	gmt_evicted();
	return ok;
}

struct gmt_served gmt_pool_create(struct gmt_call *call, const struct gmt_request_for *r, cl_int *error)
{
	bool open = gmt_pooling() && !atomic_load_explicit(&r->context->closed, memory_order_relaxed);
	uint32_t class = open ? class_of(r->context, r->flags) : 0;
	struct gmt_served served;
	if (!class) {
		served = direct(call, r, error);
		if (served.handle && !gmt_session.config.pooling) { /* what a policy would have seen */
			served.outcome = GMT_OUTCOME_MISS;
			served.reason = GMT_MISS_POLICY;
		}
		return served;
	}
	gmt_pool_settle(4, true);
	struct gmt_plan plan;
	uint32_t align = gmt_part_align(r);
	bool planned = plan_for(call, r, class, align, &plan);
	call->last = gmt_now();
	if (planned && plan.slab) {
		if (gmt_part_create(call, r, &plan, &served)) {
			*error = CL_SUCCESS;
			return served;
		}
		planned = gmt_pooling() && plan_for(call, r, class, 0, &plan); /* a block of its own needs less memory */
		call->last = gmt_now();
	}
	if (!planned) {
		if (gmt_pooling())
			gmt_pool_failed();
		return direct(call, r, error);
	}
	*error = CL_SUCCESS;
	if (!plan.hit)
		served = miss(call, r, &plan, error);
	else if (!hit(call, r, &plan, &served))
		served = direct(call, r, error);
	served.alone = align == 0;
	return served;
}
