/*
 * suballoc.c: slabs and sub-allocations. A slab is a large buffer that belongs to the pool. The program gets a sub-buffer of
 * it, which must look like a buffer of its own. With the program's last reference the pool gets the range; the sub-buffer is
 * parked for the next request that gets the range (park.h), or released.
 */
#define _GNU_SOURCE
#include "suballoc.h"

#include "../base/dispatch.h"
#include "../base/ring.h"
#include "../base/signals.h"
#include "alias.h"
#include "frag_stats.h"
#include "park.h"
#include "trial.h"
#include "upload.h"

#define OWN_STORAGE (CL_MEM_ALLOC_HOST_PTR | CL_MEM_COPY_HOST_PTR) /* not for sub-buffers, which inherit it */

/*
 * 0 where the program could notice a sub-allocation: with COPY_HOST_PTR, CL_MEM_FLAGS must be that of the driver's own create. And a
 * command buffer may use memory after its release, so the range could not be handed out until the command buffer ends.
 */
uint32_t gmt_suballoc_align(const struct gmt_request_for *r)
{
	struct gmt_context *context = r->context;
	/* A callback may run under a lock of the driver that another thread, which creates the slab to share, may need. */
	bool can = context->devices.align && !r->host && !r->image && !r->pointer && !gmt_in_callback &&
		   !atomic_load_explicit(&context->order.command_buffers, memory_order_relaxed);
	return can && atomic_load_explicit(&context->tried.parts, memory_order_relaxed) != GMT_PARTS_NONE ? context->devices.align : 0;
}

static void write_slab_event(const struct gmt_call *call, const struct gmt_request_for *r, const struct gmt_plan *plan, uint64_t cost,
		       cl_int status)
{
	struct gmtevent event = GMT_EVENT_SLAB(.time = call->last, .duration = gmt_clamp32(cost), .cost = gmt_clamp32(cost),
					       .scope = gmt_context_id(r->context), .access = (uint16_t)r->flags,
					       .status = gmt_clamp16(status), .tag = r->tag, .bytes = plan->slabsize,
					       .block = plan->slab);
	gmt_ring_write(&event);
}

/* Registers a slab, pinned for the pool and for the sub-allocation that it is created for. */
static struct gmt_memory *register_slab(const struct gmt_request_for *r, const struct gmt_plan *plan, cl_mem handle, struct gmt_store *store)
{
	struct gmt_memory *slab = gmt_memory_add(handle, true);
	if (!slab)
		return NULL;
	atomic_store(&slab->references, 0);
	atomic_store(&slab->pins, 2);
	slab->kind = GMT_MEMORY_BUFFER;
	slab->is_slab = 1;
	slab->context = r->context;
	slab->size = slab->granted = plan->slabsize;
	atomic_store_explicit(&slab->block, plan->slab, memory_order_relaxed);
	slab->flags = (uint32_t)r->flags;
	slab->store = store;
	slab->object.tag = r->tag;
	slab->counted = true;
	gmt_memory_set_pooled(slab);
	return slab;
}

/* whole: a request for the whole slab. */
static cl_mem create_slab(struct gmt_call *call, const struct gmt_request_for *whole, struct gmt_store **store, cl_int *error)
{
	if (atomic_load_explicit(&whole->context->tried.parts, memory_order_relaxed) != GMT_PARTS_ALIASED)
		return gmt_driver_create_once(call, whole, error);
	struct gmt_request_for stored = *whole;
	*error = CL_OUT_OF_HOST_MEMORY;
	*store = gmt_store_new(whole->context, whole->size, &stored.flags, &stored.host);
	if (!*store)
		return NULL;
	cl_mem handle = gmt_driver_create_once(call, &stored, error);
	if (gmt_store_serves(*store, handle))
		return handle;
	if (handle)
		gmt_budget_give_back(whole->size);
	return NULL;
}

/* Creates the slab. It tries once and drains nothing: if it fails, the next attempt is a buffer alone, which needs less memory. */
static struct gmt_memory *add_slab(struct gmt_call *call, const struct gmt_request_for *r, const struct gmt_plan *plan)
{
	struct gmt_request_for whole = *r;
	struct gmt_store *store = NULL;
	whole.size = plan->slabsize;
	uint64_t before = call->driver;
	cl_int error = CL_SUCCESS;
	cl_mem handle = create_slab(call, &whole, &store, &error);
	write_slab_event(call, r, plan, call->driver - before, handle ? CL_SUCCESS : error);
	struct gmt_memory *slab = handle ? register_slab(r, plan, handle, store) : NULL;
	if (handle && !slab) {
		gmt_driver.clReleaseMemObject(handle);
		gmt_budget_give_back(plan->slabsize);
	}
	if (!slab)
		return NULL;
	if (gmt_decision_note(GMT_CORE(grown(plan, (uint64_t)(uintptr_t)handle)), call->last)) {
		gmt_plan_wake_waiters();
		return slab;
	}
	gmt_pool_fail(); /* which drops the pool's pin */
	gmt_slab_unpin(slab);
	return NULL;
}

/* Serves the request with a parked sub-allocation, which has its own pin of the slab. False: none is parked for the range. */
static bool take_parked(const struct gmt_request_for *r, const struct gmt_plan *plan, struct gmt_served *served)
{
	struct gmt_memory *memory = gmt_park_take(served->slab, plan->offset, r->size, r->flags);
	if (!memory)
		return false;
	gmt_slab_unpin(served->slab);
	served->handle = gmt_memory_handle(memory);
	served->again = true;
	return true;
}

/* Exactly as large as requested, so that the driver itself refuses commands beyond, although the range may be larger. */
static void create_subbuffer(struct gmt_call *call, const struct gmt_request_for *r, const struct gmt_plan *plan, struct gmt_served *served)
{
	cl_buffer_region region = {plan->offset, r->size};
	cl_int error;
	cl_mem_flags flags = r->flags & ~(cl_mem_flags)OWN_STORAGE;
	cl_mem slab = gmt_memory_handle(served->slab);
	served->handle = gmt_driver.clCreateSubBuffer(slab, flags, CL_BUFFER_CREATE_TYPE_REGION, &region, &error);
	gmt_driver_returned(call);
	if (served->handle)
		gmt_memory_count_child(served->slab, 1);
}

/* False: the driver refused, or could not scrub the recycled range. */
static bool carve_slab(struct gmt_call *call, const struct gmt_request_for *r, const struct gmt_plan *plan, struct gmt_served *served)
{
	if (plan->fresh || gmt_scrubs(r->context) || !take_parked(r, plan, served))
		create_subbuffer(call, r, plan, served);
	if (!served->handle || plan->fresh || !gmt_scrubs(r->context))
		return served->handle != NULL;
	bool clean = gmt_scrub_buffer(r->context, served->handle, r->size);
	gmt_driver_returned(call);
	if (clean)
		return true;
	gmt_driver.clReleaseMemObject(served->handle);
	gmt_memory_count_child(served->slab, -1);
	served->handle = NULL;
	return false;
}

/* Aborts the plan. */
static bool abort_plan(const struct gmt_call *call, const struct gmt_request_for *r, const struct gmt_plan *plan, struct gmt_served *served)
{
	struct gmt_memory *slab = served->slab;
	served->slab = NULL;
	if (plan->committed)
		gmt_plan_return_block(call, r, plan);
	else
		gmt_plan_abort(call, r, plan, slab && plan->slabsize);
	if (slab)
		gmt_slab_unpin(slab);
	return false;
}

bool gmt_suballoc_create(struct gmt_call *call, const struct gmt_request_for *r, const struct gmt_plan *plan, struct gmt_served *served)
{
	bool may = gmt_trial(r->context);
	if (gmt_unlikely(plan->slabsize))
		gmt_call_read_clock(call); /* without the time that trials took */
	if (may && plan->slabsize)
		served->slab = add_slab(call, r, plan);
	else if (may)
		served->slab = gmt_memory_pin((const void *)(uintptr_t)plan->handle, plan->slab);
	if (!served->slab || !carve_slab(call, r, plan, served))
		return abort_plan(call, r, plan, served);
	served->granted = plan->size;
	served->block = plan->block;
	served->offset = plan->offset;
	served->outcome = plan->hit ? GMT_OUTCOME_HIT : GMT_OUTCOME_MISS;
	served->reason = plan->reason;
	served->route = plan->route;
	served->written = plan->fresh;
	if (gmt_unlikely(!plan->committed) && !gmt_decision_note(GMT_CORE(commit(plan, (uint64_t)(uintptr_t)served->handle)), call->last)) {
		gmt_pool_fail();
		served->block = 0;
		served->outcome = GMT_OUTCOME_DRIVER;
	}
	gmt_frag_stats_write(call->last, plan->slabsize != 0);
	return true;
}

/*
 * Creates the sub-buffer in the slab. A region that reaches beyond the sub-allocation is moved beyond the slab, with the same
 * alignment, so that the driver refuses it.
 */
cl_mem gmt_suballoc_subbuffer(const struct gmt_memory *memory, cl_mem_flags flags, cl_buffer_create_type type, const void *info,
			      cl_int *error)
{
	cl_mem slab = gmt_memory_handle(memory->slab);
	const cl_buffer_region *region = type == CL_BUFFER_CREATE_TYPE_REGION ? info : NULL;
	if (!region)
		return gmt_driver.clCreateSubBuffer(slab, flags, type, info, error);
	bool fits = region->origin <= memory->size && region->size <= memory->size - region->origin;
	size_t beyond = ((size_t)memory->slab->granted + 8191) & ~(size_t)4095;
	cl_buffer_region moved = {fits ? memory->offset + region->origin : beyond + (region->origin & 4095), region->size};
	if (moved.size > SIZE_MAX - moved.origin) /* drivers may add the two */
		moved.size = SIZE_MAX - moved.origin;
	return gmt_driver.clCreateSubBuffer(slab, flags, type, &moved, error);
}

cl_mem gmt_suballoc_to_slab(const struct gmt_memory *memory, cl_mem handle, size_t *offset)
{
	if (gmt_likely(!memory || !memory->slab))
		return handle;
	bool inside = *offset <= memory->size;
	*offset = inside ? *offset + (size_t)memory->offset : (size_t)memory->slab->granted + 1;
	return gmt_memory_handle(memory->slab);
}
