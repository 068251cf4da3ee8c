/* hook_memory.c: buffers and sub-buffers, and what all memory objects share: retain and release. */
#define _GNU_SOURCE
#include "memory.h"

/* The entry for memory that the program has just been given; NULL when it cannot be kept. */
static struct gmt_memory *entry_of(const struct gmt_created *c)
{
	struct gmt_memory *memory;
	if (c->served.outcome == GMT_OUTCOME_HIT && !c->served.slab) {
		memory = gmt_memory_find(c->handle);
		if (memory)
			gmt_memory_renew(memory);
	} else {
		memory = gmt_memory_add(c->handle);
	}
	if (!memory)
		return NULL;
	memory->kind = (uint8_t)c->kind;
	memory->context = c->context;
	memory->scope = gmt_scope(c->context);
	memory->size = c->size;
	memory->flags = c->flags;
	memory->element = (uint8_t)c->element;
	memory->tag = c->tag;
	memory->parent = c->parent;
	if (c->parent)
		atomic_fetch_add(&c->parent->pins, 1);
	if (c->parent && c->parent->slab && c->kind == GMT_MEMORY_SUBBUFFER)
		gmt_part_count(c->parent, 1);
	memory->granted = c->served.granted;
	atomic_store_explicit(&memory->block, c->served.block, memory_order_relaxed);
	memory->slab = c->served.slab;
	memory->offset = c->served.offset;
	memory->counted = gmt_session.config.devicememory && !c->parent && !c->served.slab;
	bool recycled = c->served.slab || c->served.outcome == GMT_OUTCOME_HIT;
	atomic_store_explicit(&memory->blank, recycled && !c->served.written, memory_order_relaxed);
	return memory;
}

/* See GMT_KIND_CREATE. Without a size there was no region to tell of. */
static uint64_t granted_to(const struct gmt_memory *memory, const struct gmt_served *served)
{
	if (memory->kind != GMT_MEMORY_SUBBUFFER)
		return memory->granted;
	return memory->size ? 1 + served->offset : 0;
}

static void write_create(const struct gmt_call *call, const struct gmt_memory *memory, const struct gmt_served *served,
			 cl_int status)
{
	struct gmtevent event = {
		.time = call->last,
		.duration = gmt_clamp32(call->last - call->start),
		.cost = gmt_clamp32(call->driver),
		.kind = GMT_KIND_CREATE,
		.op = memory->kind,
		.outcome = (uint8_t)served->outcome,
		.reason = served->reason,
		.flags = served->slab && served->block ? GMT_FLAG_PART : served->alone ? GMT_FLAG_WHOLE : 0,
		.access = (uint16_t)memory->flags,
		.scope = memory->scope,
		.status = gmt_clamp16(status),
		.tag = memory->tag,
		.object = memory->object.number,
		.size = memory->size,
		.granted = granted_to(memory, served),
		.link = memory->parent ? memory->parent->object.number : memory->block,
	};
	gmt_ring_write(&event);
}

void gmt_memory_report(const struct gmt_call *call, const struct gmt_created *c, cl_int status)
{
	struct gmt_memory *memory = c->handle ? entry_of(c) : NULL;
	if (gmt_unlikely(!memory && c->served.slab)) /* the driver's own count keeps the slab as long as it takes */
		gmt_part_lost(c->served.slab);
	struct gmt_memory failed = {
		.kind = (uint8_t)c->kind, .scope = gmt_scope(c->context), .size = c->size, .granted = c->served.granted,
		.tag = c->tag, .flags = c->flags, .parent = c->parent,
	};
	write_create(call, memory ? memory : &failed, &c->served, status);
}

bool gmt_memory_released(const struct gmt_memory *memory, const char *function)
{
	if (gmt_likely(atomic_load_explicit(&memory->references, memory_order_relaxed) > 0))
		return false;
	bool idle = atomic_load(&memory->idle);
	if (idle || memory->block) /* else a part keeps it alive, and the driver may say so */
		gmt_finding(GMT_DIAG_USE_AFTER_RELEASE, function, memory, idle ? CL_INVALID_MEM_OBJECT : CL_SUCCESS);
	return idle;
}

static void set_error(cl_int *errcode, cl_int error)
{
	if (errcode)
		*errcode = error;
}

/* How the driver is asked for a buffer that never comes from the pool. */
struct buffer_call {
	cl_context context;
	const void *properties;
	cl_mem_flags flags;
	size_t size;
	void *host;
	enum { PLAIN, WITH_PROPERTIES, WITH_PROPERTIES_INTEL } entry;
};

static cl_mem ask_driver(const struct buffer_call *b, cl_int *error)
{
	switch (b->entry) {
	case WITH_PROPERTIES:
		return gmt_next.clCreateBufferWithProperties(b->context, b->properties, b->flags, b->size, b->host, error);
	case WITH_PROPERTIES_INTEL:
		return atomic_load(&gmt_next.clCreateBufferWithPropertiesINTEL)(b->context, b->properties, b->flags, b->size,
									       b->host, error);
	default:
		return gmt_next.clCreateBuffer(b->context, b->flags, b->size, b->host, error);
	}
}

/* Properties are given back by queries word for word, so only a create without any may be pooled. */
static cl_mem create_buffer(struct gmt_call *call, const void *caller, const struct buffer_call *b, cl_int *errcode)
{
	cl_int error = CL_SUCCESS;
	struct gmt_created c = {
		.kind = GMT_MEMORY_BUFFER,
		.context = gmt_context_find(b->context),
		.size = b->size,
		.flags = b->flags,
		.tag = gmt_tag(call, caller, b->size),
		.served = {.granted = b->size, .written = true},
	};
	struct gmt_request_for request = {c.context, b->flags, b->size, b->host, c.tag};
	if (!b->properties && gmt_pool_eligible(&request)) {
		c.served = gmt_pool_create(call, &request, &error);
		c.handle = c.served.handle;
	} else if (gmt_budget_cap(b->size) < b->size) { /* no smaller card would take it, however empty */
		error = CL_INVALID_BUFFER_SIZE;
		c.served.outcome = GMT_OUTCOME_FAILED;
	} else {
		GMT_DRIVER_CREATE(call, c.handle, error, b->size, ask_driver(b, &error));
		c.served.outcome = c.handle ? GMT_OUTCOME_DRIVER : GMT_OUTCOME_FAILED;
	}
	gmt_memory_report(call, &c, error);
	set_error(errcode, error);
	gmt_leave();
	return c.handle;
}

GMT_HOOK cl_mem clCreateBuffer(cl_context context, cl_mem_flags flags, size_t size, void *host, cl_int *errcode)
{
	struct gmt_call call;
	if (!gmt_enter(&call))
		return gmt_next.clCreateBuffer(context, flags, size, host, errcode);
	struct buffer_call b = {context, NULL, flags, size, host, PLAIN};
	return create_buffer(&call, __builtin_return_address(0), &b, errcode);
}

GMT_HOOK cl_mem clCreateBufferWithProperties(cl_context context, const cl_mem_properties *properties, cl_mem_flags flags,
					     size_t size, void *host, cl_int *errcode)
{
	struct gmt_call call;
	if (!gmt_enter(&call))
		return gmt_next.clCreateBufferWithProperties(context, properties, flags, size, host, errcode);
	struct buffer_call b = {context, properties, flags, size, host, WITH_PROPERTIES};
	return create_buffer(&call, __builtin_return_address(0), &b, errcode);
}

cl_mem clCreateBufferWithPropertiesINTEL(cl_context context, const cl_mem_properties_intel *properties, cl_mem_flags flags,
					 size_t size, void *host, cl_int *errcode)
{
	struct gmt_call call;
	if (!gmt_enter(&call))
		return atomic_load(&gmt_next.clCreateBufferWithPropertiesINTEL)(context, properties, flags, size, host, errcode);
	struct buffer_call b = {context, properties, flags, size, host, WITH_PROPERTIES_INTEL};
	return create_buffer(&call, __builtin_return_address(0), &b, errcode);
}

/* A region in the block, but beyond what the program asked for, is moved beyond the block, for the driver to refuse. */
static cl_mem driver_part(cl_mem buffer, const struct gmt_memory *parent, cl_mem_flags flags, cl_buffer_create_type type,
			  const void *info, cl_int *error)
{
	if (parent && parent->slab)
		return gmt_part_child(parent, flags, type, info, error);
	const cl_buffer_region *region = type == CL_BUFFER_CREATE_TYPE_REGION ? info : NULL;
	if (!region || !parent || !gmt_beyond(parent, region->origin, region->size))
		return gmt_next.clCreateSubBuffer(buffer, flags, type, info, error);
	cl_buffer_region moved = *region;
	moved.origin = (((size_t)parent->granted + 4096) & ~(size_t)4095) + (moved.origin & 4095); /* as aligned as it was */
	return gmt_next.clCreateSubBuffer(buffer, flags, type, &moved, error);
}

GMT_HOOK cl_mem clCreateSubBuffer(cl_mem buffer, cl_mem_flags flags, cl_buffer_create_type type, const void *info, cl_int *errcode)
{
	struct gmt_call call;
	if (!gmt_enter(&call))
		return gmt_next.clCreateSubBuffer(buffer, flags, type, info, errcode);
	cl_int error = CL_INVALID_MEM_OBJECT;
	struct gmt_memory *parent = gmt_memory_find(buffer);
	cl_buffer_region none = {0, 0}, region = type == CL_BUFFER_CREATE_TYPE_REGION && info ? *(const cl_buffer_region *)info : none;
	struct gmt_created c = {
		.kind = GMT_MEMORY_SUBBUFFER,
		.context = parent ? parent->context : NULL,
		.size = region.size,
		.flags = flags,
		.tag = gmt_tag(&call, __builtin_return_address(0), region.size),
		.parent = parent,
		.served = {.outcome = GMT_OUTCOME_DRIVER, .offset = region.origin},
	};
	if (!parent && buffer)
		gmt_finding_ghost(GMT_DIAG_USE_AFTER_RELEASE, __func__, buffer);
	if (!parent || !gmt_memory_released(parent, __func__))
		GMT_DRIVER_CREATE(&call, c.handle, error, 0, driver_part(buffer, parent, flags, type, info, &error));
	if (!c.handle)
		c.served.outcome = GMT_OUTCOME_FAILED;
	gmt_memory_report(&call, &c, error);
	set_error(errcode, error);
	gmt_leave();
	return c.handle;
}

/* What a retain or release of memory says; NULL: of something unknown. Made while the entry is certain to be there. */
static struct gmtevent references_event(const struct gmt_call *call, const struct gmt_memory *memory, enum gmtkind kind,
					enum gmtoutcome outcome)
{
	struct gmtevent event = {.time = call->start, .kind = (uint16_t)kind, .outcome = (uint8_t)outcome};
	if (memory) {
		event.op = memory->kind;
		event.scope = memory->scope;
		event.tag = memory->tag;
		event.object = memory->object.number;
		event.size = memory->size;
		event.link = memory->block;
	}
	return event;
}

static void write_references(struct gmtevent *event, uint32_t left, cl_int status)
{
	event->granted = left;
	event->status = gmt_clamp16(status);
	event->duration = gmt_clamp32(gmt_now() - event->time);
	gmt_ring_write(event);
}

GMT_HOOK cl_int clRetainMemObject(cl_mem handle)
{
	struct gmt_call call;
	if (!gmt_enter(&call))
		return gmt_next.clRetainMemObject(handle);
	struct gmt_memory *memory = gmt_memory_find(handle);
	if (!memory && handle)
		gmt_finding_ghost(GMT_DIAG_USE_AFTER_RELEASE, __func__, handle);
	cl_int err = memory && gmt_memory_released(memory, __func__) ? CL_INVALID_MEM_OBJECT : gmt_next.clRetainMemObject(handle);
	if (memory && err == CL_SUCCESS) {
		struct gmtevent event = references_event(&call, memory, GMT_KIND_RETAIN, 0);
		uint32_t before = atomic_fetch_add(&memory->references, 1);
		if (gmt_unlikely(before == 0)) /* of one that parts keep alive, and told the handle of */
			atomic_fetch_add(&memory->pins, 1);
		write_references(&event, before + 1, err);
	}
	gmt_leave();
	return err;
}

static cl_int let_go(struct gmt_call *call, struct gmt_memory *memory)
{
	struct gmt_memory *parent = memory->parent;
	cl_int err = gmt_pool_release(call, memory);
	if (parent)
		gmt_memory_unpin(call, parent);
	return err;
}

/* Nothing keeps memory any more whose release the driver has had already. */
static void gone(struct gmt_call *call, struct gmt_memory *memory)
{
	struct gmt_memory *parent = memory->parent, *slab = memory->slab;
	struct gmtevent event = references_event(call, memory, GMT_KIND_RELEASE, GMT_OUTCOME_DRIVER);
	gmt_budget_give(gmt_pool_bury(memory));
	if (slab) /* a part that the core does not know of */
		gmt_part_lost(slab);
	write_references(&event, 0, CL_SUCCESS);
	if (parent)
		gmt_memory_unpin(call, parent);
}

void gmt_memory_unpin(struct gmt_call *call, struct gmt_memory *memory)
{
	if (atomic_fetch_sub(&memory->pins, 1) != 1)
		return;
	if (memory->block)
		let_go(call, memory);
	else
		gone(call, memory);
}

/*
 * The last reference has gone: the memory goes too, unless parts or mappings still keep it. What is pooled keeps one
 * reference of the driver's; one that parts have brought back was counted by the driver in addition.
 */
static cl_int end(struct gmt_call *call, struct gmt_memory *memory)
{
	bool again = atomic_exchange(&memory->ended, 1), ours = memory->block && !again;
	if (gmt_likely(!again && atomic_load(&memory->pins) == 1)) /* nobody can make new parts any more */
		return let_go(call, memory);
	if (memory->slab && !again && atomic_load(&memory->maps) > 0)
		gmt_finding(GMT_DIAG_STILL_MAPPED, "clReleaseMemObject", memory, CL_SUCCESS);
	struct gmtevent event = references_event(call, memory, GMT_KIND_RELEASE, GMT_OUTCOME_PINNED);
	cl_int err = ours ? CL_SUCCESS : gmt_next.clReleaseMemObject((cl_mem)atomic_load(&memory->object.handle));
	if (atomic_fetch_sub(&memory->pins, 1) != 1) {
		write_references(&event, 0, err);
		return err;
	}
	if (memory->block)
		return let_go(call, memory);
	gone(call, memory);
	return err;
}

/* One release too many of memory that we know. What the pool has, the driver must not release. */
static cl_int release_again(const struct gmt_call *call, const struct gmt_memory *memory, cl_mem handle)
{
	bool ours = memory->block != 0;
	struct gmtevent event = references_event(call, NULL, GMT_KIND_RELEASE, GMT_OUTCOME_DRIVER);
	cl_int err = ours ? CL_INVALID_MEM_OBJECT : gmt_next.clReleaseMemObject(handle);
	gmt_finding(GMT_DIAG_DOUBLE_RELEASE, "clReleaseMemObject", memory, err);
	write_references(&event, 0, err);
	return err;
}

/* A release of something that we do not know: the driver answers. It may come from a function that we do not see. */
static cl_int release_stranger(const struct gmt_call *call, cl_mem handle)
{
	bool ghost = handle && gmt_finding_ghost(GMT_DIAG_DOUBLE_RELEASE, "clReleaseMemObject", handle);
	struct gmtevent event = references_event(call, NULL, GMT_KIND_RELEASE, GMT_OUTCOME_DRIVER);
	cl_int err = gmt_next.clReleaseMemObject(handle);
	if (handle && !ghost)
		gmt_finding_unknown("clReleaseMemObject", err);
	write_references(&event, 0, err);
	return err;
}

static cl_int release(struct gmt_call *call, cl_mem handle)
{
	struct gmt_memory *memory = gmt_memory_find(handle);
	if (gmt_unlikely(!memory))
		return release_stranger(call, handle);
	uint32_t count = atomic_load(&memory->references);
	struct gmtevent event = {0};
	do
		if (count > 1)
			event = references_event(call, memory, GMT_KIND_RELEASE, GMT_OUTCOME_DRIVER);
	while (count > 0 && !atomic_compare_exchange_weak(&memory->references, &count, count - 1));
	if (gmt_likely(count == 1))
		return end(call, memory);
	if (count == 0)
		return release_again(call, memory, handle);
	cl_int err = gmt_next.clReleaseMemObject(handle);
	write_references(&event, count - 1, err);
	return err;
}

GMT_HOOK cl_int clReleaseMemObject(cl_mem handle)
{
	struct gmt_call call;
	if (!gmt_enter(&call))
		return gmt_next.clReleaseMemObject(handle);
	cl_int err = release(&call, handle);
	gmt_leave();
	return err;
}
