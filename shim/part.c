/*
 * part.c: buffers that are parts of slabs. A slab is a large buffer that belongs to the pool; what the program gets is
 * a sub-buffer of it, and must look like a buffer of its own. The sub-buffer is released with the program's last
 * reference; the pool keeps the range.
 */
#define _GNU_SOURCE
#include "pool.h"
#include "signals.h"

#define OWN_STORAGE (CL_MEM_ALLOC_HOST_PTR | CL_MEM_COPY_HOST_PTR) /* not for sub-buffers, which inherit it */

static cl_mem handle_of(const struct gmt_memory *memory)
{
	return (cl_mem)atomic_load_explicit(&memory->object.handle, memory_order_relaxed);
}

/*
 * None where one would show: contents to copy belong to the driver's own create, with what that leaves in CL_MEM_FLAGS;
 * a command buffer may use memory after its release, so its range could not be handed out for as long.
 */
uint32_t gmt_part_align(const struct gmt_request_for *r)
{
	struct gmt_context *context = r->context;
	/* A callback may run under a lock of the driver's, which whoever creates the slab to share with it may need. */
	bool can = context->align && !r->host && !gmt_barred && !atomic_load_explicit(&context->recordings, memory_order_relaxed);
	return can && atomic_load_explicit(&context->images, memory_order_relaxed) != GMT_IMAGES_OF_WHOLES ? context->align : 0;
}

static void write_slab(const struct gmt_call *call, const struct gmt_request_for *r, const struct gmt_plan *plan, uint64_t cost,
		       cl_int status)
{
	struct gmtevent event = {
		.time = call->last,
		.duration = gmt_clamp32(cost),
		.cost = gmt_clamp32(cost),
		.kind = GMT_KIND_SLAB,
		.scope = gmt_scope(r->context),
		.status = gmt_clamp16(status),
		.access = (uint16_t)r->flags,
		.tag = r->tag,
		.granted = plan->slabsize,
		.link = plan->slab,
	};
	gmt_ring_write(&event);
}

/* A slab in the books, pinned for the pool and for the part that it is created for. */
static struct gmt_memory *enter_slab(const struct gmt_request_for *r, const struct gmt_plan *plan, cl_mem handle)
{
	struct gmt_memory *slab = gmt_memory_add(handle);
	if (!slab)
		return NULL;
	atomic_store(&slab->references, 0);
	atomic_store(&slab->pins, 2);
	slab->kind = GMT_MEMORY_BUFFER;
	slab->whole = 1;
	slab->context = r->context;
	slab->scope = gmt_scope(r->context);
	slab->size = slab->granted = plan->slabsize;
	atomic_store_explicit(&slab->block, plan->slab, memory_order_relaxed);
	slab->flags = r->flags;
	slab->tag = r->tag;
	slab->counted = gmt_session.config.devicememory != 0;
	gmt_pool_idle(slab);
	return slab;
}

/* Nothing is handed back for it: the buffer alone needs less, and is tried next. */
static struct gmt_memory *grow(struct gmt_call *call, const struct gmt_request_for *r, const struct gmt_plan *plan)
{
	struct gmt_request_for whole = *r;
	whole.size = plan->slabsize;
	uint64_t before = call->driver;
	cl_int error = CL_SUCCESS;
	cl_mem handle = gmt_pool_driver_try(call, &whole, &error);
	write_slab(call, r, plan, call->driver - before, handle ? CL_SUCCESS : error);
	struct gmt_memory *slab = handle ? enter_slab(r, plan, handle) : NULL;
	if (handle && !slab) {
		gmt_next.clReleaseMemObject(handle);
		gmt_budget_give(plan->slabsize);
	}
	if (!slab)
		return NULL;
	if (gmt_decided(GMT_CORE(grown(plan, (uint64_t)(uintptr_t)handle)), call->last))
		return slab;
	gmt_pool_failed(); /* which gives up the slab */
	gmt_slab_unpin(slab);
	return NULL;
}

/* As large as was asked for: what lies beyond, up to the next part, is refused by the driver itself. */
static cl_mem carve(struct gmt_call *call, const struct gmt_request_for *r, const struct gmt_plan *plan, const struct gmt_memory *slab)
{
	cl_buffer_region region = {plan->offset, r->size};
	cl_int error;
	cl_mem part = gmt_next.clCreateSubBuffer(handle_of(slab), r->flags & ~(cl_mem_flags)OWN_STORAGE,
						 CL_BUFFER_CREATE_TYPE_REGION, &region, &error);
	gmt_driver_returned(call);
	if (!part || plan->fresh || !gmt_session.config.scrub)
		return part;
	bool clean = gmt_scrub(r->context, part, r->size);
	gmt_driver_returned(call);
	if (clean)
		return part;
	gmt_next.clReleaseMemObject(part);
	return NULL;
}

/* False: there is no part, and nothing is left of the plan. */
bool gmt_part_create(struct gmt_call *call, const struct gmt_request_for *r, const struct gmt_plan *plan, struct gmt_served *out)
{
	struct gmt_served served = {
		.granted = plan->size,
		.block = plan->block,
		.offset = plan->offset,
		.outcome = plan->hit ? GMT_OUTCOME_HIT : GMT_OUTCOME_MISS,
		.reason = plan->reason,
		.written = plan->fresh,
	};
	bool may = gmt_images_of_parts(r->context);
	if (gmt_unlikely(plan->slabsize))
		call->last = gmt_now(); /* what has been tried out is no part of this */
	if (may && plan->slabsize)
		served.slab = grow(call, r, plan);
	else if (may)
		served.slab = gmt_memory_pin((const void *)(uintptr_t)plan->handle, plan->slab);
	if (served.slab)
		served.handle = carve(call, r, plan, served.slab);
	if (!served.handle) {
		gmt_plan_abort(call, plan, served.slab && plan->slabsize);
		if (served.slab)
			gmt_slab_unpin(served.slab);
		return false;
	}
	gmt_part_count(served.slab, 1);
	if (!gmt_decided(GMT_CORE(commit(plan, (uint64_t)(uintptr_t)served.handle)), call->last)) {
		gmt_pool_failed();
		served.block = 0;
		served.outcome = GMT_OUTCOME_DRIVER;
	}
	gmt_gauge(call->last, plan->slabsize != 0);
	*out = served;
	return true;
}

/* Under the part's own rules, in the slab: what would reach beyond the part is moved beyond the slab, as aligned as it was. */
cl_mem gmt_part_child(const struct gmt_memory *part, cl_mem_flags flags, cl_buffer_create_type type, const void *info, cl_int *error)
{
	cl_mem slab = handle_of(part->slab);
	const cl_buffer_region *region = type == CL_BUFFER_CREATE_TYPE_REGION ? info : NULL;
	if (!region)
		return gmt_next.clCreateSubBuffer(slab, flags, type, info, error);
	bool fits = region->origin <= part->size && region->size <= part->size - region->origin;
	size_t beyond = ((size_t)part->slab->granted + 8191) & ~(size_t)4095;
	cl_buffer_region moved = {fits ? part->offset + region->origin : beyond + (region->origin & 4095), region->size};
	if (moved.size > SIZE_MAX - moved.origin) /* drivers may add the two */
		moved.size = SIZE_MAX - moved.origin;
	return gmt_next.clCreateSubBuffer(slab, flags, type, &moved, error);
}

void gmt_part_count(struct gmt_memory *memory, int32_t by)
{
	atomic_fetch_add(&memory->children, (uint32_t)by);
	if (memory->slab)
		atomic_fetch_add(&memory->slab->children, (uint32_t)by);
}

void gmt_slab_unpin(struct gmt_memory *slab)
{
	if (atomic_fetch_sub(&slab->pins, 1) != 1)
		return;
	struct gmt_eviction e = {
		.block = slab->block,
		.size = slab->granted,
		.handle = (uint64_t)(uintptr_t)handle_of(slab),
		.tag = slab->tag,
		.reason = slab->reason,
	};
	gmt_pool_release_block(&e, gmt_pool_bury(slab));
	gmt_gauge(gmt_now(), true);
}

void gmt_part_lost(struct gmt_memory *slab)
{
	gmt_part_count(slab, -1);
	gmt_slab_unpin(slab);
}

void gmt_slab_evict(struct gmt_memory *slab, enum gmtevict reason)
{
	slab->reason = (uint8_t)reason;
	gmt_slab_unpin(slab);
}

/* Out of the books, and to the driver. */
static cl_int end_part(struct gmt_memory *memory)
{
	struct gmt_memory *slab = memory->slab;
	cl_mem handle = handle_of(memory);
	gmt_pool_bury(memory);
	cl_int err = gmt_next.clReleaseMemObject(handle);
	gmt_part_count(slab, -1);
	return err;
}

void gmt_part_late(const struct gmt_cooled *what)
{
	struct gmt_memory *memory = gmt_memory_find(what->late);
	if (memory && memory->block == what->block && gmt_pool_claim(memory))
		gmt_part_abandon(memory);
}

void gmt_part_abandon(struct gmt_memory *memory)
{
	struct gmt_memory *slab = memory->slab;
	if (slab) {
		end_part(memory);
		gmt_slab_unpin(slab);
	} else {
		gmt_slab_evict(memory, GMT_EVICT_POLICY);
	}
}

/* What becomes of a part that the program has released. */
struct fate {
	bool busy;    /* its range cools */
	bool forever; /* until its context ends: it may be used by what is not followed */
	bool late;    /* it stays alive until then: drivers call its destructors when it goes (PoCL 3.1, too early) */
};

static struct fate fate_of(const struct gmt_memory *memory, enum gmt_flight flight)
{
	const struct gmt_context *context = memory->context;
	bool failed = atomic_load(&context->closed); /* nothing tells any more when a command is over */
	bool unfit = failed || atomic_load(&memory->unfit) || atomic_load(&context->recordings);
	bool ordered = flight == GMT_FLIGHT_ORDERED && !gmt_session.config.scrub; /* what scrubs is not ordered behind it */
	bool pending = flight != GMT_FLIGHT_DONE && !ordered && !gmt_session.config.ungated;
	return (struct fate){
		.busy = unfit || pending,
		.forever = unfit,
		.late = !failed && flight != GMT_FLIGHT_DONE && atomic_load(&memory->calls_back),
	};
}

static void give_range(const struct gmtevent *event, const struct gmt_cooled *what, const struct gmt_uses *uses,
		       struct gmt_context *context, struct fate fate)
{
	struct gmt_evictions evictions;
	evictions.count = evictions.more = 0;
	gmt_evicting();
	bool given = gmt_decided(GMT_CORE(free(what->block, fate.busy, (int64_t)event->time, &evictions)), event->time);
	if (!given)
		gmt_pool_failed();
	else if (fate.late || (fate.busy && !fate.forever))
		gmt_cooling_add(what, uses, context);
	gmt_pool_evicted(&evictions);
	gmt_evicted();
}

cl_int gmt_part_release(struct gmtevent *event, struct gmt_memory *memory)
{
	struct gmt_context *context = memory->context;
	struct gmt_memory *slab = memory->slab;
	event->flags = memory->block ? GMT_FLAG_PART : 0;
	if (!memory->block || !gmt_pooling()) {
		cl_int err = gmt_pool_to_driver(event, memory);
		gmt_part_lost(slab);
		return err;
	}
	struct gmt_uses uses = gmt_uses_of(memory);
	enum gmt_flight flight = gmt_pool_in_flight(&uses, context);
	struct fate fate = fate_of(memory, flight);
	struct gmt_cooled what = {
		.block = event->link,
		.size = memory->granted,
		.tag = event->tag,
		.part = true,
		.late = fate.late ? handle_of(memory) : NULL,
		.alone = !fate.busy || fate.forever,
	};
	event->flags |= flight == GMT_FLIGHT_BUSY ? GMT_FLAG_WOULD_RACE : flight == GMT_FLIGHT_ORDERED ? GMT_FLAG_ORDERED : 0;
	cl_int err = CL_SUCCESS;
	if (fate.late)
		gmt_pool_idle(memory);
	else
		err = end_part(memory);
	give_range(event, &what, &uses, context, fate);
	uint64_t now = gmt_now();
	event->cost = gmt_clamp32(now - event->time);
	if (fate.late)
		gmt_part_wait(&what, &uses);
	gmt_pool_released(event, fate.busy ? GMT_OUTCOME_COOLING : GMT_OUTCOME_CACHED, err, now);
	if (!fate.late)
		gmt_slab_unpin(slab);
	gmt_gauge(now, false);
	gmt_pool_check();
	return err;
}

/*
 * Drivers that count sub-buffers and mappings of a buffer in its references have counted them in the slab's. References:
 * the program's, and one of ours when it holds none.
 */
static cl_uint references_of(const struct gmt_memory *part, cl_uint references)
{
	const struct gmt_memory *slab = part->slab;
	cl_uint whole = 0, children = atomic_load(&slab->children), maps = (cl_uint)atomic_load(&part->maps);
	gmt_next.clGetMemObjectInfo(handle_of(slab), CL_MEM_REFERENCE_COUNT, sizeof whole, &whole, NULL);
	if (atomic_load(&part->references) == 0)
		references--;
	if (whole <= children)
		return references;
	references += atomic_load(&part->children);
	return whole > children + (cl_uint)atomic_load(&slab->maps) ? references + maps : references;
}

static cl_uint maps_of(const struct gmt_memory *part, cl_uint maps)
{
	cl_uint whole = 0;
	gmt_next.clGetMemObjectInfo(handle_of(part->slab), CL_MEM_MAP_COUNT, sizeof whole, &whole, NULL);
	return whole ? (cl_uint)atomic_load(&part->maps) : maps; /* else they are counted where they are made */
}

static void correct_child(const struct gmt_memory *child, cl_mem_info what, void *value)
{
	if (what == CL_MEM_ASSOCIATED_MEMOBJECT)
		*(cl_mem *)value = handle_of(child->parent);
	else if (what == CL_MEM_OFFSET)
		*(size_t *)value -= child->parent->offset;
}

void gmt_part_correct(const struct gmt_memory *memory, cl_mem_info what, void *value)
{
	if (!memory->slab) {
		correct_child(memory, what, value);
		return;
	}
	switch (what) {
	case CL_MEM_FLAGS: /* the slab was created with the program's, and the driver may have added to them */
		gmt_next.clGetMemObjectInfo(handle_of(memory->slab), what, sizeof(cl_mem_flags), value, NULL);
		break;
	case CL_MEM_ASSOCIATED_MEMOBJECT:
	case CL_MEM_HOST_PTR:
		*(void **)value = NULL;
		break;
	case CL_MEM_OFFSET:
		*(size_t *)value = 0;
		break;
	case CL_MEM_REFERENCE_COUNT:
		*(cl_uint *)value = references_of(memory, *(cl_uint *)value);
		break;
	case CL_MEM_MAP_COUNT:
		*(cl_uint *)value = maps_of(memory, *(cl_uint *)value);
		break;
	default:
		break;
	}
}

cl_mem gmt_part_whole(const struct gmt_memory *memory, cl_mem handle, size_t *offset)
{
	if (gmt_likely(!memory || !memory->slab))
		return handle;
	bool inside = *offset <= memory->size;
	*offset = inside ? *offset + (size_t)memory->offset : (size_t)memory->slab->granted + 1;
	return handle_of(memory->slab);
}
