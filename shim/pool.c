/* pool.c: between the hooks and the Go core. A policy plans in there; here the plan is carried out. */
#define _GNU_SOURCE
#include "shim.h"

static void core_failed(void)
{
	gmt_pooling_off(GMT_DIAG_PANIC, "the allocator failed; buffers come from the driver from here on");
}

static cl_int release_block(const struct gmt_eviction *e)
{
	uint64_t start = gmt_now();
	cl_int err = gmt_next.clReleaseMemObject((cl_mem)(uintptr_t)e->handle);
	uint64_t cost = gmt_now() - start;
	struct gmtevent event = {
		.time = start,
		.duration = gmt_clamp32(cost),
		.cost = gmt_clamp32(cost),
		.kind = GMT_KIND_EVICT,
		.reason = e->reason,
		.status = err,
		.tag = e->tag,
		.granted = e->size,
		.link = e->block,
	};
	gmt_ring_write(&event);
	return err;
}

/* Releases what left the pool. Reached from the core's own thread too, so it holds the guard itself. */
void gmt_pool_evicted(struct gmt_evictions *evictions)
{
	int inside = gmt_inside;
	gmt_inside = 1;
	for (;;) {
		for (uint32_t i = 0; i < evictions->count; i++)
			release_block(&evictions->list[i]);
		if (!evictions->more)
			break;
		evictions->count = evictions->more = 0;
		if (gmt_session.core.more(evictions) != 0) {
			core_failed();
			break;
		}
	}
	gmt_inside = inside;
}

static void cooled(const struct gmt_cooled *what)
{
	struct gmt_evictions evictions;
	evictions.count = evictions.more = 0;
	uint64_t now = gmt_now();
	if (gmt_session.core.cooled(what->block, (int64_t)now, &evictions) != 0) {
		core_failed();
		return;
	}
	struct gmtevent event = {.time = now, .kind = GMT_KIND_COOLED, .tag = what->tag, .granted = what->size, .link = what->block};
	gmt_ring_write(&event);
	gmt_pool_evicted(&evictions);
}

void gmt_pool_settle(unsigned most)
{
	struct gmt_cooled done[16];
	unsigned count = gmt_cooling_take(done, sizeof done / sizeof done[0], most);
	for (unsigned i = 0; i < count && gmt_pooling(); i++)
		cooled(&done[i]);
}

/* Read-write modes, each of which excludes the others. */
static bool at_most_one(cl_mem_flags flags, cl_mem_flags group)
{
	flags &= group;
	return (flags & (flags - 1)) == 0;
}

bool gmt_pool_eligible(struct gmt_context *context, cl_mem_flags flags, size_t size, const void *host)
{
	const cl_mem_flags device = CL_MEM_READ_WRITE | CL_MEM_READ_ONLY | CL_MEM_WRITE_ONLY;
	const cl_mem_flags hostaccess = CL_MEM_HOST_READ_ONLY | CL_MEM_HOST_WRITE_ONLY | CL_MEM_HOST_NO_ACCESS;
	return context && !host && size > 0 && (!context->largest || size <= context->largest) &&
	       !(flags & ~(device | hostaccess | CL_MEM_ALLOC_HOST_PTR)) && at_most_one(flags, device) &&
	       at_most_one(flags, hostaccess);
}

/* The number of (context, flags), 0 when the context uses more kinds of flags than it has room for. */
static uint32_t class_of(struct gmt_context *context, cl_mem_flags flags)
{
	static _Atomic uint32_t classes;
	uint32_t count = atomic_load_explicit(&context->classes, memory_order_acquire), class = 0;
	for (uint32_t i = 0; i < count; i++)
		if (context->flags[i] == flags)
			return context->class[i];
	gmt_lock(&context->classlock);
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
	gmt_unlock(&context->classlock);
	return class;
}

static bool out_of_memory(cl_int error)
{
	return error == CL_MEM_OBJECT_ALLOCATION_FAILURE || error == CL_OUT_OF_RESOURCES || error == CL_OUT_OF_HOST_MEMORY;
}

bool gmt_pool_drain(cl_int error, uint64_t need)
{
	if (!out_of_memory(error) || !gmt_pooling())
		return false;
	struct gmt_evictions evictions = {0};
	if (gmt_session.core.drain(need ? need : 1, &evictions) != 0) {
		core_failed();
		return false;
	}
	bool some = evictions.count > 0;
	gmt_pool_evicted(&evictions);
	return some;
}

/* A real create, tried again for as long as the pool has something to give back. */
static cl_mem driver_create(struct gmt_call *call, cl_context context, cl_mem_flags flags, size_t size, cl_int *error)
{
	cl_mem handle;
	do {
		handle = gmt_next.clCreateBuffer(context, flags, size, NULL, error);
		gmt_driver_returned(call);
	} while (!handle && gmt_pool_drain(*error, size));
	return handle;
}

static struct gmt_served direct(struct gmt_call *call, cl_context context, cl_mem_flags flags, size_t size, cl_int *error)
{
	struct gmt_served served = {.granted = size, .outcome = GMT_OUTCOME_DRIVER};
	served.handle = driver_create(call, context, flags, size, error);
	if (!served.handle)
		served.outcome = GMT_OUTCOME_FAILED;
	return served;
}

static struct gmt_served miss(struct gmt_call *call, cl_context context, cl_mem_flags flags, size_t size,
			      const struct gmt_plan *plan, cl_int *error)
{
	struct gmt_served served = {.granted = plan->size, .block = plan->block, .outcome = GMT_OUTCOME_MISS, .reason = plan->reason};
	served.handle = driver_create(call, context, flags, plan->size, error);
	if (served.handle) {
		if (gmt_session.core.commit(plan, (uint64_t)(uintptr_t)served.handle) == 0)
			return served;
		core_failed();
		served.block = 0;
		served.outcome = GMT_OUTCOME_DRIVER;
		return served;
	}
	if (gmt_session.core.abort(plan) != 0)
		core_failed();
	/* Rounding up must not turn a request down that the driver would have met. */
	if (plan->size > size)
		return direct(call, context, flags, size, error);
	served.block = 0;
	served.granted = size;
	served.outcome = GMT_OUTCOME_FAILED;
	return served;
}

struct gmt_served gmt_pool_create(struct gmt_call *call, struct gmt_context *context, cl_mem_flags flags, size_t size,
				  uint32_t tag, cl_int *error)
{
	cl_context handle = (cl_context)atomic_load(&context->object.handle);
	uint32_t class = gmt_pooling() ? class_of(context, flags) : 0;
	if (!class) {
		struct gmt_served served = direct(call, handle, flags, size, error);
		if (served.handle && !gmt_session.config.pooling) { /* what a policy would have seen */
			served.outcome = GMT_OUTCOME_MISS;
			served.reason = GMT_MISS_POLICY;
		}
		return served;
	}
	gmt_pool_settle(4);
	struct gmt_request request = {.size = size, .max = context->largest, .time = (int64_t)call->start, .class = class, .tag = tag};
	struct gmt_plan plan;
	struct gmt_evictions evictions;
	evictions.count = evictions.more = 0;
	if (gmt_session.core.plan(&request, &plan, &evictions) != 0) {
		core_failed();
		return direct(call, handle, flags, size, error);
	}
	gmt_pool_evicted(&evictions);
	call->last = gmt_now();
	if (!plan.hit)
		return miss(call, handle, flags, size, &plan, error);
	*error = CL_SUCCESS;
	return (struct gmt_served){
		.handle = (cl_mem)(uintptr_t)plan.handle,
		.block = plan.block,
		.granted = plan.size,
		.outcome = GMT_OUTCOME_HIT,
	};
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

static void write_release(struct gmtevent *event, enum gmtoutcome outcome, cl_int status, uint64_t now)
{
	event->outcome = (uint8_t)outcome;
	event->status = status;
	event->duration = gmt_clamp32(now - event->time);
	gmt_ring_write(event);
}

static cl_mem handle_of(const struct gmt_memory *memory)
{
	return (cl_mem)atomic_load_explicit(&memory->object.handle, memory_order_relaxed);
}

static cl_int to_driver(struct gmtevent *event, cl_mem handle)
{
	cl_int err = gmt_next.clReleaseMemObject(handle);
	uint64_t now = gmt_now();
	event->cost = gmt_clamp32(now - event->time);
	write_release(event, GMT_OUTCOME_DRIVER, err, now);
	return err;
}

/* A pooled block that must not be handed out again, because of what the program left behind on it. */
static cl_int unfit(struct gmtevent *event, cl_mem handle, uint64_t granted)
{
	struct gmt_eviction eviction = {
		.block = event->link,
		.size = granted,
		.handle = (uint64_t)(uintptr_t)handle,
		.tag = event->tag,
		.reason = GMT_EVICT_STATE,
	};
	if (gmt_session.core.forget(event->link) != 0)
		core_failed();
	write_release(event, GMT_OUTCOME_REFUSED, CL_SUCCESS, gmt_now());
	return release_block(&eviction);
}

/* Gives a block back to the policy. What it evicts is released after the event, so that nobody waits for it. */
static cl_int to_pool(struct gmtevent *event, cl_mem handle, uint64_t granted, const struct gmt_uses *uses,
		      struct gmt_context *context)
{
	bool busy = (event->flags & GMT_FLAG_WOULD_RACE) && !gmt_session.config.ungated;
	struct gmt_evictions evictions;
	evictions.count = evictions.more = 0;
	if (gmt_session.core.free(event->link, busy, (int64_t)event->time, &evictions) != 0) {
		core_failed();
		return to_driver(event, handle);
	}
	bool refused = false;
	for (uint32_t i = 0; i < evictions.count; i++)
		refused |= evictions.list[i].block == event->link;
	write_release(event, refused ? GMT_OUTCOME_REFUSED : busy ? GMT_OUTCOME_COOLING : GMT_OUTCOME_CACHED, CL_SUCCESS, gmt_now());
	if (busy && !refused)
		gmt_cooling_add(&(struct gmt_cooled){event->link, granted, event->tag}, uses, context);
	gmt_pool_evicted(&evictions);
	return CL_SUCCESS;
}

cl_int gmt_pool_release(struct gmt_call *call, struct gmt_memory *memory)
{
	struct gmtevent event = release_event(call, memory);
	struct gmt_context *context = memory->context;
	cl_mem handle = handle_of(memory);
	uint64_t granted = memory->granted;
	bool pooled = memory->block && gmt_pooling();
	bool left_behind = atomic_load(&memory->maps) > 0 || atomic_load(&memory->callbacks);
	enum gmt_flight flight = pooled && !left_behind ? gmt_uses_state(&memory->uses, context) : GMT_FLIGHT_DONE;
	if (flight == GMT_FLIGHT_ORDERED) {
		/* Asked again: a queue that is created meanwhile either sees this, or is seen here. */
		atomic_store(&context->ordered, 1);
		flight = gmt_uses_state(&memory->uses, context);
	}
	struct gmt_uses uses;
	if (flight == GMT_FLIGHT_BUSY) {
		uses = memory->uses;
		event.flags = GMT_FLAG_WOULD_RACE;
	} else if (flight == GMT_FLIGHT_ORDERED) {
		event.flags = GMT_FLAG_ORDERED;
	}
	gmt_memory_remove(memory); /* first: the handle may be given out again at once, by the driver or by the pool */
	if (!pooled)
		return to_driver(&event, handle);
	return left_behind ? unfit(&event, handle, granted) : to_pool(&event, handle, granted, &uses, context);
}

void gmt_pool_drop_context(struct gmt_context *context)
{
	gmt_inflight_drop(context);
	uint32_t count = atomic_load(&context->classes);
	for (uint32_t i = 0; i < count && gmt_pooling(); i++) {
		struct gmt_evictions evictions;
		evictions.count = evictions.more = 0;
		if (gmt_session.core.drop_class(context->class[i], &evictions) != 0) {
			core_failed();
			return;
		}
		gmt_pool_evicted(&evictions);
	}
}
